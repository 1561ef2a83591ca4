"""The gradients that a tape takes of what `convert_stablehlo` makes: for every elementwise operation those of JAX.

At points where a translation mends a value (0, -0, infinities, branch cuts) as elsewhere. The operations are those of
the registry: a new one needs JAX's function of it here, or the reason why it has no gradient.
"""

import functools
import itertools
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert, convert_stablehlo
from jaxtf.convert._graph.table import entries
from jaxtf.serialization import export

from .graph_mode import FULL, MODES

SLOW = pytest.mark.skipif(not FULL, reason="as float32; with JAXTF_FULL=1")
REAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, 2.5, -3, 0.3, np.inf, -np.inf, 1e30, -1e30, 1e-30, -1e-30]
ON_AXES = [0, 0.3, -0.3, 1, -1, 2, -2, 0.3j, -0.3j, 2j, -2j, complex(0.3, -0.0), complex(-2, -0.0), complex(-0.0, -2)]
COMPLEX = [
    *ON_AXES,
    0.2 + 0.5j,
    -1.5 + 2j,
    2 - 1j,
    -0.4 - 0.3j,
    1e10 + 1e10j,
    1e-10 - 1e-10j,
    complex(np.inf, 1),
    1e30j,
]

FAMILIES = ("comparison", "conversion", "elementwise", "integers", "special")
WITHOUT_GRADIENT = {
    "truth values": "and or xor not compare is_finite is_inf is_pos_inf is_neg_inf",
    "integers": "shift_left shift_right_arithmetic shift_right_logical popcnt count_leading_zeros mulhi",
    "JAX has none": "bitcast_convert next_after",
}
OF_LAX = (
    "abs acos acosh asin asinh atan atanh bessel_i1e cbrt ceil conj cosh digamma erf erf_inv erfc floor imag lgamma "
    "log logistic real rsqrt sign sinh sqrt square tan tanh"
)
OF_LAX_OF_TWO = "add atan2 complex polygamma zeta"
UNARY = {
    **{name: getattr(lax, name) for name in OF_LAX.split()},
    "cosine": lax.cos,
    "sine": lax.sin,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "log_plus_one": lax.log1p,
    "negate": lax.neg,
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "reduce_precision": lambda x: lax.reduce_precision(x, 5, 10),
    "convert": lambda x: x + 0,
}
BINARY = {
    **{name: getattr(lax, name) for name in OF_LAX_OF_TWO.split()},
    "divide": lax.div,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "power": lax.pow,
    "remainder": lax.rem,
    "subtract": lax.sub,
}
TERNARY = {"clamp": lax.clamp, "select": lax.select}
OF_SECOND = ("polygamma", "zeta")  # JAX has no other gradient of these
FUNCTIONS = UNARY | BINARY | TERNARY
ATTRIBUTES = {"reduce_precision": "{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}"}


def kind_of(name):
    """The operation, as the tables here have it."""
    return name.partition(".")[2].removeprefix("broadcast_")


def operations():
    """The elementwise operations of the registry that have gradients."""
    of_families = {n for n, e in entries().items() if e.emit and e.emit.__module__.rpartition(".")[2] in FAMILIES}
    without = {name for names in WITHOUT_GRADIENT.values() for name in names.split()}
    return sorted(name for name in of_families if kind_of(name) not in without)


def test_every_elementwise_operation_of_the_registry_has_a_function_of_jax():
    assert {kind_of(name) for name in operations()} == set(FUNCTIONS)


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


def operands_of(name, dtype):
    single = np.array(COMPLEX if np.dtype(dtype).kind == "c" else REAL, dtype)
    kind = kind_of(name)
    if kind == "select":
        return np.arange(len(single)) % 2 == 0, single, single[::-1]
    if kind == "polygamma":
        return tuple(np.array(side, dtype) for side in zip(*itertools.product(range(3), single), strict=True))
    count = 1 if kind in UNARY else 2 if kind in BINARY else 3
    return tuple(np.array(side, dtype) for side in zip(*itertools.product(*[single] * count), strict=True))


def type_of(array):
    element = {"bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>"}.get(str(array.dtype))
    return f"tensor<{array.shape[0]}x{element or 'f' + str(array.dtype)[5:]}>"


def module_of(name, operands, result):
    arguments = ", ".join(f"%{i}: {type_of(x)}" for i, x in enumerate(operands))
    taken = ", ".join(f"%{i}" for i in range(len(operands)))
    types = ", ".join(map(type_of, operands))
    return f"""
    func.func @main({arguments}) -> {type_of(result)} {{
      %r = "{name}"({taken}) {ATTRIBUTES.get(kind_of(name), "")} : ({types}) -> {type_of(result)}
      return %r : {type_of(result)}
    }}"""


def cotangents(dtype):
    return (1, 1j) if np.dtype(dtype).kind == "c" else (1,)


@functools.cache
def prepared(dtype):
    """By operation, for those that JAX differentiates for a dtype: the operands, the converted function, and JAX's
    gradients by cotangent and operand.
    """
    made = {}
    for name in operations():
        function, operands = FUNCTIONS[kind_of(name)], operands_of(name, dtype)
        try:
            if kind_of(name) in OF_SECOND:
                result, pull = jax.vjp(functools.partial(function, operands[0]), operands[1])
            else:
                result, pull = jax.vjp(function, *operands)
        except (TypeError, ValueError, NotImplementedError):
            continue
        if result.dtype != dtype and kind_of(name) == "conj":  # of a real number JAX makes a complex one
            continue
        try:
            converted = convert_stablehlo(module_of(name, operands, np.asarray(result)))
            converted(*operands)
        except GraphModeUnsupported:
            continue
        expected = []
        for cotangent in cotangents(result.dtype):
            pulled = pull(jnp.full(result.shape, cotangent, result.dtype))
            none = [None] * (len(operands) - len(pulled))
            expected.append([*none, *(np.asarray(x) for x in pulled)])
        made[name] = operands, converted, expected
    return made


def taken(dtype, mode):
    """The gradients of a tape, as `prepared` has JAX's."""
    made = prepared(dtype)

    def gradients(operands, converted, expected):
        found = []
        for cotangent in (1, 1j)[: len(expected)]:
            with tf.GradientTape() as tape:
                tape.watch([x for x in operands if not x.dtype.is_bool])
                result = converted(*operands)
            upwards = tf.fill(tf.shape(result), tf.constant(np.conj(cotangent), result.dtype))
            pulled = tape.gradient(result, operands, upwards, unconnected_gradients=tf.UnconnectedGradients.ZERO)
            found.append([tf.math.conj(x) if x.dtype.is_complex else x for x in pulled])
        return found

    def every(given):
        return {name: gradients(given[name], *made[name][1:]) for name in made}

    run = every if mode == "eager" else tf.function(every, autograph=False, jit_compile=mode == "compiled")
    return run({name: [tf.constant(x) for x in operands] for name, (operands, *_) in made.items()})


def different(ours, theirs):
    """Where JAX has a number and a tape another, by more than 1e-4, or NaN, or a number where JAX has none."""
    if theirs.dtype.kind != "c":
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    is_number = [np.isfinite(x.real) & np.isfinite(x.imag) for x in (ours, theirs)]
    with np.errstate(all="ignore"):
        near = np.abs(ours - theirs) <= 1e-4 * np.maximum(np.abs(theirs), 1e-3)
        is_opposite = np.isinf(ours) & np.isinf(theirs) & (ours == -theirs)
    return is_opposite | (is_number[0] | is_number[1]) & ~(is_number[0] & is_number[1] & near)


INVERSES = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh}


def derivative(name, numbers):
    """Of an inverse function of complex numbers, by NumPy: by its values a step along its cut from each.

    JAX's is that of the other side of the cut at some points, and for acosh in the left half of the plane.
    """
    given = numbers.astype(np.complex128)
    # What is on the cut belongs to the side above, or to the right.
    side = "real" if name == "asinh" else "imag"
    setattr(given, side, getattr(given, side) + 0.0)
    if name == "sqrt":
        return 0.5 / np.sqrt(given)
    part, step, near = ("imag", 1e-5j, []) if name == "asinh" else ("real", 1e-5, [])
    for sign in (1, -1):
        moved = given.copy()
        setattr(moved, part, getattr(moved, part) + sign * 1e-5)
        near.append(INVERSES[name](moved))
    poles = (1j, -1j) if name == "asinh" else (1, -1)
    return np.where(np.isin(given, poles), np.nan, (near[0] - near[1]) / (2 * step))


def not_compared(kind, operands):
    """Points at which TensorFlow's gradient is by convention another than JAX's, and why."""
    x, y = operands[0], operands[-1]
    nowhere = np.zeros(x.shape, bool)
    with np.errstate(all="ignore"):
        if np.iscomplexobj(x):
            of_kind = {
                # JAX has 0 everywhere; a tape has the derivative of z / |z|, and 0 at 0.
                "sign": x != 0,
                # NaN where JAX has a number: the square of the cosine, or the logarithm of such a base, is infinite.
                "tan": np.abs(x) > 1e9,
                "power": (np.abs(x) > 1e18) | (np.abs(y) > 1e9) | ((x == 0) & (y == 0)),
            }
            # Of infinite parts the results themselves are others (`test_graph_special_values.py`).
            return of_kind.get(kind, nowhere) | ~np.all([np.isfinite(operand) for operand in operands], axis=0)
        if kind == "clamp":
            least, x, greatest = operands
            return ~((least < greatest) & (x != least) & (x != greatest))
        return {
            # At a tie JAX takes the half of each, TensorFlow that of the first; at 0 JAX takes 1, TensorFlow 0.
            "abs": x == 0,
            "maximum": x == y,
            "minimum": x == y,
            # Of what is NaN, or where the limits of the two sides are opposite infinities.
            "acosh": x < 1,
            "remainder": y == 0,
            "rsqrt": (x == 0) & np.signbit(x),
            # NaN, or infinite, in JAX alone: the square of so small a divisor is 0.
            "divide": np.abs(y) < 1e-19,
            "digamma": np.isinf(x),
            "polygamma": np.isinf(y),
            # For the exponent of a negative base JAX has NaN, TensorFlow 0.
            "power": x < 0,
        }.get(kind, nowhere)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "dtype", ["float32", "complex64", *(pytest.param(name, marks=SLOW) for name in ("float64", "complex128"))]
)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_gradients_of_elementwise_operations_are_those_of_jax(dtype, mode):
    made, wrong = prepared(dtype), []
    found = taken(dtype, mode)
    for name, (operands, _, expected) in made.items():
        kind = kind_of(name)
        left_out = not_compared(kind, operands)
        for cotangent, ours, theirs in zip((1, 1j), found[name], expected, strict=False):
            if np.iscomplexobj(operands[0]) and kind in (*INVERSES, "sqrt"):
                with np.errstate(all="ignore"):
                    wanted_of_all = [cotangent * derivative(kind, operands[0])]
            else:
                wanted_of_all = theirs
            for place, (own, wanted) in enumerate(zip(ours, wanted_of_all, strict=True)):
                if wanted is None or wanted.dtype == jax.dtypes.float0:
                    continue
                bad = different(own.numpy(), wanted) & ~left_out
                wrong += [
                    f"{name} at {[x[i] for x in operands]}, {place}: {own.numpy()[i]} for {wanted[i]}"
                    for i in np.flatnonzero(bad)
                ]
    assert not wrong, "\n".join(wrong)


def gradient(converted, x, mode="eager", upwards=None):
    """Of the sum of the results, or times a cotangent."""

    def take(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = converted(x)
        return tape.gradient(result, x, upwards, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    run = take if mode == "eager" else tf.function(take, autograph=False, jit_compile=mode == "compiled")
    return run(tf.constant(x)).numpy()


def of_jax(function, x):
    return jax.grad(lambda x: function(x).sum())(x)


def as_jax(function, x, mode="eager", **given):
    """Compares the gradient of a tape with JAX's."""
    found = gradient(convert_stablehlo(jax.jit(function).lower(x), **given), x, mode)
    np.testing.assert_allclose(found, of_jax(function, x), rtol=1e-5)


def twice(f):
    """The gradient of a gradient."""
    return lambda x: of_jax(lambda x: of_jax(f, x) * x, x)


def cube_root_of_square(x):
    return lax.cbrt(x * x + 1) + x


LOOPS = {
    "cube roots": lambda x: lax.scan(lambda c, _: (cube_root_of_square(c), c), x, None, length=3)[0],
    "cumulative products": lambda x: lax.scan(lambda c, _: (lax.cumprod(c) + c, c), x, None, length=2)[0],
    "roots in a branch": lambda x: lax.cond(x[0] > 0, lambda c: c * lax.cbrt(c), lambda c: c, x),
    "products in a branch": lambda x: lax.cond(x[0] > 0, lambda c: c * lax.cumprod(c), lambda c: c, x),
}
SIMPLE = {
    "cube root": lax.cbrt,
    "cumulative product": lax.cumprod,
    "reduced precision": lambda x: lax.reduce_precision(x, 5, 10) * x,
    "root": lambda x: x ** jnp.float32(0.5),
    "reciprocal root": lambda x: x ** jnp.float32(-0.5),
    "0 - x": lambda x: (jnp.zeros_like(x) - x) ** 2,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_the_slope_of_zero_minus_x_at_zero_is_minus_one(dtype, mode):
    x = np.array([0.0, -0.0, 1, -2], dtype)
    module = jax.jit(lambda x: jnp.zeros_like(x) - x).lower(x)
    np.testing.assert_array_equal(gradient(convert_stablehlo(module), x, mode), -np.ones(4))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
@pytest.mark.parametrize("enable_xla", [True, False])
def test_a_root_by_power_is_differentiated_at_zero(enable_xla, exponent, mode):
    for values in ([0, 4, np.inf], [0, -0.0, 4, np.inf, -np.inf, -1]):
        as_jax(lambda x: x ** jnp.float32(exponent), np.float32(values), mode, enable_xla=enable_xla)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [lax.cbrt, jnp.sign, lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)])
def test_functions_that_are_mended_at_zero_have_their_slopes_there(function, mode):
    as_jax(function, np.float32([0, -0.0, 8, -8, 0.5, np.inf, -np.inf]), mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_number_of_reduced_precision_is_differentiated(mode):
    as_jax(lambda x: lax.reduce_precision(x, 5, 10) + x, np.float32([0, 1.2345678, -3e9]), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[2, 0, 3, 4], [2, 0, 3, 0], [1, 2, 3, 4]])
def test_a_cumulative_product_is_differentiated_at_zeros(x, reverse, mode):
    as_jax(functools.partial(lax.cumprod, reverse=reverse), np.float32(x), mode)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_an_extreme_at_indices_is_differentiated(kind, mode, enable_xla):
    places = jnp.array([0, 1, 0])

    def function(x):
        return x + getattr(jnp.full(4, 2.5, np.float32).at[places], kind)(x[:3]).sum()

    as_jax(function, np.float32([1, 2, 3, 4]), mode, enable_xla=enable_xla)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_product_at_indices_is_differentiated(mode, enable_xla):
    """JAX has a gradient only for indices that differ, which is promised to it here."""
    x = np.float32([1, 2, 0, 4])

    def function(x, **promises):
        return x.at[jnp.array([0, 3])].multiply(3 * x[1:3], **promises)

    found = gradient(convert_stablehlo(jax.jit(function).lower(x), enable_xla=enable_xla), x, mode)
    np.testing.assert_allclose(found, of_jax(functools.partial(function, unique_indices=True), x))


@pytest.mark.parametrize("mode", MODES)
def test_a_pole_is_not_in_the_gradients_of_other_elements(mode):
    x = np.complex64([0, 2, 1j])
    found = gradient(convert_stablehlo(jax.jit(lambda x: 1 / x).lower(x)), x, mode)
    np.testing.assert_allclose(found[1:], [-0.25, 1], rtol=1e-6)


WRITTEN_OUT = {
    **{name: getattr(lax, name) for name in ("atan", "atanh", "cos", "log", "log1p", "sin", "sqrt", "square")},
    "several": lambda z: jnp.sin(lax.square(z + 1j)) * jnp.sqrt(z),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_an_artifact_has_written_out_for_parts_has_the_gradient_of_the_function(name, mode):
    points = [1 + 1j, 2 - 2j, -0.5 + 0.5j, 1.5 + 0.3j, 4, -4 + 0.1j, 2j, -2j, 0.3, 0.7j, 1 - 1j, 0.5]
    z, function = np.array(points, np.complex64), WRITTEN_OUT[name]
    imported = convert_stablehlo(export(jax.jit(function))(z).mlir_module_serialized)

    def gradient(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            made = tf.math.real(imported(z))
        return tape.gradient(made, z)

    if mode != "eager":
        gradient = tf.function(gradient, autograph=False, jit_compile=mode == "compiled")
    expected = np.conj(jax.grad(lambda z: function(z).real.sum())(z))
    np.testing.assert_allclose(gradient(tf.constant(z)), expected, rtol=1e-3, atol=1e-6)


VMAPPED = {
    "cond": jax.vmap(lambda i, x: lax.cond(i == 1, jnp.sqrt, jnp.sin, x)),
    "switch": jax.vmap(lambda i, x: lax.switch(2 * i, [jnp.sin, jnp.log, jnp.sqrt], x)),
    "one x for all": lambda i, x: jax.vmap(lambda i: lax.cond(i == 1, jnp.sqrt, jnp.sin, x[0]))(i),
    "all x for each": lambda i, x: jax.vmap(lambda i: lax.cond(i == 2, jnp.log, jnp.sin, x))(i),
    "a weight for all": lambda i, x: jax.vmap(lambda i, y: lax.cond(i == 2, lambda y: (x[4] * y) ** -1, jnp.sin, y))(
        i, x
    ),
    "many dimensions": lambda i, x: jax.vmap(lambda i, x: lax.cond(i == 1, jnp.sqrt, jnp.sin, x))(
        i, x.reshape(5, *[1] * 9)
    ),
    "an array or itself": lambda i, x: jnp.where(i == 1, x, x) ** 3,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", VMAPPED)
def test_a_branch_that_no_element_takes_has_no_part_in_the_gradient(name, mode):
    function, index = VMAPPED[name], np.array([0, 0, 1, 0, 0], np.int32)
    x = np.array([-1.0, -2.0, 3.0, -0.5, 0.0], np.float32)
    imported = convert_stablehlo(jax.jit(function).lower(index, x).as_text())

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.nest.flatten(imported(tf.constant(index), x))[0]
        return tape.gradient(made, x)

    if mode != "eager":
        gradient = tf.function(gradient, autograph=False, jit_compile=mode == "compiled")
    expected = jax.grad(lambda x: function(index, x).sum())(x)
    np.testing.assert_allclose(gradient(tf.constant(x)), expected, rtol=1e-5)


@pytest.mark.parametrize("name", [*SIMPLE, *LOOPS])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_gradients_are_differentiated_again(name, mode):
    function = (SIMPLE | LOOPS)[name]
    x = np.float32([0.25, 0.5, 0.75])
    converted = convert_stablehlo(jax.jit(function).lower(x))

    def once(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = converted(x)
        return tape.gradient(result, x) * x

    np.testing.assert_allclose(gradient(converted, x, mode), of_jax(function, x), rtol=1e-5)
    np.testing.assert_allclose(gradient(once, x, mode), twice(function)(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SIMPLE)
def test_jacobians_are_those_of_jax(name):
    x = np.float32([0.5, 2, 3])
    converted = convert_stablehlo(jax.jit(SIMPLE[name]).lower(x))
    with tf.GradientTape() as tape:
        tape.watch(given := tf.constant(x))
        result = converted(given)
    np.testing.assert_allclose(tape.jacobian(result, given), jax.jacobian(SIMPLE[name])(x), rtol=1e-5)
    stacked = tf.vectorized_map(lambda x: gradient_in_graph(converted, x), tf.constant([x, x]))
    np.testing.assert_allclose(stacked, [of_jax(SIMPLE[name], x)] * 2, rtol=1e-5)


def gradient_in_graph(converted, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = converted(x)
    return tape.gradient(result, x)


def saved(converted, x, folder, *, with_gradients):
    module = tf.Module()
    module.f = tf.function(converted, input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
    tf.saved_model.save(module, folder, options=options)
    return tf.saved_model.load(folder).f


@pytest.mark.parametrize("name", SIMPLE)
def test_a_saved_model_has_the_gradients(name, tmp_path):
    x = np.float32([0, 2, 3])
    loaded = saved(convert_stablehlo(jax.jit(SIMPLE[name]).lower(x)), x, tmp_path, with_gradients=True)
    np.testing.assert_allclose(gradient(loaded, x), of_jax(SIMPLE[name], x), rtol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_a_saved_model_refuses_gradients_of_its_own_in_loops_and_branches(name, tmp_path):
    x = np.float32([0.25, 0.5, 0.75])
    loaded = saved(convert_stablehlo(jax.jit(LOOPS[name]).lower(x)), x, tmp_path, with_gradients=True)
    np.testing.assert_allclose(loaded(x), LOOPS[name](x), rtol=1e-5)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"a SavedModel has no gradient of stablehlo\.(cbrt|reduce_w)"
    ):
        gradient(loaded, x)


def test_a_saved_model_has_gradients_of_zero_minus_x_in_loops(tmp_path):
    def function(x):
        return lax.scan(lambda c, _: (jnp.sin(jnp.zeros_like(c) - c), c), x, None, length=3)[0]

    x = np.float32([0, 0.5, 0.75])
    for with_gradients in (True, False):
        loaded = saved(convert_stablehlo(jax.jit(function).lower(x)), x, tmp_path, with_gradients=with_gradients)
        np.testing.assert_allclose(gradient(loaded, x), of_jax(function, x), rtol=1e-5)


def test_tflite_has_nothing_of_the_gradients():
    x = np.float32([0, 4, 9])

    def function(x):
        return (jnp.zeros_like(x) - x) ** jnp.float32(2) + x ** jnp.float32(0.5)

    converted = convert_stablehlo(jax.jit(function).lower(x), enable_xla=False)
    graph = tf.function(converted, input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    model = tf.lite.TFLiteConverter.from_concrete_functions([graph.get_concrete_function()], graph).convert()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that another package has it too
        interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), function(x))


def test_the_exponent_may_be_smaller_than_the_base():
    text = """
    func.func @main(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {
      %0 = chlo.broadcast_power %x, %y : (tensor<2x3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
      return %0 : tensor<2x3xcomplex<f32>>
    }"""
    x, y = np.complex64([[1, 2, 3], [4, 5, 6]]), np.complex64([1, 2, 0])
    with tf.GradientTape() as tape:
        tape.watch(given := (tf.constant(x), tf.constant(y)))
        result = convert_stablehlo(text)(*given)
    expected = jax.grad(lambda x, y: (x**y).sum().real, (0, 1))(x, y)
    for found, wanted in zip(tape.gradient(result, given), expected, strict=True):
        np.testing.assert_allclose(found, np.conj(wanted), rtol=1e-5)


@pytest.mark.parametrize("make", ["convert", "convert_stablehlo"])
def test_a_saved_operation_names_no_gradient_of_another_process(make, tmp_path):
    """By a name that is counted, one that is loaded without its gradient had whichever function was of that number."""

    def saved(number):
        converted = {
            "convert": lambda: convert(jnp.cbrt, native_serialization=False),
            "convert_stablehlo": lambda: convert_stablehlo(jax.jit(jnp.cbrt).lower(np.ones(3, np.float32)).as_text()),
        }[make]()
        module = tf.Module()
        module.f = tf.function(converted, input_signature=[tf.TensorSpec([3])], autograph=False)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, tmp_path / f"{number}", options=options)
        return set(re.findall(rb"JaxtfGradient-[0-9a-f]*", (tmp_path / f"{number}" / "saved_model.pb").read_bytes()))

    first, second = saved(1), saved(2)
    assert first
    assert second
    assert not first & second
    assert all(len(name) == len("JaxtfGradient-") + 32 for name in first | second)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_at_indices_are_differentiated_also_of_nan_and_when_loaded(
    name, allows_xla, is_loaded, compiled, tmp_path
):
    places, weights = jnp.array([0, 2, 2, 1, 5, 3]), np.float32([1, 2, 3, 4])

    def function(z):  # both in one: an update of NaN, an index that is out of bounds, equal numbers
        return getattr(z[:4].at[places], name)(z[4:]) * weights

    converted = convert_stablehlo(jax.jit(function).lower(np.zeros(10, np.float32)), enable_xla=allows_xla)
    if is_loaded:
        converted = saved(converted, np.zeros(10, np.float32), tmp_path, with_gradients=True)
    pulled = tf.function(lambda z: gradient_in_graph(converted, z), autograph=False, jit_compile=compiled)
    for third in (3, np.nan):
        z = np.float32([1, 5, third, 2, 4, 1, 7, np.nan, 3, 2])
        np.testing.assert_array_equal(pulled(tf.constant(z)), jax.grad(lambda z: function(z).sum())(z))
