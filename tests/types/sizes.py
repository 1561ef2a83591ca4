"""What type checkers see of symbolic sizes. Not run: `python3 run.py types` checks it."""

from typing import Any, assert_type

import jax
import numpy as np

from jaxtf.shapepoly import Dimension, max_dim, min_dim, symbolic_shape

Size = int | Dimension

assert_type(symbolic_shape("a, b"), tuple[Size, ...])


def arithmetic(d: Dimension, size: Size, x: jax.Array) -> None:
    """Of integers and dimensions a size comes, of arrays and floats what JAX makes."""
    assert_type(d + 1, Size)
    assert_type(1 + d, Size)
    assert_type(d - size, Size)
    assert_type(7 - d, Size)
    assert_type(d * d, Size)
    assert_type(2 * d, Size)
    assert_type(d // 2, Size)
    assert_type(7 // d, Size)
    assert_type(d % 2, Size)
    assert_type(7 % d, Size)
    assert_type(divmod(d, 2), tuple[Size, Size])
    assert_type(divmod(7, d), tuple[Size, Size])
    assert_type(d**2, Size)
    assert_type(-d, Dimension)
    assert_type(abs(d), Size)
    assert_type(size + 1, Size)
    assert_type(2 * size - size // 3, Size)
    assert_type(max_dim(d, 2), Size)
    assert_type(min_dim(3, d), Size)
    assert_type(d * 1.5, Any)
    assert_type(d + np.float32(3), Any)
    assert_type(d**d, Any)
    assert_type(d / 2, Any)
    assert_type(x.reshape(size, -1), jax.Array)


def comparisons(d: Dimension, size: Size) -> None:
    """Comparisons of sizes are decided."""
    assert_type(d >= 2, bool)
    assert_type(d <= 2, bool)
    assert_type(d < size, bool)
    assert_type(size > d, bool)


def mistakes(d: Dimension) -> None:
    """What is refused before anything runs."""
    print(d.undefined)  # type: ignore[attr-defined]
    print((d + 1).undefined)  # type: ignore[union-attr]
    max_dim(d, "2")  # type: ignore[arg-type]
