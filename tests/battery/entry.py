"""What an entry of the battery is, and the arguments it runs with.

An entry is one JAX function with symbolic shapes: a line in a table. `polymorphic` makes one that must work,
`refused` one that JAX itself does not trace with symbolic sizes, with the words it says. Arguments follow from
the shape texts, the dtypes and the sizes alone, so that every run of the battery sees the same numbers.

Knows JAX only for the dtypes; nothing of export.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

RUNS = 3
"""Sizes that each entry runs at."""

SIZES: Mapping[str, tuple[int, int, int]] = {
    "b": (1, 3, 8),
    "d": (2, 1, 5),
    "n": (4, 9, 6),
    "m": (3, 2, 7),
    "h": (6, 9, 5),
    "w": (5, 7, 8),
    "k": (1, 2, 3),
}
"""What each dimension variable is in the three runs, unless the entry says otherwise."""

# What JAX says where it refuses symbolic sizes, in more than one entry.
NEEDS_CONSTANT = "used in a context that requires a constant"
NO_INDEX = "NumPy's shapes and the indices of"
NO_ASSOCIATIVE_SCAN = "associative scan over axis of non-constant size"
NO_FFT = "Shape polymorphism for FFT with non-constant fft_length is not implemented"
PADDING_OF_SYMBOLIC_SIZE = "padding argument to conv_general_dilated should be a string or a sequence of (low, high)"

WIDE = {"float32": "float64", "int32": "int64"}
"""The dtypes of arguments when 64-bit numbers are enabled."""


@dataclass(frozen=True)
class Entry:
    """One JAX function with symbolic shapes.

    Attributes:
      function: Takes arrays, returns a pytree of arrays.
      shapes: The shape text of each argument.
      dtypes: The dtype of each argument.
      sizes: Values of each dimension variable in the three runs.
      constraints: What must hold between the sizes.
      differentiable: Whether the gradient is compared too.
      conditioning: By how much the function magnifies the rounding of its arguments (see `tolerance`).
      computes_in: The dtype that it computes in, whatever those of its arguments and results are; None if theirs.
      refusal: What the error says with which JAX refuses the function; None if it does not.
      gradient_refusal: What the error says with which JAX refuses its gradient; None if it does not.
    """

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    dtypes: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int, int]]
    constraints: tuple[str, ...] = ()
    differentiable: bool = True
    conditioning: float = 1.0
    computes_in: str | None = None
    refusal: str | None = None
    gradient_refusal: str | None = None

    def arguments(self, run: int, *, wide: bool = False) -> list[np.ndarray]:
        """The arguments of one of the three runs; `wide` ones have 64-bit dtypes."""
        sizes = {name: values[run] for name, values in self.sizes.items()}
        return [
            made(eval(f"({text},)" if text else "()", {}, sizes), dtype, position)
            for position, (text, dtype) in enumerate(zip(self.shapes, self.widened(wide), strict=True))
        ]

    def widened(self, wide: bool = True) -> tuple[str, ...]:
        """The dtypes of the arguments; their 64-bit counterparts if `wide`."""
        return tuple(WIDE.get(dtype, dtype) if wide else dtype for dtype in self.dtypes)

    def differentiated(self) -> tuple[int, ...]:
        """The arguments that have a gradient."""
        return tuple(i for i, dtype in enumerate(self.dtypes) if jnp.issubdtype(dtype, jnp.floating))


def made(shape: tuple[int, ...], dtype: str, position: int) -> np.ndarray:
    """Numbers without ties, away from 0 and from the points where functions are not differentiable."""
    count = int(np.prod(shape))
    if dtype == "bool":
        return (np.arange(count) * 7 % 3 == position % 3).reshape(shape)
    if jnp.issubdtype(dtype, jnp.integer):
        return ((np.arange(count) * 7 + 3 * position) % 11).reshape(shape).astype(dtype)
    return (np.cos(np.arange(count) * 0.7 + position) + 1.5).reshape(shape).astype(jnp.dtype(dtype))


def polymorphic(
    function: Callable[..., Any],
    *shapes: str,
    dtypes: str = "float32",
    constraints: tuple[str, ...] = (),
    differentiable: bool = True,
    conditioning: float = 1.0,
    computes_in: str | None = None,
    **sizes: tuple[int, int, int],
) -> Entry:
    """An entry that must work: `polymorphic(jnp.sin, "b, 4")`.

    Args:
      function: Takes arrays, returns a pytree of arrays.
      shapes: The shape text of each argument; `eval` with the sizes must give the actual shape.
      dtypes: The dtype of each argument, separated by spaces; the last one holds for the rest.
      constraints: What must hold between the sizes.
      differentiable: Whether the gradient is to be compared.
      conditioning: By how much the function magnifies rounding.
      computes_in: The dtype that it computes in, if it is not that of its arguments.
      sizes: Values of a dimension variable in the three runs, where they are not those of `SIZES`.
    """
    names = [name for name in SIZES if any(name in words(text) for text in shapes)]
    listed = dtypes.split()
    listed += listed[-1:] * (len(shapes) - len(listed))
    return Entry(
        function=function,
        shapes=shapes,
        dtypes=tuple(listed),
        sizes={**{name: SIZES[name] for name in names}, **sizes},
        constraints=constraints,
        differentiable=differentiable and any(jnp.issubdtype(dtype, jnp.floating) for dtype in listed),
        conditioning=conditioning,
        computes_in=computes_in,
    )


def words(text: str) -> set[str]:
    """The names in a shape text."""
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def refused(reason: str, entry: Entry) -> Entry:
    """The entry of a function that JAX refuses to trace with symbolic sizes, with these words."""
    return replace(entry, refusal=reason, differentiable=False)


def gradient_refused(reason: str, entry: Entry) -> Entry:
    """The entry of a function that works and whose gradient JAX refuses, with these words."""
    return replace(entry, gradient_refusal=reason, differentiable=False)


def tolerance(entry: Entry, dtype: Any) -> float:
    """How far two compilations of one function may lie apart, relative to the largest result.

    Both programs do the same operations in the same dtype. Where sizes are known XLA fuses more, and it orders the
    terms of a sum and rounds a product before a sum differently. A sum of n terms lies within n epsilons of the sum
    of their magnitudes; the longest sums here have 64 terms, and entries apply at most a few such steps.
    """
    epsilon = max(float(jnp.finfo(used).eps) for used in (dtype, entry.computes_in or dtype))
    return 4 * 64 * entry.conditioning * epsilon


def ramp(*shape: int, dtype: Any = jnp.float32) -> jax.Array:
    """Fixed weights: between -1 and 1, without ties."""
    return jnp.asarray(np.sin(np.arange(int(np.prod(shape))) * 0.9 + 0.3).reshape(shape), dtype)
