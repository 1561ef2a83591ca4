"""The cache of this package: bounded, and each value made once, also where several threads ask for it at one time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Cache"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@dataclass(eq=False, slots=True)
class _Entry(Generic[_Value]):
    """A value, or None while it is being made by whoever holds the lock."""

    lock: threading.RLock = field(default_factory=threading.RLock)  # the maker may ask again: an endless recursion
    value: _Value | None = None


class Cache(Generic[_Key, _Value]):
    """`cache(key, make)` is `make()`, remembered for the key.

    Whoever asks while another thread makes the value waits for it. What raises is not remembered.

    Args:
      kept: How many values are kept; beyond that the one asked for longest ago is dropped.
      dropped: Called when one is dropped.
    """

    def __init__(self, kept: int, dropped: Callable[[], None] | None = None) -> None:
        self._kept = kept
        self._dropped = dropped
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry[_Value]] = OrderedDict()

    def __call__(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value for the key; never None."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            is_full = len(self._entries) > self._kept
            if is_full:
                self._entries.popitem(last=False)
        if is_full and self._dropped is not None:
            self._dropped()
        with entry.lock:
            if entry.value is None:
                entry.value = make()
            return entry.value

    def peek(self, key: _Key) -> _Value | None:
        """The value for the key if there is one; it does not count as asking, and takes a fifth of the time."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def clear(self) -> None:
        """Drops every value."""
        with self._lock:
            self._entries.clear()
