"""The refusal of an operation: what it is, on what, where in the user's program, why, and what to do."""

from __future__ import annotations

import traceback

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.serialization.interop import Operation, refusal_text

__all__ = ["REMEDY", "REMEDY_BY_XLA", "is_of_tensorflow", "unsupported"]

REMEDY = "compute it differently, or use native mode (native_serialization=True)"
REMEDY_BY_XLA = f"allow TensorFlow's XLA operations (enable_xla=True), {REMEDY}"


def unsupported(operation: Operation, reason: str, remedy: str = REMEDY) -> GraphModeUnsupported:
    """The error for an operation that has no translation.

    Args:
      operation: The operation.
      reason: Why, in words.
      remedy: What to do instead.
    """
    return GraphModeUnsupported(refusal_text(operation, "graph mode does not translate", reason, remedy))


def is_of_tensorflow(error: BaseException) -> bool:
    """Whether TensorFlow raised an error, or passed it on, in what this package called; any other is a fault of ours.

    Nodes that this package makes without TensorFlow's Python code raise from its C functions, with such a cause.
    """
    if type(error.__cause__).__module__.partition(".")[0] == "tensorflow":
        return True
    packages = [
        frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    own = max((place for place, package in enumerate(packages) if package == "jaxtf"), default=-1)
    return "tensorflow" in packages[own + 1 :]
