"""What the words of `jaxtf-verify` ask for: a function and the shapes of its arguments, or an artifact. Imports JAX."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._verify.explain import explain
from jaxtf.convert._verify.explanation import Explanation
from jaxtf.convert._verify.report import Report
from jaxtf.convert._verify.targets import functions_of, listed, refuse_without_function
from jaxtf.convert._verify.verify import verify
from jaxtf.shapepoly import SymbolicScope, symbolic_shape

__all__ = ["answered"]

_DTYPES = {
    "b1": "bool",
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
}


def answered(options: argparse.Namespace) -> Report | Explanation:
    """The report or explanation that the options of the command line ask for."""
    target, specs = _target(options.target, options.shapes, options.constraint)
    try:
        return _answered(options, target, specs)
    except TypeError as error:
        if not specs and "missing" in str(error):
            error.add_note('  remedy: give a shape for each argument, such as "f32[b, 8]"')
        raise


def _answered(options: argparse.Namespace, target: Any, specs: tuple[Any, ...]) -> Report | Explanation:
    if options.explain:
        return explain(target, *specs)
    return verify(
        target,
        *specs,
        sizes=None if not options.size else [_sizes(text) for text in options.size],
        backends=options.backend or None,
        gradients=not options.values_only,
        locate=options.locate,
        **({} if not options.numbers else {"numbers": options.numbers}),
        **({} if options.tolerance is None else {"tolerance": options.tolerance}),
    )


def _target(name: str, shapes: Sequence[str], constraints: Sequence[str]) -> tuple[Any, tuple[Any, ...]]:
    """What to verify, and the specifications of its arguments."""
    module, separator, attribute = name.partition(":")
    is_file = Path(name).is_file() and not name.endswith(".py")
    if is_file and (shapes or constraints):
        raise ConversionOptionError(f"{name} is an artifact, which has its own shapes and constraints")
    if is_file:
        return Path(name).read_bytes(), ()
    if module.endswith(".py") or not separator:
        refuse_without_function(name)
    sys.path.insert(0, "")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConversionOptionError(f"{module} has no '{attribute}'{listed(functions_of(module))}")
        found = getattr(found, part)
    return found, _specs(shapes, constraints)


def _specs(shapes: Sequence[str], constraints: Sequence[str]) -> tuple[Any, ...]:
    """A specification for each text, their sizes in one scope.

    Raises:
      ConversionOptionError: A text that is not a dtype with sizes.
    """
    scope = SymbolicScope(tuple(constraints))
    specs = []
    for text in shapes:
        matched = re.fullmatch(r"\s*(\w+)\s*\[(.*)\]\s*", text)
        dtype = matched and (matched[1] if matched[1] in _DTYPES.values() else _DTYPES.get(matched[1]))
        if matched is None or dtype is None:
            raise ConversionOptionError(
                f"a shape is a dtype with sizes, such as 'f32[b, 8]' or 'float32[b, 8]'. Got: {text!r}"
            )
        specs.append(jax.ShapeDtypeStruct(symbolic_shape(matched[2], scope=scope), jnp.dtype(dtype)))
    return tuple(specs)


def _sizes(text: str) -> dict[str, int]:
    """From `b=2,n=3` to values by name."""
    if not re.fullmatch(r"\w+=\d+(,\w+=\d+)*", text):
        raise ConversionOptionError(f"--size takes values by name, such as b=2,n=3. Got: {text!r}")
    return {name: int(value) for name, value in (item.split("=") for item in text.split(","))}
