"""Operations of CHLO that broadcast their operands, as NumPy does."""

import math

from .case import case, f32, i1, i8, i32, u8

COLUMN, ROW = f32([[6], [7]]), f32(1, 2, 4)
SQUARE = f32([[0, 2], [20, 30]])
CUBE, MAXIMUM = f32([[[0, 3], [2, 1]], [[9, 0], [0, 9]]]), f32([[[1, 3], [2, 2]], [[9, 4], [3, 9]]])
INTEGERS, ROW_OF_INTEGERS = i32([[12], [-7]]), i32(1, 2, 4)


def broadcast(name, left, right, expected, rtol=0.0, *, dimensions="", differs=None):
    attributes = f"broadcast_dimensions = array<i64: {dimensions}>" if dimensions else ""
    return case(f"chlo.broadcast_{name}", [left, right], expected, rtol=rtol, attributes=attributes, differs=differs)


# Where XLA is given a module, only the last dimensions are taken.
ELSEWHERE = {"xla": "takes an operand of lower rank at the last dimensions only"}


CASES = [
    broadcast("add", COLUMN, ROW, f32([[7, 8, 10], [8, 9, 11]])),
    broadcast("add", ROW, COLUMN, f32([[7, 8, 10], [8, 9, 11]]), dimensions="1"),
    broadcast("subtract", f32(1, 2), SQUARE, f32([[1, -1], [-18, -28]]), dimensions="0", differs=ELSEWHERE),
    broadcast("subtract", SQUARE, f32(1, 2), f32([[-1, 1], [18, 28]]), dimensions="0", differs=ELSEWHERE),
    broadcast("power", f32(2, 3), SQUARE / 10, f32([[1, 2**0.2], [9, 27]]), 1e-6, dimensions="0", differs=ELSEWHERE),
    broadcast("maximum", f32([[1, 2], [3, 4]]), CUBE, MAXIMUM, dimensions="0, 2", differs=ELSEWHERE),
    broadcast("subtract", COLUMN, ROW, f32([[5, 4, 2], [6, 5, 3]])),
    broadcast("multiply", COLUMN, ROW, f32([[6, 12, 24], [7, 14, 28]])),
    broadcast("divide", COLUMN, ROW, f32([[6, 3, 1.5], [7, 3.5, 1.75]])),
    broadcast("maximum", COLUMN, f32(1, 6.5, 9), f32([[6, 6.5, 9], [7, 7, 9]])),
    broadcast("minimum", COLUMN, f32(1, 6.5, 9), f32([[1, 6, 6], [1, 6.5, 7]])),
    broadcast("power", COLUMN, f32(0, 1, 2), f32([[1, 6, 36], [1, 7, 49]]), rtol=1e-6),
    broadcast("remainder", INTEGERS, i32(5, 7, -5), i32([[2, 5, 2], [-2, 0, -2]])),
    broadcast("atan2", f32([[1]]), f32(0, 1), f32([[math.pi / 2, math.pi / 4]]), rtol=1e-6),
    broadcast("and", INTEGERS, ROW_OF_INTEGERS, i32([[0, 0, 4], [1, 0, 0]])),
    broadcast("or", INTEGERS, ROW_OF_INTEGERS, i32([[13, 14, 12], [-7, -5, -3]])),
    broadcast("xor", INTEGERS, ROW_OF_INTEGERS, i32([[13, 14, 8], [-8, -5, -3]])),
    broadcast("shift_left", i8([[1], [-1]]), i8(1, 7, 8), i8([[2, -128, 0], [-2, -128, 0]])),
    broadcast("shift_right_arithmetic", i8([[64], [-64]]), i8(1, 7, 8), i8([[32, 0, 0], [-32, -1, -1]])),
    broadcast("shift_right_logical", u8([[128], [3]]), u8(1, 7, 8), u8([[64, 1, 0], [1, 0, 0]])),
    broadcast("complex", f32([[1], [2]]), f32(3, 4), (f32([[1], [2]]) + 1j * f32(3, 4)).astype("complex64")),
    broadcast("next_after", f32([[1]]), f32(2, 0), f32([[1 + 2**-23, 1 - 2**-24]])),
    broadcast("polygamma", f32([[0], [1]]), f32(1), f32([[-0.5772156649], [math.pi**2 / 6]]), rtol=1e-5),
    broadcast("zeta", f32([[2], [4]]), f32(1), f32([[math.pi**2 / 6], [math.pi**4 / 90]]), rtol=1e-5),
    case(
        "chlo.broadcast_compare",
        [COLUMN, f32(1, 6.5, 7)],
        i1([[False, True, True], [False, False, False]]),
        attributes="comparison_direction = #chlo<comparison_direction LT>",
    ),
    case(
        "chlo.broadcast_compare",
        [f32(1, 25), SQUARE],
        i1([[False, True], [False, True]]),
        attributes="broadcast_dimensions = array<i64: 0>, comparison_direction = #chlo<comparison_direction LT>",
        differs=ELSEWHERE,
    ),
    case(
        "chlo.broadcast_select",
        [i1([[True], [False]]), f32(1, 2, 3), COLUMN],
        f32([[1, 2, 3], [7, 7, 7]]),
    ),
]
