"""Operations that TensorFlow's compiler computes wrongly or not at all, written with others that it computes rightly.

The place of the largest number is that of a NaN; `-0.` is less than `0.`; `tf.debugging.enable_check_numerics` adds
what does not compile; what else there is has modules of its own. A trace that has them is written again. What writes to
variables stays as it is, to be refused.

Source: what TensorFlow 2.21 computes where it does not compile.
Knows graphs of TensorFlow; nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf import _replaced_images as images
from jaxtf.calltf import _special_values as special
from jaxtf.calltf._complex_inverses import OLDER
from jaxtf.calltf._graph import nodes, stateful_ops, variable_writes
from jaxtf.calltf._walk import emitted
from jaxtf.calltf._writer import Writer

__all__ = ["with_replacements"]


def with_replacements(concrete: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
    """What computes the results of a trace, and asserts, rightly when compiled; None if the trace itself does."""
    if not any(_is_wrong(node) for node in nodes(concrete)):
        return None
    if variable_writes(stateful_ops(concrete)):
        return None
    return Writer(concrete, _replaced)


def _is_wrong(node: Any) -> bool:
    return node.op in _REPLACEMENTS and node.attr["T"].type in _REPLACEMENTS[node.op][0]


def _replaced(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any] | None:
    return _REPLACEMENTS[op.type][1](op, operands) if _is_wrong(op.node_def) else None


def _place(op: Any, operands: list[Any]) -> Sequence[Any]:
    """A NaN is neither the largest nor the smallest."""
    values, *axes = operands
    least = tf.constant(float("-inf" if op.type == "ArgMax" else "inf"), values.dtype)
    return emitted(op, [tf.where(tf.not_equal(values, values), least, values), *axes])


def _order(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Places are those of numbers among which `-0.` is `0.`; the numbers keep their signs."""
    values, *others = operands
    numbers, *_ = emitted(op, operands)
    _, *places = emitted(op, [tf.where(tf.equal(values, 0), tf.zeros([], values.dtype), values), *others])
    return [numbers, *places]


def _unique(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Of numbers among which `-0.` is `0.`."""
    values, *others = operands
    return emitted(op, [tf.where(tf.equal(values, 0), tf.zeros([], values.dtype), values), *others])


def _counted(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Of all elements, not of those of each row."""
    numbers, size, weights = operands
    return emitted(op, [tf.reshape(numbers, [-1]), size, tf.reshape(weights, [-1])])


def _eigenvalues(op: Any, operands: list[Any]) -> Sequence[Any] | None:
    """Alone: no vectors, where none are asked for."""
    if op.get_attr("compute_v"):
        return None
    values, vectors = emitted(op, operands)
    return [values, tf.zeros([0], vectors.dtype)]


def _no_summary(op: Any, operands: list[Any]) -> Sequence[Any]:
    """That there is no NaN: what `enable_check_numerics` adds asserts it, and assertions are left out."""
    return [tf.zeros([3], op.outputs[0].dtype)]


def _enums(*dtypes: Any) -> frozenset[int]:
    return frozenset(dtype.as_datatype_enum for dtype in dtypes)


_FLOATING = _enums(tf.float16, tf.bfloat16, tf.float32, tf.float64)
_INEXACT = _FLOATING | _enums(tf.complex64, tf.complex128)
_INTEGERS = _enums(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)
# Of which dtypes `T`, as the operation has it.
_REPLACEMENTS: Mapping[str, tuple[frozenset[int], Callable[[Any, list[Any]], Sequence[Any] | None]]] = {
    **OLDER,
    "AdjustHue": (_FLOATING, images.turned_hue),
    **dict.fromkeys(("ArgMax", "ArgMin"), (_FLOATING, _place)),
    **dict.fromkeys(("Bucketize", "UpperBound"), (_FLOATING, special.beyond_all)),
    "Bincount": (_FLOATING | _INTEGERS, _counted),
    "ClipByValue": (_FLOATING | _INTEGERS, special.clipped),
    "DebugNumericSummaryV2": (_FLOATING, _no_summary),
    **dict.fromkeys(("EluGrad", "SeluGrad"), (_FLOATING, special.activation_slopes)),
    "ExtractImagePatches": (_INEXACT | _INTEGERS, images.patches),
    **dict.fromkeys(("InTopK", "InTopKV2"), (_INTEGERS, special.in_top_k)),
    **dict.fromkeys(("Igamma", "IgammaGradA", "Igammac"), (_FLOATING, special.incomplete_gamma)),
    "Mean": (_INTEGERS, special.mean_of_integers),
    **dict.fromkeys(("Polygamma", "Zeta"), (_FLOATING, special.at_infinity)),
    **dict.fromkeys(("ReciprocalGrad", "RsqrtGrad", "SqrtGrad"), (_FLOATING, special.slopes_of_zero)),
    "ResizeBilinear": (
        _FLOATING | _enums(tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64),
        images.resized,
    ),
    "ResizeBilinearGrad": (_FLOATING, images.resize_slopes),
    "SelfAdjointEigV2": (_INEXACT, _eigenvalues),
    "Sign": (_FLOATING, special.sign),
    **dict.fromkeys(("TopKV2", "TopK"), (_FLOATING, _order)),
    **dict.fromkeys(("Unique", "UniqueV2"), (_FLOATING, _unique)),
}
