"""The operations of a module that an exporter must know of: custom calls, other dialects. Imports JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.extend.mlir import ir

__all__ = ["custom_calls", "number_called_functions", "operations_to_check"]


def custom_calls(module: ir.Module) -> Iterator[tuple[str, Any]]:
    """The (target, source location) of each custom call in `module`."""
    return iter(operations_to_check(module, frozenset())[0])


def operations_to_check(
    module: ir.Module, dialects: frozenset[str]
) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The custom calls in `module`, and its operations that are of none of these dialects.

    A custom call is given by its target, an operation by its name, both with their source locations,
    which are printed only if asked to: it takes longer than the rest of the walk.
    """
    calls: list[tuple[str, Any]] = []
    foreign: list[tuple[str, Any]] = []

    def visit(operation: Any) -> Any:
        op = operation.operation
        name = op.name
        if name == "stablehlo.custom_call":
            calls.append((ir.StringAttr(op.attributes["call_target_name"]).value, op.location))
        elif name.partition(".")[0] not in dialects:
            foreign.append((name, op.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return calls, foreign


def number_called_functions(module: ir.Module) -> list[str]:
    """Numbers the calls of functions by name in the attribute where TensorFlow looks; gives the names in that order."""
    names: dict[str, int] = {}

    def visit(operation: Any) -> Any:
        op = operation.operation
        if op.name == "stablehlo.custom_call" and "tf.backend_config" in op.attributes:
            config = {entry.name: entry.attr for entry in ir.DictAttr(op.attributes["tf.backend_config"])}
            if "called_name" in config:
                index = names.setdefault(ir.StringAttr(config.pop("called_name")).value, len(names))
                config["called_index"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index)
                op.attributes["tf.backend_config"] = ir.DictAttr.get(config)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
    return list(names)
