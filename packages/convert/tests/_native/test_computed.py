"""Modules that TensorFlow would not compute as they say: for several devices, and of earlier releases."""

import dataclasses

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.extend.mlir.dialects import stablehlo
from jax.sharding import Mesh, PartitionSpec

from jaxtf.convert import GraphModeUnsupported, NativeModeUnsupported, convert, convert_exported
from jaxtf.serialization import Exported, deserialize, export
from jaxtf.serialization._jaxlib import read_module

X = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
RUNS = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def mapped(function, devices, spec):
    mesh = Mesh(np.array(jax.devices()[:devices]), ("a",))
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


COLLECTIVES = {
    "pmean": lambda x: lax.pmean(x, "a"),
    "all_gather": lambda x: lax.all_gather(x, "a", tiled=True)[: x.shape[0]],
    "ppermute": lambda x: lax.ppermute(x, "a", [(0, 0)]),
    "psum_scatter": lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
    "axis_index": lambda x: x * (1 + lax.axis_index("a")),
    "none": lambda x: x * 2,
}


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"])
def partitioner(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.usefixtures("partitioner")
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_over_one_device_collectives_give_what_they_take(name, native, run):
    function = mapped(COLLECTIVES[name], 1, PartitionSpec("a"))
    expected = function(X)
    np.testing.assert_array_equal(run(convert(function, native_serialization=native))(X), expected)
    theirs = deserialize(bytes(jax.export.export(function)(X).serialize()))
    np.testing.assert_array_equal(run(convert_exported(theirs, native_serialization=native))(X), expected)


@pytest.mark.usefixtures("partitioner")
@pytest.mark.parametrize("spec", [PartitionSpec("a"), PartitionSpec()], ids=["split", "whole"])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_over_several_devices_they_are_refused(name, spec):
    function = mapped(COLLECTIVES[name], 2, spec)
    with pytest.raises(NativeModeUnsupported, match=r"computes by the devices of a mesh, 2 of them(.|\n)*found: .*\w"):
        convert(function)(X)
    with pytest.raises(NativeModeUnsupported, match="remedy: convert the function for a mesh of one device"):
        tf.function(convert(function, tensorflow_version="2.19"), autograph=False)(X)
    with pytest.raises(GraphModeUnsupported):
        convert(function, native_serialization=False)(X)
    with pytest.raises(NativeModeUnsupported):
        convert_exported(export(function)(X))


def test_a_module_for_tpu_alone_is_left_to_its_partitioner():
    function = mapped(COLLECTIVES["pmean"], 2, PartitionSpec("a"))
    converted = convert(function, native_serialization_platforms=["tpu"])
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec(X.shape, X.dtype)).graph
    assert "XlaCallModule" in [operation.type for operation in graph.get_operations()]


def test_what_cannot_be_written_otherwise_is_refused_with_what_to_do():
    nobody = mapped(lambda x: lax.ppermute(x, "a", []), 1, PartitionSpec("a"))  # zeros, of sizes that are not known
    with pytest.raises(NativeModeUnsupported, match="collective_permute\n  remedy: compute it differently"):
        convert(nobody, polymorphic_shapes=["b, _"])(X)
    np.testing.assert_array_equal(convert(nobody)(X), 0 * X)


def test_constraints_of_symbolic_sizes_change_no_value():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    mesh = Mesh(np.array(jax.devices()[:2]), ("a",))
    placed = jax.sharding.NamedSharding(mesh, PartitionSpec("a"))
    try:
        converted = convert(
            lambda x: lax.with_sharding_constraint(x * 2, placed) + 1,
            native_serialization=False,
            polymorphic_shapes=["2*b, _"],
        )
        np.testing.assert_array_equal(converted(X), X * 2 + 1)
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


# --- of earlier releases ---

NUMBERS = lax.ScatterDimensionNumbers((1,), (), ())
UPDATES = np.array([[10, 1], [20, 2], [40, 4]], np.float32)
NO_INDEX = np.zeros((3, 0), np.int32)


def combined(x, u):
    return lax.scatter_add(x, NO_INDEX, u, NUMBERS)


def cropped(x, k):
    return lax.conv_general_dilated(x, k, (1,), [(-1, 1)])


SIGNAL, KERNEL = np.arange(7, dtype=np.float32).reshape(1, 1, 7), np.array([[[1, 10, 100]]], np.float32)
MISREAD = {
    "scatter": (combined, (np.array([1, 2, 3], np.float32), UPDATES), [71, 9, 3]),
    "convolution": (cropped, (SIGNAL, KERNEL), [[[321, 432, 543, 654, 65]]]),
}


def of_an_earlier_release(function, arguments):
    """An artifact whose module TensorFlow reads as it is."""
    written = jax.export.export(jax.jit(function))(*arguments)
    module = stablehlo.serialize_portable_artifact(read_module(bytes(written.mlir_module_serialized)), "1.8.0")
    earlier = dataclasses.replace(written, mlir_module_serialized=module, calling_convention_version=9)
    return deserialize(bytes(earlier.serialize()))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
@pytest.mark.parametrize("name", MISREAD)
def test_an_artifact_of_an_earlier_release_is_computed_as_it_says(name, native, run):
    function, arguments, expected = MISREAD[name]
    artifact = of_an_earlier_release(function, arguments)
    assert artifact.stablehlo_version == "1.8.0"
    converted = convert_exported(artifact, native_serialization=native)
    np.testing.assert_array_equal(run(converted)(*arguments), expected)


@pytest.mark.parametrize("name", MISREAD)
def test_without_jax_it_is_refused(name, monkeypatch):
    function, arguments, _ = MISREAD[name]
    artifact = of_an_earlier_release(function, arguments)

    def without_jax(*_):
        raise ImportError("no JAX")

    monkeypatch.setattr(Exported, "with_stablehlo_version", without_jax)
    with pytest.raises(NativeModeUnsupported, match=rf"found:  stablehlo.{name}\n  remedy: .*jaxtf-artifact upgrade"):
        convert_exported(artifact)
    convert_exported(of_an_earlier_release(lambda x, u: x.at[:].add(u), (X, X)))
