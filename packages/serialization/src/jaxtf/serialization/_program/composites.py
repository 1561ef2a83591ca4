"""Composites that are operations: those that StableHLO writes for operations of CHLO in an artifact.

An operation of CHLO that has no form in VHLO is written as a composite of its name and version 1, with its attributes,
and with its definition as the decomposition, `chlo.erf.impl`. A composite of the user (`jax.lax.composite`) may have
any name: it is its decomposition, which JAX names as the composite, with version 0 unless it is told another one.

Source: what StableHLO 1.17 (jaxlib 0.10.2 and 0.12) writes.
"""

from __future__ import annotations

from dataclasses import replace

from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["of_chlo"]

_VERSION = 1
_NAMES = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "erfc", "sinh")
_ELEMENTWISE = frozenset(f"chlo.{name}" for name in _NAMES)
_ATTRIBUTES = {"chlo.top_k": ({"k"}, {"k", "is_stable"})}


def of_chlo(operation: Operation) -> Operation | None:
    """The operation of CHLO that a composite was written for; None for what is not such a composite."""
    if operation.name != "stablehlo.composite" or operation.attributes.get("version", 0) != _VERSION:
        return None
    name, attributes = operation.attributes["name"], dict(operation.attributes.get("composite_attributes", {}))
    if not str(operation.attributes["decomposition"]).startswith(f"{name}.impl"):
        return None
    values = (*operation.operands, *operation.results)
    types = [value.type for value in values if isinstance(value.type, TensorType)]
    if len(types) != len(values):
        return None
    dtypes, ranks = [type_.dtype for type_ in types], {type_.rank for type_ in types}
    if name in _ELEMENTWISE:
        is_one = not attributes and len(types) == 2 and len(set(dtypes)) == len(ranks) == 1
    else:
        is_top_k = len(types) == 3 and dtypes[0] == dtypes[1] and dtypes[2] == "int32" and len(ranks) == 1
        is_one = is_top_k and set(attributes) in _ATTRIBUTES.get(name, ())
    return replace(operation, name=name, attributes=attributes) if is_one else None
