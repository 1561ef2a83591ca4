"""The operations of a portable artifact, read from its bytecode without jaxlib.

An operation says which values it takes by their numbers. A region numbers its arguments and results as they come,
after all those of the regions around it; one that sees no values of others begins at 0.

Source: MLIR bytecode format, https://mlir.llvm.org/docs/BytecodeFormat/; VHLO, as written by StableHLO 0.9 to 1.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jaxtf.serialization._bytecode.portable import Attributes, Frame, Reader

__all__ = [
    "ELIDED_LOCATIONS_SINCE",
    "IR",
    "LAZY_SINCE",
    "PROPERTIES_SINCE",
    "Operation",
    "Operations",
    "Seen",
    "operation_names",
]

LAZY_SINCE, USE_LISTS_SINCE, ELIDED_LOCATIONS_SINCE, PROPERTIES_SINCE = 2, 3, 4, 5
DIALECTS, IR, PROPERTIES = 1, 4, 8
_DIALECTS_WRITTEN = ("builtin", "vhlo", "sdy")
_DEEPEST = 500


@dataclass
class Operation:
    """One operation, read up to its regions.

    Attributes:
      name: Its dialect and its name there, which ends in a version: `("vhlo", "add_v1")`.
      dictionary: Number of the attribute that holds its attributes, if there is one.
      properties: Number of its properties, if there are any.
      operands: Numbers of the values that it takes.
      results: Numbers of the types of its results.
      region_count: How many regions it has.
      is_isolated: Whether these see no values from outside.
    """

    name: tuple[str, str]
    dictionary: int | None
    properties: int | None
    operands: tuple[int, ...]
    results: tuple[int, ...]
    region_count: int
    is_isolated: bool


Seen: TypeAlias = Callable[[Operation, Reader, list[int]], None]
"""Gets an operation, what follows it, and the numbers of the types of all values that it could take."""


def operation_names(frame: Frame) -> Iterator[tuple[str, str]]:
    """Dialect and name of each kind of operation in a module.

    Raises:
      ArtifactError: There is one of a dialect that StableHLO does not write; or the table is damaged.
    """
    reader = frame.sections[DIALECTS].again()
    count = reader.count("dialects")
    dialects = []
    for _ in range(count):
        name = reader.number()
        if frame.version >= 1:
            if name & 1:
                reader.part(reader.number(), "dialect version")
            name >>= 1
        dialects.append(frame.text(name))
    if frame.version >= ELIDED_LOCATIONS_SINCE:
        reader.number()  # of all names
    while reader.left:
        dialect = reader.number()
        if dialect >= count:
            raise reader.fail(f"it refers to dialect {dialect} of {count}")
        for _ in range(reader.count("names of operations")):
            name = reader.number()
            name = name >> 1 if frame.version >= PROPERTIES_SINCE else name
            if dialects[dialect] not in _DIALECTS_WRITTEN:
                raise reader.fail(f"operations of the dialect {dialects[dialect]!r}, which StableHLO does not write")
            yield dialects[dialect], frame.text(name)


class Operations:
    """Reads the operations of a module, and the tables that they refer to."""

    def __init__(self, module: bytes | memoryview) -> None:
        self.frame = Frame(module)
        self.version = self.frame.version
        self.names = tuple(operation_names(self.frame))
        self.attributes = Attributes(self.frame)
        self.properties = self._read_properties() if self.version >= PROPERTIES_SINCE else ()

    def _read_properties(self) -> tuple[Reader, ...]:
        reader = self.frame.sections[PROPERTIES].again()
        return tuple(reader.part(reader.number(), "properties") for _ in range(reader.count("properties")))

    def properties_of(self, operation: Operation, reader: Reader) -> Reader:
        """The properties of an operation that has some: numbers of attributes, in the order of their names."""
        assert operation.properties is not None
        if operation.properties >= len(self.properties):
            raise reader.fail(f"it refers to properties {operation.properties} of {len(self.properties)}")
        return self.properties[operation.properties].again()

    def operation(self, reader: Reader) -> Operation:
        """Reads an operation up to its regions."""
        number = reader.number
        name = number()
        if name >= len(self.names):
            raise reader.fail(f"it refers to operation name {name} of {len(self.names)}")
        mask = reader.byte()
        number()  # location
        dictionary = number() if mask & 1 else None
        properties = number() if mask & 64 else None
        results = tuple(number() for _ in range(number())) if mask & 2 else ()
        if results and max(results) >= self.attributes.type_count:
            raise reader.fail(f"a result of a type beyond the {self.attributes.type_count} of the module")
        operands = tuple(number() for _ in range(number())) if mask & 4 else ()
        if mask & 8:
            for _ in range(number()):
                number()
        if mask & 32:
            self._use_lists(reader, len(results))
        regions = number() if mask & 16 else 0
        return Operation(self.names[name], dictionary, properties, operands, results, regions >> 1, bool(regions & 1))

    @staticmethod
    def _use_lists(reader: Reader, value_count: int) -> None:
        """Orders of the uses of values: for one value, or for the number that is given."""
        for _ in range(1 if value_count == 1 else reader.number()):
            if value_count != 1:
                reader.number()
            for _ in range(reader.number() >> 1):
                reader.number()

    def block_head(self, reader: Reader) -> tuple[int, list[int]]:
        """Reads the head of a block; returns how many operations it has, and the numbers of its arguments' types."""
        head = reader.number()
        types = []
        if head & 1:
            count = reader.number()
            for _ in range(count):
                type_ = reader.number()
                if self.version < ELIDED_LOCATIONS_SINCE or type_ & 1:
                    reader.number()  # location
                types.append(type_ >> 1 if self.version >= ELIDED_LOCATIONS_SINCE else type_)
            if self.version >= USE_LISTS_SINCE and reader.byte():
                self._use_lists(reader, count)
        return head >> 1, types

    @staticmethod
    def region_head(reader: Reader) -> tuple[int, int]:
        """Reads the head of a region; returns how many blocks and values it has."""
        blocks = reader.number()
        return blocks, reader.count("values") if blocks else 0

    def body_of(self, reader: Reader, operation: Operation) -> Reader:
        """The only region of a module or function."""
        if operation.region_count != 1:
            raise reader.fail(f"{'.'.join(operation.name)} with {operation.region_count} regions")
        if self.version < LAZY_SINCE:
            return reader
        if not operation.is_isolated:
            raise reader.fail(f"{'.'.join(operation.name)} without a section of its own")
        return self._section(reader)

    @staticmethod
    def _section(reader: Reader) -> Reader:
        head = reader.byte()
        length = reader.number()
        if head & 0x80:
            alignment = reader.number()
            if alignment == 0 or alignment & (alignment - 1):
                raise reader.fail(f"a section is aligned to {alignment} bytes")
            reader.take(-(reader.start + reader.position) % alignment)
        if head & 0x7F != IR:
            raise reader.fail(f"a region is in section {head & 0x7F}")
        return reader.part(length, "region")

    def every(self, seen: Seen) -> None:
        """Reads the whole module; `seen` gets each operation in it."""
        reader = self.frame.sections[IR].again()
        for _ in range(self.block_head(reader)[0]):
            self.skip_regions(reader, self.operation(reader), seen)

    def skip_regions(self, reader: Reader, operation: Operation, seen: Seen | None = None) -> None:
        """Reads the regions of an operation; `seen` gets each operation in them."""
        self._regions(reader, operation, seen, [], 0)

    def skip_region(self, reader: Reader, seen: Seen | None = None) -> None:
        """Reads a region that sees no values of others; `seen` gets each operation in it."""
        self._region(reader, seen, [], 0)

    def _regions(self, reader: Reader, operation: Operation, seen: Seen | None, outer: list[int], depth: int) -> None:
        if depth > _DEEPEST:
            raise reader.fail(f"regions in more than {_DEEPEST} regions")
        if operation.is_isolated and self.version >= LAZY_SINCE:
            reader = self._section(reader)  # one for all of its regions
        for _ in range(operation.region_count):
            self._region(reader, seen, [] if operation.is_isolated else outer, depth)

    def _region(self, reader: Reader, seen: Seen | None, types: list[int], depth: int) -> None:
        """Reads a region; `types` are those of the values around it, and while it is read, of its own too."""
        blocks, values = self.region_head(reader)
        position = len(types)
        end = position + values
        types.extend([-1] * values)
        for _ in range(blocks):
            count, arguments = self.block_head(reader)
            for type_ in arguments:
                position = self._number(types, position, end, type_, reader)
            for _ in range(count):
                operation = self.operation(reader)
                for type_ in operation.results:
                    position = self._number(types, position, end, type_, reader)
                if seen is not None:
                    seen(operation, reader, types)
                if operation.region_count:
                    self._regions(reader, operation, seen, types, depth + 1)
        del types[end - values :]

    @staticmethod
    def _number(types: list[int], position: int, end: int, type_: int, reader: Reader) -> int:
        """Gives the next value its number."""
        if position >= end:
            raise reader.fail("a region with more values than it says")
        types[position] = type_
        return position + 1
