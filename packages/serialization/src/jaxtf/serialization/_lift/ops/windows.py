"""Reductions over windows, cumulative ones, and the gradients of pools.

Where the region is one operation there is a function of `jax.lax` with rules of differentiation; windows as long as a
dimension that all start, or all end, outside are cumulative sums and their like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.accumulating import identity, is_identity, kind_of
from jaxtf.serialization._lift.ops.comparison import COMPARISONS
from jaxtf.serialization._lift.ops.elementwise import binary
from jaxtf.serialization._lift.ops.reductions import region_function
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_integers
from jaxtf.serialization._program.program import Block

CUMULATIVE: dict[str, Callable[..., Any]] = {
    "add": lax.cumsum,
    "multiply": lax.cumprod,
    "maximum": lax.cummax,
    "minimum": lax.cummin,
}

# These are recognized by `lax.reduce_window` from the function, where the initial value is the identity.
WITH_RULES: dict[str, Callable[[Any, Any], Any]] = {"add": lax.add, "maximum": lax.max, "minimum": lax.min}


@dataclass(frozen=True)
class Windows:
    """Windows over an array: for each dimension, as `jax.lax.reduce_window` takes them."""

    dimensions: tuple[Any, ...]
    strides: tuple[int, ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[Any, Any], ...]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is dilated."""
        return all(n == 1 for n in (*self.base_dilations, *self.dilations))


def _windows(bound: Bound, rank: int) -> Windows:
    """The windows that the attributes describe; those left out are 1, or 0 for padding."""

    def integers(name: str) -> tuple[int, ...]:
        given = bound.get(name)
        return (1,) * rank if given is None else tuple(int(n) for n in given)

    padding = np.zeros((rank, 2), int) if bound.get("padding") is None else np.asarray(bound["padding"]).reshape(-1, 2)
    return Windows(
        integers("window_dimensions"),
        integers("window_strides"),
        integers("base_dilations"),
        integers("window_dilations"),
        tuple((int(low), int(high)) for low, high in padding),
    )


@lifts("stablehlo.reduce_window")
def reduce_window(bound: Bound, *operands_and_initial: Any) -> Any:
    """The reduction by a region of each window of one or several arrays.

    Source: StableHLO specification, `reduce_window`.
    """
    windows = _windows(bound, operands_and_initial[0].ndim)
    return _reduced(bound, bound.operation.regions[0], region_function(bound), operands_and_initial, windows)


@lifts("custom_call.stablehlo.dynamic_reduce_window", takes_sizes=True)
def dynamic_reduce_window(bound: Bound, *operands: Any) -> Any:
    """As `reduce_window`, with the windows as operands and a function of the module to combine by.

    Source: StableHLO, experimental operations, `dynamic_reduce_window`.
    """
    *arrays, lengths, strides, base_dilations, dilations, padding = operands
    described = (lengths, strides, base_dilations, dilations, padding)
    if not all(isinstance(vector, Known) for vector in described):
        raise unsupported(bound.operation, "windows that do not follow from sizes")
    lengths, strides, base_dilations, dilations, edges = (tuple(known_integers(vector)) for vector in described)
    pairs = tuple(zip(edges[0::2], edges[1::2], strict=True))
    windows = Windows(lengths, strides, base_dilations, dilations, pairs)
    (name,) = bound["called_computations"]
    count = len(arrays) // 2

    def combine(left: Any, right: Any) -> Any:
        if count == 1:
            return bound.call(name, [left, right])[0]
        return tuple(bound.call(name, [*left, *right]))

    return _reduced(bound, bound.functions[name].body, combine, [as_array(x) for x in arrays], windows)


def _reduced(
    bound: Bound,
    block: Block,
    combine: Callable[[Any, Any], Any],
    operands_and_initial: Sequence[Any],
    windows: Windows,
) -> Any:
    count = len(operands_and_initial) // 2
    operands, initial = list(operands_and_initial[:count]), list(operands_and_initial[count:])
    kind = kind_of(block)
    if kind is not None and count == 1 and is_identity(kind, initial[0]):
        with_rule = _with_rule(kind, operands[0], initial[0].dtype, windows)
        if with_rule is not None:
            return with_rule
    elif kind in WITH_RULES and count == 1:
        from_any = _from_any(kind, operands[0], initial[0], windows, combine)
        if from_any is not None:
            return from_any
    if count == 1 and _longer(windows) == []:
        return _elementwise(combine, lax.broadcast(initial[0], operands[0].shape), operands[0])
    along = _direction(operands[0].shape, windows)
    if count == 1 and along is not None and isinstance(operands[0].shape[along[0]], int):
        return _cumulative_by_region(operands[0], initial[0], combine, windows, along)
    if count == 1:
        return _applied(operands[0], initial[0], combine, windows)
    return _applied(tuple(operands), tuple(initial), combine, windows)


def _with_rule(kind: str, operand: Any, dtype: Any, windows: Windows) -> Any:
    """The reduction from the identity on by a function of JAX that has rules of differentiation; None without one."""
    cumulative = _cumulative(kind, operand, windows)
    if cumulative is not None:
        return cumulative
    nothing = identity(kind, operand.dtype)
    if kind not in WITH_RULES or operand.dtype != dtype or not is_identity(kind, nothing):
        return None
    return _applied(operand, nothing, WITH_RULES[kind], windows)


def _from_any(
    kind: str, operand: Any, initial: Any, windows: Windows, combine: Callable[[Any, Any], Any]
) -> Any | None:
    """The same from any value on. What is rounded is summed from that value on, and only differentiated by the rule."""

    def apply(x: Any, first: Any) -> Any:
        reduced = _with_rule(kind, x, first.dtype, windows)
        return None if reduced is None else binary(kind)(lax.broadcast(first, reduced.shape), reduced)

    made = apply(operand, initial)
    if made is None or kind != "add" or not jnp.issubdtype(operand.dtype, np.inexact):
        return made
    summed = jax.custom_jvp(lambda x, first: _applied(x, first, combine, windows))
    summed.defjvp(lambda primals, tangents: (summed(*primals), jax.jvp(apply, primals, tangents)[1]))
    return summed(operand, initial)


def _applied(operands: Any, initial: Any, combine: Callable[[Any, Any], Any], windows: Windows) -> Any:
    return lax.reduce_window(
        operands,
        initial,
        combine,
        windows.dimensions,
        windows.strides,
        windows.padding,
        base_dilation=windows.base_dilations,
        window_dilation=windows.dilations,
    )


def _elementwise(combine: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """A function of scalars, applied to arrays of one shape."""
    flat = [lax.reshape(x, (math.prod(x.shape),)) for x in (left, right)]
    return lax.reshape(jax.vmap(combine)(*flat), left.shape)


def _cumulative_by_region(
    operand: Any, initial: Any, combine: Callable[[Any, Any], Any], windows: Windows, along: tuple[int, bool]
) -> Any:
    """A cumulative operation by a region, with the derivatives of the associative scan by it.

    Windows are combined in no promised order, so that a region that is not associative has no promised result.
    """
    axis, reverse = along

    def written_out(x: Any, first: Any) -> Any:
        scanned = lax.associative_scan(partial(_elementwise, combine), x, reverse=reverse, axis=axis)
        return _elementwise(combine, lax.broadcast(first, scanned.shape), scanned)

    @jax.custom_jvp
    def apply(x: Any, first: Any) -> Any:
        return _applied(x, first, combine, windows)

    @apply.defjvp
    def pushed(primals: Any, tangents: Any) -> Any:
        return apply(*primals), jax.jvp(written_out, primals, tangents)[1]

    return apply(operand, initial)


def _cumulative(kind: str, operand: Any, windows: Windows) -> Any:
    """A cumulative operation along one dimension; None if the windows are others."""
    if kind not in CUMULATIVE:
        return None
    axes = _longer(windows)
    if axes == []:
        return operand
    along = _direction(operand.shape, windows)
    return None if along is None else CUMULATIVE[kind](operand, axis=along[0], reverse=along[1])


def _longer(windows: Windows) -> list[int] | None:
    """The dimensions in which windows have more than one element, or padding; None if they skip or are dilated."""
    if not windows.is_plain or any(n != 1 for n in windows.strides):
        return None
    pairs = enumerate(zip(windows.dimensions, windows.padding, strict=True))
    return [axis for axis, (length, pair) in pairs if not (_is(length, 1) and _is(pair[0], 0) and _is(pair[1], 0))]


def _direction(shape: Sequence[Any], windows: Windows) -> tuple[int, bool] | None:
    """The dimension of windows that all start before it (or all end after it: then `True`); None if they are others."""
    axes = _longer(windows)
    if axes is None or len(axes) != 1:
        return None
    (axis,) = axes
    size, (low, high) = windows.dimensions[axis], windows.padding[axis]
    if size != shape[axis]:
        return None
    if low == size - 1 and _is(high, 0):
        return axis, False
    return (axis, True) if high == size - 1 and _is(low, 0) else None


def _is(size: Any, number: int) -> bool:
    return isinstance(size, int | np.integer) and size == number


@lifts("stablehlo.select_and_scatter")
def select_and_scatter(bound: Bound, operand: Any, source: Any, initial: Any) -> Any:
    """Each element of the source added where the window of the operand has its selected, first such, element.

    Source: StableHLO specification, `select_and_scatter`.
    """
    windows = _windows(bound, operand.ndim)
    direction = _selection(bound.operation.regions[0])
    if direction is None:
        raise unsupported(bound.operation, "it selects by another function than a comparison of the two elements")
    if kind_of(bound.operation.regions[1]) != "add":
        raise unsupported(bound.operation, "it combines by another operation than add")
    count = math.prod(operand.shape)
    if direction in _OF_JAX and not any(n for pair in windows.padding for n in pair):
        added = lax.select_and_scatter_add_p.bind(
            source,
            operand,
            select_prim=_OF_JAX[direction],
            window_dimensions=windows.dimensions,
            window_strides=windows.strides,
            padding=windows.padding,
        )
    elif isinstance(count, int) and count > np.iinfo(np.int32).max:
        raise unsupported(bound.operation, "padding, or another comparison than GE or LE, of 2**31 elements or more")
    else:
        added = _added_at_selected(operand, source, COMPARISONS[direction], windows)
    return added if is_identity("add", initial) else binary("add")(added, lax.broadcast(initial, added.shape))


_OF_JAX = {"GE": lax.ge_p, "LE": lax.le_p}


def _added_at_selected(operand: Any, source: Any, select: Callable[[Any, Any], Any], windows: Windows) -> Any:
    """As `select_and_scatter` with padding, which is never selected; a window of nothing else selects nothing.

    JAX pads by the identity of the selection, which wins over elements that are the same, and over NaN.
    """
    count = math.prod(operand.shape)
    none = np.int32(-1)

    def first(left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        is_kept = lax.bitwise_or(lax.eq(right[1], none), select(left[0], right[0]))
        is_kept = lax.bitwise_and(is_kept, lax.ne(left[1], none))
        return lax.select(is_kept, left[0], right[0]), lax.select(is_kept, left[1], right[1])

    places = lax.reshape(lax.iota(np.int32, count), operand.shape)
    nothing = np.zeros((), operand.dtype)
    selected = _applied((lax.stop_gradient(operand), places), (nothing, none), first, windows)[1]
    added = lax.scatter_add(
        lax.full((count,), 0, source.dtype),
        lax.reshape(selected, (math.prod(selected.shape), 1)),
        lax.reshape(source, (math.prod(source.shape),)),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )
    return lax.reshape(added, operand.shape)


def _selection(block: Block) -> str | None:
    """The direction of the comparison that a region is."""
    if len(block.operations) != 1 or block.operations[0].operands != block.arguments:
        return None
    operation = block.operations[0]
    if operation.name != "stablehlo.compare" or operation.results != block.returned:
        return None
    if operation.attributes.get("compare_type") == "TOTALORDER":
        return None
    direction = operation.attributes["comparison_direction"]
    assert isinstance(direction, str), "a direction is a name"
    return direction
