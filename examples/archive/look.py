"""What an archived artifact is, without running it and without JAX: `python look.py FOLDER`.

Needs `jaxtf-serialization` alone. Ends with 1 if the bytes are not those of the record, or describe themselves
otherwise.
"""

import hashlib
import json
import sys
from pathlib import Path

from jaxtf.serialization import describe, deserialize

SAME = ("functions", "constraints", "producer", "vjp_orders")  # what a newer reader must say as the older one did


def main(folder: Path) -> None:
    """Compares the file with its record, and asks it about sizes."""
    artifact, record = (folder / "model.jaxtf").read_bytes(), json.loads((folder / "record.json").read_text())
    if hashlib.sha256(artifact).hexdigest() != record["sha256 of model.jaxtf"]:
        sys.exit(f"{folder / 'model.jaxtf'} is not the file that was recorded on {record['written']}")
    description = describe(artifact)
    print(description)
    differing = [name for name in SAME if description.to_json()[name] != record["description"][name]]
    if differing:
        sys.exit(f"{', '.join(differing)}: not as recorded on {record['written']}")
    shapes = deserialize(artifact).check_shapes((1000, 2), (1000,), (7, 2))
    print(f"1000 observations and 7 queries give {shapes.results}, with {shapes.variables}")
    try:
        deserialize(artifact).check_shapes((1000, 2), (999,), (7, 2))
    except ValueError as error:
        print(f"999 values for 1000 observations are refused: {str(error).splitlines()[0]}")
    else:
        sys.exit("999 values for 1000 observations were accepted")
    assert "jax" not in sys.modules


if __name__ == "__main__":
    main(Path(sys.argv[1]))
