"""A module of StableHLO with sizes left open that its types could know, as other producers write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from jaxtf.serialization import Exported
from jaxtf.serialization._jaxlib import read_module

__all__ = ["opened", "printed"]

# Their results have the sizes that they are given, or are of types that others repeat.
_HAVE_SIZES = """
    broadcast broadcast_in_dim case composite constant custom_call if iota reshape rng rng_bit_generator while
"""
_FIXED = frozenset(("func.call", *(f"stablehlo.{name}" for name in _HAVE_SIZES.split())))
_REPEAT = "composite custom_call optimization_barrier return rng_bit_generator while"
_REPEAT_TYPES = frozenset(("func.call", "func.return", *(f"stablehlo.{name}" for name in _REPEAT.split())))


def opened(exported: Exported | str, seed: int) -> str:
    """The text of a module for known sizes, given as text or exported, with half of them open, as drawn."""
    drawn = random.Random(seed)
    module = read_module(exported if isinstance(exported, str) else bytes(exported.mlir_module_serialized))
    with module.context, ir.Location.unknown():
        for function in module.body.operations:
            if ir.StringAttr(function.attributes["sym_name"]).value == "main":
                _open_arguments(function, drawn)
            _open_in(function, drawn)
        assert module.operation.verify()
        return str(module)


def printed(exported: Exported) -> str:
    """The text of the module of an exported function, which does not tell that JAX has checked its sizes."""
    return str(read_module(bytes(exported.mlir_module_serialized)))


def _open_in(operation: Any, drawn: random.Random) -> None:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name not in _FIXED:
                    _open_those(list(inner.results), drawn, [inner])
                _open_in(inner, drawn)


def _open_arguments(function: Any, drawn: random.Random) -> None:
    arguments = list(function.regions[0].blocks[0].arguments)
    _open_those(arguments, drawn, [])
    given = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    made = ir.FunctionType.get([argument.type for argument in arguments], given.results)
    function.attributes["function_type"] = ir.TypeAttr.get(made)


def _open_those(values: Sequence[Any], drawn: random.Random, made_by: Sequence[Any]) -> None:
    """Opens sizes of values, where what makes them and what uses them may have them open."""
    before = [value.type for value in values]
    users = [[use.owner.operation for use in value.uses] for value in values]
    for value, used_by in zip(values, users, strict=True):
        if isinstance(value.type, ir.RankedTensorType) and _REPEAT_TYPES.isdisjoint(user.name for user in used_by):
            value.set_type(_drawn_type(value.type, drawn))
    if not all(map(_is_valid, [*made_by, *(user for used_by in users for user in used_by)])):
        for value, type_ in zip(values, before, strict=True):
            value.set_type(type_)


def _is_valid(operation: Any) -> bool:
    try:
        return bool(operation.operation.verify())
    except ir.MLIRError:
        return False


def _drawn_type(type_: Any, drawn: random.Random) -> Any:
    open_size = ir.ShapedType.get_dynamic_size()
    shape = [open_size if drawn.random() < 0.5 else size for size in type_.shape]
    return ir.RankedTensorType.get(shape, type_.element_type)
