"""The commands of `jaxtf-artifact` that need no more than the reading of bytes: `describe`, `diff`, `extract`.

A command takes the parsed arguments, prints its result, and returns the exit code.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from jaxtf.serialization._artifact.describe import describe_bytes, describe_source
from jaxtf.serialization._artifact.description import Description
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.schema import PyTreeDefTable
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._cli.child import PRINT, in_child
from jaxtf.serialization._cli.files import (
    CommandError,
    check_output,
    each_file,
    errors_about,
    print_json,
    progress,
    reading,
    write,
)
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._requires import require_jax

__all__ = ["describe_files", "diff_files", "extract_module"]


def describe_files(options: argparse.Namespace) -> int:
    """Prints a description of each file, or its error, in order."""
    reports = list(each_file(options.files, _description))
    code = 2 if any(wrong is not None for _, _, wrong in reports) else 0
    if options.json:
        print_json(
            [
                {"file": file, **({"error": wrong} if description is None else description.to_json())}
                for file, description, wrong in reports
            ]
        )
        return code
    for number, (file, description, wrong) in enumerate(reports):
        if len(reports) > 1:
            print(f"{chr(10) if number else ''}{file}", flush=True)
        if wrong is None:
            print(description, flush=True)
        else:
            progress(f"jaxtf-artifact: {wrong}")
    return code


def _description(file: str) -> Description:
    with reading(file, "reading") as source:
        return describe_source(source)


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
    """The description of a file, with the structures of arguments and results, and a digest of each module."""
    with reading(file, "reading") as source:
        description = describe_source(source).to_json()
        table: Any = read_payload(split_trailer(parts_of(source).artifact).payload)
        for function in description["functions"]:
            function["in_tree"], function["out_tree"] = _tree_text(table.in_tree), _tree_text(table.out_tree)
            function["module_sha256"] = hashlib.sha256(table.mlir_module_serialized).hexdigest()
            table = table.vjp
    return description


def _tree_text(table: PyTreeDefTable | None) -> str:
    """A pytree with `*` for each array; custom types by their names and auxiliary data."""
    if table is None:
        return "nothing"
    inside = list(map(_tree_text, table.children or ()))
    match table.kind:
        case PyTreeDefKind.LEAF:
            return "*"
        case PyTreeDefKind.NONE:
            return "None"
        case PyTreeDefKind.LIST:
            return f"[{', '.join(inside)}]"
        case PyTreeDefKind.DICT:
            names = itertools.zip_longest(map(repr, table.children_names or ()), inside)
            return f"{{{', '.join(f'{key}: {child}' for key, child in names)}}}"
        case PyTreeDefKind.TUPLE:
            return f"({', '.join(inside)})"
        case kind:
            auxdata = (table.custom_auxdata or b"").decode(errors="backslashreplace")
            return f"{table.custom_name or f'kind {kind}'}[{auxdata}]({', '.join(inside)})"


def _differing(name: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where nested JSON values differ: the path and the two values; an entry that only one has is shown in full."""
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
    check_output(options.output, options.force, options.file, text=options.text)
    with reading(options.file, "reading") as source:
        module = _module(options, source)
    with errors_about(options.output):
        write(options.output, module)
    return 0


def _module(options: argparse.Namespace, source: Source) -> bytes:
    """The requested module."""
    artifact = parts_of(source).artifact
    description = describe_bytes(artifact)
    table: Any = read_payload(split_trailer(artifact).payload)
    if not 0 <= options.vjp <= description.vjp_orders:
        raise CommandError(f"it has no VJP of order {options.vjp}; it has {description.vjp_orders}")
    for _ in range(options.vjp):
        table = table.vjp
    module = bytes(table.mlir_module_serialized)
    if not options.text:
        return module
    require_jax("extract --text")
    return in_child(PRINT, module)
