"""Operations on each element, with the values at which they are delicate, in every dtype; conversions; sorting."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import COMPLEX, FLOATS, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes, least_scale

__all__ = ["complexes", "composed", "conversions", "floats", "integers", "sort", "top_k"]

FLOAT_UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(lax, name)
    for name in [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "is_finite",
        "lgamma",
        "log",
        "log1p",
        "logistic",
        "neg",
        "reciprocal",
        "round",
        "rsqrt",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "bessel_i0e",
        "bessel_i1e",
    ]
}
FLOAT_UNARY |= {
    "round to even": lambda a: lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN),
    "clamp": lambda a: lax.clamp(jnp.asarray(-1, a.dtype), a, jnp.asarray(0, a.dtype)),
    "relu": jax.nn.relu,
    "power 3": lambda a: lax.integer_pow(a, 3),
    "power -2": lambda a: lax.integer_pow(a, -2),
    "softmax": lambda a: jax.nn.softmax(a, axis=-1) if a.ndim else a,
    "reduce_precision": lambda a: lax.reduce_precision(a, 5, 4),
    "nan_to_num": jnp.nan_to_num,
}
FLOAT_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(lax, name)
    for name in [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "pow",
        "max",
        "min",
        "atan2",
        "nextafter",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ]
}
FLOAT_BINARY |= {
    "select": lambda a, b: lax.select(a > b, a, b),
    "floor_divide": jnp.floor_divide,
    "mod": jnp.mod,
    "copysign": jnp.copysign,
    "logaddexp": jnp.logaddexp,
    "heaviside": jnp.heaviside,
}
# Of 16 bits JAX computes in 32; of a larger range, the rounding of an argument counts.
FLOAT_MAX_ERROR_IN_EPS = 64
# Near which they are differences of larger numbers.
HAVE_ROOTS = {"lgamma", "digamma"}


def _same_shape(draw: Draw) -> tuple[Sizes, tuple[Any, ...]]:
    sizes = Sizes(draw)
    return sizes, sizes.shape(0, 2, 6, 1)


@st.composite
def floats(draw: Draw) -> Case:
    """Operations on floating point, with NaN, infinities, signed zeros."""
    sizes, shape = _same_shape(draw)
    name = draw(st.sampled_from([*FLOAT_UNARY, *FLOAT_BINARY]))
    dtype = draw(dtypes(FLOATS))
    values = draw(st.sampled_from(["special", "special", "normal", "wide"]))
    count = 1 if name in FLOAT_UNARY else 2
    return Case(
        name,
        FLOAT_UNARY.get(name) or FLOAT_BINARY[name],
        (Argument(shape, dtype, values),) * count,
        sizes.symbolic,
        max_error_in_eps=FLOAT_MAX_ERROR_IN_EPS,
        scale=1.0 if name in HAVE_ROOTS else least_scale(dtype) if values == "wide" else 0.0,
        has_derivative=False,
        tags=frozenset({name, values, dtype}),
    )


COMPLEX_UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(lax, name)
    for name in [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "conj",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "imag",
        "log",
        "log1p",
        "logistic",
        "neg",
        "real",
        "reciprocal",
        "rsqrt",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
    ]
}
COMPLEX_UNARY |= {"over 0": lambda a: a / 0, "over 3 - 4j": lambda a: a / (3 - 4j), "1 over": lambda a: 1 / a}
COMPLEX_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(lax, name) for name in ["add", "sub", "mul", "div", "pow", "eq", "ne"]
}
COMPLEX_BINARY |= {"max": jnp.maximum, "min": jnp.minimum, "complex": lambda a, b: lax.complex(a.real, b.imag)}

# A product of large numbers is NaN or not as one of infinite parts is, and so is a power; XLA's sinh loses a small real
# part.
NOT_WIDE = {"mul", "pow", "sinh", "square"}


@st.composite
def complexes(draw: Draw) -> Case:
    """Operations on complex numbers, also at branch cuts, zeros and large ones."""
    sizes, shape = _same_shape(draw)
    name = draw(st.sampled_from([*COMPLEX_UNARY, *COMPLEX_BINARY]))
    dtype = draw(dtypes(COMPLEX))
    values = draw(st.sampled_from(["small", "normal", *([] if name in NOT_WIDE else ["wide", "wide"])]))
    count = 1 if name in COMPLEX_UNARY else 2
    return Case(
        name,
        COMPLEX_UNARY.get(name) or COMPLEX_BINARY[name],
        (Argument(shape, dtype, values),) * count,
        sizes.symbolic,
        max_error_in_eps=FLOAT_MAX_ERROR_IN_EPS,
        by_element=values == "wide",
        has_derivative=False,
        tags=frozenset({name, values, dtype}),
    )


# Pairs of steps that a graph's optimizer knows by their algebra, which NaN, infinities and signed zeros do not obey.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "a + 0": lambda a, b: a + 0,
    "a + -0.": lambda a, b: a + jnp.asarray(-0.0, a.dtype),
    "0 - a": lambda a, b: 0 - a,
    "-0. - a": lambda a, b: jnp.asarray(-0.0, a.dtype) - a,
    "2 - (3 - a)": lambda a, b: 2 - (3 - a),
    "-(a - b)": lambda a, b: -(a - b),
    "a - 0": lambda a, b: a - 0,
    "a - a": lambda a, b: a - a,
    "a + a": lambda a, b: a + a,
    "a * 0": lambda a, b: a * 0,
    "a * 1": lambda a, b: a * 1,
    "a * -1": lambda a, b: a * -1,
    "a * 3": lambda a, b: a * 3,
    "a * a": lambda a, b: a * a,
    "a / 1": lambda a, b: a / 1,
    "a / a": lambda a, b: a / a,
    "0 / a": lambda a, b: 0 / a,
    "a / 3": lambda a, b: a / 3,
    "1 / a": lambda a, b: 1 / a,
    "-a": lambda a, b: -a,
    "a + -b": lambda a, b: a + -b,
    "a - -b": lambda a, b: a - -b,
    "a * b + a * b": lambda a, b: a * b + a * b,
    "a * b + a * 3": lambda a, b: a * b + a * 3,
    "(a / 2) * 2": lambda a, b: (a / 2) * 2,
    "a * b - a": lambda a, b: a * b - a,
    "(a / b) * b": lambda a, b: (a / b) * b,
    "sqrt": lambda a, b: jnp.sqrt(a),
    "1 / sqrt": lambda a, b: 1 / jnp.sqrt(a),
    "rsqrt * a": lambda a, b: lax.rsqrt(a) * a,
    "a ** 2": lambda a, b: lax.integer_pow(a, 2),
    "a ** 0.5": lambda a, b: a**0.5,
    "a ** 0": lambda a, b: lax.pow(a, jnp.zeros_like(a)),
    "a ** 1": lambda a, b: lax.pow(a, jnp.ones_like(a)),
    "a ** -1": lambda a, b: lax.pow(a, -jnp.ones_like(a)),
    "exp log": lambda a, b: jnp.exp(jnp.log(a)),
    "log exp": lambda a, b: jnp.log(jnp.exp(a)),
    "log (1 + a)": lambda a, b: jnp.log(1 + a),
    "log softmax": lambda a, b: jnp.log(jax.nn.softmax(a)) if a.ndim else a,
    "exp - 1": lambda a, b: jnp.exp(a) - 1,
    "abs abs": lambda a, b: abs(abs(a)),
    "max max": lambda a, b: jnp.maximum(a, jnp.maximum(a, b)),
    "min max": lambda a, b: jnp.minimum(jnp.maximum(a, 0), 6),
    "max 0": lambda a, b: jnp.maximum(a, 0),
    "max -inf": lambda a, b: jnp.maximum(a, -jnp.inf),
    "min inf": lambda a, b: jnp.minimum(a, jnp.inf),
    "not less": lambda a, b: jnp.where(~(a < b), a, 3),
    "not less or equal": lambda a, b: jnp.where(~(a <= b), a, 3),
    "not greater": lambda a, b: jnp.where(jnp.logical_not(a > b), 1, b),
    "not equal": lambda a, b: jnp.where(~(a == b), a, 3),
    "not not": lambda a, b: jnp.where(~~(a < b), a, 3),
    "not and": lambda a, b: jnp.where(~((a < b) & (b < 1)), a, 3),
    "equal itself": lambda a, b: jnp.where(lax.eq(a, a), a, 3),
    "not equal itself": lambda a, b: jnp.where(lax.ne(a, a), a, 3),
    "not less than itself": lambda a, b: jnp.where(lax.ge(a, a), a, 3),
    "where nan": lambda a, b: jnp.where(jnp.isnan(a), b, a),
    "select same": lambda a, b: jnp.where(a > 0, b, b),
    "convert twice": lambda a, b: a.astype("float32").astype(a.dtype),
    "by integers": lambda a, b: jnp.nan_to_num(a).astype("int32").astype(a.dtype),
    "sum of one": lambda a, b: a[None].sum(0) + b,
    "mean of one": lambda a, b: a[None].mean(0) - b,
    "product of one": lambda a, b: a[None].prod(0) * b,
    "reshape twice": lambda a, b: a.reshape(-1).reshape(a.shape) + b,
    "transpose twice": lambda a, b: a.T.T - b,
    "reverse twice": lambda a, b: jnp.flip(jnp.flip(a)) + b,
    "concatenate": lambda a, b: jnp.concatenate([a[None], b[None]])[0],
    "pad and cut": lambda a, b: jnp.pad(a[None], [(1, 1), *[(0, 0)] * a.ndim])[1],
    "stop gradient": lambda a, b: lax.stop_gradient(a) * b,
    "sigmoid": lambda a, b: a * jax.nn.sigmoid(a),
    "tanh": lambda a, b: jnp.tanh(a),
    "log": lambda a, b: jnp.log(a),
    "max of all": lambda a, b: jnp.broadcast_to(jnp.max(a, initial=-5), a.shape),
    "min of all": lambda a, b: jnp.broadcast_to(jnp.min(a, initial=5), a.shape),
}


COMPARES = re.compile("not|equal|where|select|integers")
MONOTONIC = ("sqrt", "1 / sqrt", "log", "log (1 + a)", "-a", "exp - 1", "tanh")
INVERT = {"1 / a", "a ** -1", "1 / sqrt"}  # the sign of a zero becomes that of an infinity


@st.composite
def composed(draw: Draw) -> Case:
    """Up to four steps whose algebra an optimizer may use, with NaN, infinities and signed zeros."""
    sizes, shape = _same_shape(draw)
    # What compares comes first, where values are exact: later, rounding would decide.
    names = [draw(st.sampled_from(list(STEPS)))]
    names += draw(st.lists(st.sampled_from([name for name in STEPS if not COMPARES.search(name)]), max_size=3))
    if not draw(st.integers(0, 3)):
        names += [draw(st.sampled_from(MONOTONIC)), draw(st.sampled_from(["max of all", "min of all"]))]
    dtype = draw(st.sampled_from(["float32", "float64"]))

    def function(a: Any, b: Any, without: str = "") -> Any:
        for name in names:
            a, b = (a if name == without else STEPS[name](a, b).astype(a.dtype)), a
        return a

    has_extremes = any("max" in name or "min" in name for name in names)
    tags = {"special", "max" if has_extremes else "", dtype, *names}
    return Case(
        f"composed {names}",
        function,
        (Argument(shape, dtype, "edges"),) * 2,
        sizes.symbolic,
        max_error_in_eps=FLOAT_MAX_ERROR_IN_EPS,
        scale=8.0,
        has_derivative=False,
        simplified=partial(function, without="log exp"),
        tags=sizes.tags | (tags | {"1 / a"} if tags & INVERT else tags),
    )


def _and_least(a: Any) -> Any:
    return jnp.append(a, jnp.array(jnp.iinfo(a.dtype).min, a.dtype))


INTEGER_UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(lax, name) for name in ["abs", "neg", "sign", "bitwise_not", "population_count", "clz"]
}
INTEGER_UNARY |= {
    "power 3": lambda a: lax.integer_pow(a, 3),
    "bit_count": jnp.bitwise_count,
    "from zero": lambda a: 0 - a,
    "largest of negated": lambda a: jnp.max(-_and_least(a)),
    "least of negated": lambda a: jnp.min(0 - _and_least(a)),
    "least of negated or 0": lambda a: jnp.min(-a, initial=0),
    "place of the largest negated": lambda a: jnp.argmax(-_and_least(a)),
    "place of the least sign": lambda a: jnp.argmin(jnp.sign(_and_least(a))),
}
INTEGER_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(lax, name)
    for name in [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "max",
        "min",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ]
}
INTEGER_BINARY |= {
    "square of a difference": lambda a, b: (a - b) * (a - b),
    "floor_divide": jnp.floor_divide,
    "mod": jnp.mod,
    "clamp": lambda a, b: lax.clamp(jnp.minimum(a, b), a ^ b, jnp.maximum(a, b)),
    "gcd": jnp.gcd,
    "power": lambda a, b: jnp.power(a, b % 5),
}


@st.composite
def integers(draw: Draw) -> Case:
    """Operations on integers of every width, over the whole range, with division by zero and shifts by any amount."""
    sizes, shape = _same_shape(draw)
    name = draw(st.sampled_from([*INTEGER_UNARY, *INTEGER_BINARY]))
    dtype = draw(dtypes(SIGNED, UNSIGNED))
    values = draw(st.sampled_from(["bits", "bits", "small"]))
    count = 1 if name in INTEGER_UNARY else 2
    return Case(
        name,
        INTEGER_UNARY.get(name) or INTEGER_BINARY[name],
        (Argument(shape, dtype, values),) * count,
        sizes.symbolic,
        has_derivative=False,
        tags=frozenset({name, values, dtype}),
    )


@st.composite
def conversions(draw: Draw) -> Case:
    """Conversions between any two dtypes, of values that both have, and of bits."""
    sizes, shape = _same_shape(draw)
    every = dtypes(FLOATS, SIGNED, UNSIGNED, COMPLEX, ("bool",))
    source, target = draw(every), draw(every)
    has_bits = source not in (*COMPLEX, "bool") and target not in (*COMPLEX, "bool")
    if has_bits and jnp.dtype(source).itemsize == jnp.dtype(target).itemsize and draw(st.booleans()):
        values = "small" if target in FLOATS else "bits"  # of a NaN, bits may change
        name, function = "bits", lambda a: lax.bitcast_convert_type(a, jnp.dtype(target))
    else:
        # What does not fit is clamped or wraps, as each backend does; NaN and infinities become anything.
        values = "special" if source in FLOATS and target in (*FLOATS, *COMPLEX, "bool") else "small"
        if source in SIGNED and target in (*SIGNED, *UNSIGNED):
            values = "bits"
        if source in (*FLOATS, *COMPLEX) and target in UNSIGNED:
            values = (0, 100)
        name, function = "convert", lambda a: lax.convert_element_type(a, jnp.dtype(target))
    return Case(
        f"{name} of {source} to {target}",
        function,
        (Argument(shape, source, values), Argument((), target))[:1],
        sizes.symbolic,
        has_derivative=False,
        tags=frozenset({name, source, target, "wide" if {source, target} & {"int64", "float64"} else ""}),
    )


@st.composite
def sort(draw: Draw) -> Case:
    """`lax.sort` of one to three arrays by any number of keys, and what jax.numpy makes of it."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 3, 6)
    axis = draw(st.integers(0, len(shape) - 1))
    name = draw(st.sampled_from(["sort", "sort", "sort", "argsort", "descending", "median", "unique", "searchsorted"]))
    if name == "sort":
        count = draw(st.integers(1, 3))
        keys, stable = draw(st.integers(1, count)), draw(st.booleans())
        kinds = [draw(dtypes(FLOATS, SIGNED, UNSIGNED, COMPLEX, ("bool",))) for _ in range(count)]
        is_total = keys == count  # equal elements cannot be distinguished
        values = draw(st.sampled_from(["ties", "special", "extremes"]))

        def function(*arrays: Any) -> Any:
            return lax.sort(arrays, dimension=axis, is_stable=stable or not is_total, num_keys=keys)

        return Case(
            f"sort of {kinds} along {axis} by {keys} keys",
            function,
            tuple(Argument(shape, kind, values) for kind in kinds),
            sizes.symbolic,
            has_derivative=values == "ties" and is_total and len(kinds) == 1 and False,
            tags=frozenset({name, values}),
        )
    dtype = draw(dtypes(FLOATS, SIGNED, UNSIGNED))
    kinds_of_values = ["ties", "special", "extremes"]
    values = "ties" if name in ("median", "unique", "searchsorted") else draw(st.sampled_from(kinds_of_values))

    def other(x: Any) -> Any:
        if name == "argsort":
            return jnp.argsort(x, axis=axis)
        if name == "descending":
            return jnp.argsort(x, axis=axis, descending=True), jnp.sort(x, axis=axis, descending=True)
        if name == "median":
            return jnp.median(x.astype("float32"), axis=axis)
        if name == "unique":
            return jnp.unique(x, size=4, fill_value=0, return_counts=True), jnp.nonzero(x, size=3)
        return jnp.searchsorted(jnp.sort(x.reshape(-1)), x, side="right")

    return Case(
        f"{name} along {axis}",
        other,
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=False,
        tags=frozenset({name, values, dtype}),
    )


@st.composite
def top_k(draw: Draw) -> Case:
    """`lax.top_k` with ties, NaN and signed zeros."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 3, 6, 1)
    axis = draw(st.integers(0, len(shape) - 1))
    k = draw(st.integers(0, sizes.least(shape[axis])))
    dtype = draw(dtypes(FLOATS, SIGNED, UNSIGNED))
    values = draw(st.sampled_from(["ties", "special", "extremes", "bits"]))
    return Case(
        f"top_k {k} along {axis}",
        lambda x: lax.top_k(x, k, axis=axis),
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=False,
        tags=frozenset({"top_k", values, dtype}),
    )
