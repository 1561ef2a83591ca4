"""Compatibility with JAX and jaxlib: the only module of this package that uses their private names.

Imported when a function is exported or called, never to read or describe an artifact. `PRIVATE_NAMES` has each private
name, those that are reached through objects too; `DUE`, what JAX is going to remove. Tests hold both against the JAX
that is installed (tests/test_private_names.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jaxlib.version
import numpy as np
from jax._src import checkify as jax_checkify
from jax._src import effects as jax_effects
from jax._src.callback import io_callback_p, pure_callback_p
from jax._src.config import config_states as _settings
from jax._src.config import trace_context as _trace_context
from jax._src.config import use_shardy_partitioner as _use_shardy_partitioner
from jax._src.core import ShardingTypeError
from jax._src.debugging import debug_callback_p, debug_print_p
from jax._src.interpreters import mlir as jax_rules
from jax._src.lax import linalg as jax_linalg
from jax._src.lax.control_flow import platform_index_p
from jax._src.lax.lax import _convert_element_type
from jax._src.lax.linalg import geqp3_p, geqrf_p
from jax._src.pjit import jit_p
from jax._src.source_info_util import register_exclusion
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr
from jax.extend.mlir import ir
from jax.interpreters import mlir

__all__ = [
    "CALLBACKS",
    "PLATFORM_INDEX",
    "Devices",
    "Lowering",
    "ShardingTypeError",
    "add_function",
    "calling_configuration",
    "constraint_texts",
    "default_rule",
    "devices_of",
    "effect_classes",
    "equation_frames",
    "geqp3_p",
    "geqrf_p",
    "has_shardings",
    "hlo_sharding",
    "initialize_lapack",
    "is_literal",
    "jaxpr_of_jit",
    "jitted",
    "leave_out_of_source_lines",
    "linalg_result_type",
    "lower",
    "lower_by_platform",
    "lowering_platforms",
    "makes_default_keys",
    "mlir_context",
    "of_one_equation",
    "platform_index",
    "registered_with_jax_export",
    "releases",
    "require_refinement",
    "result_avals",
    "result_types",
    "scope_of",
    "set_tokens",
    "static_parameters",
    "tangent_aval",
    "token_of",
    "tracing_configuration",
    "tracing_settings",
    "vary_as",
    "varying_axes",
    "weakly_typed",
    "with_jaxpr",
    "without_shardy",
]

# Each private name: where JAX has it -> the newest JAX that it was seen in, and why it is needed.
PRIVATE_NAMES = {
    "jax._src.stages.Traced.lower": (
        "0.12.0.1",
        "its `_private_parameters`: constants must stay constants, not become hoisted arguments, and rules must know "
        "that they lower for export, so that they avoid what consumers of last month do not read",
    ),
    "jax._src.interpreters.mlir.LoweringParameters.for_export": ("0.12.0.1", "one of these parameters"),
    "jax._src.interpreters.mlir.LoweringParameters.hoist_constants_as_args": ("0.12.0.1", "another"),
    "jax._src.interpreters.mlir.LoweringParameters.export_ignore_forward_compatibility": ("0.12.0.1", "another"),
    "jax._src.interpreters.mlir.LoweringParameters.override_lowering_rules": (
        "0.12.0.1",
        "other rules for the primitives of linear algebra, in one lowering",
    ),
    "jax._src.core.JaxprEqn.source_info": (
        "0.12.0.1",
        "where an equation was traced: it has the whole stack, of which users are to see their own line",
    ),
    "jax._src.core.ShardingTypeError": (
        "0.12.0.1",
        "what JAX raises of shardings that do not go together; it is no TypeError, and has no public name",
    ),
    "jax._src.interpreters.mlir._lowerings": ("0.12.0.1", "the default rules of these primitives"),
    "jax._src.interpreters.mlir._platform_specific_lowerings": ("0.12.0.1", "their rules for platforms"),
    "jax._src.interpreters.mlir.LoweringRuleEntry.rule": ("0.12.0.1", "a rule in these tables"),
    "jax._src.interpreters.mlir.lower_per_platform": ("0.12.0.1", "chooses among these rules"),
    "jax._src.effects.no_effects": ("0.12.0.1", "an argument of `lower_per_platform`"),
    "jax._src.lax.linalg.geqrf_p": ("0.12.0.1", "a primitive under `qr`, without a public name"),
    "jax._src.lax.linalg.geqp3_p": ("0.12.0.1", "another"),
    "jax._src.lax.linalg.initialize_lapack": (
        "0.12.0.1",
        "jaxlib's LAPACK calls crash the process until JAX has lowered one itself, which a process that only runs "
        "artifacts never does",
    ),
    "jax._src.stages.Lowered._lowering": ("0.12.0.1", "gives `compile_args`"),
    "jax._src.interpreters.pxla.MeshComputation.compile_args": (
        "0.12.0.1",
        "which flat arguments the module keeps, its effects in JAX's token order, host callbacks, shardings and the "
        "number of devices",
    ),
    "jax._src.interpreters.mlir.ShapePolyLoweringState.uses_dim_vars": (
        "0.12.0.1",
        "whether a module must be refined before it is compiled; set by a call of one that must",
    ),
    "jax._src.effects.Effect": (
        "0.12.0.1",
        "its subclasses are the effects that there are; an artifact has only the name of one",
    ),
    "jax._src.config.config_states": (
        "0.12.0.1",
        "every setting of JAX: what tracing depends on, beyond those that `jax` has a context for, is to be as it was",
    ),
    "jax._src.config.State.swap_local": ("0.12.0.1", "whether tracing depends on a setting: seen by another value"),
    "jax._src.config.State.set_local": ("0.12.0.1", "what ends that"),
    "jax._src.config.trace_context": (
        "0.12.0.1",
        "what of JAX's configuration `jax.jit` keys its own cache by (x64, matmul precision, promotion, ..., not "
        "`jax_default_prng_impl`, for which `jax.jit` is stale too); there is no public list of those settings",
    ),
    "jax._src.config.use_shardy_partitioner": ("0.12.0.1", "the setting for one thread; `jax.config` sets it for all"),
    "jax._src.callback.pure_callback_p": ("0.12.0.1", "its name, to name what the user wrote where it is refused"),
    "jax._src.callback.io_callback_p": ("0.12.0.1", "likewise"),
    "jax._src.debugging.debug_callback_p": ("0.12.0.1", "likewise"),
    "jax._src.debugging.debug_print_p": ("0.12.0.1", "likewise"),
    "jax._src.lax.control_flow.platform_index_p": ("0.12.0.1", "its name, in the error that there is no rule for it"),
    "jax._src.core.ShapedArray.manual_axis_type": ("0.12.0.1", "over which axes of a mesh a value varies"),
    "jax._src.core.ManualAxisType.varying": ("0.12.0.1", "the axes"),
    "jax._src.core.ShapedArray.to_tangent_aval": ("0.12.0.1", "what a rule of differentiation gives for a zero"),
    "jax._src.pjit._cpp_pjit._jit_info": (
        "0.12.0.1",
        "which arguments are static in a function that the user gave to `jax.jit`; nothing public says so",
    ),
    "jax._src.pjit.PjitInfo.static_argnums": ("0.12.0.1", "their positions"),
    "jax._src.pjit.PjitInfo.static_argnames": ("0.12.0.1", "their names"),
    "jax._src.stages.Traced._params": (
        "0.12.0.1",
        "the shardings that the user gave to `jax.jit`; nothing public says whether there are any before lowering. And "
        "the jaxpr, which is lowered with other constants than JAX traced",
    ),
    "jax._src.checkify.error_checks": (
        "0.12.0.1",
        "`jax.experimental.checkify` looks into no primitive that has no rule there, and reports nothing of it",
    ),
    "jax._src.checkify.checkify_jaxpr": ("0.12.0.1", "the checks of what a primitive consists of"),
    "jax._src.pjit.jit_p": ("0.12.0.1", "the primitive of `jax.jit` in a jaxpr"),
    "jax._src.core.DebugInfo._replace": (
        "0.12.0.1",
        "of a named tuple: a jaxpr of part of another one has other arguments than the names there",
    ),
    "jax._src.lax.lax._convert_element_type": ("0.12.0.1", "an array whose dtype is weak, as `call` gives it"),
    "jax._src.source_info_util.register_exclusion": (
        "0.12.0.1",
        "operations of a lifted module have its source lines, and not those of the code here that evaluates them",
    ),
    # What a lowering rule reads and sets; it has no public documentation.
    "jax._src.interpreters.mlir.LoweringRuleContext.module_context": ("0.12.0.1", "the module that is lowered into"),
    "jax._src.interpreters.mlir.LoweringRuleContext.avals_out": ("0.12.0.1", "the types of the results"),
    "jax._src.interpreters.mlir.LoweringRuleContext.dim_var_values": ("0.12.0.1", "the platform index is the first"),
    "jax._src.interpreters.mlir.LoweringRuleContext.tokens_in": ("0.12.0.1", "tokens of ordered effects, before"),
    "jax._src.interpreters.mlir.LoweringRuleContext.set_tokens_out": ("0.12.0.1", "and after"),
    "jax._src.interpreters.mlir.TokenSet.update_tokens": ("0.12.0.1", "those of other effects stay"),
    "jax._src.interpreters.mlir.ModuleContext.module": ("0.12.0.1", "the module"),
    "jax._src.interpreters.mlir.ModuleContext.symbol_table": ("0.12.0.1", "its functions by name"),
    "jax._src.interpreters.mlir.ModuleContext.platforms": ("0.12.0.1", "the lowering platforms"),
    "jax._src.interpreters.mlir.ModuleContext.shape_poly_state": ("0.12.0.1", "gives `uses_dim_vars`"),
    "jax._src.interpreters.mlir.ModuleContext.axis_context": ("0.12.0.1", "the number of devices"),
    "jax._src.sharding_impls.ShardingContext.num_devices": ("0.12.0.1", "likewise"),
    "jax._src.sharding_impls.SPMDAxisContext.mesh": ("0.12.0.1", "likewise"),
    "jax._src.sharding_impls.SPMDAxisContext.manual_axes": ("0.12.0.1", "of the `jax.shard_map` around a call"),
    "jax._src.named_sharding.NamedSharding._to_xla_hlo_sharding": ("0.12.0.1", "a sharding in XLA's own form"),
    # What is registered with `jax.export` holds here too, and sizes that its `symbolic_shape` made are taken; nothing
    # of it is imported.
    "jax._src.export._export.serialization_registry": ("0.12.0.1", "the pytree types that a library registered there"),
    "jax._src.export._export.deserialization_registry": ("0.12.0.1", "likewise, by name"),
    "jax._src.export.shape_poly._DimExpr.scope": ("0.12.0.1", "the scope of such a size"),
    "jax._src.export.shape_poly.SymbolicScope._explicit_constraints": ("0.12.0.1", "its constraints"),
    "jax._src.export.shape_poly._SymbolicConstraint.debug_str": ("0.12.0.1", "the text of one, as its user wrote it"),
}

# What JAX is going to remove: where it is -> the newest JAX that it was seen in, and what is due when it is gone.
DUE = {
    "jax._src.config.use_shardy_partitioner": (
        "0.12.0.1",
        "lowering for GSPMD. Then nothing writes calling convention 9 for several devices: `without_shardy` goes, and "
        "TensorFlow 2.19 is refused there.",
    ),
    "jax._src.sharding_impls.GSPMDSharding": (
        "0.12.0.1",
        "the same: what JAX makes of shardings in lowering for GSPMD",
    ),
    "jax._src.export.serialization_generated.Exported.InAvals": (
        "0.12.0.1",
        "reading avals inline, as formats before 10 have them; JAX announced six months from 4 April 2026. Then "
        "docs/artifact_format.md, section 1, is to say which jax.export was the last that reads them.",
    ),
    "jax._src.export._export.Exported.in_shardings_hlo": (
        "0.12.0.1",
        "shardings in XLA's own form, as formats before 9 have them; JAX has not used it since 17 March 2026. Then "
        "docs/artifact_format.md, section 1, is to say which jax.export was the last that has it.",
    ),
}


@dataclass(frozen=True)
class Lowering:
    """A traced function lowered to StableHLO, with what the exporter must know of it.

    Attributes:
      module: A private copy, in a context of its own; its `main` takes the platform index if
        there are several platforms, the dimension variables by name, tokens, kept arguments.
      kept_arguments: Positions among the flat arguments of those that `main` still takes.
      ordered_effects: One token argument and leading result of `main` each, in this order.
      unordered_effects: Effects without a token.
      device_count: Number of devices that the module is lowered for.
      in_shardings: JAX's sharding of each kept argument.
      out_shardings: JAX's sharding of each result.
      refined_at_run_time: Whether the module needs its constants (dimension variables, platform index)
        filled in before it can be compiled.
      host_callbacks: What calls back into this Python process; must be empty to be exported.
    """

    module: ir.Module
    kept_arguments: tuple[int, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    device_count: int
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    refined_at_run_time: bool
    host_callbacks: tuple[Any, ...]


def lower(traced: Any, platforms: tuple[str, ...], rules: Any = None) -> Lowering:
    """Lowers a traced function for `platforms`, in the order of the platform index.

    `rules` are pairs of a primitive and the lowering rule that takes the place of JAX's.
    """
    parameters = mlir.LoweringParameters(
        override_lowering_rules=rules,
        for_export=True,
        hoist_constants_as_args=False,
        export_ignore_forward_compatibility=jax.config.jax_export_ignore_forward_compatibility,
    )
    lowered = traced.lower(lowering_platforms=platforms, _private_parameters=parameters)
    facts = lowered._lowering.compile_args
    # The lowering may be cached by JAX: what we change must be a copy.
    with mlir.make_ir_context() as context, ir.Location.unknown(context):
        module = ir.Module.parse(mlir.module_to_bytecode(lowered.compiler_ir("stablehlo")))
    return Lowering(
        module=module,
        kept_arguments=tuple(sorted(facts["kept_var_idx"])),
        ordered_effects=tuple(facts["ordered_effects"]),
        unordered_effects=tuple(facts["unordered_effects"]),
        device_count=facts["num_devices"],
        in_shardings=tuple(facts["in_shardings"]),
        out_shardings=tuple(facts["out_shardings"]),
        refined_at_run_time=facts["shape_poly_state"].uses_dim_vars,
        host_callbacks=(*facts["host_callbacks"], *facts["keepalive"]),
    )


def jitted(fun: Callable[..., Any], static_positions: tuple[int, ...], static_names: tuple[str, ...]) -> Any:
    """The result of `jax.jit`, with these arguments static."""
    if not (static_positions or static_names):
        return jax.jit(fun)
    return jax.jit(fun, static_argnums=static_positions, static_argnames=static_names)


def static_parameters(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of what is static in the result of `jax.jit`; positions may count from the end."""
    info = jitted._jit_info
    return tuple(info.static_argnums), tuple(info.static_argnames)


# Primitives that call back into Python, by their names -> what the user wrote.
CALLBACKS = {
    pure_callback_p.name: "jax.pure_callback",
    io_callback_p.name: "jax.experimental.io_callback",
    debug_callback_p.name: "jax.debug.callback or jax.debug.print",
    debug_print_p.name: "jax.debug.print",
}

# The name of the primitive that `jax.lax.platform_dependent` asks for the platform.
PLATFORM_INDEX: str = platform_index_p.name


def equation_frames(equation: Any) -> list[tuple[str, int]]:
    """File and line of each frame of the stack in which an equation was traced, the innermost first."""
    stack = equation.source_info.traceback
    return [] if stack is None else [(frame.file_name, frame.line_num) for frame in stack.frames]


def default_rule(primitive: Any) -> Callable[..., Any]:
    """JAX's lowering rule of a primitive for the platforms that have none of their own."""
    found: Callable[..., Any] = jax_rules._lowerings[primitive].rule
    return found


def lower_by_platform(primitive: Any, own: Mapping[str, Any], ctx: Any, *args: Any, **params: Any) -> Any:
    """Lowers by the rules of `own` on the platforms that it names, and by JAX's rules on the others."""
    default = jax_rules._lowerings.get(primitive)
    per_platform = {
        platform: rules[primitive].rule
        for platform, rules in jax_rules._platform_specific_lowerings.items()
        if primitive in rules
    }
    return jax_rules.lower_per_platform(
        ctx,
        primitive.name,
        {**per_platform, **own},
        None if default is None else default.rule,
        jax_effects.no_effects,
        *args,
        **params,
    )


def effect_classes() -> list[type[Any]]:
    """The classes of effects of this process, each after one that it is derived from."""
    classes: list[type[Any]] = [jax_effects.Effect]
    for known in classes:
        classes.extend(subclass for subclass in known.__subclasses__() if subclass not in classes)
    return classes


def hlo_sharding(sharding: Any, rank: int) -> Any:
    """XLA's form of a `NamedSharding` of an array of `rank` axes: an `HloSharding` of jaxlib."""
    return sharding._to_xla_hlo_sharding(rank)


def initialize_lapack() -> None:
    """Makes the custom calls `lapack_*` of jaxlib callable; without it they crash the process.

    To be called before a module that has some is compiled for CPU. It costs an import of SciPy once.
    """
    jax_linalg.initialize_lapack()


def without_shardy() -> AbstractContextManager[Any]:
    """A context in which this thread lowers shardings for the partitioner before Shardy."""
    context: AbstractContextManager[Any] = _use_shardy_partitioner(False)
    return context


def weakly_typed(array: Any) -> Any:
    """An array whose dtype JAX lets the other operand choose."""
    return _convert_element_type(array, array.dtype, weak_type=True)


def leave_out_of_source_lines(folder: str) -> None:
    """Makes JAX look past the files of a folder for the line of the user's program that an operation comes from."""
    register_exclusion(folder)


def linalg_result_type(name: str) -> type[Any]:
    """The type of the results of `jax.numpy.linalg`'s functions, by its name, such as `EighResult`.

    JAX has no public name for them; what the functions return has them for a type.
    """
    square = jax.ShapeDtypeStruct((1, 1), np.float32)
    functions: dict[str, Callable[..., Any]] = {
        "EighResult": jax.numpy.linalg.eigh,
        "QRResult": jax.numpy.linalg.qr,
        "SVDResult": jax.numpy.linalg.svd,
        "SlogdetResult": jax.numpy.linalg.slogdet,
    }
    return type(jax.eval_shape(functions[name], square))


def tracing_configuration() -> Hashable:
    """A hashable value that differs whenever JAX would trace or lower differently."""
    context: Hashable = _trace_context()
    return context


# What functions read where they make random keys: `jax.jit` does not key by these settings.
_OF_KEYS = ("jax_default_prng_impl", "jax_enable_custom_prng")
_prng_impl, _custom_prng = map(_settings.__getitem__, _OF_KEYS)


def calling_configuration() -> Hashable:
    """A hashable value that differs whenever a function that JAX has not traced yet may compute something else."""
    return _trace_context(), _prng_impl.value, _custom_prng.value


def makes_default_keys() -> bool:
    """Whether JAX is set to make random keys as it does by default, by what `jax.jit` does not key by."""
    return _prng_impl.value == "threefry2x32" and not _custom_prng.value


def tracing_settings() -> Callable[[], AbstractContextManager[None]]:
    """What JAX is set to now, in this thread, as far as `calling_configuration` depends on it.

    What it returns makes a context in which JAX is set so again. What guards transfers, looks for NaN, logs or compiles
    stays as it is around that: it is of the program that runs, not of what was traced.
    """
    values = {name: setting.value for name, setting in _settings.items() if _decides(name)}

    @contextmanager
    def set_again() -> Iterator[None]:
        with ExitStack() as stack:
            for name, value in values.items():
                if _settings[name].value != value:
                    stack.enter_context(_settings[name](value))
            yield

    return set_again


@cache
def _decides(name: str) -> bool:
    """Whether `calling_configuration` depends on this setting, which gets another value for that, in this thread."""
    setting, before = _settings[name], calling_configuration()
    value = setting.swap_local(object())
    try:
        return calling_configuration() != before
    finally:
        setting.set_local(value)


def releases() -> tuple[str, str]:
    """The releases of JAX and jaxlib."""
    return jax.__version__, jaxlib.version.__version__


# What a lowering rule reads and sets of its context, `ctx`.


def mlir_context(ctx: Any) -> ir.Context:
    """The MLIR context of the module that is lowered into."""
    return ctx.module_context.module.context


def lowering_platforms(ctx: Any) -> tuple[str, ...]:
    """The platforms that the module is lowered for, in the order of the platform index."""
    return tuple(ctx.module_context.platforms)


@dataclass(frozen=True)
class Devices:
    """The devices of a program that is being lowered, where a rule is applied.

    Attributes:
      count: How many there are, all together.
      axes: Of their mesh: names and sizes, if there is one.
      manual: The names of those over which each device, or row of devices, computes for itself: of the `jax.shard_map`,
        or `jax.pmap`, that the rule is applied in.
    """

    count: int
    axes: tuple[tuple[Any, int], ...] = ()
    manual: frozenset[Any] = frozenset()


def devices_of(ctx: Any) -> Devices:
    """The devices of the program that is being lowered."""
    context = ctx.module_context.axis_context
    if not hasattr(context, "mesh"):
        return Devices(int(context.num_devices))
    return Devices(int(context.mesh.size), tuple(context.mesh.shape.items()), frozenset(context.manual_axes))


def add_function(ctx: Any, name: str, module: ir.Module) -> tuple[str, Any]:
    """Adds the main function of a module, with those that it calls; the name that it gets, and the function."""
    caller = ctx.module_context
    name = mlir.merge_mlir_modules(caller.module, name, module, dst_symtab=caller.symbol_table)
    return name, caller.symbol_table[name]


def require_refinement(ctx: Any) -> None:
    """Marks the module as one that must be refined to known sizes before it is compiled."""
    ctx.module_context.shape_poly_state.uses_dim_vars = True


def platform_index(ctx: Any) -> ir.Value:
    """The platform index, in a module for several platforms."""
    return ctx.dim_var_values[0]


def result_avals(ctx: Any) -> list[Any]:
    """Shapes and dtypes of the results of the equation that is lowered."""
    return list(ctx.avals_out)


def result_types(ctx: Any) -> list[ir.Type]:
    """The types of the results of the primitive."""
    return [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in result_avals(ctx)]


def token_of(ctx: Any, effect: Any) -> Any:
    """The token of an ordered effect, before this call."""
    return ctx.tokens_in.get(effect)


def set_tokens(ctx: Any, tokens: Mapping[Any, Any]) -> None:
    """Sets the tokens of ordered effects, after this call."""
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(mlir.TokenSet(dict(tokens))))


# What the aval of a value says beyond shape and dtype.


def tangent_aval(aval: Any) -> Any:
    """The aval of a tangent of a value: of dtype `float0` if it has no other."""
    return aval.to_tangent_aval()


def varying_axes(aval: Any) -> frozenset[Any]:
    """The axes of the mesh over which a value varies, inside of `jax.shard_map`; elsewhere none."""
    return frozenset(aval.manual_axis_type.varying) if isinstance(aval, ShapedArray) else frozenset()


def vary_as(aval: Any, like: Any, sharding: Any) -> Any:
    """An aval that varies over the axes over which another one does, with a sharding."""
    return aval.update(sharding=sharding, manual_axis_type=like.manual_axis_type)


def registered_with_jax_export(node_type: type[Any] | None, name: str | None) -> tuple[Any, ...] | None:
    """What `jax.export` was given for a pytree type, or for a name; None if nothing, or if nobody imported it.

    The type, the name, from auxiliary data to bytes, the reverse, and from auxiliary data and children to a node.
    """
    module: Any = sys.modules.get("jax._src.export._export")
    if module is None:
        return None
    if node_type is not None:
        name, _ = module.serialization_registry.get(node_type, (None, None))
    if name not in module.deserialization_registry:
        return None
    node_type, deserialize, from_children = module.deserialization_registry[name]
    _, serialize = module.serialization_registry[node_type]
    return node_type, name, serialize, deserialize, from_children


def scope_of(size: Any) -> Any:
    """The scope of a symbolic size that `jax.export` made; None for any other size."""
    kind = type(size)
    is_foreign = kind.__name__ == "_DimExpr" and kind.__module__.startswith("jax._src.export")
    return size.scope if is_foreign else None


def constraint_texts(scope: Any) -> tuple[str, ...]:
    """The constraints of a scope of `jax.export`, as their user wrote them."""
    return tuple(constraint.debug_str for constraint in scope._explicit_constraints)


def has_shardings(traced: Any) -> bool:
    """Whether a traced function says how its arguments or results are split over devices."""
    given = (*traced._params["in_shardings"], *traced._params["out_shardings"])
    return any(type(sharding).__name__ != "UnspecifiedValue" for sharding in given)


def with_jaxpr(traced: Any, jaxpr: Any) -> Any:
    """A traced function that computes another jaxpr, of the same arguments and results."""
    changed = copy(traced)
    changed._params = {**traced._params, "jaxpr": jaxpr}
    return changed


def jaxpr_of_jit(equation: Any) -> ClosedJaxpr | None:
    """The jaxpr of a `jit` inside a jaxpr; None for any other equation."""
    if equation.primitive is not jit_p:
        return None
    jaxpr: ClosedJaxpr = equation.params["jaxpr"]
    return jaxpr


def is_literal(atom: Any) -> bool:
    """Whether an operand in a jaxpr is a value, not a variable."""
    return hasattr(atom, "val")


def of_one_equation(jaxpr: ClosedJaxpr, equation: Any) -> ClosedJaxpr:
    """A jaxpr that computes one equation of another, from those operands that are variables, each once."""
    inner = jaxpr.jaxpr
    variables = [atom for atom in equation.invars if not is_literal(atom)]
    return ClosedJaxpr(
        inner.replace(
            constvars=[],
            invars=list(dict.fromkeys(variables)),
            outvars=list(equation.outvars),
            eqns=[equation],
            effects=equation.effects,
            debug_info=inner.debug_info._replace(arg_names=None, result_paths=None),
        ),
        (),
    )


def checked_as(primitive: Any, function_of: Callable[..., Callable[[Any], Any]]) -> None:
    """Has `jax.experimental.checkify` check what a primitive of one array consists of.

    Args:
      primitive: Of one operand and one result.
      function_of: From its parameters, by name, to that function.
    """

    def rule(*given: Any, **parameters: Any) -> tuple[Any, Any]:
        *context, error, enabled, operand = given  # JAX 0.12 has a context first
        jaxpr = jax.make_jaxpr(function_of(**parameters))(operand)
        error, [result] = jax_checkify.checkify_jaxpr(*context, jaxpr, enabled, error, operand)
        return error, result

    jax_checkify.error_checks[primitive] = rule
