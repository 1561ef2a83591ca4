"""The primitive that calls an exported function, or one of its derivatives, and its lowering.

`call_exported_p` calls a `Callee`: a record, or one of its VJPs. Its abstract evaluation solves the
dimension variables of the record from the shapes of the actual arguments (integers, or dimension
expressions of the caller); its lowering merges the record's module into the caller's and calls its
main function.
Differentiation and batching are rules registered by `_call.derivatives` and `_call.batching`.

Checks on sizes are decided here, while tracing: a caller whose own sizes are symbolic gets an
error if it cannot be proved that they fit, so that a composed module never depends on
assertions other than those of its own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jax.extend import core as jax_core
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
from jax.interpreters import mlir, xla

from jaxtf.serialization import _jax
from jaxtf.serialization._call.devices import fit_to_devices
from jaxtf.serialization._call.placement import constrained, spell_out_meshes, typed_shardings
from jaxtf.serialization._errors import ArgumentMismatch, PlatformError, VjpUnavailable
from jaxtf.serialization._jax_values.avals import to_dtype, to_shaped_array
from jaxtf.serialization._jax_values.effects import from_effect
from jaxtf.serialization._jax_values.varying import varying_like
from jaxtf.serialization._program.module import load_module
from jaxtf.serialization._record.avals import LARGEST_SIZE, dtype_name
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.platforms import PLATFORMS_OF_GRAPHS
from jaxtf.shapepoly import ShapeMismatch, SymbolicOperations, evaluate, is_symbolic_dim

__all__ = ["Callee", "call_exported_p", "called_avals", "check_result_sizes", "new_call_primitive"]


@dataclass(frozen=True, eq=False)
class Callee:
    """What is called: a record that the caller holds, or one of its VJPs.

    JAX keeps what it traced and compiled by the parameters of a primitive. Two are the same if their records are, with
    all their orders of VJP: an artifact that is read again and again is compiled once.

    Attributes:
      called: The record that the caller holds.
      order: 0 for the function itself, 1 for its VJP, 2 for the VJP of that, ...
    """

    called: Exported
    order: int = 0

    @cached_property
    def record(self) -> Exported:
        """The record of this order."""
        record = self.called
        for _ in range(self.order):
            record = record.vjp()
        return record

    def differentiated(self, times: int, purpose: str) -> Callee:
        """The VJP of this, `times` over.

        Raises:
          VjpUnavailable: The record was loaded from bytes that carry fewer orders; `purpose` says what for.
        """
        record, needed = self.record, self.order + times
        for order in range(self.order, needed):
            if not record.has_vjp():
                raise VjpUnavailable(
                    f"{purpose} of '{self.called.fun_name}' needs its VJP of order {needed}, and the record carries "
                    f"order {order}\n"
                    "  remedy: Exported.lift() gives a function that JAX differentiates, to any order; or write the "
                    f"VJP, where the JAX function is available, with serialize(vjp_order={needed})"
                )
            record = record.vjp()
        return Callee(self.called, needed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.order == other.order and self.called == other.called

    def __hash__(self) -> int:
        return hash((self.called, self.order))

    def __repr__(self) -> str:
        return f"VJP {self.order} of {self.called.fun_name}" if self.order else self.called.fun_name


def _check_argument(exported: Exported, path: str, expected: Any, actual: Any) -> None:
    what = f"in the call of the exported function '{exported.fun_name}'"
    if len(expected.shape) != len(actual.shape):
        raise ArgumentMismatch(
            f"Rank mismatch for {path} {what}: expected {expected.shape} and called with {actual.shape}"
        )
    found_dtype = to_dtype(actual.dtype)
    if expected.dtype != found_dtype:
        called_with = dtype_name(found_dtype)
        raise ArgumentMismatch(
            f"Dtype mismatch for {path} {what}: expected {dtype_name(expected.dtype)} and called with {called_with}"
        )
    for axis, (size, found) in enumerate(zip(expected.shape, actual.shape, strict=True)):
        if not is_symbolic_dim(size) and (is_symbolic_dim(found) or size != found):
            raise ArgumentMismatch(
                f"Shape mismatch for {path}.shape[{axis}] (expected same constant) {what}: "
                f"expected {expected.shape} and called with {actual.shape}"
            )
        if is_symbolic_dim(size) and not is_symbolic_dim(found) and found > LARGEST_SIZE:
            raise ArgumentMismatch(
                f"Shape mismatch for {path}.shape[{axis}] {what}: called with {actual.shape}, and what the program "
                "reads of a symbolic size is an integer of 32 bits\n"
                "  remedy: export it for sizes that are constants, or split the array"
            )


def check_result_sizes(exported: Exported, actual: Sequence[Any]) -> None:
    """Refuses arguments of avals for which a result has a symbolic size that has too many bits.

    Raises:
      ArgumentMismatch: Says which size.
    """
    for recorded, aval in zip(exported.out_avals, called_avals(exported, actual), strict=True):
        for size, found in zip(recorded.shape, aval.shape, strict=True):
            if is_symbolic_dim(size) and not is_symbolic_dim(found) and found > LARGEST_SIZE:
                raise ArgumentMismatch(
                    f"in the call of the exported function '{exported.fun_name}': the size '{size}' of a result is "
                    f"{found}, which is not an integer of 32 bits\n"
                    "  remedy: a result of more axes, with smaller sizes"
                )


def called_avals(exported: Exported, actual: Sequence[Any]) -> list[Any]:
    """Avals of the results of a call with arguments of the `actual` avals.

    Raises:
      ArgumentMismatch: The arguments are others than those exported.
    """
    for path, expected, aval in zip(exported.in_names, exported.in_avals, actual, strict=True):
        _check_argument(exported, path, expected, aval)
    operations = SymbolicOperations([aval.shape for aval in actual])
    try:
        values = exported.solution.run(operations)
    except ShapeMismatch as error:
        raise ArgumentMismatch(str(error)) from error
    return [
        to_shaped_array(aval, [evaluate(size, values, operations) for size in aval.shape])
        for aval in exported.out_avals
    ]


def _abstract_call(*actual: Any, callee: Callee) -> tuple[tuple[Any, ...], set[Any]]:
    """Avals of the results and effects of a call with arguments of the `actual` avals."""
    exported = callee.record
    results = varying_like(called_avals(exported, actual), actual)
    return typed_shardings(results, exported.out_shardings, actual), set(
        map(from_effect, (*exported.ordered_effects, *exported.unordered_effects))
    )


def _lower_call(ctx: Any, *arguments: Any, callee: Callee) -> Sequence[Any]:
    exported = callee.record
    if exported.uses_global_constants:
        _jax.require_refinement(ctx)
    module = load_module(exported, _jax.mlir_context(ctx))
    fit_to_devices(exported, module, _jax.devices_of(ctx))
    spell_out_meshes(module)
    name, main = _jax.add_function(ctx, f"call_exported_{exported.fun_name}", module)
    ordered = tuple(map(from_effect, exported.ordered_effects))
    leading = [*_platform_index(ctx, exported, main.type), *(_jax.token_of(ctx, effect) for effect in ordered)]
    kept = [arguments[index] for index in exported.module_kept_var_idx]
    placed = constrained([*leading, *kept], main, "arg_attrs")
    operands = [_as_type(value, expected) for value, expected in zip(placed, main.type.inputs, strict=True)]
    call = func.CallOp(list(main.type.results), ir.FlatSymbolRefAttr.get(name), operands)
    tokens = list(call.results)[: len(ordered)]
    if ordered:
        _jax.set_tokens(ctx, dict(zip(ordered, tokens, strict=True)))
    types = [*(token.type for token in tokens), *_jax.result_types(ctx)]
    results = [_as_type(value, type_) for value, type_ in zip(call.results, types, strict=True)]
    return constrained(results, main, "res_attrs")[len(ordered) :]


def _as_type(value: Any, type_: Any) -> Any:
    """`value` as `type_`, which differs in what is known of its sizes or in integer width."""
    return value if value.type == type_ else stablehlo.convert(type_, value)


def _platform_index(ctx: Any, exported: Exported, main_type: Any) -> Sequence[Any]:
    """The callee's platform index, as a function of the caller's, if the callee takes one."""
    platforms = _jax.lowering_platforms(ctx)
    if tuple(platforms) == PLATFORMS_OF_GRAPHS:  # which take what there is for CPU
        platforms = ("cpu",)
    any_platform = DisabledSafetyCheck.platform() in exported.disabled_safety_checks
    for platform in platforms:
        if platform not in exported.platforms and not any_platform:
            raise PlatformError(
                f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' "
                f"but it is used on '{platforms}'.\n"
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
    own_index = _as_type(_jax.platform_index(ctx), index_type)
    for position, callee_position in list(enumerate(positions))[1:]:
        here = stablehlo.compare(own_index, constant(position), stablehlo.ComparisonDirectionAttr.get("EQ"))
        chosen = stablehlo.select(here, constant(callee_position), chosen)
    return (chosen,)


def new_call_primitive(
    name: str,
    abstract_eval: Callable[..., tuple[Sequence[Any], set[Any]]],
    lowering: Callable[..., Sequence[Any]],
) -> Any:
    """A primitive with several results, effects, an eager implementation and a lowering."""
    primitive = jax_core.Primitive(name)
    primitive.multiple_results = True
    primitive.def_impl(lambda *args, **params: xla.apply_primitive(primitive, *args, **params))
    primitive.def_effectful_abstract_eval(abstract_eval)
    mlir.register_lowering(primitive, lowering)
    return primitive


# Another name than JAX gives to its own: JAX looks into the parameters of `call_exported`.
call_exported_p = new_call_primitive("jaxtf_call_exported", _abstract_call, _lower_call)
