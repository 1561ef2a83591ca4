"""Derivatives that TensorFlow takes for zero, or for others: those of a trace by some of its operations.

TensorFlow's gradient of an operation may leave out operands, as not implemented, or be declared not to exist.
`tf.GradientTape` gives None for an argument that enters nowhere else, and a sum without that term otherwise. Zeros,
which JAX has for an argument that is not used, would be wrong here. Of several diagonals, which the older operations
have aligned to the left, TensorFlow's gradient is that of the newer ones, which have some aligned to the right. Of
complex numbers it leaves out some conjugates.

Seen in TensorFlow 2.21, by its source and by differences of each operation's results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from jaxtf.calltf._tf import eager_elements, is_declared_not_differentiable, is_recomputed
from jaxtf.calltf._walk import BRANCHES, LOOPS, Library, Walk, branch_names, walked

__all__ = ["STOPS", "ZERO", "lost_derivatives", "lost_in_call", "lost_of_operation", "may_lose"]

STOPS = ("StopGradient", "PreventGradient")
"""Operations whose derivative is meant to be zero, or not to be asked for."""

# By the index of an operand: its name.
_LOST: Mapping[str, Mapping[int, str]] = {
    "Betainc": {0: "a", 1: "b"},
    "ExtractGlimpse": {0: "input"},
    "ImageProjectiveTransformV2": {1: "transforms"},
    "ImageProjectiveTransformV3": {1: "transforms", 3: "fill_value"},
    "LinSpace": {0: "start", 1: "stop"},
    "MatrixDiagPartV2": {2: "padding_value"},
    "MatrixDiagPartV3": {2: "padding_value"},
    "MatrixDiagV2": {4: "padding_value"},
    "MatrixDiagV3": {4: "padding_value"},
    "OneHot": {2: "on_value", 3: "off_value"},
    "PadV2": {2: "constant_values"},
    "Polygamma": {0: "a"},
    "RaggedRange": {0: "starts", 2: "deltas"},
    "RandomShuffle": {0: "value"},
    "Range": {0: "start", 2: "delta"},
    "ScaleAndTranslate": {2: "scale", 3: "translation"},
    "Zeta": {0: "x"},
}
# Wrong of complex numbers, by a conjugate that is missing, or by a sign that is taken for constant.
_WRONG_OF_COMPLEX = frozenset(
    (
        *("Cumprod", "EuclideanNorm", "MatrixDeterminant", "MatrixSquareRoot", "MulNoNan", "SegmentProd", "Sign"),
        *("SquaredDifference", "TridiagonalSolve", "UnsortedSegmentProd", "Xdivy", "Xlog1py", "Xlogy"),
    )
)
# Declared by TensorFlow not to be differentiable, and zero. Of all else that is so declared, the derivative is lost.
ZERO = frozenset(
    {"EditDistance", "OnesLike", "StatelessRandomBinomial", "StatelessRandomPoisson", "StopGradient", "ZerosLike"}
)
# TensorFlow's casts have gradients between these alone.
_CAST = ("bfloat16", "complex128", "complex64", "float16", "float32", "float64")
# By the index of a result, which has a gradient with respect to other operands alone: the operand.
_LOST_OF_RESULT: Mapping[str, Mapping[int, tuple[int, str]]] = {
    # The second result is the gradient of the first; that of it is taken with respect to the logits alone.
    "SoftmaxCrossEntropyWithLogits": {1: (1, "labels")},
    "FusedBatchNorm": {1: (0, "x"), 2: (0, "x")},
    "FusedBatchNormV2": {1: (0, "x"), 2: (0, "x")},
    "FusedBatchNormV3": {1: (0, "x"), 2: (0, "x")},
}
# The same of complex numbers: the sign of a determinant, which of real ones is constant.
_LOST_OF_COMPLEX_RESULT: Mapping[str, Mapping[int, tuple[int, str]]] = {"LogMatrixDeterminant": {0: (0, "input")}}
# The same for other than one diagonal, with the index of the operand that tells which.
_LOST_OF_DIAGONALS: Mapping[str, tuple[int, Mapping[int, str]]] = {
    "MatrixDiagPartV2": (1, {0: "input"}),
    "MatrixDiagV2": (1, {0: "diagonal"}),
    "MatrixSetDiagV2": (2, {1: "diagonal"}),
}
_MAY_HOLD = (tf.variant, tf.resource, tf.string)
_STATISTICS = {3: "mean", 4: "variance"}  # of a batch normalization that does not compute them
# Gradients of its own, by name: of a function of the user, of a SavedModel, of jaxtf.convert.
_OWN_GRADIENT = ("CustomGradient", "Jaxtf")


@dataclass(frozen=True)
class _Value:
    """What is known of a tensor.

    Attributes:
      depends: Whether it has a derivative with respect to the arguments.
      lost: The operations through which TensorFlow takes some of it for zero.
    """

    depends: bool = False
    lost: frozenset[str] = frozenset()

    def __or__(self, other: _Value) -> _Value:
        return _Value(self.depends or other.depends, self.lost | other.lost)


def lost_derivatives(concrete: Any, arguments: Sequence[int], results: Sequence[int], twice: bool = False) -> list[str]:
    """The operations by which derivatives are lost or are others, each with its operand; sorted.

    Args:
      concrete: A trace.
      arguments: The indices of those that it is differentiated with respect to.
      results: The indices of those that are differentiated; a trace may have fewer than a call in eager mode.
      twice: Whether their second derivatives are asked for: of those, what the first has not lost.
    """
    graph = concrete.graph
    values = [_Value(index in arguments) for index in range(len(graph.inputs))]
    found = _Follower(Walk(concrete), twice).results(graph, values)
    return sorted(_any_of([found[index] for index in results if index < len(found)]).lost)


def lost_in_call(library: Library, name: str, depends: Sequence[bool]) -> list[frozenset[str]]:
    """As `lost_derivatives`, of each result of a function of a library.

    Args:
      library: It and what it calls.
      name: Its.
      depends: Of each argument, whether it depends on what is differentiated with respect to.
    """
    values = [_Value(depends=each) for each in depends]
    return [value.lost for value in _Follower(library, twice=False).results(library.body(name), values)]


def lost_of_operation(op: Any, depends: Sequence[bool]) -> list[frozenset[str]]:
    """As `lost_derivatives`, of each result of one operation."""
    return [value.lost for value in _by_itself(op, [_Value(depends=each) for each in depends], _lost_operands)]


@functools.cache
def may_lose(type_: str) -> bool:
    """Whether operations of this type may lose a derivative, or have it wrong."""
    tables = (_LOST, _WRONG_OF_COMPLEX, _LOST_OF_RESULT, _LOST_OF_COMPLEX_RESULT, _LOST_OF_DIAGONALS)
    return (
        any(type_ in table for table in tables)
        or type_.startswith("FusedBatchNorm")
        or type_ in ("SparseConcat", "Cast")
        or (type_ not in ZERO and is_declared_not_differentiable(type_))
    )


class _Follower:
    """Follows derivatives through a trace."""

    def __init__(self, library: Library, twice: bool):
        self._walk = library
        self._lost_operands = _lost_twice if twice else _lost_operands

    def results(self, graph: Any, values: Sequence[_Value]) -> list[_Value]:
        """Of the results of a graph."""
        if not any(value.depends for value in values):
            return [_Value() for _ in graph.outputs]
        return walked(graph, values, self._operation)

    def _operation(self, op: Any, operands: list[_Value]) -> list[_Value]:
        if not any(value.depends for value in operands) or op.type in STOPS:
            return [_Value() for _ in op.outputs]
        own = _gradient_name(op)
        if own and is_recomputed(own):  # results, and then arguments, each of which comes out again
            return operands
        if own.startswith(_OWN_GRADIENT):
            return [_differentiable(x, _Value(depends=True)) for x in op.outputs]
        if (body := self._walk.called(op)) is not None:
            found = self.results(body, operands)
        elif op.type in BRANCHES:
            found = self._branches(op, operands[1:])
        elif op.type in LOOPS:
            found = self._loop(op, operands)
        else:
            found = _by_itself(op, operands, self._lost_operands)
        return [_differentiable(x, value) for x, value in zip(op.outputs, found, strict=True)]

    def _branches(self, op: Any, operands: list[_Value]) -> list[_Value]:
        columns = zip(*(self.results(self._walk.body(name), operands) for name in branch_names(op)), strict=True)
        return [_any_of(column) for column in columns]

    def _loop(self, op: Any, operands: list[_Value]) -> list[_Value]:
        body = self._walk.body(op.get_attr("body").name)
        while True:
            after = [one | other for one, other in zip(operands, self.results(body, operands), strict=True)]
            if after == operands:
                return after
            operands = after


def _by_itself(op: Any, operands: Sequence[_Value], lost_operands: Callable[[Any], Mapping[int, str]]) -> list[_Value]:
    """The results of an operation that calls none, for its operands."""
    whole = _any_of(operands)
    lost = [f"{op.type} ({name})" for i, name in lost_operands(op).items() if operands[i].depends]
    whole = _Value(whole.depends, whole.lost.union(lost))
    table = _LOST_OF_COMPLEX_RESULT if op.type in _LOST_OF_COMPLEX_RESULT and _is_complex(op) else _LOST_OF_RESULT
    of_results = {
        i: f"{op.type} ({name})" for i, (operand, name) in table.get(op.type, {}).items() if operands[operand].depends
    }
    return [whole | _Value(lost=frozenset({of_results[i]} if i in of_results else ())) for i in range(len(op.outputs))]


def _lost_operands(op: Any) -> Mapping[int, str]:
    if op.type.startswith("FusedBatchNorm") and "Grad" not in op.type and not op.get_attr("is_training"):
        return _STATISTICS
    if op.type == "SparseConcat":
        count = op.get_attr("N")
        return dict.fromkeys(range(count, 2 * count), "values")
    if op.type == "Cast":
        types = (op.inputs[0].dtype, op.outputs[0].dtype)
        is_lost = all(x.is_floating or x.is_complex for x in types) and any(x.name not in _CAST for x in types)
        return {0: "x"} if is_lost else {}
    if op.type in _WRONG_OF_COMPLEX and _is_complex(op):
        return _all_operands(op)
    if op.type not in _LOST and op.type not in ZERO and is_declared_not_differentiable(op.type):
        return _all_operands(op)
    lost = _LOST.get(op.type, {})
    if op.type in _LOST_OF_DIAGONALS:
        which, of_several = _LOST_OF_DIAGONALS[op.type]
        if not _is_one_diagonal(op.inputs[which]):
            return {**lost, **of_several}
    return lost


def _is_complex(op: Any) -> bool:
    return bool(op.inputs[0].dtype.is_complex)


def _lost_twice(op: Any) -> Mapping[int, str]:
    """Of tf.py_function TensorFlow has the first derivative, as a function of the cotangents alone."""
    return _all_operands(op) if op.type == "EagerPyFunc" else {}


def _all_operands(op: Any) -> Mapping[int, str]:
    names = [argument.name for argument in op.op_def.input_arg]
    return {i: names[min(i, len(names) - 1)] for i in range(len(op.inputs))}


def _is_one_diagonal(bounds: Any) -> bool:
    """Whether a number, or the first and the last of several, are known to be of one diagonal."""
    if bounds.shape.num_elements() == 1:
        return True
    if (numbers := eager_elements(bounds)) is not None:
        return bool(numbers[0] == numbers[-1])
    if bounds.op.type != "Const":
        return False
    first, last = tf.make_ndarray(bounds.op.get_attr("value"))  # noqa: TID251  of integers it does not warn
    return bool(first == last)


def _gradient_name(op: Any) -> str:
    attr = op.node_def.attr
    return attr["_gradient_op_type"].s.decode() if "_gradient_op_type" in attr else ""


def _any_of(values: Sequence[_Value]) -> _Value:
    whole = _Value()
    for value in values:
        whole |= value
    return whole


def _differentiable(tensor: Any, value: _Value) -> _Value:
    """The value, of a tensor of numbers that have derivatives, or of one that may hold such."""
    dtype = tensor.dtype
    return value if dtype.is_floating or dtype.is_complex or dtype in _MAY_HOLD else _Value()
