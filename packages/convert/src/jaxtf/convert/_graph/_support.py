"""What the entries of `ops` share: sizes, bit patterns, pads, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.errors import REMEDY, REMEDY_BY_XLA, unsupported
from jaxtf.convert._graph.grappler import in_order, larger, multiplied
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.nodes import constant, elementwise
from jaxtf.convert._graph.optimizer import maker_of
from jaxtf.convert._graph.registry import Bound, registered
from jaxtf.convert._tf import traces_compiled, vectorized_by

__all__ = [
    "BINARY",
    "BITS",
    "MOST_DIMENSIONS",
    "MOVED",
    "SIGNED",
    "UNCAST",
    "UNSIGNED",
    "Size",
    "as_shape",
    "at_least_zero",
    "backwards",
    "hidden_from_xla",
    "index_dtype",
    "is_empty",
    "is_identity_of",
    "largest",
    "neutral",
    "one_by_one",
    "pad",
    "product",
    "refuse",
    "same",
    "sizes",
    "sliced",
    "smallest",
    "typed",
    "where",
    "widening",
    "without_sign_of_zero",
]

Size: TypeAlias = Any
"""An integer, or a scalar tensor where it is known only at run time."""


# TensorFlow has these from 2.20 on.
_MISSING = frozenset(name for name in ("int2", "uint2") if not hasattr(tf.dtypes.experimental, name))


def widening(**wider: Sequence[str]) -> dict[tf.DType, tf.DType]:
    """A table for `computed_in`: each named dtype, of those that this TensorFlow has, to the keyword whose list has it.

    >>> widening(float32=["bfloat16", "float16"])[tf.bfloat16]
    tf.float32
    """
    return {
        tf.as_dtype(name): tf.as_dtype(wide) for wide, names in wider.items() for name in names if name not in _MISSING
    }


# Types of 4 bits, and floats of 8, have few kernels; every value has its place in the wider type. TensorFlow 2.21 casts
# those below, and no others of their kind (int2, uint2, float4_e2m1fn, float8_*fnuz).
MOVED = widening(int8=["int4"], uint8=["uint4"], float32=["float8_e5m2", "float8_e4m3fn"])
UNCAST = tuple(
    getattr(tf.dtypes.experimental, name)
    for name in dir(tf.dtypes.experimental)
    if name in ("int2", "uint2", "float4_e2m1fn") or name.endswith("fnuz")
)

UNSIGNED = {tf.int8: tf.uint8, tf.int16: tf.uint16, tf.int32: tf.uint32, tf.int64: tf.uint64}
SIGNED = {unsigned: signed for signed, unsigned in UNSIGNED.items()}
BITS = {tf.float16: tf.int16, tf.bfloat16: tf.int16, tf.float32: tf.int32, tf.float64: tf.int64}


def refuse(bound: Bound, reason: str) -> NoReturn:
    """Raises that this use of the operation has no translation."""
    needs_xla = not bound.allows_xla and registered()[bound.operation.name].needs_xla
    raise unsupported(bound.operation, reason, REMEDY_BY_XLA if needs_xla else REMEDY)


def sizes(tensor: tf.Tensor) -> list[Size]:
    """The sizes of a tensor: integers where known, scalars otherwise."""
    known = tensor.shape.as_list()
    if None not in known:
        return list(known)
    unknown = tf.shape(tensor)
    return [unknown[i] if size is None else size for i, size in enumerate(known)]


def index_dtype(*numbers: Size) -> tf.DType:
    """int64 if one of the numbers is known not to fit int32, else int32.

    Beside an int32 tensor TensorFlow takes a Python integer modulo 2**32, without a word.
    """
    return tf.int64 if any(isinstance(n, int) and n > tf.int32.max for n in numbers) else tf.int32


def as_shape(shape: Sequence[Size]) -> Any:
    """Sizes as TensorFlow's operations take them: a list if all are known, else one int32 or int64 vector."""
    if all(isinstance(size, int | np.integer) for size in shape):
        return [int(size) for size in shape]
    return _vector(shape, index_dtype(*shape))


def _vector(numbers: Sequence[Size], dtype: tf.DType) -> tf.Tensor:
    return tf.stack([tf.cast(number, dtype) for number in numbers])


def sliced(operand: tf.Tensor, begin: Sequence[Size], extent: Sequence[Size]) -> tf.Tensor:
    """As `tf.slice`, of sizes and places beyond int32, too."""
    dtype = index_dtype(*sizes(operand))
    if dtype == tf.int64:
        return tf.slice(operand, _vector(begin, dtype), _vector(extent, dtype))
    return tf.slice(operand, as_shape(begin), as_shape(extent))


def typed(value: Any, dtype: tf.DType) -> tf.Tensor:
    """The constant of a Python number, or of a list of them, that has this dtype and keeps it.

    Where NumPy's behavior is enabled with a `dtype_conversion_mode` of "safe" or "all", `tf.constant(1)` makes a
    weak tensor, which changes its dtype and cannot be the state of a loop, and `tf.constant(2**32 - 1, tf.uint32)`
    raises an error, as does any integer beyond int32 beside a tensor (2.21). NumPy's numbers have their dtype.
    """
    return constant(np.array(value, dtype.as_numpy_dtype))


def smallest(dtype: tf.DType) -> Any:
    """The least value, -inf for floating point."""
    return -np.inf if dtype.is_floating else dtype.min


def largest(dtype: tf.DType) -> Any:
    """The greatest value, inf for floating point."""
    return np.inf if dtype.is_floating else dtype.max


MOST_DIMENSIONS = 8
"""Of arrays that TensorFlow's kernels for slices, reversals and choices take (2.21)."""
_MOST_PADDED = 6
"""That of pads; dimensions that are not padded count as one where they are neighbours."""


def where(condition: tf.Tensor, on_true: tf.Tensor, on_false: tf.Tensor) -> tf.Tensor:
    """As `tf.where` of arrays of the condition's shape and scalars, also of more dimensions than its kernel takes."""
    rank = condition.shape.rank
    if rank is None or rank <= MOST_DIMENSIONS:
        return tf.where(condition, on_true, on_false)
    flat = (tf.reshape(x, [-1]) if x.shape.rank else x for x in (condition, on_true, on_false))
    return tf.reshape(tf.where(*flat), as_shape(sizes(condition)))


def without_sign_of_zero(operand: tf.Tensor, *, by_real: bool = False) -> tf.Tensor:
    """Complex numbers with 0 for an imaginary part of -0, or for a real one, differentiated as the numbers.

    To a zero is added 0, and to others -0, which leaves them as they are. A choice of a constant would have no slope.
    """
    parts = [tf.math.real(operand), tf.math.imag(operand)]
    part = parts[0 if by_real else 1]
    zero, negative_zero = (typed(number, part.dtype) for number in (0.0, -0.0))
    parts[0 if by_real else 1] = part + where(tf.equal(part, zero), zero, negative_zero)
    return tf.complex(*parts)


def hidden_from_xla(operand: tf.Tensor, *makers: str) -> tf.Tensor:
    """Complex numbers as they are, of which XLA does not see that an operation of these types makes them.

    XLA (TensorFlow 2.21) makes `|x|` of `sqrt(x * x)`, and x of `log(exp(x))`, of complex numbers too. To a zero part
    is added the same, and to others -0, which leaves them as they are. Not compiled, a graph may be compiled when it is
    loaded: there it is done where the maker is known.
    """
    if not traces_compiled():
        maker = maker_of(operand)
        if maker is None or maker.type not in makers:
            return operand
    real, part = tf.math.real(operand), tf.math.imag(operand)
    same = tf.stop_gradient(part)
    negative_zero = typed(-0.0, part.dtype)
    return tf.complex(real, part + where(tf.equal(same, typed(0.0, part.dtype)), same, negative_zero))


def one_by_one(operand: tf.Tensor, axes: Sequence[int], apply: Callable[[tf.Tensor, int], tf.Tensor]) -> tf.Tensor:
    """The operand after `apply(array, axis)` for each of its dimensions, in each case on dimension 1 of three."""
    for axis in axes:
        shape = sizes(operand)
        flat = tf.reshape(operand, as_shape([product(shape[:axis]), shape[axis], product(shape[axis + 1 :])]))
        flat = apply(flat, axis)
        operand = tf.reshape(flat, as_shape([*shape[:axis], sizes(flat)[1], *shape[axis + 1 :]]))
    return operand


def backwards(integers: tf.Tensor) -> tf.Tensor:
    """All bits of signed integers turned over, which turns their order round; TFLite has no Invert."""
    return typed(-1, integers.dtype) - integers


def neutral(kind: str, dtype: tf.DType) -> Any:
    """The value that leaves every x as it is in add, multiply, minimum, maximum, and, or, xor."""
    if dtype == tf.bool:
        return kind in ("multiply", "minimum", "and")
    if kind in ("minimum", "maximum"):
        return largest(dtype) if kind == "minimum" else smallest(dtype)
    if kind == "and":
        return -1 if dtype in UNSIGNED else dtype.max
    return 1 if kind == "multiply" else 0


def is_identity_of(kind: str, tensor: tf.Tensor) -> bool:
    """Whether a scalar is known, and is the neutral value of the operation."""
    value = known_value(tensor)
    return value is not None and np.ndim(value) == 0 and bool(value == neutral(kind, tensor.dtype))


def pad(
    operand: tf.Tensor,
    value: tf.Tensor | None,
    low: Sequence[Size],
    high: Sequence[Size],
    interior: Sequence[int] | None = None,
    *,
    apart: bool = False,
) -> tf.Tensor:
    """Pads each dimension, with zeros if the value is None: interior between elements, then low and high around.

    Negative ones cut, up to all that there is. A pad that is `apart` does not become part of a convolution when
    TensorFlow optimizes a graph.

    Source: StableHLO specification, `pad`.
    """
    amounts = list(zip(low, high, interior or [0] * len(low), strict=True))
    padded = [i for i, edges in enumerate(amounts) if not all(isinstance(n, int) and n == 0 for n in edges)]
    between_padded = sum(after - before > 1 for before, after in pairwise([-1, *padded, operand.shape.rank]))
    if operand.shape.rank > MOST_DIMENSIONS or len(padded) + between_padded > _MOST_PADDED:

        def along(array: tf.Tensor, axis: int) -> tf.Tensor:
            return pad(array, value, *([0, n, 0] for n in amounts[axis]), apart=apart)

        return one_by_one(operand, padded, along)
    for axis, between in enumerate(interior or ()):
        if between:
            operand = _spread(operand, value, axis, between)
    if not operand.shape.rank:
        return operand
    before, after = ([at_least_zero(size) for size in sizes_] for sizes_ in (low, high))
    if not all(isinstance(size, int) and size == 0 for size in [*before, *after]):
        paddings: Any = [[b, a] for b, a in zip(before, after, strict=True)]
        if not all(isinstance(size, int) for size in [*before, *after]):
            paddings = tf.stack([tf.stack([tf.cast(b, tf.int32), tf.cast(a, tf.int32)]) for b, a in paddings])
        if apart or not _is_plain_zero(value):
            value = tf.zeros([], operand.dtype) if value is None else value
            operand = _padded(operand, paddings, value)
        else:
            operand = tf.pad(operand, paddings)
    if all(isinstance(size, int) and size >= 0 for size in [*low, *high]):
        return operand
    shape = sizes(operand)
    begin = [_smaller_of(at_least_zero(-n), size) for n, size in zip(low, shape, strict=True)]
    cut = [at_least_zero(-size) for size in high]
    extent = [at_least_zero(s - b - c) for s, b, c in zip(shape, begin, cut, strict=True)]
    return sliced(operand, begin, extent)


def _padded(operand: tf.Tensor, paddings: Any, value: tf.Tensor) -> tf.Tensor:
    """PadV2, which `tf.vectorized_map` takes for a pad with zeros."""
    result = tf.pad(operand, paddings, constant_values=value)

    def of_all(operands: tf.Tensor, paddings: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        return _padded(operands, tf.pad(paddings, [[1, 0], [0, 0]]), value)

    if tf.is_symbolic_tensor(result):
        vectorized_by(result.op, of_all)
    return result


def _is_plain_zero(value: tf.Tensor | None) -> bool:
    if value is None:
        return True
    known = known_value(value)
    return known is not None and value.dtype != tf.bool and not any(np.asarray(known).tobytes())


def at_least_zero(size: Size) -> Size:
    """The larger of a size and 0."""
    return max(int(size), 0) if isinstance(size, int | np.integer) else tf.maximum(size, 0)


def _smaller_of(wanted: Size, size: Size) -> Size:
    if isinstance(wanted, int) and wanted == 0:
        return 0
    return min(wanted, size) if isinstance(wanted, int) and isinstance(size, int) else tf.minimum(wanted, size)


def _spread(operand: tf.Tensor, value: tf.Tensor | None, axis: int, between: int) -> tf.Tensor:
    """Puts `between` values between neighbours of one dimension: widens each element, then drops the last gap."""
    shape = sizes(operand)
    count = shape[axis]
    if isinstance(count, int) and count <= 1:
        return operand
    if operand.shape.rank > 6:
        flat = tf.reshape(operand, as_shape([product(shape[:axis]), count, product(shape[axis + 1 :])]))
        flat = _spread(flat, value, 1, between)
        made = flat.shape.as_list()[1] or tf.shape(flat)[1]
        return tf.reshape(flat, as_shape([*shape[:axis], made, *shape[axis + 1 :]]))
    wide = tf.expand_dims(operand, axis + 1)
    paddings = [[0, between if i == axis + 1 else 0] for i in range(len(shape) + 1)]
    wide = tf.pad(wide, paddings) if value is None else _padded(wide, paddings, value)
    wide = tf.reshape(wide, as_shape([*shape[:axis], count * (between + 1), *shape[axis + 1 :]]))
    kept = count + (count - 1) * between
    extent = [*shape[:axis], at_least_zero(kept), *shape[axis + 1 :]]
    return sliced(wide, [0] * len(shape), extent)


def is_empty(shape: Sequence[Size]) -> bool:
    """Whether an array of these sizes is known to have no elements."""
    return any(isinstance(size, int) and size == 0 for size in shape)


def same(left: Size, right: Size) -> bool:
    """Whether two sizes are known to be equal."""
    return isinstance(left, int) and isinstance(right, int) and left == right


def product(factors: Sequence[Size]) -> Size:
    """The product of sizes."""
    result: Size = 1
    for factor in factors:
        result = result * factor
    return result


def _binary(numbers: Any, of_truth: Any) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """An operation of numbers, and what it is of truth values."""
    return lambda a, b: of_truth(a, b) if a.dtype == tf.bool else numbers(a, b)


BINARY: Mapping[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "add": _binary(in_order("AddV2", tf.add), tf.logical_or),
    "multiply": _binary(multiplied, tf.logical_and),
    "minimum": _binary(elementwise("Minimum", tf.minimum), tf.logical_and),
    "maximum": _binary(larger, tf.logical_or),
    "and": _binary(elementwise("BitwiseAnd", tf.bitwise.bitwise_and), tf.logical_and),
    "or": _binary(elementwise("BitwiseOr", tf.bitwise.bitwise_or), tf.logical_or),
    "xor": _binary(elementwise("BitwiseXor", tf.bitwise.bitwise_xor), tf.not_equal),
}
"""The operations that the regions of reductions and scatters mostly consist of."""
