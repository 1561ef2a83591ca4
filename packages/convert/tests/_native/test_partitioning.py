"""Functions with shardings, on meshes of 2 and 8 devices: values are JAX's on that mesh, annotations are JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tensorflow.compiler.xla import xla_data_pb2

from jaxtf.convert import ConversionStateError, _tf, convert, convert_exported, save_model
from jaxtf.serialization import deserialize, export

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)
W = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)

MESHES = {
    "2": ((2,), ("x",)),
    "8": ((8,), ("x",)),
    "2x4": ((2, 4), ("x", "y")),
    "2x2x2": ((2, 2, 2), ("z", "x", "y")),
}


# A sum of n products of numbers of at most 1 has an error of n eps at most; the longest sum here has 64.
EPSILON = float(np.finfo(np.float32).eps)


def assert_close(found, expected, terms=64):
    np.testing.assert_allclose(found, expected, rtol=0, atol=terms * EPSILON)


def make_mesh(name):
    sizes, names = MESHES[name]
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), names)


def layer(x, w):
    return jnp.tanh(x @ w), x.sum()


def sharded(mesh, x=("x",), w=(), y=("x",)):
    """`layer` with shardings of its arguments and of its first result; its second one is whole on every device."""
    x, w, y, total = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (x, w, y, ()))
    return jax.jit(layer, in_shardings=(x, w), out_shardings=(y, total))


def annotations(graph):
    """The shardings of the XlaSharding ops of a graph, in order, in both forms."""
    ops = [op for op in graph.get_operations() if op.type == "XlaSharding"]
    names = [("_XlaSharding", "_XlaShardingV2")[: 1 + has_arrangement(op)] for op in ops]
    return [
        tuple(xla_data_pb2.OpSharding.FromString(op.get_attr(name)) for name in some)
        for op, some in zip(ops, names, strict=True)
    ]


def has_arrangement(op):
    return "_XlaShardingV2" in op.node_def.attr


def devices_of(proto):
    """The numbers of the devices that hold the tiles of an OpSharding, in one array."""
    if proto.type == xla_data_pb2.OpSharding.REPLICATED:
        return None
    numbers = np.array(proto.tile_assignment_devices)
    if not numbers.size:
        count = int(np.prod(proto.iota_reshape_dims))
        numbers = np.arange(count).reshape(proto.iota_reshape_dims)
        numbers = numbers.transpose(proto.iota_transpose_perm) if len(proto.iota_transpose_perm) else numbers
    return numbers.reshape(proto.tile_assignment_dimensions).tolist(), proto.replicate_on_last_tile_dim


def jax_devices_of(sharding, rank):
    """The same for a sharding of JAX, by JAX and XLA."""
    proto = xla_data_pb2.OpSharding.FromString(sharding._to_xla_hlo_sharding(rank).to_proto().SerializeToString())
    return devices_of(proto)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "compiled"])
@pytest.mark.parametrize("name", MESHES)
def test_a_sharded_function_gives_in_tensorflow_what_it_gives_on_its_mesh(name, compiled):
    fun = sharded(make_mesh(name))
    results = tf.function(convert(fun), autograph=False, jit_compile=compiled)(X, W)
    for result, expected in zip(results, fun(X, W), strict=True):
        assert_close(result, expected)


SPECS = [
    ("2", ("x",), ()),
    ("8", (None,), (None, "x")),
    ("2x4", ("x", "y"), ("y",)),
    ("2x4", (("x", "y"),), (None, ("y", "x"))),
    ("2x4", (("y", "x"),), ()),
    ("2x2x2", ("y",), (("x", "z"), "y")),
]


# Calling convention 10 has a flag for Shardy.
PARTITIONERS = {"gspmd": False} | ({"shardy": True} if _tf.newest_calling_convention_version() >= 10 else {})


@pytest.mark.parametrize("shardy", PARTITIONERS.values(), ids=PARTITIONERS)
@pytest.mark.parametrize(("name", "x", "w"), SPECS)
def test_arguments_and_results_carry_the_shardings_of_jax(name, x, w, shardy):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        mesh = make_mesh(name)
        converted = convert(sharded(mesh, x, w, x))
        graph = tf.function(converted, autograph=False).get_concrete_function(X, W).graph
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
    specs = [(x, 2), (w, 2), (x, 2), ((), 0)]
    expected = [jax_devices_of(NamedSharding(mesh, PartitionSpec(*spec)), rank) for spec, rank in specs]
    found = annotations(graph)
    assert [devices_of(protos[0]) for protos in found] == expected
    for protos in found:
        assert all(devices_of(proto) == devices_of(protos[0]) for proto in protos)
        assert len(protos) == 1 + (shardy and devices_of(protos[0]) is not None)


def test_eager_mode_refuses_arrays_in_parts():
    converted = convert(sharded(make_mesh("2x4"), ("x", None), (None, "y"), ("x",)))
    with pytest.raises(ConversionStateError) as refused:
        converted(X, W)
    assert str(refused.value) == (
        "A jit function with sharded arguments or results must be used under a `tf.function` context\n"
        "  found:  a call in eager mode, with arrays split as (x, -) over x=2, y=4, (-, y) over x=2, y=4\n"
        "  remedy: call it in a tf.function, or convert the function without its shardings"
    )


def test_eager_mode_takes_arrays_that_are_whole_on_every_device():
    fun = sharded(make_mesh("2"), (), (), ())
    for result, expected in zip(convert(fun)(X, W), fun(X, W), strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("run", [lambda f: f, lambda f: tf.function(f, autograph=False)], ids=["eager", "graph"])
def test_a_nested_jit_with_shardings_runs_without_one_at_the_top(run):
    fun = sharded(make_mesh("8"))

    def nested(x, w):
        return fun(x, w)[0] * 2

    assert_close(run(convert(nested))(X, W), nested(X, W))


def test_constraints_inside_a_sharded_function_change_no_value():
    mesh = make_mesh("2x4")

    def constrained(x, w):
        hidden = jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, PartitionSpec("y", "x")))
        return jnp.tanh(hidden).sum(axis=0)

    fun = jax.jit(constrained, in_shardings=(NamedSharding(mesh, PartitionSpec("x")), None))
    assert_close(tf.function(convert(fun))(X, W), fun(X, W))


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_a_sharded_function(order):
    fun = sharded(make_mesh("2"))

    def loss(x, w):
        return sum(part.sum() for part in fun(x, w))

    def tf_loss(x, w):
        return tf.add_n([tf.reduce_sum(part) for part in converted(x, w)])

    converted = convert(fun)

    @tf.function(autograph=False)
    def gradient(x, w):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as tape:
                tape.watch(w)
                value = tf_loss(x, w)
            first = tape.gradient(value, w)
            total = tf.reduce_sum(first**2)
        return first if order == 1 else outer.gradient(total, w)

    def jax_gradient(x, w):
        first = jax.grad(loss, argnums=1)
        return first(x, w) if order == 1 else jax.grad(lambda w: (first(x, w) ** 2).sum())(w)

    assert_close(gradient(X, tf.constant(W)), jax_gradient(X, W), terms=16 * 64)


def test_a_saved_model_of_a_sharded_function_keeps_the_annotations(tmp_path):
    fun = sharded(make_mesh("2"))
    save_model(
        lambda params, x: fun(x, params)[0],
        W,
        tmp_path / "by_us",
        input_signatures=[tf.TensorSpec([16, 4], tf.float32)],
    )
    module = tf.Module()
    module.f = tf.function(
        convert(fun), autograph=False, input_signature=[tf.TensorSpec([16, 4]), tf.TensorSpec([4, 8])]
    )
    tf.saved_model.save(module, str(tmp_path / "by_hand"))
    loaded = tf.saved_model.load(str(tmp_path / "by_hand"))
    assert_close(loaded.f(X, W)[0], fun(X, W)[0])
    [graph] = [function.graph for function in loaded.f.concrete_functions]
    assert len([op for op in graph.get_operations() if op.type == "XlaSharding"]) == 4
    served = tf.saved_model.load(str(tmp_path / "by_us")).signatures["serving_default"]
    [result] = served(**{next(iter(served.structured_input_signature[1])): tf.constant(X)}).values()
    assert_close(result, fun(X, W)[0])


def test_an_artifact_of_a_sharded_function_runs_in_a_graph():
    fun = sharded(make_mesh("2"))
    version = _tf.newest_calling_convention_version()
    exported = deserialize(export(fun, calling_convention_version=version)(X, W).serialize())
    result = tf.function(convert_exported(exported))(X, W)[0]
    assert_close(result, fun(X, W)[0])
    with pytest.raises(ConversionStateError, match=r"must be used under a `tf.function` context"):
        convert_exported(exported)(X, W)


def test_a_batch_of_any_size_can_be_split():
    fun = sharded(make_mesh("2"))
    converted = convert(fun, polymorphic_shapes=["(2*b, _)", "_, _"])
    graph = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([4, 8])])
    for size in (2, 6):
        assert_close(graph(X[:size], W)[0], fun(X[:size], W)[0])


def test_a_tensorflow_that_knows_no_shardy_gets_the_partitioner_before_it():
    mesh = make_mesh("2x4")
    converted = convert(sharded(mesh, ("x", None), (None, "y"), ("x",)), tensorflow_version="2.19")
    graph = tf.function(converted, autograph=False).get_concrete_function(X, W).graph
    [op] = [operation for operation in graph.get_operations() if operation.type == "XlaCallModule"]
    assert op.get_attr("version") == 9
    assert not op.node_def.attr["use_shardy_partitioner"].b
    assert b"sdy" not in op.get_attr("module")
    assert all(len(protos) == 1 for protos in annotations(graph))
