"""The table of operations: the results of each for operands of symbolic sizes.

`RULES` has a function by the type of an operation. It gives the shapes of the results, exactly, for all sizes that
the constraints allow, or refuses; it writes the operation with the operands that must be constant as numbers at the
sample; and by being in the table it says that TensorFlow compiles the operation to a program that is right for all
sizes, if its numbers that are sizes are replaced by the sizes: no kernel here takes another way beyond some size, but
for operands that the rule has made explicit (the bounds of a slice).

Where the kernel is not of that kind for all operands, the rule says for which it is: a convolution with symbolic batch
alone, a cumulative sum along a constant axis.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter, Rule
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._modules import NotFollowed, result_shapes
from jaxtf.calltf._symbolic_values import (
    Known,
    ListOf,
    Shape,
    Value,
    array_of,
    decided,
    larger,
    product,
    same,
    same_shape,
    smaller,
)

RULES: dict[str, Rule] = {}
_INTEGERS = (tf.int32, tf.int64)


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Enters a function for operations of some types."""

    def enter(function: Rule) -> Rule:
        for type_ in types:
            assert type_ not in RULES, type_
            RULES[type_] = function
        return function

    return enter


# --- element by element ---

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
        return _list_like(i, op, inputs)
    shape = broadcast(i, op, [value.shape for value in inputs])
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, shape, _computed(i, op, inputs))]


@rule(*_SAME_SHAPE.split())
def same_shapes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """All operands have one shape."""
    if inputs[0].items is not None:
        return _list_like(i, op, inputs)
    for value in inputs[1:]:
        _require_same(i, op, inputs[0].shape, value.shape)
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, inputs[0].shape, _computed(i, op, inputs))]


@rule("Select")
def select(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A condition for all, for each row or for each element."""
    condition, x, y = inputs
    _require_same(i, op, x.shape, y.shape)
    if condition.shape:
        _require_same(i, op, condition.shape, x.shape[: len(condition.shape)])
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [i.value(tensor, x.shape)]


@rule("EnsureShape")
def ensure_shape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """What is ensured must hold for all sizes."""
    wanted = tf.TensorShape(op.get_attr("shape"))
    if wanted.rank is not None:
        known = [size if ensured is None else ensured for size, ensured in zip(inputs[0].shape, wanted, strict=True)]
        _require_same(i, op, inputs[0].shape, known)
    return inputs


def broadcast(i: Interpreter, op: Any, shapes: Iterable[Shape]) -> Shape:
    """The common shape of operands: sizes are equal for all sizes, or one of them is the number 1."""
    result: list[Any] = []
    for shape in shapes:
        longer = max(len(result), len(shape))
        pairs = zip([1] * (longer - len(result)) + result, [1] * (longer - len(shape)) + list(shape), strict=True)
        result = [_broadcast_size(i, op, x, y) for x, y in pairs]
    return tuple(result)


def _broadcast_size(i: Interpreter, op: Any, x: Any, y: Any) -> Any:
    if _is_one(x):
        return y
    if _is_one(y) or same(x, y):
        return x
    raise i.refused(op, f"broadcasts sizes {x} and {y}, not equal for all sizes,")


def _is_one(size: Any) -> bool:
    return not is_symbolic(size) and size == 1


def _require_same(i: Interpreter, op: Any, x: Sequence[Any], y: Sequence[Any]) -> None:
    if not same_shape(tuple(x), tuple(y)):
        raise i.refused(op, f"has operands of shapes {list(x)} and {list(y)}, not equal for all sizes,")


# --- integers computed from sizes ---


def _floordiv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) else None


def _floormod(x: Any, y: Any) -> Any:
    return x % y if decided(operator.ge, y, 1) else None


def _truncatediv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) and decided(operator.ge, x, 0) else None


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: decided(compare, x, y)


# Sums and products cannot leave 32 bits where they are sizes of tensors; the others keep, of a number that has wrapped,
# what is not the size: they are known where no operand can have wrapped.
_EXACT: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("Add", "AddV2"), operator.add),
    "AddN": lambda *xs: sum(xs),
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Square": lambda x: x * x,
    "Identity": lambda x: x,
    "Cast": lambda x: x,
}
_CHOOSING: dict[str, Callable[..., Any]] = {
    "Maximum": larger,
    "Minimum": smaller,
    "Abs": lambda x: larger(x, -x),
    "FloorDiv": _floordiv,
    "FloorMod": _floormod,
    "TruncateDiv": _truncatediv,
    "Equal": _comparison(operator.eq),
    "NotEqual": _comparison(operator.ne),
    "Less": _comparison(operator.lt),
    "LessEqual": _comparison(operator.le),
    "Greater": _comparison(operator.gt),
    "GreaterEqual": _comparison(operator.ge),
}


def _computed(i: Interpreter, op: Any, inputs: list[Value]) -> Known | None:
    """The elements of the result, if those of the operands are known, in 32 or 64 bits."""
    if any(value.known is None for value in inputs):
        return None
    if op.type == "SelectV2":
        known = i.moved(op, inputs, (1, 2))
        return None if known is None else known[0]
    function = _EXACT.get(op.type) or _CHOOSING.get(op.type)
    if function is None or any(x.dtype not in _INTEGERS for x in op.inputs):
        return None
    if op.type == "Cast" and op.outputs[0].dtype not in _INTEGERS:
        return None
    arrays = [value.known for value in inputs if value.known is not None]
    may_wrap = op.type in _CHOOSING or (op.type == "Cast" and op.outputs[0].dtype != op.inputs[0].dtype)
    if may_wrap and not all(is_within(i, x) for array in arrays for x in array.flat):
        return None
    broadcasted = np.broadcast_arrays(*arrays)
    results = [function(*column) for column in zip(*(array.flat for array in broadcasted), strict=True)]
    if any(result is None for result in results):
        return None
    return array_of(results, broadcasted[0].shape)


def is_within(i: Interpreter, number: Any) -> bool:
    """Whether an integer cannot leave 32 bits, in which JAX computes sizes.

    Arrays have at most 2**31 - 2**21 elements.
    """
    if not is_symbolic(number):
        return bool(abs(number) < 1 << 31)
    limits = [count + (1 << 20) for count in i.counts]
    return any(
        decided(operator.ge, limit, number) is True and decided(operator.ge, number + limit, 0) is True
        for limit in limits
    )


def _bound(i: Interpreter, op: Any, number: Any) -> Any:
    if not is_within(i, number):
        raise i.refused(op, f"has a bound {number} that may leave 32 bits,")
    return number


def _not_negative(i: Interpreter, op: Any, numbers: Iterable[Any]) -> None:
    for number in numbers:
        if not decided(operator.ge, number, 0):
            raise i.refused(op, f"has a size {number} that may be negative,")


# --- shapes as values ---


@rule("Shape", "ShapeN")
def shape_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sizes become values that the program computes."""
    results = []
    for value, output in zip(inputs, op.outputs, strict=True):
        known = array_of(value.shape, (len(value.shape),))
        results.append(i.value(i.vector(known, output.dtype), known.shape, known))
    return results


@rule("Size")
def size_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The number of elements."""
    known = array_of([product(inputs[0].shape)], ())
    return [i.value(i.vector(known, op.outputs[0].dtype), (), known)]


@rule("Rank")
def rank_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Always a number."""
    rank = len(inputs[0].shape)
    return [i.value(tf.constant(rank), (), array_of([rank], ()))]


@rule("BroadcastArgs")
def broadcast_args(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The common shape of two shapes."""
    shape = broadcast(i, op, [tuple(i.known(op, inputs, index)) for index in range(2)])
    known = array_of(shape, (len(shape),))
    return [i.value(i.vector(known, op.outputs[0].dtype), known.shape, known)]


@rule("BroadcastGradientArgs")
def broadcast_gradient_args(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The axes that each operand was broadcast along: those where it has the number 1.

    TensorFlow also gives an axis where both have 1; a sum along it changes nothing.
    """
    shapes = [tuple(i.known(op, inputs, index)) for index in range(2)]
    broadcast(i, op, shapes)
    rank = max(map(len, shapes))
    padded = [(None,) * (rank - len(shape)) + shape for shape in shapes]
    results = []
    for own, other in (padded, padded[::-1]):
        axes = [axis for axis in range(rank) if own[axis] is None or (_is_one(own[axis]) and other[axis] is not None)]
        results.append(
            i.value(tf.constant(axes, op.outputs[0].dtype, [len(axes)]), (len(axes),), array_of(axes, (len(axes),)))
        )
    return results


@rule("ConcatOffset")
def concat_offset(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Where each operand of a concatenation begins in the result."""
    [axis] = i.integers(op, inputs, 0)
    results, start = [], 0
    for index in range(1, len(inputs)):
        shape = i.known(op, inputs, index)
        known = array_of([start if axis % len(shape) == place else 0 for place in range(len(shape))], shape.shape)
        results.append(i.value(i.vector(known, op.outputs[0].dtype), known.shape, known))
        start = start + shape[axis]
    return results


@rule("DynamicStitch")
def dynamic_stitch(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Of known values only."""
    known = i.moved(op, inputs, range(len(inputs) // 2, len(inputs)))
    if known is None:
        raise i.refused(op, "has operands that are not known,")
    return [i.value(i.vector(known[0], op.outputs[0].dtype), known[0].shape, known[0])]


# --- moves ---


def _moving(i: Interpreter, op: Any, inputs: list[Value], data: Sequence[int]) -> Known | None:
    known = i.moved(op, inputs, data)
    return None if known is None else known[0]


@rule("Reshape")
def reshape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The number of elements is the same for all sizes; -1 is what remains."""
    x, wanted = inputs[0], list(i.known(op, inputs, 1))
    total = product(x.shape)
    unknown = [place for place, size in enumerate(wanted) if not is_symbolic(size) and size == -1]
    if unknown:
        rest = product(size for place, size in enumerate(wanted) if place not in unknown)
        wanted[unknown[0]] = total // rest if decided(operator.ge, rest, 1) else 0
    _not_negative(i, op, wanted)
    if not same(product(wanted), total):
        raise i.refused(op, f"makes the shape {wanted} of {list(x.shape)}, of which the elements are not as many,")
    i.remember(wanted)
    known = array_of(x.known.flat, [int(size) for size in wanted]) if x.known is not None else None
    [tensor] = i.emit(op, [x.tensor, i.at_sample(array_of(wanted, (len(wanted),)), tf.int64)], Tshape=_type(tf.int64))
    return [i.value(tensor, wanted, known)]


def _type(dtype: Any) -> Any:
    return tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)


@rule("ExpandDims")
def expand_dims(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One more axis, of size 1."""
    [axis] = i.integers(op, inputs, 1)
    shape = list(inputs[0].shape)
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape, _moving(i, op, inputs, (0,)))]


@rule("Squeeze")
def squeeze(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Named axes; without names those of size 1, which a symbolic size may be."""
    shape = inputs[0].shape
    axes = [axis % len(shape) for axis in op.get_attr("squeeze_dims")]
    if not axes:
        for size in shape:
            if is_symbolic(size) and not decided(operator.gt, size, 1):
                raise i.refused(op, f"drops an axis of size {size} where it is 1,")
        axes = [axis for axis, size in enumerate(shape) if _is_one(size)]
    if not all(_is_one(shape[axis]) for axis in axes):
        raise i.refused(op, f"drops axes {axes} of {list(shape)},")
    [tensor] = i.compiled(op, inputs)
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return [i.value(tensor, kept, _moving(i, op, inputs, (0,)))]


@rule("Transpose")
def transpose(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """In an order that is the same for all sizes."""
    order = i.integers(op, inputs, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, [inputs[0].shape[axis] for axis in order], _moving(i, op, inputs, (0,)))]


@rule("ReverseV2", "Roll", "Cumsum", "Cumprod", "CumulativeLogsumexp")
def along_axes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape stays; a cumulative operation is compiled to windows, whose sizes must be numbers."""
    x, place = inputs[0], len(inputs) - 1
    axes = i.integers(op, inputs, place)
    if op.type.startswith("Cum") and is_symbolic(x.shape[axes[0]]):
        raise i.refused(op, f"is along an axis of size {x.shape[axes[0]]},")
    i.remember(2 * size for size in x.shape)
    [tensor] = i.compiled(op, inputs, (place,))
    return [i.value(tensor, x.shape, _moving(i, op, inputs, (0,)))]


@rule("ConcatV2")
def concat(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sizes of the axis are added, the others equal."""
    *parts, _ = inputs
    [axis] = i.integers(op, inputs, len(parts))
    axis %= len(parts[0].shape)
    shape = list(parts[0].shape)
    for part in parts[1:]:
        _require_same(i, op, shape[:axis] + shape[axis + 1 :], part.shape[:axis] + part.shape[axis + 1 :])
        shape[axis] = shape[axis] + part.shape[axis]
    [tensor] = i.compiled(op, inputs, (len(parts),))
    return [i.value(tensor, shape, _moving(i, op, inputs, range(len(parts))))]


@rule("Pack")
def pack(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Operands of one shape, along a new axis."""
    for value in inputs[1:]:
        _require_same(i, op, inputs[0].shape, value.shape)
    shape = list(inputs[0].shape)
    axis = op.get_attr("axis")
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, len(inputs))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, shape, _moving(i, op, inputs, range(len(inputs))))]


@rule("Unpack")
def unpack(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis whose size is a number."""
    shape = list(inputs[0].shape)
    del shape[op.get_attr("axis")]
    known: Sequence[Known | None] = i.moved(op, inputs, (0,)) or [None] * len(op.outputs)
    return [i.value(x, shape, elements) for x, elements in zip(i.compiled(op, inputs), known, strict=True)]


@rule("Split")
def split(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Into equal parts."""
    [axis] = i.integers(op, inputs, 0)
    shape, parts = list(inputs[1].shape), len(op.outputs)
    part = shape[axis] // parts
    if not same(part * parts, shape[axis]):
        raise i.refused(op, f"divides {shape[axis]} into {parts} parts,")
    shape[axis] = part
    i.remember(part * place for place in range(parts))
    return [i.value(x, shape) for x in i.compiled(op, inputs, (0,))]


@rule("SplitV")
def split_sizes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Into parts of known sizes; -1 is what remains."""
    [axis] = i.integers(op, inputs, 2)
    whole, sizes = inputs[0].shape[axis], list(i.known(op, inputs, 1))
    for place, size in enumerate(sizes):
        if not is_symbolic(size) and size == -1:
            sizes[place] = whole - sum(other for index, other in enumerate(sizes) if index != place)
    _not_negative(i, op, sizes)
    if not same(sum(sizes), whole):
        raise i.refused(op, f"divides {whole} into {sizes},")
    i.remember(sum(sizes[:place]) for place in range(len(sizes)))
    tensors = [inputs[0].tensor, i.at_sample(array_of(sizes, (len(sizes),)), op.inputs[1].dtype), inputs[2].tensor]
    results = []
    for tensor, size in zip(i.emit(op, tensors), sizes, strict=True):
        shape = list(inputs[0].shape)
        shape[axis] = size
        results.append(i.value(tensor, shape))
    return results


@rule("Tile")
def tile(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Each size times its multiple."""
    multiples = i.known(op, inputs, 1)
    _not_negative(i, op, multiples)
    [tensor] = i.compiled(op, inputs, (1,))
    shape = [size * multiple for size, multiple in zip(inputs[0].shape, multiples, strict=True)]
    return [i.value(tensor, shape)]


@rule("BroadcastTo")
def broadcast_to(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape, that of the operand broadcast."""
    shape = tuple(i.known(op, inputs, 1))
    _not_negative(i, op, shape)
    if not same_shape(broadcast(i, op, [inputs[0].shape, shape]), shape):
        raise i.refused(op, f"makes the shape {list(shape)} of {list(inputs[0].shape)},")
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape)]


@rule("Fill")
def fill(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape."""
    shape = i.known(op, inputs, 0)
    _not_negative(i, op, shape)
    [tensor] = i.compiled(op, inputs, (0,))
    return [i.value(tensor, tuple(shape), _moving(i, op, inputs, (1,)) if inputs[0].is_constant else None)]


@rule("Pad", "PadV2")
def pad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Known paddings."""
    paddings = i.known(op, inputs, 1)
    _not_negative(i, op, paddings.flat)
    [tensor] = i.compiled(op, inputs, (1,))
    shape = [low + size + high for size, (low, high) in zip(inputs[0].shape, paddings, strict=True)]
    return [i.value(tensor, shape)]


@rule("Range")
def range_(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Integers in known steps: 0, 1, 2, ... as often as there are, then multiplied and added."""
    dtype = op.outputs[0].dtype
    if dtype not in _INTEGERS:
        raise i.refused(op, f"has elements of dtype {dtype.name},")
    start, limit, step = (i.known(op, inputs, index).item() for index in range(3))
    forward = decided(operator.gt, step, 0)
    if not forward and not decided(operator.lt, step, 0):
        raise i.refused(op, f"has a step {step}, which is not of one sign,")
    distance = limit - start if forward else start - limit
    for number in (start, limit, step):
        if not is_within(i, number):
            raise i.refused(op, f"has a bound {number} that may leave 32 bits,")
    _not_negative(i, op, [distance])
    length = step if forward else -step
    count = distance // length  # as a size where it is one
    if not same(count * length, distance):
        count = (distance + length - 1) // length
    i.remember([count])
    numbers = tf.cast(i.barrier(tf.range(i.number(count), dtype=tf.int32)), dtype)
    tensor = numbers * inputs[2].tensor + inputs[0].tensor
    known = None if is_symbolic(count) or count > 64 else array_of([start + step * k for k in range(count)], (count,))
    return [i.value(tensor, (count,), known)]


@rule("OneHot")
def one_hot(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known depth."""
    depth = i.known(op, inputs, 1).item()
    _not_negative(i, op, [depth])
    shape = list(inputs[0].shape)
    axis = op.get_attr("axis")
    shape.insert(axis if axis >= 0 else len(shape), depth)
    tensors = [
        i.barrier(inputs[0].tensor),
        i.at_sample(i.known(op, inputs, 1), tf.int32),
        *(x.tensor for x in inputs[2:]),
    ]
    [tensor] = i.emit(op, tensors)
    return [i.value(tensor, shape)]


# --- slices ---


@dataclass(frozen=True)
class _Dense:
    """The bounds of a slice, one for each axis of its operand; steps are positive, of the axes `reverse` reversed."""

    starts: list[Any]
    stops: list[Any]
    steps: list[int]
    counts: list[Any]
    reverse: list[int]
    shape: list[Any]

    @classmethod
    def of(cls, i: Interpreter, op: Any, whole: Shape, bounds: Sequence[Sequence[Any]]) -> _Dense:
        """Of the operand's shape, begins, ends and strides."""
        dense = cls([], [], [], [], [], [])
        for place, axis in _axes(op, len(bounds[2]), len(whole)):
            if axis is None:
                dense.shape.append(1)
                continue
            size, is_index = whole[axis], False
            start, stop, step = 0, size, 1
            if place is not None:
                is_index = bool(op.get_attr("shrink_axis_mask") >> place & 1)
                start, stop, step = _bounds(i, op, place, [part[place] for part in bounds], size)
            if step < 0:
                dense.reverse.append(axis)
                start, stop, step = size - 1 - start, size - 1 - stop, -step
            count = (larger(stop - start, 0) + step - 1) // step
            dense.starts.append(start)
            dense.stops.append(larger(start, stop))
            dense.steps.append(step)
            dense.counts.append(count)
            if not is_index:
                dense.shape.append(count)
        for numbers in (dense.starts, dense.stops, dense.counts):
            i.remember(numbers)
        i.remember(stop - start for start, stop in zip(dense.starts, dense.stops, strict=True))
        return dense

    def at_sample(self, i: Interpreter) -> list[Any]:
        """Begins, ends and strides."""
        rank = (len(self.starts),)
        bounds = [i.at_sample(array_of(numbers, rank), tf.int64) for numbers in (self.starts, self.stops)]
        return [*bounds, tf.constant(self.steps, tf.int64, rank)]


@rule("StridedSlice")
def strided_slice(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Bounds count from the end where they are negative, and are cut to what there is, as Python's."""
    known = _moving(i, op, inputs, (0,))
    x, strides = inputs[0], i.integers(op, inputs, 3)
    bounds = [_elements(inputs[1], len(strides)), _elements(inputs[2], len(strides)), strides]
    if None in bounds[0] or None in bounds[1]:
        [tensor] = i.compiled(op, inputs, (3,))
        return [i.value(tensor, _indexed(i, op, x.shape, strides))]
    dense = _Dense.of(i, op, x.shape, bounds)
    tensor = tf.reverse(x.tensor, dense.reverse) if dense.reverse else x.tensor
    tensor = tf.strided_slice(tensor, *dense.at_sample(i))
    return [i.value(tf.reshape(tensor, [i.number(size) for size in dense.shape]), dense.shape, known)]


@rule("StridedSliceGrad")
def strided_slice_grad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Zeros of the shape of the operand, and what is pulled back where the slice was."""
    whole, strides, slope = tuple(i.known(op, inputs, 0)), i.integers(op, inputs, 3), inputs[4]
    bounds = [_elements(inputs[1], len(strides)), _elements(inputs[2], len(strides)), strides]
    if None in bounds[0] or None in bounds[1]:
        _require_same(i, op, slope.shape, _indexed(i, op, whole, strides))
        [tensor] = i.compiled(op, inputs, (0, 3))
        return [i.value(tensor, whole)]
    dense = _Dense.of(i, op, whole, bounds)
    _require_same(i, op, slope.shape, dense.shape)
    parts = zip(whole, dense.starts, dense.counts, dense.steps, strict=True)
    i.remember(size - start - count - larger(count - 1, 0) * (step - 1) for size, start, count, step in parts)
    tensor = tf.reshape(slope.tensor, [i.number(count) for count in dense.counts])
    shape = i.at_sample(array_of(whole, (len(whole),)), tf.int64)
    tensor = tf.raw_ops.StridedSliceGrad(
        **dict(zip(("shape", "begin", "end", "strides"), (shape, *dense.at_sample(i)), strict=True)), dy=tensor
    )
    return [i.value(tf.reverse(tensor, dense.reverse) if dense.reverse else tensor, whole)]


def _elements(value: Value, count: int) -> list[Any]:
    return list(value.known.flat) if value.known is not None else [None] * count


def _axes(op: Any, count: int, rank: int) -> list[tuple[int | None, int | None]]:
    """For each axis of the operand, or new one: its place in the bounds, or None; its number, None if it is new."""
    ellipsis, new = op.get_attr("ellipsis_mask"), op.get_attr("new_axis_mask")
    places = [place for place in range(count) if not (ellipsis >> place & 1)]
    own = [place for place in places if not (new >> place & 1)]
    result: list[tuple[int | None, int | None]] = []
    axis = 0
    for place in range(count):
        if ellipsis >> place & 1:
            for _ in range(rank - len(own)):
                result.append((None, axis))
                axis += 1
        elif new >> place & 1:
            result.append((place, None))
        else:
            result.append((place, axis))
            axis += 1
    return result + [(None, rest) for rest in range(axis, rank)]


def _bounds(i: Interpreter, op: Any, place: int, bounds: Sequence[Any], size: Any) -> tuple[Any, Any, int]:
    """Start, stop and step within an axis."""
    begin, end, step = bounds
    if op.get_attr("shrink_axis_mask") >> place & 1:
        index = _from_start(i, op, _bound(i, op, begin), size)
        if not (decided(operator.ge, index, 0) and decided(operator.lt, index, size)):
            raise i.refused(op, f"takes element {begin} of {size}, which is not there for all sizes,")
        return index, index + 1, 1
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    is_open = [op.get_attr(f"{name}_mask") >> place & 1 for name in ("begin", "end")]
    limits = (lowest, highest) if step > 0 else (highest, lowest)
    start, stop = (
        limit if masked else smaller(larger(_from_start(i, op, _bound(i, op, bound), size), lowest), highest)
        for masked, limit, bound in zip(is_open, limits, (begin, end), strict=True)
    )
    return start, stop, step


def _from_start(i: Interpreter, op: Any, bound: Any, size: Any) -> Any:
    if decided(operator.ge, bound, 0):
        return bound
    if decided(operator.lt, bound, 0):
        return bound + size
    raise i.refused(op, f"has a bound {bound}, which counts from the end for some sizes only,")


def _indexed(i: Interpreter, op: Any, whole: Shape, strides: list[int]) -> Shape:
    """The shape of single elements at places that are computed, all of the other axes."""
    shape = []
    open_ = op.get_attr("begin_mask") & op.get_attr("end_mask")
    for place, axis in _axes(op, len(strides), len(whole)):
        if axis is None:
            shape.append(1)
        elif place is None or (open_ >> place & 1 and strides[place] == 1):
            shape.append(whole[axis])
        elif not op.get_attr("shrink_axis_mask") >> place & 1:
            raise i.refused(op, "has a bound that is computed otherwise than by sums, products and quotients of sizes,")
    return tuple(shape)


@rule("Slice")
def slice_(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Inside the operand for all sizes; a size of -1 is what remains."""
    x, sizes = inputs[0], list(i.known(op, inputs, 2))
    begins = inputs[1].known
    constants = [2]
    if begins is not None:
        constants.append(1)
        for axis, (begin, whole) in enumerate(zip(begins, x.shape, strict=True)):
            if not is_symbolic(sizes[axis]) and sizes[axis] == -1:
                sizes[axis] = whole - begin
            _bound(i, op, begin)
            _bound(i, op, sizes[axis])
            if not decided(operator.ge, begin, 0) or not decided(operator.ge, whole, begin + sizes[axis]):
                raise i.refused(
                    op, f"takes {sizes[axis]} from {begin} on of {whole}, which are not there for all sizes,"
                )
        i.remember([*begins, *(begin + size for begin, size in zip(begins, sizes, strict=True))])
    _not_negative(i, op, sizes)
    tensors = [x.tensor, inputs[1].tensor, i.at_sample(array_of(sizes, (len(sizes),)), op.inputs[2].dtype)]
    if begins is not None:
        tensors[1] = i.at_sample(begins, op.inputs[1].dtype)
    [tensor] = i.emit(op, tensors)
    return [i.value(tensor, sizes, _moving(i, op, inputs, (0,)))]


@rule("XlaDynamicUpdateSlice")
def dynamic_update_slice(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand; the place is data."""
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("GatherV2", "Gather", "ResourceGather")
def gather(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The indices are data."""
    x, indices = inputs[0].shape, inputs[1].shape
    axis = i.integers(op, inputs, 2)[0] % len(x) if op.type == "GatherV2" else 0
    batch = op.get_attr("batch_dims") if op.type != "Gather" else 0
    batch = batch if batch >= 0 else batch + len(indices)
    _require_same(i, op, x[:batch], indices[:batch])
    shape = (*x[:axis], *indices[batch:], *x[axis + 1 :])
    if op.type == "ResourceGather":
        return [i.value(tf.gather(inputs[0].tensor, inputs[1].tensor, batch_dims=batch), shape)]
    [tensor] = i.compiled(op, inputs, (2,) if op.type == "GatherV2" else ())
    return [i.value(tensor, shape, _moving(i, op, inputs, (0,)))]


@rule("GatherNd")
def gather_nd(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The last axis of the indices is as long as an index."""
    x, indices = inputs[0].shape, inputs[1].shape
    depth = int(_number(i, op, indices[-1]))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (*indices[:-1], *x[depth:]))]


@rule("ScatterNd")
def scatter_nd(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape."""
    shape = tuple(i.known(op, inputs, 2))
    _not_negative(i, op, shape)
    indices, updates = inputs[0].shape, inputs[1].shape
    _require_same(i, op, updates, (*indices[:-1], *shape[int(_number(i, op, indices[-1])) :]))
    [tensor] = i.compiled(op, inputs, (2,))
    return [i.value(tensor, shape)]


@rule(*(f"TensorScatter{what}" for what in ("Update", "Add", "Sub", "Max", "Min")))
def tensor_scatter(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand."""
    x, indices, updates = (value.shape for value in inputs)
    _require_same(i, op, updates, (*indices[:-1], *x[int(_number(i, op, indices[-1])) :]))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, x)]


@rule(*(f"UnsortedSegment{what}" for what in ("Sum", "Max", "Min", "Prod")))
def unsorted_segments(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known number of segments."""
    data, ids = inputs[0].shape, inputs[1].shape
    _require_same(i, op, data[: len(ids)], ids)
    count = i.known(op, inputs, 2).item()
    _not_negative(i, op, [count])
    [tensor] = i.compiled(op, inputs, (2,))
    return [i.value(tensor, (count, *data[len(ids) :]))]


def _number(i: Interpreter, op: Any, size: Any) -> Any:
    if is_symbolic(size):
        raise i.refused(op, f"needs a size to be a number, and it is {size},")
    return size


# --- reductions and products ---


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm")
def reduction(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along axes that are the same for all sizes; a mean is divided by the number of elements."""
    x = inputs[0]
    axes = {axis % len(x.shape) for axis in i.integers(op, inputs, 1)} if x.shape else set()
    keep = op.get_attr("keep_dims")
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    i.remember([product(size for axis, size in enumerate(x.shape) if axis in axes)])
    [tensor] = i.compiled(op, inputs, (1,))
    known = None
    fold = {"Sum": operator.add, "Prod": operator.mul, "Max": larger, "Min": smaller}.get(op.type)
    if x.known is not None and fold is not None and x.known.ndim == 1 and axes and op.inputs[0].dtype in _INTEGERS:
        elements = list(x.known)
        if op.type in ("Sum", "Prod") or all(is_within(i, element) for element in elements):
            total = elements[0] if elements else {"Sum": 0, "Prod": 1}.get(op.type)
            for element in elements[1:]:
                total = fold(total, element)
            known = None if total is None else array_of([total], (1,) * int(keep))
    return [i.value(tensor, shape, known)]


@rule("ArgMax", "ArgMin")
def arg_reduction(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along one axis."""
    [axis] = i.integers(op, inputs, 1)
    shape = list(inputs[0].shape)
    del shape[axis]
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape)]


@rule("L2Loss")
def l2_loss(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A number."""
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, ())]


@rule("TopKV2", "TopK")
def top_k(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sorted, and cut: the same for all sizes, as compiled for a CPU by TensorFlow 2.21 for 7 and for 700,000."""
    count = i.known(op, inputs, 1).item() if op.type == "TopKV2" else op.get_attr("k")
    shape = inputs[0].shape
    _not_negative(i, op, [count])
    if not decided(operator.ge, shape[-1], count):
        raise i.refused(op, f"takes {count} of {shape[-1]}, which are not there for all sizes,")
    return [i.value(x, (*shape[:-1], count)) for x in i.compiled(op, inputs, (1,) if op.type == "TopKV2" else ())]


@rule("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Any sizes; those of the batch are broadcast."""
    names = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    (*x_batch, x0, x1), (*y_batch, y0, y1) = (value.shape for value in inputs)
    if op.get_attr(names[0]):
        x0, x1 = x1, x0
    if op.get_attr(names[1]):
        y0, y1 = y1, y0
    _require_same(i, op, (x1,), (y0,))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (*broadcast(i, op, [tuple(x_batch), tuple(y_batch)]), x0, y1))]


@rule("Einsum")
def einsum(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Without ellipsis; each letter has one size."""
    equation = op.get_attr("equation").decode()
    if "." in equation:
        raise i.refused(op, f"has the equation {equation},")
    left, right = equation.replace(" ", "").split("->")
    sizes: dict[str, Any] = {}
    for letters, value in zip(left.split(","), inputs, strict=True):
        for letter, size in zip(letters, value.shape, strict=True):
            _require_same(i, op, (sizes.setdefault(letter, size),), (size,))
    for letters in left.split(","):
        i.remember(product(sizes[letter] for letter in group) for group in (letters, set(letters) & set(right)))
        i.remember(product(sizes[letter] for letter in set(letters) - set(right)) for _ in (0,))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, [sizes[letter] for letter in right])]


@rule("BiasAdd")
def bias_add(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand."""
    axis = 1 if op.get_attr("data_format") == b"NCHW" else -1
    _require_same(i, op, inputs[1].shape, (inputs[0].shape[axis],))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("BiasAddGrad")
def bias_add_grad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A sum over all axes but one."""
    axis = 1 if op.get_attr("data_format") == b"NCHW" else -1
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (inputs[0].shape[axis],))]


@rule("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def cross_entropy(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The loss of each row, and its gradient."""
    features, labels = (value.shape for value in inputs)
    _require_same(i, op, features[: len(labels)], labels)
    loss, gradient = i.compiled(op, inputs)
    return [i.value(loss, features[:1]), i.value(gradient, features)]


@rule("MatrixBandPart")
def band_part(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape stays."""
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("FFT", "IFFT")
def fft(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis whose size is a number."""
    _number(i, op, inputs[0].shape[-1])
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("RFFT", "IRFFT")
def rfft(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis whose size is a number, to a length that is one."""
    _number(i, op, inputs[0].shape[-1])
    [length] = i.integers(op, inputs, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, (*inputs[0].shape[:-1], length // 2 + 1 if op.type == "RFFT" else length))]


# --- one operation for each element of a batch ---

# Which operands and which results have a leading axis that may be symbolic, and which operands must be constant when
# TensorFlow compiles; all other sizes are numbers.
_BATCHED: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv"), ((0,), (0,), ())),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "DepthToSpace", "SpaceToDepth"), ((0,), (0,), ())),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), ((2,), (0,), (0,))),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), ((0, 2), (), (1,))),
    "DepthwiseConv2dNativeBackpropInput": ((2,), (0,), (0,)),
    "DepthwiseConv2dNativeBackpropFilter": ((0, 2), (), (1,)),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), ((0, 1, 2), (0,), ())),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), ((1,), (0,), (0,))),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor"), ((0,), (0,), (1,))),
    "ResizeBilinearGrad": ((0, 1), (0,), ()),
    "ResizeNearestNeighborGrad": ((0,), (0,), (1,)),
    "FusedBatchNormV3": ((0,), (0,), ()),
    "FusedBatchNormGradV3": ((0, 1), (0,), ()),
}


@rule(*_BATCHED)
def batched(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The leading axis may be symbolic, all other sizes are numbers, and the kernel does not look at that axis."""
    operands, results, constants = _BATCHED[op.type]
    batch = inputs[operands[0]].shape[0]
    for index, value in enumerate(inputs):
        if index in operands:
            _require_same(i, op, (batch,), value.shape[:1])
        for size in value.shape[1 if index in operands else 0 :]:
            _number(i, op, size)
    if op.type.startswith("FusedBatchNorm"):
        i.remember([product(inputs[0].shape[:-1]), product(inputs[0].shape[:-1]) - 1])
    tensors = i.compiled(op, inputs, constants)
    return [
        i.value(x, (batch, *x.shape[1:]) if index in results else tuple(x.shape)) for index, x in enumerate(tensors)
    ]


@rule("XlaCallModule")
def call_module(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A function of JAX that was converted: what it does with sizes is followed in its own program."""
    if op.get_attr("has_token_input_output") or op.get_attr("function_list"):
        raise i.refused(op, "calls functions of TensorFlow,")
    shapes = [value.shape for value in inputs]
    try:
        results, sizes = result_shapes(op.get_attr("module"), shapes, len(op.get_attr("platforms")) > 1)
    except NotFollowed as error:
        raise i.refused(op, f"is a module with {error},") from error
    i.remember(sizes)
    tensors = i.compiled(op, inputs)
    for tensor, shape in zip(tensors, results, strict=True):
        tensor.set_shape([i.number(size) for size in shape])
    return [i.value(tensor, shape) for tensor, shape in zip(tensors, results, strict=True)]


# --- lists of tensors ---


def _list_like(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    items = next((value.items for value in inputs if value.items and value.items.element is not None), inputs[0].items)
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [Value(tensor, (), None, ListOf(items.count, items.element, None, False) if items else None)]


def _element(known: Known | None) -> Shape | None:
    """The shape that the elements are declared to have; None if it is not all known."""
    if known is None or not known.ndim or any(not is_symbolic(size) and size < 0 for size in known):
        return None
    return tuple(known)


@rule("TensorListReserve", "EmptyTensorList")
def list_reserve(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Room for a known number."""
    count = i.known(op, inputs, 1).item()
    _not_negative(i, op, [count])
    shape = inputs[0].known
    tensors = [
        i.at_sample(shape, tf.int32) if shape is not None else tf.constant(-1),
        i.at_sample(i.known(op, inputs, 1), tf.int32),
    ]
    [tensor] = i.emit(op, tensors, shape_type=_type(tf.int32))
    return [Value(tensor, (), None, ListOf(count, _element(shape)))]


@rule("TensorListFromTensor")
def list_from_tensor(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One for each row."""
    count, *shape = inputs[0].shape
    [tensor] = i.emit(
        op, [inputs[0].tensor, i.at_sample(array_of(shape, (len(shape),)), tf.int32)], shape_type=_type(tf.int32)
    )
    return [Value(tensor, (), None, ListOf(count, tuple(shape), None, False))]


@rule("TensorListSetItem")
def list_set(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One is replaced."""
    items = _items(i, op, inputs[0])
    if items.element is not None:
        _require_same(i, op, items.element, inputs[2].shape)
    [tensor] = i.compiled(op, inputs)
    return [Value(tensor, (), None, ListOf(items.count, inputs[2].shape, None, False))]


@rule("TensorListPushBack")
def list_push(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One more."""
    items = _items(i, op, inputs[0])
    if items.element is not None:
        _require_same(i, op, items.element, inputs[1].shape)
    if inputs[1].items is not None:
        raise i.refused(op, "has a list of lists,")
    [tensor] = i.compiled(op, inputs)
    return [Value(tensor, (), None, items.written(inputs[1]))]


def _items(i: Interpreter, op: Any, value: Value) -> ListOf:
    if value.items is None:
        raise i.refused(op, "has a list whose elements are not known,")
    return value.items


def _item_shape(i: Interpreter, op: Any, value: Value) -> Shape:
    shape = _items(i, op, value).element
    if shape is None:
        raise i.refused(op, "has a list whose elements have no known shape,")
    return shape


@rule("TensorListPopBack", "TensorListGetItem", "TensorListStack")
def list_read(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One, or all of them."""
    shape = _item_shape(i, op, inputs[0])
    tensors = [value.tensor for value in inputs]
    tensors[-1] = i.at_sample(array_of(shape, (len(shape),)), tf.int32)
    written = i.emit(op, tensors)
    items = _items(i, op, inputs[0])
    if op.type == "TensorListPopBack":
        return [Value(written[0], (), None, items), i.value(written[1], shape, items.known)]
    known = items.known if op.type == "TensorListGetItem" else None
    full = (items.count, *shape) if op.type == "TensorListStack" else shape
    tensor = written[0]
    tensor.set_shape([i.number(size) for size in full])
    return [i.value(tensor, full, known)]


@rule("TensorListLength")
def list_length(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Of a list that does not grow."""
    known = array_of([_items(i, op, inputs[0]).count], ())
    return [i.value(i.vector(known, tf.int32), (), known)]


@rule("TensorListElementShape")
def list_element_shape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """As known."""
    shape = _item_shape(i, op, inputs[0])
    known = array_of(shape, (len(shape),))
    return [i.value(i.vector(known, op.outputs[0].dtype), known.shape, known)]
