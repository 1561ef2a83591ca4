"""`jaxtf-artifact check`: step by step, until one finds something wrong."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxtf.serialization._artifact.describe import describe_bytes
from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import CommandError, each_file, each_once, print_json, reading
from jaxtf.serialization._container.header import begins_as_header
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._program.removed_calls import NOT_REWRITTEN, OPERATIONS_OF_XLA, REWRITTEN
from jaxtf.serialization._weights.model import model_of

__all__ = ["check_files", "check_records"]


def check_files(options: argparse.Namespace) -> int:
    """Prints, for each file, what was checked, what was found wrong, and that modules were not parsed without JAX."""

    shapes = each_once("--shapes", map(_shape, options.shapes))
    has_jax = importlib.util.find_spec("jax") is not None
    chosen = _Chosen(shapes, has_jax and not options.no_parse, options.allow_custom_calls)
    reports = [
        (file, [_wrong("file", error.removeprefix(f"{file}: "))] if error is not None else checks)
        for file, checks, error in each_file(options.files, chosen.checks)
    ]
    sound = all(check["found"] is None for _, checks in reports for check in checks)
    if options.json:
        print_json({"sound": sound, "files": [{"file": file, "checks": checks} for file, checks in reports]})
        return 0 if sound else 1
    for file, checks in reports:
        for check in checks:
            status = "ok" if check["found"] is None else f"WRONG: {check['found']}"
            remark = f" ({check['remark']})" if check["remark"] else ""
            print(f"{file}: {check['what']:10}{status}{remark}")
        if not has_jax and not options.no_parse:
            print(f"{file}: {'modules':10}not parsed (JAX is not installed)")
    return 0 if sound else 1


def _wrong(what: str, found: str) -> dict[str, str | None]:
    return {"what": what, "remark": None, "found": found}


@dataclass(frozen=True)
class _Chosen:
    """What is to be checked of each file.

    Attributes:
      shapes: Of arguments, by path.
      parse: Whether modules are parsed.
      allows_custom_calls: Whether targets that nobody allowed are listed, and not an error.
    """

    shapes: dict[str, tuple[int, ...]]
    parse: bool
    allows_custom_calls: bool

    def checks(self, file: str) -> list[dict[str, str | None]]:
        """What is checked, a remark, and what was found wrong; the first thing wrong is the last."""
        with reading(file, "checking") as source:
            return list(self._checks(source, file))

    def _checks(self, source: Source, file: str) -> Iterator[dict[str, str | None]]:
        def artifact() -> memoryview:
            return parts_of(source).artifact

        steps: list[tuple[str, Callable[[], str | None]]] = [
            ("digest", lambda: None if split_trailer(artifact()).digest else "there is none: not written by jaxtf"),
            ("structure", lambda: f"{len(describe_bytes(artifact()).functions)} modules"),
            ("model", lambda: _check_model(artifact())),
            ("record", lambda: check_records(artifact())),
            ("calls", lambda: _check_calls(artifact(), self.allows_custom_calls)),
            *((("modules", lambda: check_modules(bytes(artifact()))),) if self.parse else ()),
            *((("shapes", lambda: _check_shapes(artifact(), self.shapes)),) if self.shapes else ()),
            *((("weights", lambda: _check_weights(source)),) if _has_weights(source) else ()),
        ]
        for what, step in steps:
            try:
                yield {"what": what, "remark": step(), "found": None}
            except (ValueError, NotImplementedError, RuntimeError, MemoryError) as error:  # ours, and jaxlib's
                yield _wrong(what, str(error).removeprefix(f"{file}: "))
                return


def _has_weights(source: Source) -> bool:
    return begins_as_header(source.read(0, min(9, source.size)), source.size)


def _check_weights(source: Source) -> str:
    """Whether the weights have their digests, and are what the function takes; how many there are."""
    distinct = {id(leaf.value): leaf.value for leaf in model_of(source).leaves}
    return f"{len(distinct)} arrays, {sum(array.nbytes for array in distinct.values()):,} bytes"


def _check_model(blob: memoryview) -> str | None:

    exported = deserialize_bytes(blob)
    while exported.has_vjp():
        exported = exported.vjp()
    return None


def check_records(blob: bytes | memoryview) -> str | None:
    """Whether each module is what its record describes."""

    exported = deserialize_bytes(blob)
    exported.check_module()
    while exported.has_vjp():
        exported = exported.vjp()
        exported.check_module()
    return None


def _check_calls(blob: memoryview, allows_all: bool) -> str | None:
    """Whether each custom call is to a known target, or to one that the exporter vouched for, which are the remark."""

    known = {*NOT_REWRITTEN, *OPERATIONS_OF_XLA, *REWRITTEN}
    calls = [call for function in describe_bytes(blob).functions for call in function.custom_calls]
    unstable = [call for call in calls if not call.stable and call.target not in known]
    unknown = sorted({call.target for call in unstable if not call.allowed})
    if unknown and not allows_all:
        raise ArtifactError(f"custom calls whose targets have no compatibility guarantees: {', '.join(unknown)}")
    vouched = sorted({call.target for call in unstable if call.allowed})
    if allows_all:
        each = sorted({call.target for call in calls})
        return f"it calls {', '.join(each)}" if each else "it calls nothing outside"
    return f"the exporter vouched for {', '.join(vouched)}" if vouched else None


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    path, equals, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",") if part.strip()]
    if not equals or not all(part.isascii() and part.isdigit() for part in parts):
        raise CommandError(f"--shapes {text!r}: write PATH=SIZES, such as args[0]=3,4")
    return path, tuple(map(int, parts))


def _check_shapes(blob: memoryview, shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The shapes of the results, for these of the arguments."""

    exported = deserialize_bytes(blob)
    if set(shapes) != set(exported.in_names):
        raise CommandError(
            f"--shapes: give one for each of {', '.join(exported.in_names) or 'no arguments'}; "
            f"found {', '.join(shapes)}"
        )
    found = exported.check_shapes(*(shapes[name] for name in exported.in_names))
    results = zip(exported.out_names, found.results, strict=True)
    return " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in results)
