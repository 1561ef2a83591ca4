"""Reductions, also of windows, and normalization over a batch.

Source: StableHLO specification, each operation.
"""

import math

import numpy as np

from .arithmetic import NO_NAN
from .case import bf16, case, f32, i1, i32, of_two, scalar, type_of

MATRIX = i32([[1, 2, 3], [4, 5, 6]])


def reduced(operation, operand, start, expected, axes, **options):
    attributes = f"dimensions = array<i64: {', '.join(map(str, axes))}>"
    region = of_two(operation, type_of(start))
    return case("stablehlo.reduce", [operand, start], expected, attributes=attributes, regions=[region], **options)


# The largest number and its position, the first of equal ones.
WHERE = """^bb0(%x: tensor<i32>, %i: tensor<i32>, %y: tensor<i32>, %j: tensor<i32>):
  %p = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %e = stablehlo.compare EQ, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %f = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %g = stablehlo.and %e, %f : tensor<i1>
  %h = stablehlo.or %p, %g : tensor<i1>
  %v = stablehlo.select %p, %x, %y : tensor<i1>, tensor<i32>
  %w = stablehlo.select %h, %i, %j : tensor<i1>, tensor<i32>
  "stablehlo.return"(%v, %w) : (tensor<i32>, tensor<i32>) -> ()"""

REDUCED = [
    reduced("stablehlo.add", MATRIX, scalar(i32(10)), i32(16, 25), [1]),
    reduced("stablehlo.multiply", MATRIX, scalar(i32(1)), scalar(i32(720)), [0, 1]),
    reduced(
        "stablehlo.maximum", f32([[1, math.nan], [2, 3]]), scalar(f32(-math.inf)), f32(2, math.nan), [0], differs=NO_NAN
    ),
    reduced("stablehlo.minimum", f32(np.zeros((0, 2))), scalar(f32(5)), f32(5, 5), [0]),
    reduced("stablehlo.xor", i1([[True, True], [True, False]]), scalar(i1(False)), i1(False, True), [1]),
    reduced("stablehlo.and", i32([[12, 10], [7, 3]]), scalar(i32(-1)), i32(8, 3), [1]),
    case(
        "stablehlo.reduce",
        [i32([[3, 9, 9], [-1, -5, -2]]), i32([[0, 1, 2], [0, 1, 2]]), scalar(i32(-(2**31))), scalar(i32(0))],
        i32(9, -1),
        i32(1, 0),
        attributes="dimensions = array<i64: 1>",
        regions=[WHERE],
    ),
]


def windowed(operation, operand, start, expected, more=""):
    region = of_two(operation, type_of(start))
    return case("stablehlo.reduce_window", [operand, start], expected, attributes=more, regions=[region])


ONE_BY_TWO = "window_dimensions = array<i64: 1, 2>"
WINDOWED = [
    windowed("stablehlo.add", MATRIX, scalar(i32(0)), i32([[3, 5], [9, 11]]), ONE_BY_TWO),
    windowed(
        "stablehlo.add",
        MATRIX,
        scalar(i32(100)),
        i32([[103], [109]]),
        f"{ONE_BY_TWO}, window_strides = array<i64: 1, 2>",
    ),
    windowed(
        "stablehlo.maximum",
        f32([[1, 5, 2, 4]]),
        scalar(f32(-math.inf)),
        f32([[1, 5, 4]]),
        f"{ONE_BY_TWO}, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>",
    ),
    windowed(
        "stablehlo.add", MATRIX, scalar(i32(0)), i32([[4], [10]]), f"{ONE_BY_TWO}, window_dilations = array<i64: 1, 2>"
    ),
    windowed(
        "stablehlo.minimum",
        MATRIX,
        scalar(i32(9)),
        i32([[1, 2, 2, 3], [4, 5, 5, 6]]),
        f"{ONE_BY_TWO}, base_dilations = array<i64: 1, 2>",
    ),
    windowed(
        "stablehlo.multiply",
        i32(2, 3, 4),
        scalar(i32(1)),
        i32(2, 6, 24),
        "window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>",
    ),
    windowed("stablehlo.add", bf16(1, 2, 3), scalar(bf16(0)), bf16(3, 5), "window_dimensions = array<i64: 2>"),
]

SELECTED = """^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %c = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  "stablehlo.return"(%c) : (tensor<i1>) -> ()"""
MAPPED = """^bb0(%x: tensor<i32>, %y: tensor<i32>):
  %c = stablehlo.multiply %x, %y : tensor<i32>
  %d = stablehlo.subtract %c, %x : tensor<i32>
  "stablehlo.return"(%d) : (tensor<i32>) -> ()"""

# Two features: mean 2 and 5, variance 1 and 4 of (1, 3) and (3, 7).
BATCH, SCALE, OFFSET = f32([[1, 3], [3, 7]]), f32(2, 4), f32(10, 20)
NORMALIZED = f32([[8, 16], [12, 24]])
WITHOUT_EPSILON = "epsilon = 0.0 : f32, feature_index = 1 : i64"

INPUT, COTANGENT = f32([[0], [2], [4]]), f32([[1], [0], [5]])


def derivatives():
    """Of the input, the scale 3 and the offset of a batch of one feature, with mean 2 and variance 8 / 3."""
    centred, cotangent, variance = INPUT.astype(np.float64) - 2, COTANGENT.astype(np.float64), 8 / 3
    of_scale = (cotangent * centred).sum() / math.sqrt(variance)
    along = cotangent - cotangent.mean() - centred * (cotangent * centred).mean() / variance
    return f32(3 / math.sqrt(variance) * along), f32(of_scale), f32(6)


OTHERS = [
    case(
        "stablehlo.map",
        [i32(1, 2, 3), i32(4, 5, 6)],
        i32(3, 8, 15),
        attributes="dimensions = array<i64: 0>",
        regions=[MAPPED],
    ),
    case(
        "stablehlo.select_and_scatter",
        [f32(1, 5, 5, 2), f32(10, 20), scalar(f32(0.5))],
        f32(0.5, 10.5, 20.5, 0.5),
        attributes="window_dimensions = array<i64: 2>, window_strides = array<i64: 2>",
        regions=[SELECTED, of_two("stablehlo.add")],
    ),
    case(
        "stablehlo.select_and_scatter",
        [f32(1, 5, 2), f32(10, 20), scalar(f32(0))],
        f32(0, 30, 0),
        attributes="window_dimensions = array<i64: 2>",
        regions=[SELECTED, of_two("stablehlo.add")],
    ),
    case(
        "stablehlo.batch_norm_inference",
        [BATCH, SCALE, OFFSET, f32(2, 5), f32(1, 4)],
        NORMALIZED,
        attributes=WITHOUT_EPSILON,
        rtol=1e-6,
    ),
    case(
        "stablehlo.batch_norm_training",
        [BATCH, SCALE, OFFSET],
        NORMALIZED,
        f32(2, 5),
        f32(1, 4),
        attributes=WITHOUT_EPSILON,
        rtol=1e-6,
    ),
    case(
        "stablehlo.batch_norm_grad",
        [INPUT, f32(3), f32(2), f32(8 / 3), COTANGENT],
        *derivatives(),
        attributes=WITHOUT_EPSILON,
        rtol=1e-5,
    ),
]

CASES = [*REDUCED, *WINDOWED, *OTHERS]
