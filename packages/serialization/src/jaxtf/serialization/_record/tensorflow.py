"""What releases of TensorFlow read, by their version; needs no TensorFlow."""

from __future__ import annotations

import re

from jaxtf.serialization._errors import TensorFlowVersionError
from jaxtf.serialization._record.negotiation import ModuleVersions

__all__ = ["RELEASES", "tensorflow_reads"]

# Release -> what `call_module_maximum_supported_version()` and `stablehlo.get_current_version()` gave in 2.19.1,
# 2.20.0, 2.21.0 and 2.22.0rc0. `python3 run.py older_tensorflow` loads what is written for the first two there.
RELEASES = {
    (2, 19): ModuleVersions(9, "1.9.1"),
    (2, 20): ModuleVersions(10, "1.12.1"),
    (2, 21): ModuleVersions(10, "1.13.7"),
    (2, 22): ModuleVersions(10, "1.20.0"),
}


def tensorflow_reads(tensorflow_version: str) -> ModuleVersions:
    """The newest versions that a TensorFlow reads.

    A TensorFlow reads what an older one reads. So a version that is not in the table counts as the newest one before
    it: a release newer than the table reads what the newest of the table reads, and possibly more.
    A nightly build counts as the release before it, because it may be older than the
    release; a release candidate counts as its release.

    Args:
      tensorflow_version: Such as `"2.21"`, `"2.21.0"` or `tf.__version__`.

    Raises:
      TensorFlowVersionError: Not a version, or one older than those of the table.

    >>> tensorflow_reads("2.21")
    ModuleVersions(calling_convention_version=10, stablehlo_version='1.13.7')
    """
    is_text = isinstance(tensorflow_version, str)
    parts = re.fullmatch(r"(\d+)\.(\d+)((?:rc\d+)?(?:[.+-]\w+)*)", tensorflow_version) if is_text else None
    if parts is None:
        raise TensorFlowVersionError(
            "tensorflow_version must be the version of a TensorFlow release, such as '2.20'. "
            f"Got: {tensorflow_version!r}"
        )
    asked = (int(parts[1]), int(parts[2]))
    is_nightly = re.search(r"\bdev", parts[3]) is not None
    readable = [release for release in RELEASES if release < asked or (release == asked and not is_nightly)]
    if not readable:
        oldest = ".".join(map(str, min(RELEASES)))
        raise TensorFlowVersionError(
            f"tensorflow_version={tensorflow_version!r} is older than any TensorFlow that modules can be written for\n"
            f"  oldest: {oldest}"
        )
    return RELEASES[max(readable)]
