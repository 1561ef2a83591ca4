"""What a call in eager mode runs, observed for derivatives that TensorFlow may lose or have wrong.

In eager mode there is no trace to follow, and to make one runs the user's Python again. So what is run is observed: if
an operation that may lose a derivative gets what depends on an argument, there is reason for a trace, which says
whether it does (a function with a gradient of its own hides what it runs; that is not seen here).

Knows what TensorFlow runs eagerly; nothing of arrays or primitives.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from jaxtf.calltf._lost_derivatives import STOPS, lost_in_call, lost_of_operation, may_lose
from jaxtf.calltf._tf import eager_identity, eager_type, is_function, library_of, operation_definition
from jaxtf.calltf._walk import CALLS, Library

__all__ = ["Observer"]

_FUNCTIONS_KEPT = 256
_MAY_DEPEND = frozenset(
    dtype.as_datatype_enum
    for dtype in (
        *(tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128),
        *(tf.variant, tf.resource, tf.string),
    )
)


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
    """

    def __init__(self, arguments: Iterable[tuple[int, Any]]):
        self._sources: dict[int, int] = {}  # the arguments that a tensor depends on, a bit each, by its identity
        for index, tensor in arguments:
            identity = eager_identity(tensor)
            self._sources[identity] = self._sources.get(identity, 0) | 1 << index
        self._lost: dict[str, int] = {}

    def lost(self, arguments: Iterable[int]) -> list[str]:
        """Operations by which the derivatives with respect to these arguments may be lost, each with its operand."""
        asked = sum(1 << index for index in set(arguments))
        return sorted(name for name, sources in self._lost.items() if sources & asked)

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
        whole = functools.reduce(int.__or__, found)
        is_lossy = False
        for x in outputs:
            if eager_type(x) in _MAY_DEPEND:
                sources[eager_identity(x)] = whole
                is_lossy = True
        if is_lossy and (may_lose(type_) or _calls(type_)):
            for name in _names(_Executed(type_, inputs, outputs, attrs), tuple(map(bool, found))):
                self._lost[name] = self._lost.get(name, 0) | whole


@functools.lru_cache(_FUNCTIONS_KEPT)
def _calls(type_: str) -> bool:
    """Whether it calls a function, by its own name or as an operation that does."""
    return type_ in CALLS or is_function(type_)


def _names(op: _Executed, depends: tuple[bool, ...]) -> frozenset[str]:
    if not _calls(op.type):
        return lost_of_operation(op, depends)
    name = op.get_attr("f") if op.type in CALLS else op.type
    return _lost_in_function(name if isinstance(name, str) else name.decode(), depends)


@functools.lru_cache(_FUNCTIONS_KEPT)
def _lost_in_function(name: str, depends: tuple[bool, ...]) -> frozenset[str]:
    return lost_in_call(Library(library_of(name)), name, depends)
