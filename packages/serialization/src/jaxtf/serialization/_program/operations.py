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

    A custom call is given by its target, an operation by its name, both with their source locations (`CalledFrom`),
    which are printed only if asked to: it takes longer than the rest of the walk.
    """
    calls: list[tuple[str, Any]] = []
    foreign: list[tuple[str, Any]] = []

    def visit(operation: Any) -> Any:
        op = operation.operation
        name = op.name
        if name == "stablehlo.custom_call":
            calls.append((ir.StringAttr(op.attributes["call_target_name"]).value, CalledFrom(op)))
        elif name.partition(".")[0] not in dialects:
            foreign.append((name, CalledFrom(op)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return calls, foreign


class CalledFrom:
    """The source location of an operation, printed with that of the first call of the function it is in, and so on.

    JAX compiles functions such as `jnp.linalg.eigvals` apart, and only their call knows the line of the user's program.
    """

    def __init__(self, operation: Any) -> None:
        self._operation = operation

    def __str__(self) -> str:
        places = [str(self._operation.location)]
        operation = _first_call(self._operation)
        while operation is not None:
            places.append(str(operation.location))
            operation = _first_call(operation)
        return " called at ".join(places)


def _first_call(operation: Any) -> Any:
    """The first call in the module of the function that an operation is in; None if nothing calls it."""
    function = operation
    while function.name != "func.func":
        if function.parent is None:
            return None
        function = function.parent.operation
    callee = ir.StringAttr(function.attributes["sym_name"]).value
    found: list[Any] = []

    def visit(other: Any) -> Any:
        op = other.operation
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == callee:
            found.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    function.parent.operation.walk(visit)
    return found[0] if found else None


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
