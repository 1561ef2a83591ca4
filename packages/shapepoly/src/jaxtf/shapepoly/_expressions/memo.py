"""A table of answers that stays within a bound. Knows nothing of what it keeps."""

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(Generic[Key, Value]):
    """A dictionary that forgets its oldest half when it is full."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """Returns the value stored last for the key, or None."""
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> Value:
        """Stores and returns the value."""
        if len(self._entries) >= self._capacity:
            for old in list(self._entries)[: self._capacity // 2]:
                self._entries.pop(old, None)
        self._entries[key] = value
        return value
