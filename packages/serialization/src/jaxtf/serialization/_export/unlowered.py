"""What is not exported, in the caller's terms: state, callbacks, and primitives without a rule for graph mode.

Graph mode lowers for no platform (`export_for_graph`); JAX mentions a platform that the user has never named.
"""

from __future__ import annotations

import re
from typing import Any

from jax.core import ShapedArray

from jaxtf.serialization._errors import HostCallbackError, LoweringRuleMissing, ReferenceRefused
from jaxtf.serialization._export.jaxprs import callback_names
from jaxtf.serialization._jax import PLATFORM_INDEX
from jaxtf.serialization._jax_values.paths import argument_paths

__all__ = ["host_callback_refused", "refuse_references", "rule_missing"]

# MLIR translation rule for primitive 'name' not found for platform tf; the name may come with parameters.
_PRIMITIVE = re.compile(r"primitive '([\w.-]+)")


def refuse_references(traced: Any) -> None:
    """Refuses a function that reads or writes mutable references of others: an exported function has no state.

    Args:
      traced: What JAX made of the function.

    Raises:
      ReferenceRefused: It takes one as an argument, or closes over one.
    """

    def found(variables: Any) -> list[tuple[int, Any]]:
        return [(i, var.aval) for i, var in enumerate(variables) if not isinstance(var.aval, ShapedArray)]

    jaxpr = traced.jaxpr.jaxpr
    what = [f"closes over a {aval}" for _, aval in found(jaxpr.constvars)]
    if taken := found(jaxpr.invars):
        paths = argument_paths(traced.in_tree)
        what += [f"takes a {aval} as {paths[index]}" for index, aval in taken]
    if what:
        raise ReferenceRefused(
            f"'{traced.fun_name}' {' and '.join(what)}: an exported function has no state\n"
            "  remedy: take the array of a jax.Ref as an argument and return what becomes of it; a reference made "
            "by jax.new_ref within the function is exported"
        )


def host_callback_refused(fun_name: str, jaxpr: Any) -> HostCallbackError:
    """The error for a function that calls back into Python."""
    names = ", ".join(callback_names(jaxpr)) or "a host callback"
    return HostCallbackError(
        f"'{fun_name}' calls back into Python, by {names}: serialization of host_callbacks is not possible, "
        "the callback exists in this process only\n"
        "  remedy: leave the callback out of the function that is exported"
    )


def rule_missing(fun_name: str, error: NotImplementedError) -> LoweringRuleMissing:
    """The error for a primitive that JAX lowers for particular platforms only, from JAX's own."""
    found = _PRIMITIVE.search(str(error))
    name = found[1] if found else ""
    if name == PLATFORM_INDEX:
        return LoweringRuleMissing(
            f"'{fun_name}' has jax.lax.platform_dependent without a default: graph mode lowers for no platform, so "
            "that none of the given ones is chosen\n"
            "  remedy: give it default=, or use native mode (native_serialization=True)"
        )
    what = f"the primitive '{name}', which JAX lowers for particular platforms, if at all" if name else f"this: {error}"
    return LoweringRuleMissing(
        f"'{fun_name}' has {what}: graph mode lowers for no platform\n"
        "  remedy: compute it otherwise, or use native mode (native_serialization=True)"
    )
