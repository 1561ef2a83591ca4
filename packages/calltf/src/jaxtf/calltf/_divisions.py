"""Divisions of integers by what may be a constant 0, written so that no compiler divides by it.

XLA has a result for them: -1 for the quotient, the dividend for the remainder. But where the divisor is a constant,
or becomes one as sizes become known, JAX's passes on StableHLO divide, and end the process (JAX 0.10.2, not 0.12:
`jax.jit(lambda: lax.rem(jnp.int32(7), jnp.int32(0)))()` does).

Knows StableHLO; nothing of TensorFlow.
"""

from __future__ import annotations

from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

__all__ = ["guard_divisions"]


def guard_divisions(module: ir.Module) -> None:
    """Has divisions by a constant 0 give what XLA gives; a module without them is left as it is."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        op = operation.operation
        if op.name in ("stablehlo.divide", "stablehlo.remainder") and _is_integer(op.result.type):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    known: dict[Any, bool] = {}
    for op in found:
        if _may_be_constant(op.operands[1], known):
            _guard(op)


def _is_integer(type_: ir.Type) -> bool:
    ranked = ir.RankedTensorType(type_)
    return isinstance(ranked.element_type, ir.IntegerType) and ranked.has_static_shape and ranked.encoding is None


def _may_be_constant(value: Any, known: dict[Any, bool]) -> bool:
    """Whether a value depends on no argument of the program, nor on the turns of a loop."""
    if value not in known:
        owner = value.owner
        if isinstance(owner, ir.Block):
            function = owner.owner
            known[value] = (
                function.name == "func.func" and ir.StringAttr(function.attributes["sym_name"]).value != "main"
            )
        else:
            known[value] = all(_may_be_constant(operand, known) for operand in owner.operands)
    return known[value]


def _guard(op: Any) -> None:
    dividend, divisor = op.operands
    with ir.InsertionPoint(op), op.location:
        is_zero = stablehlo.compare(divisor, _splat(0, divisor.type), stablehlo.ComparisonDirectionAttr.get("EQ"))
        safe = stablehlo.select(is_zero, _splat(1, divisor.type), divisor)
        if op.name == "stablehlo.divide":
            result = stablehlo.select(is_zero, _splat(-1, divisor.type), stablehlo.divide(dividend, safe))
        else:
            result = stablehlo.select(is_zero, dividend, stablehlo.remainder(dividend, safe))
    op.result.replace_all_uses_with(result)
    op.erase()


def _splat(number: int, type_: ir.Type) -> ir.Value:
    element = ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type, number)
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(type_, element))
