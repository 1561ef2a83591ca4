"""Sizes that StableHLO requires, and that are known only at run time: a module called with others is refused.

Each case is a module with sizes left open, arguments that it is for, and arguments of which one size is another one:
operations of TensorFlow and of JAX would broadcast, cut, pad or group it. By graph mode and by lift.
"""

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, convert_stablehlo
from jaxtf.convert._graph.table import entries
from jaxtf.serialization import ArgumentMismatch, lift
from jaxtf.serialization.interop import has_requirements

_DTYPES = {"f32": np.float32, "i32": np.int32, "c64": np.complex64}

_ADDS = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    })"""
_TAKES_LAST = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
        stablehlo.return %c, %d : tensor<f32>, tensor<f32>
    })"""
_GREATER = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
    })"""
_BY_TWO = """({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
        %g = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
    })"""
_WINDOWS = "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>"


def _operation(text, operands, results):
    """An operation in its generic form, applied to the arguments in order."""
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    types = ", ".join(f"tensor<{t}>" for t in operands)
    made = ", ".join(f"tensor<{t}>" for t in results)
    given = ", ".join(f"%{i}: tensor<{t}>" for i, t in enumerate(operands))
    name, _, rest = text.partition(" ")
    left = "%r" if len(results) == 1 else f"%r:{len(results)}"
    returned = "%r" if len(results) == 1 else ", ".join(f"%r#{i}" for i in range(len(results)))
    return f"""func.func @main({given}) -> ({made}) {{
      {left} = "{name}"({names}) {rest} : ({types}) -> ({made})
      return {returned} : {made}
    }}"""


# Name, text, types of operands and results; shapes that fit, and some that do not.
_TWO = ["?x2xf32", "?x2xf32"]
_IMAGE = ["?x6x6x?xf32", "3x3x?x4xf32"]
CASES = [
    *(
        (f"stablehlo.{name}", f"stablehlo.{name}", _TWO, ["?x2xf32"], [(4, 2), (4, 2)], [(4, 2), (1, 2)])
        for name in ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
    ),
    ("stablehlo.complex", "stablehlo.complex", ["?xf32"] * 2, ["?xcomplex<f32>"], [(4,), (4,)], [(1,), (4,)]),
    (
        "stablehlo.sort",
        f"stablehlo.sort {_BY_TWO} {{dimension = 0 : i64}}",
        ["?xf32"] * 2,
        ["?xf32"] * 2,
        [(4,), (4,)],
        [(4,), (6,)],
    ),
    (
        "stablehlo.reduce",
        f"stablehlo.reduce {_TAKES_LAST} {{dimensions = array<i64: 0>}}",
        ["?x2xf32", "?x2xf32", "f32", "f32"],
        ["2xf32"] * 2,
        [(4, 2), (4, 2), (), ()],
        [(4, 2), (6, 2), (), ()],
    ),
    (
        "stablehlo.reduce_window",
        f"stablehlo.reduce_window {_TAKES_LAST} {{window_dimensions = array<i64: 2>}}",
        ["?xf32", "?xf32", "f32", "f32"],
        ["?xf32"] * 2,
        [(4,), (4,), (), ()],
        [(4,), (6,), (), ()],
    ),
    *(
        (
            f"stablehlo.dot_general {name}",
            "stablehlo.dot_general {dot_dimension_numbers = #stablehlo.dot<" + numbers + ">}",
            operands,
            results,
            right,
            wrong,
        )
        for name, numbers, operands, results, right, wrong in [
            (
                "batching",
                "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
                "rhs_contracting_dimensions = [1]",
                ["?x2x3xf32", "?x3x2xf32"],
                ["?x2x2xf32"],
                [(4, 2, 3), (4, 3, 2)],
                [(4, 2, 3), (1, 3, 2)],
            ),
            (
                "contracting",
                "lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1]",
                ["3x?x?xf32", "?x?x2xf32"],
                ["3x2xf32"],
                [(3, 2, 6), (2, 6, 2)],
                [(3, 2, 6), (3, 4, 2)],
            ),
            (
                "contracting known sizes",
                "lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1]",
                ["3x?x6xf32", "3x?x2xf32"],
                ["3x2xf32"],
                [(3, 3, 6), (3, 6, 2)],
                [(3, 2, 6), (3, 4, 2)],
            ),
        ]
    ),
    ("stablehlo.dot", "stablehlo.dot", ["2x?xf32", "?x2xf32"], ["2x2xf32"], [(2, 3), (3, 2)], [(2, 3), (1, 2)]),
    (
        "stablehlo.gather",
        "stablehlo.gather {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
        "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}",
        ["4x?xf32", "3x1xi32"],
        ["3x5xf32"],
        [(4, 6), (3, 1)],
        [(4, 3), (3, 1)],
    ),
    (
        "stablehlo.gather batching",
        "stablehlo.gather {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1], "
        "operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
        "slice_sizes = array<i64: 1, 1>}",
        ["?x4xf32", "?x3x1xi32"],
        ["?x3xf32"],
        [(4, 4), (4, 3, 1)],
        [(4, 4), (2, 3, 1)],
    ),
    (
        "stablehlo.gather components",
        "stablehlo.gather {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0, 1], "
        "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}",
        ["4x4xf32", "3x?xi32"],
        ["3xf32"],
        [(4, 4), (3, 2)],
        [(4, 4), (3, 3)],
    ),
    (
        "stablehlo.dynamic_gather",
        "stablehlo.dynamic_gather {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}",
        ["4x?xf32", "3x1xi32", "2xi32"],
        ["3x?xf32"],
        [(4, 2), (3, 1), [1, 2]],
        [(4, 2), (3, 1), [1, 3]],
    ),
    *(
        (
            f"stablehlo.scatter {name}",
            f"stablehlo.scatter {_ADDS} {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}",
            operands,
            results,
            right,
            wrong,
        )
        for name, numbers, operands, results, right, wrong in [
            (
                "batch of indices",
                "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2",
                ["9xf32", "?x?x1xi32", "?x?xf32"],
                ["9xf32"],
                [(9,), (2, 3, 1), (2, 3)],
                [(9,), (2, 3, 1), (3, 2)],
            ),
            (
                "windows",
                "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                "index_vector_dim = 1",
                ["4x?xf32", "2x1xi32", "2x?xf32"],
                ["4x?xf32"],
                [(4, 3), (2, 1), (2, 3)],
                [(4, 3), (2, 1), (2, 5)],
            ),
            (
                "components",
                "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
                ["4x4xf32", "3x?xi32", "3xf32"],
                ["4x4xf32"],
                [(4, 4), (3, 2), (3,)],
                [(4, 4), (3, 3), (3,)],
            ),
        ]
    ),
    (
        "stablehlo.convolution groups",
        "stablehlo.convolution {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
        _IMAGE,
        ["?x4x4x4xf32"],
        [(2, 6, 6, 4), (3, 3, 4, 4)],
        [(2, 6, 6, 4), (3, 3, 2, 4)],
    ),
    (
        "stablehlo.dynamic_conv",
        "stablehlo.dynamic_conv {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
        [*_IMAGE, "2x2xi32"],
        ["?x?x?x4xf32"],
        [(2, 6, 6, 4), (3, 3, 4, 4), [[0, 0], [0, 0]]],
        [(2, 6, 6, 4), (3, 3, 2, 4), [[0, 0], [0, 0]]],
    ),
    *(
        (
            f"stablehlo.pad {name}",
            f"stablehlo.pad {{edge_padding_low = array<i64: -2>, edge_padding_high = array<i64: {high}>, "
            f"interior_padding = array<i64: {between}>}}",
            ["?xf32", "f32"],
            ["?xf32"],
            [(right,), ()],
            [(wrong,), ()],
        )
        for name, high, between, right, wrong in [("", -1, 0, 3, 2), ("between", -2, 2, 2, 1), ("of none", 1, 2, 1, 0)]
    ),
    (
        "stablehlo.slice",
        "stablehlo.slice {start_indices = array<i64: 1>, limit_indices = array<i64: 4>, strides = array<i64: 1>}",
        ["?xf32"],
        ["3xf32"],
        [(5,)],
        [(3,)],
    ),
    (
        "stablehlo.dynamic_slice",
        "stablehlo.dynamic_slice {slice_sizes = array<i64: 4>}",
        ["?xf32", "i32"],
        ["4xf32"],
        [(5,), ()],
        [(3,), ()],
    ),
    (
        "stablehlo.dynamic_update_slice",
        "stablehlo.dynamic_update_slice",
        ["?xf32", "?xf32", "i32"],
        ["?xf32"],
        [(5,), (3,), ()],
        [(3,), (5,), ()],
    ),
    *(
        (
            f"stablehlo.real_dynamic_slice {name}",
            "stablehlo.real_dynamic_slice",
            ["?xf32", "1xi32", "1xi32", "1xi32"],
            ["?xf32"],
            [(5,), [1], [4], [2]],
            [(5,), *wrong],
        )
        for name, wrong in [("limit", ([1], [6], [2])), ("start", ([-1], [4], [2])), ("order", ([4], [1], [2]))]
    ),
    (
        "stablehlo.fft of real numbers",
        "stablehlo.fft {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}",
        ["2x?xf32"],
        ["2x5xcomplex<f32>"],
        [(2, 8)],
        [(2, 6)],
    ),
    (
        "stablehlo.fft to real numbers",
        "stablehlo.fft {fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 8>}",
        ["2x?xcomplex<f32>"],
        ["2x8xf32"],
        [(2, 5)],
        [(2, 4)],
    ),
    (
        "stablehlo.fft",
        "stablehlo.fft {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 8>}",
        ["2x?xcomplex<f32>"],
        ["2x?xcomplex<f32>"],
        [(2, 8)],
        [(2, 6)],
    ),
    (
        "stablehlo.triangular_solve",
        "stablehlo.triangular_solve {left_side = true, lower = true, unit_diagonal = true, "
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}",
        ["?x3x3xf32", "?x3x2xf32"],
        ["?x3x2xf32"],
        [(4, 3, 3), (4, 3, 2)],
        [(1, 3, 3), (4, 3, 2)],
    ),
    (
        "stablehlo.torch_index_select",
        "stablehlo.torch_index_select {dim = 1 : i64, batch_dims = 1 : i64}",
        ["?x3xf32", "?x2xi32"],
        ["?x2xf32"],
        [(4, 3), (4, 2)],
        [(4, 3), (1, 2)],
    ),
    (
        "stablehlo.select_and_scatter",
        f"stablehlo.select_and_scatter {_GREATER[:-1]}, {_ADDS[1:]} {{{_WINDOWS}}}",
        ["?x4xf32", "?x2xf32", "f32"],
        ["?x4xf32"],
        [(4, 4), (2, 2), ()],
        [(6, 4), (2, 2), ()],
    ),
    *(
        (
            f"stablehlo.batch_norm_{name}",
            f"stablehlo.batch_norm_{name} {{epsilon = 0.01 : f32, feature_index = 1 : i64}}",
            operands,
            results,
            [tuple(size if size != "?" else 3 for size in shape) for shape in shapes],
            [tuple(size if size != "?" else 1 if i == 1 else 3 for size in shape) for i, shape in enumerate(shapes)],
        )
        for name, operands, results, shapes in [
            ("inference", ["4x?xf32", *["?xf32"] * 4], ["4x?xf32"], [(4, "?"), *[("?",)] * 4]),
            ("training", ["4x?xf32", *["?xf32"] * 2], ["4x?xf32", "?xf32", "?xf32"], [(4, "?"), *[("?",)] * 2]),
            (
                "grad",
                ["4x?xf32", *["?xf32"] * 3, "4x?xf32"],
                ["4x?xf32", "?xf32", "?xf32"],
                [(4, "?"), *[("?",)] * 3, (4, "?")],
            ),
        ]
    ),
    (
        "stablehlo.dynamic_reshape",
        "stablehlo.dynamic_reshape",
        ["?xf32", "2xi32"],
        ["?x2xf32"],
        [(6,), [3, 2]],
        [(6,), [2, 2]],
    ),
    (
        "stablehlo.dynamic_reshape of a known size",
        "stablehlo.dynamic_reshape",
        ["?xf32", "2xi32"],
        ["?x2xf32"],
        [(6,), [3, 2]],
        [(6,), [2, 3]],
    ),
    ("stablehlo.reshape", "stablehlo.reshape", ["?x2xf32"], ["6xf32"], [(3, 2)], [(1, 2)]),
    (
        "stablehlo.dynamic_broadcast_in_dim of many",
        "stablehlo.dynamic_broadcast_in_dim {broadcast_dimensions = array<i64: 1>}",
        ["?xf32", "2xi32"],
        ["?x?xf32"],
        [(1,), [2, 3]],
        [(2,), [2, 3]],
    ),
    (
        "stablehlo.dynamic_broadcast_in_dim",
        "stablehlo.dynamic_broadcast_in_dim {broadcast_dimensions = array<i64: 1>}",
        ["?xf32", "2xi32"],
        ["3x?xf32"],
        [(2,), [3, 2]],
        [(2,), [4, 2]],
    ),
    (
        "stablehlo.dynamic_iota",
        "stablehlo.dynamic_iota {iota_dimension = 0 : i64}",
        ["2xi32"],
        ["?x2xf32"],
        [[3, 2]],
        [[3, 3]],
    ),
    (
        "stablehlo.set_dimension_size",
        "stablehlo.set_dimension_size {dimension = 0 : i64}",
        ["?xf32", "i32"],
        ["?xf32"],
        [(4,), 3],
        [(4,), 5],
    ),
    (
        "stablehlo.concatenate",
        "stablehlo.concatenate {dimension = 0 : i64}",
        ["2x?xf32"] * 2,
        ["4x?xf32"],
        [(2, 4)] * 2,
        [(2, 4), (2, 1)],
    ),
    ("chlo.next_after", "chlo.next_after", _TWO, ["?x2xf32"], [(4, 2), (4, 2)], [(4, 2), (1, 2)]),
]

# Of one array, or of arrays whose sizes need not agree; XLA's and jax2tf's own, which JAX alone writes; and those whose
# sizes TensorFlow compares itself: pads, broadcasts.
_OF_ANY_SIZES = """
    chlo.a chlo.b chlo.co chlo.digamma chlo.erf chlo.is_ chlo.lgamma chlo.s chlo.t custom_call. func.call jaxtf.
    stablehlo.abs stablehlo.bitcast_convert stablehlo.broadcast stablehlo.case stablehlo.cbrt stablehlo.ceil
    stablehlo.cholesky stablehlo.composite stablehlo.convert stablehlo.cosine stablehlo.count_leading_zeros
    stablehlo.exponential stablehlo.floor stablehlo.get_ stablehlo.if stablehlo.imag
    stablehlo.iota stablehlo.is_finite stablehlo.log stablehlo.negate stablehlo.not stablehlo.optimization_barrier
    stablehlo.popcnt stablehlo.real stablehlo.reduce_precision stablehlo.reshape stablehlo.reverse
    stablehlo.rng_bit_generator stablehlo.round_ stablehlo.rsqrt stablehlo.sign stablehlo.sine stablehlo.sqrt
    stablehlo.tan stablehlo.transpose stablehlo.tuple stablehlo.while sdy.
"""
# With the requirement of those elementwise operations that have a case.
_LIKE_ADD = """
    and clamp compare map mulhi or polygamma select shift_left shift_right_arithmetic shift_right_logical xor zeta
"""
# What JAX alone writes, and what takes amounts that are not arguments, with the rule of `stablehlo.pad`.
_WITHOUT_CASE = {"custom_call.ApproxTopK", "custom_call.stablehlo.dynamic_reduce_window", "stablehlo.dynamic_pad"}


def _array(given, type_):
    if isinstance(given, tuple):
        dtype = np.complex64 if "complex" in type_ else _DTYPES[type_.rpartition("x")[2]]
        return np.zeros(given, dtype)
    return np.asarray(given, np.int32)


def _run(case, given, backend):
    _, text, operands, results, *_ = case
    arrays = [_array(value, type_) for value, type_ in zip(given, operands, strict=True)]
    if backend == "lift":
        return jax.tree.leaves(lift(_operation(text, operands, results))(*arrays))
    function = convert_stablehlo(_operation(text, operands, results))
    if backend != "eager":
        function = tf.function(function, autograph=False, jit_compile=backend == "compiled")
        open_sizes = [tf.TensorSpec([None] * array.ndim, array.dtype) for array in arrays]
        if backend == "graph":
            function = function.get_concrete_function(*open_sizes)
    return tf.nest.flatten(function(*map(tf.constant, arrays)))


# With an operand that gives sizes: XLA compiles, and JAX traces, only with sizes that it knows.
_TAKE_SIZES = """
    stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv stablehlo.dynamic_gather stablehlo.dynamic_iota
    stablehlo.dynamic_reshape stablehlo.real_dynamic_slice stablehlo.set_dimension_size
"""


def _backends(name):
    return BACKENDS[:2] if name.startswith(tuple(_TAKE_SIZES.split())) else BACKENDS


BACKENDS = ("eager", "graph", "compiled", "lift")
RUNS = [pytest.param(case, backend, id=f"{case[0]}-{backend}") for case in CASES for backend in _backends(case[0])]


@pytest.mark.parametrize(("case", "backend"), RUNS)
def test_sizes_that_fit_are_taken_and_others_are_refused(case, backend):
    *_, right, wrong = case
    assert _run(case, right, backend)
    refusal = ArgumentMismatch if backend == "lift" else (tf.errors.InvalidArgumentError, ArgumentTypeError)
    with pytest.raises(refusal):
        _run(case, wrong, backend)


def test_each_operation_has_its_requirements():
    others = tuple(_OF_ANY_SIZES.split())
    names = {name for name, entry in entries().items() if not entry.reason}
    assert {name for name in names if not has_requirements(name) and not name.startswith(others)} == set()
    cases = {case[0].partition(" ")[0] for case in CASES}
    alike = {f"{dialect}.{name}" for dialect in ("stablehlo", "chlo") for name in _LIKE_ADD.split()}
    assert {name for name in names if has_requirements(name)} - cases - alike - _WITHOUT_CASE == set()


def test_a_graph_may_know_less_of_its_tensors_than_the_module():
    text = _operation("stablehlo.reverse {dimensions = array<i64: 0>}", ["3xf32"], ["3xf32"])
    function = tf.function(convert_stablehlo(text), [tf.TensorSpec([None], tf.float32)], autograph=False)
    np.testing.assert_array_equal(function(np.float32([1, 2, 3])), [3, 2, 1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(np.float32([1, 2]))
