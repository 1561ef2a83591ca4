"""From a JAX function and argument specifications to an `Exported`. Imports JAX.

Four steps: trace and lower by JAX's public ahead-of-time path, solve the dimension variables
from the argument shapes, write the exported main function, check and serialize the module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.errors import UnexpectedTracerError

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._export.closed_over import closed_over, parts_left, paths_in_closure
from jaxtf.serialization._export.constants import large_constants
from jaxtf.serialization._export.frozen import frozen
from jaxtf.serialization._export.held_by_rules import rules_hold_writable
from jaxtf.serialization._export.jaxprs import (
    callback_names,
    called_functions,
    has_values_of_other_traces,
    sizes_in,
)
from jaxtf.serialization._export.jitted import as_jitted, static_parameters
from jaxtf.serialization._export.lapack import check_lapack
from jaxtf.serialization._export.lowering_rules import overriding_rules
from jaxtf.serialization._export.main import Dimensions, export_main, mark_refined_at_run_time
from jaxtf.serialization._export.target import Target
from jaxtf.serialization._export.unlowered import (
    arrays_within,
    host_callback_refused,
    part_stays,
    refuse_functions,
    refuse_references,
    refuse_values_of_other_traces,
    rule_closes_over,
    rule_has_arrays,
    rule_missing,
    value_of_another_trace,
    vjp_of_references,
    vjp_unavailable,
)
from jaxtf.serialization._jax_values.avals import placement, tangent_spec, to_aval, to_shaped_array, to_spec
from jaxtf.serialization._jax_values.derivatives import vjp_function
from jaxtf.serialization._jax_values.effects import to_effect
from jaxtf.serialization._jax_values.paths import argument_paths, result_paths
from jaxtf.serialization._jax_values.settings import partitioner_that_fits, producer, uses_shardy
from jaxtf.serialization._jax_values.shardings import explicit_sharding, from_jax
from jaxtf.serialization._jax_values.sizes import with_own_sizes
from jaxtf.serialization._program import portable_artifact
from jaxtf.serialization._program.for_xla import rewrite_for_xla
from jaxtf.serialization._program.one_device import rewrite_for_one_device
from jaxtf.serialization._program.operations import number_called_functions, operations_to_check
from jaxtf.serialization._record.avals import Aval, in_memory, python_sizes
from jaxtf.serialization._record.called import CalledFunction
from jaxtf.serialization._record.checks import STABLE_DIALECTS, check_custom_calls, check_dialects
from jaxtf.serialization._record.exported import EndlessVjp, Exported
from jaxtf.serialization._record.shardings import NamedSharding
from jaxtf.serialization._record.stablehlo import refines_composites
from jaxtf.serialization._record.tree import Tree
from jaxtf.shapepoly import is_symbolic_dim, solve_dimension_variables

__all__ = ["exporter", "exporter_with_weights"]


def exporter(fun: Callable[..., Any], target: Target) -> Callable[..., Exported]:
    """The function from argument specifications to the exported `fun`."""

    def export_for(*args: Any, **kwargs: Any) -> Exported:
        return _export(fun, target, args, kwargs)

    return export_for


def exporter_with_weights(
    fun: Callable[..., Any], target: Target, least_bytes: int, names_of: Callable[[Sequence[str]], Sequence[str]]
) -> Callable[..., tuple[Exported, dict[str, Any]]]:
    """The function from specifications to `fun`, exported with the large arrays that it closes over as a dictionary
    before its own arguments; and to that dictionary. `names_of` makes keys of paths in the closure.
    """

    def export_for(*args: Any, **kwargs: Any) -> tuple[Exported, dict[str, Any]]:
        args, kwargs = with_own_sizes((args, kwargs))
        _check_scopes(args, kwargs)
        traced = as_jitted(fun).trace(*_as_specs(args), **_as_specs(kwargs))
        large = closed_over(traced, len(jax.tree.leaves((args, kwargs))), least_bytes)
        if large is None:
            raise SerializationError(
                f"'{traced.fun_name}' closes over no array of {least_bytes:,} bytes or more; or it has static "
                "arguments, shardings, donated arguments or effects, and arrays are not taken out of such a function\n"
                "  remedy: export it, and save it with its weights as an argument: save(path, exported, params)"
            )
        if large.left:
            raise arrays_within(traced.fun_name, large.left)
        if parts := parts_left(large):
            raise part_stays(traced.fun_name, *parts[0])
        names = names_of(paths_in_closure(fun, large.arrays))

        def with_weights(weights: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            arrays = [weights[name] for name in names]

            def refused(rule: str, value: Any, equation: Any) -> Exception:
                known = [name for name, array in zip(names, arrays, strict=True) if array is value]
                return rule_closes_over(traced.fun_name, rule, known[0] if known else str(jax.typeof(value)), equation)

            results = large.evaluate(jax.tree.leaves((args, kwargs)), arrays, refused)
            return jax.tree.unflatten(traced.out_tree, results)

        with_weights.__name__ = with_weights.__qualname__ = traced.fun_name
        # What JAX keeps of an array of NumPy is of a class of its own, in the same memory.
        arrays = [array if isinstance(array, jax.Array) else np.asarray(array) for array in large.arrays]
        weights = dict(zip(names, arrays, strict=True))
        specs = {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in weights.items()}
        return _export(with_weights, target, (specs, *args), kwargs, least_bytes), weights

    return export_for


def _export(
    fun: Callable[..., Any],
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    least_bytes: int | None = None,
    *,
    is_vjp: bool = False,
) -> Exported:
    """Exports a function, and its VJPs on request; these are refused if they have arrays of so many bytes in them.

    The first VJP is made at once where a rule of differentiation holds an array that may be written to before.
    """
    args, kwargs = with_own_sizes((args, kwargs))
    _check_scopes(args, kwargs)
    try:
        traced = as_jitted(fun).trace(*_as_specs(args), **_as_specs(kwargs))
    except TypeError as error:
        refuse_functions(args, kwargs, static_parameters(fun), error)
        raise
    refuse_references(traced)
    refuse_values_of_other_traces(traced)
    traced = frozen(traced)
    abstract_in, abstract_out = jax.tree.leaves(traced.in_avals), jax.tree.leaves(traced.out_avals)
    in_avals = _as_declared(tuple(map(to_aval, abstract_in)), jax.tree.leaves((args, kwargs)))
    in_names = argument_paths(traced.in_tree, abstract_in)
    with partitioner_that_fits(target.calling_convention_version):
        module, facts, called = _lower(traced, target, in_names, in_avals)
        by_shardy = uses_shardy()
    in_shardings: list[Any] = list(map(explicit_sharding, abstract_in))  # of arguments that are not kept, too
    for index, sharding in zip(facts.kept_arguments, facts.in_shardings, strict=True):
        in_shardings[index] = sharding
    traced_out = tuple(map(to_aval, abstract_out))
    in_types, out_types = _specs(in_avals, in_shardings), _specs(traced_out, facts.out_shardings)
    recorded_in, recorded_out = _recorded(in_shardings, in_avals), _recorded(facts.out_shardings, traced_out)
    exported = Exported(
        fun_name=traced.fun_name,
        in_structure=Tree.of_treedef(traced.in_tree),
        in_avals=in_memory(in_avals, recorded_in),
        in_names=in_names,
        in_shardings=recorded_in,
        out_structure=Tree.of_treedef(traced.out_tree),
        out_avals=in_memory(traced_out, recorded_out),
        out_names=result_paths(traced.out_tree, abstract_out),
        out_shardings=recorded_out,
        platforms=target.platforms,
        ordered_effects=tuple(map(to_effect, facts.ordered_effects)),
        unordered_effects=tuple(map(to_effect, facts.unordered_effects)),
        disabled_safety_checks=target.disabled_checks,
        nr_devices=facts.device_count,
        mlir_module_serialized=module,
        stablehlo_version=target.stablehlo_version,
        calling_convention_version=target.calling_convention_version,
        module_kept_var_idx=facts.kept_arguments,
        uses_global_constants=facts.refined_at_run_time,
        uses_shardy=by_shardy,
        producer=producer(),
        called_functions=called,
        _make_vjp=EndlessVjp(
            functools.partial(
                _export_vjp, traced, target, in_types, out_types, _jax.tracing_settings(), least_bytes=least_bytes
            )
        ),
    )
    if not is_vjp and rules_hold_writable(traced.jaxpr):
        with suppress(Exception):  # it has none, as it will say when it is asked
            exported.vjp()
    return exported


def _check_scopes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses sizes of two scopes, before tracing compares two that print alike and says that they differ."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    shapes = [shape if isinstance(shape := getattr(leaf, "shape", ()), tuple) else () for leaf in leaves]
    scopes = {id(size.scope) for shape in shapes for size in shape if is_symbolic_dim(size)}
    if len(scopes) > 1:
        solve_dimension_variables(tuple(zip(argument_paths(tree, leaves), shapes, strict=True)))


def _as_declared(traced: tuple[Aval, ...], declared: Sequence[Any]) -> tuple[Aval, ...]:
    """The avals of the arguments, in the sizes that the caller wrote.

    JAX traces with the sizes of whichever equal aval it met first: where constraints make `n` equal
    to `m`, one of the names would be lost, and with it what that argument's size must be.
    """
    if len(declared) != len(traced):  # static arguments have no aval
        return traced
    shapes = [getattr(leaf, "shape", None) for leaf in declared]
    return tuple(
        aval if shape is None or len(shape) != aval.ndim else replace(aval, shape=python_sizes(shape))
        for aval, shape in zip(traced, shapes, strict=True)
    )


def _lower(
    traced: Any, target: Target, in_names: tuple[str, ...], in_avals: tuple[Aval, ...]
) -> tuple[bytes, Any, tuple[CalledFunction, ...]]:
    """The serialized module of a traced function, the facts of its lowering, the functions that it calls by name."""
    shapes = tuple(aval.shape for aval in in_avals)
    solution = solve_dimension_variables(tuple(zip(in_names, shapes, strict=True)))
    try:
        facts = _jax.lower(traced, target.platforms, overriding_rules(target.linear_algebra, target.platforms))
    except TypeError as error:
        if has_values_of_other_traces(traced.jaxpr):
            raise value_of_another_trace(traced.fun_name) from error
        raise
    except (NotImplementedError, ValueError) as error:
        if type(error) not in (NotImplementedError, ValueError):
            raise  # of a class of its own, which says what it is
        if callback_names(traced.jaxpr) or "EmitPythonCallback" in str(error):
            raise host_callback_refused(traced.fun_name, traced.jaxpr) from error
        if target.linear_algebra == "named" and isinstance(error, NotImplementedError):
            raise rule_missing(traced.fun_name, error) from error
        raise
    if facts.host_callbacks:
        raise host_callback_refused(traced.fun_name, traced.jaxpr)
    export_main(facts.module, Dimensions(shapes, facts.kept_arguments, solution, sizes_in(traced.jaxpr)))
    mark_refined_at_run_time(facts.module, facts.refined_at_run_time)
    called = called_functions(traced.jaxpr, number_called_functions(facts.module))
    calls, foreign = operations_to_check(facts.module, STABLE_DIALECTS)
    check_dialects(foreign)
    if target.linear_algebra == "expanded":
        check_lapack(calls, target.disabled_checks)
    rewrite_for_one_device(facts.module)
    if target.linear_algebra != "named":
        check_custom_calls(calls, target.disabled_checks)
        rewrite_for_xla(facts.module)
    if facts.refined_at_run_time and not refines_composites(target.stablehlo_version):
        portable_artifact.expand_chlo(facts.module)
    return portable_artifact.serialize_module(facts.module, target.stablehlo_version), facts, called


def _recorded(shardings: Sequence[Any], avals: Sequence[Aval]) -> tuple[NamedSharding | None, ...]:
    """Our form of JAX's shardings."""
    return tuple(from_jax(sharding, aval.ndim) for sharding, aval in zip(shardings, avals, strict=True))


def _specs(avals: Sequence[Aval], shardings: Sequence[Any]) -> tuple[Any, ...]:
    """What to export a function of these values with, placed as they are."""
    return tuple(to_spec(aval, sharding) for aval, sharding in zip(avals, shardings, strict=True))


def _export_vjp(
    traced: Any,
    target: Target,
    arguments: tuple[Any, ...],
    results: tuple[Any, ...],
    settings: Callable[[], AbstractContextManager[None]],
    *,
    least_bytes: int | None,
) -> Exported:
    """Exports the VJP of a traced function, for the same target; a cotangent is placed as its value is.

    JAX is set as it was when the function was traced. Where its large arrays were taken out, those in its VJP are of
    rules of differentiation, and would be the old ones.
    """
    vjp = vjp_function(traced, len(arguments))
    jitted = jax.jit(vjp, out_shardings=tuple(placement(tangent_spec(spec)) for spec in arguments))
    specs = (*arguments, *map(tangent_spec, results))
    try:
        with settings():
            if least_bytes is not None and (held := [*large_constants(jitted.trace(*specs).jaxpr, least_bytes)]):
                raise rule_has_arrays(traced, held)
            return _export(jitted, target, specs, {}, least_bytes, is_vjp=True)
    except UnexpectedTracerError as error:
        raise vjp_unavailable(traced) from error
    except AttributeError as error:
        if refusal := vjp_of_references(traced):
            raise refusal from error
        raise


def _as_specs(tree: Any) -> Any:
    """`tree` with our avals as JAX's specifications; all else as it is."""

    def is_ours(leaf: Any) -> bool:
        return isinstance(leaf, Aval)

    return jax.tree.map(lambda leaf: to_shaped_array(leaf) if is_ours(leaf) else leaf, tree, is_leaf=is_ours)
