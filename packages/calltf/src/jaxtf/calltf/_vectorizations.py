"""What `tf.vectorized_map` may be used for: the operations whose vectorizations were compared with a loop.

TensorFlow has a vectorization for each type of operation, and some are wrong in silence. Those of `COMPARED` are right:
`test_vectorizations.py` draws their attributes and which of their operands have the batch axis. For a few others there
is something else here that does the same and has a right vectorization. What is neither is computed in a loop.

Only operations that depend on the batch matter: any other is computed once, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._walk import Walk, emitted, walked

__all__ = ["COMPARED", "ELEMENTWISE", "REPLACED", "Vectorizable"]

_OF_ONE = (
    *("Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "BesselI0e", "BesselI1e", "Bucketize", "Cast"),
    *("Ceil", "ComplexAbs", "Conj", "Cos", "Cosh", "Digamma", "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "Floor"),
    *("Identity", "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p"),
    *("LogicalNot", "Ndtri", "Neg", "Real", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu"),
    *("Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Square", "StopGradient", "Tan", "Tanh"),
)
_OF_SEVERAL = (
    *("Add", "AddN", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "ClipByValue"),
    *("Complex", "Cross", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "IdentityN"),
    *("Igamma", "IgammaGradA", "Igammac", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum"),
    *("Minimum", "Mod", "Mul", "MulNoNan", "NotEqual", "Polygamma", "Pow", "RealDiv", "RightShift", "Select"),
    *("SelectV2", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy", "Zeta"),
)
_GRADIENTS = (
    *("EluGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad"),
    *("SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
)
ELEMENTWISE = frozenset(_OF_ONE + _OF_SEVERAL + _GRADIENTS)
_ALONG = (
    *("All", "Any", "ArgMax", "ArgMin", "Cumprod", "Cumsum", "LogSoftmax", "Max", "Mean", "Min", "Prod", "Softmax"),
    *("Sum", "TopKV2", "LowerBound", "UpperBound"),
)
_MOVES = (
    *(
        "BatchToSpaceND",
        "BroadcastTo",
        "ConcatV2",
        "ConjugateTranspose",
        "DepthToSpace",
        "Diag",
        "DiagPart",
        "EnsureShape",
        "ExpandDims",
    ),
    *("Fill", "Gather", "GatherNd", "GatherV2", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV2"),
    *("MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3", "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"),
    *("OneHot", "Pack", "Pad", "Reshape", "ReverseV2", "Slice", "SpaceToBatchND", "SpaceToDepth", "Split", "SplitV"),
    *("Squeeze", "StridedSlice", "StridedSliceGrad", "TensorScatterUpdate", "Tile", "Transpose", "Unpack"),
)
# Results without the batch axis.
_OF_SHAPES = ("OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike")
_PRODUCTS = (
    *("BatchMatMul", "BatchMatMulV2", "BiasAddGrad", "Cholesky", "Einsum", "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D"),
    *("IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "MatMul", "MatrixInverse", "MatrixSolve"),
    *("MatrixTriangularSolve", "RFFT", "RFFT2D", "RFFT3D", "SelfAdjointEigV2"),
)
_WINDOWS = (
    *("AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"),
    *("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput"),
    *("FusedBatchNormGradV3", "FusedBatchNormV3", "MaxPool", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad"),
    *("MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradV2", "MaxPoolV2"),
    *("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
)
_IMAGES = ("AdjustContrastv2", "AdjustHue", "AdjustSaturation")

COMPARED = ELEMENTWISE | frozenset(_ALONG + _MOVES + _OF_SHAPES + _PRODUCTS + _WINDOWS + _IMAGES)


class Vectorizable:
    """A trace, seen as what is done for each element of a batch.

    Args:
      concrete: The trace, without control flow.
      batched: For each argument, whether it has the batch axis.

    Attributes:
      unknown: The types of operations on what depends on the batch that are not known to be vectorized rightly.
    """

    def __init__(self, concrete: Any, batched: Sequence[bool]):
        self._concrete = concrete
        self._walk = Walk(concrete)
        self._dependent = set[str]()
        captures = [False] * len(concrete.captured_inputs)
        walked(self._walk.graph, [*batched, *captures], self._follows)
        self.unknown = self._dependent - COMPARED - REPLACED.keys()

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results for one element, written so that they are vectorized rightly."""
        if self._dependent.isdisjoint(REPLACED):
            return list(self._concrete(*tensors))
        return self._walk.written(tensors, self._replaced)

    def _follows(self, op: Any, operands: list[bool]) -> list[bool]:
        """For each result, whether it depends on the batch."""
        if (body := self._walk.called(op)) is not None:
            return walked(body, operands, self._follows)
        if not any(operands):
            return [False] * len(op.outputs)
        self._dependent.add(_kind(op))
        return [op.type not in _OF_SHAPES] * len(op.outputs)

    def _replaced(self, op: Any, operands: list[Any]) -> list[Any]:
        if (body := self._walk.called(op)) is not None:
            return walked(body, operands, self._replaced)
        return [REPLACED[op.type](op, *operands)] if op.type in REPLACED else emitted(op, operands)


def _kind(op: Any) -> str:
    """The type of an operation, and the attribute that TensorFlow's vectorization of it forgets."""
    return "Cast (Truncate)" if op.type == "Cast" and op.get_attr("Truncate") else str(op.type)


def _padded(op: Any, operand: Any, edges: Any, value: Any) -> Any:
    """TensorFlow vectorizes it with zeros for the value."""
    is_inside = tf.pad(tf.ones(tf.shape(operand), tf.bool), edges)
    return tf.where(is_inside, tf.pad(operand, edges), value)


def _rolled(op: Any, operand: Any, shift: Any, axis: Any) -> Any:
    """TensorFlow takes axes that are counted from the end for others, the batch among them."""
    return tf.roll(operand, shift, tf.math.floormod(axis, tf.cast(tf.rank(operand), axis.dtype)))


def _biased(op: Any, operand: Any, bias: Any) -> Any:
    """TensorFlow takes an operand with channels in front for one of two spatial dimensions."""
    if op.get_attr("data_format") == b"NCHW":
        bias = tf.reshape(bias, [-1, *(1 for _ in operand.shape[2:])])
    return operand + bias


def _in_segments(op: Any, operand: Any, segments: Any, count: Any) -> Any:
    """TensorFlow's compiler leaves out what is in no segment; the vectorization moves it to another element."""
    last = tf.cast(count, segments.dtype)
    is_one = tf.logical_and(segments >= 0, segments < last)
    return emitted(op, [operand, tf.where(is_one, segments, last), count + 1])[0][:count]


# What is written in place of an operation: from it and its operands to its result.
REPLACED: Mapping[str, Callable[..., Any]] = {
    "BiasAdd": _biased,
    "PadV2": _padded,
    "Roll": _rolled,
    **dict.fromkeys(
        ("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"), _in_segments
    ),
}
