"""Compatibility with JAX: each of its private names is here once, under a name of ours.

`PRIVATE_NAMES` has each of them, those that are reached through objects too; a test holds it against the JAX that is
installed (tests/test_private_names.py). Everything else of the package uses `jax`, `jax.core`, `jax.extend` and
`jax.interpreters` only. Knows JAX; nothing of TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np
from jax._src.array import ArrayImpl as _ArrayImpl
from jax._src.core import EvalTrace as _EvalTrace
from jax._src.core import to_concrete_value as _to_concrete_value
from jax._src.core import unsafe_get_current_trace as _current_trace
from jax._src.effects import (
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    lowerable_effects,
    ordered_effects,
    partial_eval_kept_effects,
    remat_allowed_effects,
)
from jax._src.interpreters import ad as _ad
from jax._src.interpreters import batching as _batching
from jax._src.interpreters import partial_eval as _partial_eval
from jax._src.interpreters.mlir import eval_dynamic_shape as _eval_dynamic_shape
from jax._src.interpreters.mlir import token_type as _token_type
from jax._src.interpreters.partial_eval import DynamicJaxprTrace as _StagingTrace
from jax._src.lib import _jax as _jaxlib
from jax._src.lib import xla_client as _xla_client
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.core.primitives import scan_p, while_p
from jax.extend.mlir import ir
from jax.interpreters import ad, mlir
from jax.ref import AbstractRef

from jaxtf.shapepoly import SymbolicScope, symbolic_shape

# Each private name: where JAX has it -> the newest JAX that it was seen in, and why it is needed.
PRIVATE_NAMES = {
    "jax._src.array.ArrayImpl": ("0.12.0.1", "the class of every array that has a value"),
    "jax._src.core.unsafe_get_current_trace": (
        "0.12.0.1",
        "the trace that is active now; `jax.extend.core.find_top_trace` is public but marked for deletion",
    ),
    "jax._src.core.EvalTrace": ("0.12.0.1", "one that ends a stack of traces: evaluation"),
    "jax._src.interpreters.partial_eval.DynamicJaxprTrace": ("0.12.0.1", "the other one: staging"),
    "jax._src.interpreters.partial_eval.DynamicJaxprTrace.emit_eqn": (
        "0.12.0.1",
        "stages an equation without JAX's cache of abstract evaluations",
    ),
    "jax._src.interpreters.ad.JVPTrace.parent_trace": ("0.12.0.1", "the trace below a trace"),
    "jax._src.core.to_concrete_value": ("0.12.0.1", "the value of a tracer, where it has one"),
    "jax._src.effects.control_flow_allowed_effects": ("0.12.0.1", "effects that may be in control flow"),
    "jax._src.effects.custom_derivatives_allowed_effects": ("0.12.0.1", "those that may be under custom derivatives"),
    "jax._src.effects.lowerable_effects": ("0.12.0.1", "those that may be lowered"),
    "jax._src.effects.ordered_effects": ("0.12.0.1", "those that keep their order"),
    "jax._src.effects.partial_eval_kept_effects": (
        "0.12.0.1",
        "those that stay in a loop that is divided, though nobody uses the results",
    ),
    "jax._src.effects.remat_allowed_effects": ("0.12.0.1", "those that may be in `jax.checkpoint`"),
    "jax._src.interpreters.ad.primitive_linearizations": ("0.12.0.1", "a place for rules of linearization"),
    "jax._src.interpreters.ad.fallback_linearize_rule": ("0.12.0.1", "shows which form such rules have"),
    "jax._src.interpreters.partial_eval.custom_staging_rules": ("0.12.0.1", "a place for rules of staging"),
    "jax._src.interpreters.partial_eval.custom_partial_eval_rules": (
        "0.12.0.1",
        "the rules that make of a loop one of what is known and one of what is not",
    ),
    "jax._src.interpreters.partial_eval.partial_eval_jaxpr_custom_rules": (
        "0.12.0.1",
        "the same rules for loops in `jax.checkpoint`",
    ),
    "jax._src.interpreters.partial_eval.JaxprTracer.is_known": ("0.12.0.1", "whether an operand is known"),
    "jax._src.interpreters.partial_eval.JaxprTrace.default_process_primitive": (
        "0.12.0.1",
        "applies a primitive to what is not known",
    ),
    "jax._src.interpreters.partial_eval.partial_eval_jaxpr_nounits": (
        "0.12.0.1",
        "divides the body of a scan as JAX does that moves what does not depend on the turn",
    ),
    "jax._src.interpreters.batching.fancy_primitive_batchers": (
        "0.12.0.1",
        "a place for rules of batching that need the size of the batch",
    ),
    "jax._src.interpreters.batching.AxisData.spmd_name": ("0.12.0.1", "the mesh axis that a batch is split over"),
    "jax._src.interpreters.batching.AxisData.size": ("0.12.0.1", "the size of the batch"),
    "jax._src.core.ShapedArray.str_short": ("0.12.0.1", "an aval as JAX's messages have it"),
    "jax._src.interpreters.mlir.eval_dynamic_shape": ("0.12.0.1", "symbolic sizes in the program being lowered"),
    "jax._src.interpreters.mlir.token_type": ("0.12.0.1", "the type of a token"),
    # What a lowering rule reads and sets; it has no public documentation.
    "jax._src.interpreters.mlir.LoweringRuleContext.module_context": ("0.12.0.1", "the module that is lowered into"),
    "jax._src.interpreters.mlir.ModuleContext.lowering_parameters": ("0.12.0.1", "gives `for_export`"),
    "jax._src.interpreters.mlir.LoweringParameters.for_export": ("0.12.0.1", "whether the program is to be exported"),
    "jax._src.lib._jax.mlir.hlo_to_stablehlo": ("0.12.0.1", "HLO, which TensorFlow writes, to StableHLO bytes"),
    "jax._src.lib._jax.buffer_to_dlpack_managed_tensor": (
        "0.12.0.1",
        "the DLPack capsule of an array, which costs 3 us by `jax.Array.__dlpack__`, 0.7 here",
    ),
    "jax._src.lib.xla_client.batched_device_put": (
        "0.12.0.1",
        "what `jax.device_put` of one NumPy array ends in: 4 us instead of 38",
    ),
    # Symbolic dimensions of `jax.export`.
    "jax._src.export.shape_poly._DimExpr._get_vars": ("0.12.0.1", "the dimension variables of a size"),
    "jax._src.export.shape_poly._DimExpr._evaluate": ("0.12.0.1", "its value for values of these"),
    "jax._src.export.shape_poly._DimExpr._from_var": ("0.12.0.1", "the size that is a dimension variable"),
    "jax._src.export.shape_poly.SymbolicScope._explicit_constraints": ("0.12.0.1", "the constraints of a scope"),
}

# From (which operands have tangents, operands, parameters) to the results, which of them have tangents, and what makes
# of the tangents of all operands those of all results.
LinearizationRule = Callable[..., tuple[list[Any], list[bool], Callable[[Sequence[Any]], list[Any]]]]

_EMIT = ("self", "in_tracers", "out_avals", "primitive", "params", "effects", "source_info")

# The class of every array that has a value: a look at a type is cheaper than at what a value is an instance of.
ArrayImpl: type[jax.Array] = _ArrayImpl


def evaluating() -> bool:
    """Whether an operation met now is executed at once, not staged into a program.

    True outside of any transformation and directly under `jax.grad`, `jax.jvp` and
    `jax.vmap`; False inside `jax.jit` and control flow, also for constant arguments.
    """
    trace: Any = _current_trace()
    if type(trace) is _EvalTrace:
        return True
    while not isinstance(trace, _EvalTrace):
        if isinstance(trace, _StagingTrace):
            return False
        trace = getattr(trace, "parent_trace", None)
        if trace is None:
            return False
    return True


def outside_of_traces() -> AbstractContextManager[None]:
    """A context in which JAX evaluates, and no transformation is in progress, whatever it traces around."""
    if type(_current_trace()) is _EvalTrace:  # saves 1 us
        return nullcontext()
    context: AbstractContextManager[None] = jax.core.eval_context()
    return context


def concrete_value(value: Any) -> Any:
    """The value that a tracer represents (any other value itself); None if it is not known."""
    return _to_concrete_value(value)


def register_linearization(primitive: Primitive, rule: LinearizationRule) -> None:
    """Gives a primitive with several results a rule of linearization, which its JVP rule must agree with.

    JAX takes the JVP rule for it where there is none, at the price of tracing it: half the time of an eager gradient.
    So it stays where rules of linearization have none of the forms known here.
    """
    rules = getattr(_ad, "primitive_linearizations", None)
    number = _parts_of_linearization()

    def answer(_: bool, nonzeros: Sequence[bool], *operands: Any, **params: Any) -> tuple[Any, ...]:
        results, result_nonzeros, push_forward = rule(nonzeros, operands, **params)
        if number == 4:
            return results, result_nonzeros, (), lambda _, *tangents: push_forward(tangents)
        return results, result_nonzeros, (), None, lambda _, __, *tangents: push_forward(tangents)

    if rules is not None and number in (4, 5):
        rules[primitive] = answer


def register_staging_without_cache(primitive: Primitive) -> None:
    """Lets a primitive with several results be staged by its abstract evaluation, as otherwise, but not from a cache.

    JAX keeps abstract evaluations with all parameters, thousands of them. Where a parameter is one of each call that is
    in vain, takes time, and may keep alive what is large.
    """
    rules = getattr(_partial_eval, "custom_staging_rules", None)
    if rules is None or _parameters(getattr(_StagingTrace, "emit_eqn", None))[:7] != _EMIT:
        return

    def stage(trace: Any, source_info: Any, *operands: Any, **params: Any) -> list[Any]:
        avals, effects = primitive.abstract_eval(*(operand.aval for operand in operands), **params)
        staged: list[Any] = trace.emit_eqn(list(operands), list(avals), primitive, params, effects, source_info)
        return staged

    rules[primitive] = stage


def _parameters(function: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters) if callable(function) else ()


def _parts_of_linearization() -> int | None:
    """How many parts the answer of a linearization rule has, seen on that of JAX's own; None for an unknown form.

    JAX 0.10.2: (results, which have tangents, residuals, function of residuals and tangents). JAX 0.12.0.1: structured
    residuals besides, before the function and for it.
    """
    probe = Primitive("linearization_probe")
    probe.multiple_results = True
    ad.primitive_jvps[probe] = lambda primals, tangents: (primals, tangents)
    try:
        *found, push_forward = _ad.fallback_linearize_rule(probe, True, [True], np.float32(0))
        parameters = list(inspect.signature(push_forward).parameters.values())
        is_known = len(found[0]) == 1 and found[1] == [True] and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
        return 1 + len(found) if is_known and len(parameters) == len(found) - 1 else None
    except Exception:  # another form: nothing depends on it
        return None
    finally:
        del ad.primitive_jvps[probe]


def allow_effect(effect_type: type, ordered: bool = False) -> None:
    """Lets effects of this type be lowered and occur inside checkpoints and custom derivatives."""
    if ordered:
        ordered_effects.add_type(effect_type)
    for allowed in (lowerable_effects, remat_allowed_effects, custom_derivatives_allowed_effects):
        allowed.add_type(effect_type)


def allow_in_control_flow(effect_type: type) -> None:
    """Lets effects of this type occur inside loops and branches, and stay where nobody uses a result of the call."""
    control_flow_allowed_effects.add_type(effect_type)
    partial_eval_kept_effects.add_type(effect_type)


def check_divided_loops(
    divided_scan: Callable[[Sequence[Any], Callable[[], tuple[Sequence[Any], Sequence[Any]]]], None],
    repeated_in_checkpoint: Callable[[Any], None],
    mark_if_repeated: Callable[[Sequence[Any], Callable[[], Sequence[Any]]], Primitive | None],
) -> bool:
    """Has those called who may refuse what JAX makes of loops that it divides into what is known and what is not.

    Args:
      divided_scan: Of a scan that JAX divides; gets the equations of its body, and a function that gives those that JAX
        moves out of it, and those that it leaves.
      repeated_in_checkpoint: Of a while_loop in `jax.checkpoint`; gets its equation.
      mark_if_repeated: Of a while_loop that JAX divides; gets the equations in it, and a function that gives those that
        JAX runs again for its tangents; gives a primitive that is to be applied to each tangent before, if any.

    Returns:
      False, and nothing is done, if JAX has not all of the rules known here, or in another form.
    """
    divided: dict[Any, Any] = _partial_eval.custom_partial_eval_rules
    in_checkpoint: dict[Any, Any] = _partial_eval.partial_eval_jaxpr_custom_rules
    linearized: dict[Any, Any] = _ad.primitive_linearizations
    if any(loop not in rules for rules in (divided, in_checkpoint) for loop in (scan_p, while_p)):
        return False
    if scan_p not in linearized or _parts_of_linearization() not in (4, 5):
        return False
    divided[scan_p] = _checked_scan(divided[scan_p], divided_scan)
    linearized[scan_p] = _checked_linearized_scan(linearized[scan_p], divided_scan)
    in_checkpoint[scan_p] = _checked_scan_in_checkpoint(in_checkpoint[scan_p], divided_scan)
    divided[while_p] = _checked_while(divided[while_p], mark_if_repeated)
    in_checkpoint[while_p] = _checked_while_in_checkpoint(in_checkpoint[while_p], repeated_in_checkpoint)
    return True


def _checked_scan(rule: Callable[..., Any], divided_scan: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def checked(trace: Any, *tracers: Any, **params: Any) -> Any:
        def parts() -> tuple[Sequence[Any], Sequence[Any]]:
            # JAX moves what depends on known constants alone, or on nothing.
            number = _number_of_constants(params, len(tracers))
            unknown = [not tracer.is_known() or isinstance(tracer.aval, AbstractRef) for tracer in tracers[:number]]
            unknown += [True] * (len(tracers) - number)
            known, rest, *_ = _partial_eval.partial_eval_jaxpr_nounits(params["jaxpr"], unknown, False)
            return known.eqns, rest.eqns

        divided_scan(params["jaxpr"].eqns, parts)
        return rule(trace, *tracers, **params)

    return checked


def _number_of_constants(params: Mapping[str, Any], number: int) -> int:
    """How many of the operands of a scan, which come first, are the same in each turn; all if it is not known."""
    if "num_consts" in params:  # JAX 0.10.2
        found: int = params["num_consts"]
        return found
    if "ft_in" in params:  # JAX 0.12.0.1
        constants, _, _ = params["ft_in"].unpack()
        return len(constants)
    return number


def _checked_linearized_scan(rule: Callable[..., Any], divided_scan: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def checked(is_vjp: bool, nonzeros: Sequence[bool], *operands: Any, **params: Any) -> Any:
        def primal() -> tuple[Any, ...]:
            results, _, *residuals, _ = rule(is_vjp, nonzeros, *operands, **params)
            return results, residuals

        def parts() -> tuple[Sequence[Any], Sequence[Any]]:
            # The rule itself is staged: rules of derivatives within the body may call what the body does not.
            # Last is the scan, unless it has no results.
            equations: Sequence[Any] = jax.make_jaxpr(primal)().eqns
            number = len(equations) - bool(params["jaxpr"].out_avals)
            return equations[:number], equations[number:]

        divided_scan(params["jaxpr"].eqns, parts)
        return rule(is_vjp, nonzeros, *operands, **params)

    return checked


def _checked_scan_in_checkpoint(rule: Callable[..., Any], divided_scan: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def checked(saveable: Any, unknown: Any, instantiated: Any, equation: Any) -> Any:
        found = rule(saveable, unknown, instantiated, equation)

        def parts() -> tuple[Sequence[Any], Sequence[Any]]:
            # What is known is a call of a jaxpr: what was moved, and then the scan.
            equations: Sequence[Any] = found[0].params["call_jaxpr"].eqns
            assert equations[-1].primitive is scan_p, f"JAX ends the known part of a scan by {equations[-1].primitive}"
            _, staged, results_unknown, *_ = found
            return equations[:-1], [staged] if all(results_unknown) else equations[-1:]

        divided_scan(equation.params["jaxpr"].eqns, parts)
        return found

    return checked


def _checked_while(rule: Callable[..., Any], mark_if_repeated: Callable[..., Primitive | None]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def checked(trace: Any, *tracers: Any, **params: Any) -> Any:
        unknown = [not tracer.is_known() for tracer in tracers]
        if len(set(unknown)) == 2:
            equations = [*params["cond_jaxpr"].eqns, *params["body_jaxpr"].eqns]
            mark = mark_if_repeated(equations, lambda: _known_in_while(unknown, params))
            if mark is not None:
                marked = [
                    [tracer] if tracer.is_known() else trace.default_process_primitive(mark, [tracer], {})
                    for tracer in tracers
                ]
                tracers = tuple(tracer for [tracer] in marked)
        return rule(trace, *tracers, **params)

    return checked


def _known_in_while(unknown: Sequence[bool], params: Mapping[str, Any]) -> Sequence[Any]:
    """The equations of a while_loop that JAX runs by themselves, and again with the others; none if it does not."""
    number = params["cond_nconsts"]
    of_condition, rest = unknown[:number], unknown[number:]
    of_body, carry = rest[: params["body_nconsts"]], rest[params["body_nconsts"] :]
    while True:
        body, _, found, _ = _partial_eval.partial_eval_jaxpr_nounits(params["body_jaxpr"], [*of_body, *carry], carry)
        if found == carry:
            break
        carry = [before or after for before, after in zip(carry, found, strict=True)]
    condition, _, [is_unknown], _ = _partial_eval.partial_eval_jaxpr_nounits(
        params["cond_jaxpr"], [*of_condition, *carry], False
    )
    return [] if is_unknown else [*condition.eqns, *body.eqns]


def _checked_while_in_checkpoint(
    rule: Callable[..., Any], repeated_in_checkpoint: Callable[[Any], None]
) -> Callable[..., Any]:
    @functools.wraps(rule)
    def checked(saveable: Any, unknown: Any, instantiated: Any, equation: Any) -> Any:
        repeated_in_checkpoint(equation)
        return rule(saveable, unknown, instantiated, equation)

    return checked


def result_types(hlo: bytes) -> list[tuple[int, ...] | None]:
    """The shapes of the results of a serialized HLO module; None for one that is not constant."""
    with mlir.make_ir_context():
        functions = ir.Module.parse(hlo_to_stablehlo(hlo)).body.operations
        [main] = [function for function in functions if function.name.value == "main"]
        static = [result.has_static_shape and result.encoding is None for result in main.type.results]
        return [tuple(result.shape) if ok else None for result, ok in zip(main.type.results, static, strict=True)]


def has_dynamic_sizes(hlo: bytes) -> bool:
    """Whether a serialized HLO module has arrays whose sizes are known only when it runs."""
    found = False

    def visit(operation: Any) -> Any:
        nonlocal found
        found = found or any(getattr(result.type, "encoding", None) is not None for result in operation.results)
        return ir.WalkResult.ADVANCE

    with mlir.make_ir_context():
        try:
            ir.Module.parse(hlo_to_stablehlo(hlo)).operation.walk(visit)
        except ir.MLIRError:  # StableHLO has arrays of one such size alone
            return True
    return found


def has_stablehlo(hlo: bytes) -> bool:
    """Whether a serialized HLO module has a StableHLO form: no array of two sizes that are known only when it runs."""
    with mlir.make_ir_context():
        try:
            ir.Module.parse(hlo_to_stablehlo(hlo))
        except ir.MLIRError:
            return False
    return True


def custom_call_targets(hlo: bytes) -> list[str]:
    """What a serialized HLO module calls by name."""
    targets: list[str] = []

    def visit(operation: Any) -> Any:
        if operation.operation.name == "stablehlo.custom_call":
            targets.append(ir.StringAttr(operation.operation.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    with mlir.make_ir_context():
        ir.Module.parse(hlo_to_stablehlo(hlo)).operation.walk(visit)
    return sorted(set(targets))


def is_symbolic(size: Any) -> bool:
    """Whether a size of a shape is a symbolic dimension, of jaxtf or of JAX."""
    return hasattr(size, "_get_vars") and hasattr(size, "_evaluate")


def dimension_variables(size: Any) -> set[str]:
    """The names of the dimension variables in a symbolic size."""
    return set(size._get_vars())


def evaluated_dimension(size: Any, variables: Mapping[str, int]) -> int:
    """The value of a symbolic size; `KeyError` for a variable that is not given."""
    if missing := dimension_variables(size) - variables.keys():
        raise KeyError(*missing)
    return int(size._evaluate(dict(variables)))


def constraint_texts(size: Any) -> list[str]:
    """The constraints of the scope that a symbolic size lives in, in the notation of jaxtf.shapepoly."""
    scope = size.scope
    if isinstance(scope, SymbolicScope):
        return [constraint.text for constraint in scope.constraints]
    return [f"{c.diff} {'==' if c.cmp.name == 'EQ' else '>='} 0" for c in scope._explicit_constraints]  # of JAX itself


def dimension_variable(name: str, size: Any) -> Any:
    """The dimension variable of this name, in the scope of a symbolic size."""
    if isinstance(size.scope, SymbolicScope):
        return symbolic_shape(name, scope=size.scope)[0]
    return type(size)._from_var(name, size.scope)


class Batch(NamedTuple):
    """The batch of a `jax.vmap`.

    Attributes:
      size: Of the batch.
      spmd_axis_name: The axes of the mesh that it is split over; None if the caller names none.
    """

    size: Any
    spmd_axis_name: Any


def register_batching(primitive: Primitive, rule: Callable[..., tuple[Sequence[Any], Sequence[int | None]]]) -> None:
    """Gives a primitive a rule of batching: from a `Batch`, operands, their batch dimensions and parameters."""

    def batched(axis: Any, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(Batch(axis.size, axis.spmd_name), operands, dims, **params)

    _batching.fancy_primitive_batchers[primitive] = batched


def short_text(aval: Any) -> str:
    """An aval as JAX's messages have it: `float32[3]`."""
    return str(aval.str_short())


def ir_types(ctx: mlir.LoweringRuleContext, avals: Sequence[Any]) -> list[ir.Type]:
    """The types of values of these avals in the program being lowered."""
    return [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in avals]


def dimension_values(ctx: mlir.LoweringRuleContext, sizes: Sequence[Any]) -> Sequence[Any]:
    """The values of symbolic sizes in the program being lowered: integer scalars."""
    values: Sequence[Any] = _eval_dynamic_shape(ctx, tuple(sizes))
    return values


def dimension_variable_values(ctx: mlir.LoweringRuleContext) -> dict[str, Any]:
    """The values of the dimension variables in the program being lowered, by name."""
    return dict(zip(ctx.module_context.shape_poly_state.dim_vars, ctx.dim_var_values, strict=True))


def with_dimension_variables(ctx: mlir.LoweringRuleContext, values: Mapping[str, Any]) -> mlir.LoweringRuleContext:
    """The context in which the dimension variables have other values."""
    inner = [values.get(name, value) for name, value in dimension_variable_values(ctx).items()]
    return dataclasses.replace(ctx, dim_var_values=inner)


def is_for_export(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether the program being lowered is to be exported, and not run in this process."""
    return bool(ctx.module_context.lowering_parameters.for_export)


def token_type() -> Any:
    """The type of a token."""
    return _token_type()


def hlo_to_stablehlo(hlo: bytes) -> bytes:
    """The StableHLO module, as MLIR bytes, of a serialized HLO module."""
    stablehlo: bytes = _jaxlib.mlir.hlo_to_stablehlo(hlo)
    return stablehlo


# A DLPack capsule over the memory of an array on one CPU device, waiting until it is computed.
dlpack_capsule = _jaxlib.buffer_to_dlpack_managed_tensor


@functools.lru_cache(1024)
def is_one_cpu(sharding: jax.sharding.Sharding) -> bool:
    """Whether arrays of this sharding are on one CPU device, all of them."""
    devices: set[Any] = sharding.device_set
    return [device.platform for device in devices] == ["cpu"]


def array_over(view: np.ndarray[Any, Any]) -> jax.Array:
    """The array on the default device, not committed to it, with the elements of a NumPy array.

    On a CPU an aligned array shares the memory, which must not change as long as either lives.
    """
    placement = _placement(view.shape, view.dtype, jax.config.jax_default_device or jax.devices()[0])
    if placement is None:
        array: jax.Array = jax.device_put(view)
        return array
    aval, sharding, devices = placement
    try:
        shared: jax.Array = _xla_client.batched_device_put(aval, sharding, [view], devices, False)
    except jax.errors.JaxRuntimeError:  # a guard takes this for a transfer: to ask for guards first would cost 0.2 us
        with jax.transfer_guard_host_to_device("allow"):
            shared = _xla_client.batched_device_put(aval, sharding, [view], devices, False)
    return shared


@functools.lru_cache(1024)
def _placement(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: jax.Device | str
) -> tuple[ShapedArray, Any, list[jax.Device]] | None:
    """What puts an array on a CPU; None for any other device."""
    if isinstance(device, str) or device.platform != "cpu":
        return None
    return ShapedArray(shape, dtype), jax.sharding.SingleDeviceSharding(device), [device]
