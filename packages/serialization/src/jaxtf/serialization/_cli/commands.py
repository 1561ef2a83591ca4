"""What each command of `jaxtf-artifact` does.

A command takes the parsed arguments, prints its result, and returns the exit code. Only what
parses or rewrites modules, and what checks shapes, imports more than the reading of bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jaxtf.serialization._artifact.describe import describe
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._errors import ArtifactError, VersionError

__all__ = [
    "Command",
    "CommandError",
    "check_files",
    "describe_files",
    "diff_files",
    "extract_module",
    "parse_modules",
    "print_module",
    "upgrade_file",
]

Command = Callable[[argparse.Namespace], int]

_LONG_WORK = 2**24
"""From how many bytes on a file is long work."""


_PARSE = "from jaxtf.serialization._cli.commands import parse_modules; parse_modules()"
_PRINT = "from jaxtf.serialization._cli.commands import print_module; print_module()"
_LONGEST_PARSE = 300
"""In seconds, of all modules of an artifact."""


class CommandError(Exception):
    """What stops a command; the text is all that its user is told."""


# Files


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    with open(file, "rb") as opened:
        return opened.read()


def _write(file: str, content: bytes | bytearray | memoryview) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
        return
    place = os.path.realpath(file)  # what a link leads to changes, and not the link
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as opened:  # a pipe, /dev/null; of a folder, an error
            opened.write(content)
        return
    _write_whole(place, content)


def _write_whole(file: str, content: bytes | bytearray | memoryview) -> None:
    """Writes beside the file and renames, so that the file has its old content or all of the new."""
    folder, name = os.path.split(file)
    partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.partial")
    mode = stat.S_IMODE(os.stat(file).st_mode) if os.path.exists(file) else None
    try:
        with open(partial, "xb") as opened:
            opened.write(content)
            opened.flush()
            if mode is not None:
                os.chmod(partial, mode)
            os.fsync(opened.fileno())
        os.replace(partial, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _progress(blob: bytes, work: str) -> None:
    """Tells a person at a terminal about long work."""
    if len(blob) >= _LONG_WORK and sys.stderr.isatty():
        print(f"{work} {len(blob) / 2**20:,.0f} MiB ...", file=sys.stderr)


def _about(file: str, error: Exception) -> CommandError:
    return CommandError(f"{file}: {error}")


def _print_json(values: Any) -> None:
    print(json.dumps(values, indent=2, ensure_ascii=False))


# describe


def describe_files(options: argparse.Namespace) -> int:
    """Prints what each file says about itself."""
    descriptions = {}
    for file in options.files:
        blob = _read(file)
        _progress(blob, "reading")
        try:
            descriptions[file] = describe(blob)
        except (ArtifactError, VersionError) as error:
            raise _about(file, error) from error
    if options.json:
        _print_json([{"file": file, **description.to_json()} for file, description in descriptions.items()])
        return 0
    for number, (file, description) in enumerate(descriptions.items()):
        if len(descriptions) > 1:
            print(f"{chr(10) if number else ''}{file}")
        print(description)
    return 0


# check


def check_files(options: argparse.Namespace) -> int:
    """Prints, for each file, what was checked, what was found wrong, and that modules were not parsed without JAX."""
    import importlib.util

    shapes = dict(map(_shape, options.shapes))
    has_jax = importlib.util.find_spec("jax") is not None
    parse = has_jax and not options.no_parse
    reports = [{"file": file, "checks": list(_checks(_read(file), shapes, parse))} for file in options.files]
    sound = all(check["found"] is None for report in reports for check in report["checks"])
    if options.json:
        _print_json({"sound": sound, "files": reports})
        return 0 if sound else 1
    for report in reports:
        for check in report["checks"]:
            said = "ok" if check["found"] is None else f"WRONG: {check['found']}"
            remark = f" ({check['remark']})" if check["remark"] else ""
            print(f"{report['file']}: {check['what']:10}{said}{remark}")
        if not has_jax and not options.no_parse:
            print(f"{report['file']}: {'modules':10}not parsed (JAX is not installed)")
    return 0 if sound else 1


def _checks(blob: bytes, shapes: dict[str, tuple[int, ...]], parse: bool) -> Iterator[dict[str, str | None]]:
    """What is checked, a remark, and what was found wrong; the first thing wrong is the last."""
    _progress(blob, "checking")
    steps: list[tuple[str, Callable[[], str | None]]] = [
        ("digest", lambda: None if split_trailer(blob).digest else "there is none"),
        ("structure", lambda: f"{len(describe(blob).functions)} modules"),
        ("model", lambda: _check_model(blob)),
        ("record", lambda: _check_records(blob)),
        ("calls", lambda: _check_calls(blob)),
        *((("modules", lambda: _check_modules(blob)),) if parse else ()),
        *((("shapes", lambda: _check_shapes(blob, shapes)),) if shapes else ()),
    ]
    for what, step in steps:
        try:
            yield {"what": what, "remark": step(), "found": None}
        except (ValueError, NotImplementedError, RuntimeError) as error:  # ours, and what jaxlib raises
            yield {"what": what, "remark": None, "found": str(error)}
            return


def _check_model(blob: bytes) -> str | None:
    from jaxtf.serialization._artifact.deserialize import deserialize

    exported = deserialize(blob)
    while exported.has_vjp():
        exported = exported.vjp()
    return None


def _check_records(blob: bytes) -> str | None:
    """Whether each module is what its record describes."""
    from jaxtf.serialization._artifact.deserialize import deserialize

    exported = deserialize(blob)
    exported.check_module()
    while exported.has_vjp():
        exported = exported.vjp()
        exported.check_module()
    return None


def _check_calls(blob: bytes) -> str | None:
    """Whether each custom call is to a known target, or to one that the exporter vouched for, which are the remark."""
    from jaxtf.serialization._program.removed_calls import NOT_REWRITTEN, OPERATIONS_OF_XLA, REWRITTEN

    known = {*NOT_REWRITTEN, *OPERATIONS_OF_XLA, *REWRITTEN}
    calls = [call for function in describe(blob).functions for call in function.custom_calls]
    unstable = [call for call in calls if not call.stable and call.target not in known]
    if unknown := sorted({call.target for call in unstable if not call.allowed}):
        raise ArtifactError(f"custom calls whose targets have no compatibility guarantees: {', '.join(unknown)}")
    vouched = sorted({call.target for call in unstable})
    return f"the exporter vouched for {', '.join(vouched)}" if vouched else None


def _check_modules(blob: bytes) -> str | None:
    """Parses the modules, in a process of its own."""
    _in_child(_PARSE, blob)
    return None


def _in_child(program: str, blob: bytes) -> bytes:
    """What a program prints of bytes, in a process of its own: MLIR's parser crashes or hangs on some modules.

    Raises:
      ArtifactError: It died, or did not end; or it raised, with the last line of what it said.
    """
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            input=blob,
            capture_output=True,
            timeout=_LONGEST_PARSE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ArtifactError(f"a module is not parsed within {_LONGEST_PARSE} s") from error
    if done.returncode < 0:
        raise ArtifactError(f"MLIR's parser crashes on a module, with signal {-done.returncode}")
    if done.returncode:
        raise ArtifactError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return done.stdout


def parse_modules() -> None:
    """Parses every module of the artifact on standard input."""
    from jaxtf.serialization._program.portable_artifact import deserialize_module

    table: Any = read_payload(split_trailer(sys.stdin.buffer.read()).payload)
    while table is not None:
        deserialize_module(bytes(table.mlir_module_serialized))
        table = table.vjp


def print_module() -> None:
    """Prints the module on standard input as text."""
    from jaxtf.serialization._program.portable_artifact import deserialize_module, module_text

    sys.stdout.buffer.write(f"{module_text(deserialize_module(sys.stdin.buffer.read()))}\n".encode())


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    path, equals, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",") if part.strip()]
    if not equals or not all(part.isascii() and part.isdigit() for part in parts):
        raise CommandError(f"--shapes {text!r}: write PATH=SIZES, such as args[0]=3,4")
    return path, tuple(map(int, parts))


def _check_shapes(blob: bytes, shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The shapes of the results, for these of the arguments."""
    from jaxtf.serialization._artifact.deserialize import deserialize

    exported = deserialize(blob)
    if set(shapes) != set(exported.in_names):
        raise CommandError(
            f"--shapes: give one for each of {', '.join(exported.in_names) or 'no arguments'}; "
            f"found {', '.join(shapes)}"
        )
    found = exported.check_shapes(*(shapes[name] for name in exported.in_names))
    results = zip(exported.out_names, found.results, strict=True)
    return " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in results)


# diff


def diff_files(options: argparse.Namespace) -> int:
    """Prints each field in which two files differ; 1 if there is any."""
    left_file, right_file = options.files
    left, right = map(_described, options.files)
    differing = {name: values for name, *values in _differing("", left, right)}
    if options.json:
        _print_json({name: {"left": values[0], "right": values[1]} for name, values in differing.items()})
    else:
        for name, (before, after) in differing.items():
            print(f"{name}\n  {left_file}: {_shown(before)}\n  {right_file}: {_shown(after)}")
    return 1 if differing else 0


def _described(file: str) -> dict[str, Any]:
    """The description of a file, with a digest of each module."""
    import hashlib

    blob = _read(file)
    _progress(blob, "reading")
    try:
        description = describe(blob).to_json()
        table: Any = read_payload(split_trailer(blob).payload)
    except (ArtifactError, VersionError) as error:
        raise _about(file, error) from error
    for function in description["functions"]:
        function["module_sha256"] = hashlib.sha256(table.mlir_module_serialized).hexdigest()
        table = table.vjp
    return description


def _differing(name: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where nested JSON values differ, by path, and what stands there; what only one has, is told as a whole."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in {**left, **right}:
            yield from _differing(f"{name}.{key}" if name else key, left.get(key), right.get(key))
    elif _has_records(left) or _has_records(right):
        for index, items in enumerate(itertools.zip_longest(left or (), right or ())):
            yield from _differing(f"{name}[{index}]", *items)
    elif left != right:
        yield name, left, right


def _has_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return str(next(iter(value.values())))  # a record begins with its name
    return "nothing" if value is None else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# upgrade, extract


def upgrade_file(options: argparse.Namespace) -> int:
    """Writes an artifact anew: in the newest format, with a trailer, for another consumer if asked for."""
    blob = _read(options.file)
    _progress(blob, "rewriting")
    try:
        from jaxtf.serialization._artifact.deserialize import deserialize

        orders = describe(blob).vjp_orders
        _check_records(blob)
        exported = deserialize(blob)
        if options.stablehlo_version is not None:
            from jaxtf.serialization._requires import require_jax

            require_jax("upgrade --stablehlo-version")
            _check_modules(blob)  # MLIR reads them in this process only when it did in another
            exported = exported.with_stablehlo_version(options.stablehlo_version)
        if options.tensorflow_version is not None:
            from jaxtf.serialization._requires import require_jax

            require_jax("upgrade --tensorflow-version")
            _check_modules(blob)  # likewise
            exported = exported.with_tensorflow_version(options.tensorflow_version)
        written = exported.serialize(vjp_order=orders, format_version=options.format_version)
    except ValueError as error:
        raise _about(options.file, error) from error
    _write(options.output, written)
    return 0


def extract_module(options: argparse.Namespace) -> int:
    """Writes the module of the function, or of an order of its VJP, as bytes or as text."""
    blob = _read(options.file)
    _progress(blob, "reading")
    try:
        description = describe(blob)
        table: Any = read_payload(split_trailer(blob).payload)
    except (ArtifactError, VersionError) as error:
        raise _about(options.file, error) from error
    if not 0 <= options.vjp <= description.vjp_orders:
        raise CommandError(f"{options.file}: it has no VJP of order {options.vjp}; it has {description.vjp_orders}")
    for _ in range(options.vjp):
        table = table.vjp
    module: bytes | memoryview = table.mlir_module_serialized
    if options.text:
        from jaxtf.serialization._requires import require_jax

        require_jax("extract --text")
        try:
            module = _in_child(_PRINT, bytes(module))
        except ArtifactError as error:
            raise _about(options.file, error) from error
    _write(options.output, module)
    return 0
