"""The simple regions of reductions and windows, as the functions of `jax.lax` that have rules of differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from jax import lax

from jaxtf.serialization._lift.ops.elementwise import binary
from jaxtf.serialization._program.program import Block
from jaxtf.serialization._program.regions import single_operation

__all__ = ["combined", "is_identity", "kind_of"]

_OF_TRUTH = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}


def kind_of(block: Block) -> str | None:
    """The operation that a region is, on the dtype of its arguments; of truth values, `and`, `or` or `xor`."""
    kind = single_operation(block)
    if kind is None or block.arguments[0].type != block.arguments[1].type:
        return None
    dtype = getattr(block.arguments[0].type, "dtype", None)
    return _OF_TRUTH.get(kind, kind) if dtype == np.bool_ else kind


def identity(kind: str, dtype: np.dtype[Any]) -> Any:
    """The value that leaves every x as it is."""
    if kind in ("add", "or", "xor"):
        return np.zeros((), dtype)
    if kind == "multiply":
        return np.ones((), dtype)
    if kind == "and":
        return np.asarray(True) if dtype == np.bool_ else np.asarray(-1).astype(dtype)
    if dtype == np.bool_:
        return np.asarray(kind == "minimum")
    sign = 1 if kind == "minimum" else -1
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        return np.asarray(limits.max if sign > 0 else limits.min).astype(dtype)
    return np.asarray(sign * np.inf).astype(dtype)


def is_identity(kind: str, initial: Any) -> bool:
    """Whether an initial value is known to be the one that changes nothing."""
    if not isinstance(initial, np.ndarray) or (initial.dtype.kind == "c" and kind not in ("add", "multiply")):
        return False
    expected = identity(kind, initial.dtype)
    # Minus zero, too, changes nothing in a sum, and zero makes zero of the sum of nothing but minus zeros.
    return bool(initial == expected)


def combined(kind: str) -> Callable[[Any, Any], Any]:
    """The function of two arrays."""
    return binary(kind)


REDUCERS: dict[str, Callable[..., Any]] = {
    "add": lax.reduce_sum,
    "multiply": lax.reduce_prod,
    "maximum": lax.reduce_max,
    "minimum": lax.reduce_min,
    "and": lax.reduce_and,
    "or": lax.reduce_or,
    "xor": lax.reduce_xor,
}
