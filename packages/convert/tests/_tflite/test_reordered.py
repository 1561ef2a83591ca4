"""What moves elements, followed by an operation with a constant: TFLite's converter changes their order, and is right.

It moves a Transpose behind what follows it. The programs of a grid are the results of one model for each movement and
dtype, each with an input of its own: the converter moves nothing that is used twice.
"""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import save_model, to_tflite


def convolved(x):
    """Of the layout that images have in PyTorch, which TFLite's convolutions have not."""
    kernel = np.eye(3, dtype=np.float32)[::-1, :, None, None]
    return jax.lax.conv_general_dilated(x.astype(np.float32), kernel, (1, 1), "SAME").astype(x.dtype)


def in_a_branch(x):
    return jax.lax.cond(x[0, 0] == x[0, 1], lambda y: 2 - y.T, lambda y: y.T, x)


MOVEMENTS = {
    "no movement": ((4, 3), lambda x: x),
    "transpose": ((3, 4), jnp.transpose),
    "transpose of 3": ((2, 4, 3), lambda x: x.transpose(2, 0, 1)),
    "transpose of 4": ((3, 2, 2, 2), lambda x: x.transpose(0, 3, 2, 1)),
    "moveaxis": ((3, 2, 2, 2), lambda x: jnp.moveaxis(x, 0, -1)),
    "einsum": ((3, 4), lambda x: jnp.einsum("ij,jk->ki", x, np.eye(4, dtype=x.dtype)[::-1])),
    "product": ((3, 4), lambda x: np.eye(4, dtype=x.dtype)[::-1] @ x.T),
    "convolution": ((1, 3, 2, 2), convolved),
    "sort": ((4, 3), lambda x: jnp.sort(x, axis=0)),
    "cumsum": ((4, 3), lambda x: jnp.cumsum(x, axis=0)),
    "max": ((2, 4, 3), lambda x: x.max(0)),
    "reverse": ((3, 4), lambda x: x.T[::-1]),
    "concatenate": ((3, 4), lambda x: jnp.concatenate([x.T, x.T * 2])),
    "reshape": ((3, 4), lambda x: x.T.reshape(2, 6)),
    "broadcast": ((3, 4), lambda x: jnp.broadcast_to(x.T, (2, 4, 3))),
    "pad": ((3, 4), lambda x: jnp.pad(x.T, ((1, 0), (0, 1)), constant_values=1)),
    "slice": ((3, 4), lambda x: x.T[1:]),
    "gather": ((3, 4), lambda x: x.T[np.array([2, 0, 3])]),
    "negated": ((3, 4), lambda x: -x.T),
    "other rows": ((3, 4), lambda x: jnp.maximum(x.T * 2, np.arange(3, dtype=x.dtype) - 9)),
    "cast": ((3, 4), lambda x: x.T.astype(np.int16).astype(x.dtype) * 2 + 1),
    "function": ((3, 4), jax.jit(jnp.transpose)),
    "branch": ((3, 4), in_a_branch),
}
LAX = ("add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge")
ANY = {
    **{name: getattr(jax.lax, name) for name in LAX},
    "floor_divide": jnp.floor_divide,
    "remainder": jnp.remainder,
    "where": lambda a, b: jnp.where(a > b, a, b),
    "of negated": lambda a, b: a + -b,
}
OPERATIONS = {
    np.float32: {
        **ANY,
        "pow": lambda a, b: jnp.power(jnp.abs(a), b),
        "atan2": jnp.arctan2,
        "square": lambda a, b: (a - b) ** 2,
        "of tanh": lambda a, b: a - jnp.tanh(b),
        "over sqrt": lambda a, b: a / jnp.sqrt(jnp.abs(b)),
    },
    np.int32: {
        **ANY,
        "xor": jnp.bitwise_xor,
        "invert": lambda a, b: ~a - ~b,
    },
    np.bool_: {
        **{name: getattr(jnp, f"logical_{name}") for name in ("and", "or", "xor")},
        "eq": jax.lax.eq,
        "ne": jax.lax.ne,
        "and not": lambda a, b: a & ~b,
        "where": lambda a, b: jnp.where(b, a, ~a),
        "difference": lambda a, b: a.astype(np.int32) - b.astype(np.int32),
    },
}
FEW = ("add", "sub", "mul", "div", "of negated", "lt")
WITH_ALL = ("transpose", "convolution")
OTHERS = {
    np.float32: tuple(MOVEMENTS),
    np.int32: (*WITH_ALL, "sort", "broadcast", "other rows", "function", "slice"),
    np.bool_: ("no movement", "transpose", "moveaxis", "reverse", "broadcast"),
}
GRID = [(dtype, movement) for dtype, movements in OTHERS.items() for movement in movements]


def numbers(shape, dtype):
    """Of both signs, none of them zero."""
    values = np.arange(int(np.prod(shape))).reshape(shape) * 5 % 17 - 8
    values = np.where(values == 0, 9, values)
    return values > 2 if dtype is np.bool_ else (values * dtype(1.125)).astype(dtype)


def sizes(kind, shape):
    """Of a scalar, a column, and a whole array."""
    return ((), (*shape[:-1], 1), shape)[kind % 3]


def results(model, **arguments):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        return tf.lite.Interpreter(model_content=model).get_signature_runner()(**arguments)


def assert_right(model, programs, x):
    """A model has the programs' results, each for its own input: both have their names, in order."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
    found = runner(**dict.fromkeys(runner.get_input_details(), x))
    assert len(found) == len(programs)
    wrong = []
    for name, (program, fun) in zip(sorted(found), programs.items(), strict=True):
        expected = np.asarray(fun(jnp.asarray(x)))
        assert found[name].dtype == expected.dtype
        # TFLite has tables of its own for tanh, sin and exp; its quotients by constants are products.
        is_exact = expected.dtype != np.float32
        if not np.allclose(found[name], expected, rtol=0 if is_exact else 1e-5, atol=0 if is_exact else 1e-6):
            wrong.append(program)
    assert not wrong


def model_of(programs, x, **options):
    """The model of several programs, of one input each."""
    names = [f"p{i:03}" for i in range(len(programs))]

    def fun(inputs):
        return {name: f(inputs[name]) for name, f in zip(names, programs.values(), strict=True)}

    return to_tflite(fun, input_signature=[dict.fromkeys(names, tf.TensorSpec(x.shape, x.dtype))], **options)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("dtype", "movement"), GRID, ids=lambda part: part if isinstance(part, str) else part.__name__)
def test_operations_with_constants_after_movements_are_right(dtype, movement):
    shape, move = MOVEMENTS[movement]
    x = numbers(shape, dtype)
    moved = jax.eval_shape(move, x).shape

    def program(operation, constant, is_first, x):
        operands = [jnp.broadcast_to(constant, moved), move(x)]
        return operation(*(operands if is_first else operands[::-1]))

    programs = {}
    for kind, (name, operation) in enumerate(OPERATIONS[dtype].items()):
        if dtype is not np.bool_ and movement not in WITH_ALL and name not in FEW:
            continue
        for is_first in (True, False):
            constant = numbers(sizes(kind, moved), dtype)
            key = f"{name} with {constant.shape} {'first' if is_first else 'second'}"
            programs[key] = functools.partial(program, operation, constant, is_first)
    assert_right(model_of(programs, x), programs, x)


def gate(x):
    """Of images as in PyTorch: `1 - x` after a convolution."""
    y = jax.nn.sigmoid(jax.lax.conv_general_dilated(x, numbers((3, 3, 3, 3), np.float32) / 99, (1, 1), "SAME"))
    return (1 - y) * x


def in_loops(x):
    return jax.lax.fori_loop(0, 3, lambda i, y: (5 - y.T @ x.T) / (1 + 1 / jnp.abs(y.T)), x[:, :3].T)


def minus(a, b):
    return jax.jit(lambda a, b: a - b)(a, b)


# Constants and what is transposed meet in functions, loops and branches, and after others.
MEETINGS = {
    "gate": (gate, (1, 3, 4, 4)),
    "loop": (in_loops, (3, 3)),
    "branches": (lambda x: jax.lax.cond(x[0, 0] > 0, lambda y: 5 - y, lambda y: 1 / y, x.T), (3, 4)),
    "function": (lambda x: minus(5, x.T), (3, 4)),
    "function of two": (lambda x: minus(*jax.jit(lambda x: (5, x.T))(x)), (3, 4)),
    "negated in a function": (lambda x: 5 + jax.jit(lambda x: -x.T)(x), (3, 4)),
    "computed constant": (lambda x: jnp.sin(jnp.arange(3.0)) / x.T, (3, 4)),
    "indices in order": (lambda x: jnp.argsort(x.astype(np.int32), axis=0), (5, 3)),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("is_saved", [False, True], ids=["function", "SavedModel"])
@pytest.mark.parametrize("name", MEETINGS)
def test_constants_and_what_is_transposed_may_meet_anywhere(name, is_saved, tmp_path):
    fun, shape = MEETINGS[name]
    signature, x = [tf.TensorSpec(shape, name="x")], numbers(shape, np.float32)
    if is_saved:
        options = {"gradient_order": 0, "native_serialization": False, "enable_xla": False}
        save_model(lambda params, x: fun(x), {}, tmp_path, input_signatures=signature, **options)
        model = to_tflite(tmp_path)
    else:
        model = to_tflite(fun, input_signature=signature)
    assert_near(model, fun(x), 1e-5, x=x)


def assert_near(model, expected, tolerance, **arguments):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        found = tf.lite.Interpreter(model_content=model).get_signature_runner()(**arguments)
    for name, array in zip(sorted(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance)


def test_constants_are_variables_of_a_saved_model_too(tmp_path):
    options = {"gradient_order": 0, "native_serialization": False, "enable_xla": False}
    x, params = numbers((3, 4), np.float32), {"a": np.float32(5), "b": numbers((4, 1), np.float32)}

    def fun(params, x):
        return params["a"] - x.T, params["b"] / x.T

    save_model(fun, params, tmp_path, input_signatures=[tf.TensorSpec(x.shape, name="x")], **options)
    assert_near(to_tflite(tmp_path), fun(params, x), 1e-5, x=x)


def test_sizes_are_constants_too():
    def fun(x):
        return x.shape[0] - x.T, 1 / x.T, x.T.shape[1] / x.T

    signature = [tf.TensorSpec([None, 3])]
    model = to_tflite(fun, input_signature=signature, polymorphic_shapes=["(b, _)"])
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        lite = tf.lite.Interpreter(model_content=model)
    x = numbers((4, 3), np.float32)
    found = lite.get_signature_runner()(x=x)
    for name, array in zip(sorted(found), fun(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(found[name], array, rtol=1e-6)


def test_a_quantized_model_keeps_the_order():
    x = numbers((1, 3, 4, 4), np.float32)
    data = [[x * scale] for scale in np.linspace(-1, 1, 9, dtype=np.float32)]
    model = to_tflite(gate, input_signature=[tf.TensorSpec(x.shape)], representative_data=data)
    assert_near(model, gate(x), 20 / 255, x=x)  # a step of 8 bits between -10 and 10


def test_signs_of_zeros_are_kept():
    def fun(x):
        return [*(1 / (c - x.T + 0 * x) for c in (0.0, -0.0, 3.0)), x.T * 2 / (1 / (-0.0 + -x.T))]

    x = np.float32([[0, -0.0], [3, -3]])
    model = to_tflite(fun, input_signature=[tf.TensorSpec([2, 2])])
    assert_near(model, fun(jnp.asarray(x)), 1e-6, x=x)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("fun", "operations"),
    [
        (lambda x: (5 - x, 1 / (1 + jnp.exp(-(x @ x)))), {"SUB", "BATCH_MATMUL", "LOGISTIC"}),
        (lambda x: jax.nn.sigmoid(jnp.abs(x.T)), {"TRANSPOSE", "ABS", "LOGISTIC"}),
        (lambda x: x.T - x.T.mean(0), {"TRANSPOSE", "MEAN", "SUB"}),
    ],
)
def test_what_needs_no_other_form_stays_as_it_is(fun, operations):
    model = to_tflite(fun, input_signature=[tf.TensorSpec([3, 3])])
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        details = tf.lite.Interpreter(model_content=model)._get_ops_details()
    assert {detail["op_name"] for detail in details} - {"DELEGATE"} == operations
