"""Gathers and scatters with all their dimension numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .scalars import computed
from .text import COMPLEX, FLOATS, INTEGERS, Module, Text, Value, list_of

__all__ = ["gather", "scatter", "torch_index_select"]


@dataclass(frozen=True)
class _Numbers:
    """Dimension numbers; their names are those of a gather."""

    shape: tuple[int, ...]
    slices: list[int]
    indices: Value
    result: list[int]
    lists: dict[str, list[int]]
    vector: int

    def named(self, names: str) -> str:
        lists = [f"{name} = {values}" for name, values in zip(names.split(), self.lists.values(), strict=True)]
        return ", ".join([*lists, f"index_vector_dim = {self.vector}"])


def _numbers(text: Text, least: int = 0) -> _Numbers:
    """Dimension numbers with at least so many dimensions that indices are of."""
    random, rank = text.random, text.random.randint(1, 4)
    shape = tuple(random.randint(1, 4) for _ in range(rank))
    axes = random.sample(range(rank), rank)
    batching = sorted(axes[: random.choice([0, 1, 1, min(2, rank - 1)]) if rank > 1 else 0])
    left = [axis for axis in axes if axis not in batching]
    indexed = left[: random.randint(min(least, len(left)), len(left))]
    collapsed = sorted(axis for axis in left if random.random() < (0.6 if axis in indexed else 0.1))
    slices = [
        1 if axis in collapsed or axis in batching else random.randint(0, size) for axis, size in enumerate(shape)
    ]
    count = random.randint(len(batching), len(batching) + 2)
    places = random.sample(range(count), len(batching))
    batch = [random.randint(1, 3) for _ in range(count)]
    for axis, place in zip(batching, places, strict=True):
        batch[place] = shape[axis]
    vector = random.randint(0, count)
    if is_implicit := len(indexed) == 1 and random.random() < 0.3:
        vector = count
    sizes = batch if is_implicit else [*batch[:vector], len(indexed), *batch[vector:]]
    windows = [axis for axis in range(rank) if axis not in collapsed and axis not in batching]
    offsets = sorted(random.sample(range(count + len(windows)), len(windows)))
    lefts = iter(batch)
    result = [slices[windows[offsets.index(d)]] if d in offsets else next(lefts) for d in range(count + len(windows))]
    lists = [offsets, collapsed, batching, [place + (place >= vector) for place in places], indexed]
    element = random.choice(["i32", "i64", "ui8", "ui32", "i16"])
    values = random.choice(((0 if element[0] == "u" else -3, 6), (0, 3), "special"))
    names = ["offset", "collapsed", "batching", "indices", "map"]
    return _Numbers(
        shape, slices, text.argument(sizes, element, values), result, dict(zip(names, lists, strict=True)), vector
    )


_GATHER = "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims start_index_map"
_SCATTER = (
    "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims"
    " scatter_dims_to_operand_dims"
)


def gather(text: Text) -> Module:
    """With sizes in the text, or as an operand."""
    numbers, element = _numbers(text), text.random.choice([*FLOATS, *INTEGERS, *COMPLEX, "i1"])
    operands: list[Any] = [text.argument(numbers.shape, element), numbers.indices]
    attributes = f"dimension_numbers = #stablehlo.gather<{numbers.named(_GATHER)}>"
    whole = f"{attributes}, slice_sizes = {list_of(numbers.slices)}"
    result = numbers.result, element
    if text.random.random() < 0.7:
        return text.module(text.operation("gather", operands, result, whole))
    sizes = text.random.choice((text.given, text.constant))(numbers.slices, text.random.choice(["i32", "i64"]))
    return text.module(
        text.operation("dynamic_gather", [*operands, sizes], result, attributes, asked=("gather", operands, whole))
    )


def scatter(text: Text) -> Module:
    """With a region of any kind, of one or two arrays, also into a wider type, which XLA is asked after a conversion.

    Of several updates without indices XLA for CPU takes the last one only.
    """
    random, numbers, count = text.random, _numbers(text, 1), text.random.choice([1, 1, 2])
    element = random.choice(["f32", "i32", "i8", "f64", "ui16", "i64"])
    wide = {"f32": "f64", "i8": "i32", "i32": "i64", "ui16": "ui32"}.get(element, element)
    result = wide if random.random() < 0.2 else element
    arrays = [text.argument(numbers.shape, element, "small") for _ in range(count)]
    updates = [text.argument(numbers.result, element, "small") for _ in range(count)]
    steps = random.choice((["pair"], ["pair", "select", "unary", "constant"]))

    def function(*taken: Value) -> list[Value]:
        pool = computed(text, taken, steps)
        return [random.choice(pool[1:]) for _ in range(count)]

    region = text.region([((), result)] * (2 * count), function)
    attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers.named(_SCATTER)}>"
    converted = [x if element == result else text.asks("convert", [x], (x.shape, result)) for x in (*arrays, *updates)]
    asked = [*converted[:count], numbers.indices, *converted[count:]]
    found = text.operation(
        "scatter",
        [*arrays, numbers.indices, *updates],
        *[(numbers.shape, result)] * count,
        attributes,
        regions=[region],
        asked=("scatter", asked, attributes),
    )
    return text.module(*(found if count > 1 else [found]))


def torch_index_select(text: Text) -> Module:
    """Elements along a dimension, of indices outside too; of those of 64 bits XLA takes 32, without a sign."""
    random, element = text.random, text.random.choice([*FLOATS, *INTEGERS, *COMPLEX, "i1"])
    shape = tuple(random.randint(1, 4) for _ in range(random.randint(1, 4)))
    axis = random.randrange(len(shape))
    batch = random.randint(0, axis)
    more = tuple(random.randint(1, 3) for _ in range(random.randint(0, 2)))
    kind, limits = random.choice((("i32", (-2, shape[axis] + 1)), ("i64", (0, shape[axis] + 1))))
    indices = text.argument((*shape[:batch], *more), kind, limits)
    result = (*shape[:axis], *more, *shape[axis + 1 :])
    attributes = f"dim = {axis} : i64, batch_dims = {batch} : i64"
    return text.module(
        text.operation("torch_index_select", [text.argument(shape, element), indices], (result, element), attributes)
    )
