r"""Facts of a portable artifact, without jaxlib: its bytes are MLIR bytecode.

`stablehlo_facts` checks the frame of the bytecode (magic, version, sections, and the tables of
strings and dialects, all within their bounds) and reads what these tables say. `custom_call_targets` and
`has_bounded_sizes` read the tables of attributes as well. A truncated or foreign module is so an `ArtifactError`,
and not a failure of MLIR's parser. The operations themselves are not parsed: a module that
passes may still be refused by MLIR.

| section | what |
| --- | --- |
| 0 | strings: count, lengths from last to first (with a zero byte each), the strings from first to last |
| 1 | dialects and the names of their operations |
| 2, 3 | attributes and types; their dialects and lengths |
| 4 | the operations |
| 5, 6 | resources |
| 7 | versions of dialects |
| 8 | properties of operations: for each the length of, and then, its attributes by number |

A number is written in 1 to 9 bytes; the zero bits at the low end of the first byte count the bytes that follow.

Source: MLIR bytecode format, https://mlir.llvm.org/docs/BytecodeFormat/; VHLO, as written by
StableHLO 0.9 to 1.18.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxtf.serialization._errors import ArtifactError, VersionError

__all__ = [
    "Attributes",
    "BytecodeFacts",
    "Frame",
    "Reader",
    "custom_call_targets",
    "has_bounded_sizes",
    "stablehlo_facts",
]

_MAGIC = b"ML\xefR"
_NEWEST_BYTECODE = 6
_PROPERTIES_SINCE = 5
_PRODUCER = re.compile(r"StableHLO_v(\d+\.\d+\.\d+)")
_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS, _IR, _PROPERTIES = 0, 1, 2, 3, 4, 8
_REQUIRED = {_STRINGS: "strings", _DIALECTS: "dialects", _ATTRIBUTES: "attributes", _OFFSETS: "lengths", _IR: "IR"}
_LAST_SECTION = 8
_LONGEST_PRODUCER = 200


@dataclass(frozen=True)
class BytecodeFacts:
    """What a portable artifact says about itself.

    Attributes:
      stablehlo_version: The StableHLO version that it is written for.
      dialects: Names of the dialects of its operations, attributes and types.
      uses_shardy: Whether its shardings are for the Shardy partitioner; False where it has none.
    """

    stablehlo_version: str
    dialects: tuple[str, ...]
    uses_shardy: bool


def stablehlo_facts(module: bytes | memoryview) -> BytecodeFacts:
    """Checks the frame of a portable artifact, and returns what it says about itself.

    Raises:
      ArtifactError: It is not a portable artifact, or a truncated one; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    frame = Frame(module)
    found = _PRODUCER.fullmatch(frame.producer)
    if found is None:
        raise ArtifactError(f"the module was not written as a portable artifact, but by {frame.producer!r}")
    dialects = tuple(frame.dialects())
    shardy = "sdy" in dialects or any(bytes(text[:8]) == b"xla.sdy." for text in frame.strings())
    return BytecodeFacts(found[1], dialects, shardy)


def custom_call_targets(module: bytes | memoryview) -> tuple[str, ...]:
    """The targets of the custom calls in a portable artifact, sorted, each once.

    Read from the attributes of its operations: the one after an API version and a backend
    configuration in a list of properties, or the one called so in a dictionary (bytecode before
    version 5). Complete for what StableHLO writes; of other bytecode nothing is promised.

    Raises:
      ArtifactError: It is not a portable artifact, or a damaged one; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    frame = Frame(module)
    attributes = Attributes(frame)
    # A dictionary next to the properties takes precedence over these.
    found = set(attributes.in_dictionaries())
    if _PROPERTIES in frame.sections:
        found.update(attributes.in_properties())
    return tuple(sorted(found))


def has_bounded_sizes(module: bytes | memoryview) -> bool:
    """Whether a portable artifact has arrays of sizes that depend on values: they are not known, and have bounds.

    Raises:
      ArtifactError: It is not a portable artifact, or a damaged one; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    return Attributes(Frame(module)).have_bounds()


class Reader:
    """A part of the module, read from its start."""

    def __init__(self, view: memoryview, start: int, what: str) -> None:
        self.view = view
        self.start = start
        self._what = what
        self.position = 0

    def fail(self, found: str) -> ArtifactError:
        """An error at the place reached."""
        return ArtifactError(f"the module is damaged, in its {self._what}: {found}", self.start + self.position)

    def again(self) -> Reader:
        """The same part, from its start."""
        return Reader(self.view, self.start, self._what)

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self.view) - self.position

    def byte(self) -> int:
        """One byte."""
        if not self.left:
            raise self.fail("it ends too early")
        self.position += 1
        return self.view[self.position - 1]

    def take(self, length: int) -> memoryview:
        """So many bytes."""
        if length > self.left:
            raise self.fail(f"{length} bytes expected, {self.left} found")
        self.position += length
        return self.view[self.position - length : self.position]

    def number(self) -> int:
        """A number in the form of the bytecode."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        more = (first & -first).bit_length() - 1
        return (int.from_bytes(self.take(more), "little") << 8 | first) >> (more + 1)

    def signed(self) -> int:
        """A number with a sign, which is its lowest bit."""
        number = self.number()
        return (number >> 1) ^ -(number & 1)

    def count(self, what: str) -> int:
        """A number of things that take a byte each at least."""
        count = self.number()
        if count > self.left:
            raise self.fail(f"it says that there are {count} {what}, in {self.left} bytes")
        return count

    def part(self, length: int, what: str) -> Reader:
        """A reader of the next bytes."""
        start = self.start + self.position
        return Reader(self.take(length), start, what)


class Frame:
    """The sections of a module."""

    def __init__(self, module: bytes | memoryview) -> None:
        view = memoryview(module)
        if view[:4] != _MAGIC:
            raise ArtifactError(f"the module is not MLIR bytecode; it begins with {bytes(view[:4])!r}", 0)
        reader = Reader(view, 0, "frame")
        reader.take(4)
        self.version = reader.number()
        if self.version > _NEWEST_BYTECODE:
            raise VersionError(
                f"the module is MLIR bytecode of version {self.version}; this release reads up to "
                f"{_NEWEST_BYTECODE}\n  remedy: install a newer jaxtf-serialization"
            )
        self.producer = self._producer(reader)
        self.sections = dict(self._sections(reader))
        for number, name in _REQUIRED.items():
            if number not in self.sections:
                raise reader.fail(f"it has no section of {name}")
        # It is the last section; only where it would be empty may it be left out, never in a module with functions.
        if self.version >= _PROPERTIES_SINCE and _PROPERTIES not in self.sections:
            raise reader.fail("it has no section of properties")
        self._strings: tuple[memoryview, ...] | None = None

    @staticmethod
    def _producer(reader: Reader) -> str:
        name = bytearray()
        while byte := reader.byte():
            name.append(byte)
            if len(name) > _LONGEST_PRODUCER:
                raise reader.fail("the name of its producer does not end")
        return name.decode(errors="backslashreplace")

    @staticmethod
    def _sections(reader: Reader) -> Iterator[tuple[int, Reader]]:
        seen = set()
        while reader.left:
            head = reader.byte()
            number = head & 0x7F
            if number > _LAST_SECTION or number in seen:
                raise reader.fail(f"section {number} is unknown, or there twice")
            seen.add(number)
            length = reader.number()
            if head & 0x80:
                alignment = reader.number()
                if alignment == 0 or alignment & (alignment - 1):
                    raise reader.fail(f"a section is aligned to {alignment} bytes")
                reader.take(-reader.position % alignment)
            yield number, reader.part(length, f"section {number}")

    def strings(self) -> tuple[memoryview, ...]:
        """The strings."""
        if self._strings is None:
            self._strings = self._read_strings(self.sections[_STRINGS])
        return self._strings

    @staticmethod
    def _read_strings(reader: Reader) -> tuple[memoryview, ...]:
        lengths = [reader.number() for _ in range(reader.count("strings"))]
        if 0 in lengths or sum(lengths) != reader.left:
            raise reader.fail(f"its strings have {sum(lengths)} bytes, in {reader.left}")
        return tuple(reader.take(length)[:-1] for length in reversed(lengths))

    def texts(self) -> Reader:
        """The bytes of all strings, each with a zero byte after it."""
        reader = self.sections[_STRINGS].again()
        for _ in range(reader.count("strings")):
            reader.number()
        return reader.part(reader.left, "strings")

    def text(self, number: int) -> str:
        """A string by its number."""
        strings = self.strings()
        if number >= len(strings):
            raise self.sections[_STRINGS].fail(f"it refers to string {number} of {len(strings)}")
        return bytes(strings[number]).decode(errors="backslashreplace")

    def dialects(self) -> Iterator[str]:
        """The names of the dialects."""
        reader = self.sections[_DIALECTS].again()
        for _ in range(reader.count("dialects")):
            name = reader.number()
            if self.version >= 1:
                if name & 1:
                    reader.part(reader.number(), "dialect version")
                name >>= 1
            yield self.text(name)


class Attributes:
    """The attributes of a module, by number, as far as they are needed here."""

    # Codes of attributes, in the dialects `builtin` and `vhlo`.
    _DICTIONARY, _NAME = 1, 2
    _CALL_SITE, _FUSED, _NAMED = 10, (12, 13), 14
    _API_VERSION, _STRING, _NUMBERS, _BOUNDS = 5, 14, 15, 18
    # Codes of types.
    _INT64, _ARRAY, _ARRAY_WITH_ENCODING = 14, 20, 21

    _FEWEST_PROPERTIES = 8
    """A custom call has eight properties or more, of a byte each or more."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        lengths, contents = frame.sections[_OFFSETS].again(), frame.sections[_ATTRIBUTES].again()
        dialects = tuple(frame.dialects())
        attributes, types = lengths.count("attributes"), lengths.count("types")
        self._attributes = tuple(self._read(lengths, contents, dialects, attributes, "attributes"))
        self._types = tuple(self._read(lengths, contents, dialects, types, "types"))

    @staticmethod
    def _read(
        lengths: Reader, contents: Reader, dialects: tuple[str, ...], left: int, what: str
    ) -> Iterator[tuple[str, Reader]]:
        """Dialect and contents of each; contents in MLIR's own notation have none."""
        while left > 0:
            dialect, count = lengths.number(), lengths.count(what)
            if dialect >= len(dialects) or not 0 < count <= left:
                raise lengths.fail(f"it has {count} of {left} {what} in dialect {dialect} of {len(dialects)}")
            for _ in range(count):
                length = lengths.number()
                content = contents.part(length >> 1, "attribute")
                yield dialects[dialect] if length & 1 else "", content
            left -= count

    @property
    def type_count(self) -> int:
        """How many types there are; their numbers are those below."""
        return len(self._types)

    def in_properties(self) -> Iterator[str]:
        """Targets in the properties of operations."""
        reader = self._frame.sections[_PROPERTIES].again()
        for _ in range(reader.count("properties")):
            numbers = reader.part(reader.number(), "properties")
            # Properties of other operations may be other things than attributes by number.
            if numbers.left < self._FEWEST_PROPERTIES or not self.has_code(numbers.number(), "vhlo", self._API_VERSION):
                continue
            numbers.number()  # the backend configuration
            target = numbers.number()
            if self.has_code(target, "vhlo", self._STRING):
                yield self.string(target)

    def in_dictionaries(self) -> Iterator[str]:
        """Targets in the dictionaries of attributes of operations."""
        return (self.string(value) for name, value in self.every_entry() if name == "call_target_name")

    def every_entry(self) -> Iterator[tuple[str, int]]:
        """Name and number of each attribute in every dictionary of MLIR."""
        for number in range(len(self._attributes)):
            if self.has_code(number, "builtin", self._DICTIONARY):
                yield from self.entries(number)

    def have_bounds(self) -> bool:
        """Whether one of them is the bounds of a type."""
        return any(self.has_code(number, "vhlo", self._BOUNDS) for number in range(len(self._attributes)))

    def check_places(self) -> None:
        """Refuses a place of an operation that is, by way of others, in itself: MLIR's parser would not end.

        Raises:
          ArtifactError: There is one.
        """
        parts = dict(self._parts_of_places())
        finished: set[int] = set()
        for start in parts:
            path: dict[int, None] = {}
            open_ = [start]
            while open_:
                number = open_[-1]
                if number in path or number in finished:
                    open_.pop()
                    path.pop(number, None)
                    finished.add(number)
                    continue
                path[number] = None
                for part in parts[number]:
                    if part in path:
                        raise self._frame.sections[_ATTRIBUTES].fail(f"a place, attribute {part}, is in itself")
                    if part in parts and part not in finished:
                        open_.append(part)

    def _parts_of_places(self) -> Iterator[tuple[int, list[int]]]:
        """The number of each place that is made of others, and the numbers of what it is made of."""
        for number, (dialect, content) in enumerate(self._attributes):
            if dialect != "builtin" or not content.left:
                continue
            reader = content.again()
            code = reader.number()
            if code in (self._CALL_SITE, self._NAMED):
                yield number, [reader.number(), reader.number()]
            elif code in self._FUSED:
                yield number, [reader.number() for _ in range(reader.count("places"))]

    def content(self, number: int) -> Reader:
        """What is in an attribute."""
        return self._attributes[number][1].again()

    def type_content(self, number: int) -> Reader:
        """What is in a type of VHLO.

        Raises:
          ArtifactError: There is no type of this number, or it is not VHLO's.
        """
        if number >= len(self._types) or self._types[number][0] != "vhlo":
            raise self._frame.sections[_ATTRIBUTES].fail(f"type {number} is not a type of VHLO")
        return self._types[number][1].again()

    def entries(self, number: int) -> Iterator[tuple[str, int]]:
        """Name and number of each attribute in a dictionary of MLIR."""
        if not self.has_code(number, "builtin", self._DICTIONARY):
            raise self._frame.sections[_ATTRIBUTES].fail(f"attribute {number} is not a dictionary")
        reader = self.content(number)
        reader.number()
        for _ in range(reader.count("entries")):
            name, value = reader.number(), reader.number()
            yield self.string(name), value

    def has_code(self, number: int, dialect: str, code: int) -> bool:
        """Whether an attribute is of a kind."""
        if number >= len(self._attributes) or self._attributes[number][0] != dialect:
            return False
        reader = self.content(number)
        return reader.left > 0 and reader.number() == code

    def string(self, number: int) -> str:
        """The string that an attribute holds."""
        if not (self.has_code(number, "vhlo", self._STRING) or self.has_code(number, "builtin", self._NAME)):
            raise self._frame.sections[_ATTRIBUTES].fail(f"attribute {number} is not a string")
        reader = self.content(number)
        reader.number()
        return self._frame.text(reader.number())

    def sizes(self, number: int) -> list[int]:
        """The sizes of the type of an array, by its number; negative where they are unknown."""
        return self._array(number)[0]

    def _array(self, number: int) -> tuple[list[int], int]:
        """The sizes of an array, and the number of the type of its elements."""
        content = self.type_content(number)
        code = content.number()
        if code == self._ARRAY_WITH_ENCODING:
            content.number()
        elif code != self._ARRAY:
            raise content.fail(f"type {number} is not that of an array")
        return [content.signed() for _ in range(content.count("sizes"))], content.number()

    def integers(self, number: int) -> list[int] | None:
        """The elements, in order, of an attribute that is an array of int64; None if it is another thing."""
        if not self.has_code(number, "vhlo", self._NUMBERS):
            return None
        content = self.content(number)
        content.number()
        sizes, element = self._array(content.number())
        if self.type_content(element).number() != self._INT64:
            return None
        data = content.take(content.number())
        found = [int.from_bytes(data[start : start + 8], "little", signed=True) for start in range(0, len(data), 8)]
        return found * math.prod(sizes) if len(found) == 1 else found  # one stands for all that are the same
