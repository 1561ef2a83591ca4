"""Operations whose attributes are operands: sizes of results, padding, places where a slice begins.

Source: StableHLO specification, each operation.
"""

import re

import numpy as np

from .case import case, f32, i32, of_two, scalar, type_of
from .contractions import CONVOLVED, DIMENSIONS_OF_A_CONVOLUTION
from .indexing import GATHERED, ROWS

MATRIX = i32([[1, 2, 3], [4, 5, 6]])


def of_open_sizes(operation, operands, expected, **options):
    """A case where the first dimension of operands and result has no size in the module."""
    types = [re.sub("^tensor<[0-9]+x", "tensor<?x", type_of(array)) for array in (*operands, expected)]
    differs = {"xla": "does not compile it: who gives XLA a module makes its sizes constants"}
    numbered = dict(enumerate(types[:-1]))
    return case(operation, operands, expected, open_types=numbered, results=types[-1:], differs=differs, **options)


CASES = [
    case("stablehlo.get_dimension_size", [MATRIX], scalar(i32(3)), attributes="dimension = 1 : i64"),
    case(
        "stablehlo.dynamic_broadcast_in_dim",
        [i32(1, 2), i32(2, 3)],
        i32([[1, 1, 1], [2, 2, 2]]),
        attributes="broadcast_dimensions = array<i64: 0>",
        constants=[1],
    ),
    case(
        "stablehlo.dynamic_iota",
        [i32(2, 3)],
        MATRIX - MATRIX + i32(0, 1, 2),
        attributes="iota_dimension = 1 : i64",
        constants=[0],
    ),
    case(
        "stablehlo.dynamic_pad",
        [i32(5, 6), scalar(i32(0)), i32(-1), i32(2), i32(2)],
        i32(0, 0, 6, 0, 0),
        constants=[2, 3, 4],
    ),
    case("stablehlo.dynamic_reshape", [MATRIX, i32(3, 2)], i32([[1, 2], [3, 4], [5, 6]]), constants=[1]),
    case(
        "stablehlo.real_dynamic_slice",
        [MATRIX, i32(1, 0), i32(2, 3), i32(1, 2)],
        i32([[4, 6]]),
        constants=[1, 2, 3],
    ),
    case(
        "stablehlo.set_dimension_size",
        [i32(1, 2, 3), scalar(i32(3))],
        i32(1, 2, 3),
        attributes="dimension = 0 : i64",
        constants=[1],
    ),
    case(
        "stablehlo.dynamic_gather",
        [ROWS, i32([2], [0]), i32(1, 2)],
        i32([[7, 8], [1, 2]]),
        attributes=GATHERED,
        constants=[2],
    ),
    case(
        "stablehlo.dynamic_conv",
        [*CONVOLVED, i32([[1, 0]])],
        f32([[[0, 1], [2, 3], [4, 6]]]),
        attributes=DIMENSIONS_OF_A_CONVOLUTION,
        constants=[2],
        differs={"xla": "does not compile it: who gives XLA a module makes its sizes constants"},
    ),
    of_open_sizes("stablehlo.get_dimension_size", [MATRIX], scalar(i32(2)), attributes="dimension = 0 : i64"),
    of_open_sizes("stablehlo.reverse", [MATRIX], MATRIX[:, ::-1], attributes="dimensions = array<i64: 1>"),
    of_open_sizes("stablehlo.concatenate", [MATRIX, MATRIX], np.tile(MATRIX, (2, 1)), attributes="dimension = 0 : i64"),
    of_open_sizes(
        "stablehlo.reduce",
        [MATRIX, scalar(i32(1))],
        i32(7, 16),
        attributes="dimensions = array<i64: 1>",
        regions=[of_two("stablehlo.add", "tensor<i32>")],
    ),
]
