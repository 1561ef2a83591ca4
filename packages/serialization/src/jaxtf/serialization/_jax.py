"""The door to JAX and jaxlib: the only module here that uses their private names.

Imported when a function is exported or called, never to read or describe an artifact. Each
private name stands once, with why it is needed and the versions it was seen in:

- `Traced.lower(_private_parameters=...)` (0.10.2, 0.12.0.1): constants must stay constants,
  not become hoisted arguments, and rules must know that they lower for export, so that they
  avoid what consumers of last month do not read. No public parameter says so.
- `Lowered._lowering.compile_args` (0.10.2, 0.12.0.1): which flat arguments the module keeps,
  its effects in JAX's token order, host callbacks, shardings and the number of devices.
- `jax._src.effects.Effect` (0.10.2, 0.12.0.1): its subclasses are the effects that there are; an
  artifact has only the name of one.
- `jax._src.lax.linalg.initialize_lapack` (0.10.2, 0.12.0.1): jaxlib's LAPACK calls crash the process
  until JAX has lowered one itself, which a process that only runs artifacts never does.
- `jax._src.config.use_shardy_partitioner` (0.10.2, 0.12.0.1): the setting for one thread and a while; `jax.config` sets
  it for all.
- `LoweringParameters.override_lowering_rules` (0.10.2, 0.12.0.1): other rules for the primitives of
  linear algebra, in one lowering. Their default rules and those of other platforms are in
  `jax._src.interpreters.mlir._lowerings` and `_platform_specific_lowerings`, `lower_per_platform` chooses among
  them, and `jax._src.lax.linalg.geqrf_p` and `geqp3_p` are primitives under `qr`: none has a public name.
- `jax._src.export.shape_poly._DimExpr`, by the name of its class alone, and `SymbolicScope._explicit_constraints` with
  their `debug_str` (0.10.2, 0.12.0.1): sizes that `jax.export.symbolic_shape` made are taken too, and no public name
  gives the constraints that they were made under. Nothing of that module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax
import jaxlib.version
from jax._src import effects as jax_effects
from jax._src.config import use_shardy_partitioner as _use_shardy_partitioner
from jax._src.interpreters import mlir as jax_rules
from jax._src.lax import linalg as jax_linalg
from jax._src.lax.linalg import geqp3_p, geqrf_p
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jaxtf.serialization._called import CalledFunction
from jaxtf.serialization._exported import Producer
from jaxtf.serialization._release import RELEASE

__all__ = [
    "Lowering",
    "constraint_texts",
    "default_rule",
    "effect_classes",
    "geqp3_p",
    "geqrf_p",
    "initialize_lapack",
    "lower",
    "lower_on_cpu_by",
    "producer",
    "scope_of",
    "without_shardy",
]


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
      called_functions: Those that the module calls by name, once they have been numbered.
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
    called_functions: tuple[CalledFunction, ...] = ()


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


def default_rule(primitive: Any) -> Callable[..., Any]:
    """JAX's lowering rule of a primitive for the platforms that have none of their own."""
    found: Callable[..., Any] = jax_rules._lowerings[primitive].rule
    return found


def lower_on_cpu_by(primitive: Any, rule: Callable[..., Any], ctx: Any, *args: Any, **params: Any) -> Any:
    """Lowers by `rule` on CPU, and by JAX's rules on the other platforms."""
    default = jax_rules._lowerings.get(primitive)
    per_platform = {
        platform: rules[primitive].rule
        for platform, rules in jax_rules._platform_specific_lowerings.items()
        if primitive in rules
    }
    return jax_rules.lower_per_platform(
        ctx,
        primitive.name,
        {**per_platform, "cpu": rule},
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


def initialize_lapack() -> None:
    """Makes the custom calls `lapack_*` of jaxlib callable; without it they crash the process.

    To be called before a module that has some is compiled for CPU. It costs an import of SciPy once.
    """
    jax_linalg.initialize_lapack()


def without_shardy() -> AbstractContextManager[Any]:
    """A context in which this thread lowers shardings for the partitioner before Shardy."""
    context: AbstractContextManager[Any] = _use_shardy_partitioner(False)
    return context


def producer() -> Producer:
    """The releases that export functions in this process."""
    return Producer(jaxtf=RELEASE, jax=jax.__version__, jaxlib=jaxlib.version.__version__)


def scope_of(size: Any) -> Any:
    """The scope of a symbolic size that `jax.export` made; None for any other size."""
    kind = type(size)
    is_foreign = kind.__name__ == "_DimExpr" and kind.__module__.startswith("jax._src.export")
    return size.scope if is_foreign else None


def constraint_texts(scope: Any) -> tuple[str, ...]:
    """The constraints of a scope of `jax.export`, as their user wrote them."""
    return tuple(constraint.debug_str for constraint in scope._explicit_constraints)
