"""The arrays of a file, out of its mapped memory: nothing is copied.

Digests are verified unless that is not wanted: it reads all bytes once. A byte of `bool` that is neither 0 nor 1 is
then refused too: what XLA makes of it is not defined.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from jaxtf.serialization._container.manifest import Manifest, Stored, stored_as
from jaxtf.serialization._container.parts import Parts
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._record.avals import ExtendedDtype, dtype_from_name
from jaxtf.serialization._record.kinds import DTYPE_NUMBERS

__all__ = ["arrays_of"]


def arrays_of(source: Source, parts: Parts, verify: bool) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file with weights, by name; they cannot be written to.

    Args:
      source: The file; its memory is kept by the arrays.
      parts: What it holds.
      verify: Whether to read all of them once, and compare with their digests.

    Raises:
      ArtifactError: A digest or a value is not what it must be.
      VersionError: A dtype of a later release.
    """
    assert parts.manifest is not None, "the caller looked"
    content = source.mapped()[parts.data_start :]
    views = {name: content[stored.entry.start : stored.entry.end] for name, stored in parts.manifest.arrays.items()}
    arrays = {name: _array(name, stored, views[name]) for name, stored in parts.manifest.arrays.items()}
    if verify:
        _verify(parts.manifest, views)
    return arrays


def _array(name: str, stored: Stored, view: memoryview) -> np.ndarray[Any, Any]:
    dtype = dtype_from_name(stored.dtype) if stored.dtype in DTYPE_NUMBERS else None
    if dtype is None or isinstance(dtype, ExtendedDtype) or dtype.names:
        raise VersionError(
            f"the array {name!r:.80} is of dtype {stored.dtype!r}, which this release does not read\n"
            "  remedy: install a newer jaxtf-serialization"
        )
    if stored_as(stored.dtype, stored.shape, dtype.itemsize) != (stored.entry.dtype, stored.entry.shape):
        raise ArtifactError(f"the array {name!r:.80} of dtype {stored.dtype} has not the bytes of one")
    if not len(view):
        return np.empty(stored.shape, dtype)
    return np.frombuffer(view, dtype).reshape(stored.shape)


def _verify(manifest: Manifest, views: Mapping[str, memoryview]) -> None:
    """Compares all arrays with their digests, several at a time: hashing runs in parallel with Python."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        digests = dict(zip(views, pool.map(_digest, views.values()), strict=True))
    for name, stored in manifest.arrays.items():
        if digests[name] != stored.sha256:
            raise ArtifactError(
                f"the file is damaged: the array {name!r:.80} does not have the SHA-256 that it was written with\n"
                "  remedy: copy it again, in binary mode, from where it was written"
            )
        if stored.dtype == "bool" and len(views[name]) and np.any(np.frombuffer(views[name], np.uint8) > 1):
            raise ArtifactError(f"the array {name!r:.80} of dtype bool has bytes that are neither 0 nor 1")


def _digest(view: memoryview) -> str:
    return hashlib.sha256(view).hexdigest()
