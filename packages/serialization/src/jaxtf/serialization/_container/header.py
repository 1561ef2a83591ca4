"""The header of a safetensors file: which array is where, and texts about them.

| bytes | what |
| --- | --- |
| 8 | n, little-endian |
| n | a JSON object: of each array its dtype, shape and place; under `__metadata__`, texts by name; then spaces |
| rest | the arrays, one after the other, without gaps |

Read here and not by the library of that name (0.8.0), which copies each array that it gives NumPy, and knows neither
`int4` nor `complex128`; the tests read by it what is written here. Every number is checked before it is used.

Source: https://github.com/huggingface/safetensors, "Format".
Knows dtypes as texts; nothing of programs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._container.json_text import object_of, utf_8
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._errors import ArtifactError

__all__ = ["ALIGNMENT", "Entry", "Header", "begins_as_header", "encode", "parse_header", "read_header"]

ALIGNMENT = 64
"""Where arrays begin, in bytes, so that XLA takes them as they are; the format itself asks for 8."""

_LARGEST_HEADER = 100_000_000
"""As in the library: a longer header is refused."""

_MEMORY_RATIO, _MEMORY_FLOOR = 24, 2**20

_MOST_AXES = 32

ITEM_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
"""The dtypes of the format that are written, each with its size in bytes."""


@dataclass(frozen=True)
class Entry:
    """One array of a file.

    Attributes:
      dtype: By the format's name.
      shape: Its sizes.
      start: Where it begins, from the first array on.
      end: Where it ends.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a file has.

    Attributes:
      entries: Each array, by its name.
      metadata: Texts by name.
      data_start: Where the first array begins in the file.
    """

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    data_start: int


def begins_as_header(first: bytes | memoryview, size: int) -> bool:
    """Whether a file of this size, whose first nine bytes these are, is a safetensors file rather than an artifact."""
    return len(first) >= 9 and first[8] == ord("{") and 2 <= int.from_bytes(first[:8], "little") <= size - 8


def read_header(source: Source) -> Header:
    """The header of a file.

    Raises:
      ArtifactError: It is not one, or says what the file does not hold.
    """
    if source.size < 8:
        raise ArtifactError(f"a safetensors file begins with 8 bytes; this has {source.size}", 0)
    length = int.from_bytes(source.read(0, 8), "little")
    most = min(source.size - 8, _LARGEST_HEADER)
    if length > most:
        raise ArtifactError(f"the header has {length:,} bytes, as its first 8 say; it may have {most:,}", 0)
    return parse_header(bytes(source.read(8, 8 + length)), source.size - 8 - length)


def parse_header(text: bytes, data_size: int) -> Header:
    """The header of its text.

    Args:
      text: The bytes between its length and the arrays.
      data_size: How many bytes follow it.

    Raises:
      ArtifactError: Likewise.
    """
    values = object_of(text, "the header", 8, _MEMORY_RATIO * len(text) + _MEMORY_FLOOR)
    metadata = values.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ArtifactError("__metadata__ in the header must have texts by name", 8)
    entries = {name: _entry(name, value) for name, value in values.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != end:
            raise ArtifactError(f"the array {name!r:.80} begins at {entry.start:,}; the one before ends at {end:,}", 8)
        end = entry.end
    if end != data_size:
        raise ArtifactError(f"the arrays of the header take {end:,} bytes, and {data_size:,} follow it", 8)
    return Header(entries, metadata, 8 + len(text))


def _entry(name: str, value: Any) -> Entry:
    try:
        dtype, shape, (start, end) = value["dtype"], value["shape"], value["data_offsets"]
        sizes = [*shape, start, end]
        if not (set(value) == {"dtype", "shape", "data_offsets"} and len(shape) <= _MOST_AXES):
            raise ValueError("other fields, or too many axes")
        if not all(type(size) is int and 0 <= size < 2**63 for size in sizes):
            raise ValueError("sizes and offsets are integers, at least 0")
        expected = ITEM_SIZES[dtype]
    except (TypeError, KeyError, ValueError) as error:
        raise ArtifactError(f"the header has for the array {name!r:.80} what is not one: {value!r:.120}", 8) from error
    for size in shape:
        expected *= size
    if end - start != expected:
        raise ArtifactError(
            f"the array {name!r:.80}, {dtype} of shape {shape}, takes {expected:,} bytes; the header gives it "
            f"{end - start:,}",
            8,
        )
    return Entry(dtype, tuple(shape), start, end)


def encode(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """The length and the text of a header, filled up so that the first array begins at a multiple of `ALIGNMENT`.

    Equal numbers of characters in the texts give headers of equal length.

    Raises:
      ArtifactError: It is longer than a reader takes.
    """
    values: dict[str, Any] = {"__metadata__": dict(metadata)}
    for name, entry in entries.items():
        values[name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [entry.start, entry.end],
        }
    text = utf_8(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > _LARGEST_HEADER:
        raise ArtifactError(f"a header of {len(text):,} bytes would be needed; it may have {_LARGEST_HEADER:,}")
    return struct.pack("<Q", len(text)) + text
