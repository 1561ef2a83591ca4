"""Operations on arrays of open sizes whose sizes agree whenever they run: for them nothing has to be compared then.

A module of somebody else may be called with sizes that do not fit each other, so each operation compares what it
requires (`agreement`). Most of that follows from what others before have compared, or from where a size comes from: a
chain of elementwise operations on two arrays compares theirs once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from jaxtf.convert._graph.plan.equal_sizes import EqualSizes, Names, Sizes, is_of_array, known_of
from jaxtf.serialization.interop import (
    Block,
    Function,
    Operation,
    Program,
    TensorType,
    Value,
    operations_of,
    requirements,
)

__all__ = ["SIZES_AGREE", "agrees", "with_agreed_sizes"]

SIZES_AGREE = "jaxtf.sizes_agree"
"""The attribute of an operation whose operands have the sizes that it requires, if they are there at all."""

_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}
_LOOPS_LOOKED_AT = 4
# How often the operations of a program are looked at, in the calls of functions and in loops.
_MOST_OFTEN = 16

Facts: TypeAlias = tuple[tuple[Sizes, Sizes | None], ...]
"""Of several values, the names of the sizes and of the elements."""


def agrees(operation: Operation) -> bool:
    """Whether nothing that an operation requires of sizes has to be compared when it runs."""
    if operation.attributes.get(SIZES_AGREE):
        return True
    types = (value.type for value in (*operation.operands, *operation.results))
    return all(type_.is_static for type_ in types if isinstance(type_, TensorType))


def with_agreed_sizes(program: Program) -> Program:
    """The program with the attribute on those operations."""
    blocks = [function.body for function in program.functions.values()]
    if all(map(_is_static, blocks)):
        return program
    found = _Agreement(program).found
    functions = {
        name: replace(function, body=_marked(function.body, found)) for name, function in program.functions.items()
    }
    return replace(program, functions=functions)


def _is_static(block: Block) -> bool:
    values = [*block.arguments, *(value for operation in operations_of(block) for value in operation.results)]
    return all(value.type.is_static for value in values if isinstance(value.type, TensorType))


def _marked(block: Block, found: frozenset[Operation]) -> Block:
    def one(operation: Operation) -> Operation:
        regions = tuple(_marked(region, found) for region in operation.regions)
        attributes = {**operation.attributes, SIZES_AGREE: True} if operation in found else operation.attributes
        return replace(operation, regions=regions, attributes=attributes)

    return replace(block, operations=tuple(map(one, block.operations)))


class _Agreement:
    """What agrees, wherever a function is called from.

    Attributes:
      found: The operations.
    """

    def __init__(self, program: Program) -> None:
        self._functions: Mapping[str, Function] = program.functions
        self._seen: set[Operation] = set()
        self._doubted: set[Operation] = set()
        self._results: dict[Hashable, Facts] = {}
        self._names = EqualSizes()
        count = sum(1 for function in program.functions.values() for _ in operations_of(function.body))
        self._left = _MOST_OFTEN * count
        for name, function in program.functions.items():
            if function.is_public or name == next(iter(program.functions)):
                self._called(name, None)
        self.found = frozenset(self._seen - self._doubted)

    def _called(self, name: str, given: Facts | None) -> Facts:
        """What is known of the results of a function, of whose arguments nothing is, or what is given."""
        body = self._functions[name].body
        if self._left <= 0:
            given = None
        key = name, given
        if key not in self._results:
            sizes = EqualSizes(self._names)
            for value, facts in zip(body.arguments, given or (), strict=given is not None):
                sizes.set(value, *facts)
            self._results[key] = _nothing(body.returned)  # of a call of itself
            self._results[key] = self._block(body, sizes, is_trial=False)
        known = {name for facts in given or () for name in _all_names(facts)}
        # What else there is, it names as it would in another call, where it may be another size.
        return tuple(
            (_only(shape, known), elements and _only(elements, known)) for shape, elements in self._results[key]
        )

    def _block(self, block: Block, sizes: EqualSizes, *, is_trial: bool) -> Facts:
        """Looks at the operations of a block; what is known of that which it returns."""
        for operation in block.operations:
            self._left -= 1
            if not is_trial:
                self._seen.add(operation)
                if not _agrees(operation, sizes):
                    self._doubted.add(operation)
            sizes.add(operation)
            if operation.name in _CALLS:
                given = tuple(map(_facts(sizes), operation.operands))
                _learn(sizes, operation.results, self._called(operation.attributes[_CALLS[operation.name]], given))
            elif operation.name == "stablehlo.while":
                _learn(sizes, operation.results, self._loop(operation, sizes, is_trial=is_trial))
            elif operation.name in ("stablehlo.if", "stablehlo.case"):
                found = [self._block(region, sizes, is_trial=is_trial) for region in operation.regions]
                _learn(sizes, operation.results, _common(found))
        return tuple(map(_facts(sizes), block.returned))

    def _loop(self, operation: Operation, sizes: EqualSizes, *, is_trial: bool) -> Facts:
        """What is true of what a loop carries before it, and after each turn."""
        condition, body = operation.regions
        carried = tuple(map(_facts(sizes), operation.operands))
        for _ in range(_LOOPS_LOOKED_AT):
            tried = sizes.copy()
            _learn(tried, body.arguments, carried)
            kept = _common([carried, self._block(body, tried, is_trial=True)])
            if kept == carried:
                break
            carried = kept
        else:
            carried = _nothing(body.arguments)
        for region in (condition, body):
            _learn(sizes, region.arguments, carried)
            self._block(region, sizes, is_trial=is_trial)
        return carried


def _facts(sizes: EqualSizes) -> Any:
    return lambda value: (sizes.shape(value), sizes.elements(value))


def _nothing(values: Sequence[Value]) -> Facts:
    """Of values, that nothing is known but their types."""
    return tuple((tuple(() for _ in shape), None) for shape in map(EqualSizes().shape, values))


def _learn(sizes: EqualSizes, values: Sequence[Value], facts: Facts) -> None:
    """Gives values those names; where there are none, they have their own."""
    new = EqualSizes()
    for value, (shape, elements) in zip(values, facts, strict=True):
        own = new.elements(value)
        known = own if elements is None or own is None else _or_own(elements, own)
        sizes.set(value, _or_own(shape, new.shape(value)), known)


def _or_own(names: Sizes, own: Sizes) -> Sizes:
    return tuple(each or other for each, other in zip(names, own, strict=True))


def _only(sizes: Sizes, known: set[Hashable]) -> Sizes:
    return tuple(tuple(name for name in names if isinstance(name, int) or name in known) for names in sizes)


def _all_names(facts: tuple[Sizes, Sizes | None]) -> Iterator[Hashable]:
    shape, elements = facts
    yield from (name for names in (*shape, *(elements or ())) for name in names)


def _common(found: Sequence[Facts]) -> Facts:
    """What is known of values in every one of several ways to them."""

    def shared(several: Sequence[Sizes]) -> Sizes:
        return tuple(
            tuple(name for name in names[0] if all(name in each for each in names))
            for names in zip(*several, strict=True)
        )

    result = []
    for ways in zip(*found, strict=True):
        elements = [known for _, known in ways if known is not None]
        result.append((shared([shape for shape, _ in ways]), shared(elements) if len(elements) == len(ways) else None))
    return tuple(result)


# --- what an operation requires ---


def _agrees(operation: Operation, sizes: EqualSizes) -> bool:
    """Whether sizes are as the operation requires, as far as that is known before it runs."""
    shapes = [[_sized(names) for names in sizes.shape(value)] for value in operation.operands]

    def elements(index: int) -> Sequence[_Size]:
        value = operation.operands[index]
        found = sizes.elements(value)
        if found is not None:
            return [_sized(names, is_size=any(map(is_of_array, names))) for names in found]
        type_ = value.type
        assert isinstance(type_, TensorType), "sizes are in an array"
        return [_Size((("element", value, i),), None) for i in range((type_.shape or (1,))[0] or 0)]

    return all(_is_met(*required) for required in requirements(operation, shapes, elements))


def _is_met(size: Any, limit: Any, is_most: bool) -> bool:
    size, limit = _sized(size), _sized(limit)
    number, most = known_of(size.names), known_of(limit.names)
    if set(size.names) & set(limit.names):
        return True
    if number is not None and most is not None:
        return number <= most if is_most else number == most
    return is_most and number is not None and limit.least is not None and number <= limit.least


@dataclass(frozen=True)
class _Size:
    """A size, or a number computed of sizes.

    Attributes:
      names: What it is known to be.
      least: What it is at least, if that is known.
    """

    names: Names
    least: int | None

    def __add__(self, other: Any) -> _Size:
        return _computed("add", self, _sized(other), 0)

    def __sub__(self, other: Any) -> _Size:
        right = _sized(other)
        return _sized(0) if set(self.names) & set(right.names) else _computed("subtract", self, right, 0)

    def __mul__(self, other: Any) -> _Size:
        return _computed("multiply", self, _sized(other), 1)

    def __mod__(self, other: Any) -> _Size:
        return _computed("remainder", self, _sized(other), None)

    def __radd__(self, other: Any) -> _Size:
        return _sized(other) + self

    def __rmul__(self, other: Any) -> _Size:
        return _sized(other) * self


def _sized(given: Any, *, is_size: bool = True) -> _Size:
    """A size of an array, or a number of these names; an integer."""
    if isinstance(given, _Size):
        return given
    names = given if isinstance(given, tuple) else (int(given),)
    number = known_of(names)
    return _Size(names, number if number is not None else 0 if is_size else None)


_PYTHON = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "remainder": lambda a, b: a % b,
}


def _computed(name: str, left: _Size, right: _Size, neutral: int | None) -> _Size:
    numbers = known_of(left.names), known_of(right.names)
    if None not in numbers:
        return _sized(_PYTHON[name](*numbers))
    if name == "multiply" and 0 in numbers:
        return _sized(0)
    if neutral is not None and numbers[1] == neutral:
        return left
    if neutral is not None and numbers[0] == neutral and name != "subtract":
        return right
    least = None
    if left.least is not None and right.least is not None:
        is_least = name == "add" or (name == "multiply" and min(left.least, right.least) >= 0)
        least = _PYTHON[name](left.least, right.least) if is_least else None
    return _Size(((name, left.names[0], right.names[0]),), least)
