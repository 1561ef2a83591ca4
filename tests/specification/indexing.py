"""Gathers, scatters, slices at places that are operands, and sorts.

Source: StableHLO specification, each operation: a gather clamps start indices, a scatter drops what is out of bounds.
"""

import math

from .case import case, f32, i32, of_two, scalar, u8, u32

NAN = math.nan
ROWS = i32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
SIZES = "slice_sizes = array<i64: {}>"
GATHERED = (
    "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>"
)
BATCHED = (
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
    "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>"
)

GATHERS = [
    case(
        "stablehlo.gather",
        [ROWS, i32([[2], [0], [7], [-1]])],
        i32([[7, 8], [1, 2], [7, 8], [1, 2]]),
        attributes=f"{GATHERED}, {SIZES.format('1, 2')}",
    ),
    case(
        "stablehlo.gather",
        [ROWS, u8([[[0], [2]], [[1], [1]], [[255], [0]]])],
        i32([[1, 3], [5, 5], [9, 7]]),
        attributes=f"{BATCHED}, {SIZES.format('1, 1')}",
    ),
    case(
        "stablehlo.dynamic_slice",
        [ROWS, scalar(i32(-1)), scalar(i32(2))],
        i32([[2, 3], [5, 6]]),
        attributes=SIZES.format("2, 2"),
    ),
    case(
        "stablehlo.dynamic_update_slice",
        [ROWS, i32([[10, 11]]), scalar(u32(9)), scalar(u32(1))],
        i32([[1, 2, 3], [4, 5, 6], [7, 10, 11]]),
    ),
    case(
        "stablehlo.torch_index_select",
        [ROWS, i32(2, 0)],
        i32([[3, 1], [6, 4], [9, 7]]),
        attributes="dim = 1 : i64, batch_dims = 0 : i64",
    ),
]


def scattered(region, expected, indices, updates, operand=ROWS):
    numbers = (
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1>"
    )
    attributes = f"scatter_dimension_numbers = {numbers}"
    return case("stablehlo.scatter", [operand, indices, updates], expected, attributes=attributes, regions=[region])


LAST = '^bb0(%x: tensor<i32>, %y: tensor<i32>): "stablehlo.return"(%y) : (tensor<i32>) -> ()'
TWO_ROWS = i32([[10, 20, 30], [40, 50, 60], [70, 80, 90]])
SCATTERS = [
    scattered(
        of_two("stablehlo.add", "tensor<i32>"),
        i32([[1, 2, 3], [54, 75, 96], [7, 8, 9]]),
        i32([[1], [1], [3]]),
        TWO_ROWS,
    ),
    scattered(
        of_two("stablehlo.subtract", "tensor<i32>"),
        i32([[-69, -78, -87], [-46, -65, -84], [7, 8, 9]]),
        i32([[1], [1], [0]]),
        TWO_ROWS,
    ),
    scattered(LAST, i32([[1, 2, 3], [4, 5, 6], [10, 20, 30]]), i32([[2], [-1], [5]]), TWO_ROWS),
    scattered(
        of_two("stablehlo.maximum", "tensor<i32>"),
        i32([[10, 20, 30], [4, 50, 6], [7, 8, 9]]),
        i32([[0], [1], [8]]),
        i32([[10, 20, 30], [-4, 50, 6], [99, 99, 99]]),
    ),
]


def sorted_(direction, operands, *expected, axis=0, stable="true", key=0):
    elements = [f"tensor<{'f32' if operand.dtype == 'float32' else 'i32'}>" for operand in operands]
    taken = ", ".join(f"%{2 * n}: {element}, %{2 * n + 1}: {element}" for n, element in enumerate(elements))
    kind = "FLOAT" if operands[key].dtype == "float32" else "SIGNED"
    region = (
        f"^bb0({taken}):\n%c = stablehlo.compare {direction}, %{2 * key}, %{2 * key + 1}, {kind} : "
        f'({elements[key]}, {elements[key]}) -> tensor<i1>\n"stablehlo.return"(%c) : (tensor<i1>) -> ()'
    )
    attributes = f"dimension = {axis} : i64, is_stable = {stable}"
    return case("stablehlo.sort", operands, *expected, attributes=attributes, regions=[region])


SORTS = [
    sorted_("LT", [i32([[3, 1, 2], [9, 9, 7]])], i32([[1, 2, 3], [7, 9, 9]]), axis=1),
    sorted_("GT", [f32(1, 3, 2, 3), i32(0, 1, 2, 3)], f32(3, 3, 2, 1), i32(1, 3, 2, 0)),
    sorted_("LE", [i32(5, 4, 3), f32(2, 0.5, 1)], i32(4, 3, 5), f32(0.5, 1, 2), key=1, stable="false"),
]

CASES = [*GATHERS, *SCATTERS, *SORTS]
