"""TensorFlow functions of many kinds give TensorFlow's own results and gradients in JAX.

What does not work where is in `LIMITS`, with the reason; it must fail, as it says. `battery_table.py` makes a page
of the documentation of it.
"""

import functools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf

RNG = np.random.default_rng(0)


QUICK = 10  # terms, up to which a case is also tried where it hardly differs


class Case(NamedTuple):
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    terms: int = 1  # how many products are summed for one element: summation order may differ
    integers: tuple[Any, ...] = ()  # arguments after the floating point ones
    single: bool = False  # TensorFlow computes in float32 whatever the argument


def spd(x):
    return x @ tf.transpose(x) + 4 * tf.eye(x.shape[0], dtype=x.dtype)


def loop(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) + x), (0, x), maximum_iterations=3)[1]


def tensor_array(x):
    array = tf.TensorArray(x.dtype, size=3, element_shape=x.shape)
    for i in range(3):
        array = array.write(i, x * tf.cast(i + 1, x.dtype))
    return array.stack()


def layer_norm(x):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)


@tf.custom_gradient
def clipped(x):
    return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1, 1)


@tf.function
def with_autograph(x):
    if tf.reduce_sum(x) > 0:
        return x * 2
    return x * 3


@functools.cache
def dense_layer():
    layer = tf.keras.layers.Dense(3, activation="relu", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=0))
    layer.build((None, 4))
    return layer


@functools.cache
def recurrent_layer():
    layer = tf.keras.layers.SimpleRNN(3, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=0))
    layer.build((None, 5, 4))
    return layer


@functools.cache
def saved_model():
    """A SavedModel, as loaded, with variables and a signature for any number of rows."""
    module = tf.Module()
    module.weights = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    module.predict = tf.function(
        lambda x: tf.tanh(x @ module.weights), input_signature=[tf.TensorSpec([None, 3], tf.float32)]
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        return tf.saved_model.load(folder)


def dense(x):
    return dense_layer()(x)


def recurrent(x):
    return recurrent_layer()(x)


def in_single(function):
    """The function of float32 arrays, for a model that takes no others."""
    return lambda x: tf.cast(function(tf.cast(x, tf.float32)), x.dtype)


@tf.RegisterGradient("JaxtfDoubledGradient")
def doubled(op, upstream):
    return 2 * upstream


def overridden(x):
    return tf.grad_pass_through(tf.round)(x)


def scan(x):
    return tf.scan(lambda total, row: total * 0.5 + row, x)


CASES = {
    "sin": Case(tf.sin, ((3,),)),
    "exp log1p": Case(lambda x: tf.exp(tf.math.log1p(tf.abs(x))), ((3, 2),)),
    "tanh sigmoid": Case(lambda x: tf.tanh(x) * tf.sigmoid(x), ((3, 2),)),
    "pow and divide": Case(lambda x, y: tf.abs(x) ** 1.5 / (tf.abs(y) + 1), ((4,), (4,))),
    "maximum": Case(tf.maximum, ((5,), (5,))),
    "where": Case(lambda x, y: tf.where(x > y, x, y * y), ((5,), (5,))),
    "cumsum": Case(lambda x: tf.cumsum(x, axis=1), ((2, 5),), terms=5),
    "reduce_logsumexp": Case(lambda x: tf.reduce_logsumexp(x, axis=0), ((4, 3),), terms=4),
    "argmax": Case(lambda x: tf.argmax(x, axis=1), ((4, 3),)),
    "sort": Case(tf.sort, ((7,),)),
    "top_k": Case(lambda x: tuple(tf.math.top_k(x, k=2)), ((7,),)),
    "softmax": Case(tf.nn.softmax, ((3, 4),), terms=4),
    "gelu": Case(tf.nn.gelu, ((6,),)),
    "conv2d": Case(lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), ((2, 5, 5, 3), (3, 3, 3, 4)), terms=100),
    "avg_pool2d": Case(lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), ((1, 4, 4, 2),), terms=4),
    "layer norm": Case(layer_norm, ((3, 8),), terms=50),
    "cross entropy": Case(
        lambda x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x),
        ((3, 4),),
        terms=8,
        integers=(np.array([0, 3, 1], np.int32),),
    ),
    "resize": Case(lambda x: tf.cast(tf.image.resize(x, (6, 6)), x.dtype), ((1, 3, 3, 2),), terms=20, single=True),
    "flip": Case(tf.image.flip_left_right, ((2, 3, 3, 1),)),
    "rfft": Case(lambda x: tf.abs(tf.signal.rfft(x)), ((8,),), terms=20),
    "matmul": Case(tf.matmul, ((3, 4), (4, 5)), terms=5),
    "einsum": Case(lambda x, y: tf.einsum("bij,bjk->bik", x, y), ((2, 3, 4), (2, 4, 3)), terms=4),
    "cholesky": Case(lambda x: tf.linalg.cholesky(spd(x)), ((3, 3),), terms=60),
    "norm": Case(tf.norm, ((3, 3),), terms=9),
    "gather": Case(tf.gather, ((5, 2),), terms=2, integers=(np.array([4, 0, 4], np.int32),)),
    "scatter": Case(
        lambda x, i: tf.scatter_nd(i[:, None], x, [6, 2]), ((3, 2),), terms=2, integers=(np.array([5, 0, 5], np.int32),)
    ),
    "one_hot": Case(lambda i: tf.one_hot(i, 4), (), integers=(np.array([3, 0], np.int32),)),
    "concat and split": Case(lambda x, y: tf.split(tf.concat([x, y], 0), 2), ((3, 2), (1, 2))),
    "pad and tile": Case(lambda x: tf.tile(tf.pad(x, [[1, 0], [0, 2]]), [2, 1]), ((2, 2),), terms=2),
    "strided slice": Case(lambda x: x[::-2, 1:, None], ((5, 3),)),
    "bit operations": Case(
        tf.bitwise.bitwise_xor, (), integers=(np.array([5, 9], np.uint8), np.array([3, 1], np.uint8))
    ),
    "logical": Case(lambda x: tf.reduce_all(x > -9), ((5,),)),
    # The default algorithm, "auto_select", is another one for XLA than for eager TensorFlow.
    "stateless random": Case(
        lambda x: x * tf.random.stateless_uniform(x.shape, [1, 2], dtype=x.dtype, alg="philox"), ((5,),)
    ),
    "while_loop": Case(loop, ((4,),), terms=8),
    "cond": Case(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.sin(x)), ((4,),)),
    "map_fn": Case(lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), ((3, 2),), terms=4),
    "TensorArray": Case(tensor_array, ((2,),), terms=3),
    "erf and lgamma": Case(lambda x: tf.math.erf(x) + tf.math.lgamma(tf.abs(x) + 1), ((4,),), terms=4),
    "igamma": Case(lambda x: tf.math.igamma(tf.constant(2, x.dtype), tf.abs(x) + 1), ((4,),), terms=40),
    "cumprod": Case(lambda x: tf.math.cumprod(x + 2), ((4,),), terms=20),
    "reduce_prod": Case(lambda x: tf.reduce_prod(x, axis=1), ((3, 3),), terms=4),
    "l2_normalize": Case(lambda x: tf.nn.l2_normalize(x, -1), ((3, 4),), terms=8),
    "clip_by_value": Case(lambda x: tf.clip_by_value(x, -0.5, 0.5), ((6,),)),
    "max_pool2d": Case(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), ((1, 4, 4, 2),)),
    "depthwise_conv2d": Case(
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME"), ((1, 4, 4, 2), (2, 2, 2, 1)), terms=40
    ),
    "conv1d": Case(lambda x, k: tf.nn.conv1d(x, k, 2, "SAME"), ((1, 6, 2), (3, 2, 3)), terms=20),
    "conv2d_transpose": Case(
        lambda x, k: tf.nn.conv2d_transpose(x, k, (1, 6, 6, 2), 2), ((1, 3, 3, 2), (2, 2, 2, 2)), terms=20
    ),
    "leaky_relu and softplus": Case(lambda x: tf.nn.leaky_relu(x) + tf.nn.softplus(x), ((6,),)),
    "rgb_to_grayscale": Case(tf.image.rgb_to_grayscale, ((1, 2, 2, 3),), terms=4, single=True),
    "per_image_standardization": Case(tf.image.per_image_standardization, ((3, 3, 3),), terms=60, single=True),
    "crop and rotate": Case(lambda x: tf.image.rot90(tf.image.central_crop(x, 0.5)), ((1, 4, 4, 1),)),
    "stft": Case(lambda x: tf.abs(tf.signal.stft(x, 4, 2)), ((8,),), terms=40),
    "dct": Case(tf.signal.dct, ((8,),), terms=40),
    "frame and overlap_and_add": Case(
        lambda x: tf.signal.overlap_and_add(tf.signal.frame(x, 4, 2), 2), ((8,),), terms=4
    ),
    "inverse": Case(lambda x: tf.linalg.inv(spd(x)), ((3, 3),), terms=60),
    "triangular_solve": Case(
        lambda x, y: tf.linalg.triangular_solve(tf.linalg.cholesky(spd(x)), y), ((3, 3), (3, 2)), terms=100
    ),
    "determinant": Case(lambda x: tf.linalg.det(spd(x)), ((3, 3),), terms=100),
    "qr": Case(lambda x: tf.abs(tf.linalg.qr(spd(x))[1]), ((3, 3),), terms=400),
    "eigenvalues": Case(lambda x: tf.linalg.eigvalsh(spd(x)), ((3, 3),), terms=400),
    "singular values": Case(lambda x: tf.linalg.svd(spd(x), compute_uv=False), ((3, 3),), terms=400),
    "band_part and trace": Case(lambda x: tf.linalg.trace(tf.linalg.band_part(x, 1, 0)), ((4, 4),), terms=4),
    "segment_sum": Case(
        lambda x, i: tf.math.unsorted_segment_sum(x, i, 3), ((4, 2),), terms=4, integers=(np.array([0, 2, 0, 1]),)
    ),
    "tensor_scatter_nd_update": Case(
        lambda x, i: tf.tensor_scatter_nd_update(x, i[:, None], 2 * x[:2]),
        ((4, 2),),
        terms=2,
        integers=(np.array([3, 0]),),
    ),
    "roll and reverse": Case(lambda x: tf.roll(tf.reverse(x, [1]), 1, axis=0), ((3, 4),)),
    "bincount": Case(
        lambda i: tf.math.bincount(i, minlength=4, maxlength=4),
        (),
        integers=(np.array([1, 3, 1], np.int32),),
    ),
    "stateless normal": Case(
        lambda x: x + tf.random.stateless_normal(x.shape, [3, 4], dtype=x.dtype, alg="philox"), ((5,),), terms=8
    ),
    "switch_case": Case(
        lambda x, i: tf.switch_case(i, [lambda: x, lambda: 2 * x]), ((3,),), integers=(np.array(1, np.int32),)
    ),
    "scan": Case(scan, ((4, 2),), terms=8),
    "tf.numpy": Case(lambda x: tf.experimental.numpy.matmul(x, tf.experimental.numpy.transpose(x)), ((3, 4),), terms=8),
    "Keras Dense": Case(in_single(dense), ((2, 4),), terms=8, single=True),
    "Keras SimpleRNN": Case(in_single(recurrent), ((2, 5, 4),), terms=60, single=True),
    "SavedModel": Case(in_single(lambda x: saved_model().predict(x)), ((2, 3),), terms=8, single=True),
    "grad_pass_through": Case(overridden, ((4,),)),
    "boolean_mask": Case(lambda x: tf.boolean_mask(x, x > 0), ((5,),)),
    "unique": Case(lambda i: tf.unique(i)[0], (), integers=(np.array([3, 1, 3], np.int32),)),
    "string": Case(lambda i: tf.strings.length(tf.strings.as_string(i)), (), integers=(np.array([3, 100], np.int32),)),
    "ragged": Case(tf.ragged.range, (), integers=(np.array([3, 1], np.int32),)),
    "custom gradient": Case(clipped, ((4,),)),
    "autograph": Case(with_autograph, ((4,),)),
}


# What does not work, and the reason: the message of the error has it. "jit" is every staged call, so also vmap.
PAGE = Path(__file__).resolve().parents[3] / "docs" / "calltf_coverage.md"
DYNAMIC = "output has dynamic shape"
LIMITS = {
    ("resize", "jvp"): "ResizeBilinearGrad, which TensorFlow defines as zero",
    ("crop and rotate", "jvp"): "registry has no entry for: XlaDynamicUpdateSlice",
    ("autograph", "jvp"): "Error compiling TensorFlow function vjp_vjp_with_autograph",
    ("determinant", "jit"): "MatrixDeterminant",
    ("boolean_mask", "jit"): DYNAMIC,
    ("unique", "jit"): DYNAMIC,
    ("bincount", "jit"): DYNAMIC,
    ("string", "jit"): "AsString",
    ("ragged", "eager"): "not convertible to JAX",
    ("ragged", "jit"): "not convertible to JAX",
}
# A custom gradient that is not linear has no forward derivative to compare with.
NOT_COMPARED = {("custom gradient", "jvp")}
MODES = ("eager", "jit", "grad", "jvp", "vmap")


# Of later releases of TensorFlow than the page's, what they compile.
WORKS = {("determinant", "jit")} if tf.__version__ >= "2.22" else set()


def limit(name, mode):
    """Why a case does not work in a mode; None if it does."""
    staged = ("jit",) if mode in ("jvp", "vmap") else ()
    return next((LIMITS[name, m] for m in (mode, *staged) if (name, m) in LIMITS), None)


def works(mode, *, differentiable=True):
    """The names of the cases that work in a mode."""
    return [
        name
        for name, case in CASES.items()
        if limit(name, mode) is None and (name, mode) not in NOT_COMPARED and (case.shapes or not differentiable)
    ]


def cell(name: str, mode: str) -> str:
    """What the table says of a function in a mode."""
    if mode not in ("eager", "jit") and not CASES[name].shapes:
        return "-"
    if (name, mode) in NOT_COMPARED:
        return "runs; no reference"
    reason = limit(name, mode)
    return "yes" if reason is None else f"no: {reason}"


def page() -> str:
    """The page."""
    rows = [f"| {name} | " + " | ".join(cell(name, mode) for mode in MODES) + " |" for name in CASES]
    return "\n".join(
        [
            "# `call_tf`: what works where",
            "",
            f"{len(CASES)} TensorFlow functions, compared with TensorFlow's own results and gradients by",
            "`packages/calltf/tests/test_battery.py`: called eagerly, under `jax.jit`, differentiated by `jax.grad`",
            "(eagerly, and under `jit` where that works), by `jax.jvp`, and vectorized by `jax.vmap`. Where it says",
            "no, the test compares the error with the reason.",
            "Made by `python packages/calltf/tests/battery_table.py`; do not edit.",
            "",
            "| function | " + " | ".join(MODES) + " |",
            "| --- |" + " --- |" * len(MODES),
            *rows,
            "",
        ]
    )


@pytest.fixture(autouse=True)
def captures_are_expected():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="call_tf works best", category=UserWarning)
        yield


def arguments(case, dtype):
    return [RNG.normal(size=shape).astype(dtype) for shape in case.shapes] + list(case.integers)


def reference(case, args):
    """TensorFlow's results, and its gradient with respect to the floating point arguments."""
    tensors = [tf.constant(arg) for arg in args]
    sources = tensors[: len(case.shapes)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        results = tf.nest.flatten(case.function(*tensors))
        differentiable = [result for result in results if result.dtype.is_floating]
    if not (differentiable and sources):
        return [result.numpy() for result in results], []
    gradients = tape.gradient(differentiable, sources, unconnected_gradients="zero")
    return [result.numpy() for result in results], [tf.convert_to_tensor(g).numpy() for g in gradients]


def assert_close(found, expected, terms, single=False):
    """Within a few units in the last place of the largest magnitude, per summed term."""
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        assert x.dtype == jax.dtypes.canonicalize_dtype(y.dtype)
        if not np.issubdtype(y.dtype, np.inexact):
            np.testing.assert_array_equal(x, y)
            continue
        bound = (
            8 * (1 + terms) * np.finfo(np.float32 if single else y.dtype).eps * max(1.0, np.max(np.abs(y), initial=0))
        )
        np.testing.assert_allclose(x, y, rtol=0, atol=bound)


def gradient(function, case, args):
    """The gradient of the sum of all floating point results, in JAX."""

    def total(*floats):
        results = jax.tree.leaves(function(*floats, *args[len(case.shapes) :]))
        return sum(r.sum() for r in results if np.issubdtype(r.dtype, np.floating))

    return jax.grad(total, argnums=tuple(range(len(case.shapes))))


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", works("eager", differentiable=False))
def test_a_tensorflow_function_gives_its_results_and_gradients_in_jax(name):
    compare(name, np.float32)


@pytest.mark.parametrize("name", [name for name in works("eager") if CASES[name].terms <= QUICK])
def test_the_same_holds_with_64_bit_types(name):
    with jax.enable_x64(True):
        compare(name, np.float64)


def compare(name, dtype):
    case = CASES[name]
    args = arguments(case, dtype)
    results, gradients = reference(case, args)
    function = call_tf(case.function)
    floats = args[: len(case.shapes)]
    stages = [(lambda f: f, 0)] + ([(jax.jit, case.terms)] if limit(name, "jit") is None else [])

    for stage, terms in stages:
        assert_close(jax.tree.leaves(stage(function)(*args)), results, terms, case.single and stage is jax.jit)
        if gradients:
            assert_close(stage(gradient(function, case, args))(*floats), gradients, case.terms, case.single)


@pytest.mark.parametrize(("name", "mode"), [key for key in LIMITS if key not in WORKS])
def test_what_does_not_work_says_why(name, mode):
    case = CASES[name]
    args = arguments(case, np.float32)
    function = call_tf(case.function)
    floats, rest = args[: len(case.shapes)], args[len(case.shapes) :]
    attempts = {
        "eager": function,
        "jit": jax.jit(function),
        "jvp": jax.jit(lambda *_: jax.jvp(lambda *xs: function(*xs, *rest), floats, floats)),
    }
    with pytest.raises(Exception, match=LIMITS[name, mode]) as raised:
        attempts[mode](*args)
    assert isinstance(raised.value, ValueError | NotImplementedError | LookupError)


@pytest.mark.parametrize("name", works("jvp"))
def test_forward_mode_agrees_with_tensorflows_reverse_mode(name):
    """The sum of all floating point results changes along a tangent by the product with their gradient."""
    case = CASES[name]
    args = arguments(case, np.float32)
    floats, rest = args[: len(case.shapes)], args[len(case.shapes) :]
    tangents = [RNG.normal(size=x.shape).astype(np.float32) for x in floats]
    _, gradients = reference(case, args)
    expected = sum(np.vdot(gradient, tangent) for gradient, tangent in zip(gradients, tangents, strict=False))
    scale = sum(np.abs(gradient * tangent).sum() for gradient, tangent in zip(gradients, tangents, strict=False))

    def pushed(*floats):
        return jax.jvp(lambda *floats: call_tf(case.function)(*floats, *rest), floats, tuple(tangents))[1]

    for stage in (lambda f: f, jax.jit) if case.terms <= QUICK else (jax.jit,):
        found = sum(t.sum() for t in jax.tree.leaves(stage(pushed)(*floats)) if np.issubdtype(t.dtype, np.floating))
        bound = 8 * (1 + case.terms) * np.finfo(np.float32).eps * max(1.0, scale)
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", works("vmap"))
def test_vmap_gives_the_stacked_results_and_gradients_of_the_elements(name):
    case = CASES[name]
    batch = [arguments(case, np.float32) for _ in range(3)]
    elements = [reference(case, args) for args in batch]
    results, gradients = ([np.stack(leaf) for leaf in zip(*part, strict=True)] for part in zip(*elements, strict=True))
    floats = [np.stack([args[i] for args in batch]) for i in range(len(case.shapes))]
    rest = batch[0][len(case.shapes) :]
    function = jax.vmap(lambda *floats: call_tf(case.function)(*floats, *rest))

    for stage in (lambda f: f, jax.jit):
        assert_close(jax.tree.leaves(stage(function)(*floats)), results, case.terms)
        if gradients and (stage is jax.jit or case.terms <= QUICK):
            found = stage(
                gradient(lambda *floats, function=function: function(*floats), case._replace(integers=()), floats)
            )(*floats)
            assert_close(found, gradients, case.terms)


def test_the_battery_is_large_and_its_page_is_up_to_date():
    assert len(CASES) >= 60
    assert PAGE.read_text() == page()
