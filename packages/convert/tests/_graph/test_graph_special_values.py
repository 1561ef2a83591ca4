"""Every elementwise operation, at special values of every dtype: what differs from JAX is what the table here says.

Differences are of a kind: of NaN with a number, of infinity with a number, of the sign of zero, of numbers by more than
64 eps. Numbers near the smallest normal one are not looked at, for TensorFlow takes them as zero.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from jaxtf.convert._graph.table import entries

from .graph_mode import FULL, MODES, assert_identical, run_graph_mode, run_jax, same_as_jax


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


NAMED = (
    "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma erf "
    "erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg population_count real rsqrt sign "
    "sin sinh sqrt square tan tanh"
)
UNARY = {name: getattr(lax, name) for name in NAMED.split()} | {
    "integer_pow 3": lambda x: lax.integer_pow(x, 3),
    "integer_pow -2": lambda x: lax.integer_pow(x, -2),
    "round even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
}
NAMED_OF_TWO = (
    "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt le lt max min mul ne nextafter pow rem "
    "shift_left shift_right_arithmetic shift_right_logical sub"
)
BINARY = {name: getattr(lax, name) for name in NAMED_OF_TWO.split()} | {
    "clamp": lambda x, y: lax.clamp(x, y, -x),
    "clamp within": lambda x, y: lax.clamp(y, x, y),
}
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
KINDS = ("nan", "infinity", "zero", "number")

# TensorFlow has no such kernel: graph mode refuses them.
REFUSED = {("complex", "atan2"), ("complex", "clamp"), ("complex", "clamp within")}


def special_values(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        found = {0, 1, 2, 3, 7, 8, 31, 63, info.min, info.min + 1, info.max - 1, info.max}
        return np.array(sorted(found | ({-1, -2, -3} if info.min < 0 else set())), dtype)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    info = ml_dtypes.finfo(real)
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, -1.5, 2.5, np.inf, -np.inf, np.nan, float(info.max), float(info.min)]
    if real == dtype:
        return np.array([*values, float(info.tiny), -float(info.tiny)], dtype)
    made = np.empty(len(values) ** 2, dtype)
    made.real, made.imag = zip(*itertools.product(values, values), strict=True)
    return made


def cases(dtype):
    """The operations that JAX has for a dtype, and what they are applied to."""
    values = special_values(dtype)
    several = values if values.size < 100 else values[::5]
    pairs = tuple(np.array(side, dtype) for side in zip(*itertools.product(several, values), strict=True))
    made = {}
    for table, operands in ((UNARY, (values,)), (BINARY, pairs)):
        for name, function in table.items():
            try:
                jax.eval_shape(function, *operands)
            except (TypeError, ValueError):
                continue
            if (family(dtype), name) not in REFUSED:
                made[name] = function, operands
    return made


def family(dtype):
    return "complex" if dtype in COMPLEX else "float" if dtype in FLOATS else "integer"


def kinds(ours, theirs):
    """The kinds of difference between two arrays."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if ours.dtype.kind == "c":
        return kinds(ours.real, theirs.real) | kinds(ours.imag, theirs.imag)
    if not jnp.issubdtype(ours.dtype, np.inexact):
        return {"number"} if (ours != theirs).any() else set()
    info = ml_dtypes.finfo(ours.dtype)
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(ours - theirs) <= 64 * float(info.eps) * np.maximum(np.abs(theirs), 1)
        is_tiny = (np.abs(ours) <= 4 * float(info.tiny)) & (np.abs(theirs) <= 4 * float(info.tiny))
        is_number = np.isfinite(ours) & np.isfinite(theirs)
        different = {
            "nan": np.isnan(ours) != np.isnan(theirs),
            "infinity": ~np.isnan(ours) & ~np.isnan(theirs) & ~is_number & (ours != theirs),
            "zero": (ours == 0) & (theirs == 0) & (np.signbit(ours) != np.signbit(theirs)),
            "number": is_number & ~near & ~is_tiny,
        }
    return {kind for kind in KINDS if different[kind].any()}


@functools.cache
def prepared(dtype):
    """The cases of a dtype, all of them as one function, its arguments, and JAX's results."""
    made = cases(dtype)
    single, pair = (next(x for _, x in made.values() if len(x) == count) for count in (1, 2))

    def every(single, pair):
        return [function(*(single if len(x) == 1 else pair)) for function, x in made.values()]

    return list(made), every, (single, pair), run_jax(every, single, pair)


def found_differences(dtype, mode):
    """The kinds of difference, by operation, of those that have any."""
    names, every, arguments, expected = prepared(dtype)
    results = zip(names, run_graph_mode(every, *arguments, mode=mode), expected, strict=True)
    return {name: found for name, *pair in results if (found := kinds(*pair))}


# All the differences there are, by the family of dtypes and the mode. In those of the last table only some dtypes, or
# versions of JAX and TensorFlow, have them.
ZEROS = {name: {"zero"} for name in ("max", "min", "clamp")}
ZEROS_AND_NAN = {name: {"zero", "nan"} for name in ("max", "min", "clamp", "clamp within")}
INVERSES = {name: {"nan"} for name in ("acos", "acosh", "asin", "asinh")} | {"atanh": {"nan", "number", "zero"}}
SIGNS = {name: {"nan", "zero"} for name in ("cosh", "sinh", "tan", "tanh")}
OF_ARITHMETIC = {
    "expm1": {"zero"},
    "integer_pow -2": {"zero"},
    "integer_pow 3": {"nan"},
    "mul": {"infinity", "nan"},
    "rsqrt": {"zero"},
}
NOT_COMPILED = INVERSES | SIGNS | OF_ARITHMETIC
DIFFERENCES = {
    ("float", "eager"): ZEROS,
    ("float", "graph"): ZEROS,
    ("float", "compiled"): ZEROS_AND_NAN,
    ("complex", "eager"): NOT_COMPILED,
    ("complex", "graph"): NOT_COMPILED,
    ("complex", "compiled"): {"expm1": {"zero"}} | {name: {"nan"} for name in ("log", "log1p", "pow", "sign", "sqrt")},
}
DIV = {"nan", "number", "zero"}
OF_SOME = {
    ("float", "eager"): {"clamp within": {"zero"}},
    ("float", "graph"): {"clamp within": {"zero"}},
    ("complex", "eager"): {"abs": {"nan"}, "div": DIV, "pow": {"infinity", "nan", "number", "zero"}},
    ("complex", "graph"): {"abs": {"nan"}, "div": DIV, "pow": {"infinity", "nan", "number", "zero"}},
    ("complex", "compiled"): {"abs": {"nan"}, "mul": {"infinity", "nan"}},
}

# Operations of modules that those are lowered to, other than of that name.
LOWERED = {
    "abs": "abs",
    "clamp within": "clamp",
    "div": "divide",
    "expm1": "exponential_minus_one",
    "integer_pow -2": "divide",
    "integer_pow 3": "multiply",
    "log1p": "log_plus_one",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "pow": "power",
}

# One dtype of each family in every mode, the others in one; all of them with JAXTF_FULL=1.
TRIED = [
    (dtype, mode)
    for dtype in (*FLOATS, *COMPLEX, *INTEGERS)
    for mode in MODES
    if FULL or mode == "graph" or dtype in ("float32", "complex64", "int8")
]


@pytest.mark.slow(2)
@pytest.mark.sweep(2)
@pytest.mark.parametrize(("dtype", "mode"), TRIED)
def test_special_values_give_what_jax_gives_but_for_the_known_differences(dtype, mode):
    case = family(dtype), mode
    known, perhaps = DIFFERENCES.get(case, {}), OF_SOME.get(case, {})
    found = found_differences(dtype, mode)
    assert {name: kinds for name, kinds in found.items() if name not in perhaps} == known
    assert all(found.get(name, set()) <= kinds for name, kinds in perhaps.items())


def test_the_page_of_limitations_has_a_row_of_each_known_difference():
    names = {name for table in (DIFFERENCES, OF_SOME) for known in table.values() for name in known}
    for name in names:
        own = LOWERED.get(name, name)
        rows = [entries()[full] for full in (f"stablehlo.{own}", f"chlo.{own}") if full in entries()]
        assert any(row.differs or "Differs:" in (row.emit.__doc__ or "") for row in rows), name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_greatest_are_in_the_total_order(dtype, mode):
    values = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -0.0, 0.0, -2], dtype)
    values[3] = np.copysign(values[2], -np.ones((), dtype))
    found, expected = (
        run(lambda x: lax.top_k(x, 10), values, **given)
        for run, given in ((run_graph_mode, {"mode": mode}), (run_jax, {}))
    )
    assert_identical(found, expected)
    np.testing.assert_array_equal(expected[1], [2, 4, 6, 0, 8, 1, 7, 9, 5, 3])


@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("others", [[-0.0, 0.0], [0.0, -0.0, 0.0], [np.nan, 5], [5, -np.nan], [np.inf, -np.inf], [-3]])
def test_the_greatest_are_in_order_with_any_of_the_special_values(others, dtype, mode, allows_xla):
    values = np.array([[1, 2, -1, -2, *others], [1, 2, -3, -4, *([7] * len(others))]], dtype)
    values[:, 4:] = np.copysign(values[:, 4:], np.array(others, dtype))

    def greatest(x):
        return [lax.top_k(x, k) for k in (1, 3, x.shape[1])]

    assert_identical(run_graph_mode(greatest, values, mode=mode, allows_xla=allows_xla), run_jax(greatest, values))


@pytest.mark.parametrize("mode", ["eager", "graph"])  # compiled, TensorFlow 2.21 itself gets them wrong
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_integers_of_four_bits_are_shifted_and_counted_as_their_bits(dtype, mode):
    values = np.arange(-8, 8).astype(dtype) if dtype == "int4" else np.arange(16).astype(dtype)
    left, right = (np.array(side, dtype) for side in zip(*itertools.product(values, values), strict=True))

    def every(x, y):
        shifts = lax.shift_left, lax.shift_right_arithmetic, lax.shift_right_logical
        return [*(shift(x, y) for shift in shifts), lax.clz(x), lax.population_count(x)]

    found = [x.astype(int) % 16 for x in run_graph_mode(every, left, right, mode=mode)]
    bits, amount = left.astype(int) % 16, right.astype(int) % 16
    fits, steps = amount < 4, np.minimum(amount, 3)
    signed = bits - 16 * (bits >= 8)
    np.testing.assert_array_equal(found[0], np.where(fits, bits << steps, 0) % 16)
    np.testing.assert_array_equal(found[1], (signed >> steps) % 16)
    np.testing.assert_array_equal(found[2], np.where(fits, bits >> steps, 0))
    np.testing.assert_array_equal(found[3], [4 - int(n).bit_length() for n in bits])
    np.testing.assert_array_equal(found[4], [int(n).bit_count() for n in bits])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
@pytest.mark.parametrize("allows_xla", [False, True])
def test_a_power_that_grappler_takes_for_a_root_is_none_of_minus_infinity_and_zero(allows_xla, exponent, dtype, mode):
    with jax.enable_x64(dtype == "float64"):
        for values in ([-np.inf, -0.0, 0.0, 4, np.inf, np.nan, -1], [-np.inf, 3], [-0.0, 3], [0.0, 3, np.inf]):
            x = np.array(values).astype(jnp.dtype(dtype))
            given = {"mode": mode, "max_error_in_eps": 2, "allows_xla": allows_xla}
            same_as_jax(lambda x: lax.pow(x + x, jnp.full_like(x, exponent)) * 2, x, **given)


@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_complex_number_to_the_power_of_a_constant_of_minus_one_is_its_reciprocal(dtype, mode, allows_xla):
    zeros = [complex(real, imaginary) for real in (0.0, -0.0) for imaginary in (0.0, -0.0)]
    x = np.array([*zeros, 1, -2j, 3 - 4j, -0.5 + 2j], dtype)
    minus_ones = np.full(x.shape, -1, dtype)

    def powers(x, exponent):  # an exponent that is no constant makes NaN of 0, in JAX, too
        return lax.pow(x, jnp.full_like(x, -1)), lax.pow(x, minus_ones), lax.pow(x[0], exponent[0])

    expected = run_jax(powers, x, minus_ones)
    assert np.isinf(expected[0][: len(zeros)].real).all()
    assert np.isnan(expected[2].real)
    found = run_graph_mode(powers, x, minus_ones, mode=mode, allows_xla=allows_xla)
    for ours, theirs in zip(found, expected, strict=True):
        assert kinds(ours, theirs) <= {"zero"}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_less_may_be_unordered(mode):
    x, y = np.float32([1, np.nan, 2, 3]), np.float32([2, 1, np.nan, 3])
    same_as_jax(lambda x, y: [~(x < y), ~(x <= y), ~(x > y), jnp.where(~(x >= y), x, y)], x, y, mode=mode)
    same_as_jax(lambda x, y: [~(x == y), ~(x != y), ~(x.astype(int) < y.astype(int))], x, y, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "complex64"])
def test_zero_minus_zero_is_zero_and_not_its_negation(dtype, mode):
    with jax.enable_x64(dtype == "float64"):
        x = np.array([0.0, -0.0, 1, -2, np.inf, np.nan]).astype(jnp.dtype(dtype))

        def parts(z):
            return [lax.real(z), lax.imag(z)] if jnp.iscomplexobj(z) else [z]

        same_as_jax(lambda x: [*parts(0 - x), *parts(jnp.zeros_like(x) - x)], x, mode=mode)
        if dtype != "complex64":
            same_as_jax(lambda x: [1 / (0 - x), jnp.asarray(-0.0, x.dtype) - x], x, mode=mode)


@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_maximum_with_negative_zero_is_no_relu(dtype, mode, allows_xla):
    with jax.enable_x64(True):
        x = np.array([-1, -np.inf, 2, np.nan], dtype)  # of 0 and -0 either may be given
        bound = np.array(-0.0, dtype)
        functions = [lambda x: 1 / jnp.maximum(x, bound), lambda x: 1 / jnp.maximum(np.full(4, bound), x)]
        functions += [lambda x: 1 / lax.reduce_window(jnp.maximum(x, bound), -np.inf, lax.max, (1,), (1,), "VALID")]
        for function in functions:
            same_as_jax(function, x, mode=mode, allows_xla=allows_xla)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 16, 19])  # kernels take several numbers at once, and the rest one by one
def test_complex_quotients_by_zero_by_infinity_and_of_it(count, mode):
    dividends = [1, 2 + 1j, 0, complex(np.inf, 0), complex(np.nan, 1), complex(np.inf, np.nan), 1e30 + 1e30j]
    divisors = [0j, -0.0 + 0j, complex(0, -0.0), complex(np.inf, 0), complex(-np.inf, 3), complex(np.inf, np.nan)]
    divisors += [complex(np.nan, 0), 1e-38 + 0j, 1e-30 + 1e-30j, 2 + 1j]
    # Of these one part is NaN, and the other is not: that of a ratio of 0, or of a difference of infinities.
    dividends += [complex(*parts) for parts in ((np.inf, np.inf), (-np.inf, np.inf), (-np.inf, 3), (2, -np.inf))]
    divisors += [1 - 2j, -1 - 1j, 1j, 3 + 0j, 1e30 + 1e-30j, 1e-30 - 1e30j]
    pairs = np.array([(x, y) for x in dividends for y in divisors], np.complex64)
    x, y = (np.repeat(pairs[:, i], count) for i in range(2))
    same_as_jax(lambda x, y: [x / y, lax.reciprocal(y), (2 + 1j) / y], x, y, mode=mode)


EQUAL_TERMS = {
    "twice": lambda x: x + x,
    "three times": lambda x: x + x + x,
    "four times": lambda x: (x + x) + (x + x),
    "less the negative": lambda x: x - (-x),
    "conjugates": lambda x: jnp.conj(x) + jnp.conj(x),
    "equal expressions": lambda x: (x * 2) + (x * 2),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("name", EQUAL_TERMS)
def test_a_sum_of_equal_complex_numbers_has_the_sums_of_their_parts(name, allows_xla, mode):
    x = np.array([complex(0, -np.inf), -0.0 - 2j, -0.0 - 0j, 1 + 2j, complex(3e38, 0)], np.complex64)

    def parts(x):
        z = EQUAL_TERMS[name](x)
        return [lax.real(z), lax.imag(z)]

    same_as_jax(parts, x, mode=mode, allows_xla=allows_xla)


MONOTONIC = (jnp.sqrt, jnp.log, jnp.log1p, lax.rsqrt, jnp.arccosh, jnp.arcsin, jnp.arccos, jnp.arctanh, jnp.negative)
MONOTONIC += (jnp.exp, jnp.expm1, jnp.tanh, jax.scipy.special.erf, jax.nn.relu, jax.nn.sigmoid, jnp.sign, jnp.floor)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("values", [[], [-3, 4, 0.25, -np.inf, np.inf], [-0.5, 0.5, 1, -1], [2.0, 0.5, 3]])
def test_an_extreme_of_a_function_is_not_the_function_of_an_extreme(values, allows_xla, mode):
    extremes = [(f, initial, g) for f in (jnp.max, jnp.min) for initial in (-5, 5) for g in MONOTONIC]
    # Each of its own elements: what several operations use is not rewritten.
    x = np.array([values] * len(extremes), "float32")

    def function(x):
        return [f(g(x[i]), axis=0, initial=initial, keepdims=i % 2 > 0) for i, (f, initial, g) in enumerate(extremes)]

    if mode == "compiled" and values:
        pytest.skip("compiled, XLA's CPU backend drops NaN in max and min")
    same_as_jax(function, x, mode=mode, max_error_in_eps=4, allows_xla=allows_xla)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_wrap_where_grappler_rewrites(dtype, allows_xla, mode):
    def function(x, y):
        from_zero = 0 - x
        extremes = [f(g, initial=0) for f in (jnp.max, jnp.min) for g in (-x, from_zero, jnp.zeros_like(x) - x)]
        products = [(x - y) * (x - y), jnp.square(x - y), (from_zero * from_zero), (x - y) ** jnp.asarray(2, x.dtype)]
        held = [lax.cond(x.shape[0] > 3, lambda d: d, lambda d: d * d, x - y), lax.rem(0 * x, y) * lax.rem(x, y)]
        return [from_zero, *extremes, *products, *held, jax.jit(lambda a, b: a * b)(x - y, x - y)]

    with jax.enable_x64(dtype.endswith("64")):
        lowest = np.iinfo(dtype).min
        for values in ([lowest, 5], [5, lowest], [2, 5, 5], [0, 3, lowest], [7]):
            x = np.array(values, dtype)
            same_as_jax(function, x, np.full_like(x, 3), mode=mode, allows_xla=allows_xla)
        nothing = np.zeros(0, dtype)
        same_as_jax(function, nothing, nothing, mode=mode, allows_xla=allows_xla)


@pytest.mark.parametrize(("shape", "mode"), [*(((3,), mode) for mode in MODES), ((1, 3), "graph"), ((3, 1), "graph")])
@pytest.mark.parametrize("search", [jnp.argmax, jnp.argmin, jnp.max, jnp.min])
@pytest.mark.parametrize("function", [jnp.negative, jnp.sign])  # one each: what is used twice is not rewritten
def test_an_extreme_of_integers_and_where_it_is(shape, function, search, mode):
    for values in ([np.iinfo(np.int32).min, 5, 5], [2, 5, 5], [7, 5, 3]):
        x = np.array(values, np.int32).reshape(shape)
        same_as_jax(lambda x: [search(function(x), axis=shape.index(3))], x, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rank", [6, 7, 8, 9])
def test_extremes_and_their_places_in_arrays_of_many_dimensions(rank, mode):
    x = np.random.RandomState(0).permutation(2**rank).reshape((2,) * rank).astype("float32")
    same_as_jax(
        lambda x: [jnp.argmax(x, 1), jnp.argmin(-x, 0), jnp.max(-x, (0, 2)), jnp.min(x, 1, keepdims=True)], x, mode=mode
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_function_of_a_constant_that_grappler_rewrites_has_the_values_of_jax(mode):
    # Small functions are put where they are called; large ones, called twice, are functions that Grappler puts there.
    @jax.jit
    def small(zero, half, x):
        return 1 / (zero - x), lax.pow(x, half)

    @jax.jit
    def large(zero, half, x):
        other = jnp.sin(x) + jnp.cos(x) * jnp.tanh(x) + jnp.exp(-abs(x))
        return jnp.where(other > 9, other, 1 / (zero - x)), jnp.where(other > 9, other, lax.pow(x, half))

    def function(x):
        zeros, halves = jnp.zeros_like(x), jnp.full_like(x, 0.5)
        return [f(zeros, halves, y) for f in (small, large) for y in (x, x * 2)]

    x = np.float32([0, -0.0, 1, -np.inf, 4])
    same_as_jax(function, x, mode=mode, max_error_in_eps=2)
