"""The text of the refusal of an operation: what it is, on what, where in the user's program, why, and what to do."""

from __future__ import annotations

from typing import Any

from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["refusal_text", "type_text"]


def refusal_text(operation: Operation, refused: str, reason: str, remedy: str) -> str:
    """What the error says.

    Args:
      operation: The operation.
      refused: Who does not do what with it, such as `graph mode does not translate`.
      reason: Why, in words.
      remedy: What to do instead.
    """
    operands, results = (
        ", ".join(type_text(value.type) for value in side) for side in (operation.operands, operation.results)
    )
    where = ", ".join(filter(None, (operation.location, operation.source)))
    lines = [
        f"{refused} {operation.name}: {reason}",
        f"  found:    ({operands}) -> ({results})",
        f"  asked at: {where}" if where else "",
        f"  remedy:   {remedy}",
    ]
    return "\n".join(filter(None, lines))


def type_text(type_: Any) -> str:
    """A type as `float32[2,?]`."""
    if not isinstance(type_, TensorType):
        return type(type_).__name__.removesuffix("Type").lower()
    sizes = ",".join("?" if size is None else str(size) for size in type_.shape)
    return f"{type_.dtype.name}[{sizes}]"
