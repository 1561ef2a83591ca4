"""Operations on each element."""

import tensorflow as tf

from .operation import FLOATS, NUMBERS, Operation, of

INTEGERS = ("int32", "uint8")

# Dtypes, and the numbers that they are of.
OF_ONE = {
    **dict.fromkeys(("Abs", "Identity", "Neg", "Relu", "Relu6", "Sign", "Square", "StopGradient"), (NUMBERS, -3, 3)),
    **dict.fromkeys(("OnesLike", "ZerosLike"), (NUMBERS, -3, 3)),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Erfinv"), (FLOATS[1:3], -0.9, 0.9)),
    **dict.fromkeys(("Acosh", "BesselI0e", "BesselI1e", "Digamma", "Inv", "Lgamma"), (FLOATS[1:3], 1, 3)),
    **dict.fromkeys(("Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt"), (FLOATS[1:3], 1, 3)),
    **dict.fromkeys(("Asinh", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Erfc", "Exp"), (FLOATS[1:3], -3, 3)),
    **dict.fromkeys(("Expm1", "Floor", "IsFinite", "IsInf", "IsNan", "Rint", "Round", "Selu"), (FLOATS[1:3], -3, 3)),
    **dict.fromkeys(("Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh"), (FLOATS[1:3], -3, 3)),
    **dict.fromkeys(("Angle", "ComplexAbs", "Conj", "Imag", "Real"), (("complex64",), -3, 3)),
    "Invert": (INTEGERS, -3, 3),
    "LogicalNot": (("bool",), 0, 1),
    "Ndtri": (FLOATS[1:3], 0, 1),
}
OF_TWO = {
    **dict.fromkeys(("Add", "AddV2", "Maximum", "Minimum", "Mul", "Sub", "SquaredDifference"), (NUMBERS, -3, 3)),
    **dict.fromkeys(("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"), (NUMBERS, -3, 3)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), (INTEGERS, -3, 3)),
    **dict.fromkeys(("LogicalAnd", "LogicalOr"), (("bool",), 0, 1)),
    **dict.fromkeys(("Atan2", "DivNoNan", "MulNoNan", "Xdivy"), (("float32",), -3, 3)),
    **dict.fromkeys(("Div", "FloorDiv", "FloorMod"), (NUMBERS, 1, 3)),
    **dict.fromkeys(("LeftShift", "RightShift"), (INTEGERS, 1, 3)),
    **dict.fromkeys(("Mod", "TruncateMod"), (("int32", "float32"), 1, 3)),
    **dict.fromkeys(("Igamma", "IgammaGradA", "Igammac", "Polygamma", "Xlog1py", "Xlogy"), (("float32",), 1, 3)),
    "Pow": (("float32", "float64", "int32"), 1, 3),
    "RealDiv": (FLOATS, 1, 3),
    "TruncateDiv": (("int32", "int64"), 1, 3),
    "Zeta": (("float32",), 2, 3),
}
GRADIENTS = (
    *("EluGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad"),
    *("SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
)


@of(*OF_ONE)
def of_one(name, d):
    dtypes, low, high = OF_ONE[name]
    return Operation(name, [d.operand(d.shape(), d.one_of(*dtypes), low, high)])


@of(*OF_TWO)
def of_two(name, d):
    dtypes, low, high = OF_TWO[name]
    dtype = d.one_of(*dtypes)
    return Operation(name, [d.operand(shape, dtype, low, high) for shape in d.broadcast(2)])


@of(*GRADIENTS)
def gradients(name, d):
    shape = d.shape()
    attributes = {"alpha": d.one_of(0.2, 0.5)} if name == "LeakyReluGrad" else {}
    return Operation(name, [d.operand(shape, low=1), d.operand(shape, low=1)], attributes)


@of("Equal", "NotEqual")
def of_any_shapes(name, d):
    operands = [d.operand(d.shape(), "int32"), d.operand(d.shape(), "int32")]
    return Operation(name, operands, {"incompatible_shape_error": False})


@of("Complex")
def complex_numbers(name, d):
    return Operation(name, [d.operand(shape) for shape in d.broadcast(2)])


@of("ApproximateEqual")
def approximately(name, d):
    shape = d.shape()
    return Operation(name, [d.operand(shape), d.operand(shape)], {"tolerance": d.one_of(1e-5, 1.0)})


@of("LeakyRelu")
def leaky(name, d):
    return Operation(name, [d.operand(d.shape())], {"alpha": d.one_of(0.2, 0.5)})


@of("AddN")
def sums(name, d):
    shape = d.shape()
    return Operation(name, [[d.operand(shape) for _ in range(d.size())]])


@of("IdentityN", "ShapeN")
def several(name, d):
    return Operation(name, [[d.operand(d.shape()), d.operand(d.shape())]])


@of("Cast")
def cast(name, d):
    to = d.one_of("float32", "int32", "bool", "int8", "float16", "bfloat16", "complex64")
    operand = d.operand(d.shape(), d.one_of("float32", "int32", "bool", "float64"))
    return Operation(name, [operand], {"DstT": tf.as_dtype(to), "Truncate": to == "bfloat16" and d.chance()})


@of("Bucketize")
def buckets(name, d):
    return Operation(name, [d.operand(d.shape(), d.one_of("float32", "int32"))], {"boundaries": [-1.0, 0.0, 2.0]})


@of("ClipByValue")
def clip(name, d):
    shape = d.shape()
    least, most = d.one_of((), shape), d.one_of((), shape)
    return Operation(name, [d.operand(shape), d.operand(least, low=-2, high=0), d.operand(most, low=1)])


@of("Select")
def select(name, d):
    shape = d.shape()
    chosen = d.one_of(shape, shape, (), shape[:1])
    return Operation(name, [d.operand(chosen, "bool"), d.operand(shape), d.operand(shape)])


@of("SelectV2")
def where(name, d):
    chosen, one, other = d.broadcast(3)
    return Operation(name, [d.operand(chosen, "bool"), d.operand(one), d.operand(other)])


@of("Cross")
def cross(name, d):
    shape = (*d.shape(0, 2), 3)
    return Operation(name, [d.operand(shape), d.operand(shape)])
