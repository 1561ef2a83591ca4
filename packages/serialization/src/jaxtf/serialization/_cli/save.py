"""`jaxtf-artifact save`: an artifact and a file of weights become one file; and how commands write such a file.

Weights come from any safetensors file, by the names that `save` gives them, or from a file that `save` wrote. They are
copied out of its mapped memory, piece by piece: a file of any size, in little memory.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._cli.check import check_records
from jaxtf.serialization._cli.files import CommandError, check_output, errors_about, progress, reading
from jaxtf.serialization._container.header import Entry, begins_as_header, read_header
from jaxtf.serialization._container.manifest import stored_as, stored_dtypes
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._container.whole_file import written_whole
from jaxtf.serialization._record.avals import Aval, dtype_name
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.versions import RELEASE
from jaxtf.serialization._weights.model import model_of
from jaxtf.serialization._weights.names import names_of_weights
from jaxtf.serialization._weights.write import Leaf, write_model

__all__ = ["check_place", "save_file", "write_with_weights"]

_SHOWN = 8


def save_file(options: argparse.Namespace) -> int:
    """Writes an artifact and weights as one file."""
    if options.file == options.weights == "-":
        raise CommandError("-: standard input is the artifact or the weights, not both")
    check_place(options.output)
    check_output(options.output, options.force, options.file, options.weights)
    with reading(options.file, "reading") as source:
        parts = parts_of(source)
        artifact = bytes(parts.artifact)
        metadata = {} if parts.manifest is None else parts.manifest.metadata
        check_records(artifact)
        exported = deserialize_bytes(artifact)
        argnums = _argnums(options.argnums, exported)
    with reading(options.weights, "copying") as source:
        leaves = _leaves(exported, argnums, source, options.allow_unused)
    write_with_weights(options.output, artifact, leaves, argnums, metadata)
    return 0


def check_place(file: str) -> None:
    """Refuses, before the work, to write a program with weights to what is not a file: its header is written last."""
    if file == "-" or (os.path.exists(file) and not os.path.isfile(file)):
        raise CommandError(f"{file}: a program with its weights is written to a file on a disk\n  remedy: -o FILE")


def write_with_weights(
    file: str,
    artifact: bytes | bytearray,
    leaves: Sequence[Leaf],
    argnums: Sequence[int],
    metadata: Mapping[str, Any],
    *,
    is_tuple: bool = False,
) -> None:
    """Writes a program with its weights whole, and says so."""
    with errors_about(file):
        with written_whole(file) as opened:
            producer = {"jaxtf-serialization": RELEASE}
            manifest = write_model(
                opened, artifact, leaves, argnums, is_tuple=is_tuple, metadata=metadata, producer=producer
            )
        size = sum(stored.entry.end - stored.entry.start for stored in manifest.arrays.values())
    progress(
        f"wrote {file}: {os.path.getsize(file):,} bytes, {len(manifest.arrays)} arrays of {size:,} bytes, "
        f"program sha256 {manifest.program[1]}"
    )


def _argnums(text: str, exported: Exported) -> tuple[int, ...]:
    """The positions of the arguments that the weights are for."""
    words = text.split(",")
    numbers = tuple(int(word) for word in words if word.isascii() and word.isdigit())
    count = len(exported.in_structure.children[0].children)
    if len(numbers) != len(words) or sorted(set(numbers)) != list(numbers) or numbers[-1] >= count:
        raise CommandError(
            f"--argnums {text!r}: write positions of arguments, ascending and less than {count}, such as 0 or 0,2"
        )
    return numbers


def _leaves(exported: Exported, argnums: Sequence[int], source: Source, allows_unused: bool) -> list[Leaf]:
    """The weights that the function takes, each with its array of the file."""
    roots = tuple(f"args[{number}]" for number in argnums)
    taken = [
        (path, aval) for path, aval in zip(exported.in_names, exported.in_avals, strict=True) if path.startswith(roots)
    ]
    names = names_of_weights([path for path, _ in taken], argnums[0] if len(argnums) == 1 else None)
    avals = {name: aval for name, (_, aval) in zip(names, taken, strict=True)}
    arrays = _arrays(source, avals)
    missing = [name for name in names if name not in arrays]
    unused = [] if allows_unused else [name for name in arrays if name not in avals]
    if missing or unused:
        raise CommandError(_other_names(missing, unused, exported))
    return [Leaf(path, name, aval, arrays[name]) for name, (path, aval) in zip(names, taken, strict=True)]


def _other_names(missing: Sequence[str], unused: Sequence[str], exported: Exported) -> str:
    lines = [f"the weights are not those of '{exported.fun_name}'"]
    lines += [f"  missing:  {_listed(missing)}"] * bool(missing)
    lines += [f"  unused:   {_listed(unused)}"] * bool(unused)
    if unused and not missing:
        lines.append("  remedy:   --allow-unused leaves these out")
    else:
        lines.append(
            "  remedy:   a file with an array of each of these names, or --argnums of the argument they are for"
        )
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _arrays(source: Source, avals: Mapping[str, Aval]) -> dict[str, Any]:
    """The arrays of a file by name, in its memory; of a plain safetensors file in the dtypes that are asked for."""
    if not begins_as_header(source.read(0, min(9, source.size)), source.size):
        raise CommandError(
            "this is not a safetensors file\n  remedy: safetensors.numpy.save_file writes arrays by name"
        )
    header = read_header(source)
    if "jaxtf" in header.metadata:
        return {leaf.name: leaf.value for leaf in model_of(source).leaves}
    content = source.mapped()[header.data_start :]
    return {
        name: _array(name, entry, avals[name], content[entry.start : entry.end]) if name in avals else None
        for name, entry in header.entries.items()
    }


def _array(name: str, entry: Entry, aval: Aval, view: memoryview) -> np.ndarray[Any, Any]:
    """An array of a plain safetensors file.

    Raises:
      CommandError: It is of another dtype than the function takes, or of one that such files do not have.
    """
    dtype = dtype_name(aval.dtype)
    wanted, _ = stored_as(dtype, entry.shape, 1)
    if dtype not in stored_dtypes() or entry.dtype != wanted:
        raise CommandError(
            f"the array {name!r:.80} is {entry.dtype} of shape {entry.shape}, where the function takes {dtype}\n"
            "  remedy: write it in that dtype; one that safetensors does not have, by jaxtf.serialization.save"
        )
    if dtype == "bool" and len(view) and np.any(np.frombuffer(view, np.uint8) > 1):
        raise CommandError(f"the array {name!r:.80} of dtype bool has bytes that are neither 0 nor 1")
    return np.frombuffer(view, aval.dtype).reshape(entry.shape) if len(view) else np.empty(entry.shape, aval.dtype)
