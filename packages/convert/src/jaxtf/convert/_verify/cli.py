"""The command line `jaxtf-verify`: its arguments and exit codes.

jaxtf-verify model.jaxtf
jaxtf-verify mypackage.model:predict "f32[b, 8, 8]" --constraint "b >= 2" --size b=2 --size b=7
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from jaxtf.convert._verify.names import BACKEND_NAMES
from jaxtf.serialization.interop import require_jax, users_files

__all__ = ["main"]

_CODES = """\
exit codes:
  0  every backend that runs the function gives JAX's numbers
  1  one of them differs
  2  usage, or a function or artifact that cannot be read

SHAPE is a dtype with sizes, such as f32[b, 8], float32[b, 8] or i32[]; the dtypes are
b1 i8 i16 i32 i64 u8 u16 u32 u64 bf16 f16 f32 f64 c64 c128, or NumPy's names of these.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `jaxtf-verify` with these arguments; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        require_jax("the command", "jaxtf-convert")
        from jaxtf.convert._verify.command import answered

        report = answered(options)
    except OSError as error:
        print(f"jaxtf-verify: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:  # of the user's function, too: with its class and line
        print(f"jaxtf-verify: {_described(error)}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        print(report)
        if not options.explain and (advice := _advice(report)):
            print(advice)
    return 0 if report.ok else 1


def _advice(report: Any) -> str:
    """By how much of what a function differs, and what allows it; empty if it does not, or nothing was compared."""
    worst = max((row for row in report.rows if row.outcome == "differs"), key=lambda row: row.error, default=None)
    if worst is None:
        return ""
    if math.isinf(worst.error):
        return (
            f"differs most: {worst.backend}, {worst.question}, by more than rounding (another shape, dtype or integer, "
            "a NaN, an infinity or an error): no --tolerance allows it"
        )
    return (
        f"differs most: {worst.backend}, {worst.question} of {worst.where}, by {worst.error:.1f} * eps * max abs "
        f"value, where up to {worst.allowed:g} is the same; if the function magnifies rounding, "
        f"--tolerance {math.ceil(worst.error)} allows it"
    )


def _described(error: Exception) -> str:
    """An error as the command prints it: one that is not ours with its class, and the user's lines that led to it."""
    notes = [note for note in getattr(error, "__notes__", ()) if "JAX_TRACEBACK_FILTERING" not in note]
    if type(error).__module__.startswith("jaxtf."):
        return "\n".join([str(error), *notes])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/jaxtf/" not in frame.filename]
    users = users_files(frame.filename for frame in frames)
    lines = [f"  {f.filename}:{f.lineno}, in {f.name}: {f.line}" for f in frames if f.filename in users]
    name = "" if isinstance(error, ImportError) and not lines else f"{type(error).__name__}: "
    return "\n".join([f"{name}{error}", *lines, *notes])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxtf-verify",
        description="Compares a JAX function, or an artifact, on every backend that runs it.",
        epilog=_backends() + _CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jaxtf-verify {_release()}")
    parser.add_argument("target", metavar="TARGET", help="a file with an artifact, or MODULE:FUNCTION")
    parser.add_argument("shapes", metavar="SHAPE", nargs="*", help="for a function: one for each argument")
    parser.add_argument("--constraint", action="append", default=[], metavar="TEXT", help="between sizes: 'a >= b'")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N[,...]", help="sizes to run at")
    parser.add_argument(
        "--backend", action="append", default=[], metavar="NAME", help="only this backend; again for more"
    )
    parser.add_argument(
        "--numbers", action="append", default=[], metavar="KIND", help="regular, ties or special; again for more"
    )
    parser.add_argument("--tolerance", type=float, metavar="N", help="error relative to eps * max abs value (256)")
    parser.add_argument("--values-only", action="store_true", help="no gradients")
    parser.add_argument("--locate", action="store_true", help="where a backend differs, by operation and line")
    parser.add_argument(
        "--explain", action="store_true", help="all operations that each mode refuses, and sizes; nothing is run"
    )
    parser.add_argument("--json", action="store_true", help="data instead of a table")
    return parser


def _backends() -> str:
    """The backends, a line each."""
    width = max(map(len, BACKEND_NAMES))
    return "\n".join(["backends:", *(f"  {name:{width}}  {what}" for name, what in BACKEND_NAMES.items()), "", ""])


def _release() -> str:
    """The installed version of jaxtf-convert; `unknown` where it is run from its source."""
    try:
        return importlib.metadata.version("jaxtf-convert")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
