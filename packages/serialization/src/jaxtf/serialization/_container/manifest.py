"""What a safetensors file must say to be a program with its weights.

Its header holds two texts: `jaxtf`, a JSON object, and `jaxtf.sha256`, the SHA-256 of that one in hexadecimal. The
object repeats of each array what the header says and adds its SHA-256, so that whoever has the second text can check
every byte of the file. Its fields:

| field | what |
| --- | --- |
| `format` | 1 |
| `arguments` | positions of the arguments that the weights are for |
| `is_tuple` | true where the weights of one argument are a tuple of one pytree; left out otherwise |
| `leaves` | for each flat value of these arguments the name of its array; a name may come twice |
| `arrays` | of each: `dtype` (NumPy's name), `shape`, `stored` (the header's dtype, shape), `start`, `end`, `sha256` |
| `program` | the array that holds the artifact, with its `start`, `end` and `sha256` |
| `metadata` | a JSON object of the user |
| `producer` | releases by name |

Other arrays in the file are padding, zeros, called `jaxtf.padding.0` and so on.

Source: docs/artifact_format.md, section 6.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxtf.serialization._container.header import ITEM_SIZES, Entry, Header
from jaxtf.serialization._container.json_text import object_of, utf_8
from jaxtf.serialization._errors import ArtifactError, VersionError

__all__ = [
    "FORMAT",
    "PADDING",
    "PROGRAM",
    "Manifest",
    "Stored",
    "manifest_of",
    "stored_as",
    "stored_dtypes",
    "texts_of",
]

FORMAT = 1
PROGRAM = "jaxtf.program"
PADDING = "jaxtf.padding."

_TEXT, _DIGEST = "jaxtf", "jaxtf.sha256"
_SHA256 = re.compile("[0-9a-f]{64}")
_DTYPE = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MEMORY_RATIO, _MEMORY_FLOOR = 24, 2**20

# dtypes that the format has by a name of its own. All others are stored as the bytes that NumPy has of them: one for
# each value of int4.
_STORED = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """One array of the weights.

    Attributes:
      dtype: By NumPy's name or that of `ml_dtypes`.
      shape: Its sizes.
      entry: What the header says.
      sha256: Of its bytes, in hexadecimal.
    """

    dtype: str
    shape: tuple[int, ...]
    entry: Entry
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The description of a file.

    Attributes:
      arguments: Positions of the arguments that the weights are for.
      leaves: Of each flat value of these, the name of its array.
      arrays: By name.
      program: Where the artifact is; its SHA-256.
      metadata: JSON values of the user.
      producer: Releases by name.
      sha256: Of all that, so that it identifies the whole file; in hexadecimal.
      is_tuple: Whether the weights of one argument are a tuple of one pytree; those of several are a tuple.
    """

    arguments: tuple[int, ...]
    leaves: tuple[str, ...]
    arrays: Mapping[str, Stored]
    program: tuple[Entry, str]
    metadata: Mapping[str, Any]
    producer: Mapping[str, str]
    sha256: str = field(default="")
    is_tuple: bool = False


def stored_as(dtype: str, shape: tuple[int, ...], item_size: int) -> tuple[str, tuple[int, ...]]:
    """The dtype and shape that the header gives an array.

    >>> stored_as("bfloat16", (2, 3), 2), stored_as("int4", (2,), 1), stored_as("complex128", (2,), 16)
    (('BF16', (2, 3)), ('U8', (2,)), ('U8', (2, 16)))
    """
    known = _STORED.get(dtype)
    if known is not None:
        return known, shape
    return "U8", shape if item_size == 1 else (*shape, item_size)


def stored_dtypes() -> frozenset[str]:
    """The dtypes that the format has by a name of its own, by NumPy's names or those of `ml_dtypes`."""
    return frozenset(_STORED)


def texts_of(manifest: Manifest) -> dict[str, str]:
    """The two texts of a header; that of the digest is of 64 characters."""
    entry, digest = manifest.program
    values = {
        "format": FORMAT,
        "arguments": list(manifest.arguments),
        **({"is_tuple": True} if manifest.is_tuple and len(manifest.arguments) == 1 else {}),
        "leaves": list(manifest.leaves),
        "arrays": {
            name: {
                "dtype": stored.dtype,
                "shape": list(stored.shape),
                "stored": [stored.entry.dtype, list(stored.entry.shape)],
                "start": stored.entry.start,
                "end": stored.entry.end,
                "sha256": stored.sha256,
            }
            for name, stored in manifest.arrays.items()
        },
        "program": {"start": entry.start, "end": entry.end, "sha256": digest},
        "metadata": dict(manifest.metadata),
        "producer": dict(manifest.producer),
    }
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return {_TEXT: text, _DIGEST: hashlib.sha256(utf_8(text)).hexdigest()}


def manifest_of(header: Header) -> Manifest:
    """What the texts of a header say; the arrays are those of the header.

    Raises:
      ArtifactError: It is a safetensors file without a program, or a damaged one.
      VersionError: It is of a later format.
    """
    text, digest = header.metadata.get(_TEXT), header.metadata.get(_DIGEST)
    if text is None or digest is None:
        raise ArtifactError(
            "this is a safetensors file of arrays alone, without a program\n"
            "  remedy: write both into one file with jaxtf.serialization.save"
        )
    encoded = text.encode(errors="surrogatepass")
    if hashlib.sha256(encoded).hexdigest() != digest:
        raise ArtifactError(
            "the file is damaged: its manifest does not have the SHA-256 that it was written with\n"
            "  remedy: copy it again, in binary mode, from where it was written"
        )
    values = object_of(encoded, "the manifest", 8, _MEMORY_RATIO * len(encoded) + _MEMORY_FLOOR)
    number = values.get("format")
    if type(number) is not int or number != FORMAT:
        if type(number) is int and number > FORMAT:
            raise VersionError(
                f"the file has weights in format {number}, written by a later jaxtf-serialization; this release reads "
                f"format {FORMAT}\n  remedy: install a newer jaxtf-serialization"
            )
        raise ArtifactError(f"the manifest says that it is of format {number!r:.40}")
    try:
        return _manifest(values, header, digest)
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"the manifest lacks an entry, or has one of another type: {error!r:.120}") from error


def _manifest(values: dict[str, Any], header: Header, digest: str) -> Manifest:
    arrays = {name: _stored(name, value, header) for name, value in values["arrays"].items()}
    program = values["program"]
    placed = header.entries.get(PROGRAM)
    if placed is None or placed.dtype != "U8" or (placed.start, placed.end) != (program["start"], program["end"]):
        raise ArtifactError(f"the manifest and the header do not agree on where the program is: {placed!r:.120}")
    for name in header.entries.keys() - arrays.keys() - {PROGRAM}:
        if not name.startswith(PADDING):
            raise ArtifactError(f"the header has an array that the manifest does not: {name!r:.80}")
    leaves, arguments = _texts(values["leaves"]), values["arguments"]
    if missing := [name for name in leaves if name not in arrays]:
        raise ArtifactError(f"the manifest names an array that is not in the file: {missing[0]!r:.80}")
    if not isinstance(arguments, list) or not all(type(position) is int and position >= 0 for position in arguments):
        raise ArtifactError(f"the manifest gives weights to the arguments {arguments!r:.80}, which are not positions")
    if not isinstance(values["metadata"], dict) or not isinstance(values["producer"], dict):
        raise ArtifactError("the metadata and the producer of the manifest must be JSON objects")
    return Manifest(
        arguments=tuple(arguments),
        is_tuple=values.get("is_tuple") is True,
        leaves=leaves,
        arrays=arrays,
        program=(placed, _sha256(program["sha256"])),
        metadata=values["metadata"],
        producer={name: str(release)[:100] for name, release in values["producer"].items()},
        sha256=digest,
    )


def _stored(name: str, value: dict[str, Any], header: Header) -> Stored:
    entry = header.entries[name]
    dtype, shape = value["dtype"], value["shape"]
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype) or not isinstance(shape, list):
        raise ArtifactError(f"the manifest has for {name!r:.80} a dtype or a shape that is not one")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ArtifactError(f"the manifest has for {name!r:.80} a shape that is not one: {shape!r:.80}")
    item_size = ITEM_SIZES[entry.dtype] if entry.shape == tuple(shape) else entry.shape[-1]
    if stored_as(dtype, tuple(shape), item_size) != (entry.dtype, entry.shape) or [
        [entry.dtype, list(entry.shape)],
        entry.start,
        entry.end,
    ] != [value["stored"], value["start"], value["end"]]:
        raise ArtifactError(f"the manifest and the header do not agree on the array {name!r:.80}")
    return Stored(dtype, tuple(shape), entry, _sha256(value["sha256"]))


def _sha256(text: Any) -> str:
    if not isinstance(text, str) or not _SHA256.fullmatch(text):
        raise ArtifactError(f"the manifest has {text!r:.80} for a SHA-256")
    return text


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ArtifactError(f"the manifest has {values!r:.80} for a list of texts")
    return tuple(values)
