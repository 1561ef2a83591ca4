r"""The functions of a portable artifact, read from its bytecode without jaxlib: their names, types, blocks and calls.

`module_functions` reads the heads of the functions, and skips their bodies where the bytecode says how long these
are (since version 2). `find_recursion` looks into the bodies for calls: first for bytes that could be one, which is
quick and finds some too many, and operation by operation only in the functions where those would recurse.

What StableHLO never writes is refused, so that MLIR cannot read another function than is read here: operations of
other dialects, attributes that replace properties, a body that is not a section of its own.

Source: MLIR bytecode format, https://mlir.llvm.org/docs/BytecodeFormat/; VHLO, as written by StableHLO 0.9 to 1.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from jaxtf.serialization._bytecode.operations import (
    IR,
    LAZY_SINCE,
    PROPERTIES_SINCE,
    Operation,
    Operations,
)
from jaxtf.serialization._bytecode.portable import Reader

__all__ = ["TOKEN", "ModuleFunction", "ValueType", "find_recursion", "module_functions"]

TOKEN = "token"

_FUNCTION = ("vhlo", "func_v1")
_CALLS = (("vhlo", "call_v1"), ("vhlo", "composite_v1"), ("vhlo", "composite_v2"), ("vhlo", "custom_call_v1"))
# By their order in VHLO, which is that of the alphabet.
_PARTS_OF_FUNCTION = ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility")
# Circles of calls to look at one by one, before everything is read: that takes as long as it takes for all of them.
_ROUNDS = 10
_RESULTS_CHECKED = 8

_DTYPES = {
    **{0: "bool", 2: "bfloat16", 3: "float16", 4: "float32", 5: "float64"},
    **{6: "float8_e4m3fn", 7: "float8_e5m2", 27: "float8_e4m3fnuz", 28: "float8_e5m2fnuz", 29: "float8_e4m3b11fnuz"},
    **{35: "float8_e4m3", 36: "float8_e3m4", 37: "float4_e2m1fn", 40: "float8_e8m0fnu"},
    **{31: "int2", 10: "int4", 11: "int8", 12: "int16", 13: "int32", 14: "int64"},
    **{32: "uint2", 15: "uint4", 16: "uint8", 17: "uint16", 18: "uint32", 19: "uint64"},
}
"""Codes of VHLO's types that NumPy or `ml_dtypes` have."""
_COMPLEX, _FUNCTION_TYPE, _TENSOR, _TENSOR_WITH_ENCODING, _TOKEN = 1, 8, 20, 21, 22
_COMPLEX_DTYPES = {"float32": "complex64", "float64": "complex128"}
_ARRAY, _STRING, _TYPE = 1, 14, 17
_DYNAMIC = -(2**63)


@dataclass(frozen=True)
class ValueType:
    """The type of an argument or result of a function.

    Attributes:
      dtype: As NumPy and `ml_dtypes` name it; `token`; or a text for what has no such name.
      shape: Its sizes, None for one that is not static.
    """

    dtype: str
    shape: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        sizes = ",".join("?" if size is None else str(size) for size in self.shape)
        return self.dtype if self.dtype == TOKEN else f"{self.dtype}[{sizes}]"


@dataclass(frozen=True)
class ModuleFunction:
    """A function of a module.

    Attributes:
      name: Its symbol.
      is_public: Whether others than its module may call it.
      inputs: Types of its arguments.
      outputs: Types of its results.
      block_count: Blocks of its body.
    """

    name: str
    is_public: bool
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    block_count: int
    _body: Reader = field(repr=False, compare=False)


def module_functions(module: bytes | memoryview) -> tuple[tuple[ModuleFunction, ...], Callable[[], str | None]]:
    """The functions of a portable artifact, in order, and what finds recursion among them.

    Returns:
      The functions; and a function that returns how they call each other in a circle, `f -> g -> f`, None if they
      do not.

    Raises:
      ArtifactError: It is damaged, or not what StableHLO writes; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    reader = _Module(module)
    reader.attributes.check_places()
    return reader.functions, lambda: find_recursion(reader.functions, reader.may_call, reader.calls)


def find_recursion(
    functions: Sequence[ModuleFunction],
    may_call: Callable[[ModuleFunction], set[str]],
    calls: Callable[[ModuleFunction], set[str]],
) -> str | None:
    """A circle of calls, as text; None if there is none.

    Args:
      functions: All of a module.
      may_call: Names of the functions that one calls, and perhaps of others.
      calls: Exactly those that it calls.
    """
    by_name = {function.name: function for function in functions}
    found = {function.name: may_call(function) for function in functions}
    unread = set(by_name)
    for _ in range(_ROUNDS):
        circle = _circle(found)
        if circle is None:
            return None
        if unread.isdisjoint(circle):
            return " -> ".join(circle)
        found |= {name: calls(by_name[name]) for name in unread.intersection(circle)}
        unread.difference_update(circle)
    circle = _circle({name: calls(by_name[name]) if name in unread else found[name] for name in by_name})
    return None if circle is None else " -> ".join(circle)


def _circle(calls: Mapping[str, set[str]]) -> list[str] | None:
    """A circle in a graph of calls."""
    finished: set[str] = set()
    for start in calls:
        path: dict[str, None] = {}
        open_: list[Iterator[str]] = [iter((start,))]
        while open_:
            name = next(open_[-1], None)
            if name is None:
                open_.pop()
                if path:
                    finished.add(path.popitem()[0])
            elif name in path:
                on_path = list(path)
                return [*on_path[on_path.index(name) :], name]
            elif name not in finished and name in calls:
                path[name] = None
                open_.append(iter(sorted(calls[name])))
    return None


def _encodings(number: int) -> Iterator[bytes]:
    """Every form of a number in the bytecode, of 1 to 9 bytes; writers choose the shortest, readers take all."""
    for length in range(1, 9):
        if number < 1 << 7 * length:
            yield ((number << length) | (1 << (length - 1))).to_bytes(length, "little")
    yield b"\0" + number.to_bytes(8, "little")


def _number_at(data: bytes, position: int) -> tuple[int, int]:
    """A number and where it ends; what is not a number ends beyond the data."""
    first = data[position] if position < len(data) else 0
    if first & 1:
        return first >> 1, position + 1
    more = (first & -first).bit_length() - 1 if first else 8
    return int.from_bytes(data[position : position + more + 1], "little") >> min(more + 1, 8), position + more + 1


class _Module(Operations):
    """The operations of a module."""

    def __init__(self, module: bytes | memoryview) -> None:
        super().__init__(module)
        self._type = cache(self._read_type)
        self._of_functions: set[int] = set()  # properties of ops other than calls: their names would not be symbols
        self.functions = tuple(self._functions())
        self._function_names = frozenset(function.name for function in self.functions)
        self._called = cache(self._read_called)

    # Functions

    def _functions(self) -> Iterator[ModuleFunction]:
        reader = self.frame.sections[IR].again()
        if (count := self.block_head(reader)[0]) != 1:
            raise reader.fail(f"{count} operations next to the module")
        module = self.operation(reader)
        if module.name != ("builtin", "module"):
            raise reader.fail(f"it holds a {'.'.join(module.name)}, not a module")
        reader = self.body_of(reader, module)
        if (blocks := self.region_head(reader)[0]) != 1:
            raise reader.fail(f"the module has {blocks} blocks")
        for _ in range(self.block_head(reader)[0]):
            operation = self.operation(reader)
            if operation.name == _FUNCTION:
                yield self._function(operation, reader)
            elif operation.name[0] == "sdy":
                self.skip_regions(reader, operation)
            else:
                raise reader.fail(f"an operation {'.'.join(operation.name)} where its functions are")

    def _function(self, operation: Operation, reader: Reader) -> ModuleFunction:
        parts = self._parts(operation, reader)
        name, visibility = (self._text(parts[part], reader) for part in ("sym_name", "sym_visibility"))
        inputs, outputs = self._signature(parts["function_type"], reader)
        if self.version >= LAZY_SINCE:
            body = self.body_of(reader, operation)
        else:
            start, position = reader.again(), reader.position
            start.position = position
            self.skip_regions(reader, operation)
            body = start.part(reader.position - position, "body of a function")
        return ModuleFunction(
            name, visibility in ("", "public"), inputs, outputs, self.region_head(body.again())[0], body
        )

    def _parts(self, operation: Operation, reader: Reader) -> dict[str, int]:
        """The attributes that make a function, by name."""
        named = {} if operation.dictionary is None else dict(self.attributes.entries(operation.dictionary))
        if operation.properties is None:
            if missing := [part for part in _PARTS_OF_FUNCTION if part not in named]:
                raise reader.fail(f"a function without {missing[0]}")
            return named
        if twice := [part for part in _PARTS_OF_FUNCTION if part in named]:
            raise reader.fail(f"a function with {twice[0]} twice")
        self._of_functions.add(operation.properties)
        numbers = self.properties_of(operation, reader)
        return {part: numbers.number() for part in _PARTS_OF_FUNCTION}

    def _text(self, attribute: int, reader: Reader) -> str:
        if not self.attributes.has_code(attribute, "vhlo", _STRING):
            raise reader.fail(f"attribute {attribute} is not a string")
        return self.attributes.string(attribute)

    def _signature(self, attribute: int, reader: Reader) -> tuple[tuple[ValueType, ...], tuple[ValueType, ...]]:
        if not self.attributes.has_code(attribute, "vhlo", _TYPE):
            raise reader.fail(f"attribute {attribute} is not a type")
        content = self.attributes.content(attribute)
        content.number()
        function = self.attributes.type_content(content.number())
        if function.number() != _FUNCTION_TYPE:
            raise function.fail("the type of a function is not a function type")
        inputs = tuple(self._type(function.number()) for _ in range(function.count("arguments")))
        outputs = tuple(self._type(function.number()) for _ in range(function.count("results")))
        return inputs, outputs

    def _read_type(self, number: int) -> ValueType:
        content = self.attributes.type_content(number)
        code = content.number()
        if code == _TOKEN:
            return ValueType(TOKEN)
        if code == _TENSOR_WITH_ENCODING:
            content.number()
        elif code != _TENSOR:
            return ValueType(f"(VHLO type {code})")
        sizes = [content.signed() for _ in range(content.count("sizes"))]
        return ValueType(
            self._element_type(content.number()), tuple(None if size == _DYNAMIC else size for size in sizes)
        )

    def _element_type(self, number: int) -> str:
        content = self.attributes.type_content(number)
        code = content.number()
        if code == _COMPLEX:
            part = self.attributes.type_content(content.number()).number()
            return _COMPLEX_DTYPES.get(_DTYPES.get(part, ""), f"(complex of VHLO type {part})")
        return _DTYPES.get(code, f"(VHLO type {code})")

    # Calls

    def calls(self, function: ModuleFunction) -> set[str]:
        """Names of the functions that a function calls, by reading all of its operations."""
        found: set[str] = set()

        def see(operation: Operation, reader: Reader, types: list[int]) -> None:
            if operation.name in _CALLS:
                if operation.properties is not None and operation.properties not in self._of_functions:
                    self.properties_of(operation, reader)
                    found.update(self._called(operation.properties))
                if operation.dictionary is not None:
                    for _, attribute in self.attributes.entries(operation.dictionary):
                        found.update(self._named(attribute))

        self.skip_region(function._body.again(), see)
        return found

    def may_call(self, function: ModuleFunction) -> set[str]:
        """The same and perhaps more, by looking for bytes that could be a call."""
        if self.version < PROPERTIES_SINCE or self._calls_by_dictionary:
            return self.calls(function)
        body = bytes(function._body.view)
        found: set[str] = set()
        for form in self._call_forms:
            position = body.find(form)
            while position >= 0:
                found |= self._called_at(body, position + len(form))
                position = body.find(form, position + 1)
        return found

    def _called_at(self, body: bytes, position: int) -> frozenset[str]:
        """What is called, if the bytes from here are what follows the name of a call.

        That is mask, location, dictionary, properties, and the types of results: numbers of types that there are.
        """
        mask = body[position] if position < len(body) else 0
        if not mask & 64:
            return frozenset()
        position += 1
        for _ in range(1 + (mask & 1)):  # the location; a dictionary
            _, position = _number_at(body, position)
        properties, position = _number_at(body, position)
        if properties >= len(self.properties) or properties in self._of_functions:
            return frozenset()
        results, position = _number_at(body, position) if mask & 2 else (0, position)
        for _ in range(min(results, _RESULTS_CHECKED)):
            number, position = _number_at(body, position)
            if number >= self.attributes.type_count:
                return frozenset()
        return self._called(properties) if position <= len(body) else frozenset()

    @cached_property
    def _call_forms(self) -> list[bytes]:
        """The names of calls, in any form of their numbers."""
        return [form for number, name in enumerate(self.names) if name in _CALLS for form in _encodings(number)]

    @cached_property
    def _calls_by_dictionary(self) -> bool:
        """Whether a function is named in a dictionary, and not, as StableHLO writes calls, among properties."""
        return any(self._named(attribute) for _, attribute in self.attributes.every_entry())

    def _read_called(self, properties: int) -> frozenset[str]:
        """Names of functions among the properties of a call."""
        numbers = self.properties[properties].again()
        found: set[str] = set()
        while numbers.left:
            found |= self._named(numbers.number())
        return frozenset(found)

    def _named(self, attribute: int) -> set[str]:
        """Names of functions that an attribute is, or is an array of."""
        attributes = self.attributes
        if attributes.has_code(attribute, "vhlo", _STRING):
            return {attributes.string(attribute)} & self._function_names
        if not attributes.has_code(attribute, "vhlo", _ARRAY):
            return set()
        content = attributes.content(attribute)
        content.number()
        inside = [content.number() for _ in range(content.count("elements"))]
        texts = {attributes.string(each) for each in inside if attributes.has_code(each, "vhlo", _STRING)}
        return texts & self._function_names
