"""From the bytes of a flatbuffer to the tables of the schema.

`read_payload` walks the schema (`schema.py`) over bytes of unknown origin. Every position, length
and layout is checked against the bytes that are there before it is used, so that bad input raises
`ArtifactError`, with the byte offset, and nothing else. Fields that the schema does not know are
passed over: they are of a later format.

Three budgets bound what bytes can make of themselves, whatever they say:

- tables nest up to `MAX_DEPTH` deep, so a table that holds itself is an error;
- what is made of the tables, estimated in bytes of memory, stays within `MEMORY_RATIO` times the
  input and a constant. A table that many others refer to counts each time, because each consumer
  walks it each time;
- vectors of bytes are together no longer than the input, so one module cannot be counted many times.

The bytes of modules are not copied: `mlir_module_serialized` is a read-only view of the input. The
other vectors of bytes are copied.

Method: the layout of a table (its vtable) is checked once and kept; most tables share a few.
Source: FlatBuffers internals, https://flatbuffers.dev/internals/.
Knows the schema and nothing of what the fields mean.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import add
from typing import Any, NoReturn

from jaxtf.serialization._artifact.schema import (
    Bytes,
    ExportedTable,
    Scalar,
    String,
    Strings,
    Table,
    TableField,
    Tables,
    Vector,
    fields_of,
    width_of,
)
from jaxtf.serialization._errors import ArtifactError

__all__ = ["MAX_DEPTH", "MEMORY_RATIO", "read_payload"]

MAX_DEPTH = 200
"""How deep tables nest. A pytree takes one level for each of its own, and an order of VJP one."""

MEMORY_RATIO = 8
"""How many times the size of the input its tables may take, in addition to the input itself."""

_MEMORY_FLOOR = 2**18
"""Memory in bytes that any input may take, however short it is."""

_U16, _U32, _I32 = (struct.Struct(code).unpack_from for code in ("<H", "<I", "<i"))

# Estimates of the memory that CPython 3.11 takes, in bytes.
_TABLE_COST, _FIELD_COST = 72, 8
_SEQUENCE_COST, _ITEM_COST, _NUMBER_COST = 56, 8, 40
_TEXT_COST = 60
_LAYOUT_COST, _LAYOUT_FIELD_COST = 500, 160

_Reader = Callable[[int, Any, int], Any]

_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which fields the tables that share a vtable have, and where.

    Attributes:
      size: Of the tables, in bytes.
      cost: The memory that one of them takes, without what it refers to.
      fields: Of each: the attribute, how to read it, its position in the table, and what that takes.
    """

    size: int
    cost: int
    fields: tuple[tuple[str, _Reader, int, Any], ...]


def read_payload(blob: bytes | bytearray | memoryview) -> ExportedTable:
    """The root table of an artifact's flatbuffer.

    Args:
      blob: The bytes that start with the flatbuffer; what follows it is not looked at.

    Returns:
      The table, with all that it refers to. Absent fields have their defaults.

    Raises:
      ArtifactError: The bytes are not a flatbuffer of this schema; the message gives the byte offset.
    """
    view = memoryview(blob).toreadonly()
    if view.ndim != 1 or view.format != "B":
        view = view.cast("B")
    try:
        table = _PayloadReader(view).root()
    except RecursionError as error:  # the caller's own calls are nested deep
        raise ArtifactError("the tables of the artifact nest deeper than this process can follow") from error
    assert isinstance(table, ExportedTable), "the root is read as one"
    return table


class _PayloadReader:
    """One payload being read, and how much of its budgets is left."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._size = len(view)
        self._last_u32 = self._size - 4
        self._memory_left = MEMORY_RATIO * self._size + _MEMORY_FLOOR
        self._bytes_left = self._size
        self._layouts: dict[tuple[type[Any], int], _Layout] = {}
        self._absent: dict[type[Any], Any] = {}
        # Vtables of tables that are nothing but the reference to it: most leaves of pytrees.
        self._bare: dict[type[Any], set[int]] = {}
        self._texts: dict[bytes, str] = {}
        self._readers: dict[type[Any], Callable[[TableField], tuple[_Reader, Any]]] = {
            Scalar: self._scalar_reader,
            String: lambda _: (self._text, None),
            Bytes: self._bytes_reader,
            Vector: self._vector_reader,
            Strings: lambda _: (self._texts_vector, None),
            Table: lambda field: (self._subtable, field.table),
            Tables: lambda field: (self._tables_vector, field.table),
        }

    def root(self) -> Any:
        """The table that the bytes begin by referring to."""
        return self._table(self._follow(0), ExportedTable, 1)

    # Errors and budgets

    def _fail(self, found: str, offset: int) -> NoReturn:
        raise ArtifactError(f"not an artifact, or a damaged one: {found}", offset)

    def _past_the_end(self, what: str, offset: int) -> NoReturn:
        self._fail(f"{what} reaches past the end of its {self._size} bytes", offset)

    def _charge(self, cost: int, offset: int) -> None:
        self._memory_left -= cost
        if self._memory_left < 0:
            self._fail(f"its tables expand to more than {MEMORY_RATIO} times its size", offset)

    # Positions

    def _follow(self, position: int) -> int:
        """The position that the reference at a position leads to."""
        if position > self._last_u32:
            self._past_the_end("a reference", position)
        distance: int = _U32(self._view, position)[0]
        target = position + distance
        if distance < 4 or target > self._last_u32:
            self._fail(f"a reference leads to byte {target} of {self._size}", position)
        return target

    def _follow_all(self, position: int) -> list[int]:
        """The positions that the references lead to in the vector that the reference at a position leads to."""
        start, count = self._vector(position, 4)
        self._charge(_SEQUENCE_COST + _ITEM_COST * count, position)
        distances = struct.unpack_from(f"<{count}I", self._view, start)
        targets = list(map(add, range(start, start + 4 * count, 4), distances))
        if count and (min(distances) < 4 or max(targets) > self._last_u32):
            for place in range(start, start + 4 * count, 4):
                self._follow(place)
        return targets

    def _vector(self, position: int, width: int) -> tuple[int, int]:
        """Where the elements of the vector start that the reference at a position leads to, and how many there are."""
        start = self._follow(position)
        count: int = _U32(self._view, start)[0]
        if count * width > self._last_u32 - start:
            self._past_the_end(f"a vector of {count} elements", start)
        return start + 4, count

    # Tables

    def _table(self, position: int, kind: type[Any], depth: int) -> Any:
        if depth > MAX_DEPTH:
            self._fail(f"its tables nest deeper than {MAX_DEPTH} levels", position)
        vtable = position - _I32(self._view, position)[0]
        layout = self._layouts.get((kind, vtable)) or self._layout(kind, vtable, position)
        if position + layout.size > self._size:
            self._past_the_end("a table", position)
        if not layout.fields:
            self._charge(_ITEM_COST, position)
            absent = self._absent.setdefault(kind, kind())
            if layout.size == 4:
                self._bare.setdefault(kind, set()).add(vtable)
            return absent
        self._charge(layout.cost, position)
        # Not by `kind(...)`, which sets every field: absent ones are the defaults, which are attributes of the class.
        # Nor by its __dict__, which then takes three times the memory of attributes set one by one.
        table = object.__new__(kind)
        for name, read, place, extra in layout.fields:
            _set(table, name, read(position + place, extra, depth))
        return table

    def _layout(self, kind: type[Any], vtable: int, position: int) -> _Layout:
        """Checks and keeps the vtable of the table at a position."""
        if not 0 <= vtable <= self._last_u32:
            self._fail(f"a table has its layout at byte {vtable} of {self._size}", position)
        vtable_size, table_size = _U16(self._view, vtable)[0], _U16(self._view, vtable + 2)[0]
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > self._size or table_size < 4:
            self._fail(f"the layout of a table has {vtable_size} bytes, for tables of {table_size}", vtable)
        fields = []
        for field in fields_of(kind):
            entry = 4 + 2 * field.slot
            place = _U16(self._view, vtable + entry)[0] if entry + 2 <= vtable_size else 0
            if not place:
                continue
            if place < 4 or place + width_of(field.holds) > table_size:
                self._fail(f"field {field.name} is at {place} in a table of {table_size} bytes", vtable + entry)
            fields.append((field.name, *self._readers[type(field.holds)](field), place))
        self._charge(_LAYOUT_COST + _LAYOUT_FIELD_COST * len(fields), vtable)
        layout = _Layout(
            size=table_size,
            cost=_TABLE_COST + _FIELD_COST * len(fields_of(kind)),
            fields=tuple((name, read, place, extra) for name, read, extra, place in fields),
        )
        self._layouts[kind, vtable] = layout
        return layout

    def _subtable(self, position: int, kind: type[Any], depth: int) -> Any:
        return self._table(self._follow(position), kind, depth + 1)

    def _tables_vector(self, position: int, kind: type[Any], depth: int) -> tuple[Any, ...]:
        table, view, depth = self._table, self._view, depth + 1
        targets = self._follow_all(position)
        bare = self._bare.setdefault(kind, set())
        absent = self._absent.setdefault(kind, kind())
        found = []  # a loop, because a comprehension is a level of recursion of its own in Python 3.11
        for target in targets:
            found.append(absent if target - _I32(view, target)[0] in bare else table(target, kind, depth))
        return tuple(found)

    # Numbers

    def _scalar_reader(self, field: TableField) -> tuple[_Reader, Any]:
        assert isinstance(field.holds, Scalar), "chosen by its type"
        return self._scalar, struct.Struct("<" + field.holds.code).unpack_from

    def _scalar(self, position: int, unpack: Any, _depth: int) -> Any:
        return unpack(self._view, position)[0]

    def _vector_reader(self, field: TableField) -> tuple[_Reader, Any]:
        assert isinstance(field.holds, Vector), "chosen by its type"
        return self._numbers, field.holds.code

    def _numbers(self, position: int, code: str, _depth: int) -> tuple[int, ...]:
        width = struct.calcsize("<" + code)
        start, count = self._vector(position, width)
        self._charge(_SEQUENCE_COST + _NUMBER_COST * count, position)
        return struct.unpack_from(f"<{count}{code}", self._view, start)

    # Bytes and texts

    def _bytes_reader(self, field: TableField) -> tuple[_Reader, Any]:
        return (self._bytes_view if field.name == "mlir_module_serialized" else self._bytes), None

    def _bytes_view(self, position: int, _extra: None, _depth: int) -> memoryview:
        start, count = self._vector(position, 1)
        self._bytes_left -= count
        if self._bytes_left < 0:
            self._fail("its vectors of bytes are together longer than all of it", start)
        return self._view[start : start + count]

    def _bytes(self, position: int, _extra: None, depth: int) -> bytes:
        return bytes(self._bytes_view(position, None, depth))

    def _text(self, position: int, _extra: None, _depth: int) -> str:
        return self._text_at(self._follow(position))

    def _texts_vector(self, position: int, _extra: None, _depth: int) -> tuple[str, ...]:
        return tuple(map(self._text_at, self._follow_all(position)))

    def _text_at(self, position: int) -> str:
        start = position + 4
        count: int = _U32(self._view, position)[0]
        if count > self._size - start:
            self._past_the_end(f"a text of {count} bytes", position)
        encoded = self._view[start : start + count].tobytes()
        text = self._texts.get(encoded)
        if text is None:
            # Kept twice here, and in up to 4 bytes for each character.
            self._charge(2 * _TEXT_COST + 5 * count, position)
            try:
                text = encoded.decode()
            except UnicodeDecodeError as error:
                raise ArtifactError("a text in the artifact is not UTF-8", start + error.start) from error
            self._texts[encoded] = text
        return text
