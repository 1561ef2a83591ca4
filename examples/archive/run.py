"""Runs an archived artifact and compares with the answers of its day: `python run.py FOLDER`.

Knows nothing of the program that wrote it. Ends with 1 if a number differs by more than rounding explains.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from jaxtf.serialization import deserialize

# The kernel matrix has a condition number of at most (60 + 0.1) / 0.1 with 60 observations; a Cholesky solve loses that
# many times eps of float32 (Higham 2002, theorem 10.4), times a modest factor.
TOLERANCE = 4 * (60 + 0.1) / 0.1 * 2.0**-24


def main(folder: Path) -> None:
    """Runs every example: values and gradient."""
    model, record = deserialize((folder / "model.jaxtf").read_bytes()), json.loads((folder / "record.json").read_text())
    examples = np.load(folder / "examples.npz")
    print(f"made with JAX {record['made with']['jax']} on {record['written']}, run with JAX {jax.__version__}")
    gradient = jax.jit(jax.grad(lambda *arguments: model.call(*arguments)[1]))
    for case in sorted({name.partition("/")[0] for name in examples.files}):
        x, y, queries = (examples[f"{case}/{name}"] for name in ("x", "y", "queries"))
        mean, likelihood = jax.jit(model.call)(x, y, queries)
        found = {"mean": mean, "likelihood": likelihood, "gradient": gradient(x, y, queries)}
        differences = {name: float(np.max(np.abs(found[name] - examples[f"{case}/{name}"]))) for name in found}
        sizes = f"{len(x)} observations, {len(queries)} queries"
        print(f"{sizes}: " + ", ".join(f"{name} within {value:.0e}" for name, value in differences.items()))
        largest = max(1.0, *(float(np.max(np.abs(examples[f"{case}/{name}"]))) for name in found))
        if not max(differences.values()) <= TOLERANCE * largest:
            sys.exit(f"{sizes}: differs from the answers of {record['written']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
