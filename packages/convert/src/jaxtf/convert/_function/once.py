"""A bounded cache whose values are made once each, also where several threads ask for one at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Once"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@dataclass(eq=False)
class _Entry(Generic[_Value]):
    """A value that is there (a tuple of it) or is being made by whoever holds the lock."""

    lock: threading.RLock = field(default_factory=threading.RLock)  # the maker may ask again: an endless recursion
    made: tuple[_Value] | None = None


class Once(Generic[_Key, _Value]):
    """`once(key)` is `make(key)`, remembered.

    Whoever asks while another thread makes the value waits for it. What raises is not remembered.

    Args:
      make: From a key to its value.
      kept: How many values are kept; beyond that the one asked for longest ago is dropped.
    """

    def __init__(self, make: Callable[[_Key], _Value], kept: int) -> None:
        self._make = make
        self._kept = kept
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry[_Value]] = OrderedDict()

    def __call__(self, key: _Key) -> _Value:
        """The value for the key."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > self._kept:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.made is None:
                entry.made = (self._make(key),)
            return entry.made[0]
