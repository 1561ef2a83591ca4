"""Functions over a mesh of one device: their modules have no collectives, and run wherever a module runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import deserialize, export, lift
from jaxtf.serialization._bytecode.for_xla import computes_by_devices
from jaxtf.serialization._jaxlib import read_module
from jaxtf.serialization._program.one_device import rewrite_for_one_device
from jaxtf.shapepoly import symbolic_shape

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
# A function of an array on a mesh of the one axis "a", and what it is on one device.
CASES = {
    "psum": (lambda x: lax.psum(x, "a"), X),
    "pmean of two": (lambda x: lax.pmean((x, 2 * x), "a")[1], 2 * X),
    "pmax": (lambda x: lax.pmax(x, "a"), X),
    "all_gather": (lambda x: lax.all_gather(x, "a"), X[None]),
    "all_gather, tiled": (lambda x: lax.all_gather(x, "a", axis=1, tiled=True), X),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "a", tiled=True), X),
    "all_to_all": (lambda x: lax.all_to_all(x, "a", 0, 1, tiled=True), X),
    "ppermute": (lambda x: lax.ppermute(x, "a", [(0, 0)]), X),
    "ppermute to nobody": (lambda x: lax.ppermute(x, "a", []), 0 * X),
    "of booleans": (lambda x: lax.ppermute(x > 2, "a", []), X < 0),
    "of integers": (lambda x: lax.ppermute(x.astype(int), "a", []), 0 * X),
    "of complex numbers": (lambda x: lax.ppermute(x * 1j, "a", []), 0j * X),
    "axis_index": (lambda x: x * (2 + lax.axis_index("a")), 2 * X),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda i, y: lax.psum(y, "a") + i, x), X + 3),
    "gradient": (jax.grad(lambda x: (lax.all_gather(x, "a") ** 2).sum()), 2 * X),
}


def on_one_device(function):
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False))


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"])
def partitioner(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.usefixtures("partitioner")
@pytest.mark.parametrize("name", CASES)
def test_there_is_no_collective_left(name):
    function, expected = CASES[name]
    function = on_one_device(function)
    exported = export(function)(X)
    assert computes_by_devices(exported.mlir_module_serialized) == ()
    theirs = deserialize(bytes(jax.export.export(function)(X).serialize()))
    for each in (exported, theirs, deserialize(exported.serialize())):
        assert each.nr_devices == 1
        for run in (each.call, jax.jit(each.call), lift(each)):
            np.testing.assert_array_equal(run(X), expected)
    np.testing.assert_array_equal(lift(function.lower(X).as_text())(X), expected)


@pytest.mark.usefixtures("partitioner")
@pytest.mark.parametrize("name", ["psum", "all_gather, tiled", "ppermute", "axis_index"])
def test_sizes_may_be_symbolic(name):
    function, expected = CASES[name]
    exported = export(on_one_device(function))(jax.ShapeDtypeStruct(symbolic_shape("n, m"), X.dtype))
    assert computes_by_devices(exported.mlir_module_serialized) == ()
    np.testing.assert_array_equal(exported.call(X), expected)


def test_it_runs_over_several_devices_each_of_which_computes_all():
    mesh = Mesh(np.array(jax.devices()[:4]), ("b",))
    exported = export(on_one_device(CASES["axis_index"][0]))(X)
    for spec in (P(), P(None, "b")):
        x = jax.device_put(X, NamedSharding(mesh, spec))
        np.testing.assert_array_equal(jax.jit(exported.call)(x), 2 * X)


MODULE = """
module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32}} {{
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<ui32>) {{
    %0 = "stablehlo.collective_permute"(%x) <{{source_target_pairs = dense<{pairs}> : tensor<1x2xi64>}}>
      : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.partition_id : tensor<ui32>
    return %0, %1 : tensor<4xf32>, tensor<ui32>
  }}
}}"""


@pytest.mark.parametrize(
    ("partitions", "replicas", "pairs", "left"),
    [
        (1, 1, "0", ()),
        (1, 1, "[[0, 1]]", ("stablehlo.collective_permute",)),
        (2, 1, "[[0, 1]]", ("stablehlo.collective_permute", "stablehlo.partition_id")),
        (1, 2, "[[0, 1]]", ("stablehlo.collective_permute", "stablehlo.partition_id")),
    ],
)
def test_what_is_for_other_devices_is_left_as_it_is(partitions, replicas, pairs, left):
    module = read_module(MODULE.format(partitions=partitions, replicas=replicas, pairs=pairs))
    rewrite_for_one_device(module)
    assert (
        tuple(name for name in ("stablehlo.collective_permute", "stablehlo.partition_id") if name in str(module))
        == left
    )


def test_a_module_that_does_not_say_for_how_many_it_is_is_left_as_it_is():
    text = MODULE.format(partitions=1, replicas=1, pairs="0").replace("mhlo.num_replicas = 1 : i32", "other.name")
    module = read_module(text.replace("other.name", "mhlo.other = 1 : i32"))
    rewrite_for_one_device(module)
    assert "collective_permute" in str(module)


def test_a_lifted_module_names_what_it_cannot_run():
    with pytest.raises(NotImplementedError, match="collective_permute"):
        lift(MODULE.format(partitions=2, replicas=1, pairs="[[0, 1]]"))(jnp.ones(4))
