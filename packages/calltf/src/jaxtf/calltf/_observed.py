"""What a call in eager mode runs, observed for derivatives that TensorFlow loses or has wrong.

In eager mode there is no trace to follow, one that was made before may be of other Python state, and to make one runs
the user's Python again. So what is run is observed, and followed as a trace is: what depends on an argument, and by
which operations the derivative of that is lost. Whether a function has a gradient of its own only a trace says. What it
gives is seen as the result of `tf.identity`, of a function's call, or of what no tape records: such losses are not
certain.

Knows what TensorFlow runs eagerly; nothing of arrays or primitives.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from jaxtf.calltf._lost_derivatives import STOPS, lost_in_call, lost_of_operation, may_lose
from jaxtf.calltf._tf import (
    eager_identity,
    eager_type,
    is_function,
    is_unrecorded,
    library_of,
    operation_definition,
)
from jaxtf.calltf._walk import CALLS, Library

__all__ = ["Lost", "Observer"]

_FUNCTIONS_KEPT = 256
_IDENTITIES = ("Identity", "IdentityN")


@dataclass(frozen=True)
class Lost:
    """A derivative that is lost.

    Attributes:
      name: The operation by which it is, with its operand.
      argument: The argument with respect to which it is, by its index.
      is_certain: Whether no function with a gradient of its own may be between it and the result.
    """

    name: str
    argument: int
    is_certain: bool = True


@dataclass(frozen=True)
class _Executed:
    """An operation that ran, as one of a graph has it."""

    type: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    attrs: Sequence[Any]

    @property
    def op_def(self) -> Any:
        """What operations of its type declare; None of a function."""
        return operation_definition(self.type)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute."""
        return self.attrs[self.attrs.index(name) + 1]


class Observer:
    """Follows what depends on arguments; called with what runs, as `observed` does.

    Args:
      arguments: Tensors, by their index.

    Attributes:
      types: Of the operations that ran on what depends on them.
    """

    def __init__(self, arguments: Iterable[tuple[int, Any]]):
        self.types: set[str] = set()
        self._sources: dict[int, int] = {}  # the arguments that a tensor depends on, a bit each, by its identity
        for index, tensor in arguments:
            identity = eager_identity(tensor)
            self._sources[identity] = self._sources.get(identity, 0) | 1 << index
        self._lost: dict[int, frozenset[Lost]] = {}  # by the identity of the tensor

    def lost(self, arguments: Iterable[int], results: Iterable[Any]) -> list[Lost]:
        """What is lost of the derivatives of these tensors with respect to these arguments."""
        asked, found = set(arguments), frozenset[Lost]()
        if self._lost:
            found = found.union(*(self._lost.get(eager_identity(x), ()) for x in results))
        return sorted((each for each in found if each.argument in asked), key=lambda each: each.name)

    def __call__(
        self, kind: str | bytes, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[Any], *_: Any, **of: Any
    ) -> None:
        """One operation."""
        if of.get("graph") is not None:
            return
        sources = self._sources
        found = [sources.get(eager_identity(x), 0) for x in inputs]
        if not any(found):
            return
        type_ = kind if isinstance(kind, str) else kind.decode()
        if type_ in STOPS:
            return
        self.types.add(type_)
        whole = functools.reduce(int.__or__, found)
        depending = [eager_identity(x) for x in outputs if _may_depend(eager_type(x))]
        for identity in depending:
            sources[identity] = whole
        if depending and (self._lost or may_lose(type_) or _calls(type_)):
            self._follow(_Executed(type_, inputs, outputs, attrs), found, depending)

    def _follow(self, op: _Executed, found: Sequence[int], depending: Sequence[int]) -> None:
        """What is lost of the results of an operation."""
        before = frozenset[Lost]().union(*(self._lost.get(eager_identity(x), ()) for x in op.inputs))
        is_certain = not (op.type in _IDENTITIES or _calls(op.type) or is_unrecorded())
        if not is_certain:
            before = frozenset(Lost(each.name, each.argument, is_certain=False) for each in before)
        by_it: dict[int, set[Lost]] = {}
        if may_lose(op.type) or _calls(op.type):
            for argument in range(functools.reduce(int.__or__, found).bit_length()):
                depends = tuple(bool(bits >> argument & 1) for bits in found)
                for i, names in enumerate(_names(op, depends) if any(depends) else ()):
                    by_it.setdefault(eager_identity(op.outputs[i]), set()).update(
                        Lost(name, argument, is_certain) for name in names
                    )
        for identity in depending:
            if lost := before.union(by_it.get(identity, ())):
                self._lost[identity] = lost


@functools.cache
def _may_depend(number: int | None) -> bool:
    """Whether tensors of a type, given by its number, are of numbers that have derivatives, or may hold such."""
    if number is None:
        return False
    dtype = tf.as_dtype(number)
    return bool(dtype.is_floating or dtype.is_complex or dtype in (tf.variant, tf.resource, tf.string))


@functools.lru_cache(_FUNCTIONS_KEPT)
def _calls(type_: str) -> bool:
    """Whether it calls a function, by its own name or as an operation that does."""
    return type_ in CALLS or is_function(type_)


def _names(op: _Executed, depends: tuple[bool, ...]) -> Sequence[frozenset[str]]:
    """What each result of an operation loses by it."""
    if not _calls(op.type):
        return lost_of_operation(op, depends)
    name = op.get_attr("f") if op.type in CALLS else op.type
    return _lost_in_function(name if isinstance(name, str) else name.decode(), depends)


@functools.lru_cache(_FUNCTIONS_KEPT)
def _lost_in_function(name: str, depends: tuple[bool, ...]) -> Sequence[frozenset[str]]:
    return lost_in_call(Library(library_of(name)), name, depends)
