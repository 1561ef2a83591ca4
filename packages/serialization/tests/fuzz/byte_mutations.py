"""Mutations of bytes that know nothing of what the bytes are: each returns another file."""

from __future__ import annotations

import random

__all__ = ["flip_bit", "garbage", "splice", "truncate"]


def truncate(source: random.Random, blob: bytearray) -> bytearray:
    return blob[: source.randrange(len(blob))]


def flip_bit(source: random.Random, blob: bytearray) -> bytearray:
    blob[source.randrange(len(blob))] ^= 1 << source.randrange(8)
    return blob


def splice(source: random.Random, blob: bytearray) -> bytearray:
    """A part from somewhere else in the same file."""
    length = source.randrange(1, 200)
    start, end = source.randrange(len(blob)), source.randrange(len(blob))
    return blob[:end] + blob[start : start + length] + blob[end + source.choice((0, length)) :]


def garbage(source: random.Random, blob: bytearray) -> bytearray:
    return bytearray(source.randbytes(source.randrange(200)))
