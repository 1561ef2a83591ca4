"""A random case of one operation, and how it is made: its function, arguments, and the sizes that are symbolic.

A family is a strategy of hypothesis (`families`) whose values are cases. It draws every attribute of its operation; a
size is drawn by `Sizes`, which makes some of them symbolic, each tried at two values. Numbers are small integers where
not stated otherwise, also in floating point: sums and products of them are exact in any order, so that a result that
differs is wrong and not rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

__all__ = ["Argument", "Case", "Draw", "Sizes", "dtypes", "least_scale", "whole_range"]

Draw = Callable[[st.SearchStrategy[Any]], Any]
Dimension = int | str

FLOATS = ("float32", "bfloat16", "float16", "float64")
SIGNED = ("int32", "int8", "int16", "int64")
UNSIGNED = ("uint8", "uint32", "uint16", "uint64")
COMPLEX = ("complex64", "complex128")
WIDE = ("float64", "int64", "uint64", "complex128")

# Sizes from which on XLA and TensorFlow take what is small in parts, in other orders.
LARGE = (33, 64, 257, 1000)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -1.5, 2.0, 7.0, 1e-3)

DRAWN: dict[Any, Callable[[np.random.Generator, list[int]], Any]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "terms": lambda random, shape: random.uniform(1 / 16, 1 / 8, shape),
    "ties": lambda random, shape: random.integers(0, 3, shape),
}


@dataclass(frozen=True)
class Argument:
    """One array.

    Attributes:
      shape: Sizes, those that are symbolic by name.
      dtype: By name.
      values: `small` integers, `special` ones too (NaN, infinities, signed zeros), `edges`: those without a tiny
        one, `ties` of three values, `extremes`: few of infinities, NaN and the limits, `bits` of the whole range,
        `normal`, `wide`: floats of any exponent, `terms` between 1/16 and 1/8, whose sums of hundreds and of products
        of thousands are in the range of 16 bits, a pair: integers between the two, both included, or more numbers: some
        of these.
    """

    shape: tuple[Dimension, ...]
    dtype: str = "float32"
    values: str | tuple[int, int] | tuple[float, ...] = "small"

    def array(self, sizes: Mapping[str, int], random: np.random.Generator) -> np.ndarray:
        """The array for sizes by name."""
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        if dtype == np.bool_ or (self.values == "extremes" and dtype.kind != "c"):
            return random.integers(0, 2, shape).astype(bool) if dtype == np.bool_ else _extremes(random, shape, dtype)
        numbers: Any
        if isinstance(self.values, tuple) and len(self.values) > 2:
            numbers = random.choice(self.values, shape)
        elif isinstance(self.values, tuple):
            numbers = random.integers(*self.values, size=shape, endpoint=True)
            if dtype.kind == "c":
                numbers = numbers + 1j * random.integers(*self.values, size=shape, endpoint=True)
        elif self.values == "bits" and dtype.kind in "iu":
            return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
        elif self.values in DRAWN:
            numbers = DRAWN[self.values](random, shape)
            if dtype.kind == "c":
                numbers = numbers + 1j * DRAWN[self.values](random, shape)
        elif self.values == "wide" and dtype.kind not in "iu":
            numbers = _of_any_exponent(random, shape, dtype)
        elif self.values in ("special", "edges") and dtype.kind not in "iu":
            numbers = random.choice(SPECIAL if self.values == "special" else SPECIAL[:-1], shape)
            if dtype.kind == "c":
                parts = np.empty(shape, dtype)
                parts.real, parts.imag = numbers, random.choice(SPECIAL, shape)
                return parts
        else:
            numbers = random.integers(0 if dtype.kind == "u" else -3, 4, shape)
            if dtype.kind == "c":
                numbers = numbers + 1j * random.integers(-3, 4, shape)
        return np.asarray(numbers).astype(dtype)


def _extremes(random: np.random.Generator, shape: list[int], dtype: np.dtype[Any]) -> np.ndarray:
    """The limits of a dtype and what is beyond them: of one side, or two or three of all."""
    limits = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)
    beyond = () if dtype.kind in "iu" else (-np.inf, np.inf, np.nan)
    pool = np.array([limits.min, limits.max, *beyond], dtype)
    pools = [pool[:3:2], pool[1:4:2], random.permutation(pool)[: random.integers(2, 4)]]
    return random.choice(pools[random.integers(3)], shape)


def _of_any_exponent(random: np.random.Generator, shape: list[int], dtype: np.dtype[Any]) -> np.ndarray:
    """Floats with all exponents; of complex numbers four fifths, so that some operations more are in the range."""
    limits = ml_dtypes.finfo(dtype)
    if dtype.kind == "c":
        exponents = random.integers(int(0.8 * limits.minexp), int(0.8 * limits.maxexp), shape, endpoint=True)
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)) * 2.0**exponents
    exponents = random.integers(limits.minexp, limits.maxexp - 1, shape, endpoint=True)
    return random.choice((1.0, 1.25, 1.5), shape) * 2.0**exponents * random.choice((1, -1), shape)


@dataclass(frozen=True)
class Case:
    """One operation with its attributes.

    Attributes:
      label: What is computed, for messages.
      function: The JAX function.
      arguments: What it takes.
      sizes: For each symbolic size the values to try.
      max_error_in_eps: Allowed error of floating-point results, relative to eps * max abs value.
      by_element: Whether it is relative to the absolute value of each element instead.
      scale: The least size of an element that the error is relative to, where differences of larger ones are taken.
      has_derivative: Whether it is to be differentiated too.
      reference: A function of NumPy arrays that gives the results, in place of JAX; only where XLA does not compile
        it, which would compute it otherwise.
      in_jax: The function as JAX is asked for it, where its XLA may compute another thing of it as it is.
      simplified: The function as one XLA simplifies it and another does not: a documented difference from JAX is one
        only where JAX's results of this agree.
      specification: A function of NumPy arrays that gives the results of the specification, where XLA for CPU may
        compute others: a documented difference from JAX is one only where these agree.
      often: The backends of every other trial; any is drawn for the rest.
      tags: Facts that the table of documented differences looks at.
    """

    label: str
    function: Callable[..., Any] = field(repr=False)
    arguments: tuple[Argument, ...]
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    max_error_in_eps: float = 4
    by_element: bool = False
    scale: float = 0.0
    has_derivative: bool = True
    reference: Callable[..., Any] | None = field(default=None, repr=False)
    in_jax: Callable[..., Any] | None = field(default=None, repr=False)
    simplified: Callable[..., Any] | None = field(default=None, repr=False)
    specification: Callable[..., Any] | None = field(default=None, repr=False)
    often: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()

    @property
    def needs_x64(self) -> bool:
        """Whether an argument has a dtype of 64 bits."""
        return any(argument.dtype in WIDE for argument in self.arguments)


class Sizes:
    """Draws sizes, in one of eight cases all 1; one of eight symbolic ones is large, at one of its values.

    Args:
      draw: Of hypothesis.
      symbolic: Whether sizes may be symbolic.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.symbolic: dict[str, tuple[int, ...]] = {}
        self._are_ones = draw(st.integers(0, 7)) == 7

    def size(self, low: int, high: int, *, may_be_symbolic: bool = True) -> Dimension:
        """A size from `low` to `high`; a symbolic one is at least 1."""
        high = min(high, max(low, 1)) if self._are_ones else high
        if may_be_symbolic and high >= 1 and not self._draw(st.integers(0, 3)):
            return self.named(max(low, 1), high)
        return self._draw(st.integers(low, high))

    def named(self, low: int, high: int) -> str:
        """The name of a symbolic size."""
        name = "abcdefgh"[len(self.symbolic)]
        self.symbolic[name] = (self._draw(st.integers(low, high)), self._draw(st.integers(low, high)))
        if all(values[0] < LARGE[0] for values in self.symbolic.values()) and not self._draw(st.integers(0, 7)):
            self.symbolic[name] = self._draw(st.sampled_from(LARGE)), self.symbolic[name][1]
        return name

    def shape(self, lowest_rank: int, highest_rank: int, high: int = 4, low: int = 0) -> tuple[Dimension, ...]:
        """As many sizes; zeros are rare."""
        rank = self._draw(st.integers(lowest_rank, highest_rank))
        return tuple(self.size(low if not self._draw(st.integers(0, 7)) else max(low, 1), high) for _ in range(rank))

    def counts(self, shape: tuple[Dimension, ...]) -> list[int]:
        """How many elements an array of the shape has, at each of the values that sizes are tried at."""
        return [
            int(np.prod([self.symbolic[size][i] if isinstance(size, str) else size for size in shape], initial=1))
            for i in range(2)
        ]

    @property
    def tags(self) -> frozenset[str]:
        """Whether there is a large one, or one of the largest, as tags of a case."""
        largest = max((max(values) for values in self.symbolic.values()), default=0)
        return frozenset({"large"} if largest >= LARGE[0] else {}) | ({"a thousand"} if largest >= LARGE[-1] else set())

    def least(self, size: Dimension) -> int:
        """The least value that a size is tried at."""
        return min(self.symbolic[size]) if isinstance(size, str) else size


def least_scale(dtype: str) -> float:
    """The size of elements of which a result that is flushed to zero, as subnormal, is an error of one eps."""
    limits = ml_dtypes.finfo(getattr(ml_dtypes, dtype, dtype))
    return float(limits.tiny) / float(limits.eps)


def whole_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def dtypes(*groups: tuple[str, ...]) -> st.SearchStrategy[str]:
    """One of the dtypes, the first of a group more often than others."""
    return st.one_of([st.one_of(st.just(group[0]), st.sampled_from(group)) for group in groups])


def pattern(value: Any) -> Any:
    """A cotangent for a value: -1, 0 and 1 in turn, by position."""
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    places = jax.lax.iota(jnp.int32, value.size) % 3 - 1
    return places.reshape(value.shape).astype(value.dtype)
