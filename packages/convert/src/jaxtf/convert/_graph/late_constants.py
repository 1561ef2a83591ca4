"""Which tensors of a graph an optimizer may find to be constants where the one who emits operations does not.

A function of a graph, be it the whole program in a SavedModel, is put where it is called, perhaps with constants or
arrays of known sizes, and what is computed from constants and sizes alone is computed when the graph is optimized.
Then `x * c` may be `x`, which hides what makes x. So operations that give another value, or may give their operand,
take such a tensor as one that is not a constant (`hidden`). Weights of products of matrices stay constants, which are
prepared once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph.broadcasts import EXPAND
from jaxtf.convert._graph.grappler import hidden
from jaxtf.convert._graph.optimizer import MOST_ELEMENTS_LOOKED_AT, uniform_of
from jaxtf.convert._graph.reshapes import RESHAPE

__all__ = ["LateConstants"]

_MOVES = """
    bitcast_convert broadcast broadcast_in_dim concatenate convert dynamic_broadcast_in_dim dynamic_reshape
    optimization_barrier reshape reverse slice transpose
"""
# They give the elements that they take; what is found to be a constant is one after them.
_MOVE_ELEMENTS = frozenset((RESHAPE, EXPAND, *(f"stablehlo.{name}" for name in _MOVES.split())))
# They take tensors as they are: what is called looks at them, or only their sizes are used.
_TAKE_AS_THEY_ARE = frozenset(
    (
        *("func.call", "stablehlo.composite", "custom_call.tf.call_tf_function"),
        *("stablehlo.get_dimension_size", "custom_call.shape_assertion"),
    )
)
# They say where elements are, or how many, by operands that entries look at.
_MOVE_BY_SIZES = ".dynamic_", ".real_dynamic_", ".set_dimension_size"
# What their regions use is not among their operands.
_HAVE_REGIONS = frozenset(f"stablehlo.{name}" for name in ("case", "if", "while"))
_CONTRACTIONS = frozenset(f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "dynamic_conv"))


class LateConstants:
    """Those of one graph, while a program is emitted there.

    Args:
      outer: Those of the graph around, of which tensors are used here.
    """

    def __init__(self, outer: LateConstants | None = None) -> None:
        self._outer = outer
        self._given: set[Any] = set()
        self._computed: set[Any] = set()
        self._hidden: dict[Any, tf.Tensor] = {}

    def add_arguments(self, arguments: Sequence[Any]) -> None:
        """Of a function of the graph, or of the whole program."""
        self._given.update(x.ref() for x in arguments if tf.is_symbolic_tensor(x) and not _is_looked_at(x))

    def operands(self, name: str, operands: Sequence[Any]) -> list[Any]:
        """What the operation of that name is to take."""
        if not operands or name in _TAKE_AS_THEY_ARE or name in _MOVE_ELEMENTS:
            return list(operands)
        if self._computes_constants(name, operands):
            return list(operands)
        if name in _CONTRACTIONS:
            is_apart = all(self._is_given(x) or self._is_computed(x) for x in operands[:2])
            return [self._apart(operands[0]), *operands[1:]] if is_apart else list(operands)
        if any(part in name for part in _MOVE_BY_SIZES):
            return [self._apart(x) if self._is_given(x) else x for x in operands]
        return [self._apart(x) for x in operands]

    def add_results(self, name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """The results of an operation, and the operands that it has in the program."""
        if name == "stablehlo.get_dimension_size" or self._computes_constants(name, operands):
            self._computed.update(x.ref() for x in results if tf.is_symbolic_tensor(x))
        elif name in _MOVE_ELEMENTS and all(self._is_given(x) or self._is_computed(x) for x in operands):
            self._given.update(x.ref() for x in results if tf.is_symbolic_tensor(x))

    def _computes_constants(self, name: str, operands: Sequence[Any]) -> bool:
        return name not in _HAVE_REGIONS and all(map(self._is_computed, operands))

    def _apart(self, tensor: Any) -> Any:
        if not self._is_given(tensor) and (not self._is_computed(tensor) or _is_constant(tensor)):
            return tensor
        key = tensor.ref()
        if key not in self._hidden:
            self._hidden[key] = hidden(tensor)
        return self._hidden[key]

    def _is_given(self, tensor: Any) -> bool:
        """Whether it is an argument, or has the elements of arguments."""
        if not tf.is_symbolic_tensor(tensor):
            return False
        return tensor.ref() in self._given or (self._outer is not None and self._outer._is_given(tensor))

    def _is_computed(self, tensor: Any) -> bool:
        """Whether it is a constant, or computed from constants and sizes alone."""
        if not tf.is_symbolic_tensor(tensor):
            return False
        if tensor.ref() in self._computed or (_is_constant(tensor) and not self._is_given(tensor)):
            return True
        return self._outer is not None and self._outer._is_computed(tensor)


def _is_constant(tensor: tf.Tensor) -> bool:
    return tensor.op.type == "Const" or uniform_of(tensor) is not None


def _is_looked_at(tensor: tf.Tensor) -> bool:
    """Whether it is a constant of which is known what it is."""
    is_small = tensor.op.type == "Const" and (tensor.shape.num_elements() or 0) <= MOST_ELEMENTS_LOOKED_AT
    return is_small or uniform_of(tensor) is not None
