"""What operations take, and which of them XLA does not compute as they say, read from bytecode, against MLIR."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.mlir import ir

from jaxtf.serialization import ArtifactError
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._bytecode.for_xla import computes_by_devices, misread_by_xla
from jaxtf.serialization._bytecode.operations import Operations
from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._program.for_xla import rewrite_for_xla
from jaxtf.serialization._program.portable_artifact import (
    current_stablehlo_version,
    deserialize_module,
    serialize_module,
)
from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

CORPUS = Path(__file__).parent.parent / "artifacts"
RELEASES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir() and any(path.glob("*.bin")))


def modules(path):
    """The modules of an artifact: of the function, and of each order of its VJP."""
    table = read_payload(split_trailer(path.read_bytes()).payload)
    while table is not None:
        yield bytes(table.mlir_module_serialized)
        table = table.vjp


def of_mlir(block):
    """Shapes of the operands that are arrays, of each operation in a block, in order, but for those of Shardy."""

    def shape(type_):
        sizes = ir.RankedTensorType(type_).shape
        return tuple(size if size >= 0 else None for size in sizes)

    for op in block.operations:
        if not op.operation.name.startswith("sdy."):
            yield [shape(operand.type) for operand in op.operands if isinstance(operand.type, ir.RankedTensorType)]
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from of_mlir(inner)


def of_bytecode(module):
    operations, found = Operations(module), []

    def see(operation, reader, types):
        if operation.name[0] != "vhlo":  # of Shardy, and conversions of its types
            return
        shapes = []
        for operand in operation.operands:
            try:
                sizes = operations.attributes.sizes(types[operand])
            except ArtifactError:  # a token, a tuple
                continue
            shapes.append(tuple(size if size >= 0 else None for size in sizes))
        found.append(shapes)

    operations.every(see)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_operands_are_those_that_mlir_reads(release):
    count = 0
    for path in sorted((CORPUS / release).glob("*.bin"))[::3]:
        for module in modules(path):
            written = parse_stablehlo_version(stablehlo_facts(module).stablehlo_version)
            if written > parse_stablehlo_version(current_stablehlo_version()):
                pytest.skip("newer than this jaxlib reads")
            found = of_bytecode(module)
            assert found == list(of_mlir(deserialize_module(module).body)), path
            count += len(found)
    assert count > 1000


NUMBERS = lax.ScatterDimensionNumbers((1,), (), ())
IN_BATCHES = lax.ScatterDimensionNumbers((), (), (), (0,), (0,))
NO_INDEX = np.zeros((3, 0), np.int32)
X, UPDATES = jnp.ones(3), jnp.ones((3, 1))
KERNELS = jnp.ones((1, 2, 9)), jnp.ones((3, 2, 3))


def convolution(padding, holes=1):
    def convolve(x, k):
        return lax.conv_general_dilated(x, k, (1,), [padding], lhs_dilation=(holes,))

    return convolve


def several(x, i, u):
    return lax.scatter_add(x, i, u, NUMBERS)


SCATTER, CONVOLUTION = ("stablehlo.scatter",), ("stablehlo.convolution",)
# A function, arguments, and what is misread in it.
CASES = {
    "updates": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, NUMBERS), (X, UPDATES), SCATTER),
    "in a loop": (
        lambda x, u: lax.fori_loop(0, 3, lambda i, y: lax.scatter_add(y, NO_INDEX + i, u, NUMBERS), x),
        (X, UPDATES),
        SCATTER,
    ),
    "in a branch": (
        lambda x, u: lax.cond(x[0] > 0, lambda: lax.scatter_max(x, NO_INDEX, u, NUMBERS), lambda: x),
        (X, UPDATES),
        SCATTER,
    ),
    "in a function": (jax.jit(lambda x, u: jax.jit(several)(x * 2, NO_INDEX, u)), (X, UPDATES), SCATTER),
    "one update": (lambda x, u: lax.scatter_add(x, NO_INDEX[:1], u, NUMBERS), (X, UPDATES[:1]), ()),
    "all": (lambda x, u: x.at[:].add(u), (X, X), ()),
    "the only element": (lambda x, u: x.at[()].set(u), (X[0], X[1]), ()),
    "indices": (lambda x, u: x.at[np.array([0, 0, 2])].add(u), (X, X), ()),
    "in batches": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, IN_BATCHES), (X, X), ()),
    **{
        f"padding {low}, {high}": (convolution((low, high)), KERNELS, CONVOLUTION * (low < 0 < high))
        for low in (-2, 0, 1)
        for high in (-1, 0, 3)
    },
    "holes": (convolution((-1, 3), 2), KERNELS, ()),
    "gather": (lambda x, u: x[np.array([0, 1])] + u[:2, 0], (X, UPDATES), ()),
}


@pytest.mark.parametrize("version", ["0.9.0", "1.8.0", None])
@pytest.mark.parametrize("name", CASES)
def test_what_xla_misreads_is_found(name, version):
    function, arguments, expected = CASES[name]
    module = deserialize_module(jax.export.export(jax.jit(function))(*arguments).mlir_module_serialized)
    if version == "0.9.0" and name == "in batches":
        pytest.skip("StableHLO had no dimensions of batches")
    version = version or current_stablehlo_version()
    assert misread_by_xla(serialize_module(module, version)) == expected
    rewrite_for_xla(module)
    assert misread_by_xla(serialize_module(module, version)) == ()


def test_an_unknown_number_of_updates_is_taken_for_several():
    k, m = jax.export.symbolic_shape("k, m", constraints=["m <= 3"])
    specs = X, jax.ShapeDtypeStruct((k, 0), jnp.int32), jax.ShapeDtypeStruct((k, m), jnp.float32)
    written = jax.export.export(jax.jit(several))(*specs)
    assert misread_by_xla(bytes(written.mlir_module_serialized)) == SCATTER


def test_what_computes_by_devices_is_found():
    def of(function):
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("a",))
        mapped = jax.shard_map(function, mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=False)
        return computes_by_devices(bytes(jax.export.export(jax.jit(mapped))(X).mlir_module_serialized))

    assert computes_by_devices(bytes(jax.export.export(jax.jit(jnp.sin))(X).mlir_module_serialized)) == ()
    assert of(jnp.sin) == ("sdy.manual_computation",)
    assert set(of(lambda x: lax.psum(x, "a"))) == {"sdy.manual_computation", "stablehlo.all_reduce"}
    sharded = next(modules(CORPUS / "0.12.0.1" / "sharded_4_gspmd.bin"))
    assert computes_by_devices(sharded) == ()
