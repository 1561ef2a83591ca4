"""Operations that keep their value when Grappler (TensorFlow 2.21) rewrites the graph around them.

It replaces some pairs of operations by one without regard to NaN, to integers that wrap and to arrays without elements,
or by one that has no kernel of the dtype, and computes sums and products in another order. It looks at an operation and
at what makes its operand. It leaves an operation with the attribute `_grappler_do_not_remove` as it is, and often what
is computed from it; where not, another operation between the two, which costs little or nothing, keeps it from that.
What it may know of a tensor is in `optimizer`.

What is traced to be compiled is written so too. XLA sees the same operations, and Grappler sees them first, or alone,
where such a function is put in a graph that is not compiled: in a session, frozen, or by `tf.vectorized_map`.

With oneDNN, which is TensorFlow's default on most processors, it fuses operations too, and a later pass does: those
compute something else where an operand is not what they take it for, or lose NaN.

Source: TensorFlow's arithmetic_optimizer.cc, constant_folding.cc, remapper.cc, grappler_item.cc, mkl_layout_pass.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.kernel_factors import CONVOLUTIONS, PRODUCTS, elements_of, keep_kernel, range_of
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.nodes import constant, elementwise, reduction
from jaxtf.convert._graph.optimizer import (
    is_part_of,
    maker_of,
    may_be_constant,
    may_be_one_of_several,
    may_be_product,
    may_be_result,
    uniform_of,
)
from jaxtf.convert._tf import left_by_grappler, set_number, traces_compiled, vectorized_by

__all__ = [
    "after_matmul",
    "apart_from_pads",
    "before_matmul",
    "between_functions",
    "difference",
    "divided",
    "extreme",
    "hidden",
    "in_order",
    "larger",
    "logarithm",
    "multiplied",
    "negated",
    "relu",
    "sum_of_several",
]

_SUMS = frozenset(("Add", "AddV2", "AddN", "Sub"))
_TAKEN_TOGETHER = _SUMS | PRODUCTS | {"Exp", "Softmax", "Sqrt"}

_square = elementwise("Square", tf.square)

_SQUARED_DIFFERENCE = (
    *(tf.bfloat16, tf.float16, tf.float32, tf.float64),
    *(tf.int32, tf.int64, tf.complex64, tf.complex128),
)


def in_order(op_type: str, function: Callable[..., tf.Tensor]) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """As `nodes.elementwise`, for a sum, a difference, a product or a quotient, whose operands are computed first.

    Grappler takes sums of sums, and products of products, of floating point for sums and products of many, and brings
    constants, or what is smaller, together: `(x * a) * b` becomes `x * (a * b)`, which may be infinite where the
    product is a number, and `1e-8 - (1 - x)` becomes `x + (1e-8 - 1)`. Of a square it takes no factors.
    """
    make = elementwise(op_type, function)
    kind = _SUMS if op_type in _SUMS else PRODUCTS

    def apply(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        if kind is PRODUCTS and not left.dtype.is_integer:
            left, right = _by_constant(left, right), _by_constant(right, left)
        left, right = _beside_matmul(op_type, left, _beside_equal(op_type, right))
        result = make(left, right)
        if result.dtype.is_integer or not tf.is_symbolic_tensor(result):
            return result
        for operand, other in ((left, right), (right, left)):
            maker = maker_of(operand)
            if maker is None:
                continue
            if kind is PRODUCTS:
                keep_kernel(maker, [(op_type, other)])
            is_one = (operand is left or op_type == "Mul") and _is_exact_as_one(maker, op_type, other)
            if maker.type in kind and not (is_one or _is_square(maker)):
                left_by_grappler(maker)
        return result

    return apply


def _is_square(maker: tf.Operation | None) -> bool:
    return maker is not None and maker.type == "Mul" and maker.inputs[0] is maker.inputs[1]


def _by_constant(operand: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """One side of a product or quotient: a square beside a constant as what has no factors.

    Other squares stay products, as which consumers know them in larger forms; Grappler makes squares of them at once.
    """
    maker = maker_of(operand)
    return _square(maker.inputs[0]) if maker is not None and _is_square(maker) and may_be_constant(other) else operand


def _is_exact_as_one(maker: tf.Operation, op_type: str, factor: tf.Tensor) -> bool:
    """Whether `(x * a) * b`, or a quotient, has the value of `x * (a * b)`, as which Grappler computes it.

    So it is where one of the constants is a power of 2 and no part overflows that the whole does not; what is so small
    that it counts as 0 may do so in one of the two only.
    """
    if maker.type not in PRODUCTS or factor.dtype not in (tf.float32, tf.float64):
        return False
    operand, constant_ = maker.inputs
    if maker.type == "Mul" and known_value(constant_) is None:
        operand, constant_ = constant_, operand
    before = maker_of(operand)
    first, second = _scale(maker.type, constant_), _scale(op_type, factor)
    if first is None or second is None or (before is not None and before.type in PRODUCTS | CONVOLUTIONS):
        return False
    return (first <= 1 or second > 1) and 0.5 in (np.frexp(first)[0], np.frexp(second)[0])


def _scale(op_type: str, factor: tf.Tensor) -> float | None:
    """By what size one constant number multiplies; None if it is none, or far from 1."""
    known = known_value(factor)
    if known is None or known.size != 1 or not 2**-10 <= np.abs(known).item() <= 2**10:
        return None
    size = float(np.abs(known).item())
    return size if op_type == "Mul" else 1 / size


def _beside_equal(op_type: str, right: tf.Tensor) -> tf.Tensor:
    """The right operand, which Grappler does not take for the left one where that changes the value.

    Of `x + x`, and of `x - (-x)`, it makes `2 * x`, in which the imaginary part of a complex x is multiplied by 0, and
    the real one too: that is NaN of infinity, and loses the sign of 0.
    """
    is_sum = op_type in _SUMS and right.dtype.is_complex and tf.is_symbolic_tensor(right)
    return hidden(right) if is_sum else right


def _beside_matmul(op_type: str, left: tf.Tensor, right: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The operands of a sum or product, one of which Grappler may fuse with a product of matrices that the other is.

    Of `matmul(x, y) * c + z` with four dimensions Grappler with oneDNN makes one operation, for which it takes the
    first result of what makes `c` and `z`, whichever they are, as of `tf.split`; a function may be called with such.
    """
    if op_type not in ("AddV2", "Mul"):
        return left, right
    operands = [left, right]
    for i, maker in enumerate([maker_of(left), maker_of(right)]):
        if maker is not None and op_type == "AddV2" and maker.type == "Mul":
            makers = [maker_of(x) for x in maker.inputs]
        else:
            makers = [maker] if op_type == "Mul" else []
        is_product = any(made_by is not None and made_by.type == "BatchMatMulV2" for made_by in makers)
        if is_product and may_be_one_of_several(operands[1 - i]):
            operands[1 - i] = hidden(operands[1 - i])
    return operands[0], operands[1]


def before_matmul(left: tf.Tensor) -> None:
    """Has the left operand of a product of matrices be computed before it.

    Of `matmul(x * c, y) + z` Grappler with oneDNN makes `matmul(x, y) * c + z`, where the product may be infinite.
    """
    maker = maker_of(left) if left.dtype.is_floating else None
    if maker is not None and maker.type in PRODUCTS and not _is_square(maker):
        left_by_grappler(maker)


def after_matmul(product: tf.Tensor, contracted: int | None, columns: int | None) -> tf.Tensor:
    """A product of matrices, kept from what Grappler with oneDNN would fuse with it where it may be of nothing.

    With a sum that is fused, one of two dimensions ends the process if nothing is contracted or there are no columns,
    and one of four is 0 if nothing is contracted. There are few such: open sizes are mostly those of the rows.
    """
    if not tf.is_symbolic_tensor(product) or not product.dtype.is_floating:
        return product
    may_end = product.shape.rank == 2 and (contracted is None or columns is None)
    return hidden(product) if may_end or (product.shape.rank == 4 and contracted is None) else product


def apart_from_pads(operand: tf.Tensor, kernel: tf.Tensor, padding: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The operand and the kernel of a convolution, features last, whose padding is `padding`, VALID or SAME.

    TensorFlow with oneDNN makes one operation of Pad and a convolution, which leaves out what is padded in the batch
    and in the features. That of three dimensions leaves out the padding of the convolution too, and its inferred shape
    is without any, so that Grappler takes a transposition that follows for one of sizes 1. Of a kernel that is padded
    the operation ends the process.
    """
    if not tf.is_symbolic_tensor(operand) or not tf.is_symbolic_tensor(kernel):
        return operand, kernel
    maker, maker_of_kernel = maker_of(operand, or_type="Pad"), maker_of(kernel, or_type="Pad")
    if (maker_of_kernel is not None and maker_of_kernel.type == "Pad") or may_be_result(kernel):
        kernel = hidden(kernel)
    if maker is not None and maker.type == "Pad":
        is_apart = operand.shape.rank == 5 or padding != "VALID" or not _pads_between(maker.inputs[1])
        operand = hidden(operand) if is_apart else operand
    elif may_be_result(operand):
        operand = hidden(operand)
    return operand, kernel


def _pads_between(paddings: tf.Tensor) -> bool:
    """Whether the first and the last dimension are known not to be padded."""
    maker = maker_of(paddings)
    rows = known_value(paddings)
    if rows is None and maker is not None and maker.type == "Pack":
        rows = [known_value(row) for row in maker.inputs]
    return rows is not None and all(row is not None and not np.any(row) for row in (rows[0], rows[-1]))


def divided(dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """The quotient of two tensors of inexact numbers, whose shapes broadcast.

    Grappler makes Reciprocal of `1 / x`, and a product with it of `x / c`, which TensorFlow for CPU rounds otherwise
    than quotients: that of 1 is 0.99999994. For `x / c` it is a product with 1 / c here, as XLA has it, or a quotient
    still. Of `x / sqrt(y)` Grappler makes `x * rsqrt(y)`, which may be larger than 1 where y is the square of x.
    """
    are_symbolic = tf.is_symbolic_tensor(dividend) and tf.is_symbolic_tensor(divisor)
    if not are_symbolic or dividend.dtype.is_complex:
        return _DIVIDE(dividend, divisor)  # of complex numbers Reciprocal gives for 0 what XLA gives
    if traces_compiled():
        dividend, divisor = _with_reciprocal(dividend, divisor)
    maker = maker_of(divisor)
    if maker is not None and maker.type == "Sqrt":
        left_by_grappler(maker)
    if may_be_constant(dividend):
        dividend = hidden(dividend)
    if may_be_constant(divisor):
        reciprocal = None if traces_compiled() else _reciprocal(divisor)
        if reciprocal is None:
            divisor = hidden(divisor)
        elif divisor.shape.rank:  # of one number Reciprocal is exact
            return _MULTIPLY(dividend, tf.constant(reciprocal))
    return _DIVIDE(dividend, divisor)


def _with_reciprocal(dividend: tf.Tensor, divisor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A dividend and a divisor of the same quotient, of which the divisor's reciprocal does not count as 0.

    XLA multiplies with the reciprocals of constants. What is an argument in JAX, or computed from positions, may be one
    here.
    """
    is_wide = divisor.dtype.size > 2 or divisor.dtype == tf.bfloat16
    known = elements_of(divisor, also=("BroadcastTo", "Identity")) if is_wide else None
    if known is None:
        return dividend, divisor
    limit = 1 / range_of(divisor.dtype)[0]
    sizes = np.abs(known.astype(np.float64))
    if not ((sizes > limit) & np.isfinite(sizes)).any():
        return dividend, divisor
    quarter, one = (constant(np.asarray(factor, known.dtype)) for factor in (0.25, 1))
    are_large = tf.abs(divisor) > constant(np.asarray(limit, known.dtype))
    factors = tf.where(are_large, quarter, one)  # a quarter of another's dividend may count as 0
    part = dividend * factors  # chosen: XLA would put these factors and the reciprocals together
    return tf.where(tf.math.is_nan(dividend), dividend, part), divisor * factors


def _reciprocal(divisor: tf.Tensor) -> np.ndarray | None:
    """The reciprocals of numbers that are known; None where a product with them is not a quotient as XLA has it.

    So it is where one is so small that it may count as 0, and of 16 bits, which XLA divides in 32.
    """
    known = known_value(divisor)
    if known is None or divisor.dtype.size <= 2:
        return None
    with np.errstate(all="ignore"):
        made = np.divide(1, known, dtype=known.dtype)
    sizes = np.abs(np.stack([made, known])).astype(np.float64)
    return None if ((sizes < range_of(divisor.dtype)[0]) & (sizes > 0)).any() else made


def hidden(tensor: tf.Tensor, name: str = "Identity") -> tf.Tensor:
    """The tensor, as one of which Grappler does not know that it is a constant."""
    same = tf.identity(tensor, name)
    left_by_grappler(same.op)
    vectorized_by(same.op, hidden)
    return same


def sum_of_several(terms: Sequence[tf.Tensor]) -> tf.Tensor:
    """The sum of tensors of one shape in their order, each sum of two rounded.

    TensorFlow's kernel adds in the order of the operands. Grappler sorts them by the names of what makes them, and
    TensorFlow takes two such sums of the same operands for one, whatever their order.
    """
    if not tf.is_symbolic_tensor(terms[0]):
        return tf.add_n(terms)
    if traces_compiled():  # XLA makes one loop of sums of two, each of which is kept
        return reduce(_ADD, terms)
    digits = len(str(len(terms)))
    placed = [hidden(term, f"term_{i:0{digits}}") for i, term in enumerate(terms)]
    for i, term in enumerate(placed):
        set_number(term.op, i)
    result = tf.add_n(placed)
    left_by_grappler(result.op)  # or it is taken into a sum that the result is a term of
    vectorized_by(result.op, lambda *stacked: sum_of_several(stacked), stacks_all=True)
    return result


def relu(operand: tf.Tensor) -> tf.Tensor:
    """The larger of each element and 0; NaN where it is."""
    return _RELU(_before_relu(operand))


def _before_relu(operand: tf.Tensor) -> tf.Tensor:
    """An operand of which the larger of it and 0 is taken apart from what makes it.

    Of a product of matrices or a convolution, a bias and a relu Grappler with oneDNN makes one operation, which gives 0
    for NaN.
    """
    if not tf.is_symbolic_tensor(operand):
        return operand
    maker = maker_of(operand)
    return hidden(operand) if may_be_result(operand) or (maker is not None and maker.type in _SUMS) else operand


def _keep_sum(tensor: tf.Tensor) -> None:
    maker = maker_of(tensor)
    if maker is not None and maker.type in _SUMS:
        left_by_grappler(maker)


def larger(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The larger of each two elements of tensors of numbers, NaN where one is.

    Of `max(x, c * x)` Grappler with oneDNN makes a leaky relu for any c that is not negative, which is another thing if
    c is 0 or larger than 1. It does so too for two results of one operation, as of `tf.split`, and where it has found
    two expressions to be the same x. Of `max(x, 0)` it makes a relu.
    """
    are_symbolic = tf.is_symbolic_tensor(left) and tf.is_symbolic_tensor(right)
    is_leaky_relu = is_part_of(left, right) or is_part_of(right, left)
    if not are_symbolic or not left.dtype.is_floating or is_leaky_relu:
        return _MAXIMUM(left, right)
    if any(uniform_of(x) is not None for x in (left, right)):
        left, right = _before_relu(left), _before_relu(right)
    else:
        _keep_sum(left)
        _keep_sum(right)
        if may_be_product(left) or may_be_product(right):
            left = hidden(left)
    return _MAXIMUM(left, right)


def logarithm(operand: tf.Tensor) -> tf.Tensor:
    """The logarithm.

    Grappler makes Log1p of `log(1 + x)` and of `log(1 - (-x))`, which is x where the sum is 1, and LogSoftmax of
    `log(softmax(x))`, which is a number where the softmax is 0.
    """
    return _LOG(_apart_from(("Add", "AddV2", "Sub", "Softmax"), operand))


def _apart_from(op_types: Collection[str], operand: tf.Tensor) -> tf.Tensor:
    """The operand of an operation that Grappler would take together with one of those types, which makes it."""
    maker = maker_of(operand)
    return operand if maker is None or maker.type not in op_types else hidden(operand)


def between_functions(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """What goes into a function of the graph, or comes out of one; Grappler puts it where it is called."""
    return [_apart_from(_TAKEN_TOGETHER, x) if x.dtype.is_floating or x.dtype.is_complex else x for x in tensors]


_LOG, _MAXIMUM = elementwise("Log", tf.math.log), elementwise("Maximum", tf.maximum)
_RELU = elementwise("Relu", tf.nn.relu)
_ADD, _MULTIPLY, _SUBTRACT = in_order("AddV2", tf.add), in_order("Mul", tf.multiply), in_order("Sub", tf.subtract)
_DIVIDE = in_order("RealDiv", tf.realdiv)


def multiplied(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The product of two tensors of numbers of one dtype, whose shapes broadcast; integers modulo 2**bits.

    Grappler makes SquaredDifference of `(x - y) * (x - y)`, which TensorFlow has of few integers.
    """
    if left.dtype in _SQUARED_DIFFERENCE:
        return _MULTIPLY(left, right)
    return tf.squeeze(_MULTIPLY(tf.expand_dims(left, 0), tf.expand_dims(right, 0)), [0])


def difference(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The difference of two tensors of numbers of one dtype, whose shapes broadcast; integers modulo 2**bits.

    Grappler makes Neg of `0 - x`, which TensorFlow does not have of unsigned integers, and Expm1 of `exp(x) - 1`, which
    is x where the power is 1.
    """
    dtype = left.dtype
    if not dtype.is_unsigned:
        return _SUBTRACT(_apart_from(("Exp",), left), right)
    signed = tf.as_dtype(dtype.name.removeprefix("u"))
    return tf.bitcast(_SUBTRACT(*(tf.bitcast(x, signed) for x in (left, right))), dtype)


def extreme(op_type: str, function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """As `nodes.reduction`, for the greatest or the least.

    Grappler makes `f(max(x))` of `max(f(x))` for functions that it takes for monotonic, and `-max(x)` of `min(-x)`:
    that is another value where `f(x)` is NaN, where `-x` wraps, and where there are no elements.
    """
    reduce = reduction(op_type, function)

    def apply(operand: tf.Tensor, axes: tf.Tensor, keepdims: bool = False) -> tf.Tensor:
        rank = operand.shape.rank
        return tf.squeeze(reduce(tf.expand_dims(operand, rank), axes, keepdims), [-1])

    return apply


def negated(truth: tf.Tensor, *, allows_xla: bool) -> tf.Tensor:
    """The other truth value of each.

    Grappler makes `x >= y` of LogicalNot of `x < y`, which is another value where one is NaN. EnsureShape between the
    two, which any sizes pass, takes no time, and `tf.vectorized_map` keeps it also of what is read from a SavedModel.

    Args:
      truth: Truth values.
      allows_xla: If not, other consumers are expected, of which TF.js takes EnsureShape of known sizes alone. Of the
        operations that they have, LogicalAnd takes the least time; Equal to False takes that of LogicalNot where it
        cannot overwrite its operand, which is so for what a function takes, else three times that.
    """
    made_by = truth.op if tf.is_symbolic_tensor(truth) else None
    if made_by is None or made_by.type in ("Equal", "NotEqual"):
        return tf.logical_not(truth)
    if made_by.type in ("Less", "LessEqual", "Greater", "GreaterEqual") and made_by.inputs[0].dtype.is_integer:
        return tf.logical_not(truth)
    if allows_xla:
        return tf.logical_not(tf.ensure_shape(truth, [None] * truth.shape.rank))
    while made_by.type == "Identity":
        made_by = made_by.inputs[0].op
    if made_by.type == "Placeholder":
        return tf.equal(truth, False)
    return tf.logical_not(tf.logical_and(truth, truth))
