"""What reading an artifact needs: every frozen artifact is read, described and written again; JAX is never imported.

What needs JAX says so where there is none.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import jaxtf.serialization
from jaxtf.serialization import JaxRequiredError, describe, deserialize, interop

ARTIFACTS = sorted((Path(__file__).parent / "artifacts").glob("*/*.bin"))


def test_every_frozen_artifact_is_read_and_described():
    assert len(ARTIFACTS) > 1000
    for path in ARTIFACTS:
        blob = path.read_bytes()
        exported, description = deserialize(blob), describe(blob)
        assert tuple(map(str, exported.in_avals)) == tuple(
            f"{argument.dtype}[{','.join(map(str, argument.shape))}]" for argument in description.functions[0].arguments
        ), path
        assert exported.platforms == description.functions[0].platforms, path


def test_every_frozen_artifact_can_be_written_in_todays_format():
    for path in ARTIFACTS[::7]:
        exported = deserialize(path.read_bytes())
        order, function = 0, exported
        while function.has_vjp():
            order, function = order + 1, function.vjp()
        assert deserialize(exported.serialize(order)).has_same_function(exported), path


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


NEED_JAX = {
    "export": lambda exported: jaxtf.serialization.export(abs),
    "export_for_graph": lambda exported: interop.export_for_graph(abs),
    "default_export_platform": lambda exported: jaxtf.serialization.default_export_platform(),
    "Exported.call": lambda exported: exported.call(1.0),
    "Exported.flat_call": lambda exported: exported.flat_call,
    "Exported.in_tree": lambda exported: exported.in_tree,
    "Exported.out_tree": lambda exported: exported.out_tree,
    "Exported.in_shardings_jax": lambda exported: exported.in_shardings_jax(),
    "Exported.out_shardings_jax": lambda exported: exported.out_shardings_jax(),
    "Exported.mlir_module": lambda exported: exported.mlir_module(),
    "Exported.with_stablehlo_version": lambda exported: exported.with_stablehlo_version("1.13.7"),
    "Exported.with_tensorflow_version": lambda exported: exported.with_tensorflow_version("2.21"),
    "Exported.cost": lambda exported: exported.cost(),
    "export_model": lambda exported: jaxtf.serialization.export_model(abs),
    "negotiate": lambda exported: jaxtf.serialization.negotiate(jaxtf.serialization.tensorflow_reads("2.21")),
}


@pytest.mark.parametrize("wanted", NEED_JAX)
def test_what_needs_jax_says_so(wanted, monkeypatch):
    exported = deserialize(ARTIFACTS[0].read_bytes())
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(JaxRequiredError) as error:
        NEED_JAX[wanted](exported)
    assert isinstance(error.value, ImportError)
    assert str(error.value) == (
        f"{wanted} needs JAX, which cannot be imported here: import of jax halted; None in sys.modules\n"
        '  remedy: pip install "jaxtf-serialization[jax]"'
    )
