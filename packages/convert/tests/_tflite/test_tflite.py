"""TFLite models of JAX functions: builtin operations only, the numbers of JAX, refusals that name the operation."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ConversionOptionError, TFLiteUnsupported, convert, save_model, to_tflite
from jaxtf.serialization import export

EPSILON = float(np.finfo(np.float32).eps)


def ramp(*shape):
    return np.sin(np.arange(int(np.prod(shape)), dtype=np.float32) * 1.3).reshape(shape)


def mlp(x):
    return jax.nn.softmax(jax.nn.gelu(x @ ramp(8, 16)) @ ramp(16, 4))


def cnn(images):
    y = jax.lax.conv_general_dilated(
        images, ramp(3, 3, 1, 8), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = jax.lax.reduce_window(jax.nn.relu(y), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return y.reshape(y.shape[0], -1) @ ramp(128, 10)


def rnn(x):
    def step(carry, row):
        carry = jnp.tanh(row @ ramp(4, 4) + carry)
        return carry, carry.sum(axis=-1)

    return jax.lax.scan(step, jnp.zeros((x.shape[0], 4)), x.swapaxes(0, 1))


def branches(x):
    return jax.lax.switch(x.argmax() % 3, [jnp.sin, jnp.cos, lambda y: y * 2], x)


def ordering(x):
    return jnp.sort(x, axis=-1), jnp.argmax(x, axis=-1), jnp.cumsum(x, axis=-1), jax.lax.top_k(x, 2)


def attention(x):
    q, k, v = jnp.split(x @ ramp(6, 18), 3, axis=-1)
    return jax.nn.softmax(q @ k.swapaxes(1, 2) / np.sqrt(6), axis=-1) @ v


def normalized(x):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-5)


def special(x):
    return jnp.arcsin(x), jnp.arctan(x), jnp.arcsinh(x), jnp.sinh(x), jax.lax.erfc(x), jax.lax.erf_inv(x)


def remainders(x):
    i = (x * 70).astype(jnp.int32)
    return jax.lax.rem(x, x[0] / 3 - 0.1), jax.lax.rem(i, jnp.int32([0, 3, -4, 7, -1, 2, -2])), i // 5, i % -3


PROGRAMS = {
    "mlp": (mlp, (3, 8)),
    "cnn": (cnn, (2, 8, 8, 1)),
    "rnn": (rnn, (3, 5, 4)),
    "branches": (branches, (4,)),
    "ordering": (ordering, (3, 6)),
    "attention": (attention, (2, 5, 6)),
    "layer norm": (normalized, (3, 7)),
    "embedding": (lambda i: jnp.asarray(ramp(10, 4))[i], (3, 2), np.int32),
    "gradient": (jax.grad(lambda x: jnp.tanh(x @ ramp(4, 4)).sum()), (3, 4)),
    "erf": (jax.lax.erf, (5,)),
    "special functions": (special, (7,)),
    "remainders": (remainders, (7,)),
    "loop": (lambda x: jax.lax.while_loop(lambda c: jnp.abs(c).sum() < 50, lambda c: c * 1.5, x), (4,)),
    "scatter": (lambda x: jnp.ones((6, 2)).at[jnp.array([1, 4, 1])].add(2 * x), (3, 2)),
}
ANY_BATCH = ["mlp", "cnn", "rnn", "attention", "layer norm"]


def interpreter(model):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        return tf.lite.Interpreter(model_content=model)


def run(model, *arguments):
    """The results of a model, in the order of its outputs."""
    lite = interpreter(model)
    for detail, argument in zip(lite.get_input_details(), arguments, strict=True):
        lite.resize_tensor_input(detail["index"], argument.shape)
    lite.allocate_tensors()
    for detail, argument in zip(lite.get_input_details(), arguments, strict=True):
        lite.set_tensor(detail["index"], argument)
    lite.invoke()
    return [lite.get_tensor(detail["index"]) for detail in lite.get_output_details()]


def operations(model):
    lite = interpreter(model)
    return {detail["op_name"] for detail in lite._get_ops_details()}


def assert_same(found, expected):
    """The same arrays; TFLite may give them in another order."""
    rest = list(map(np.asarray, jax.tree.leaves(expected)))
    for array in found:
        near = [i for i, other in enumerate(rest) if is_near(array, other)]
        assert near, (array, rest)
        rest.pop(near[0])
    assert not rest


def is_near(a, b):
    """Within the rounding of a few sums of up to 128 terms, and of TFLite's own tables for exp and tanh."""
    if a.shape != b.shape or (np.issubdtype(b.dtype, np.integer) and not np.array_equal(a, b)):
        return False
    return bool(np.abs(a - b).max(initial=0) <= 4 * 128 * EPSILON * max(1, np.abs(b).max(initial=0)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_model_gives_the_numbers_of_jax(name):
    fun, shape, dtype = (*PROGRAMS[name], np.float32)[:3]
    x = ramp(*shape) if dtype is np.float32 else np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    model = to_tflite(fun, input_signature=[tf.TensorSpec(shape, dtype)])
    assert_same(run(model, x), fun(x))


TINY = np.float32([1e-30, -1e-8, 3e-7, -1e-4, 1e-3, -0.02, 0.3, -0.49, 0.51, -0.9, 0.0])
LINES = np.arange(12, dtype=np.float32).reshape(4, 3)
HOLES = np.where(LINES % 5 == 1, np.float32(-np.inf), LINES)
ROW = np.float32([[7, 8, 9]])
OUTSIDE = np.float32([0, -0.9, 1.5, 126.9, 127.9, 128, -128.9, -129, 255.9, 256, 3e4, np.nan, np.inf, -np.inf])


def kept_rows(x):
    return jax.lax.fori_loop(0, 3, lambda i, kept: kept.at[i].set(x[i] * 2), jnp.full_like(x, -1))


def counted(x):
    """Updates in turn, of a region that TensorFlow has no scatter of."""
    numbers = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return jax.lax.scatter_apply(x, jnp.int32([[1], [1], [3]]), lambda row: row * 2 + 1, numbers, update_shape=(3, 3))


# What TFLite's converter rewrites with other operations, and wrongly. The results are exact, or of tiny numbers.
REWRITTEN = {
    "repeated indices": (lambda x: x.at[jnp.array([1, 3, 1])].set(7), (LINES,)),
    "repeated columns": (lambda x: x.at[:, jnp.array([2, 0, 2])].set(-1), (LINES,)),
    "repeated integers": (lambda x: x.at[jnp.array([0, 0])].set(4), (LINES.astype(np.int32),)),
    "repeated bytes": (lambda x: x.at[jnp.array([0, 0])].set(4), (LINES.astype(np.uint8),)),
    "repeated truth": (lambda x: x.at[jnp.array([0, 0])].set(True), (LINES > 3,)),
    "open indices": (lambda x, y: x.at[y].set(5, mode="drop"), (LINES, np.int32([1, 9, 1, -1]))),
    "points": (lambda x, y: x.at[y, 2 * y % 3].set(5), (LINES, np.int32([1, 1, 0]))),
    "rows of infinities": (lambda x, y: x.at[y].set(0), (HOLES, np.int32([0, 2]))),
    "over infinities": (lambda x, y: jax.lax.dynamic_update_slice(x, ROW, (y, 0)), (HOLES, np.int32(2))),
    "a part": (lambda x, y: jax.lax.dynamic_update_slice(x, ROW[:, :2], (y, 1)), (HOLES, np.int32(2))),
    "beside NaN": (lambda x: x.at[1:3].set(0), (np.float32([np.nan, np.nan, np.inf, 3]),)),
    "equal bytes": (lambda x: x == 7, (LINES.astype(np.uint8),)),
    "bytes by class": (lambda x: jax.nn.one_hot(x[1], 5), (LINES.astype(np.uint8),)),
    "lesser bytes": (lambda x: x < x[1, 1], (LINES.astype(np.int8),)),
    "other integers": (lambda x: (x != 7) & (x >= 3), (LINES.astype(np.int16),)),
    "floats as bytes": (lambda x: x.astype(jnp.uint8), (OUTSIDE,)),
    "floats as signed bytes": (lambda x: x.astype(jnp.int8), (OUTSIDE,)),
    "floats as 16 bits": (lambda x: x.astype(jnp.int16), (OUTSIDE * 250,)),
    "floats as integers": (lambda x: x.astype(jnp.int32), (OUTSIDE * 1e8,)),
    "in a loop": (kept_rows, (LINES,)),
    "in turn": (counted, (HOLES,)),
    "expm1": (jnp.expm1, (TINY,)),
    "log1p": (jnp.log1p, (TINY,)),
    "elu": (jax.nn.elu, (TINY,)),
    "sinh": (jnp.sinh, (TINY,)),
    "asinh": (jnp.arcsinh, (TINY,)),
    "atanh": (jnp.arctanh, (TINY,)),
    "large expm1": (jnp.expm1, (np.float32([0.5, 1, 10, 88, -10, -88, -np.inf, np.inf]),)),
    "large log1p": (jnp.log1p, (np.float32([0.5, 1, 10, 1e30, 3e38, -0.75, -0.99999]),)),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("is_saved", [False, True], ids=["function", "SavedModel"])
@pytest.mark.parametrize("name", REWRITTEN)
def test_what_the_converter_would_rewrite_wrongly_is_right(name, is_saved, tmp_path):
    fun, arguments = REWRITTEN[name]
    signature = [tf.TensorSpec(argument.shape, argument.dtype, f"x{i}") for i, argument in enumerate(arguments)]
    if is_saved and name in ("sinh", "asinh", "atanh"):
        pytest.skip("TFLite has no operation for it, and a SavedModel has it as one")
    if is_saved:
        options = {"gradient_order": 0, "native_serialization": False, "enable_xla": False}
        save_model(lambda _, *args: fun(*args), {}, tmp_path, input_signatures=signature, **options)
        model = to_tflite(tmp_path)
    else:
        model = to_tflite(fun, input_signature=signature)
    lite = interpreter(model)
    runner = lite.get_signature_runner()
    [found] = runner(**dict(zip(sorted(runner.get_input_details()), arguments, strict=True))).values()
    # Of sums of a few terms and of tables of exp and log; exact for updates, infinities and NaN.
    np.testing.assert_allclose(found, fun(*map(jnp.asarray, arguments)), rtol=16 * EPSILON)


@pytest.mark.parametrize("by", [0, 2, 31])
def test_shifts_to_the_right_take_any_batch_size(by):
    def fun(x):
        return jnp.stack([x >> by, jax.lax.shift_right_logical(x, np.int32(by)), x // 7])

    signature = [tf.TensorSpec([None, 4], tf.int32)]
    model = to_tflite(fun, input_signature=signature, polymorphic_shapes=["(b, _)"])
    x = np.int32([[7, -7, 2**31 - 1, -(2**31)]])
    for rows in (x, np.tile(x, (3, 1))):
        [found] = run(model, rows)
        np.testing.assert_array_equal(found, fun(jnp.asarray(rows)))


def test_updates_and_expm1_take_any_batch_size():
    def fun(x, y):
        return jnp.expm1(x.at[:, y].set(1e-6)), x.at[y].set(5, mode="drop")

    signature = [tf.TensorSpec([None, 3]), tf.TensorSpec([2], tf.int32)]
    model = to_tflite(fun, input_signature=signature, polymorphic_shapes=["(b, _)", None])
    for size in (1, 4):
        x, y = ramp(size, 3), np.int32([2, 2])
        assert_same([*interpreter(model).get_signature_runner()(x=x, y=y).values()], fun(jnp.asarray(x), y))


def test_a_quantized_model_has_the_last_of_several_updates():
    data = [[LINES * scale] for scale in np.linspace(-1, 1, 9, dtype=np.float32)]
    fun = lambda x: x.at[jnp.array([1, 3, 1])].set(7) * 2  # noqa: E731
    [found] = run(to_tflite(fun, input_signature=[tf.TensorSpec([4, 3])], representative_data=data), LINES)
    np.testing.assert_allclose(found, fun(jnp.asarray(LINES)), atol=44 / 255)  # a step of 8 bits between -22 and 22


# Of these TFLite's kernels end the process where they broadcast more dimensions than they have loops for.
BROADCASTING = {
    "or": lambda x, y: (x > 2) | (y > 2),
    "and": lambda x, y: (x > 0) & (y < 2),
    "fmax": jnp.fmax,
    "hypot": jnp.hypot,
    "divide": jnp.divide,
    "constant over": lambda x, y: 3 / (x + y),
    "floor_divide": jnp.floor_divide,
    "sigmoid": lambda x, y: jax.nn.sigmoid(x + y),
}


@pytest.mark.parametrize("resolver", ["AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"])
@pytest.mark.parametrize(
    "shapes", [([2, 1, 3, 1, 2], [1, 4, 3, 2, 1]), ([2, 1, 3, 1, 1, 2], [1, 4, 3, 2, 2, 1]), ([2, 1, 2, 1, 2, 2], [])]
)
def test_operations_broadcast_many_dimensions(shapes, resolver):
    # Nothing here is zero, or the other's multiple: TFLite's quotients are products with the inverse for some.
    x, y = (ramp(*shape) * np.float32(3.7) + np.float32(c) for shape, c in zip(shapes, (0.3, 4.1), strict=True))
    signature = [tf.TensorSpec(shape) for shape in shapes]
    model = to_tflite(lambda x, y: [f(x, y) for f in BROADCASTING.values()], input_signature=signature)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        lite = tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=getattr(RESOLVERS, resolver))
    found = lite.get_signature_runner()(x=x, y=y)
    for name, (operation, fun) in zip(sorted(found), BROADCASTING.items(), strict=True):
        np.testing.assert_allclose(found[name], fun(x, y), rtol=1e-5, err_msg=operation)


@pytest.mark.parametrize("axes", [(0, 2), (0, 1, 3), (3, 1), (0, 2, 3), (1, 2)])
def test_dimensions_apart_from_each_other_are_reversed(axes):
    x = ramp(2, 3, 2, 4)
    model = to_tflite(lambda x: jnp.flip(x, axes), input_signature=[tf.TensorSpec(x.shape)])
    assert_same(run(model, x), jnp.flip(x, axes))


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", ANY_BATCH)
def test_a_model_takes_any_batch_size(name):
    fun, shape = PROGRAMS[name]
    spec = tf.TensorSpec([None, *shape[1:]], tf.float32)
    model = to_tflite(fun, input_signature=[spec], polymorphic_shapes=["(b, ...)"])
    for size in (1, 4):
        x = ramp(size, *shape[1:])
        assert_same(run(model, x), fun(x))


# The converter of TensorFlow 2.19 does not know GELU by its parts.
KNOWS_GELU = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 20)


def test_high_level_forms_are_recognized():
    gelu = {"GELU"} if KNOWS_GELU else {"TANH"}
    found = operations(to_tflite(mlp, input_signature=[tf.TensorSpec([3, 8])]))
    assert found >= {"FULLY_CONNECTED", "SOFTMAX"} | gelu
    assert operations(to_tflite(cnn, input_signature=[tf.TensorSpec([1, 8, 8, 1])])) >= {"CONV_2D", "MAX_POOL_2D"}


def test_inputs_have_the_names_of_the_arguments():
    model = to_tflite(lambda left, right: left - right, input_signature=[tf.TensorSpec([2]), tf.TensorSpec([2])])
    runner = interpreter(model).get_signature_runner()
    [difference] = runner(right=np.float32([1, 2]), left=np.float32([5, 5])).values()
    np.testing.assert_array_equal(difference, [4, 3])


def test_a_quantized_model_is_smaller_and_near():
    signature = [tf.TensorSpec([1, 8, 8, 1])]
    data = [[ramp(1, 8, 8, 1) * scale] for scale in np.linspace(-1, 1, 50, dtype=np.float32)]
    plain = to_tflite(cnn, input_signature=signature)
    small = to_tflite(cnn, input_signature=signature, representative_data=data)
    assert len(small) < 0.7 * len(plain)
    [found], expected = run(small, ramp(1, 8, 8, 1)), cnn(ramp(1, 8, 8, 1))
    # Each of the 128 terms of a result has the rounding of 8 bits of its factors: pooled values of up to 4, and weights
    # of up to 1. They add up as random ones do; four standard deviations.
    step = 4 / 255
    assert 0 < np.abs(found - expected).max() <= 4 * np.sqrt(128) * step * np.sqrt(2 / 12)


def test_representative_data_are_in_the_order_of_the_arguments(tmp_path):
    def weighted(x, a):
        return x @ ramp(4, 4) + 100 * a @ ramp(4, 4)

    signature = [tf.TensorSpec([1, 4]), tf.TensorSpec([1, 4])]
    samples = [(ramp(1, 4) * scale, ramp(1, 4)[:, ::-1] * scale / 100) for scale in np.linspace(-1, 1, 50)]
    model = to_tflite(weighted, input_signature=signature, representative_data=samples)
    x, a = (array.astype(np.float32) for array in samples[-1])
    [found] = interpreter(model).get_signature_runner()(x=x, a=a).values()
    # With the ranges in the other order x, of up to 1, would be cut to 0.01.
    np.testing.assert_allclose(found, weighted(x, a), atol=0.05)
    options = {"gradient_order": 0, "native_serialization": False, "enable_xla": False}
    save_model(lambda _, x, a: weighted(x, a), {}, tmp_path, input_signatures=signature, **options)
    of_saved = to_tflite(tmp_path, representative_data=[[a, x] for x, a in samples])  # by name: a, x
    [found] = interpreter(of_saved).get_signature_runner()(x=x, a=a).values()
    np.testing.assert_allclose(found, weighted(x, a), atol=0.05)


NAMES = [
    ("c", "b"),
    ("image", "mask"),
    ("tokens", "positions"),
    ("x1", "x2"),
    ("z", "y", "x", "w"),
    ("inputs", "state", "scale"),
    ("q", "key", "value"),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
@pytest.mark.parametrize("is_saved", [False, True], ids=["function", "SavedModel"])
def test_each_input_has_the_ranges_of_its_own_samples(names, is_saved, tmp_path):
    # TFLite's converter has an order of its own for the inputs of a model, that of a hash table.
    ranges = {name: 100.0**i for i, name in enumerate(names)}
    fun = eval(f"lambda {', '.join(names)}: ({', '.join(f'2 * {name}' for name in names)},)")
    signature = [tf.TensorSpec([1, 8])] * len(names)
    samples = [{name: ramp(1, 8) * np.float32(s * r) for name, r in ranges.items()} for s in np.linspace(-1, 1, 9)]
    if is_saved:
        inputs = ", ".join(names)
        of_parameters = eval(f"lambda params, {inputs}: fun({inputs})", {"fun": fun})
        options = {"gradient_order": 0, "native_serialization": False, "enable_xla": False}
        save_model(of_parameters, {}, tmp_path, input_signatures=signature, **options)
        data = [[sample[name] for name in sorted(names)] for sample in samples]
        model = to_tflite(tmp_path, representative_data=data)
    else:
        model = to_tflite(fun, input_signature=signature, representative_data=[[*each.values()] for each in samples])
    found = [*interpreter(model).get_signature_runner()(**samples[-1]).values()]
    for name, largest in ranges.items():
        # One step of 8 bits over the range of this input, doubled; over that of another one a hundred times that.
        expected = 2 * samples[-1][name]
        assert min(np.abs(array - expected).max() for array in found) <= 2 * (2 * largest / 255)


@pytest.mark.parametrize("names", [("c", "b"), ("b", "c"), ("image", "scale"), ("x", "t")], ids=" ".join)
def test_samples_of_other_shapes_reach_their_own_inputs(names):
    fun = eval(f"lambda {', '.join(names)}: {names[0]}.sum() * {names[1]}")
    signature = [tf.TensorSpec([1, 4, 4]), tf.TensorSpec([3])]
    data = [[ramp(1, 4, 4) * scale, ramp(3) * scale] for scale in np.linspace(-1, 1, 9, dtype=np.float32)]
    model = to_tflite(fun, input_signature=signature, representative_data=data)
    [found] = interpreter(model).get_signature_runner()(**dict(zip(names, data[-1], strict=True))).values()
    np.testing.assert_allclose(found, fun(*data[-1]), atol=0.1)


def test_nested_inputs_are_named_as_save_model_names_them():
    model = to_tflite(
        lambda pair: pair["x"] - pair["a"], input_signature=[{"x": tf.TensorSpec([2]), "a": tf.TensorSpec([2])}]
    )
    [difference] = (
        interpreter(model).get_signature_runner()(pair_x=np.float32([5, 5]), pair_a=np.float32([1, 2])).values()
    )
    np.testing.assert_array_equal(difference, [4, 3])


IMAGE = ramp(1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"input_signature": tf.TensorSpec([1, 4])},
            "input_signature of to_tflite must be a list of specifications, one for each input. Got: "
            "TensorSpec(shape=(1, 4), dtype=tf.float32, name=None)\n"
            "  remedy: put it in brackets, also for one input: [tf.TensorSpec([None, 4], tf.float32)]",
        ),
        (
            {"input_signature": [(1, 4)]},
            "input_signature of to_tflite must say shape and dtype of 'x', as tf.TensorSpec([None, 4], tf.float32) "
            "does. Got: (1, 4)",
        ),
        (
            {"input_signature": [3]},
            "must say shape and dtype of 'x', as tf.TensorSpec([None, 4], tf.float32) does. Got: 3",
        ),
        (
            {"representative_data": [{"x": IMAGE}]},
            "representative_data[0] must be a list with one array for each input. Got: dict\n"
            "  remedy: [[x] for x in ...], also for one input",
        ),
        (
            {"representative_data": [[IMAGE], IMAGE]},
            "representative_data[1] must be a list with one array for each input. Got: ndarray of shape (1, 4)\n"
            "  remedy: [[x] for x in ...], also for one input",
        ),
        (
            {"representative_data": []},
            "representative_data holds no samples: without any there are no ranges to make int8 of\n"
            "  remedy: give a hundred or so; a generator that was read before is empty, so make a list of it",
        ),
        ({"representative_data": iter([])}, "representative_data holds no samples"),
        (
            {"representative_data": lambda: iter([[IMAGE]])},
            "representative_data must be a list of samples, each a list with one array for each input. Got: <function",
        ),
        (
            {"representative_data": {"x": [IMAGE]}},
            "representative_data must be a list of samples, each a list with one array for each input. Got: dict",
        ),
        (
            {"representative_data": [[IMAGE, IMAGE]]},
            "representative_data[0] must have one array for each input, 1 in all. Got: 2",
        ),
        (
            {"representative_data": [[IMAGE], [IMAGE[0]]]},
            "representative_data[1][0] must be an array for the input 'x', float32 of shape (1, 4). Got: float32 of "
            "shape (4,)",
        ),
        ({"representative_data": [["a"]]}, "float32 of shape (1, 4). Got: <U1 of shape ()"),
        (
            {"input_signature": [tf.TensorSpec([1, 4], tf.int8)], "representative_data": [[[[1, 2, 3, 300]]]]},
            "representative_data[0][0] must be an array for the input 'x', whose dtype int8 has integers from -128 to "
            "127. Got: numbers from 1 to 300",
        ),
    ],
)
def test_signatures_and_data_of_another_form_are_refused(options, message):
    with pytest.raises(ConversionOptionError, match=re.escape(message)):
        to_tflite(lambda x: x @ ramp(4, 2), **{"input_signature": [tf.TensorSpec([1, 4])], **options})


def test_a_saved_model_of_graph_mode_becomes_a_model(tmp_path):
    options = {"input_signatures": [tf.TensorSpec([None, 8])], "polymorphic_shapes": ["(b, _)"], "gradient_order": 0}
    folder = tmp_path / "graph"
    weights = ramp(8, 3)
    fun = lambda w, x: jnp.tanh(x @ w)  # noqa: E731
    save_model(fun, weights, folder, **options, native_serialization=False, enable_xla=False)
    assert_same(run(to_tflite(folder), ramp(4, 8)), fun(weights, ramp(4, 8)))
    save_model(fun, weights, tmp_path / "native", **options)
    with pytest.raises(ConversionOptionError) as refused:
        to_tflite(tmp_path / "native")
    assert str(refused.value) == (
        f"the SavedModel in {tmp_path / 'native'} is in native mode: its functions are StableHLO, which TFLite's "
        "converter reads in part, and with other values for some operations\n"
        "  remedy: save it in graph mode: save_model(..., native_serialization=False, enable_xla=False)"
    )
    with pytest.raises(ConversionOptionError, match=r"has no signature 'other'; it has serving_default"):
        to_tflite(folder, signature="other")


READS_STABLEHLO = pytest.mark.skipif(tf.__version__ < "2.21", reason="what the page says is of TensorFlow 2.21")

INTEGERS = np.array([[7, -7, 5, -5]], np.int32)
NUMBERS = np.array([[0.5, np.nan, -1.5, 2.5]], np.float32)


def converted_alone(fun, *arguments):
    """What TensorFlow's converter makes of native mode, by itself."""
    specs = [tf.TensorSpec(array.shape, array.dtype) for array in arguments]
    concrete = tf.function(convert(fun, with_gradient=False)).get_concrete_function(*specs)
    with warnings.catch_warnings(action="ignore"):
        return tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()


@READS_STABLEHLO
@pytest.mark.parametrize(
    ("fun", "argument"),
    [
        (lambda x: jax.nn.softmax(jax.nn.relu(x @ ramp(8, 16)) @ ramp(16, 4)), ramp(2, 8)),
        (cnn, ramp(2, 8, 8, 1)),
        (lambda x: jnp.cumsum(x, axis=1), ramp(2, 8)),
        (lambda x: jnp.take(x, jnp.array([3, 1]), axis=1), ramp(2, 8)),
    ],
)
def test_tflites_converter_reads_a_part_of_native_mode(fun, argument):
    assert_same(run(converted_alone(fun, argument), argument), fun(argument))


@READS_STABLEHLO
@pytest.mark.parametrize(
    ("fun", "argument"),
    [
        (lambda x: jax.lax.rem(x, np.int32(3)), INTEGERS),
        (lambda x: jnp.argmax(x, axis=1), NUMBERS),
        pytest.param(
            *(jnp.sign, NUMBERS),
            marks=pytest.mark.skipif(tf.__version__ >= "2.22", reason="TensorFlow 2.22 keeps NaN in sign"),
        ),
    ],
)
def test_it_reads_others_with_other_values_for_which_native_mode_is_refused(fun, argument):
    [alone] = run(converted_alone(fun, argument), argument)
    assert not np.array_equal(alone, fun(argument), equal_nan=True)
    signature = [tf.TensorSpec(argument.shape, argument.dtype)]
    [ours] = run(to_tflite(fun, input_signature=signature), argument)
    np.testing.assert_array_equal(ours, fun(argument))


LARGEST = np.finfo(np.float32).max
RESOLVERS = tf.lite.experimental.OpResolverType


@READS_STABLEHLO
@pytest.mark.parametrize(
    ("fun", "argument", "by_default", "without_delegates"),
    [
        (jnp.sqrt, np.inf, np.nan, np.inf),
        (jax.lax.rsqrt, 0, np.nan, np.inf),
        (jax.nn.sigmoid, 1e30, np.nan, 1),
        (jnp.exp, np.nan, 0, np.nan),
        (lambda x: x * 2, np.inf, np.inf, LARGEST),
        (lambda x: jnp.where(x > 1, x, -jnp.inf), 0, -LARGEST, -LARGEST),
    ],
)
def test_special_numbers_are_what_the_page_says(fun, argument, by_default, without_delegates):
    model = to_tflite(fun, input_signature=[tf.TensorSpec([8])])
    for resolver, expected in (
        (RESOLVERS.AUTO, by_default),
        (RESOLVERS.BUILTIN_WITHOUT_DEFAULT_DELEGATES, without_delegates),
    ):
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            lite = tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=resolver)
        [found] = lite.get_signature_runner()(x=np.full(8, argument, np.float32)).values()
        np.testing.assert_array_equal(found, np.full(8, expected, np.float32))


@pytest.mark.parametrize("approximate", [True, False])
def test_both_forms_of_gelu_are_one_operation(approximate):
    def gelu(x):
        return jax.nn.gelu(x, approximate=approximate)

    if not approximate and "chlo.erfc" not in str(export(jax.jit(gelu))(ramp(3, 4)).mlir_module()):
        pytest.skip("this JAX writes erfc as polynomials")
    model = to_tflite(gelu, input_signature=[tf.TensorSpec([3, 4])])
    assert operations(model) == ({"GELU"} if KNOWS_GELU or not approximate else {"ADD", "MUL", "TANH"})
    assert_same(run(model, ramp(3, 4)), gelu(ramp(3, 4)))


def test_layer_normalization_has_means():
    def normalized(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    model = to_tflite(normalized, input_signature=[tf.TensorSpec([3, 4])])
    assert operations(model) == {"MEAN", "SUB", "MUL", "ADD", "RSQRT"}
    assert_same(run(model, ramp(3, 4)), normalized(ramp(3, 4)))


@pytest.mark.parametrize("transform", [jnp.fft.rfft, jnp.fft.rfft2])
@pytest.mark.parametrize("part", [jnp.real, jnp.imag])
def test_a_real_transform_of_length_1_is_refused_where_that_of_tflite_is_wrong(transform, part):
    def function(x):
        return part(transform(x))

    assert_same(run(to_tflite(function, input_signature=[tf.TensorSpec([4, 2])]), ramp(4, 2)), function(ramp(4, 2)))
    with pytest.raises(TFLiteUnsupported, match=r"tf\.Complex"):
        to_tflite(function, input_signature=[tf.TensorSpec([4, 1])])


def test_what_tflite_cannot_do_is_refused_by_name():
    def noisy(key, x):
        return x + jax.random.uniform(key, x.shape)

    with pytest.raises(TFLiteUnsupported) as refused:
        to_tflite(noisy, input_signature=[tf.TensorSpec([2], tf.uint32), tf.TensorSpec([3])])
    first, *found, remedy = str(refused.value).splitlines()
    assert re.fullmatch(r"TFLite has no builtin operation for tf\.\w+(, tf\.\w+)*", first)
    assert "tf.LeftShift" in first
    [shift] = [line for line in found if "LeftShift" in line]
    types = r"\(tensor<3xui32>, .*\) -> \(tensor<3xui32>\)"
    assert re.fullmatch(rf"  found:  LeftShift {types} at jaxtf_noisy/.* and \d+ more", shift)
    assert remedy == "  remedy: compute that part outside of the model, or write it with other operations or dtypes"


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (jnp.sin, {}, "to_tflite of a function needs input_signature, a tf.TensorSpec for each argument"),
        ("/nowhere", {}, "there is no SavedModel in /nowhere"),
        (3, {}, "to_tflite needs a JAX function or the folder of a SavedModel, found int"),
    ],
)
def test_wrong_arguments_are_refused(target, options, message):
    with pytest.raises(ConversionOptionError, match=message):
        to_tflite(target, **options)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x.astype(jnp.int4).astype(jnp.int32),
        lambda x: x.astype(jnp.int4),
        lambda x: x.astype(jnp.float32).astype(jnp.int4).astype(jnp.float32),
        lambda x: jax.lax.cond(x.sum() > 0, lambda x: x.astype(jnp.int4).astype(jnp.int32), lambda x: x, x),
    ],
    ids=["there and back", "there", "of floats", "in a branch"],
)
def test_casts_to_int4_are_refused_for_no_interpreter_has_them(fun):
    with pytest.raises(
        TFLiteUnsupported, match=r"no builtin operation for tf\.Cast\n  found:  Cast \(\w+\) -> \(int4\) at"
    ):
        to_tflite(fun, input_signature=[tf.TensorSpec([3], tf.int32)])


def test_constants_may_be_int4():
    x = np.int32([1, 2, 3])
    model = to_tflite(
        lambda x: x + jnp.int4([7, -8, 5]).astype(jnp.int32), input_signature=[tf.TensorSpec([3], tf.int32)]
    )
    assert_same(run(model, x), np.int32([8, -6, 8]))


def test_what_is_refused_in_loops_and_branches_has_its_place():
    def looped(n):
        return jax.lax.fori_loop(0, 3, lambda i, v: jax.lax.cond(v[0] > 0, lambda v: v & 5, lambda v: v + 1, v), n)

    with pytest.raises(TFLiteUnsupported, match=r"  found:  BitwiseAnd \(.*\) -> \(.*\) at jaxtf_looped/while/\S+\n"):
        to_tflite(looped, input_signature=[tf.TensorSpec([3], tf.int32)])


def test_what_depends_on_no_input_is_not_refused(tmp_path):
    save_model(
        lambda params, n: n + (params["mask"] & 5),
        {"mask": np.array([1, 2, 7], np.int32)},
        str(tmp_path),
        input_signatures=[tf.TensorSpec([3], tf.int32)],
        gradient_order=0,
        native_serialization=False,
        enable_xla=False,
    )
    assert to_tflite(str(tmp_path))[4:8] == b"TFL3"
