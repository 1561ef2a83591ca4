"""Reductions, over windows too, with regions of any kind, of several arrays, and into wider types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .scalars import compared, computed
from .text import Module, Text, Value, dtype_of, list_of

__all__ = ["reduce", "reduce_window", "search", "select_and_scatter"]

_ELEMENTS = ["f32", "i32", "i8", "ui8", "i64", "f64"]
_WIDER = {"f32": "f64", "i8": "i32", "i32": "i64", "ui8": "ui32"}
_OF_INDEX = ["i32", "i64", "i8", "ui8", "i16"]
_KNOWN = ["add", "multiply", "maximum", "minimum"]


def _types(text: Text) -> tuple[str, str]:
    """The element type of the arrays and that of the result."""
    element = text.random.choice(_ELEMENTS)
    return element, _WIDER.get(element, element) if text.random.random() < 0.2 else element


def _reduced(text: Text, operands: list[Value], result: Any, operation: tuple[str, str, str]) -> Module:
    """The reduction of arrays and as many numbers; XLA, which takes no wider types, is asked it after conversions."""
    name, attributes, region = operation
    converted = [x if x.element == result[1] else text.asks("convert", [x], (x.shape, result[1])) for x in operands]
    count, asked = len(operands) // 2, (name, converted, attributes)
    found = text.operation(name, operands, *[result] * count, attributes, regions=[region], asked=asked)
    return text.module(*(found if count > 1 else [found]))


def _odd(text: Text, element: str, count: int) -> str:
    """A region of no known kind."""
    steps = [[], ["array"], ["if"]][text.random.choice([0, 0, 0, 0, 0, 1, 2])]

    def function(*taken: Value) -> list[Value]:
        pool = computed(text, taken, ["pair", "select", "unary", "constant", *steps])
        return [text.random.choice(pool) for _ in range(count)]

    return text.region([((), element)] * (2 * count), function)


def reduce(text: Text) -> Module:
    """Over the first dimension and others, of no single element: that is the result of XLA for any region."""
    random, (element, wide), count = text.random, _types(text), text.random.choice([1, 1, 2, 3])
    shape = (random.randint(2, 5), *text.shape(0, 2, 5))
    axes = [0, *sorted(random.sample(range(1, len(shape)), random.randint(0, len(shape) - 1)))]
    arrays = [text.argument(shape, element, "small") for _ in range(count)]
    starts = [text.scalar(element) for _ in range(count)]
    result = [size for axis, size in enumerate(shape) if axis not in axes], wide
    attributes = f"dimensions = {list_of(axes)}"
    return _reduced(text, [*arrays, *starts], result, ("reduce", attributes, _odd(text, wide, count)))


def _neutral(name: str, element: str) -> Any:
    if name in ("add", "multiply"):
        return int(name == "multiply")
    limits = ml_dtypes.finfo(dtype_of(element)) if element[0] == "f" else ml_dtypes.iinfo(dtype_of(element))
    return limits.min if name == "maximum" else limits.max


def reduce_window(text: Text) -> Module:
    """With strides, dilations and padding where the region has a neutral number; otherwise with strides alone."""
    random, (element, wide), count = text.random, _types(text), text.random.choice([1, 1, 2])
    shape = tuple(random.randint(1, 5) for _ in range(random.randint(1, 3)))
    is_known = random.random() < 0.5
    strides, between = ([random.randint(1, 2) for _ in shape] for _ in range(2))
    dilations = [random.choice([1, 1, 2]) if is_known and count == 1 else 1 for _ in shape]
    padding = [[random.randint(-1, 2) if is_known and count == 1 else 0 for _ in range(2)] for _ in shape]
    lengths = [(n - 1) * d + 1 + sum(p) for n, d, p in zip(shape, dilations, padding, strict=True)]
    windows = [max(1, min(random.randint(1, 3), (n - 1) // b + 1)) for n, b in zip(lengths, between, strict=True)]
    spans = [(w - 1) * b + 1 for w, b in zip(windows, between, strict=True)]
    sizes = [max(0, (n - w) // s + 1) for n, w, s in zip(lengths, spans, strides, strict=True)]
    name = random.choice(_KNOWN)
    arrays = [text.argument(shape, element, "small") for _ in range(count)]
    starts = [text.given(_neutral(name, element), element) if is_known else text.scalar(element) for _ in arrays]

    def pairs(*taken: Value) -> list[Value]:
        each = zip(taken[:count], taken[count:], strict=True)
        return [text.operation(name, pair, ((), wide)) for pair in each]

    region = text.region([((), wide)] * (2 * count), pairs) if is_known else _odd(text, wide, count)
    lists = {"window_dimensions": windows, "window_strides": strides, "base_dilations": dilations}
    attributes = _windows(lists | {"window_dilations": between}, padding)
    return _reduced(text, [*arrays, *starts], (sizes, wide), ("reduce_window", attributes, region))


def _windows(lists: dict[str, list[int]], padding: Sequence[Sequence[int]]) -> str:
    named = [f"{name} = {list_of(values)}" for name, values in lists.items()]
    return ", ".join([*named, f"padding = dense<{padding}> : tensor<{len(padding)}x2xi64>"])


def select_and_scatter(text: Text) -> Module:
    """With any order, of magnitudes too, and any way to join what falls on one element.

    Numbers differ in magnitude: of the same ones XLA selects the first along any dimension.
    """
    random, element = text.random, text.random.choice(["f32", "i32", "f64", "i8"])
    wide = _WIDER.get(element, element) if random.random() < 0.2 else element
    shape = tuple(random.randint(1, 5) for _ in range(random.randint(1, 3)))
    windows = [random.randint(1, min(3, size)) for size in shape]
    strides = [random.randint(1, 3) for _ in shape]
    padding = [[random.choice((0, 0, min(1, size - 1))) for _ in range(2)] for size in windows]
    sizes = [(n + sum(p) - w) // s + 1 for n, p, w, s in zip(shape, padding, windows, strides, strict=True)]
    count = int(np.prod(shape))
    numbers = np.reshape(random.sample(range(count), count), shape) * text.array(shape, element, (-1, 1, -1))
    operands = [text.given(numbers, element), text.argument(sizes, element, "small"), text.scalar(element)]
    direction, is_odd = random.choice(["LT", "GT", *["GE", "LE"] * 3]), random.random() < 0.2
    joined = random.choice(["add", *_KNOWN[:3]])

    def selects(x: Value, y: Value) -> list[Value]:
        taken = [text.operation("abs", [one], ((), element)) if is_odd else one for one in (x, y)]
        return [compared(text, *random.choice((taken, taken[::-1])), direction)]

    regions = [
        text.region([((), element)] * 2, selects),
        text.region([((), wide)] * 2, lambda x, y: [text.operation(joined, [x, y], ((), wide))]),
    ]
    attributes = _windows({"window_dimensions": windows, "window_strides": strides}, padding)
    converted = [x if element == wide else text.asks("convert", [x], (x.shape, wide)) for x in operands]
    others = [region.replace(f"tensor<{element}>", f"tensor<{wide}>") for region in regions]
    asked = ("select_and_scatter", converted, attributes, others)
    return text.module(
        text.operation("select_and_scatter", operands, (shape, wide), attributes, regions=regions, asked=asked)
    )


def search(text: Text) -> Module:
    """The first extreme element as JAX looks for it, by indices that may wrap, from any number; of two or more."""
    random, element, of_index = text.random, text.random.choice(["f32", "i32", "i1"]), text.random.choice(_OF_INDEX)
    rest, count = text.shape(0, 1), random.choice((random.randint(2, 5), 130, 260))
    axis = random.randint(0, len(rest))
    sizes = (*rest[:axis], count, *rest[axis:])
    x = text.argument(sizes, element, "small")
    indices = text.operation("iota", [], (sizes, of_index), f"iota_dimension = {axis} : i64")
    direction = random.choice(("GT", "LT"))
    worst = text.given(random.choice((0, 1)), element) if element == "i1" else text.scalar(element)
    if element != "i1" and random.random() < 0.7:
        infinity = "0xFF800000" if direction == "GT" else "0x7F800000"
        limit = _neutral("maximum" if direction == "GT" else "minimum", element)
        worst = text.constant(infinity if element == "f32" else limit, element)
    first = text.constant(random.choice((0, 0, 0, 3)), of_index)

    def better(value: Value, index: Value, other: Value, other_index: Value) -> list[Value]:
        truth = ((), "i1")
        strictly = compared(text, value, other, direction)
        if element == "f32":
            strictly = text.operation("or", [strictly, compared(text, value, value, "NE")], truth)
        tie = [compared(text, value, other, "EQ"), compared(text, index, other_index, "LT")]
        chosen = text.operation("or", [strictly, text.operation("and", tie, truth)], truth)
        return [
            text.operation("select", [strictly, value, other], ((), element)),
            text.operation("select", [chosen, index, other_index], ((), of_index)),
        ]

    region = text.region([((), element), ((), of_index)] * 2, better)
    found = text.operation(
        "reduce",
        [x, indices, worst, first],
        (rest, element),
        (rest, of_index),
        f"dimensions = {list_of([axis])}",
        regions=[region],
    )
    return text.module(*found)
