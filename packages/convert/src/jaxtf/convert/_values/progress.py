"""What a long task is at: shown from five seconds on, by rich in a terminal, by a line of the log otherwise.

In: names of steps, as a task comes to them. Out: nothing but what is shown, on standard error or in the logger
`jaxtf.convert`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from threading import Timer
from typing import Any, Self, TypeVar

__all__ = ["Progress"]

_Item = TypeVar("_Item")

_AFTER = 5.0

_LOGGER = logging.getLogger("jaxtf.convert")


class Progress:
    """A task that may take long; a context manager.

    Args:
      task: What it is, such as `jaxtf-verify predict`.
      after: The seconds before anything is shown.
    """

    def __init__(self, task: str, after: float = _AFTER) -> None:
        self._task = task
        self._step = ""
        self._shows = False
        self._status: Any = None
        self._timer = Timer(after, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._shows = False
        if self._status is not None:
            self._status.stop()
            self._status = None

    def at(self, step: str) -> None:
        """Says what the task is at."""
        self._step = step
        if self._shows:
            self._tell()

    def over(self, items: Iterable[_Item], what: str, count: int) -> Iterator[_Item]:
        """The items, each a step as it is asked for.

        Args:
          items: What is gone through.
          what: What one of them is, such as `sample`.
          count: How many there are.
        """
        for index, item in enumerate(items, 1):
            self.at(f"{what} {index} of {count}")
            yield item

    def _show(self) -> None:
        if sys.stderr.isatty():
            try:
                from rich.console import Console
            except ImportError:
                pass
            else:
                self._status = Console(stderr=True).status(self._text())
                self._status.start()
        self._shows = True
        self._tell()

    def _tell(self) -> None:
        if self._status is not None:
            self._status.update(self._text())
        else:
            _LOGGER.warning("%s", self._text())

    def _text(self) -> str:
        return f"{self._task}: {self._step}" if self._step else self._task
