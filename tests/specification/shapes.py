"""Operations that move numbers and compute none.

Source: StableHLO specification, each operation.
"""

import numpy as np

from .case import case, f32, i1, i8, i32, module, scalar, type_of

TWO_BY_THREE = i32([[1, 2, 3], [4, 5, 6]])


def padded(low, high, interior, expected, operand=TWO_BY_THREE):
    sizes = (("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", interior))
    attributes = ", ".join(f"{name} = array<i64: {', '.join(map(str, values))}>" for name, values in sizes)
    return case("stablehlo.pad", [operand, scalar(i32(0))], expected, attributes=attributes)


TUPLE = f"tuple<{type_of(TWO_BY_THREE)}, {type_of(i8(7))}>"
OF_A_TUPLE = f"""%0 = stablehlo.tuple %a0, %a1 : {TUPLE}
  %1 = stablehlo.get_tuple_element %0[1] : ({TUPLE}) -> tensor<1xi8>
  %2 = stablehlo.get_tuple_element %0[0] : ({TUPLE}) -> tensor<2x3xi32>
  return %1, %2 : tensor<1xi8>, tensor<2x3xi32>"""

CASES = [
    case("stablehlo.constant", [], i8([[1, -2]]), attributes="value = dense<[[1, -2]]> : tensor<1x2xi8>"),
    case("stablehlo.constant", [], f32(2.5, 2.5), attributes="value = dense<2.5> : tensor<2xf32>"),
    case("stablehlo.constant", [], i1(True, False), attributes="value = dense<[true, false]> : tensor<2xi1>"),
    module("stablehlo.return", "return %a1, %a0 : tensor<1xf32>, tensor<2xi8>", [i8(1, 2), f32(3)], f32(3), i8(1, 2)),
    case("stablehlo.broadcast", [i32(1, 2)], i32([[1, 2], [1, 2]]), attributes="broadcast_sizes = array<i64: 2>"),
    case(
        "stablehlo.broadcast_in_dim",
        [i32([[1], [2], [3]])],
        i32([[[1, 2, 3], [1, 2, 3]]]),
        attributes="broadcast_dimensions = array<i64: 2, 1>",
    ),
    case(
        "stablehlo.broadcast_in_dim",
        [scalar(i32(4))],
        i32([[4, 4]]),
        attributes="broadcast_dimensions = array<i64>",
    ),
    case(
        "stablehlo.concatenate",
        [TWO_BY_THREE, i32([[7], [8]]), i32(np.zeros((2, 0)))],
        i32([[1, 2, 3, 7], [4, 5, 6, 8]]),
        attributes="dimension = 1 : i64",
    ),
    case("stablehlo.iota", [], i32([[0, 0, 0], [1, 1, 1]]), attributes="iota_dimension = 0 : i64"),
    case("stablehlo.iota", [], f32([[0, 1, 2], [0, 1, 2]]), attributes="iota_dimension = 1 : i64"),
    padded([0, 1], [1, 0], [0, 0], i32([[0, 1, 2, 3], [0, 4, 5, 6], [0, 0, 0, 0]])),
    padded([0, -1], [0, 1], [1, 2], i32([[0, 0, 2, 0, 0, 3, 0], [0] * 7, [0, 0, 5, 0, 0, 6, 0]])),
    padded([-1, -2], [0, -1], [0, 0], i32(np.zeros((1, 0)))),
    padded([1], [2], [1], i32(0, 0, 0), operand=i32(np.zeros(0))),
    case("stablehlo.reshape", [TWO_BY_THREE], i32([[1, 2], [3, 4], [5, 6]])),
    case("stablehlo.reshape", [f32([[5]])], scalar(f32(5))),
    case("stablehlo.reverse", [TWO_BY_THREE], i32([[3, 2, 1], [6, 5, 4]]), attributes="dimensions = array<i64: 1>"),
    case(
        "stablehlo.slice",
        [TWO_BY_THREE],
        i32([[4, 6]]),
        attributes="start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 2>",
    ),
    case(
        "stablehlo.transpose",
        [i32([[[1, 2], [3, 4], [5, 6]]])],
        i32([[[1], [3], [5]], [[2], [4], [6]]]),
        attributes="permutation = array<i64: 2, 1, 0>",
    ),
    module("stablehlo.tuple", OF_A_TUPLE, [TWO_BY_THREE, i8(7)], i8(7), TWO_BY_THREE),
    module("stablehlo.get_tuple_element", OF_A_TUPLE, [TWO_BY_THREE, i8(7)], i8(7), TWO_BY_THREE),
    case("stablehlo.optimization_barrier", [i8(1), f32(2, 3)], i8(1), f32(2, 3)),
]
