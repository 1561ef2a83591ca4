"""The exported main function: from JAX's calling convention to the module's.

JAX lowers a function to a `main` that takes the platform index (if there are several), the
dimension variables in the order of their names, tokens, and the kept arguments. An exported
`main` takes the same without the dimension variables: it computes them from the shapes of the
arguments, checks them, and calls the inner function.

    main(platform_index?, tokens..., arguments...) -> (tokens..., results...)

Knows StableHLO and `jaxtf.shapepoly`; nothing of tracing or of bytes.
Source: DESIGN 3.2; StableHLO `get_dimension_size` and `custom_call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import func, stablehlo

from jaxtf.serialization._export.dimensions import RangeOperations, StablehloOperations
from jaxtf.serialization._export.fitting import ComputedSizes, Variable, require_fitting
from jaxtf.serialization._record.avals import Shape
from jaxtf.shapepoly import Solution

__all__ = ["Dimensions", "export_main", "mark_refined_at_run_time"]

_INNER_MAIN = "_jaxtf_inner_main"


def mark_refined_at_run_time(module: ir.Module, refined: bool) -> None:
    """Tells consumers whether the module must be refined to known sizes before it is compiled.

    Must be true whenever anything in the module has a dynamic type or depends on the platform
    index; calling convention 8 introduced the attribute.
    """
    module.operation.attributes["jax.uses_shape_polymorphism"] = ir.BoolAttr.get(refined, module.context)


@dataclass(frozen=True)
class Dimensions:
    """The symbolic side of a function's arguments.

    Attributes:
      shapes: Of each flat argument; sizes are integers or dimension expressions.
      kept: Positions of the flat arguments that the module takes.
      solution: How the dimension variables follow from the shapes.
      computed: The sizes that the function computes with.
    """

    shapes: tuple[Shape, ...]
    kept: tuple[int, ...]
    solution: Solution
    computed: ComputedSizes


def export_main(module: ir.Module, dimensions: Dimensions) -> None:
    """Gives `module`, in place, a main function without dimension variables.

    Args:
      module: As JAX lowered it. Not changed if there is no dimension variable.
      dimensions: The symbolic shapes of its arguments.
    """
    if not dimensions.solution.variables:
        return
    with module.context, ir.Location.unknown(module.context):
        symbols = ir.SymbolTable(module.operation)
        inner = symbols["main"]
        layout = _Layout.of(inner)
        inner_name = _unused_name(symbols)
        symbols.set_symbol_name(inner, inner_name)
        symbols.set_visibility(inner, "private")
        types = list(inner.type.inputs)
        outer_types = [types[position] for position in layout.outer]
        outer = func.FuncOp(
            "main",
            ir.FunctionType.get(outer_types, list(inner.type.results)),
            visibility="public",
            ip=ir.InsertionPoint.at_block_begin(module.body),
        )
        attributes = list(inner.arg_attrs)
        outer.arg_attrs = ir.ArrayAttr.get([attributes[position] for position in layout.outer])
        if inner.result_attrs is not None:
            outer.attributes["res_attrs"] = inner.result_attrs
        with ir.InsertionPoint(outer.add_entry_block()):
            operands = _inner_operands(list(outer.arguments), inner, layout, dimensions)
            call = func.CallOp(list(inner.type.results), ir.FlatSymbolRefAttr.get(inner_name), operands)
            func.ReturnOp(list(call.results))
        clean = passmanager.PassManager.parse("builtin.module(symbol-dce)")
        clean.enable_verifier(False)  # serialization verifies
        clean.run(module.operation)


@dataclass(frozen=True)
class _Layout:
    """Positions of the groups of the inner function's arguments.

    Attributes:
      platform_index: How many (0 or 1) platform indices come first.
      dimensions: Names of the dimension variables, which come next.
      count: How many arguments there are.
    """

    platform_index: int
    dimensions: tuple[str, ...]
    count: int

    @property
    def outer(self) -> tuple[int, ...]:
        """Positions of all arguments but the dimension variables."""
        return (*range(self.platform_index), *range(self.platform_index + len(self.dimensions), self.count))

    @staticmethod
    def of(inner: func.FuncOp) -> _Layout:
        """Reads it from the names that JAX gives to global constants."""
        names = [
            ir.StringAttr(attributes["jax.global_constant"]).value
            for attributes in map(ir.DictAttr, inner.arg_attrs)
            if "jax.global_constant" in attributes
        ]
        platform_index = int(names[:1] == ["_platform_index"])
        return _Layout(platform_index, tuple(names[platform_index:]), len(inner.type.inputs))


def _unused_name(symbols: ir.SymbolTable) -> str:
    """A name for the inner function: exported modules nest, and a name that occurs twice fails at run time only."""
    name, count = _INNER_MAIN, 1
    while name in symbols:
        name, count = f"{_INNER_MAIN}_{count}", count + 1
    return name


def _inner_operands(
    arguments: Sequence[ir.Value], inner: func.FuncOp, layout: _Layout, dimensions: Dimensions
) -> list[ir.Value]:
    """Emits the dimension variables and their checks; returns what the inner function is called with."""
    first_array = len(arguments) - len(dimensions.kept)
    flat: list[ir.Value | None] = [None] * len(dimensions.shapes)
    for index, array in zip(dimensions.kept, arguments[first_array:], strict=True):
        flat[index] = array
    ranges = RangeOperations()
    most = dimensions.solution.run(ranges)
    size_type = inner.type.inputs[layout.platform_index]
    # Products and sums are compared in 64 bits where they may wrap in 32.
    of_sizes = size_type if ranges.are_small else ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    values = dimensions.solution.run(StablehloOperations(flat, of_sizes))
    sizes = {name: _as_type(values[name], size_type) for name in layout.dimensions}
    variables = {name: Variable(values[name], most[name]) for name in layout.dimensions}
    is_wide = size_type == ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    require_fitting(dimensions.computed, dimensions.shapes, variables, is_wide=is_wide)
    return [*arguments[: layout.platform_index], *sizes.values(), *arguments[layout.platform_index :]]


def _as_type(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else stablehlo.convert(type_, value)
