"""What is not exported, in the caller's terms: state, values of other traces, callbacks, primitives without a rule.

Graph mode lowers for no platform (`export_for_graph`); JAX mentions a platform that the user has never named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import ShapedArray
from jax.errors import UnexpectedTracerError

from jaxtf.serialization._errors import (
    ArgumentTypeError,
    HostCallbackError,
    LoweringRuleMissing,
    ReferenceRefused,
    SerializationError,
    VjpUnavailable,
)
from jaxtf.serialization._export.jaxprs import (
    callback_names,
    equation_line,
    equations,
    is_callback,
    is_check_of_equinox,
    is_within_equinox,
)
from jaxtf.serialization._jax import PLATFORM_INDEX
from jaxtf.serialization._jax_values.paths import argument_paths

__all__ = [
    "arrays_within",
    "host_callback_refused",
    "part_stays",
    "refuse_functions",
    "refuse_references",
    "refuse_values_of_other_traces",
    "rule_closes_over",
    "rule_has_arrays",
    "rule_missing",
    "value_of_another_trace",
    "vjp_of_references",
    "vjp_unavailable",
]

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
            "  remedy: take the array of a jax.Ref as an argument and return its new value; a reference made "
            "by jax.new_ref within the function is exported"
        )


def refuse_values_of_other_traces(traced: Any) -> None:
    """Refuses a function that uses a value of another trace, which JAX makes an argument without a name.

    Raises:
      UnexpectedTracerError: As `jax.jit` raises where such a function is called.
    """
    if len(traced.jaxpr.jaxpr.invars) > len(jax.tree.leaves(traced.in_avals)):
        raise value_of_another_trace(traced.fun_name)


def value_of_another_trace(fun_name: str) -> UnexpectedTracerError:
    """The error for a function that uses a value of another trace."""
    return UnexpectedTracerError(
        f"'{fun_name}' uses a value that JAX made while it traced another function, or this one at another time\n"
        "  remedy: take it as an argument, or compute it in the function"
    )


def vjp_unavailable(traced: Any) -> VjpUnavailable:
    """The error for a traced function with a rule of differentiation that uses values of its trace."""
    rules = [equation for equation in equations(traced.jaxpr) if equation.params.get("num_consts")]
    lines = dict.fromkeys(filter(None, map(equation_line, rules)))
    return VjpUnavailable(
        "\n".join(
            [
                f"no VJP of '{traced.fun_name}' can be made: the rule of a jax.custom_jvp function uses an array that "
                "is not among the differentiable arguments of that function, but in nondiff_argnums or closed over; "
                "jax.grad of the function under jax.jit fails too",
                *(f"  called at: {line}" for line in lines),
                "  remedy: make the array an argument that the rule differentiates, or export the gradient itself: "
                "jax.grad of the function, with jax.jit nowhere within it",
            ]
        )
    )


def vjp_of_references(traced: Any) -> VjpUnavailable | None:
    """The error for a traced function with a reference inside, of which JAX finds no VJP; None if it has none.

    JAX 0.10.2 then asks a value for what only references have, where what it differentiates is a VJP.
    """
    made = [
        equation
        for equation in equations(traced.jaxpr)
        if any(type(out.aval).__name__ == "AbstractRef" for out in equation.outvars)
    ]
    if not made:
        return None
    line = next(filter(None, map(equation_line, made)), None)
    return VjpUnavailable(
        "\n".join(
            [
                f"JAX makes no VJP of '{traced.fun_name}', which has a reference (jax.new_ref); forward mode and "
                "vjp_order=2 need the VJP of a VJP",
                *[f"  made at: {line}"] * (line is not None),
                "  remedy: exported.lift() has all derivatives; or export a function without references",
            ]
        )
    )


def arrays_within(fun_name: str, held: Sequence[tuple[Any, Any]]) -> SerializationError:
    """The error for arrays that are closed over in operations that are not rewritten, which come with the first."""
    lines = [
        f"  within: {equation.primitive.name} ({_type_of(array)}) {equation_line(equation)}".rstrip()
        for equation, array in held
    ]
    return SerializationError(
        "\n".join(
            [
                f"'{fun_name}' closes over an array within an operation out of which export_model takes none",
                *dict.fromkeys(lines),
                "  remedy: pass the array to the function within that operation as an argument, or export the whole "
                "with its weights as an argument: save(path, exported, params)",
            ]
        )
    )


def part_stays(fun_name: str, array: Any, part: Any) -> SerializationError:
    """The error for a small view of an array that is taken out, which would stay in the module."""
    return SerializationError(
        f"'{fun_name}' closes over an array of NumPy ({_type_of(array)}) and over a small part of it "
        f"({_type_of(part)}), which would stay in the module when the array is replaced\n"
        "  remedy: make it an array of JAX before it is indexed, jnp.asarray(array)[0]; or, if the part is to stay as "
        "it is, a copy: np.array(array[0])"
    )


def rule_closes_over(fun_name: str, rule: str, value: str, equation: Any) -> VjpUnavailable:
    """The error for the VJP of an exported model by what a function with a rule of its own closes over."""
    line = equation_line(equation)
    return VjpUnavailable(
        "\n".join(
            [
                f"no VJP of '{fun_name}' can be made: a function of {rule} closes over '{value}', by which its rule "
                "has no derivative",
                *([f"  called at: {line}"] if line else []),
                f"  remedy: {_PASS_TO_RULE}",
            ]
        )
    )


def rule_has_arrays(traced: Any, arrays: Sequence[Any]) -> VjpUnavailable:
    """The error for the VJP of an exported model with arrays in it, which only rules of differentiation hold."""
    rules = [equation for equation in equations(traced.jaxpr) if equation.primitive.name.startswith("custom_")]
    lines = dict.fromkeys(filter(None, map(equation_line, rules)))
    types = ", ".join(dict.fromkeys(map(_type_of, arrays)))
    return VjpUnavailable(
        "\n".join(
            [
                f"no VJP of '{traced.fun_name}' can be made: a rule of jax.custom_jvp, jax.custom_vjp or "
                f"jax.custom_gradient closes over large arrays ({types}), which it would go on to use when the "
                "weights of the model are replaced",
                *(f"  called at: {line}" for line in lines),
                f"  remedy: {_PASS_TO_RULE}",
            ]
        )
    )


_PASS_TO_RULE = "pass the array to the function with the rule as an argument, which the rule differentiates"


def _type_of(array: Any) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def refuse_functions(
    args: tuple[Any, ...], kwargs: dict[str, Any], static: tuple[tuple[int, ...], tuple[str, ...]], error: TypeError
) -> None:
    """Refuses a function among the arguments, as a module of Equinox has them; does nothing if there is none.

    Args:
      args: The specifications of the positional arguments.
      kwargs: Those of the others.
      static: The positions and names of those that need not be arrays.
      error: JAX's own.

    Raises:
      ArgumentTypeError: Names the first one.
    """
    positions, names = ({position % len(args) for position in static[0]} if args else set()), static[1]
    traced = tuple(None if index in positions else value for index, value in enumerate(args))
    by_name = {name: value for name, value in kwargs.items() if name not in names}
    leaves, tree = jax.tree.flatten((traced, by_name))
    for path, leaf in zip(argument_paths(tree, leaves), leaves, strict=True):
        if callable(leaf) and not hasattr(leaf, "shape"):
            raise ArgumentTypeError(
                f"{path} is not an array: found {type(leaf).__name__} ({leaf!r:.60})\n"
                "  remedy: pass arrays alone and let the function close over the rest; of a module of Equinox: arrays, "
                "rest = eqx.partition(module, eqx.is_array), and eqx.combine(arrays, rest) in the function"
            ) from error


def host_callback_refused(fun_name: str, jaxpr: Any) -> HostCallbackError:
    """The error for a function that calls back into Python."""
    names = ", ".join(callback_names(jaxpr)) or "a host callback"
    called = [equation for equation in equations(jaxpr) if is_callback(equation)]
    lines = dict.fromkeys(filter(None, map(equation_line, called)))
    others = [equation for equation in called if not is_check_of_equinox(equation)]
    remedy = "leave the callback out of the function that is exported"
    if len(others) < len(called):
        remedy = _CHECK_OFF + "; leave the other callbacks out of the function that is exported" * bool(others)
    elif not called and any(map(is_within_equinox, equations(jaxpr))):  # it is in what a primitive is lowered to
        remedy += f"; {_MAY_BE_CHECK}"
    return HostCallbackError(
        "\n".join(
            [
                f"'{fun_name}' calls back into Python, by {names}: serialization of host_callbacks is not possible, "
                "the callback exists in this process only",
                *(f"  called at: {line}" for line in lines),
                f"  remedy: {remedy}",
            ]
        )
    )


_TURN_OFF = (
    "set the environment variable EQX_ON_ERROR=nan before Equinox is imported; values that fail the check then become "
    "NaN"
)
_CHECK_OFF = f"it is a check of Equinox (eqx.error_if): {_TURN_OFF}"
_MAY_BE_CHECK = f"where it is a check of Equinox (eqx.error_if), as in a solver of Lineax, {_TURN_OFF}"


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
        "  remedy: compute it differently, or use native mode (native_serialization=True)"
    )
