"""A program and its weights into a file: a safetensors file whose last array is the program.

Arrays of many bytes begin at multiples of 64 bytes, so that XLA on a CPU takes them out of the mapped file as they are;
padding follows a size that is not such a multiple. Each array is written as it is in memory, with its digest
computed while writing; the header, which has the digests, is written again at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from jaxtf.serialization._container.header import ALIGNMENT, Entry, encode
from jaxtf.serialization._container.manifest import PADDING, PROGRAM, Manifest, Stored, stored_as, texts_of
from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._record.avals import Aval, ExtendedDtype, dtype_name
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["Leaf", "write_model"]

_PADDED_FROM = 2**16
_CHUNK = 2**24
_NO_DIGEST = "0" * 64
# By the kind of a number's dtype, those that it may become.
_TAKEN_BY = {"b": "b", "i": "iufc", "u": "iufc", "f": "fc", "c": "c"}


@dataclass(frozen=True)
class Leaf:
    """One flat value of the weights, checked against what the function takes.

    Attributes:
      path: Its path in the pytree, for messages.
      name: Of its array in the file.
      aval: What the function takes there.
      value: The array.
    """

    path: str
    name: str
    aval: Aval
    value: Any

    def __post_init__(self) -> None:
        if isinstance(self.aval.dtype, ExtendedDtype) or self.aval.dtype.names:
            raise SerializationError(
                f"{self.path} is of dtype {dtype_name(self.aval.dtype)}, which a file of weights has no form for\n"
                "  remedy: let the function take jax.random.key_data of a key, and wrap it with "
                "jax.random.wrap_key_data; do without values of float0"
            )
        if isinstance(self.value, np.ma.MaskedArray):
            raise SerializationError(
                f"{self.path} is a masked array of NumPy, whose mask would be lost\n"
                "  remedy: array.filled(value) with a value for masked elements, and the mask as an argument of its own"
            )
        shape, dtype = np.shape(self.value), self.aval.dtype
        if self.is_array and np.dtype(self.value.dtype) != dtype:
            raise SerializationError(
                f"{self.path} must be of dtype {dtype_name(dtype)}, as the function was exported; found "
                f"{self.value.dtype}"
            )
        if not self.is_array and not _has_number(self.value, dtype):
            raise SerializationError(
                f"{self.path} must be a number of dtype {dtype_name(dtype)}, as the function was exported; found "
                f"{self.value!r:.60}\n  remedy: pass an array of that dtype"
            )
        fits = len(shape) == self.aval.ndim and all(
            is_symbolic_dim(size) or size == found for size, found in zip(self.aval.shape, shape, strict=True)
        )
        if not fits:
            raise SerializationError(
                f"{self.path} must be of shape ({', '.join(map(str, self.aval.shape))}), as the function was exported; "
                f"found {shape}"
            )
        if not self.is_array and shape:  # as in a call of the function, which takes it for a node of the pytree
            name = dtype_name(dtype)
            raise SerializationError(
                f"{self.path} must be an array of dtype {name}, as the function was exported; found a "
                f"{type(self.value).__name__} of {shape[0]} values\n  remedy: pass numpy.asarray(value, {name!r})"
            )

    @property
    def is_array(self) -> bool:
        """Whether it has a dtype of its own; a Python number has none."""
        return hasattr(self.value, "dtype")

    @property
    def identity(self) -> object:
        """Equal for leaves that are the same array."""
        value = self.value
        if isinstance(value, np.ndarray):
            return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype
        return id(value) if self.is_array else self.name

    def contiguous(self) -> np.ndarray[Any, Any]:
        """Its bytes, in the order of the file; no copy of an array in memory that is in this order already."""
        try:
            array = np.ascontiguousarray(self.value, dtype=self.aval.dtype)
        except RuntimeError as error:  # an array of JAX that this process does not have all of
            raise SerializationError(
                f"{self.path} cannot be written: {error}\n"
                "  remedy: gather it first (jax.experimental.multihost_utils.process_allgather), or delete it later"
            ) from error
        return array.reshape(-1).view(np.uint8)


def _kind(dtype: Any) -> str:
    """NumPy's letter for the kind of a dtype; NumPy has one, V, for all of ml_dtypes: int4, uint4 and floats."""
    narrow = {"int": "i", "uint": "u"}.get(dtype.name.rstrip("0123456789"), "f")
    return narrow if dtype.kind == "V" else str(dtype.kind)


def _has_number(value: Any, dtype: Any) -> bool:
    """Whether a dtype has the Python numbers that something without a dtype is, as JAX takes them."""
    kind = _kind(dtype)
    try:
        given = np.asarray(value)
        if kind not in _TAKEN_BY.get(given.dtype.kind, ""):
            return False
        with np.errstate(all="ignore"):
            made = given.astype(dtype)
    except OverflowError:
        return False
    if kind in "iu":
        return bool(np.all(made.astype(object) == given.astype(object)))
    return bool(np.all(np.isfinite(made.astype(np.complex128)) == np.isfinite(given)))


def write_model(
    file: IO[bytes],
    artifact: bytes | bytearray,
    leaves: Sequence[Leaf],
    arguments: Sequence[int],
    *,
    is_tuple: bool = False,
    metadata: Mapping[str, Any],
    producer: Mapping[str, str],
) -> Manifest:
    """Writes a file, from its start.

    Args:
      file: Open for writing, at its start; it can seek.
      artifact: The program.
      leaves: The weights.
      arguments: Positions of the arguments that they are for.
      is_tuple: Whether they are a tuple of weights, also of one argument.
      metadata: JSON values.
      producer: Releases by name.

    Raises:
      SerializationError: A leaf cannot be read.
      OSError: The disk is full.
    """
    distinct: dict[object, Leaf] = {}
    for leaf in leaves:
        distinct.setdefault(leaf.identity, leaf)
    placed, padding, program = _placed(list(distinct.values()), len(artifact))
    manifest = Manifest(
        arguments=tuple(arguments),
        is_tuple=is_tuple,
        leaves=tuple(distinct[leaf.identity].name for leaf in leaves),
        arrays={
            leaf.name: Stored(dtype_name(leaf.aval.dtype), np.shape(leaf.value), placed[leaf.name], _NO_DIGEST)
            for leaf in distinct.values()
        },
        program=(program, hashlib.sha256(artifact).hexdigest()),
        metadata=metadata,
        producer=producer,
    )
    entries = dict(sorted({**placed, **padding, PROGRAM: program}.items(), key=lambda item: item[1].start))
    header = encode(entries, texts_of(manifest))
    file.write(header)
    digests = {}
    by_name = {leaf.name: leaf for leaf in distinct.values()}
    for name, entry in entries.items():
        if name in by_name:
            digests[name] = _write_array(file, by_name[name])
        else:
            file.write(artifact if name == PROGRAM else bytes(entry.end - entry.start))
    manifest = replace(
        manifest,
        arrays={name: replace(stored, sha256=digests[name]) for name, stored in manifest.arrays.items()},
    )
    final = encode(entries, texts_of(manifest))
    assert len(final) == len(header), "digests are of one length"
    file.seek(0)
    file.write(final)
    return manifest


def _write_array(file: IO[bytes], leaf: Leaf) -> str:
    """Writes the bytes of a leaf; returns their SHA-256."""
    content, digest = leaf.contiguous().data, hashlib.sha256()
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest()


def _placed(leaves: Sequence[Leaf], artifact_size: int) -> tuple[dict[str, Entry], dict[str, Entry], Entry]:
    """Where each array is, the padding, and where the program is."""
    placed: dict[str, Entry] = {}
    padding: dict[str, Entry] = {}
    end = 0
    for leaf in sorted(leaves, key=_order):
        item_size, shape = leaf.aval.dtype.itemsize, np.shape(leaf.value)
        dtype, stored_shape = stored_as(dtype_name(leaf.aval.dtype), shape, item_size)
        size = _size(leaf)
        placed[leaf.name] = Entry(dtype, stored_shape, end, end + size)
        end += size
        if size >= _PADDED_FROM and end % ALIGNMENT:
            gap = -end % ALIGNMENT
            padding[f"{PADDING}{len(padding)}"] = Entry("U8", (gap,), end, end + gap)
            end += gap
    return placed, padding, Entry("U8", (artifact_size,), end, end + artifact_size)


def _order(leaf: Leaf) -> tuple[bool, int]:
    """Long arrays first, in their order; then short ones, of the widest dtypes first, so that each is aligned."""
    is_short = _size(leaf) < _PADDED_FROM and bool(_size(leaf) % ALIGNMENT)
    return is_short, -leaf.aval.dtype.itemsize if is_short else 0


def _size(leaf: Leaf) -> int:
    return int(np.prod(np.shape(leaf.value), dtype=np.int64)) * int(leaf.aval.dtype.itemsize)
