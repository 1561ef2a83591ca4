"""Convolutions and matrix products with all their dimension numbers, of any element type, also into a wider one."""

from __future__ import annotations

import numpy as np

from .text import COMPLEX, FLOATS, INTEGERS, Module, Text, list_of

__all__ = ["convolution", "dot_general"]

_WIDER = {"i8": "i32", "ui8": "i32", "bf16": "f32", "f16": "f32", "f32": "f64"}
_HALF = ("f16", "bf16")


def convolution(text: Text) -> Module:
    """Of up to three spatial dimensions; the padding may take away, and be an operand."""
    random = text.random
    rank, element = random.randint(0, 3), random.choice([*FLOATS, "i32", "i8", "complex<f32>", "i1"])
    is_dynamic = rank > 0 and element in ("f32", "f64") and random.random() < 0.5
    feature_groups, batch_groups = random.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)])
    features = random.randint(1, 2)
    made = random.randint(1, 2) * feature_groups * batch_groups
    batch = random.randint(1, 2)
    none = [] if element == "complex<f32>" else [0]  # of which XLA has no convolution of complex numbers
    sizes = [random.choice([*none, *range(1, 6), *range(1, 6)]) for _ in range(rank)]
    kernel = [random.randint(1, 3) for _ in range(rank)]
    strides, dilations, gaps = ([random.choice([1, 1, 2]) for _ in range(rank)] for _ in range(3))
    padding, result = [], []
    for size, window, stride, dilation, gap in zip(sizes, kernel, strides, dilations, gaps, strict=True):
        low, high = random.randint(-1, 2), random.randint(-1, 2)
        left = max((size - 1) * dilation, -1) - (window - 1) * gap + low + high
        high -= min(left, 0)  # at least one window
        padding.append([low, high])
        result.append(max(left, 0) // stride + 1)
    orders = [random.sample([*letters, *range(rank)], rank + 2) for letters in ("bf", "io", "bf")]
    named = [
        {"b": batch * batch_groups, "f": features * feature_groups, **dict(enumerate(sizes))},
        {"i": features, "o": made, **dict(enumerate(kernel))},
        {"b": batch, "f": made, **dict(enumerate(result))},
    ]
    of_x, of_kernel, of_result = ([by[one] for one in order] for order, by in zip(orders, named, strict=True))
    x, weights = text.argument(of_x, element, "small"), text.argument(of_kernel, element, "small")
    written = ["[" + ", ".join(map(str, order)) + "]" for order in orders]
    flips = ", ".join(random.choice(["true", "false", "false"]) for _ in range(rank))
    attributes = (
        f"dimension_numbers = #stablehlo.conv<{written[0]}x{written[1]}->{written[2]}>,"
        f" feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64,"
        f" window_strides = {list_of(strides)}, lhs_dilation = {list_of(dilations)}, rhs_dilation = {list_of(gaps)},"
        f" window_reversal = array<i1{': ' if rank else ''}{flips}>"
    )
    padded = f"{attributes}, padding = dense<{padding}> : tensor<{rank}x2xi64>" if rank else attributes
    wide = random.choice((element, _WIDER.get(element, element))) if element == "i8" else element
    if is_dynamic:
        bounds = random.choice((text.given, text.constant))(np.array(padding), random.choice(("i32", "i64")))
        found = text.operation(
            "dynamic_conv",
            [x, weights, bounds],
            (of_result, wide),
            attributes,
            asked=("convolution", [x, weights], padded),
        )
    else:
        found = text.operation("convolution", [x, weights], (of_result, wide), padded)
    return text.module(found, max_error_in_eps=2 if wide in _HALF else 0)


def dot_general(text: Text) -> Module:
    """Dimensions of a batch, of a sum, and of each operand, in any order, seldom of size 0; also with a bias."""
    random, element = text.random, text.random.choice([*FLOATS, *INTEGERS, "complex<f32>", COMPLEX[1], "i1"])
    batch, summed, left, right = (text.shape(0, 2, 3) for _ in range(4))
    of_both = [("b", i) for i in range(len(batch))] + [("s", i) for i in range(len(summed))]
    sizes = {
        (name, i): size
        for name, shape in (("b", batch), ("s", summed), ("l", left), ("r", right))
        for i, size in enumerate(shape)
    }
    orders = []
    for name, shape in (("l", left), ("r", right)):
        axes = of_both + [(name, i) for i in range(len(shape))]
        orders.append(random.sample(axes, len(axes)))
    free = [[sizes[axis] for axis in order if axis[0] in "lr"] for order in orders]
    lists = []
    for kind, shape in (("batching", batch), ("contracting", summed)):
        for side, order in zip(("lhs", "rhs"), orders, strict=True):
            places = [order.index((kind[0].replace("c", "s"), i)) for i in range(len(shape))]
            lists.append(f"{side}_{kind}_dimensions = {places}")
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(lists)}>"
    if random.random() < 0.3:
        attributes += ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]"
    wide = random.choice((element, _WIDER.get(element, element)))
    kind = random.choice(("small", "special")) if element in INTEGERS else "small"
    operands = [text.argument([sizes[axis] for axis in order], element, kind) for order in orders]
    shape = (*batch, *free[0], *free[1])
    found = text.operation("dot_general", operands, (shape, wide), attributes)
    if shape and random.random() < 0.4:
        bias = text.argument(shape[-1:], wide, "small")
        placed = text.operation(
            "broadcast_in_dim", [bias], (shape, wide), f"broadcast_dimensions = {list_of([len(shape) - 1])}"
        )
        found = text.operation("add", [found, placed], (shape, wide))
    return text.module(found, max_error_in_eps=2 if wide in _HALF else 0)
