"""Products of matrices, convolutions, factors of matrices and Fourier transforms.

Source: StableHLO specification, each operation.
"""

import numpy as np

from .case import c64, case, f32, i8, i32

LEFT, RIGHT = i32([[1, 2], [3, 4]]), i32([[5, 6], [7, 8]])
BATCHES = i32([[[1, 2], [3, 4]], [[0, 1], [1, 0]]])


def dot_general(left, right, expected, batching=((), ()), contracting=((), ())):
    names = ("lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions")
    names += ("rhs_contracting_dimensions",)
    numbers = [f"{name} = {list(axes)}" for name, axes in zip(names, [*batching, *contracting], strict=True) if axes]
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(numbers)}>"
    return case("stablehlo.dot_general", [left, right], expected, attributes=attributes)


DOTS = [
    case("stablehlo.dot", [LEFT, RIGHT], i32([[19, 22], [43, 50]])),
    case("stablehlo.dot", [f32([[1, 2], [3, 4]]), f32(5, 6)], f32(17, 39)),
    case("stablehlo.dot", [f32(1, 2), f32(5, 6)], f32(17).reshape(())),
    dot_general(LEFT, RIGHT, i32([[26, 30], [38, 44]]), contracting=((0,), (0,))),
    dot_general(
        BATCHES,
        BATCHES,
        i32([[[7, 10], [15, 22]], [[1, 0], [0, 1]]]),
        batching=((0,), (0,)),
        contracting=((2,), (1,)),
    ),
    dot_general(i32(1, 2), i32(3, 4, 5), i32([[3, 4, 5], [6, 8, 10]])),
    dot_general(i8([[100, 100]]), i8([[100], [27]]), i32([[12700]]), contracting=((1,), (0,))),
    dot_general(c64([[1j, 2]]), c64([[1j], [3]]), c64([[5]]), contracting=((1,), (0,))),
    dot_general(f32(np.zeros((2, 0))), f32(np.zeros((0, 1))), f32([[0], [0]]), contracting=((1,), (0,))),
]

# One row of two features, a kernel of two places: y[s] = x[s] . k[0] + x[s + 1] . k[1].
DIMENSIONS_OF_A_CONVOLUTION = (
    "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64"
)
CONVOLVED = f32([[[1], [2], [4]]]), f32([[[2, 1]], [[0, 1]]])


def convolution(operand, kernel, expected, more="", *, numbers="[b, 0, f]x[0, i, o]->[b, 0, f]", groups=1, batches=1):
    attributes = f"dimension_numbers = #stablehlo.conv<{numbers}>, batch_group_count = {batches} : i64"
    attributes += f", feature_group_count = {groups} : i64{', ' if more else ''}{more}"
    return case("stablehlo.convolution", [operand, kernel], expected, attributes=attributes)


CONVOLUTIONS = [
    convolution(*CONVOLVED, f32([[[2, 3], [4, 6]]])),
    convolution(
        *CONVOLVED,
        f32([[[0, 1], [4, 6]]]),
        "padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_strides = array<i64: 2>",
    ),
    convolution(*CONVOLVED, f32([[[2, 1], [0, 2], [4, 2], [0, 4]]]), "lhs_dilation = array<i64: 2>"),
    convolution(*CONVOLVED, f32([[[2, 5]]]), "rhs_dilation = array<i64: 2>"),
    convolution(f32([[[1], [2], [4]]]), f32([[[1]], [[10]]]), f32([[[12], [24]]]), "window_reversal = array<i1: true>"),
    convolution(f32([[[1, 10]], [[2, 20]]]), f32([[[3, 5]]]), f32([[[3, 50]], [[6, 100]]]), groups=2),
    convolution(f32([[[1]], [[2]]]), f32([[[3, 5]]]), f32([[[3, 10]]]), batches=2),
    convolution(i8([[[100, 100]]]), i8([[[100], [100]]]), i32([[[20000]]])),
    convolution(
        f32([[[[1, 2, 3], [4, 5, 6]]]]),
        f32([[[[1, 0], [0, 10]]]]),
        f32([[[[51, 62]]]]),
        numbers="[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
    ),
]

FACTORS = [
    case("stablehlo.cholesky", [f32([[4, 99], [2, 5]])], f32([[2, 0], [1, 2]]), attributes="lower = true", rtol=1e-6),
    case("stablehlo.cholesky", [f32([[4, 2], [99, 5]])], f32([[2, 1], [0, 2]]), attributes="lower = false", rtol=1e-6),
    case(
        "stablehlo.triangular_solve",
        [f32([[2, 99], [1, 4]]), f32([[2], [9]])],
        f32([[1], [2]]),
        attributes="left_side = true, lower = true, unit_diagonal = false, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>",
        rtol=1e-6,
    ),
    case(
        "stablehlo.triangular_solve",
        [f32([[99, 3], [77, 99]]), f32([[2, 9]])],
        f32([[-25, 9]]),
        attributes="left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose "
        "TRANSPOSE>",
        rtol=1e-6,
    ),
]


def fft(kind, length, operand, expected):
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>"
    return case("stablehlo.fft", [operand], expected, attributes=attributes, rtol=1e-6)


TRANSFORMS = [
    fft("FFT", 4, c64(1, 0, 0, 1j), c64(1 + 1j, 0, 1 - 1j, 2)),
    fft("IFFT", 4, c64(1 + 1j, 0, 1 - 1j, 2), c64(1, 0, 0, 1j)),
    fft("RFFT", 4, f32(1, 2, 0, 1), c64(4, 1 - 1j, -2)),
    fft("IRFFT", 4, c64(4, 1 - 1j, -2), f32(1, 2, 0, 1)),
    fft("FFT", "2, 2", c64([[1, 2], [3, 4]]), c64([[10, -2], [-4, 0]])),
]

CASES = [*DOTS, *CONVOLUTIONS, *FACTORS, *TRANSFORMS]
