"""Compatibility with jaxlib where there may be no JAX: MLIR's Python bindings with the dialects of StableHLO.

Apart from `_jax.py`, which imports JAX: a module is read where there is jaxlib alone.

Each private name is listed once, with why it is needed and the versions it was seen in:

- `jaxlib.mlir.ir`, `jaxlib.mlir.dialects.{stablehlo,chlo,sdy}` (0.10.2, 0.12.0): they read modules. The public
  `jax.extend.mlir` is the same, and imports JAX.
- `jaxlib.mlir._mlir_libs._jax_mlir_ext.register_dialects` (0.10.2, 0.12.0): the dialect `func`, which no other
  module of jaxlib registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo
except ImportError as error:
    raise ImportError(
        "StableHLO is read with jaxlib, which cannot be imported here\n  remedy: pip install 'jaxlib>=0.10.1'"
    ) from error

__all__ = ["STRUCTURES", "ir", "newest_stablehlo_version", "read_module"]

_BYTECODE, _PORTABLE = b"ML\xefR", b"StableHLO_v"
_VERSIONED = "vhlo."  # operations of portable artifacts


def read_module(module: bytes | str) -> Any:
    """The module that a portable artifact, MLIR's bytecode or its text represents, in a new context.

    Raises:
      ValueError: It is none of these; the message is that of MLIR.
    """
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)  # those that a module has are loaded as it is read
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    try:
        if isinstance(module, bytes) and module.startswith(_BYTECODE) and _PORTABLE in module[:64]:
            return stablehlo.deserialize_portable_artifact(context, module)
        parsed = _parsed(module, context)
        if isinstance(module, bytes) and any(each.operation.name.startswith(_VERSIONED) for each in parsed.body):
            return stablehlo.deserialize_portable_artifact(context, module)  # written without StableHLO's own name
        return parsed
    except ir.MLIRError as error:
        raise ValueError(str(error)) from error


def newest_stablehlo_version() -> str:
    """The newest StableHLO version that jaxlib reads."""
    return str(stablehlo.get_current_version())


def _parsed(module: bytes | str, context: Any) -> Any:
    return ir.Module.parse(module, context)


def _fields(view: Any, names: str) -> Callable[[Any], dict[str, Any]]:
    """From an attribute to its fields by name: `theirs=ours` where MLIR's name is not the specification's."""
    pairs = [name.partition("=")[::2] for name in names.split()]

    def read(attribute: Any) -> dict[str, Any]:
        seen = view(attribute)
        values = {ours or theirs: getattr(seen, theirs) for theirs, ours in pairs}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

    return read


STRUCTURES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "dot": _fields(
        stablehlo.DotDimensionNumbers,
        "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions rhs_contracting_dimensions",
    ),
    "dot_algorithm": _fields(
        stablehlo.DotAlgorithm,
        "lhs_precision_type rhs_precision_type accumulation_type lhs_component_count rhs_component_count "
        "num_primitive_operations allow_imprecise_accumulation",
    ),
    "conv": _fields(
        stablehlo.ConvDimensionNumbers,
        "input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension "
        "kernel_output_feature_dimension kernel_spatial_dimensions output_batch_dimension output_feature_dimension "
        "output_spatial_dimensions",
    ),
    "gather": _fields(
        stablehlo.GatherDimensionNumbers,
        "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims start_index_map "
        "index_vector_dim",
    ),
    "scatter": _fields(
        stablehlo.ScatterDimensionNumbers,
        "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
        "scattered_dims_to_operand_dims=scatter_dims_to_operand_dims index_vector_dim",
    ),
    "bounds": _fields(stablehlo.TypeExtensions, "bounds"),
    "channel_handle": _fields(stablehlo.ChannelHandle, "handle channel_type=type"),
    "output_operand_alias": _fields(
        stablehlo.OutputOperandAlias, "output_tuple_indices operand_index operand_tuple_indices"
    ),
}
"""Structures among StableHLO's attributes, by the name that they are printed with."""
