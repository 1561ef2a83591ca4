"""The command line `jaxtf-verify`: its arguments and exit codes.

jaxtf-verify model.jaxtf
jaxtf-verify mypackage.model:predict "f32[b, 8, 8]" --constraint "b >= 2" --size b=2 --size b=7
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._requires import require_jax

if TYPE_CHECKING:
    from jaxtf.convert._verify.report import Report

__all__ = ["main"]

_CODES = """\
exit codes:
  0  every way that runs the function gives JAX's numbers
  1  one of them differs
  2  usage, or a function or artifact that cannot be read

SHAPE is a dtype with sizes, such as f32[b, 8], float32[b, 8] or i32[]; the dtypes are
b1 i8 i16 i32 i64 u8 u16 u32 u64 bf16 f16 f32 f64 c64 c128, or NumPy's names of these.
"""

_DTYPES = {
    "b1": "bool",
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `jaxtf-verify` with these arguments; returns its exit code."""
    options = _parser().parse_args(arguments)
    from jaxtf.convert._verify.verify import verify

    try:
        require_jax("the command")
        target, specs = _target(options.target, options.shapes, options.constraint)
        report = verify(
            target,
            *specs,
            sizes=None if not options.size else [_sizes(text) for text in options.size],
            ways=options.way or None,
            gradients=not options.values_only,
            **({} if not options.numbers else {"numbers": options.numbers}),
            **({} if options.tolerance is None else {"tolerance": options.tolerance}),
        )
    except OSError as error:
        print(f"jaxtf-verify: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (ValueError, TypeError, NotImplementedError, ImportError, AttributeError) as error:
        print(f"jaxtf-verify: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print("\n".join(filter(None, (str(report), _advice(report)))))
    return 0 if report.ok else 1


def _advice(report: Report) -> str:
    """By how much of what a function differs, and what allows it; empty if it does not."""
    worst = max((row for row in report.rows if row.outcome == "differs"), key=lambda row: row.error, default=None)
    if worst is None:
        return ""
    if math.isinf(worst.error):
        return (
            f"differs most: {worst.way}, {worst.question}, by more than roundings (another shape, dtype or integer, "
            "a NaN, an infinity or an error): no --tolerance allows it"
        )
    return (
        f"differs most: {worst.way}, {worst.question} of {worst.where}, by {worst.error:.1f} roundings of the largest "
        f"number, where up to {report.tolerance:g} are the same; if the function magnifies rounding, "
        f"--tolerance {math.ceil(worst.error)} allows it"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxtf-verify",
        description="Compares a JAX function, or an artifact, in every way that runs it.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="a file with an artifact, or MODULE:FUNCTION")
    parser.add_argument("shapes", metavar="SHAPE", nargs="*", help="for a function: one for each argument")
    parser.add_argument("--constraint", action="append", default=[], metavar="TEXT", help="between sizes: 'a >= b'")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N[,...]", help="sizes to run at")
    parser.add_argument("--way", action="append", default=[], metavar="NAME", help="only this way; again for more")
    parser.add_argument(
        "--numbers", action="append", default=[], metavar="KIND", help="regular, ties or special; again for more"
    )
    parser.add_argument("--tolerance", type=float, metavar="N", help="in roundings of the largest number (256)")
    parser.add_argument("--values-only", action="store_true", help="no gradients")
    parser.add_argument("--json", action="store_true", help="data instead of a table")
    return parser


def _target(name: str, shapes: Sequence[str], constraints: Sequence[str]) -> tuple[Any, tuple[Any, ...]]:
    """What to verify, and the specifications of its arguments."""
    module, separator, attribute = name.partition(":")
    if not separator or Path(name).exists():
        if shapes or constraints:
            raise ConversionOptionError(f"{name} is an artifact, which has its own shapes and constraints")
        return Path(name).read_bytes(), ()
    sys.path.insert(0, "")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found, _specs(shapes, constraints)


def _specs(shapes: Sequence[str], constraints: Sequence[str]) -> tuple[Any, ...]:
    import jax
    import jax.numpy as jnp

    from jaxtf.shapepoly import SymbolicScope, symbolic_shape

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


if __name__ == "__main__":
    sys.exit(main())
