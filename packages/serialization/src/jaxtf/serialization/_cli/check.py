"""`jaxtf-artifact check`: step by step, until one finds something wrong."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator

from jaxtf.serialization._artifact.describe import describe
from jaxtf.serialization._artifact.deserialize import deserialize
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import CommandError, print_json, progress, read
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._program.removed_calls import NOT_REWRITTEN, OPERATIONS_OF_XLA, REWRITTEN

__all__ = ["check_files", "check_records"]


def check_files(options: argparse.Namespace) -> int:
    """Prints, for each file, what was checked, what was found wrong, and that modules were not parsed without JAX."""

    shapes = dict(map(_shape, options.shapes))
    has_jax = importlib.util.find_spec("jax") is not None
    parse = has_jax and not options.no_parse
    reports = [{"file": file, "checks": list(_checks(read(file), shapes, parse))} for file in options.files]
    sound = all(check["found"] is None for report in reports for check in report["checks"])
    if options.json:
        print_json({"sound": sound, "files": reports})
        return 0 if sound else 1
    for report in reports:
        for check in report["checks"]:
            status = "ok" if check["found"] is None else f"WRONG: {check['found']}"
            remark = f" ({check['remark']})" if check["remark"] else ""
            print(f"{report['file']}: {check['what']:10}{status}{remark}")
        if not has_jax and not options.no_parse:
            print(f"{report['file']}: {'modules':10}not parsed (JAX is not installed)")
    return 0 if sound else 1


def _checks(blob: bytes, shapes: dict[str, tuple[int, ...]], parse: bool) -> Iterator[dict[str, str | None]]:
    """What is checked, a remark, and what was found wrong; the first thing wrong is the last."""
    progress(blob, "checking")
    steps: list[tuple[str, Callable[[], str | None]]] = [
        ("digest", lambda: None if split_trailer(blob).digest else "there is none"),
        ("structure", lambda: f"{len(describe(blob).functions)} modules"),
        ("model", lambda: _check_model(blob)),
        ("record", lambda: check_records(blob)),
        ("calls", lambda: _check_calls(blob)),
        *((("modules", lambda: check_modules(blob)),) if parse else ()),
        *((("shapes", lambda: _check_shapes(blob, shapes)),) if shapes else ()),
    ]
    for what, step in steps:
        try:
            yield {"what": what, "remark": step(), "found": None}
        except (ValueError, NotImplementedError, RuntimeError) as error:  # ours, and what jaxlib raises
            yield {"what": what, "remark": None, "found": str(error)}
            return


def _check_model(blob: bytes) -> str | None:

    exported = deserialize(blob)
    while exported.has_vjp():
        exported = exported.vjp()
    return None


def check_records(blob: bytes) -> str | None:
    """Whether each module is what its record describes."""

    exported = deserialize(blob)
    exported.check_module()
    while exported.has_vjp():
        exported = exported.vjp()
        exported.check_module()
    return None


def _check_calls(blob: bytes) -> str | None:
    """Whether each custom call is to a known target, or to one that the exporter vouched for, which are the remark."""

    known = {*NOT_REWRITTEN, *OPERATIONS_OF_XLA, *REWRITTEN}
    calls = [call for function in describe(blob).functions for call in function.custom_calls]
    unstable = [call for call in calls if not call.stable and call.target not in known]
    if unknown := sorted({call.target for call in unstable if not call.allowed}):
        raise ArtifactError(f"custom calls whose targets have no compatibility guarantees: {', '.join(unknown)}")
    vouched = sorted({call.target for call in unstable})
    return f"the exporter vouched for {', '.join(vouched)}" if vouched else None


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    path, equals, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",") if part.strip()]
    if not equals or not all(part.isascii() and part.isdigit() for part in parts):
        raise CommandError(f"--shapes {text!r}: write PATH=SIZES, such as args[0]=3,4")
    return path, tuple(map(int, parts))


def _check_shapes(blob: bytes, shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The shapes of the results, for these of the arguments."""

    exported = deserialize(blob)
    if set(shapes) != set(exported.in_names):
        raise CommandError(
            f"--shapes: give one for each of {', '.join(exported.in_names) or 'no arguments'}; "
            f"found {', '.join(shapes)}"
        )
    found = exported.check_shapes(*(shapes[name] for name in exported.in_names))
    results = zip(exported.out_names, found.results, strict=True)
    return " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in results)
