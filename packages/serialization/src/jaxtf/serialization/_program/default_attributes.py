"""Attributes of operations that have their default, which one producer writes out and another leaves out.

They say nothing: a program does not have them, so that whoever looks for a form finds it whatever wrote the module.
What is not sure to be the default stays.
"""

from __future__ import annotations

from typing import Any

__all__ = ["without_defaults"]

_COMPARE_TYPE, _ACCURACY = "compare_type", "result_accuracy"
_DEFAULT_ACCURACY = "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"


def without_defaults(attributes: dict[str, Any], operation: Any) -> dict[str, Any]:
    """The attributes of an operation but for a type of comparison, and an accuracy, that are the default.

    Args:
      attributes: By name.
      operation: In MLIR's bindings.
    """
    left_out = set()
    if _COMPARE_TYPE in attributes and attributes[_COMPARE_TYPE] in ("NOTYPE", _compare_type(operation)):
        left_out.add(_COMPARE_TYPE)
    if attributes.get(_ACCURACY) == _DEFAULT_ACCURACY:
        left_out.add(_ACCURACY)
    return {name: value for name, value in attributes.items() if name not in left_out} if left_out else attributes


def _compare_type(comparison: Any) -> str:
    """How arrays are compared where nothing else is asked for."""
    element = str(comparison.operands[0].type.element_type)
    if element == "i1" or element.startswith("ui"):
        return "UNSIGNED"
    return "SIGNED" if element.startswith("i") else "FLOAT"
