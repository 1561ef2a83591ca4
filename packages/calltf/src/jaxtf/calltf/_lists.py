"""Lists of tensors that TensorFlow's compiler takes for others.

It compiles a list to one array of all the elements that there is room for. What is appended and taken in turn, as the
gradients of loops do, is right. What reads how many elements there are sees all that there is room for, and a list of
given size does not grow (TensorFlow 2.21).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._graph import op_types
from jaxtf.calltf._walk import BRANCHES, LOOPS, Walk, branch_names, walked

__all__ = ["misread_lists"]

_APPENDS = frozenset({"TensorListPopBack", "TensorListPushBack"})
_GROWS = "EmptyTensorList"
_OF_ONE_ELEMENT = _APPENDS | {"TensorListElementShape", "TensorListGetItem"}
_GIVES_ELEMENT = {"TensorListGetItem": 0, "TensorListPopBack": 1}  # by the index of the result
_TAKES_ELEMENT = {"TensorListPushBack": 1, "TensorListSetItem": 2}  # by the index of the operand

_Made = frozenset[Any]  # the operations that may have made a list; none of any other tensor


def misread_lists(concrete: Any) -> list[str]:
    """Types of the operations that read or write a list otherwise when they are compiled; sorted."""
    if not {_GROWS, *_APPENDS}.intersection(op_types(concrete)):
        return []
    return sorted(_Lists(concrete).misread())


class _Lists:
    def __init__(self, concrete: Any):
        self._walk = Walk(concrete)
        self._misread: set[str] = set()
        self._elements: dict[Any, _Made] = defaultdict(frozenset)  # of a list of lists, by what made it

    def misread(self) -> set[str]:
        graph = self._walk.graph
        before = None
        while before != self._elements:
            before = dict(self._elements)
            self._results(graph, [frozenset()] * len(graph.inputs))
        return self._misread

    def _results(self, graph: Any, operands: Sequence[_Made]) -> list[_Made]:
        return walked(graph, operands, self._operation)

    def _operation(self, op: Any, operands: list[_Made]) -> list[_Made]:
        if (body := self._walk.called(op)) is not None:
            return self._results(body, operands)
        if op.type in BRANCHES:
            return self._branches(op, operands[1:])
        if op.type in LOOPS:
            return self._loop(op, operands)
        if all(x.dtype != tf.variant for x in (*op.inputs, *op.outputs)):
            return [frozenset()] * len(op.outputs)
        if op.type.startswith("TensorList") and operands:
            self._look_at(op, operands)
        if op.type.startswith(("TensorList", _GROWS)) and all(x.dtype != tf.variant for x in op.inputs):
            whole = frozenset({op})
        else:
            whole = operands[0] if op.type in _TAKES_ELEMENT else frozenset().union(*operands)
        found = [whole if x.dtype == tf.variant else frozenset() for x in op.outputs]
        if op.type in _GIVES_ELEMENT and op.outputs[_GIVES_ELEMENT[op.type]].dtype == tf.variant:
            found[_GIVES_ELEMENT[op.type]] = frozenset().union(*(self._elements[made] for made in operands[0]))
        return found

    def _look_at(self, op: Any, operands: list[_Made]) -> None:
        for made in operands[0]:
            if op.type not in _OF_ONE_ELEMENT if made.type == _GROWS else op.type in _APPENDS:
                self._misread.add(op.type)
            if op.type in _TAKES_ELEMENT:
                self._elements[made] |= operands[_TAKES_ELEMENT[op.type]]

    def _branches(self, op: Any, operands: list[_Made]) -> list[_Made]:
        columns = zip(*(self._results(self._walk.body(name), operands) for name in branch_names(op)), strict=True)
        return [frozenset[Any]().union(*column) for column in columns]

    def _loop(self, op: Any, operands: list[_Made]) -> list[_Made]:
        body, condition = (self._walk.body(op.get_attr(name).name) for name in ("body", "cond"))
        while True:
            after = [one | other for one, other in zip(operands, self._results(body, operands), strict=True)]
            if after == operands:
                self._results(condition, operands)
                return after
            operands = after
