"""Loops and branches of JAX. A loop that counts is a `scan`, which JAX differentiates in reverse mode (`loops`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.loops import Counted, Row, counted, kept_by
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known
from jaxtf.serialization._program.program import Operation, TensorType, Value


@lifts(
    "stablehlo.while",
    takes_sizes=True,
    differs="JAX refuses reverse mode of a loop with an unknown number of iterations, as for `lax.while_loop`",
)
def while_loop(bound: Bound, *initial: Any) -> list[Any]:
    """The values after the body has been applied for as long as the condition holds.

    Source: StableHLO specification, `while`.
    """
    starts = {i: value for i, x in enumerate(initial) if (value := _integer(x)) is not None}
    known = counted(bound.operation, starts, bound.sources, bound.functions)
    return _general(bound, initial) if known is None else _scanned(bound, initial, known)


def _integer(value: Any) -> int | None:
    """The integer that a scalar is known to be."""
    if not isinstance(value, Known) or value.shape != () or not value.is_constant:
        return None
    return int(value.elements.item())


def _general(bound: Bound, initial: Sequence[Any]) -> list[Any]:
    """A loop of any number of rounds; what stays unchanged is not part of its state."""
    kept = kept_by(bound.operation.regions[1])
    state = [i for i in range(len(initial)) if i not in kept]

    def whole(values: Sequence[Any]) -> list[Any]:
        arguments = list(initial)
        for i, value in zip(state, values, strict=True):
            arguments[i] = value
        return arguments

    def goes_on(values: Sequence[Any]) -> Any:
        return as_array(bound.regions[0](*whole(values))[0])

    def step(values: Sequence[Any]) -> tuple[Any, ...]:
        made = bound.regions[1](*whole(values))
        return tuple(bound.varying([as_array(made[i]) for i in state]))

    first = tuple(bound.varying([as_array(initial[i]) for i in state]))
    return whole(lax.while_loop(goes_on, step, first))


def _scanned(bound: Bound, initial: Sequence[Any], known: Counted) -> list[Any]:
    """A loop of a known number of rounds."""
    state = [i for i in range(len(initial)) if i not in known.kept and i not in known.written]
    rows = [*(row for group in known.read.values() for row in group), *known.written.values()]
    backwards = bool(rows) and all(row.is_last_first for row in rows)

    def in_order(row: Row, array: Any) -> Any:
        """The rows of an array in the order of the rounds, or of the rounds backwards, or back."""
        return array if row.is_last_first == backwards else lax.rev(array, (0,))

    read = {i: in_order(group[0], as_array(initial[i])) for i, group in known.read.items()}

    def step(values: tuple[Any, ...], current: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        arguments = list(initial)
        for i, value in zip(state, values, strict=True):
            arguments[i] = value
        written: dict[Operation, Any] = {}
        replaced: dict[Operation, Callable[..., list[Any]]] = {}
        for group, row in zip(known.read.values(), current, strict=True):
            replaced |= {each.operation: _reading(each.operation, row) for each in group}
        for row_ in known.written.values():
            replaced[row_.operation] = _writing(row_.operation, written)
        made = bound.apply(1, arguments, replaced)
        return tuple(bound.varying([as_array(made[i]) for i in state])), tuple(
            written[r.operation] for r in known.written.values()
        )

    first = tuple(bound.varying([as_array(initial[i]) for i in state]))
    last, stacked = lax.scan(step, first, tuple(read.values()), length=known.rounds, reverse=backwards)
    results = list(initial)
    for i, value in zip(state, last, strict=True):
        results[i] = value
    for (i, row), array in zip(known.written.items(), stacked, strict=True):
        results[i] = in_order(row, array)
    return results


def _reading(operation: Operation, row: Any) -> Callable[..., list[Any]]:
    """What takes the place of reading a row, in the shape that the operation gives it."""
    sizes = _known_sizes(operation.results[0])
    return lambda *_: [lax.reshape(row, (1, *row.shape) if sizes is None else sizes)]  # no reshape has open sizes


def _writing(operation: Operation, written: dict[Operation, Any]) -> Callable[..., list[Any]]:
    """What takes the place of writing a row, in any shape, and keeps it."""
    sizes = _known_sizes(operation.operands[0])
    assert sizes is not None, "rows are of arrays of known sizes"

    def write(_: Any, row: Any, *indices: Any) -> list[Any]:
        written[operation] = lax.reshape(as_array(row), sizes[1:])
        return [None]

    return write


def _known_sizes(value: Value) -> tuple[int, ...] | None:
    """The shape of an array in the module; None if it does not have all sizes."""
    assert isinstance(value.type, TensorType), "rows are of arrays"
    sizes = tuple(size for size in value.type.shape if size is not None)
    return sizes if len(sizes) == value.type.rank else None


@lifts("stablehlo.if")
def if_(bound: Bound, predicate: Any) -> list[Any]:
    """What one of two regions gives.

    Source: StableHLO specification, `if`.
    """
    return list(lax.cond(predicate, *(_branch(bound, region) for region in bound.regions)))


@lifts("stablehlo.case", takes_sizes=True)
def case(bound: Bound, index: Any) -> list[Any]:
    """What the region of that number gives; the last one's for a number that there is no region for.

    Source: StableHLO specification, `case`.
    """
    last = len(bound.regions) - 1
    number = _integer(index)
    if number is not None or not last:
        return bound.regions[number if number is not None and 0 <= number <= last else last]()
    chosen = as_array(index)
    outside = lax.bitwise_or(
        lax.lt(chosen, np.asarray(0, chosen.dtype)), lax.gt(chosen, np.asarray(last, chosen.dtype))
    )
    chosen = lax.select(outside, np.asarray(last, chosen.dtype), chosen)
    return list(lax.switch(chosen, [_branch(bound, region) for region in bound.regions]))


def _branch(bound: Bound, region: Callable[[], list[Any]]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(bound.varying(list(map(as_array, region()))))
