"""Sorting, by any comparator, and the greatest elements.

A comparator that orders by keys, as JAX writes it, becomes integers or floats that `lax.sort` orders so. By any other
comparator elements are ranked by comparing each with each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.comparison import is_floating, total_order
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_integers
from jaxtf.serialization._program.regions import Key, comparator_keys, comparison_direction

# Elements that are compared each with each.
MANY_ELEMENTS = 4096


@lifts("stablehlo.sort")
def sort(bound: Bound, *operands: Any) -> Any:
    """The arrays sorted together along a dimension.

    Source: StableHLO specification, `sort`.
    """
    rank = operands[0].ndim
    if not rank:
        return list(operands)
    axis = bound.get("dimension", -1) % rank
    is_stable = bool(bound.get("is_stable", False))
    keys = comparator_keys(bound.operation.regions[0], bound.sources)
    if keys is None:
        return _by_rank(bound, operands, axis)
    if _are_leading(keys, operands):
        return lax.sort(tuple(operands), dimension=axis, is_stable=is_stable, num_keys=_operands_of(keys))
    made = [_as_ordered(operands[key.operand], key) for key in keys]
    done = lax.sort((*made, *operands), dimension=axis, is_stable=is_stable, num_keys=len(keys))
    return list(done[len(keys) :])


def _operands_of(keys: Sequence[Key]) -> int:
    return len({key.operand for key in keys})


def _are_leading(keys: Sequence[Key], operands: Sequence[Any]) -> bool:
    """Whether the keys are the first operands in ascending order, as `lax.sort` itself has them."""
    expected: list[Key] = []
    for position in range(_operands_of(keys)):
        dtype = operands[position].dtype
        if dtype.kind == "c":
            expected += [Key(position, part, True, True) for part in ("real", "imag")]
        else:
            expected.append(Key(position, "", is_floating(dtype), is_floating(dtype)))
    return list(keys) == expected


def _as_ordered(operand: Any, key: Key) -> Any:
    """An array that `lax.sort` orders as the key asks for."""
    if key.part:
        operand = lax.real(operand) if key.part == "real" else lax.imag(operand)
    if is_floating(operand.dtype):
        if key.merges:
            zero, nan = lax.full_like(operand, 0), lax.full_like(operand, np.nan)
            operand = lax.select(lax.eq(operand, zero), zero, operand)
            operand = lax.select(lax.ne(operand, operand), nan, operand)
        operand = total_order(operand)
    return lax.bitwise_not(operand) if key.descending else operand


def _by_rank(bound: Bound, operands: Sequence[Any], axis: int) -> list[Any]:
    """Each element at the place that is the number of those before it, and of earlier ones that compare alike."""
    count = operands[0].shape[axis]
    if not isinstance(count, int) or count > MANY_ELEMENTS:
        raise unsupported(bound.operation, f"a comparator of its own for more than {MANY_ELEMENTS} elements")
    moved = [lax.transpose(x, (*(i for i in range(x.ndim) if i != axis), axis)) for x in operands]
    lines = [lax.reshape(x, (math.prod(x.shape[:-1]), count)) for x in moved]

    def line(*rows: Any) -> tuple[Any, ...]:
        def is_before(i: Any, j: Any) -> Any:
            pairs = [value for row in rows for value in (row[i], row[j])]
            return as_array(bound.regions[0](*pairs)[0])

        numbers = np.arange(count, dtype=np.int32)
        before = jax.vmap(lambda i: jax.vmap(lambda j: is_before(j, i))(numbers))(numbers)  # [i, j]: j before i
        alike = lax.bitwise_not(lax.bitwise_or(before, lax.transpose(before, (1, 0))))
        earlier = numbers[None, :] < numbers[:, None]
        first = lax.bitwise_or(before, lax.bitwise_and(alike, earlier))
        rank = lax.reduce_sum(lax.convert_element_type(first, np.dtype(np.int32)), (1,))
        return tuple(lax.sort((rank, *rows), num_keys=1)[1:])

    if not count:
        return list(operands)
    done = jax.vmap(line)(*lines)
    back = np.argsort([*(i for i in range(operands[0].ndim) if i != axis), axis])
    return [
        lax.transpose(lax.reshape(x, m.shape), tuple(int(i) for i in back)) for x, m in zip(done, moved, strict=True)
    ]


@lifts("chlo.top_k", "custom_call.mhlo.topk")
def top_k(bound: Bound, operand: Any) -> Any:
    """The k greatest elements along the last dimension in descending order, and their positions.

    Source: CHLO, `top_k`; `jax.lax.top_k`.
    """
    given = bound.get("mhlo.attributes") or bound.operation.attributes
    if not given.get("largest", True):
        raise unsupported(bound.operation, "the least elements")
    return list(lax.top_k(operand, int(given["k"])))


@lifts("custom_call.stablehlo.dynamic_top_k", takes_sizes=True)
def dynamic_top_k(bound: Bound, operand: Any, count: Any) -> Any:
    """As `chlo.top_k`, with a count that is an operand.

    Source: StableHLO, experimental operations, `dynamic_top_k`.
    """
    if not isinstance(count, Known):
        raise unsupported(bound.operation, "a count that does not follow from sizes")
    (known,) = known_integers(count)
    return list(lax.top_k(as_array(operand), known))


@lifts("custom_call.ApproxTopK", "custom_call.stablehlo.dynamic_approx_top_k", takes_sizes=True)
def approximate_top_k(bound: Bound, operand: Any, positions: Any, _: Any, *rest: Any) -> Any:
    """The greatest or least elements along a dimension, as exactly as the platform does it.

    Source: `jax.lax.approx_max_k`.
    """
    given = bound["backend_config"]
    dynamic = "top_k" not in given
    if dynamic and not isinstance(rest[1], Known):
        raise unsupported(bound.operation, "a count that does not follow from sizes")
    count = known_integers(rest[1])[0] if dynamic else int(given["top_k"])
    source = bound.sources.get(bound.operation.operands[1])
    axis = int(given["reduction_dim"])
    counts = source is not None and source.name in ("stablehlo.iota", "stablehlo.dynamic_iota")
    if not counts or source.attributes["iota_dimension"] != axis:  # type: ignore[union-attr]
        raise unsupported(bound.operation, "positions that are not those of the elements")
    direction = comparison_direction(bound.functions[bound["called_computations"][0]].body)
    if direction is None:
        raise unsupported(bound.operation, "a comparator of its own")
    find = lax.approx_max_k if direction == "GT" else lax.approx_min_k
    values, places = find(
        as_array(operand),
        count,
        reduction_dimension=axis,
        recall_target=float(given["recall_target"]),
        reduction_input_size_override=int(given.get("reduction_input_size_override", -1)),
        aggregate_to_topk=bool(given.get("aggregate_to_topk", True)),
    )
    return [values, lax.convert_element_type(places, bound.result_types[1].dtype)]
