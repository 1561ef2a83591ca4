"""Calling an exported function from JAX.

A primitive holds the record; its abstract evaluation solves the dimension variables of the
record from the shapes of the actual arguments (integers, or dimension expressions of the
caller), its lowering merges the record's module into the caller's and calls its main function.
Reverse mode goes through the exported VJP.

Checks on sizes are decided here, while tracing: a caller whose own sizes are symbolic gets an
error if it cannot be proved that they fit, so that a composed module never depends on
assertions other than those of its own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
from jax.interpreters import mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._avals import dtype_name
from jaxtf.serialization._checks import DisabledSafetyCheck
from jaxtf.serialization._errors import ArgumentMismatch, PlatformError
from jaxtf.serialization._exported import Exported
from jaxtf.serialization._paths import argument_paths
from jaxtf.shapepoly import ShapeMismatch, SymbolicOperations, evaluate, is_symbolic_dim

__all__ = ["call_exported", "differentiable_flat_call"]

FlatCall = Callable[..., Sequence[Any]]


def call_exported(exported: Exported, flat_call: FlatCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Applies the exported function, whose flat form is `flat_call`, to pytrees of arrays; see `Exported.call`."""
    flat, tree = jax.tree.flatten((args, kwargs))
    if tree != exported.in_tree:
        raise ArgumentMismatch(_structure_mismatch(exported, tree))
    return jax.tree.unflatten(exported.out_tree, flat_call(*flat))


def differentiable_flat_call(exported: Exported) -> FlatCall:
    """The exported function on flat arrays, differentiable in reverse mode by its exported VJP."""

    @jax.custom_vjp
    def call(*flat: Any) -> Any:
        return tuple(call_exported_p.bind(*flat, exported=exported))

    def forward(*flat: Any) -> tuple[Any, tuple[Any, ...]]:
        return call(*flat), flat

    def backward(residuals: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(exported.vjp().flat_call(*residuals, *cotangents))

    call.defvjp(forward, backward)
    return call


def _structure_mismatch(exported: Exported, found: Any) -> str:
    expected_paths, found_paths = exported.in_names, argument_paths(found)
    lines = [f"  {path}: exported with it, missing in the call" for path in expected_paths if path not in found_paths]
    lines += [f"  {path}: in the call, not when exported" for path in found_paths if path not in expected_paths]
    if not lines:
        lines = [f"  exported with {exported.in_tree}", f"  called with   {found}"]
    return (
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they differ:\n" + "\n".join(lines)
    )


def _check_argument(exported: Exported, path: str, expected: Any, actual: Any) -> None:
    what = f"in the call of the exported function '{exported.fun_name}'"
    if len(expected.shape) != len(actual.shape):
        raise ArgumentMismatch(
            f"Rank mismatch for {path} {what}: expected {expected.shape} and called with {actual.shape}"
        )
    if expected.dtype != _jax.to_dtype(actual.dtype):
        raise ArgumentMismatch(
            f"Dtype mismatch for {path} {what}: expected {dtype_name(expected.dtype)} and called with {actual.dtype}"
        )
    for axis, (size, found) in enumerate(zip(expected.shape, actual.shape, strict=True)):
        if not is_symbolic_dim(size) and (is_symbolic_dim(found) or size != found):
            raise ArgumentMismatch(
                f"Shape mismatch for {path}.shape[{axis}] (expected same constant) {what}: "
                f"expected {expected.shape} and called with {actual.shape}"
            )


def _abstract_call(*actual: Any, exported: Exported) -> tuple[tuple[Any, ...], set[Any]]:
    """Avals of the results and effects of a call with arguments of the `actual` avals."""
    for path, expected, aval in zip(exported.in_names, exported.in_avals, actual, strict=True):
        _check_argument(exported, path, expected, aval)
    operations = SymbolicOperations([aval.shape for aval in actual])
    try:
        values = exported.solution.run(operations)
    except ShapeMismatch as error:
        raise ArgumentMismatch(str(error)) from error
    results = tuple(
        _jax.to_shaped_array(aval, [evaluate(size, values, operations) for size in aval.shape])
        for aval in exported.out_avals
    )
    return results, set(map(_jax.from_effect, (*exported.ordered_effects, *exported.unordered_effects)))


def _lower_call(ctx: Any, *arguments: Any, exported: Exported) -> Sequence[Any]:
    caller = ctx.module_context
    if exported.uses_global_constants:
        caller.shape_poly_state.uses_dim_vars = True
    callee = _jax.deserialize_module(exported.mlir_module_serialized, caller.module.context)
    main_type = ir.SymbolTable(callee.operation)["main"].type
    name = mlir.merge_mlir_modules(
        caller.module, f"call_exported_{exported.fun_name}", callee, dst_symtab=caller.symbol_table
    )
    ordered = tuple(map(_jax.from_effect, exported.ordered_effects))
    leading = [*_platform_index(ctx, exported, main_type), *(ctx.tokens_in.get(effect) for effect in ordered)]
    kept = [arguments[index] for index in exported.module_kept_var_idx]
    operands = [_as_type(value, expected) for value, expected in zip([*leading, *kept], main_type.inputs, strict=True)]
    call = func.CallOp(list(main_type.results), ir.FlatSymbolRefAttr.get(name), operands)
    token_count = len(ordered)
    if token_count:
        tokens = zip(ordered, call.results, strict=False)
        ctx.set_tokens_out(mlir.TokenSet({effect: (token,) for effect, token in tokens}))
    expected_types = [mlir.aval_to_ir_type(caller, aval) for aval in ctx.avals_out]
    return [_as_type(value, type_) for value, type_ in zip(call.results[token_count:], expected_types, strict=True)]


def _as_type(value: Any, type_: Any) -> Any:
    """`value` as `type_`, which differs in what is known of its sizes or in integer width."""
    return value if value.type == type_ else stablehlo.convert(type_, value)


def _platform_index(ctx: Any, exported: Exported, main_type: Any) -> Sequence[Any]:
    """The callee's platform index, as a function of the caller's, if the callee takes one."""
    platforms = ctx.module_context.platforms
    any_platform = DisabledSafetyCheck.platform() in exported.disabled_safety_checks
    for platform in platforms:
        if platform not in exported.platforms and not any_platform:
            raise PlatformError(
                f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' "
                f"but it is used on '{tuple(platforms)}'.\n"
                f"  remedy: export it with platforms={(*exported.platforms, platform)}, or with "
                "disabled_checks=[DisabledSafetyCheck.platform()] if you know that it runs there"
            )
    if len(exported.platforms) == 1:
        return ()
    positions = [exported.platforms.index(p) if p in exported.platforms else 0 for p in platforms]
    index_type = main_type.inputs[0]

    def constant(value: int) -> Any:
        attribute = ir.IntegerAttr.get(ir.RankedTensorType(index_type).element_type, value)
        return stablehlo.constant(ir.DenseElementsAttr.get_splat(index_type, attribute))

    if len(platforms) == 1:
        return (constant(positions[0]),)
    chosen = constant(positions[0])
    own_index = _as_type(ctx.dim_var_values[0], index_type)
    for position, callee_position in list(enumerate(positions))[1:]:
        here = stablehlo.compare(own_index, constant(position), stablehlo.ComparisonDirectionAttr.get("EQ"))
        chosen = stablehlo.select(here, constant(callee_position), chosen)
    return (chosen,)


# Another name than JAX gives to its own: JAX looks into the parameters of `call_exported`.
call_exported_p = _jax.new_call_primitive("jaxtf_call_exported", _abstract_call, _lower_call)
