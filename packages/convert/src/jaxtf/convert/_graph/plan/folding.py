"""Operations on constants, computed when the program is planned: a random number from a constant key becomes one.

Each is run by its own entry, eagerly and on the CPU, and its results become constants; so is a call of a function that
consists of such operations. Their values are those that the graph would compute. Broadcasts and iotas stay as they are:
consumers of a graph broadcast by themselves, and a graph is not to grow; what is computed from them is folded. They are
computed when that is. What has been computed once, with the same operands, is not computed again: layers are alike.

Not folded: what has a result or an operand of more than `MOST_BYTES`, or a size that is known only at run time, and
what the table below does not name: sums and products of arrays, loops, branches, effects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.emit import Emitter
from jaxtf.serialization.interop import Block, Function, Operation, Program, TensorType, Value, operations_of

__all__ = ["MOST_BYTES", "Folding"]

MOST_BYTES = 1 << 20

# Arrays of more bytes are compared by a digest.
_DIGESTED_BYTES = 256

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
        self._made: dict[Any, list[np.ndarray[Any, Any]]] = {}
        self._uses: dict[str, frozenset[int]] = {}
        self._known: dict[Value, np.ndarray[Any, Any]] = {}
        self._later: dict[Value, Operation] = {}
        with tf.init_scope():
            self._is_eager = tf.executing_eagerly()  # not in programs of TensorFlow 1

    def __call__(self, block: Block, sources: Mapping[Value, Operation]) -> Block:
        """The block with constants for what is computed from constants."""
        if not self._is_eager:
            return block
        operations = tuple(made for operation in block.operations for made in self._folded(operation, sources))
        return replace(block, operations=operations)

    def _folded(self, operation: Operation, sources: Mapping[Value, Operation]) -> Sequence[Operation]:
        if not self._is_foldable(operation) or not all(
            self._is_known(value, sources) if is_needed else _is_small(value)
            for value, is_needed in self._operands(operation)
        ):
            return (operation,)
        if operation.name in _KEPT:
            self._later[operation.results[0]] = operation
            return (operation,)
        try:
            arrays = self._computed(operation, sources)
        except (GraphModeUnsupported, tf.errors.OpError):
            return (operation,)  # it is refused, or raises, where it is used
        self._known.update(zip(operation.results, arrays, strict=True))
        return [
            Operation("stablehlo.constant", (), (result,), {"value": array}, (), operation.location, operation.source)
            for result, array in zip(operation.results, arrays, strict=True)
        ]

    def _computed(self, operation: Operation, sources: Mapping[Value, Operation]) -> list[np.ndarray[Any, Any]]:
        """The results of an operation whose operands are known; those of one that was seen before are remembered."""
        arrays = [
            self._value(value, sources) if is_needed else _zeros(value)
            for value, is_needed in self._operands(operation)
        ]
        key = _key(operation, arrays)
        if key not in self._made:
            with tf.init_scope(), tf.device("/CPU:0"):
                results = self._emitter.at_once(operation, list(map(tf.constant, arrays)))
            self._made[key] = [_compact(result.numpy()) for result in results]
        return self._made[key]

    def _operands(self, operation: Operation) -> list[tuple[Value, bool]]:
        """The operands, and whether each is used: a function may take what it does not use."""
        if operation.name not in _CALLS:
            return [(value, True) for value in operation.operands]
        needed = self._needed(operation.attributes[_CALLS[operation.name]])
        used = {operation.operands[i] for i in needed}
        return [(value, value in used) for value in operation.operands]

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

    def _is_known(self, value: Value, sources: Mapping[Value, Operation]) -> bool:
        """Whether it is known which array a value is; a large one is not looked at."""
        if value in self._known or value in self._later:
            return True
        source = sources.get(value)
        if source is None or source.name != "stablehlo.constant" or not _is_small(value):
            return False
        self._known[value] = source.attributes["value"]
        return True

    def _value(self, value: Value, sources: Mapping[Value, Operation]) -> np.ndarray[Any, Any]:
        """The array that a value is known to be."""
        if value not in self._known:
            (self._known[value],) = self._computed(self._later[value], sources)
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


def _zeros(value: Value) -> np.ndarray[Any, Any]:
    """Zeros of the type of a value that is small."""
    type_ = value.type
    assert isinstance(type_, TensorType), "what is small is an array"
    return np.zeros([size or 0 for size in type_.shape], type_.dtype.as_numpy_dtype)


def _key(operation: Operation, arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    """What the results of an operation depend on."""
    types = tuple(result.type for result in operation.results)
    return operation.name, _hashable(operation.attributes), types, *map(_hashable, arrays)


def _hashable(value: Any) -> Any:
    """What is equal for attributes and arrays that are."""
    if isinstance(value, np.ndarray):
        data = value.tobytes()
        return value.dtype, value.shape, data if len(data) < _DIGESTED_BYTES else blake2b(data).digest()
    if isinstance(value, Mapping):
        return tuple((name, _hashable(item)) for name, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, tuple) else value


def _compact(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array; one element, repeated, where all have the same bytes."""
    array = np.asarray(array)
    if array.size > 1 and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        return np.broadcast_to(array.reshape(-1)[0], array.shape)
    return array
