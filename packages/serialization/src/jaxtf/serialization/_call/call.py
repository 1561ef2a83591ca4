"""Calling an exported function from JAX: from the caller's pytrees to the primitive and back.

A call is one primitive (`_call.primitive`) with rules for forward and reverse derivatives (`_call.derivatives`)
and for `jax.vmap` (`_call.batching`), so that it can be used wherever JAX functions can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxtf.serialization._call import batching, derivatives
from jaxtf.serialization._call.placement import in_memory_spaces
from jaxtf.serialization._call.primitive import Callee, call_exported_p, check_result_sizes
from jaxtf.serialization._errors import ArgumentMismatch, ArtifactError, CalledFunctionsRefused
from jaxtf.serialization._jax_values.paths import argument_paths
from jaxtf.serialization._jax_values.varying import vary_alike
from jaxtf.serialization._record.exported import Exported

__all__ = ["call_exported", "differentiable_flat_call", "flat_arguments"]

# Of a structure that differs in more places, this many are shown.
_LINES_SHOWN = 12

# In a diagnostic of MLIR: up to a line of source, which is indented by 4, or the next location.
_DIAGNOSTIC = re.compile(r"error: (?P<text>.*?)\n(?:    |[^\n ]+:\d+:\d+: |note: |\Z)", re.DOTALL)

# What JAX and jaxlib say of a module that has no constant sizes for the arguments of a call.
_NOT_REFINED = ("Error refining shapes", "Module shape refinement failed")

# Where a result of a module that was refined has not the size that its record computes.
_OTHER_SIZES = "'stablehlo.convert' op requires the same shape for all operands and results"

FlatCall = Callable[..., Sequence[Any]]

derivatives.register()
batching.register()


def call_exported(exported: Exported, flat_call: FlatCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Applies the exported function, whose flat form is `flat_call`, to pytrees of arrays; see `Exported.call`."""
    if exported.called_functions:
        raise CalledFunctionsRefused(
            f"'{exported.fun_name}' calls {', '.join(f.name for f in exported.called_functions)} by name, and XLA in "
            "this process has no functions of these names\n  remedy: run it in TensorFlow, by jaxtf.convert"
        )
    flat = flat_arguments(exported, args, kwargs)
    try:
        results = flat_call(*flat)
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        if refusal := _failed_assertion(error):
            raise ArgumentMismatch(f"in the call of the exported function '{exported.fun_name}': {refusal}") from error
        if any(text in str(error) for text in _NOT_REFINED):
            check_result_sizes(exported, [jax.typeof(value) for value in flat])
        if _OTHER_SIZES in str(error.__cause__):
            raise ArtifactError(
                f"the module of '{exported.fun_name}' is not the one that its record describes: for these arguments a "
                "result has other sizes than recorded\n"
                "  remedy: export the function again; whoever wrote the artifact changed one without the other"
            ) from error
        raise
    return jax.tree.unflatten(exported.out_tree, results)


def flat_arguments(exported: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The leaves of the arguments of a call.

    Raises:
      ArgumentMismatch: Their structure is not the one that was exported.
    """
    if exported.in_structure.has_opaque:
        positional, by_name = exported.in_structure.children
        return [*positional.flatten(args, "args"), *by_name.flatten(kwargs, "kwargs")]
    flat, tree = jax.tree.flatten((args, kwargs))
    if not exported.in_structure.is_of(tree):
        raise ArgumentMismatch(_structure_mismatch(exported, tree, flat))
    return list(flat)


def _failed_assertion(error: Exception) -> str | None:
    """The text of the assertion about sizes that failed when the module was refined to constant sizes, if one did.

    JAX says "Error refining shapes"; the cause has the text, then source lines and where these were called from.
    """
    cause = str(error.__cause__)
    if '"shape_assertion"' not in cause or (found := _DIAGNOSTIC.search(cause)) is None:
        return None
    return found["text"]


def differentiable_flat_call(exported: Exported) -> FlatCall:
    """The exported function on flat arrays, differentiable in both modes by its exported VJPs.

    Raises:
      ArtifactError: Its module is not the one that its record describes.
    """
    exported.check_module()
    callee = Callee(exported)

    def call(*flat: Any) -> tuple[Any, ...]:
        return tuple(in_memory_spaces(call_exported_p.bind(*vary_alike(flat), callee=callee), exported))

    return call


def _structure_mismatch(exported: Exported, found: Any, leaves: Sequence[Any]) -> str:
    expected_paths, found_paths = exported.in_names, argument_paths(found, leaves)
    missing, surplus = set(expected_paths) - set(found_paths), set(found_paths) - set(expected_paths)
    lines = []
    for path in filter(missing.__contains__, expected_paths):
        inside = {other for other in surplus if other.startswith(path + "[")}
        surplus -= inside
        found_there = (
            f"exported as one array, and in the call a container of {len(inside)} values: pass numpy.asarray of it, if "
            "that is an array"
        )
        lines.append(f"  {path}: {found_there if inside else 'exported with it, missing in the call'}")
    lines += [f"  {path}: in the call, not when exported" for path in found_paths if path in surplus]
    if len(lines) > _LINES_SHOWN:
        lines[_LINES_SHOWN:] = [f"  and {len(lines) - _LINES_SHOWN} more"]
    if not lines:
        lines = [f"  exported with {exported.in_tree}", f"  called with   {found}"]
        if str(found) == str(exported.in_tree):
            lines.append("  a class of one of them was defined twice: export again, or make the arguments of the first")
    return (
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they differ:\n" + "\n".join(lines)
    )
