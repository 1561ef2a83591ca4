"""What is asked about sizes, and how it is answered, in the log.

The logger `jaxtf.shapepoly` has a line of level INFO for each comparison: the user's line, the question, the answer, by
what it was found, and the time. Scopes that are made while the level is on are logged. With the word `dims` in the
environment variable `JAXTF_LOG` when this package is imported it is on, and lines go to standard error.

Where it is off, nothing is done: a scope finds out when it is made, and keeps None. `logging` is imported only where
the variable asks for it. Knows texts and frames; nothing of expressions.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger
    from types import FrameType

__all__ = ["active_logger", "caller", "log_answer", "raised_at"]

_NAME = "jaxtf.shapepoly"
_VARIABLE = "JAXTF_LOG"
_INFO = 20

# Frames between a user's line and a question: us, JAX, and what both call through, such as contextlib.
_NOT_THE_USERS = frozenset(("jaxtf", "jax", "jaxlib")) | sys.stdlib_module_names


def active_logger() -> Logger | None:
    """Returns the logger where it takes lines of level INFO; None where it is off."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    logger: Logger = logging.getLogger(_NAME)
    return logger if logger.isEnabledFor(_INFO) else None


def log_answer(logger: Logger, question: str, answer: bool | None, by: str, start: float) -> None:
    """Writes a line.

    Args:
      logger: The logger.
      question: What was asked.
      answer: None where it is inconclusive.
      by: By what it was found.
      start: When it was asked, by `time.perf_counter`.
    """
    microseconds = 1e6 * (perf_counter() - start)
    found = "inconclusive" if answer is None else answer
    logger.info("%s: %s is %s, by %s, %.0f us", caller() or "unknown line", question, found, by, microseconds)


def caller() -> str | None:
    """Returns file, line and function of the innermost frame that is the user's."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if _is_users(frame):
            return _place(frame, frame.f_lineno)
    return None


def raised_at(error: BaseException) -> str | None:
    """Returns the same of the innermost frame that an error went through."""
    found, place = error.__traceback__, None
    while found is not None:
        if _is_users(found.tb_frame):
            place = _place(found.tb_frame, found.tb_lineno)
        found = found.tb_next
    return place


def _is_users(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_USERS


def _place(frame: FrameType, line: int) -> str:
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


def _log_to_standard_error() -> None:
    """Turns the logger on, with a handler of its own."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger = logging.getLogger(_NAME)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


if "dims" in os.environ.get(_VARIABLE, "").replace(",", " ").split():
    _log_to_standard_error()
