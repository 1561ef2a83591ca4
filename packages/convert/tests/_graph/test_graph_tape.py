"""The gradients that a tape takes of what `convert_stablehlo` makes, for every operand: of moves and of loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert_stablehlo
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

from .graph_mode import MODES

VECTOR, MATRIX = np.float32([1, -2, 0.5, 3]), np.float32([[1, -2], [0.5, 3], [-1, 4]]) / 4
IMAGES, KERNEL = np.sin(np.arange(2 * 6 * 5 * 2.0)).reshape(2, 6, 5, 2), np.cos(np.arange(24.0)).reshape(2, 3, 2, 2)


def scanned(x):
    return lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry * row), jnp.ones(2, x.dtype), x)


def dilated(strides, padding):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lambda x, k: lax.conv_general_dilated(x, k, strides, padding, rhs_dilation=(2, 1), dimension_numbers=numbers)


PLACES = np.int32([1, 7, 1, 0, 1])
UPDATES = np.float32([5, 6, 7, 0.25, -1])
WINDOWS = lax.ScatterDimensionNumbers((1,), (), (0,))
CASES = {
    "value of a pad": (lambda x, c: lax.pad(x, c, ((1, 2, 1),)) * c, VECTOR, np.float32(0.5)),
    "value of a pad that cuts": (
        lambda x, c: lax.pad(x, c, ((-1, 2, 1), (1, -1, 0))),
        MATRIX,
        np.float32(0.5),
    ),
    "value of a pad in float16": (
        lambda x, c: lax.pad(x, c, ((2000, 2000, 0),)),
        np.float16([1, 2]),
        np.float16(0.5),
    ),
    "complex value of a pad": (lambda x, c: lax.pad(x * c, c, ((1, 1, 0),)), np.complex64([1, 2j]), np.complex64(1j)),
    "steps that take nothing": (lambda x: (x[3:3:2].sum() + x[2:1:3].sum()) * x + x[::2].sum(), VECTOR),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x), VECTOR),
    "updates of one element": (lambda x, u: x.at[PLACES].set(u), VECTOR, UPDATES),
    "rows of one place": (lambda x, u: x.at[PLACES[:3]].set(u), MATRIX, MATRIX * 3),
    "windows that overlap": (
        lambda x, u: lax.scatter(x, PLACES[:, None], u, WINDOWS, mode="drop"),
        VECTOR,
        MATRIX[[0, 1, 2, 0, 1]],
    ),
    "dilated in float64": (dilated((1, 1), "VALID"), IMAGES, KERNEL),
    "dilated with strides in float64": (dilated((2, 1), "SAME"), IMAGES, KERNEL),
    "scan": (scanned, MATRIX),
    "loop": (lambda x: lax.fori_loop(2, 7, lambda i, y: jnp.sin(y * i) * x, x), VECTOR),
}


def counted_by_threes(x):
    return lax.while_loop(lambda s: s[0] < 8, lambda s: (s[0] + 3, s[1] * x), (1, x))[1]


def pulled(function, *arguments):
    """The gradients by the tape of a sum of sines of the results."""
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        results = tf.nest.flatten(function(*arguments))
        total = tf.add_n([tf.reduce_sum(tf.sin(tf.cast(tf.math.real(y), tf.float64))) for y in results])
    return [tf.convert_to_tensor(g) for g in tape.gradient(total, arguments)]


def by_tape(converted, arguments, mode):
    way = pulled if mode == "eager" else tf.function(pulled, autograph=False, jit_compile=mode == "compiled")
    return way(converted, *map(tf.constant, arguments))


def in_jax(function, arguments):
    def total(*args):
        return sum(jnp.sin(jnp.real(y).astype(float)).sum() for y in jax.tree.leaves(function(*args)))

    return map(np.conj, jax.grad(total, range(len(arguments)))(*arguments))  # TensorFlow's convention


def check(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        rtol = 1e-2 if theirs.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(ours, theirs, rtol, rtol * np.max(np.abs(theirs)))


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_every_operand_has_the_gradient_of_jax(name, mode, enable_xla):
    function, *arguments = CASES[name]
    with jax.enable_x64(True):
        module = jax.jit(function).lower(*arguments)
        expected = list(in_jax(function, arguments))
    converted = convert_stablehlo(module, enable_xla=enable_xla)
    check(by_tape(converted, arguments, mode), expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_that_counts_by_more_than_one_has_its_gradient(mode):
    converted = convert_stablehlo(jax.jit(counted_by_threes).lower(VECTOR))
    check(by_tape(converted, [VECTOR], mode), [np.cos(VECTOR**4) * 4 * VECTOR**3])


EVERY_SECOND = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %end = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
  %y = stablehlo.real_dynamic_slice %x, %one, %end, %two
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}"""


@pytest.mark.parametrize("size", range(1, 5))
@pytest.mark.parametrize("mode", MODES)
def test_steps_of_open_sizes_may_take_nothing(mode, size):
    x = np.arange(1, size + 1, dtype=np.float32)
    check(by_tape(convert_stablehlo(EVERY_SECOND), [x], mode), [np.where(np.arange(size) % 2, np.cos(x), 0)])


def test_the_value_of_a_pad_of_an_open_size_has_its_gradient():
    (b,) = symbolic_shape("b")
    exported = export(jax.jit(lambda x, c: lax.pad(x, c, ((1, 2, 1),))))(
        jax.ShapeDtypeStruct((b,), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32)
    )
    found = by_tape(convert_stablehlo(exported), [VECTOR, np.float32(0.5)], "graph")
    check(found, [np.cos(VECTOR), np.float32(6 * np.cos(0.5))])


@pytest.mark.parametrize("divided", [lambda x, u: x.at[PLACES].divide(u), lambda x, u: x.at[PLACES].apply(jnp.sin)])
@pytest.mark.parametrize("mode", MODES)
def test_updates_in_turn_have_the_gradient_of_their_differences(divided, mode):
    arguments = [VECTOR.astype(np.float64), UPDATES.astype(np.float64)]
    with jax.enable_x64(True):
        converted = convert_stablehlo(jax.jit(lambda x, u: divided(x, u) + u.sum() / 8).lower(*arguments))

    def total(*args):
        return float(tf.reduce_sum(tf.sin(converted(*map(tf.constant, args)))))

    def slope(index, place):
        step = np.zeros_like(arguments[index])
        step[place] = 1e-6
        ends = ([x + sign * step if i == index else x for i, x in enumerate(arguments)] for sign in (1, -1))
        above, below = (total(*end) for end in ends)
        return (above - below) / 2e-6

    differences = [np.array([slope(i, place) for place in range(x.size)]) for i, x in enumerate(arguments)]
    for ours, theirs in zip(by_tape(converted, arguments, mode), differences, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


# Functions that JAX's exports write out, with a choice by `select`, at numbers where another branch is infinite.
WRITTEN_OUT = {
    "erf_inv": (lax.erf_inv, [0.3, -0.5, 1e-8, 1]),
    "erfc": (lax.erfc, [1e-3, 1e-20, -0.4, 7]),
    "lgamma": (lax.lgamma, [8, 20, 0.5, 60]),
    "digamma": (lax.digamma, [8, 20, 0.5, -0.5]),
    "bessel_i0e": (lax.bessel_i0e, [1e-8, 1e-30, 3, 20]),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), [1e-8, -1e-20, 1, -3]),
    "log_ndtr": (jax.scipy.special.log_ndtr, [1e-8, 1e-20, -20, 3]),
    "a root where there is one": (lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), x * x), [1, 0.5, 3, -2]),
    # Functions that have a derivative where one of their operations has none.
    "softplus": (jax.nn.softplus, [0, 1, -2, -0.0]),
    "log_sigmoid": (jax.nn.log_sigmoid, [0, 1, -2, -0.0]),
    "logaddexp": (lambda x: jnp.logaddexp(2 * x, x + 1), [1, 0, 2, -30]),
    "hypot": (lambda x: jnp.hypot(x, jnp.float32(2)), [2, -2, 1e-8, 5]),
    "asinh": (jnp.arcsinh, [0, 1, -2, 20]),
    "asinh of the negative": (lambda x: jnp.arcsinh(1 - x), [1, 0, -2, 20]),
    "bessel_i1e": (lax.bessel_i1e, [0, 1, -3, 20]),
    "i1": (jax.scipy.special.i1, [0, 1, -3, 20]),
    "a power of 0": (lambda x: jnp.where(x > 2, jnp.exp(x), jnp.power(jnp.float32(0), x)), [1, 0.5, 3, 2]),
    "a power": (lambda x: jnp.where(x > 2, jnp.exp(x), lax.pow(x * x, x + 1)), [0, 0.5, 3, -0.5]),
    "a cube root": (lambda x: jnp.where(x > 2, jnp.exp(x), jnp.cbrt(x)), [0, 0.5, 3, -8]),
}
# Of open sizes `jnp.where` is a call that takes the size, and is not seen to be a function of each element.
OF_KNOWN_SIZES = ("a root where there is one", "a power of 0", "a power", "a cube root", "hypot")


def tape_and_jax(name, mode):
    function, numbers = WRITTEN_OUT[name]
    x = np.float32(numbers)
    shape = x.shape if name in OF_KNOWN_SIZES else symbolic_shape("b")
    converted = convert_stablehlo(export(jax.jit(function))(jax.ShapeDtypeStruct(shape, np.float32)))

    def slope(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    way = slope if mode == "eager" else tf.function(slope, autograph=False, jit_compile=mode == "compiled")
    return converted, way, x, jax.vmap(jax.grad(function))


@pytest.mark.parametrize("name", WRITTEN_OUT)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_chosen_has_no_part_in_a_gradient(name, mode):
    converted, way, x, slope = tape_and_jax(name, mode)
    if name == "lgamma" and jax.__version_info__ >= (0, 11):  # by bits
        with pytest.raises(tf.errors.InvalidArgumentError, match="bits"):
            way(converted, tf.constant(x))
        return
    expected = np.array(slope(x))
    if name == "a root where there is one":
        expected = np.where(x > 1, expected, 2 * x)  # JAX has NaN, of the root of what is not positive
    np.testing.assert_allclose(way(converted, tf.constant(x)), expected, rtol=1e-4)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_loop_that_never_turns_has_a_gradient(enable_xla, mode):
    def never(x):
        return lax.while_loop(lambda state: state[0] < 0, lambda state: (state[0] + 1, jnp.sin(state[1])), (3, x))[1]

    converted = convert_stablehlo(export(never)(jax.ShapeDtypeStruct((2,), np.float32)), enable_xla=enable_xla)
    [slope] = by_tape(converted, [np.float32([1, 2])], mode)
    np.testing.assert_allclose(slope, np.cos([1, 2]), rtol=1e-6)  # of the sine that it takes


@pytest.mark.parametrize("name", ["erf_inv", "erfc", "gelu"])
@pytest.mark.parametrize("mode", MODES)
def test_nor_in_that_of_a_gradient(name, mode):
    converted, way, x, slope = tape_and_jax(name, mode)
    x = x[:3]
    second = way(lambda y: way(converted, y), tf.constant(x))
    np.testing.assert_allclose(second, jax.vmap(jax.grad(lambda v: slope(v[None])[0]))(x), rtol=1e-4, atol=1e-6)


def test_nor_in_a_loop_or_after_loading(tmp_path):
    x = np.float32([1e-8, -1e-20, 1])

    def repeated(x):
        return lax.fori_loop(0, 3, lambda _, y: jax.nn.gelu(y, approximate=False) + y, x)

    for function in (repeated, lambda x: jax.nn.gelu(x, approximate=False)):
        module = tf.Module()
        converted = convert_stablehlo(export(jax.jit(function))(x))
        module.f = tf.function(converted, [tf.TensorSpec([3])], autograph=False)
        np.testing.assert_allclose(pulled(module.f, tf.constant(x))[0], next(in_jax(function, [x])), rtol=1e-5)
        if function is not repeated:
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
            tf.saved_model.save(module, tmp_path, options=options)
            loaded = tf.saved_model.load(tmp_path).f
            np.testing.assert_allclose(pulled(loaded, tf.constant(x))[0], next(in_jax(function, [x])), rtol=1e-5)


CHOSEN = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %y = stablehlo.exponential %x : tensor<4xf32>
  %z = stablehlo.add %y, %y : tensor<4xf32>
  CONDITION
  %r = stablehlo.select %c, %z, %y : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}"""
OF_FLOATS = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"
CONDITIONS = {
    "total order": f"%c = stablehlo.compare LT, %x, %zero, TOTALORDER : {OF_FLOATS}",
    "order of truth": f"""%a = stablehlo.compare LE, %x, %zero, FLOAT : {OF_FLOATS}
  %b = stablehlo.compare LT, %x, %zero, FLOAT : {OF_FLOATS}
  %c = stablehlo.compare GT, %a, %b, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>""",
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_branch_is_chosen_as_in_the_module(name, mode):
    x = np.float32([-1, -0.0, 0, 1])
    chosen = np.signbit(x) if name == "total order" else x == 0
    y = np.where(chosen, 2, 1) * np.exp(x)
    converted = convert_stablehlo(CHOSEN.replace("CONDITION", CONDITIONS[name]))
    np.testing.assert_allclose(converted(x), y, rtol=1e-6)
    check(by_tape(converted, [x], mode), [np.cos(y) * y])


# A float between 1 and 2 with the last bits of another, or what these are as a number, times that other.
OF_BITS = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %mask = stablehlo.constant dense<8388607> : tensor<3xui32>
  %one = stablehlo.constant dense<1065353216> : tensor<3xui32>
  %bits = stablehlo.bitcast_convert %x : (tensor<3xf32>) -> tensor<3xui32>
  %last = stablehlo.and %bits, %mask : tensor<3xui32>
  %made = stablehlo.or %last, %one : tensor<3xui32>
  %y = stablehlo.FROM %made : (tensor<3xui32>) -> tensor<3xf32>
  %z = stablehlo.multiply %x, %y : tensor<3xf32>
  return %z : tensor<3xf32>
}"""


@pytest.mark.parametrize("mode", MODES)
def test_a_float_that_is_made_of_bits_is_refused_a_gradient(mode):
    x = np.float32([1.5, -3, 5])
    converted = convert_stablehlo(OF_BITS.replace("FROM", "bitcast_convert"))
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(x))
        np.testing.assert_array_equal(converted(tf.constant(x)), x * np.float32([1.5, 1.5, 1.25]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="bits"):
        by_tape(converted, [x], mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_number_that_is_read_from_bits_is_a_constant(mode):
    x = np.float32([1.5, -3, 5])
    converted = convert_stablehlo(OF_BITS.replace("FROM", "convert"))
    read = converted(x).numpy() / x
    check(by_tape(converted, [x], mode), [np.cos(x * read, dtype=np.float64) * read])
