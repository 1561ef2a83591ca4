"""Sorts whose comparators order strictly, but are not written as JAX writes them."""

from __future__ import annotations

from collections.abc import Callable

from .scalars import compared
from .text import FLOATS, INTEGERS, NARROW, Module, Text, Value

__all__ = ["sort"]

# JAX's key of floats, `select(x != x, NaN, select(x == 0, 0, x))`, and the like: constants by bits.
_NAN, _MINUS_NAN, _MINUS_ZERO = "0x7FC00000", "0xFFC00000", "0x80000000"


def sort(text: Text) -> Module:
    """Of up to three arrays, by one or two of them."""
    random, count = text.random, text.random.randint(1, 3)
    shape = tuple(random.randint(1, 6) for _ in range(random.randint(1, 3)))
    write = random.choice(list(_WRITERS))
    elements = [random.choice([*FLOATS, *INTEGERS, *NARROW, "i1"]) for _ in range(count)]
    first, second = (random.randrange(count) for _ in range(2))
    if write is _keys:
        elements[first] = "f32"
    elif write is _of_magnitude and elements[first] in ("i1", *NARROW):
        elements[first] = "i32"
    values = ["special"] if write is _keys else ["special", "small"]
    operands = [text.argument(shape, element, random.choice(values)) for element in elements]

    def comparator(*taken: Value) -> list[Value]:
        pairs = [(taken[2 * i], taken[2 * i + 1]) for i in (first, second)]
        return [write(text, pairs)]

    region = text.region([((), element) for element in elements for _ in range(2)], comparator)
    attributes = f"dimension = {random.randrange(len(shape))} : i64, is_stable = true"
    found = text.operation("sort", operands, *((shape, element) for element in elements), attributes, regions=[region])
    return text.module(*(found if count > 1 else [found]))


Pairs = list[tuple[Value, Value]]


def _before(text: Text, pair: tuple[Value, Value], direction: str | None = None) -> Value:
    is_float = pair[0].element in FLOATS
    return compared(text, *pair, direction or text.random.choice(["LT", "GT"]), "TOTALORDER" if is_float else "")


def _joined(text: Text, name: str, *values: Value) -> Value:
    return text.operation(name, values, ((), "i1"))


def _one(text: Text, pairs: Pairs) -> Value:
    """The first key, in any order of the two."""
    x, y = pairs[0]
    return _before(text, text.random.choice(((x, y), (y, x))))


def _two(text: Text, pairs: Pairs) -> Value:
    """By the second key where the first is the same, with the parts in either order."""
    equal, then = _before(text, pairs[0], "EQ"), _before(text, pairs[1])
    parts = [_joined(text, "and", equal, then), _before(text, pairs[0])]
    text.random.shuffle(parts)
    return _joined(text, "or", *parts)


def _selected(text: Text, pairs: Pairs) -> Value:
    """The same by a choice."""
    direction = text.random.choice(["EQ", "NE"])
    chosen, first, second = _before(text, pairs[0], direction), _before(text, pairs[0]), _before(text, pairs[1])
    return _joined(text, "select", chosen, *((second, first) if direction == "EQ" else (first, second)))


def _of_magnitude(text: Text, pairs: Pairs) -> Value:
    """The negative, the magnitude or the bits turned over of a key."""
    x, y = pairs[0]
    signed = ["negate", "abs"] if x.element[0] != "u" else ["not"]
    name = text.random.choice(signed)
    return _before(text, tuple(text.operation(name, [one], ((), x.element)) for one in (x, y)))


def _never(text: Text, pairs: Pairs) -> Value:
    """Nothing is before anything."""
    return _before(text, (pairs[0][0], pairs[0][0]), "NE")


def _keys(text: Text, pairs: Pairs) -> Value:
    """By `select(x != x, a, select(x == b, c, x))` for some numbers, which are JAX's or nearly so."""
    random, made = text.random, []
    nan = random.choice([_NAN, _MINUS_NAN, -1])
    at, instead = random.choice([0, 3]), random.choice([0, _MINUS_ZERO, 9])
    numbers = [text.constant(one, "f32") for one in (nan, at, instead)]
    for x in pairs[0]:
        is_nan, is_it = compared(text, x, x, "NE", "FLOAT"), compared(text, x, numbers[1], "EQ", "FLOAT")
        inner = text.operation("select", [is_it, numbers[2], x], ((), "f32"))
        made.append(text.operation("select", [is_nan, numbers[0], inner], ((), "f32")))
    return compared(text, *made, random.choice(["LT", "GT"]), "TOTALORDER")


_WRITERS: list[Callable[[Text, Pairs], Value]] = [
    _one,
    _two,
    _selected,
    _of_magnitude,
    _never,
    _keys,
    _keys,
    _keys,
    _keys,
]
