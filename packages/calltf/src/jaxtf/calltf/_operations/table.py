"""`RULES`, the entries by the type of an operation, and what entries share to write operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter, Rule
from jaxtf.calltf._symbolic_values import Known, Value

RULES: dict[str, Rule] = {}
INTEGERS = (tf.int32, tf.int64)


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Enters a function for operations of some types."""

    def enter(function: Rule) -> Rule:
        for type_ in types:
            assert type_ not in RULES, type_
            RULES[type_] = function
        return function

    return enter


def moving(i: Interpreter, op: Any, inputs: list[Value], data: Sequence[int]) -> Known | None:
    """The elements of the only result of an operation that moves those of some operands; None if not known."""
    known = i.moved(op, inputs, data)
    return None if known is None else known[0]


def type_attribute(dtype: Any) -> Any:
    """A dtype as an attribute of an operation."""
    return tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)
