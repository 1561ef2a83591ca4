"""Operations on constants, computed when the program is planned: a random number from a constant key becomes one.

Each is run by its own entry, eagerly and on the CPU, and its results become constants; so is a call of a function that
consists of such operations. Their values are those that the graph would compute. Broadcasts and iotas stay as they are:
consumers of a graph broadcast by themselves, and a graph is not to grow; what is computed from them is folded.

Not folded: what has a result or an operand of more than `MOST_BYTES`, or a size that is known only at run time, and
what the table below does not name: sums and products of arrays, loops, branches, effects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.program import Block, Function, Operation, Program, TensorType, Value, operations_of

__all__ = ["MOST_BYTES", "Folding"]

MOST_BYTES = 1 << 20

_NAMES = """
    abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex concatenate convert cosine
    count_leading_zeros divide exponential exponential_minus_one floor imag iota is_finite log log_plus_one logistic
    maximum minimum multiply negate not or pad popcnt power real remainder reshape reverse round_nearest_afz
    round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine slice sqrt subtract
    tan tanh transpose xor
"""
_FOLDED = frozenset(f"stablehlo.{name}" for name in _NAMES.split()) | frozenset(
    f"chlo.{name}" for name in ("erf", "erf_inv", "erfc", "square")
)

_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}

# Small in a graph, however large what they give is.
_KEPT = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.iota"))

_DTYPES = frozenset(
    (
        *(tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
        *(tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64),
    )
)


class Folding:
    """Folds the blocks of one program.

    Args:
      program: Its functions are those that blocks call.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._emitter = Emitter(program, allows_xla=False, keeps_functions=False)
        self._callable: dict[str, bool] = {}
        self._calls: dict[Any, list[np.ndarray[Any, Any]]] = {}
        self._uses: dict[str, frozenset[int]] = {}
        self._known: dict[Value, np.ndarray[Any, Any] | None] = {}

    def __call__(self, block: Block, sources: Mapping[Value, Operation]) -> Block:
        """The block with constants for what is computed from constants."""
        with tf.init_scope():
            if not tf.executing_eagerly():  # in programs of TensorFlow 1
                return block
            with tf.device("/CPU:0"):
                operations = tuple(made for operation in block.operations for made in self._folded(operation, sources))
        return replace(block, operations=operations)

    def _folded(self, operation: Operation, sources: Mapping[Value, Operation]) -> Sequence[Operation]:
        if not self._is_foldable(operation):
            return (operation,)
        operands = self._operands(operation, sources)
        if operands is None:
            return (operation,)
        try:
            arrays = self._computed(operation, operands)
        except (GraphModeUnsupported, tf.errors.OpError):
            return (operation,)  # it is refused, or raises, where it is used
        self._known.update(zip(operation.results, arrays, strict=True))
        if operation.name in _KEPT:
            return (operation,)
        return [
            Operation("stablehlo.constant", (), (result,), {"value": array}, (), operation.location, operation.source)
            for result, array in zip(operation.results, arrays, strict=True)
        ]

    def _computed(self, operation: Operation, operands: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The results; those of a call that was seen before, with the same arguments, are remembered."""
        callee = operation.attributes.get("callee")
        key = callee, *((operand.dtype.name, operand.shape, operand.tobytes()) for operand in operands)
        if callee is not None and key in self._calls:
            return self._calls[key]
        results = self._emitter.at_once(operation, [tf.constant(operand) for operand in operands])
        arrays = [_compact(result.numpy()) for result in results]
        if callee is not None:
            self._calls[key] = arrays
        return arrays

    def _operands(self, operation: Operation, sources: Mapping[Value, Operation]) -> list[np.ndarray[Any, Any]] | None:
        """The arrays that the operands are known to be; zeros for those that a function takes and does not use."""
        needed = set(operation.operands)
        if operation.name in _CALLS:
            needed = {operation.operands[i] for i in self._needed(operation.attributes[_CALLS[operation.name]])}
        arrays = (self._value(value, sources) if value in needed else _zeros(value) for value in operation.operands)
        known = [array for array in arrays if array is not None]
        return known if len(known) == len(operation.operands) else None

    def _needed(self, name: str) -> frozenset[int]:
        """Which arguments a function uses; sizes are passed on to all functions, whether they use them or not."""
        if name not in self._uses:
            block = self._program.functions[name].body
            used = {*block.returned}
            for operation in operations_of(block):
                inner = _CALLS.get(operation.name)
                if inner is None:
                    used.update(operation.operands)
                else:
                    used.update(operation.operands[i] for i in self._needed(operation.attributes[inner]))
                used.update(value for region in operation.regions for value in region.returned)
            self._uses[name] = frozenset(i for i, argument in enumerate(block.arguments) if argument in used)
        return self._uses[name]

    def _value(self, value: Value, sources: Mapping[Value, Operation]) -> np.ndarray[Any, Any] | None:
        """The array that a value is known to be; None if it is not known, or large."""
        if value not in self._known:
            source = sources.get(value)
            is_constant = source is not None and source.name == "stablehlo.constant" and _is_small(value)
            self._known[value] = source.attributes["value"] if source is not None and is_constant else None
        return self._known[value]

    def _is_foldable(self, operation: Operation) -> bool:
        """Whether an operation may be folded, if its operands are constants."""
        if not operation.results or not all(map(_is_small, operation.results)):
            return False
        if operation.name in _CALLS:
            return self._is_foldable_function(operation.attributes[_CALLS[operation.name]])
        return operation.name in _FOLDED

    def _is_foldable_function(self, name: str) -> bool:
        if name not in self._callable:
            function: Function = self._program.functions[name]
            self._callable[name] = all(
                operation.name == "stablehlo.constant" or self._is_foldable(operation)
                for operation in function.body.operations
            )
        return self._callable[name]


def _is_small(value: Value) -> bool:
    type_ = value.type
    if not isinstance(type_, TensorType) or not type_.is_static or type_.dtype not in _DTYPES:
        return False
    return math.prod(size or 0 for size in type_.shape) * int(type_.dtype.size) <= MOST_BYTES


def _zeros(value: Value) -> np.ndarray[Any, Any] | None:
    """Zeros of the type of a value; None where there are no small ones."""
    if not _is_small(value) or not isinstance(value.type, TensorType):
        return None
    return np.zeros([size or 0 for size in value.type.shape], value.type.dtype.as_numpy_dtype)


def _compact(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array; one element, repeated, where all have the same bytes."""
    array = np.asarray(array)
    if array.size > 1 and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        return np.broadcast_to(array.reshape(-1)[0], array.shape)
    return array
