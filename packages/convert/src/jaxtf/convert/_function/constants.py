"""Large arrays that a function closes over, as tensors or variables outside its module.

An array in a module is bytes in an attribute of the op: copied with it for every eager call, saved
in the graph, whose size has a limit of 2 GB, and compiled into every executable. A `Constant` is
one such array kept out: TensorFlow gets it as an argument. The forward function and its VJPs close
over the same arrays, which are recognised, so each exists once. Needs no JAX.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConstantsTooLarge

__all__ = ["GRAPH_BYTES", "Constant", "Constants", "check_graph_holds"]

# The limit of a protocol buffer, which a graph is.
GRAPH_BYTES = 2**31 - 1


class Constant:
    """One array, as whatever TensorFlow is to get for it.

    Args:
      value: The array; it is kept, so that its memory identifies it.
      name: Of the variable, in a SavedModel.
      as_variable: Whether TensorFlow gets it as a variable, which a SavedModel keeps outside its graph
        and which must be tracked there; else as a tensor, which needs no tracking.
    """

    def __init__(self, value: np.ndarray[Any, Any], name: str, as_variable: bool) -> None:
        self.value = value
        self.as_variable = as_variable
        self._name = name
        self._held: tf.Tensor | tf.Variable | None = None

    @classmethod
    def copy_of(cls, array: np.ndarray[Any, Any]) -> Constant:
        """The constant of a copy of an array; the copy is the memory of the tensor, where that is on the host."""
        with tf.init_scope():
            # A graph of TensorFlow 1 has tensors without memory.
            held = tf.constant(array) if tf.executing_eagerly() else None
        copy = np.array(array) if held is None else np.asarray(held)
        copy.flags.writeable = False
        constant = cls(copy, "constant", as_variable=False)
        constant._held = held
        return constant

    def variable(self) -> tf.Variable:
        """The variable that holds it; not trainable."""
        assert self.as_variable, "only constants that are saved have a variable"
        self.tensor()
        return self._held

    def tensor(self) -> tf.Tensor:
        """The array in the current graph, or in eager mode, where it is the same memory every time."""
        if not self.as_variable and _tf.traces_saved_gradient():
            # Only what the function captures too can be captured by a saved gradient; this is something else.
            return tf.constant(self.value)
        if self._held is not None and tf.executing_eagerly():
            return tf.convert_to_tensor(self._held)
        with tf.init_scope():
            if not tf.executing_eagerly():
                return tf.constant(self.value)  # a graph of TensorFlow 1: nothing outlives it
            if self._held is None and self.as_variable:
                self._held = tf.Variable(self.value, trainable=False, name=self._name)
            elif self._held is None:
                self._held = tf.constant(self.value)
        return tf.convert_to_tensor(self._held)


class Constants:
    """The constants of one converted function, each array once.

    A tensor lives as long as an exported function that takes it; variables are kept, for a SavedModel.

    Args:
      as_variables: As for `Constant`.

    Attributes:
      as_variables: The same.
    """

    def __init__(self, as_variables: bool = False) -> None:
        self.as_variables = as_variables
        self._constants: WeakValueDictionary[Hashable, Constant] = WeakValueDictionary()
        self._copies: WeakValueDictionary[Hashable, Constant] = WeakValueDictionary()
        self._with_variables: list[Constant] = []
        self._lock = threading.Lock()

    def of(self, array: Any) -> Constant:
        """The constant for an array that does not change: the same one for the same memory."""
        value = np.asarray(array)
        with self._lock:
            found = self._constants.get(_memory_of(value))
            if found is None:
                found = Constant(value, f"constant_{len(self._with_variables)}", self.as_variables)
                self._constants[_memory_of(value)] = found
                self._with_variables += [found] * self.as_variables
            return found

    def copy_of(self, array: np.ndarray[Any, Any]) -> Constant:
        """The constant for what an array holds now: of a copy, the last one of the same memory if it holds the same."""
        with self._lock:
            found = self._copies.get(_memory_of(array))
            if found is None or not _hold_the_same(found.value, array):
                found = Constant.copy_of(array)
                self._copies[_memory_of(array)] = self._constants[_memory_of(found.value)] = found
            return found

    def variables(self) -> list[tf.Variable]:
        """The variables of all constants so far."""
        return [constant.variable() for constant in self._with_variables]


def _memory_of(array: np.ndarray[Any, Any]) -> Hashable:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _hold_the_same(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays of a shape and dtype hold the same bytes; compared in parts, which takes no memory."""
    parts = np.nditer([left, right], ["external_loop", "buffered", "zerosize_ok"], buffersize=_PART)
    return all(a.tobytes() == b.tobytes() for a, b in parts)


_PART = 1 << 16


def check_graph_holds(name: str, constants: Sequence[Constant]) -> None:
    """Refuses constants that are captured as tensors and too large for the graph of a SavedModel.

    Raises:
      ConstantsTooLarge: They are; the message gives both sizes.
    """
    size = sum(constant.value.nbytes for constant in constants if not constant.as_variable)
    if size > GRAPH_BYTES:
        raise ConstantsTooLarge(
            f"'{name}' closes over {size:,} bytes of large arrays; the graph of a SavedModel holds up to "
            f"{GRAPH_BYTES:,}\n"
            "  remedy: write it with jaxtf.convert.save_model, which makes variables of them, or pass them as arguments"
        )
