"""Branches, loops and functions in each other, which take what is outside of them, tuples and barriers."""

from __future__ import annotations

from collections.abc import Sequence

from .scalars import compared
from .text import Module, Text, Value

__all__ = ["control"]

_KINDS = ["pair", "pair", "tuple", "barrier", "call", "composite", "case", "if", "while"]


def control(text: Text) -> Module:
    """A program of up to three levels on arrays of one type."""
    type_ = (text.shape(0, 2), text.random.choice(["f32", "i32"]))
    pool = [text.argument(*type_, "small") for _ in range(2)]
    by = text.argument((), "i32", (-2, 5)), text.argument((), "i1")
    for _ in range(3):
        pool = _grown(text, pool, by, 3)
    return text.module(*pool[-3:])


def _grown(text: Text, given: Sequence[Value], by: tuple[Value, Value], depth: int) -> list[Value]:
    """The values and up to two more; `by` chooses branches and is in tuples."""
    random, pool = text.random, list(given)
    type_ = (pool[0].shape, pool[0].element)
    for _ in range(random.randint(0, 2)):
        kind, pair = random.choice(_KINDS if depth else _KINDS[:4]), [random.choice(pool) for _ in range(2)]
        if kind == "pair":
            made = text.operation(random.choice(["add", "subtract", "maximum"]), pair, type_)
        elif kind == "tuple":
            parts = [pair[0], by[0], pair[1]]
            whole = text.operation("tuple", parts, ((), f"tuple<{', '.join(part.type for part in parts)}>"))
            made = text.operation("get_tuple_element", [whole], type_, f"index = {random.choice((0, 2))} : i32")
        elif kind == "barrier":
            made = random.choice(text.operation("optimization_barrier", pair, type_, type_))
        elif kind in ("call", "composite"):
            made = _called(text, kind, pair, by, depth)
        elif kind == "while":
            made = _loop(text, pool, by, depth)
        else:
            count = random.randint(1, 4) if kind == "case" else 2
            branches = [text.region([], lambda: _two_of(text, _grown(text, pool, by, depth - 1))) for _ in range(count)]
            chosen = by[0] if kind == "case" else by[1]
            made = random.choice(text.operation(kind, [chosen], type_, type_, regions=branches))
        pool.append(made)
    return pool


def _called(text: Text, kind: str, pair: list[Value], by: tuple[Value, Value], depth: int) -> Value:
    """What a function of its own gives for two arrays, called or as the decomposition of an unknown operation."""
    operands = [*pair, *by]

    def function(x: Value, y: Value, *inner: Value) -> list[Value]:
        return [_grown(text, [x, y], (inner[0], inner[1]), depth - 1)[-1]]

    type_, name = (pair[0].shape, pair[0].element), text.function([(x.shape, x.element) for x in operands], function)
    if kind == "call":
        made = text.operation("func.call", operands, type_, f"callee = @{name}")
    else:
        attributes = f'name = "some.operation", decomposition = @{name}, version = 1 : i32'
        made = text.operation("composite", operands, type_, attributes)
    result: Value = made
    return result


def _two_of(text: Text, pool: list[Value]) -> list[Value]:
    return [text.random.choice(pool) for _ in range(2)]


def _loop(text: Text, pool: list[Value], by: tuple[Value, Value], depth: int) -> Value:
    """A loop of up to three turns, in steps of one: of others XLA for CPU may count one less."""
    start = text.constant(text.random.randint(0, 1), "i32")
    type_, counts = (pool[0].shape, pool[0].element), ((), "i32")
    limit = text.random.randint(0, 3)

    def goes_on(count: Value, _: Value) -> list[Value]:
        return [compared(text, count, text.constant(limit, "i32"), "LT")]

    def turn(count: Value, carried: Value) -> list[Value]:
        made = _grown(text, [*pool, carried], by, depth - 1)
        return [text.operation("add", [count, text.constant(1, "i32")], counts), text.random.choice(made)]

    regions = [text.region([counts, type_], goes_on), text.region([counts, type_], turn)]
    last: Value = text.operation("while", [start, text.random.choice(pool)], counts, type_, regions=regions)[1]
    return last
