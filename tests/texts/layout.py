"""Elements at other places: slices, padding, concatenations, permutations, and what chooses among them."""

from __future__ import annotations

from collections.abc import Callable

from .text import COMPLEX, FLOATS, INTEGERS, NARROW, Module, Text, Value, list_of

__all__ = ["layout", "top_k"]


def layout(text: Text) -> Module:
    """Up to three operations, one after the other, of an argument or of a constant that is broadcast."""
    element = text.random.choice([*FLOATS, *INTEGERS, *NARROW, *COMPLEX, "i1"])
    x = text.argument(text.shape(1, 4), element)
    if element in INTEGERS and text.random.random() < 0.4:
        x = _broadcast(text, text.constant(text.array(text.shape(1, 2), element), element))
    for _ in range(text.random.randint(1, 3)):
        x = text.random.choice(_WRITERS)(text, x)
    return text.module(x)


def top_k(text: Text) -> Module:
    """The greatest elements and where they are, ties and NaN among them."""
    element, shape = text.random.choice([*FLOATS, *INTEGERS]), (*text.shape(0, 2), text.random.randint(1, 7))
    x = text.argument(shape, element, text.random.choice(("special", "small")))
    count = text.random.randint(1, shape[-1])
    kept = (*shape[:-1], count)
    return text.module(*text.operation("chlo.top_k", [x], (kept, element), (kept, "i32"), f"k = {count} : i64"))


def _reverse(text: Text, x: Value) -> Value:
    rank = len(x.shape)
    axes = sorted(text.random.sample(range(rank), text.random.randint(0, rank)))
    return text.operation("reverse", [x], (x.shape, x.element), f"dimensions = {list_of(axes)}")


def _concatenate(text: Text, x: Value) -> Value:
    axis = text.random.randrange(len(x.shape)) if x.shape else -1
    if axis < 0:
        return x
    parts = [x]
    for _ in range(text.random.randint(0, 3)):
        shape = (*x.shape[:axis], text.random.choice([0, 1, 2]), *x.shape[axis + 1 :])
        parts.append(text.argument(shape, x.element))
    text.random.shuffle(parts)
    shape = (*x.shape[:axis], sum(part.shape[axis] for part in parts), *x.shape[axis + 1 :])
    return text.operation("concatenate", parts, (shape, x.element), f"dimension = {axis} : i64")


def _slice(text: Text, x: Value) -> Value:
    random = text.random
    starts = [random.randint(0, size) for size in x.shape]
    limits = [random.randint(start, size) for start, size in zip(starts, x.shape, strict=True)]
    strides = [random.randint(1, 3) for _ in x.shape]
    sizes = [-((a - b) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    bounds = f"start_indices = {list_of(starts)}, limit_indices = {list_of(limits)}, strides = {list_of(strides)}"
    return text.operation("slice", [x], (sizes, x.element), bounds)


def _pad(text: Text, x: Value) -> Value:
    """With numbers below 0 too, and more of them than there are elements on that side."""
    random, low, high, between, sizes = text.random, [], [], [], []
    for size in x.shape:
        before, after, gap = random.randint(-3, 2), random.randint(-3, 2), random.choice([0, 0, 1, 2])
        total = size + before + after + max(size - 1, 0) * gap
        low.append(before)
        high.append(after - min(total, 0))
        between.append(gap)
        sizes.append(max(total, 0))
    lists = f"edge_padding_low = {list_of(low)}, edge_padding_high = {list_of(high)}"
    attributes = f"{lists}, interior_padding = {list_of(between)}"
    return text.operation("pad", [x, text.argument((), x.element)], (sizes, x.element), attributes)


def _dynamic_slice(text: Text, x: Value) -> Value:
    sizes = [text.random.randint(0 if text.random.random() < 0.1 else min(1, size), size) for size in x.shape]
    attributes = f"slice_sizes = {list_of(sizes)}"
    return text.operation("dynamic_slice", [x, *_starts(text, x)], (sizes, x.element), attributes)


def _dynamic_update_slice(text: Text, x: Value) -> Value:
    update = text.argument([text.random.randint(0, size) for size in x.shape], x.element)
    return text.operation("dynamic_update_slice", [x, update, *_starts(text, x)], (x.shape, x.element))


def _starts(text: Text, x: Value) -> list[Value]:
    """Also outside of the array, of any one type of integers; XLA takes large constants without a sign for negative."""
    element = text.random.choice([*INTEGERS, "i32"])
    numbers = [text.array((), element, text.random.choice(("special", "small"))) for _ in x.shape]
    makers = [(text.given,) if element[0] == "u" and n > 100 else (text.given, text.constant) for n in numbers]
    return [text.random.choice(make)(number, element) for make, number in zip(makers, numbers, strict=True)]


def _transpose(text: Text, x: Value) -> Value:
    order = text.random.sample(range(len(x.shape)), len(x.shape))
    shape = [x.shape[axis] for axis in order]
    return text.operation("transpose", [x], (shape, x.element), f"permutation = {list_of(order)}")


def _broadcast(text: Text, x: Value) -> Value:
    """Along dimensions in any order."""
    random, rank = text.random, len(x.shape) + text.random.randint(0, 1)
    axes = random.sample(range(rank), len(x.shape))
    shape = [random.randint(1, 3) for _ in range(rank)]
    for axis, size in zip(axes, x.shape, strict=True):
        shape[axis] = size if size != 1 else random.choice((1, shape[axis]))
    return text.operation("broadcast_in_dim", [x], (shape, x.element), f"broadcast_dimensions = {list_of(axes)}")


def _reshape(text: Text, x: Value) -> Value:
    shape = [*x.shape, *text.random.choice(((), (1,)))]
    text.random.shuffle(shape)
    return text.operation("reshape", [x], (shape, x.element))


_WRITERS: list[Callable[[Text, Value], Value]] = [
    _reverse,
    _concatenate,
    _slice,
    _pad,
    _dynamic_slice,
    _dynamic_update_slice,
    _transpose,
    _broadcast,
    _reshape,
]
