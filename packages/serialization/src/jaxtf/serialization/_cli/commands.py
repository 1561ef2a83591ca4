"""The commands of `jaxtf-artifact` that need no more than the reading of bytes: `describe`, `diff`, `extract`.

A command takes the parsed arguments, prints its result, and returns the exit code.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from jaxtf.serialization._artifact.describe import describe
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._cli.child import PRINT, in_child
from jaxtf.serialization._cli.files import CommandError, about, print_json, progress, read, write
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._requires import require_jax

__all__ = ["describe_files", "diff_files", "extract_module"]


def describe_files(options: argparse.Namespace) -> int:
    """Prints what each file says about itself."""
    descriptions = {}
    for file in options.files:
        blob = read(file)
        progress(blob, "reading")
        try:
            descriptions[file] = describe(blob)
        except (ArtifactError, VersionError) as error:
            raise about(file, error) from error
    if options.json:
        print_json([{"file": file, **description.to_json()} for file, description in descriptions.items()])
        return 0
    for number, (file, description) in enumerate(descriptions.items()):
        if len(descriptions) > 1:
            print(f"{chr(10) if number else ''}{file}")
        print(description)
    return 0


def diff_files(options: argparse.Namespace) -> int:
    """Prints each field in which two files differ; 1 if there is any."""
    left_file, right_file = options.files
    left, right = map(_described, options.files)
    differing = {name: values for name, *values in _differing("", left, right)}
    if options.json:
        print_json({name: {"left": values[0], "right": values[1]} for name, values in differing.items()})
    else:
        for name, (before, after) in differing.items():
            print(f"{name}\n  {left_file}: {_shown(before)}\n  {right_file}: {_shown(after)}")
    return 1 if differing else 0


def _described(file: str) -> dict[str, Any]:
    """The description of a file, with a digest of each module."""

    blob = read(file)
    progress(blob, "reading")
    try:
        description = describe(blob).to_json()
        table: Any = read_payload(split_trailer(blob).payload)
    except (ArtifactError, VersionError) as error:
        raise about(file, error) from error
    for function in description["functions"]:
        function["module_sha256"] = hashlib.sha256(table.mlir_module_serialized).hexdigest()
        table = table.vjp
    return description


def _differing(name: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where nested JSON values differ, by path, and what stands there; what only one has, is shown in full."""
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


def extract_module(options: argparse.Namespace) -> int:
    """Writes the module of the function, or of an order of its VJP, as bytes or as text."""
    blob = read(options.file)
    progress(blob, "reading")
    try:
        description = describe(blob)
        table: Any = read_payload(split_trailer(blob).payload)
    except (ArtifactError, VersionError) as error:
        raise about(options.file, error) from error
    if not 0 <= options.vjp <= description.vjp_orders:
        raise CommandError(f"{options.file}: it has no VJP of order {options.vjp}; it has {description.vjp_orders}")
    for _ in range(options.vjp):
        table = table.vjp
    module: bytes | memoryview = table.mlir_module_serialized
    if options.text:
        require_jax("extract --text")
        try:
            module = in_child(PRINT, bytes(module))
        except ArtifactError as error:
            raise about(options.file, error) from error
    write(options.output, module)
    return 0
