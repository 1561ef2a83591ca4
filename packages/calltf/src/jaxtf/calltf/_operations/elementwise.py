"""Operations element by element, of one operand or of several that TensorFlow broadcasts."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.arithmetic import computed
from jaxtf.calltf._operations.conditions import broadcast, require_same
from jaxtf.calltf._operations.lists import list_like
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value

# Of one operand, or of several that TensorFlow broadcasts.
_UNARY = """
Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0e BesselI1e Bitcast Cast Ceil CheckNumerics ComplexAbs Conj Cos Cosh
Digamma Elu Erf Erfc Erfinv Exp Expm1 Floor Identity Imag Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p
LogicalNot LogSoftmax Ndtri Neg OnesLike Real Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softmax
Softplus Softsign Sqrt Square Tan Tanh ZerosLike
"""
_BROADCAST = """
Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Complex Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual Igamma
Igammac IgammaGradA LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual
Polygamma Pow RealDiv RightShift SelectV2 SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
"""
_SAME_SHAPE = """
AddN EluGrad InvGrad LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad SoftplusGrad
SoftsignGrad SqrtGrad TanhGrad
"""


@rule(*_UNARY.split(), *_BROADCAST.split())
def elementwise(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the operands, broadcast; integers computed from sizes are known where they are exact."""
    if inputs[0].items is not None:  # zeros like a list
        return list_like(i, op, inputs)
    shape = broadcast(i, op, [value.shape for value in inputs])
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, shape, computed(i, op, inputs))]


@rule(*_SAME_SHAPE.split())
def same_shapes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """All operands have one shape."""
    if inputs[0].items is not None:
        return list_like(i, op, inputs)
    for value in inputs[1:]:
        require_same(i, op, inputs[0].shape, value.shape)
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, inputs[0].shape, computed(i, op, inputs))]


@rule("Select")
def select(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A condition for all, for each row or for each element."""
    condition, x, y = inputs
    require_same(i, op, x.shape, y.shape)
    if condition.shape:
        require_same(i, op, condition.shape, x.shape[: len(condition.shape)])
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, x.shape)]


@rule("EnsureShape")
def ensure_shape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The sizes are those that are ensured."""
    wanted = tf.TensorShape(op.get_attr("shape"))
    if wanted.rank is not None:
        pairs = zip(inputs[0].shape, wanted.as_list(), strict=True)
        known = [size if ensured is None else ensured for size, ensured in pairs]
        require_same(i, op, inputs[0].shape, known)
    return inputs
