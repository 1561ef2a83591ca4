"""The values that variables have in a program: those that they had when the call that reads them was traced.

A program is differentiated, exported, and lowered for another platform, whenever somebody asks for that, and variables
may have been assigned to since. So a call that is staged comes with the values of what it captures, and its
derivatives and batches have the same.

Knows TensorFlow; nothing of traces or primitives.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._declared import shape_text
from jaxtf.calltf._errors import LIMITATIONS, CaptureWarning
from jaxtf.calltf._notes import users_level
from jaxtf.calltf._tf import outside_of_graphs

__all__ = ["Captures", "captures_text", "warn_of_captures"]


class Captures:
    """Values of variables, each as it was when it was first asked for; equal only to itself.

    Reading a variable copies nothing: it has other memory once it is assigned to.

    It is what is called, not a method of it: JAX's caches, which hold parameters of primitives, hold those that can be
    called weakly (JAX 0.10.2 and 0.12.0.1), so that the values go with the program.

    Args:
      are_constants: Whether they are those of a program, which may run after variables have been assigned to.
    """

    def __init__(self, are_constants: bool = False) -> None:
        self.are_constants = are_constants
        self._values: dict[int, tuple[Any, Any]] = {}

    def __repr__(self) -> str:
        return "<values>"

    def __call__(self, captured: Sequence[Any]) -> list[Any]:
        """Of variables their values, of tensors themselves."""
        return [self._value(each) if isinstance(each, tf.Variable) else each for each in captured]

    def _value(self, variable: Any) -> Any:
        handle = variable.handle  # kept, so that no other one gets its number
        if id(handle) not in self._values:
            with outside_of_graphs():
                self._values[id(handle)] = handle, variable.read_value()
        return self._values[id(handle)][1]


def captures_text(captured: Sequence[Any]) -> str:
    """Variables and tensors, as messages name them."""
    return ", ".join(
        f"{'tf.Variable ' + each.name if isinstance(each, tf.Variable) else 'tf.Tensor'}"
        f" {each.dtype.name}{shape_text(each.shape)}"
        for each in captured
    )


def warn_of_captures(function: str, captured: Sequence[Any]) -> None:
    """Warns that the values of captured variables and tensors are constants."""
    if captured:
        warnings.warn(
            "call_tf works best with a TensorFlow function that does not capture variables or tensors from the "
            f"context. The following captures were found in {function}: {captures_text(captured)}. Their values, as "
            "they were when it was traced, become constants of the program\n"
            f"  remedy: pass them as arguments; see {LIMITATIONS}",
            CaptureWarning,
            stacklevel=users_level(2),
        )
