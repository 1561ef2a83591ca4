"""Generators of expression texts, and what Python computes for them.

A text is evaluated by Python itself, on integers: an authority that shares nothing with the package.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from hypothesis import strategies as st

from jaxtf.shapepoly import max_dim, min_dim

NAMES = ("a", "b", "c")

PYTHON = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
}

SYMBOLIC = {**PYTHON, "max": max_dim, "min": min_dim}


def value(text: str, sizes: Mapping[str, Any], functions: Mapping[str, Any] = PYTHON) -> Any:
    """What Python computes for the text of an expression or a constraint."""
    return eval(text.replace("^", "**"), {"__builtins__": {}, **functions}, dict(sizes))


def all_sizes(names: str | tuple[str, ...], largest: int) -> Iterator[dict[str, int]]:
    """All sizes from 1 to the largest."""
    for sizes in product(range(1, largest + 1), repeat=len(names)):
        yield dict(zip(names, sizes, strict=True))


integers = st.integers(-4, 4)
positive_integers = st.integers(1, 5)


def _combine(inner: st.SearchStrategy[str], *, linear: bool) -> st.SearchStrategy[str]:
    factors = integers.map(str) if linear else st.one_of(integers.map(str), inner)
    divisors = positive_integers if linear else st.one_of(positive_integers, st.sampled_from(NAMES))
    return st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("({} * {})".format, factors, inner),
        st.builds("floordiv({}, {})".format, inner, divisors),
        st.builds("mod({}, {})".format, inner, divisors),
        st.builds("max({}, {})".format, inner, inner),
        st.builds("min({}, {})".format, inner, inner),
    )


_leaves = st.one_of(st.sampled_from(NAMES), integers.map(str))

linear_expressions = st.recursive(_leaves, lambda inner: _combine(inner, linear=True), max_leaves=6)
"""Texts that are linear in a, b, c, with division by integers, `max` and `min`."""

expressions = st.recursive(_leaves, lambda inner: _combine(inner, linear=False), max_leaves=6)
"""Texts that also multiply and divide by variables."""

_simple = st.recursive(_leaves, lambda inner: _combine(inner, linear=True), max_leaves=3)
constraints = st.lists(st.builds("{} {} {}".format, _simple, st.sampled_from([">=", "<=", "=="]), _simple), max_size=3)
"""Texts of constraints that are linear in a, b, c."""

_sides = st.one_of(
    st.sampled_from(NAMES),
    st.builds("{} * {}".format, st.sampled_from(("2", "3", "4", *NAMES)), st.sampled_from(NAMES)),
    st.builds("{}({}, {})".format, st.sampled_from(list(PYTHON)), st.sampled_from(NAMES), st.sampled_from("2b3")),
)
equalities = st.lists(
    st.builds(
        "{} == {}".format,
        _sides,
        st.recursive(st.one_of(_leaves, _sides), lambda e: _combine(e, linear=False), max_leaves=3),
    ),
    min_size=1,
    max_size=2,
)
"""Texts of equalities with a product, a quotient, a remainder or a variable on the left."""
