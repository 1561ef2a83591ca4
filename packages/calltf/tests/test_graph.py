"""What a TensorFlow graph does besides computing is found at any depth."""

import pytest
import tensorflow as tf

from jaxtf.calltf._graph import stateful_ops, variable_writes

variable = tf.Variable([1.0, 2.0])


@tf.function
def draws(x):
    return x + tf.random.normal([])


@tf.function
def writes(x):
    variable.assign_add([x, x])
    return x


@pytest.mark.parametrize(
    ("function", "stateful"),
    [
        (tf.sin, set()),
        (lambda x: x + variable, set()),
        (lambda x: x + tf.gather(variable, [0]), set()),
        (lambda x: tf.random.uniform([]), {"RandomUniform"}),
        (draws, {"RandomStandardNormal"}),
        (lambda x: tf.cond(x > 0, lambda: draws(x), lambda: x), {"RandomStandardNormal"}),
        (lambda x: tf.switch_case(tf.cast(x, tf.int32), [lambda: draws(x), lambda: x]), {"RandomStandardNormal"}),
        (lambda x: tf.while_loop(lambda y: y < 9, lambda y: (draws(y),), (x,)), {"RandomStandardNormal"}),
        (lambda x: tf.map_fn(draws, x[None]), {"RandomStandardNormal"}),
        (writes, {"AssignAddVariableOp"}),
        (lambda x: variable.scatter_nd_add([[0]], [x]), {"ResourceScatterNdAdd"}),
        (lambda x: variable[:1].assign([x]), {"ResourceStridedSliceAssign"}),
    ],
)
def test_stateful_ops_are_found_in_nested_functions_and_control_flow(function, stateful):
    concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec((), tf.float32))
    assert stateful_ops(concrete) == stateful
    assert variable_writes(stateful_ops(concrete)) == [op for op in stateful if "Assign" in op or "Scatter" in op]
