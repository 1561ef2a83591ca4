"""Nodes that are made with little Python are those that TensorFlow's functions make, wherever they are made."""

import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert._graph import nodes
from jaxtf.convert._tf import NameScope, new_node

ADD = nodes.elementwise("AddV2", tf.add)
SUM = nodes.reduction("Sum", tf.reduce_sum)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def nodes_of(function, *specs, around=lambda call: call()):
    """The definitions of the nodes of a function, but for its own arguments and results."""
    concrete = tf.function(lambda *x: around(lambda: function(*x)), autograph=False).get_concrete_function(*specs)
    return [node for node in concrete.graph.as_graph_def().node if node.op not in ("Placeholder", "Identity")]


def on_a_device_in_a_scope(call):
    with tf.device("/CPU:0"), tf.name_scope("outer"):
        return call()


def after_an_assertion(call):
    with tf.control_dependencies([tf.debugging.Assert(True, ["never"])]):
        return call()


def in_an_xla_scope(call):
    with tf.xla.experimental.jit_scope():
        return call()


AROUND = [lambda call: call(), on_a_device_in_a_scope, after_an_assertion, in_an_xla_scope]

MADE = {
    "add": (ADD, tf.add),
    "matmul": (
        lambda a, b: nodes.matmul(a, b, False, True),
        lambda a, b: tf.matmul(a, b, transpose_b=True),
    ),
    "sum": (lambda a, b: SUM(a, tf.constant([1])), lambda a, b: tf.reduce_sum(a, tf.constant([1]))),
    "cast": (lambda a, b: nodes.cast(a, tf.int32), lambda a, b: tf.cast(a, tf.int32)),
    "select": (lambda a, b: nodes.select(a > b, a, b), lambda a, b: tf.where(a > b, a, b)),
    "reshape": (lambda a, b: nodes.reshape(a, tf.constant([6])), lambda a, b: tf.reshape(a, tf.constant([6]))),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", MADE)
def test_a_node_is_the_one_that_the_function_of_tensorflow_makes(name, around):
    made, expected = (nodes_of(f, *[tf.TensorSpec([2, 3])] * 2, around=around) for f in MADE[name])

    def described(definitions):
        return [
            (node.op, node.device, [i for i in node.input if i[0] == "^"], *attributes(node)) for node in definitions
        ]

    def attributes(node):
        return [(name, value.SerializeToString()) for name, value in sorted(node.attr.items())]

    assert described(made) == described(expected)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(-0.0),
        np.zeros((0, 3), np.int64),
        np.array([[1, 2], [3, 4]], np.int32),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.full((5, 7), np.nan),
        *(np.array([1, -2, 3], getattr(tf, name).as_numpy_dtype) for name in ("bfloat16", "float16")),
        np.array([1, 2], tf.dtypes.experimental.float8_e5m2.as_numpy_dtype),
        np.array([1, -2], tf.dtypes.experimental.int4.as_numpy_dtype),
    ],
    ids=lambda value: f"{value.dtype.name}{list(value.shape)}",
)
def test_a_constant_is_the_node_of_tf_constant(value):
    made, expected = nodes_of(lambda: nodes.constant(value)), nodes_of(lambda: tf.constant(value))
    assert [node.SerializeToString(deterministic=True) for node in made] == [
        node.SerializeToString(deterministic=True) for node in expected
    ]
    assert nodes.constant(value).numpy().tobytes() == value.tobytes()


def test_tensors_from_around_a_function_are_captured():
    outer = tf.constant(X)

    @tf.function(autograph=False)
    def run(x):
        inner = tf.function(lambda y: ADD(ADD(x, y), outer), autograph=False)
        return inner(x * 2)

    np.testing.assert_array_equal(run(tf.constant(X)), 4 * X)


def test_loops_branches_and_gradients_of_them_hold_nodes():
    @tf.function(autograph=False)
    def run(x):
        (looped,) = tf.while_loop(lambda y: tf.reduce_sum(y) < 100, lambda y: (ADD(y, x),), [x])
        return tf.cond(tf.reduce_sum(x) > 0, lambda: ADD(looped, x), lambda: looped)

    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        result = run(x)
    np.testing.assert_array_equal(result, 8 * X)
    np.testing.assert_array_equal(tape.gradient(result, x), np.full_like(X, 8))


def test_graphs_of_tensorflow_1_hold_nodes():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant(X)
        with tf.control_dependencies([tf.constant(1)]), NameScope("sum/of"):
            total = ADD(x, nodes.constant(X))
        assert total.op.name == "sum/of/AddV2"
        np.testing.assert_array_equal(session.run(total), 2 * X)


def test_name_scopes_are_those_of_tensorflow():
    def names(scope):
        def run():
            for _ in range(2):
                with scope("Layer/mul"):
                    tf.constant(1)
                    with scope("inner"):
                        tf.constant(2)

        return [node.name for node in nodes_of(run)]

    assert (
        names(NameScope)
        == names(tf.name_scope)
        == [
            "Layer/mul/Const",
            "Layer/mul/inner/Const",
            "Layer/mul_1/Const",
            "Layer/mul_1/inner/Const",
        ]
    )


def test_a_scope_ends_also_where_an_error_is_raised():
    with tf.Graph().as_default() as graph:
        with pytest.raises(KeyError), NameScope("broken"):
            raise KeyError
        assert graph.get_name_scope() == ""


def test_what_an_operation_is_not_defined_for_is_a_value_error():
    def run(x):
        return new_node("MatMul", (x, x), {"T": nodes._attribute(tf.float32)})

    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        nodes_of(run, tf.TensorSpec([2, 3]))


def test_an_error_says_where_the_node_was_made():
    graph = tf.function(lambda x: ADD(x, x), autograph=False).get_concrete_function(tf.TensorSpec([])).graph
    (added,) = (operation for operation in graph.get_operations() if operation.type == "AddV2")
    assert any(frame.filename == __file__ for frame in added.traceback)
