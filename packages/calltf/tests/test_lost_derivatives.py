"""A derivative is that of the operation, or refused: TensorFlow takes some for zero that are not, or has others.

Operations are drawn and their derivatives compared with differences: a fixed number always, `RANDOM_PROGRAMS` of each
type, others each time, in the session `random_operations`.
"""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject
from hypothesis import strategies as st
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry, ops

from jaxtf.calltf import CompilationError, UnsupportedError, call_tf
from jaxtf.calltf._lost_derivatives import ZERO
from jaxtf.calltf._tf import is_declared_not_differentiable

from .batched import MAKERS, operations
from .batched.sampling import FULL, sampled

# Their operands depend on each other, or are symmetric, or rounded; or it is what they are for.
WITHOUT_DIFFERENCES = {
    *("Cast", "Cholesky", "SelfAdjointEigV2", "FusedBatchNormGradV3", "StopGradient"),
    *(name for name in MAKERS if name.startswith("MaxPool") and "Grad" in name),
}
NOT_OF_REAL_NUMBERS = {
    *("All", "Angle", "Any", "ApproximateEqual", "ArgMax", "ArgMin", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    *("Bucketize", "Complex", "ComplexAbs", "Conj", "ConjugateTranspose", "Equal", "FFT", "FFT2D", "FFT3D", "Greater"),
    *("GreaterEqual", "IFFT", "IFFT2D", "IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "Imag", "Invert", "IsFinite", "IsInf"),
    *("IsNan", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "LowerBound", "NotEqual"),
    *("RFFT", "RFFT2D", "RFFT3D", "Rank", "Real", "RightShift", "Shape", "ShapeN", "Size", "TruncateDiv", "UpperBound"),
}


def pad_and_more(x):
    return tf.pad([1.0, 2.0], [[1, 1]], constant_values=x) * x


LOST = {
    "PadV2 (constant_values)": lambda x: tf.pad([1.0, 2.0], [[1, 1]], constant_values=x),
    "OneHot (on_value)": lambda x: tf.one_hot([0, 1], 3, on_value=x),
    "OneHot (off_value)": lambda x: tf.one_hot([0, 1], 3, off_value=x),
    "MatrixDiagV3 (padding_value)": lambda x: tf.linalg.diag([1.0, 2.0], padding_value=x),
    "MatrixDiagPartV3 (padding_value)": lambda x: tf.linalg.diag_part(tf.ones((2, 2)), k=(0, 1), padding_value=x),
    "Polygamma (a)": lambda x: tf.math.polygamma(x, 2.0),
    "Zeta (x)": lambda x: tf.math.zeta(x, 2.0),
    "Betainc (a)": lambda x: tf.math.betainc(x, 2.0, 0.5),
    "FusedBatchNormV3 (mean)": lambda x: (
        tf.raw_ops.FusedBatchNormV3(
            x=tf.ones((1, 1, 1, 1)), scale=[1.0], offset=[0.0], mean=x[None], variance=[1.0], is_training=False
        ).y
    ),
    "FusedBatchNormV3 (x)": lambda x: (
        tf.raw_ops.FusedBatchNormV3(
            x=tf.fill((1, 2, 1, 1), x), scale=[1.0], offset=[0.0], mean=[], variance=[], is_training=True
        ).batch_mean
    ),
    "LinSpace (start)": lambda x: tf.raw_ops.LinSpace(start=x, stop=5.0, num=3),
}
IN_PLACES = {
    "a branch": lambda x: tf.cond(x > 0, lambda: LOST["PadV2 (constant_values)"](x), lambda: tf.zeros(4)),
    "a loop": lambda x: tf.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, tf.pad(y[1:-1], [[1, 1]], constant_values=x)), (0, tf.zeros(4))
    )[1],
    "a function": tf.function(lambda x: tf.function(LOST["PadV2 (constant_values)"])(x) * 2),
    "a function, beside others": tf.function(pad_and_more),
    "recomputed": tf.recompute_grad(LOST["PadV2 (constant_values)"]),
    "recomputed in a function": tf.function(lambda x: tf.recompute_grad(LOST["PadV2 (constant_values)"])(x) * 2),
}
DERIVATIVES = {
    "gradient": jax.grad,
    "staged": lambda f: jax.jit(jax.grad(f)),
    "forward": lambda f: lambda x: jax.jvp(f, (x,), (x,))[1],
    "batch": lambda f: lambda x: jax.vmap(jax.grad(f))(x[None])[0],
}


def total(function):
    return lambda x: call_tf(function)(x).sum()


# Not looked for in eager mode, where the argument has a gradient; not compiled by TensorFlow.
NOT_ASKED = {("FusedBatchNormV3 (x)", "gradient"), ("MatrixDiagPartV3 (padding_value)", "batch")}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in [*LOST, *IN_PLACES] for kind in DERIVATIVES if (name, kind) not in NOT_ASKED],
)
def test_a_derivative_that_tensorflow_takes_for_zero_is_refused(name, kind):
    lost = name if name in LOST else "PadV2 (constant_values)"
    with pytest.raises(UnsupportedError) as refused:
        DERIVATIVES[kind](total((LOST | IN_PLACES)[name]))(jnp.float32(3))
    assert lost in str(refused.value)
    assert "tf.stop_gradient" in str(refused.value)


BESIDE = {
    "it is": pad_and_more,
    "a function": lambda x: tf.function(LOST["PadV2 (constant_values)"])(x) * x,
    "a function in a function": lambda x: tf.function(lambda x: tf.function(pad_and_more)(x) + x)(x) * 1.0,
    "a branch": lambda x: IN_PLACES["a branch"](x) * x,
    "a loop": lambda x: IN_PLACES["a loop"](x) * x,
    "compiled": lambda x: tf.function(pad_and_more, jit_compile=True)(x) * 1.0,
    "recomputed": tf.recompute_grad(pad_and_more),
    "recomputed twice": tf.recompute_grad(lambda x: tf.recompute_grad(pad_and_more)(x) * x),
}


@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize("place", BESIDE)
def test_it_is_refused_beside_others_of_the_same_argument(place, kind):
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="constant_values"):
            DERIVATIVES[kind](total(BESIDE[place]))(jnp.float32(3))


def test_what_runs_is_observed_where_it_cannot_be_traced():
    def function(x, y):
        return pad_and_more(x) * y * float(y.numpy())

    call = call_tf(function)
    with pytest.raises(UnsupportedError, match=r"derivative of function needs that of PadV2 \(constant_values\)"):
        jax.grad(lambda x: call(x, 2.0).sum())(3.0)
    assert jax.grad(lambda y: call(3.0, y).sum())(2.0) == 27 * 2.0


# TensorFlow's derivatives are of the argument that is meant, or the user's own.
NOT_LOST = {
    "a gradient of its own": (tf.custom_gradient(lambda x: (pad_and_more(x), lambda u: 2 * tf.reduce_sum(u))), 8.0),
    "stopped": (lambda x: tf.pad([1.0, 2.0], [[1, 1]], constant_values=tf.stop_gradient(x)) * x, 9.0),
    "a number made of an integer": (lambda x: x * tf.reduce_sum(tf.range(0.0, tf.cast(tf.shape(x), x.dtype)[0])), 0.0),
    "recomputed": (
        tf.recompute_grad(lambda x: tf.pad([x * x], [[0, 1]], constant_values=tf.stop_gradient(x)) * x),
        30.0,
    ),
    "of its shape": (lambda x: x * tf.one_hot([0], 2, on_value=tf.cast(tf.size(x), x.dtype)), 1.0),
}


@pytest.mark.parametrize("name", NOT_LOST)
def test_an_eager_derivative_that_is_not_lost_is_tensorflows(name):
    function, due = NOT_LOST[name]
    x = jnp.ones(1) * 3 if "number" in name else jnp.float32(3)
    assert jax.grad(total(function))(x) == due


# What a function does on one value of a flag of Python, and on the other: nothing, or something else with the same
# operations. Each pair has the derivative of the second at 3, or the name of what it loses.
def made_of(x):
    return tf.one_hot([0, 1], 2, on_value=x)


STATES = {
    "not used": (lambda x: x * 2.0, lambda x: x * made_of(x)[0, 0], "OneHot (on_value)"),
    "counted": (
        lambda x: x * x + tf.cast(tf.math.count_nonzero(made_of(x)), tf.float32),
        lambda x: x * x + tf.reduce_sum(made_of(x)),
        "OneHot (on_value)",
    ),
    "a gradient of its own": (
        lambda x: tf.custom_gradient(lambda x: (tf.reduce_sum(made_of(x)), lambda u: 2 * u))(x) * x,
        lambda x: tf.identity(tf.reduce_sum(made_of(x))) * x,
        "OneHot (on_value)",
    ),
    "recomputed": (
        lambda x: tf.custom_gradient(lambda x: (tf.reduce_sum(made_of(x)), lambda u: 2 * u))(x) * x,
        lambda x: tf.recompute_grad(lambda x: tf.reduce_sum(made_of(x)))(x) * x,
        "OneHot (on_value)",
    ),
    "in a function": (
        lambda x: tf.function(lambda x: (made_of(x), x * x))(x)[1],
        lambda x: tf.function(lambda x: (made_of(x), x * x))(x)[0] * x,
        "OneHot (on_value)",
    ),
    "stopped": (lambda x: x * made_of(x)[0, 0], lambda x: x * made_of(tf.stop_gradient(x))[0, 0], 3.0),
    "no longer": (lambda x: x * made_of(x)[0, 0], lambda x: tf.reduce_sum(made_of(x)) * 0 + x * x, "OneHot (on_value)"),
    "no longer used": (lambda x: x * made_of(x)[0, 0], lambda x: tf.constant(7.0), 0.0),
}
EAGER = {
    "grad": jax.grad,
    "jvp": DERIVATIVES["forward"],
    "grad of grad": lambda f: jax.grad(jax.grad(lambda x: f(x) * x)),
    "jvp of grad": lambda f: DERIVATIVES["forward"](jax.grad(lambda x: f(x) * x)),
}


@pytest.mark.parametrize("kind", EAGER)
@pytest.mark.parametrize("state", STATES)
def test_an_eager_derivative_is_that_of_what_python_does_now(state, kind):
    before, after, due = STATES[state]
    flag = False
    call = call_tf(lambda x: after(x) if flag else before(x))

    def function(x):
        return call(x).sum()

    x = jnp.float32(3)
    for derivative in (EAGER[kind], lambda f: jax.jit(jax.grad(f))):
        with contextlib.suppress(UnsupportedError):
            derivative(function)(x)
    flag = True
    if isinstance(due, str):
        with pytest.raises(UnsupportedError) as refused:
            EAGER[kind](function)(x)
        assert due in str(refused.value)
    else:
        expected = {"grad": due, "jvp": due * 3, "grad of grad": 2 * due, "jvp of grad": 2 * due * 3}[kind]
        np.testing.assert_allclose(EAGER[kind](function)(x), expected, rtol=1e-5)


def test_python_runs_once_where_nothing_may_be_lost():
    runs = []

    def function(x):
        runs.append(x)
        return tf.pad(x, [[1, 1]]) * tf.range(tf.cast(tf.size(x), tf.float32) + 2) * tf.function(tf.sin)(x[0])

    jax.grad(total(function))(jnp.ones(3))
    assert len(runs) == 1


def test_nothing_is_observed_once_it_has_run():
    with pytest.raises(ZeroDivisionError):
        jax.grad(total(lambda x: x / (1 // int(x.numpy()))))(jnp.float32(0))
    jax.grad(total(lambda x: x))(jnp.float32(0))
    assert not context.context().op_callbacks


def test_the_values_of_a_range_have_no_derivative_with_respect_to_its_start():
    with pytest.raises(UnsupportedError, match=r"Range \(start\)"):
        jax.grad(total(lambda x: tf.range(x, x + 2.5)))(jnp.float32(3))


def diagonals(bounds):
    """What the older operations on diagonals make of a matrix, each of which has a gradient."""

    def function(x):
        matrix = x * tf.reshape(tf.range(12.0), (3, 4))
        part = tf.raw_ops.MatrixDiagPartV2(input=matrix, k=bounds, padding_value=0.0)
        made = tf.raw_ops.MatrixDiagV2(diagonal=part, k=bounds, num_rows=3, num_cols=4, padding_value=0.0)
        return made * tf.raw_ops.MatrixSetDiagV2(input=matrix, diagonal=part, k=bounds)

    return function


@pytest.mark.parametrize("kind", [kind for kind in DERIVATIVES if kind != "gradient"])
def test_a_derivative_by_several_diagonals_is_refused_in_its_older_form(kind):
    with pytest.raises(UnsupportedError) as refused:
        DERIVATIVES[kind](total(diagonals([0, 2])))(jnp.float32(3))
    for lost in ("MatrixDiagPartV2 (input)", "MatrixDiagV2 (diagonal)", "MatrixSetDiagV2 (diagonal)"):
        assert lost in str(refused.value)


@pytest.mark.parametrize("bounds", [1, [1], [1, 1]])
def test_that_by_one_diagonal_is_right(bounds):
    found = jax.grad(total(diagonals(bounds)))(jnp.float32(3))
    np.testing.assert_allclose(found, 6 * (1**2 + 6**2 + 11**2), rtol=1e-6)


def concatenated(x):
    sparse = tf.SparseTensor([[0]], x[None], [2])
    return tf.sparse.concat(0, [sparse, sparse]).values


@pytest.mark.parametrize(
    ("function", "lost"),
    [
        (concatenated, "SparseConcat (values)"),
        (lambda x: tf.random.shuffle([x, x * 2]), "RandomShuffle (value)"),
        (
            lambda x: tf.raw_ops.ScaleAndTranslate(
                images=tf.ones((1, 4, 4, 1)), size=[2, 2], scale=[x, x], translation=[0.0, 0.0]
            ),
            "ScaleAndTranslate (scale)",
        ),
        (
            lambda x: tf.raw_ops.ImageProjectiveTransformV3(
                images=tf.ones((1, 4, 4, 1)),
                transforms=[[x, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]],
                output_shape=[4, 4],
                fill_value=0.0,
                interpolation="BILINEAR",
            ),
            "ImageProjectiveTransformV3 (transforms)",
        ),
    ],
    ids=["sparse", "shuffle", "scale", "projection"],
)
def test_what_tensorflow_does_not_compile_is_refused_in_eager_mode(function, lost):
    with pytest.raises(UnsupportedError) as refused:
        jax.grad(total(function))(jnp.float32(3))
    assert lost in str(refused.value)


def test_the_gradient_of_a_cross_entropy_has_none_with_respect_to_the_labels():
    def loss(logits, labels):
        return call_tf(lambda a, b: tf.nn.softmax_cross_entropy_with_logits(b, a))(logits, labels).sum()

    logits, labels = jnp.array([[1.0, 2.0, 0.5]]), jnp.array([[0.2, 0.5, 0.3]])
    first = jax.grad(loss, (0, 1))(logits, labels)
    np.testing.assert_allclose(first[0], jax.nn.softmax(logits) - labels, rtol=1e-5)
    np.testing.assert_allclose(first[1], -jax.nn.log_softmax(logits), rtol=1e-5)
    expected = jax.hessian(lambda x: -(labels * jax.nn.log_softmax(x)).sum())(logits)
    np.testing.assert_allclose(jax.hessian(loss)(logits, labels), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(UnsupportedError, match="labels"):
        jax.jacobian(jax.grad(loss), 1)(logits, labels)


@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: tf.pad([1.0, 2.0], [[1, 1]], constant_values=tf.stop_gradient(x)) * x, 9),
        (lambda x: tf.cast(tf.pad([1.0, 2.0], [[1, 1]], constant_values=x) > 0, tf.float32) * x, 4),
        (
            tf.custom_gradient(lambda x: (tf.pad([1.0], [[0, 1]], constant_values=x), lambda u: tf.reduce_sum(u) * 7)),
            14,
        ),
        (lambda x: tf.constant(1.0), 0),
        (lambda x: (tf.pad([1.0], [[0, 1]], constant_values=x), x * 2)[1], 2),
    ],
    ids=["stopped", "of a comparison", "gradient of its own", "not used", "not returned"],
)
def test_a_derivative_that_is_zero_there_is_none_that_is_lost(function, slope, kind):
    x = jnp.float32(3)
    found = DERIVATIVES[kind](total(function))(x)
    np.testing.assert_allclose(found, slope * (x if kind == "forward" else 1), rtol=1e-6)


def test_a_function_that_cannot_be_traced_is_not_asked():
    assert jax.grad(total(lambda x: tf.constant(float(x.numpy()))))(jnp.float32(3)) == 0


# --- drawn ---


def smooth(operation, seed, dtype):
    """The operation on operands of a dtype, without ties, integers and zeros, where derivatives jump."""
    random = np.random.default_rng(seed)

    def moved(operand):
        if isinstance(operand, list):
            return [moved(x) for x in operand]
        values = operand.values[0] if operand.batched else operand.values
        if values.dtype.kind == "f":
            near = np.where(values == 0, 0.09, values) * random.uniform(0.9, 0.99, values.shape)
            values = np.asarray(values if operand.constant else near, dtype)
        return dataclasses.replace(operand, values=values, batched=False)

    return dataclasses.replace(operation, operands=[moved(operand) for operand in operation.operands])


def computed(operation, seed):
    """The operation in 64 bits, or 32 where TensorFlow has it in these alone; a step, a tolerance, and its results."""
    for dtype, step, tolerance in ((np.float64, 1e-4, 1e-3), (np.float32, 1e-2, 5e-2)):
        made = smooth(operation, seed, dtype)
        try:
            return made, step, tolerance, made(*(tf.constant(x.values) for x in made.arguments()))
        except (tf.errors.OpError, TypeError):
            pass
    return reject()


def has_the_derivatives_of_differences(operation, seed):
    operation, step, tolerance, results = computed(operation, seed)
    arguments = [x.values for x in operation.arguments()]
    places = [i for i, values in enumerate(arguments) if values.dtype.kind == "f" and values.size]
    random = np.random.default_rng(seed)
    kept = [i for i, result in enumerate(results) if result.dtype.is_floating]
    if not places or not kept or any(np.abs(results[i].numpy()).max(initial=0) > 1e30 for i in kept):
        reject()  # nothing to differentiate; the largest of nothing
    weights = [np.asarray(random.uniform(-1, 1, results[i].shape), results[i].dtype.as_numpy_dtype) for i in kept]
    steps = {i: random.uniform(-1, 1, arguments[i].shape) for i in places}

    def at(distance):
        moved = [values + distance * steps[i] if i in steps else values for i, values in enumerate(arguments)]
        found = operation(*(tf.constant(x, values.dtype) for x, values in zip(moved, arguments, strict=True)))
        return sum(np.sum(weight * found[i].numpy()) for weight, i in zip(weights, kept, strict=True))

    def weighted(*chosen):
        whole = list(arguments)
        for i, values in zip(places, chosen, strict=True):
            whole[i] = values
        found = call_tf(operation)(*whole)
        return sum(jnp.sum(weight * found[i]) for weight, i in zip(weights, kept, strict=True))

    try:
        gradients = jax.jit(jax.grad(weighted, tuple(range(len(places)))))(*(arguments[i] for i in places))
    except (UnsupportedError, LookupError):  # refused, by us or by TensorFlow
        return
    except (TypeError, ValueError) as error:
        if not any(text in str(error) for text in FAULTS_OF_GRADIENTS):
            raise
        return
    slope = sum(np.sum(steps[i] * np.asarray(gradient)) for i, gradient in zip(places, gradients, strict=True))
    expected = (at(step) - at(-step)) / (2 * step)
    np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=tolerance, err_msg=str(operation))
    chosen = tuple(jnp.asarray(arguments[i]) for i in places)
    moved = tuple(jnp.asarray(steps[i], arguments[i].dtype) for i in places)
    try:
        forward = jax.jit(lambda *xs: jax.jvp(weighted, xs, moved)[1])(*chosen)
    except (UnsupportedError, LookupError, CompilationError):
        return
    except (TypeError, ValueError) as error:
        if not any(text in str(error) for text in FAULTS_OF_GRADIENTS):
            raise
        return
    accuracy = 1e-3 if any(x.dtype == np.float32 for x in chosen) else 1e-9
    np.testing.assert_allclose(forward, slope, rtol=accuracy, atol=accuracy, err_msg=f"forward mode of {operation}")


# What TensorFlow's gradients fail by: of a ConcatV2 along an axis of int64; of a diagonal outside of its matrix; of one
# element that GatherNd takes.
FAULTS_OF_GRADIENTS = (
    *("Op has type int32 that does not match type int64", "diag_index is out of bound"),
    "Shape must be at least rank 1 but is rank 0 for '{{node gradient_tape/ScatterNd",
)
DIFFERENTIABLE = [name for name in MAKERS if name not in WITHOUT_DIFFERENCES | NOT_OF_REAL_NUMBERS]


@pytest.mark.slow
@given(st.sampled_from(DIFFERENTIABLE).flatmap(operations), st.integers(0, 999))
@sampled(40, is_fixed=True)
def test_derivatives_are_those_of_differences(operation, seed):
    with jax.enable_x64(True):
        has_the_derivatives_of_differences(operation, seed)


@pytest.mark.parametrize("name", DIFFERENTIABLE if FULL else ["PadV2", "OneHot", "FusedBatchNormV3"])
def test_derivatives_of_one_type_are_those_of_differences(name):
    @given(st.data())
    @sampled(5)
    def runs(data):
        with jax.enable_x64(True):
            has_the_derivatives_of_differences(data.draw(operations(name)), data.draw(st.integers(0, 999)))

    runs()
    jax.clear_caches()


# Declared by TensorFlow 2.21 not to be differentiable, from floats to floats: what is not zero is lost.
DECLARED = {
    *(
        "Assign",
        "AssignAdd",
        "AssignSub",
        "CTCBeamSearchDecoder",
        "CTCGreedyDecoder",
        "DrawBoundingBoxes",
        "RandomCrop",
    ),
    *("FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient", "GenerateBoundingBoxProposals", "HSVToRGB"),
    *("FakeQuantWithMinMaxVarsPerChannelGradient", "LoadAndRemapMatrix", "LookupTableFind", "LookupTableFindV2"),
    *("ParameterizedTruncatedNormal", "PyFunc", "PyFuncStateless", "RandomCrop", "ReduceDataset", "ResizeBilinearGrad"),
    *("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "ScatterAdd", "ScatterDiv", "ScatterMul"),
    *("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "ScatterSub", "SdcaOptimizer", "SdcaOptimizerV2", "StackPush"),
    *("SparseAddGrad", "TPUReplicatedInput", "TensorArrayGradV3", "TensorArrayGradWithShape", "XlaVariadicReduce"),
}
IN_PART = {"ExtractGlimpse", "LinSpace", "OneHot", "RaggedRange", "RandomShuffle", "Range", "SparseConcat"}
FLOATS = {dtype.as_datatype_enum for dtype in (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.complex64)}


def may_be_floats(argument, definition):
    if argument.type or argument.type_list_attr:
        return argument.type in FLOATS or bool(argument.type_list_attr)
    [allowed] = [set(attr.allowed_values.list.type) for attr in definition.attr if attr.name == argument.type_attr]
    return not allowed or bool(allowed & FLOATS)


def test_all_that_tensorflow_declares_not_differentiable_is_known():
    found = set()
    for name in ops.gradient_registry.list():
        definition = op_def_registry.get(name)
        if definition is not None and is_declared_not_differentiable(name):
            ends = (definition.input_arg, definition.output_arg)
            if all(any(may_be_floats(argument, definition) for argument in end) for end in ends):
                found.add(name)
    assert found == DECLARED | IN_PART | ZERO


LOGITS = np.float32([[[1, 2, 3]], [[3, 1, 2]], [[2, 9, 1]]])
NOT_DIFFERENTIABLE = {
    "HSVToRGB (images)": lambda x: tf.image.hsv_to_rgb(tf.ones((1, 3)) * x),
    "CTCGreedyDecoder (inputs)": lambda x: tf.nn.ctc_greedy_decoder(LOGITS * x, [3])[1],
    "CTCBeamSearchDecoder (inputs)": lambda x: tf.nn.ctc_beam_search_decoder(LOGITS * x, [3])[1],
    "DrawBoundingBoxes (boxes)": lambda x: tf.raw_ops.DrawBoundingBoxes(
        images=tf.ones((1, 3, 3, 1)), boxes=tf.ones((1, 1, 4)) * x
    ),
    "ExtractGlimpse (input)": lambda x: tf.raw_ops.ExtractGlimpse(
        input=x * tf.ones((1, 3, 3, 1)), size=[2, 2], offsets=[[0.0, 0.0]]
    ),
    "ParameterizedTruncatedNormal (means)": lambda x: tf.raw_ops.ParameterizedTruncatedNormal(
        shape=[3], means=x[None], stdevs=[1.0], minvals=[-9.0], maxvals=[9.0]
    ),
    "PyFunc (input)": lambda x: tf.ensure_shape(tf.numpy_function(np.square, [x], tf.float32), ()),
    "RaggedRange (starts)": lambda x: tf.ragged.range(x, x + 2.5).flat_values,
    "AsString (input)": lambda x: tf.strings.to_number(tf.as_string(x)),
    "SerializeTensor (tensor)": lambda x: tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32),
    "Cast (x)": lambda x: tf.cast(tf.cast(x, tf.dtypes.experimental.float8_e4m3fn), tf.float32),
}


@pytest.mark.parametrize("name", NOT_DIFFERENTIABLE)
@pytest.mark.parametrize("kind", ["gradient", "forward"])
def test_what_tensorflow_declares_not_differentiable_is_refused(name, kind):
    with pytest.raises(UnsupportedError) as refused:
        DERIVATIVES[kind](total(NOT_DIFFERENTIABLE[name]))(jnp.float32(3))
    assert name in str(refused.value)


@pytest.mark.parametrize("kind", ["gradient", "staged", "batch"])
def test_the_derivative_by_a_float_of_8_bits_is_refused(kind):
    with pytest.raises(UnsupportedError, match=r"of widened needs that of Cast \(x\)"):
        DERIVATIVES[kind](total(widened))(jnp.float8_e4m3fn(3))


def widened(x):
    return tf.cast(x, tf.float32) * 3.0


def by_python(x):
    return tf.ensure_shape(tf.py_function(tf.sin, [x], tf.float32), ()) * x


def test_second_derivatives_by_functions_of_python_are_refused():
    total_by_python = total(by_python)
    first = jax.grad(total_by_python)
    np.testing.assert_allclose(first(1.0), np.sin(1) + np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(total_by_python, (1.0,), (2.0,))[1], 2 * first(1.0), rtol=1e-6)
    unshaped = jax.grad(total(lambda x: tf.py_function(tf.sin, [x], tf.float32) * x))
    with pytest.raises(UnsupportedError, match="EagerPyFunc"):
        jax.grad(unshaped)(1.0)
    for second in (jax.grad(first), lambda x: jax.jvp(first, (x,), (1.0,))):
        with pytest.raises(UnsupportedError, match=r"of by_python needs that of EagerPyFunc \(input\)"):
            second(1.0)


def test_a_function_of_python_beside_a_second_derivative_is_not_refused():
    second = jax.grad(jax.grad(total(lambda x: x**3 + tf.py_function(tf.sin, [tf.stop_gradient(x)], tf.float32))))
    np.testing.assert_allclose(second(2.0), 12, rtol=1e-6)


def test_a_trace_may_have_fewer_results_than_the_call():
    call = call_tf(lambda x, z: (x * 2, x * 3) if tf.executing_eagerly() else (x * 2,))
    assert jax.grad(lambda x, z: call(x, z)[1], (0, 1))(1.0, 2.0) == (3.0, 0.0)


# --- complex numbers ---

MATRIX = np.array(
    [[0.3 + 1j, 0.6 + 2j, 0.1 - 1j], [0.9 - 1j, 1.2 + 0.8j, 2 - 0.3j], [1 + 1j, 0.2j, 3 - 1j]], np.complex128
)
WRONG_OF_COMPLEX = {
    "Cumprod": lambda z: tf.math.cumprod(z, 1),
    "EuclideanNorm": lambda z: tf.math.reduce_euclidean_norm(z, 1),
    "LogMatrixDeterminant": lambda z: tf.linalg.slogdet(z)[0],
    "MatrixDeterminant": tf.linalg.det,
    "MatrixSquareRoot": tf.linalg.sqrtm,
    "MulNoNan": lambda z: tf.math.multiply_no_nan(z, 0.5 + 1j),
    "SegmentProd": lambda z: tf.ensure_shape(tf.math.segment_prod(z, [0, 0, 1]), (2, 3)),
    "Sign": lambda z: tf.raw_ops.Sign(x=z),
    "SquaredDifference": lambda z: tf.math.squared_difference(z, 0.5 + 1j),
    "TridiagonalSolve": lambda z: tf.linalg.tridiagonal_solve(z, z, diagonals_format="compact"),
    "UnsortedSegmentProd": lambda z: tf.math.unsorted_segment_prod(z, [0, 0, 1], 2),
    "Xdivy": lambda z: tf.math.xdivy(z, 0.5 + 1j),
    "Xlog1py": lambda z: tf.math.xlog1py(z, 0.5 + 1j),
    "Xlogy": lambda z: tf.math.xlogy(z, 0.5 + 1j),
}


def slopes(function, z, direction):
    """Of a function along a direction: by TensorFlow's gradient, and by differences."""

    def weighted(z):
        result = function(z)
        return tf.reduce_sum(tf.math.real(result) + 0.7 * tf.math.imag(result))

    with tf.GradientTape() as tape:
        point = tf.constant(z)
        tape.watch(point)
        whole = weighted(point)
    gradient = tape.gradient(whole, point, unconnected_gradients="zero")
    slope = np.sum(np.real(np.conj(gradient) * direction))
    near, far = (weighted(tf.constant(z + step * direction)) for step in (-1e-6, 1e-6))
    return slope, (far - near) / 2e-6


@pytest.mark.parametrize("name", WRONG_OF_COMPLEX)
def test_a_complex_derivative_that_tensorflow_has_wrong_is_refused(name):
    found, due = slopes(WRONG_OF_COMPLEX[name], MATRIX, MATRIX[::-1] ** 2)
    is_right = name == "MatrixDeterminant" and tf.__version__ >= "2.22"
    assert is_right == (abs(found - due) < 1e-3)
    for function in (tf.function(WRONG_OF_COMPLEX[name]), WRONG_OF_COMPLEX[name]):
        derivative = jax.grad(lambda z, f=function: call_tf(f)(z).real.sum())
        for stage in (lambda f: f, jax.jit):
            with pytest.raises(UnsupportedError, match=rf"needs that of {name} \("):
                stage(derivative)(MATRIX)


def test_second_derivatives_of_complex_products_are_refused():
    def total(z):
        return call_tf(lambda z: tf.reduce_prod(z, 1))(z).real.sum()

    assert jax.grad(total)(MATRIX).shape == MATRIX.shape
    with pytest.raises(UnsupportedError, match=r"needs that of Cumprod \("):
        jax.jit(jax.grad(lambda z: jax.grad(total)(z).real.sum()))(MATRIX)
