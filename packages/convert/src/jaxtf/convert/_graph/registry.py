"""The table of operations that graph mode translates: one small entry each (`translates`), or a reason (`refuses`).

`ops` holds the entries by family; `ops/__init__.py` imports every family by name. A second entry for a name is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from jaxtf.serialization.interop import BoundOperation, Operation, Value

__all__ = ["Bound", "Entry", "refuses", "registered", "translates"]

Tensors = Any  # a tf.Tensor or several
Apply = Callable[..., list[tf.Tensor]]


@dataclass(frozen=True)
class Bound(BoundOperation):
    """An operation where it is emitted: what it is, and what its entry may use.

    Attributes:
      regions: For each region, a function of tensors that emits it and returns what it returns. Constants that
        it uses from outside are emitted again inside when it is called in another graph.
      allows_xla: Whether TensorFlow's XLA operations may be used.
      call: Emits a call of a function of the module, by name: one `tf.function` for all its calls.
      constant: A small array or a list of integers (int32) as a tensor of the graph in which the operation is: one for
        all who ask for the same. Not for what an entry emits in graphs of its own.
      functions: Those of TensorFlow that the module calls by their index.
      scans: Whether cumulative sums and products are to be associative scans.
      is_differentiated: Whether TensorFlow's tapes see the operations, so that results need gradients of their own
        where those of the operations are not right (`derivatives`).
      constants: The operations of the module that are constants, by their results.
      effects: Takes operations of the current graph that are to run before the results of the program are there.
    """

    regions: tuple[Apply, ...]
    allows_xla: bool
    call: Callable[[str, Sequence[tf.Tensor]], list[tf.Tensor]]
    constant: Callable[[Any], tf.Tensor]
    functions: Sequence[Any] = ()
    scans: bool = False
    is_differentiated: bool = False
    constants: Mapping[Value, Operation] = field(default_factory=dict)
    effects: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """What is known about one operation.

    Attributes:
      name: Of the operation.
      emit: From the bound operation and its operands to its results; None where it is refused.
      computed_in: A wider dtype to compute in for those dtypes that TensorFlow has no kernel for.
      needs_xla: In words, for which uses plain operations do not do; empty if always.
      reason: Why it is refused, in words; empty if it is not.
      remedy: What to do instead of it; empty where native mode does.
      differs: How results differ from XLA's, in words; empty if they do not.
    """

    name: str
    emit: Callable[..., Tensors] | None
    computed_in: Mapping[tf.DType, tf.DType]
    needs_xla: str = ""
    reason: str = ""
    differs: str = ""
    remedy: str = ""


_ENTRIES: dict[str, Entry] = {}


def translates(
    *names: str, computed_in: Mapping[tf.DType, tf.DType] | None = None, needs_xla: str = "", differs: str = ""
) -> Callable[[Callable[..., Tensors]], Callable[..., Tensors]]:
    """Makes the decorated function the entry of these operations: `emit(bound, *operands) -> tensor or tensors`."""

    def register(emit: Callable[..., Tensors]) -> Callable[..., Tensors]:
        for name in names:
            _add(Entry(name, emit, computed_in or {}, needs_xla=needs_xla, differs=differs))
        return emit

    return register


def refuses(*names: str, reason: str, remedy: str = "") -> None:
    """Says why these operations are not translated, and what to do where native mode does not do either."""
    for name in names:
        _add(Entry(name, None, {}, reason=reason, remedy=remedy))


def registered() -> Mapping[str, Entry]:
    """The entries of the families that have been imported, by the name of the operation; `table` has them all."""
    return _ENTRIES


def _add(entry: Entry) -> None:
    assert entry.name not in _ENTRIES, f"{entry.name} has an entry already"
    _ENTRIES[entry.name] = entry
