"""The refusal of an operation: what it is, on what, where in the user's program, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtf.serialization._errors import LiftUnsupported
from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["REMEDY", "type_text", "unsupported"]

REMEDY = "run the module as it is, by Exported.call or a TensorFlow consumer, or export it without the operation"


def unsupported(operation: Operation, reason: str, remedy: str = REMEDY) -> LiftUnsupported:
    """The error for an operation that has no function of `jax.lax`.

    Args:
      operation: The operation.
      reason: Why, in words.
      remedy: What to do instead.
    """
    operands, results = (_types([value.type for value in side]) for side in (operation.operands, operation.results))
    where = ", ".join(filter(None, (operation.location, operation.source)))
    lines = [
        f"lift does not evaluate {operation.name}: {reason}",
        f"  found:    ({operands}) -> ({results})",
        f"  asked at: {where}" if where else "",
        f"  remedy:   {remedy}",
    ]
    return LiftUnsupported("\n".join(filter(None, lines)))


def _types(types: Sequence[Any]) -> str:
    return ", ".join(map(type_text, types))


def type_text(type_: Any) -> str:
    """A type as `float32[2,?]`."""
    if not isinstance(type_, TensorType):
        return type(type_).__name__.removesuffix("Type").lower()
    sizes = ",".join("?" if size is None else str(size) for size in type_.shape)
    return f"{type_.dtype.name}[{sizes}]"
