"""What is verified: a JAX function with the shapes of its arguments, or an exported one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._native.consumer import versions_to_write
from jaxtf.serialization import Exported, deserialize, export
from jaxtf.serialization.interop import as_jitted

__all__ = ["Subject", "make_subject"]


@dataclass(frozen=True)
class Subject:
    """What is verified.

    Attributes:
      exported: The function exported, with linear algebra that needs no LAPACK where it was exported here.
      function: The JAX function on flat arguments, to flat results; None for an artifact, which is its own authority.
      no_gradient: Why it has no gradient in reverse mode; empty if it has one.
    """

    exported: Exported
    function: Callable[..., Any] | None
    no_gradient: str


def make_subject(target: Any, specs: tuple[Any, ...]) -> Subject:
    """The subject that a caller of `verify` names.

    Raises:
      ConversionOptionError: Neither a function, nor exported, nor an artifact.
    """
    if isinstance(target, bytes | bytearray | memoryview):
        target = deserialize(target)
    if isinstance(target, Exported):
        if specs:
            raise ConversionOptionError("verify takes no shapes beside an exported function: it has its own")
        return Subject(target, None, _no_gradient(target))
    if not callable(target):
        raise ConversionOptionError(
            f"verify needs a JAX function, an Exported or the bytes of an artifact, found {type(target).__name__}"
        )
    exported = export(target, expand_linear_algebra=True, **asdict(versions_to_write(None)))(*specs)
    jitted = as_jitted(target)
    tree = jax.tree.structure((specs, {}))

    def flat(*arguments: Any) -> Any:
        args, kwargs = jax.tree.unflatten(tree, arguments)
        return jax.tree.leaves(jitted(*args, **kwargs))

    return Subject(exported, flat, _no_gradient(exported))


def _no_gradient(exported: Exported) -> str:
    """What JAX says where it cannot differentiate a function, or that an artifact carries no VJP."""
    if not exported.has_vjp():
        return "the artifact carries no VJP"
    try:
        exported.vjp()
    except Exception as error:  # whatever JAX raises for the function at hand
        return f"JAX: {type(error).__name__}: {error}".splitlines()[0]
    return ""
