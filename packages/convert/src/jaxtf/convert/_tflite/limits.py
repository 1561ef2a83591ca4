"""What TFLite has no builtin operation for, found in a graph before its converter runs.

`refused(graph, inputs, results)` gives the operations of a GraphDef that the converter is known to refuse, each with
the dtypes that it would have to take. Only those that depend on an input and that a result depends on: the converter
computes what is constant, variables included, and leaves out what is not used. `REFUSED` was found by asking the
converter of TensorFlow 2.21; what it does not name (other dtypes, ranks, sizes) the converter refuses itself. `Erfc` is
not named: it is part of GELU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

__all__ = ["REFUSED", "refused"]

_FLOATS = (
    "Abs Acos Acosh AddV2 ArgMax ArgMin Asin Asinh Atan Atanh BatchMatMulV2 BesselI1e BroadcastTo Ceil ConcatV2 Cos "
    "Cosh Cumprod Cumsum Digamma Equal Erfinv Exp Expm1 Floor FloorMod Greater GreaterEqual IsFinite IsInf IsNan "
    "Less LessEqual Log Log1p LogSoftmax MatMul MatrixTriangularSolve Max Maximum Min Minimum Mul Neg NotEqual PadV2 "
    "Pow Prod RealDiv Relu ReverseV2 Round Rsqrt SelectV2 Sigmoid Sin Sinh Slice Softmax Sqrt Square StridedSlice Sub "
    "Sum Tan Tanh TensorScatterMax TensorScatterMin TensorScatterUpdate TopKV2 Transpose"
)
_BITS = "BitwiseAnd BitwiseOr Invert LeftShift PopulationCount"
# Of 16 and 64 bits; the converter knows 8 and 32 better.
_UNSIGNED = (
    f"{_BITS} AddV2 ArgMax ArgMin BroadcastTo ConcatV2 Cumprod Cumsum Equal GatherV2 Greater GreaterEqual Less "
    "LessEqual Max Maximum Min Minimum Mul NotEqual PadV2 Prod Relu ReverseV2 SelectV2 Slice Square "
    "StridedSlice Sub Sum TensorScatterMax TensorScatterMin TensorScatterUpdate TopKV2 Transpose"
)

REFUSED: Mapping[tf.DType, frozenset[str]] = {
    dtype: frozenset(names.split())
    for dtype, names in {
        tf.float32: (
            "Acos Acosh Asin Asinh Atan Atanh BesselI1e Cholesky Complex Cosh Cumprod Digamma Erfinv "
            "MatrixTriangularSolve Polygamma Qr SelfAdjointEigV2 Sinh Svd Tan TensorScatterMax TensorScatterMin Zeta"
        ),
        tf.float64: f"{_FLOATS} Cholesky Complex Lgamma Polygamma Qr SelfAdjointEigV2 Svd Zeta",
        tf.float16: f"{_FLOATS} Cholesky Qr SelfAdjointEigV2 Svd",
        tf.bfloat16: _FLOATS,
        tf.complex64: (
            "AddV2 BatchMatMulV2 Cholesky ConcatV2 Conj Cos Cosh Cumprod Cumsum Equal Exp Expm1 FFT IFFT Log Log1p "
            "MatMul MatrixTriangularSolve Neg NotEqual PadV2 Pow Prod Qr RealDiv ReverseV2 Rsqrt SelectV2 "
            "SelfAdjointEigV2 Sigmoid Sign Sin Sinh Slice Sqrt StridedSlice Sub Sum Svd Tan Tanh TensorScatterUpdate "
            "Transpose"
        ),
        tf.int32: f"{_BITS} BatchMatMulV2 Cumprod MatMul TensorScatterMax TensorScatterMin",
        tf.int64: f"{_BITS} Abs ArgMax ArgMin BatchMatMulV2 BitwiseXor Cumprod MatMul Pow RightShift Sign TruncateDiv",
        tf.int16: (
            f"{_BITS} ArgMax ArgMin BatchMatMulV2 Cumprod Cumsum Greater LessEqual Max Maximum Min Minimum Neg "
            "NotEqual PadV2 Pow Prod Relu Sign Slice Sub Sum TensorScatterMax TensorScatterMin TensorScatterUpdate "
            "Transpose"
        ),
        tf.int8: f"{_BITS} Abs AddV2 Cumsum Equal Greater Less Max Maximum Min Minimum Mul Neg NotEqual Pow Sub Sum",
        tf.uint8: f"{_BITS} AddV2 Cumsum FloorMod Greater Less Max Maximum Min Minimum Mul NotEqual SelectV2 Sub Sum",
        tf.uint32: (
            f"{_BITS} ArgMax ArgMin BatchMatMulV2 Cumsum Equal FloorMod GatherV2 Greater GreaterEqual Less LessEqual "
            "MatMul Max Maximum Min Minimum NotEqual PadV2 Prod ReverseV2 Sub Sum TensorScatterUpdate TopKV2 "
            "Transpose TruncateDiv"
        ),
        tf.uint16: _UNSIGNED,
        tf.uint64: f"{_UNSIGNED} BitwiseXor RightShift",
    }.items()
}
"""The types of operations that the converter refuses, by the dtype of their operands."""

# Where the dtype of the operands is in a node.
_DTYPE_ATTRIBUTES = ("T", "Tparams", "Tcomplex")

_CALLS = {"PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",)}
_LOOPS = {"While": ("cond", "body"), "StatelessWhile": ("cond", "body")}
_BRANCHES = {"If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch")}


def refused(graph: Any, inputs: Iterable[str], results: Iterable[str]) -> list[tuple[str, tf.DType, str]]:
    """The type, dtype and name of each operation that TFLite has no builtin operation for.

    Args:
      graph: A GraphDef.
      inputs: The names of the placeholders that stand for inputs; others stand for constants and variables.
      results: The names of the results, such as `Identity:0`.
    """
    return list(_Walk(graph).of_graph(graph.node, frozenset(inputs), list(results)))


class _Walk:
    """A walk through a graph and the functions that it calls.

    Args:
      graph: A GraphDef.
    """

    def __init__(self, graph: Any) -> None:
        self._functions = {function.signature.name: function for function in graph.library.function}

    def of_graph(
        self, nodes: Sequence[Any], inputs: frozenset[str], results: Sequence[str]
    ) -> Iterator[tuple[str, tf.DType, str]]:
        """What is refused among nodes, of which those of `inputs` are known only when the model runs."""
        by_name = {node.name: node for node in nodes}
        variable: dict[str, bool] = dict.fromkeys(inputs, True)
        for node in _in_order(by_name, results):
            if node.name in variable:
                continue
            given = [variable.get(_node_of(name), False) for name in _data(node)]
            variable[node.name] = any(given) and node.op not in ("Shape", "Placeholder")
            if not variable[node.name]:
                continue
            dtype = next((tf.as_dtype(node.attr[key].type) for key in _DTYPE_ATTRIBUTES if node.attr[key].type), None)
            if dtype is not None and node.op in REFUSED.get(dtype, ()):
                yield node.op, dtype, node.name
            for attribute in {**_CALLS, **_LOOPS, **_BRANCHES}.get(node.op, ()):
                flags = given[1:] if node.op in _BRANCHES else given
                yield from self._of_function(self._functions[node.attr[attribute].func.name], flags)

    def _of_function(self, function: Any, given: Sequence[bool]) -> Iterator[tuple[str, tf.DType, str]]:
        """What is refused in a function, of whose arguments some are known only when the model runs."""
        arguments = [argument.name for argument in function.signature.input_arg]
        inputs = frozenset(name for name, is_variable in zip(arguments, given, strict=True) if is_variable)
        yield from self.of_graph(function.node_def, inputs, list(function.ret.values()))


def _data(node: Any) -> list[str]:
    """What a node takes, but for what it only waits for."""
    return [name for name in node.input if not name.startswith("^")]


def _node_of(name: str) -> str:
    return name.partition(":")[0]


def _in_order(by_name: Mapping[str, Any], results: Sequence[str]) -> Iterator[Any]:
    """The nodes that results depend on, each after those that it takes."""
    done: set[str] = set()
    waiting = [(_node_of(name), False) for name in reversed(results)]
    while waiting:
        name, is_ready = waiting.pop()
        node = by_name.get(name)
        if node is None or (name in done and not is_ready):
            continue
        if is_ready:
            yield node
            continue
        done.add(name)
        waiting.append((name, True))
        waiting.extend((_node_of(taken), False) for taken in reversed(_data(node)))
