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
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.core
import jax.dtypes
import jax.random
import jaxlib.version
import numpy as np
from jax._src import effects as jax_effects
from jax._src.config import use_shardy_partitioner as _use_shardy_partitioner
from jax._src.interpreters import mlir as jax_rules
from jax._src.lax import linalg as jax_linalg
from jax.extend import backend as jax_backend
from jax.extend import core as jax_core
from jax.extend import mlir as jax_mlir
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir, xla

from jaxtf.serialization._avals import Aval, ExtendedDtype
from jaxtf.serialization._called import CalledFunction
from jaxtf.serialization._effects import Effect
from jaxtf.serialization._errors import ArtifactError, StablehloVersionError
from jaxtf.serialization._exported import Producer
from jaxtf.serialization._release import RELEASE

__all__ = [
    "Lowering",
    "current_stablehlo_version",
    "custom_calls",
    "default_calling_convention_version",
    "default_export_platform",
    "deserialize_module",
    "device_count",
    "expand_chlo",
    "from_dtype",
    "from_effect",
    "initialize_lapack",
    "linalg_result_type",
    "lower",
    "minimum_stablehlo_version",
    "module_text",
    "month_old_stablehlo_version",
    "new_call_primitive",
    "number_called_functions",
    "operations_to_check",
    "partitioner_that_fits",
    "producer",
    "registered_platforms",
    "serialize_module",
    "tangent_spec",
    "to_aval",
    "to_dtype",
    "to_effect",
    "to_shaped_array",
    "to_spec",
    "uses_shardy",
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


LinearAlgebra = Literal["calls", "expanded", "named"]


def lower(traced: Any, platforms: tuple[str, ...], linear_algebra: LinearAlgebra = "calls") -> Lowering:
    """Lowers a traced function for `platforms`, in the order of the platform index.

    Linear algebra becomes calls of LAPACK on CPU; expanded, operations of StableHLO; or calls by name.
    """
    rules = None
    if linear_algebra == "named":
        rules = _named_rules()
    elif linear_algebra == "expanded" and "cpu" in platforms:
        rules = _linear_algebra_rules()
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


@functools.cache
def _linear_algebra_rules() -> Any:
    """For each primitive of linear algebra that can do without LAPACK on CPU, the rule that does."""
    from jaxtf.serialization import _linear_algebra

    # XLA expands what the default rules of these write, or they write all of it.
    by_xla = (
        jax.lax.linalg.cholesky_p,
        jax.lax.linalg.triangular_solve_p,
        jax.lax.linalg.ormqr_p,
    )
    ours: dict[Any, Callable[..., Any]] = {
        jax_linalg.geqrf_p: _linear_algebra.geqrf,
        jax.lax.linalg.householder_product_p: _linear_algebra.householder_product,
        jax.lax.linalg.eigh_p: _linear_algebra.eigh,
        jax.lax.linalg.svd_p: _linear_algebra.svd,
        jax.lax.linalg.lu_p: _linear_algebra.lu,
        jax.lax.linalg.tridiagonal_solve_p: _linear_algebra.tridiagonal_solve,
    }
    rules = {primitive: jax_rules._lowerings[primitive].rule for primitive in by_xla}
    rules |= {primitive: _rule_of(function, primitive.multiple_results) for primitive, function in ours.items()}
    return tuple((primitive, functools.partial(_rule_on_cpu, primitive, rule)) for primitive, rule in rules.items())


@functools.cache
def _named_rules() -> Any:
    """Rules for primitives of linear algebra that JAX has no rules for on a platform without a name."""
    from jaxtf.serialization import _linear_algebra
    from jaxtf.serialization._named_operations import call_by_name

    named = (
        jax.lax.linalg.eigh_p,
        jax.lax.linalg.svd_p,
        jax.lax.linalg.eig_p,
        jax.lax.linalg.qr_p,
        jax.lax.linalg.schur_p,
        jax.lax.linalg.hessenberg_p,
        jax.lax.linalg.tridiagonal_p,
        jax_linalg.geqp3_p,
    )
    written_out: dict[Any, Callable[..., Any]] = {
        jax_linalg.geqrf_p: _linear_algebra.geqrf,
        jax.lax.linalg.householder_product_p: _linear_algebra.householder_product,
    }
    return (
        *((primitive, functools.partial(call_by_name, primitive.name)) for primitive in named),
        *((primitive, _rule_of(function, primitive.multiple_results)) for primitive, function in written_out.items()),
    )


def _rule_of(function: Callable[..., Any], multiple_results: bool) -> Callable[..., Any]:
    """The lowering rule that traces `function`, whatever the caller has configured for jax.numpy."""

    def traced(*args: Any, **params: Any) -> Any:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return function(*args, **params)

    return mlir.lower_fun(traced, multiple_results)


def _rule_on_cpu(primitive: Any, rule: Callable[..., Any], ctx: Any, *args: Any, **params: Any) -> Any:
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


def device_count(context: Any) -> int:
    """Number of devices of the program that is being lowered, from the context of a lowering rule."""
    devices = context.module_context.axis_context
    return int(devices.mesh.size if hasattr(devices, "mesh") else devices.num_devices)


def initialize_lapack() -> None:
    """Makes the custom calls `lapack_*` of jaxlib callable; without it they crash the process.

    To be called before a module that has some is compiled for CPU. It costs an import of SciPy once.
    """
    jax_linalg.initialize_lapack()


def default_export_platform() -> str:
    """The lowering platform of JAX's default backend: `cpu`, `tpu`, `cuda`, `rocm`, ..."""
    name = str(jax.default_backend())
    if name != "gpu":
        return name
    return "rocm" if "rocm" in jax_backend.get_backend().platform_version.lower() else "cuda"


def registered_platforms() -> frozenset[str]:
    """Names of the backends that this process has started, those of plugins included."""
    return frozenset(jax_backend.backends())


def default_calling_convention_version() -> int:
    """What `--jax_export_calling_convention_version` says."""
    return int(jax.config.jax_export_calling_convention_version)


def uses_shardy() -> bool:
    """Whether JAX lowers shardings for the Shardy partitioner."""
    return bool(jax.config.jax_use_shardy_partitioner)


def partitioner_that_fits(calling_convention_version: int) -> AbstractContextManager[Any]:
    """A context in which shardings are lowered for a partitioner that consumers of this version know."""
    return _use_shardy_partitioner(False) if calling_convention_version < 10 else nullcontext()


def to_aval(abstract: Any) -> Aval:
    """Our aval of a JAX aval, a `ShapeDtypeStruct` or an array."""
    weak_type = bool(getattr(abstract, "weak_type", False))
    space = getattr(abstract, "memory_space", None)
    memory_space = "device" if space is None else str(space.name).lower()
    return Aval(tuple(abstract.shape), to_dtype(abstract.dtype), weak_type, memory_space)


def to_dtype(dtype: Any) -> Any:
    """Our form of a dtype of JAX: an extended one by its name."""
    return ExtendedDtype(dtype.name) if jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else np.dtype(dtype)


def to_shaped_array(aval: Aval, shape: Sequence[Any] | None = None) -> Any:
    """JAX's aval of ours, at `shape` if given."""
    return jax.core.ShapedArray(
        tuple(aval.shape if shape is None else shape),
        from_dtype(aval.dtype),
        weak_type=aval.weak_type,
        memory_space=getattr(jax.memory.Space, aval.memory_space.capitalize()),
    )


def to_spec(aval: Aval, sharding: Any = None) -> Any:
    """JAX's specification of an argument of this aval; a sharding other than a `NamedSharding` says nothing."""
    placed = sharding if isinstance(sharding, jax.sharding.NamedSharding) else None
    return jax.ShapeDtypeStruct(aval.shape, from_dtype(aval.dtype), sharding=placed, weak_type=aval.weak_type)


_KEY_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@functools.cache
def from_dtype(dtype: Any) -> Any:
    """JAX's form of a dtype of ours.

    Raises:
      ArtifactError: It is an extended dtype that this JAX does not have.
    """
    if not isinstance(dtype, ExtendedDtype):
        return dtype
    implementation = _KEY_IMPLEMENTATIONS.get(dtype.name)
    if implementation is None:
        raise ArtifactError(f"JAX {jax.__version__} has no dtype {dtype.name!r}, which the exported function uses")
    return jax.eval_shape(lambda: jax.random.key(0, impl=implementation)).dtype


def tangent_spec(spec: Any) -> Any:
    """The specification of a cotangent: the same for inexact dtypes, `float0` for the others."""
    if jax.dtypes.issubdtype(spec.dtype, jax.numpy.inexact):
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype, sharding=spec.sharding)
    return jax.ShapeDtypeStruct(spec.shape, jax.dtypes.float0)


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


def to_effect(effect: Any) -> Effect:
    """Our form of an effect: its class's name, which lasts, and the object."""
    return Effect(str(type(effect)), effect)


def from_effect(effect: Effect) -> Any:
    """JAX's object of an effect, found by its name among the classes of effects of this process.

    Raises:
      ArtifactError: There is no such class, or it cannot be made without arguments.
    """
    if effect.value is not None:
        return effect.value
    classes = [jax_effects.Effect]
    for known in classes:
        classes.extend(subclass for subclass in known.__subclasses__() if subclass not in classes)
    # A dataclass with slots takes the place of the class it decorates, which may linger: the later one is in use.
    for known in reversed(classes):
        if str(known) == effect.name:
            return _effect_of(known)
    raise ArtifactError(
        f"the exported function has the effect {effect}, a class that this process does not have\n"
        "  remedy: import the module that defines it before calling the function"
    )


def _effect_of(known: type[Any]) -> Any:
    try:
        return known()
    except TypeError as error:
        raise ArtifactError(
            f"the exported function has an effect of {known}, which cannot be made without arguments: {error}"
        ) from error


def producer() -> Producer:
    """The releases that export functions in this process."""
    return Producer(jaxtf=RELEASE, jax=jax.__version__, jaxlib=jaxlib.version.__version__)


def expand_chlo(module: ir.Module) -> None:
    """Replaces operations of the CHLO dialect (erf, sinh, top_k, ...), in place, by StableHLO ones.

    Written to an artifact they would become composites, which older consumers do not refine to
    known sizes.
    """
    stablehlo.register_stablehlo_passes()
    with module.context:
        passes = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")
        passes.run(module.operation)


def serialize_module(module: ir.Module, target: str) -> bytes:
    """The portable artifact of `module` for consumers that read StableHLO `target`.

    The Shardy dialect has no versioned form: its operations are carried as they are.

    Raises:
      StablehloVersionError: An operation of the module has no form in that version.
    """
    try:
        with module.context:
            return bytes(jax_mlir.serialize_portable_artifact(module, target, True))
    except jax.errors.JaxRuntimeError as error:
        # The text that follows is the whole module.
        refused = re.search(r"error: (?:loc\((.*?)\): )?failed to legalize operation '([\w.]+)'", str(error))
        if refused is None:
            raise
        where, operation = refused.groups()
        raise StablehloVersionError(
            f"StableHLO {target} has no form for the operation {operation}"
            f"{f' at {where}' if where else ''}, which is newer\n"
            "  remedy: write for a newer StableHLO version, or do without that operation"
        ) from None


def deserialize_module(portable_artifact: bytes, context: Any = None) -> ir.Module:
    """The StableHLO module of a portable artifact, in `context` or in a new one."""
    with context or mlir.make_ir_context():
        module = jax_mlir.deserialize_portable_artifact(portable_artifact)
        # JAX before 0.10 answers with text.
        return ir.Module.parse(module) if isinstance(module, str | bytes) else module


def module_text(module: ir.Module) -> str:
    """The textual form of a module, with source locations."""
    text = io.StringIO()
    module.operation.print(file=text, enable_debug_info=True, large_elements_limit=None)
    return text.getvalue()


def current_stablehlo_version() -> str:
    """The newest StableHLO version that the installed jaxlib writes."""
    return str(stablehlo.get_current_version())


def minimum_stablehlo_version() -> str:
    """The oldest StableHLO version that the installed jaxlib writes."""
    return str(stablehlo.get_minimum_version())


def month_old_stablehlo_version() -> str:
    """A StableHLO version that consumers built in the last month read."""
    requirement = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    return str(stablehlo.get_version_from_compatibility_requirement(requirement))


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
