"""What reading an artifact needs: every frozen artifact is read, described and written again; JAX is never imported."""

import subprocess
import sys
from pathlib import Path

from jaxtf.serialization import describe, deserialize

ARTIFACTS = sorted((Path(__file__).parent / "artifacts").glob("*/*.bin"))


def test_every_frozen_artifact_is_read_and_described():
    assert len(ARTIFACTS) > 1000
    for path in ARTIFACTS:
        blob = path.read_bytes()
        exported, description = deserialize(blob), describe(blob)
        assert tuple(map(str, exported.in_avals)) == tuple(
            f"{argument.dtype}[{','.join(argument.shape)}]" for argument in description.functions[0].arguments
        ), path
        assert exported.platforms == description.functions[0].platforms, path


def test_every_frozen_artifact_can_be_written_in_todays_format():
    for path in ARTIFACTS[::7]:
        exported = deserialize(path.read_bytes())
        order, function = 0, exported
        while function.has_vjp():
            order, function = order + 1, function.vjp()
        assert deserialize(exported.serialize(order)) == exported, path


def test_sizes_are_solved():
    exported = deserialize((Path(__file__).parent / "artifacts" / "0.4.30" / "symbolic_batch.bin").read_bytes())
    assert exported.check_shapes((3, 4)).variables == {"b": 3, "d": 2}


PROGRAM = """
import sys
from pathlib import Path
from jaxtf.serialization import describe, deserialize
for path in sys.argv[1:]:
    blob = Path(path).read_bytes()
    describe(blob)
    deserialize(deserialize(blob).serialize())
print(sorted({"jax", "jaxlib", "tensorflow"} & {name.split(".")[0] for name in sys.modules}))
"""


def test_reading_and_writing_import_no_jax():
    arguments = [sys.executable, "-c", PROGRAM, *map(str, ARTIFACTS[::50])]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
