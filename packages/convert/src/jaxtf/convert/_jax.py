"""Compatibility with JAX: the only module of this package that uses its private names.

Imported when a JAX function is converted; an `Exported` runs without it. `PRIVATE_NAMES` has each private name, those
that are reached through objects too; a test holds it against the JAX that is installed (tests/test_private_names.py).
"""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.dtypes
import numpy as np
from jax._src.core import trace_state_clean
from jax.extend.core import ClosedJaxpr

from jaxtf.serialization.interop import specification

__all__ = [
    "called_jaxpr",
    "canonical_dtype",
    "cotangent_specification",
    "float0",
    "is_of_jax",
    "is_tracer",
    "is_transforming",
    "is_weak",
    "python_scalar_dtype",
    "scanned_jaxpr",
    "stablehlo_operations",
]

# Each private name: where JAX has it -> the newest JAX that it was seen in, and why it is needed.
PRIVATE_NAMES = {
    "jax._src.core.trace_state_clean": (
        "0.12.0.1",
        "whether JAX traces now, also where no argument is a tracer; nothing public says it",
    ),
}

float0: np.dtype[Any] = jax.dtypes.float0


def canonical_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype that JAX computes in for values of `dtype`: 32-bit unless x64 is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def python_scalar_dtype(value: Any) -> np.dtype[Any]:
    """The dtype that JAX gives to a Python scalar."""
    return np.dtype(jax.dtypes.result_type(type(value)))


def is_tracer(value: Any) -> bool:
    """Whether `value` belongs to a JAX transformation in progress."""
    return isinstance(value, jax.core.Tracer)


def is_transforming() -> bool:
    """Whether a JAX transformation is in progress: `jax.jit`, `jax.vmap`, `jax.grad`, ..."""
    return not trace_state_clean()


def is_weak(array: jax.Array) -> bool:
    """Whether an array takes the dtype of the other operand, as what JAX computes from Python scalars alone does."""
    return bool(jax.typeof(array).weak_type)


def cotangent_specification(aval: Any) -> Any:
    """What to trace a cotangent with, for a result of this aval: `float0` for integers and booleans."""
    is_inexact = jax.numpy.issubdtype(aval.dtype, np.inexact)
    return specification(aval.shape, aval.dtype if is_inexact else float0)


# Primitives that compute what a jaxpr among their parameters does, and the parameter.
_CALLS = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
}


def called_jaxpr(equation: Any) -> ClosedJaxpr | None:
    """The jaxpr of a function that an equation calls once, with its operands; None for any other equation."""
    inner = equation.params.get(_CALLS.get(equation.primitive.name, ""))
    if inner is None:
        return None
    closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
    return closed if len(closed.jaxpr.invars) == len(equation.invars) else None


def scanned_jaxpr(equation: Any) -> ClosedJaxpr | None:
    """The jaxpr of the body of a scan; None for any other equation."""
    if equation.primitive.name != "scan":
        return None
    jaxpr: ClosedJaxpr = equation.params["jaxpr"]
    return jaxpr


def is_of_jax(jaxpr: ClosedJaxpr) -> bool:
    """Whether a jaxpr is of a function in JAX itself, which JAX traces once for all who call it."""
    return "/jax/_src/" in str(jaxpr.jaxpr.debug_info.func_src_info)


def stablehlo_operations(text: str) -> tuple[str, ...]:
    """The StableHLO and CHLO operations of a module's text, each once, without constants and the frame around them."""
    names = re.findall(r"\b((?:stablehlo|chlo)\.\w+|custom_call @[\w.]+)", text)
    return tuple(name for name in dict.fromkeys(names) if name not in ("stablehlo.constant", "stablehlo.return"))
