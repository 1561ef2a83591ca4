"""Operations whose sizes or bounds are operands: in the text, arguments, or computed from sizes of another array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .text import COMPLEX, FLOATS, INTEGERS, Module, Text, Value, list_of

__all__ = ["dynamic"]


def dynamic(text: Text) -> Module:
    """Any of them, compared with the static operation."""
    element = text.random.choice([*FLOATS, *INTEGERS, *COMPLEX, "i1"])
    return text.module(text.random.choice(_WRITERS)(text, element))


def _vector(text: Text, numbers: Sequence[int], array: Value | None = None) -> Value:
    """Numbers as an operand; some may be sizes of an array."""
    element, kind = text.random.choice(["i32", "i64"]), text.random.randint(0, 2)
    if kind == 0 or (kind == 2 and array is None):
        return text.constant(np.asarray(numbers, int), element)
    if kind == 1 or array is None or not numbers:
        return text.given(np.asarray(numbers, int), element)
    parts = []
    for number in numbers:
        axes = [axis for axis, size in enumerate(array.shape) if size == number]
        attributes = f"dimension = {text.random.choice(axes)} : i64" if axes else ""
        size = (
            text.operation("get_dimension_size", [array], ((), "i32"), attributes)
            if axes
            else text.constant(number, "i32")
        )
        parts.append(text.operation("reshape", [size], ((1,), "i32")))
    return text.operation("concatenate", parts, ((len(numbers),), "i32"), "dimension = 0 : i64")


def _broadcast(text: Text, element: str) -> Value:
    """Along dimensions in any order; what expands may be told."""
    random, result = text.random, text.shape(1)
    axes = random.sample(range(len(result)), random.randint(0, len(result)))
    x = text.argument([random.choice((result[axis], result[axis], 1)) for axis in axes], element)
    attributes = f"broadcast_dimensions = {list_of(axes)}"
    told = ""
    if random.random() < 0.4:
        grows = [i for i, axis in enumerate(axes) if x.shape[i] != result[axis]]
        stays = [i for i in range(len(axes)) if i not in grows]
        told = f", known_expanding_dimensions = {list_of(grows)}, known_nonexpanding_dimensions = {list_of(stays)}"
    return text.operation(
        "dynamic_broadcast_in_dim",
        [x, _vector(text, result, x)],
        (result, element),
        attributes + told,
        asked=("broadcast_in_dim", [x], attributes),
    )


def _reshape(text: Text, element: str) -> Value:
    shape = text.shape()
    x, result = text.argument(shape, element), [*shape, *text.random.choice(((), (1,)))]
    text.random.shuffle(result)
    result = text.random.choice((result, [int(np.prod(shape))]))
    return text.operation(
        "dynamic_reshape", [x, _vector(text, result, x)], (result, element), asked=("reshape", [x], "")
    )


def _iota(text: Text, element: str) -> Value:
    shape, element = text.shape(1), "f32" if element == "i1" else element
    attributes = f"iota_dimension = {text.random.randrange(len(shape))} : i64"
    return text.operation(
        "dynamic_iota", [_vector(text, shape)], (shape, element), attributes, asked=("iota", [], attributes)
    )


def _pad(text: Text, element: str) -> Value:
    random, shape = text.random, text.shape(1)
    low, high = ([random.randint(-min(2, size // 2), 2) for size in shape] for _ in range(2))
    between = [random.choice([0, 0, 1, 2]) for _ in shape]
    sizes = [n + a + b + max(n - 1, 0) * i for n, a, b, i in zip(shape, low, high, between, strict=True)]
    x, value = text.argument(shape, element), text.argument((), element)
    lists = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
    return _bounded(text, "dynamic_pad", [x, value], sizes, lists)


def _slice(text: Text, element: str) -> Value:
    random, shape = text.random, text.shape(1, 3, 6)
    starts = [random.randint(0, size) for size in shape]
    limits = [random.randint(start, size) for start, size in zip(starts, shape, strict=True)]
    strides = [random.randint(1, 3) for _ in shape]
    sizes = [-((a - b) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    lists = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    return _bounded(text, "real_dynamic_slice", [text.argument(shape, element)], sizes, lists)


def _bounded(text: Text, name: str, given: list[Value], sizes: list[int], lists: dict[str, Any]) -> Value:
    """An operation whose bounds are operands, or, of the static one, attributes of these names."""
    kind = text.random.choice(["i32", "i64"])  # one for all
    bounds = [text.random.choice((text.given, text.constant))(np.asarray(one), kind) for one in lists.values()]
    attributes = ", ".join(f"{attribute} = {list_of(numbers)}" for attribute, numbers in lists.items())
    return text.operation(
        name, [*given, *bounds], (sizes, given[0].element), asked=(name.split("dynamic_")[1], given, attributes)
    )


_WRITERS: list[Callable[[Text, str], Value]] = [_broadcast, _reshape, _iota, _pad, _slice]
