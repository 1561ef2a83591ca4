"""What is written for a consumer: the lower of what it reads and what is written here.

Two numbers of a module are negotiated, each by itself: its calling convention (`_versions.py`) and its StableHLO
version (`_stablehlo.py`). Either side may be the newer one: JAX 0.12.0.1 writes StableHLO 1.22 and TensorFlow 2.21
reads 1.13, TensorFlow 2.22 reads 1.20 and JAX 0.10.2, the newest for Python 3.11, writes 1.17.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtf.serialization._record.stablehlo import parse_stablehlo_version
from jaxtf.serialization._record.versions import check_calling_convention_version
from jaxtf.serialization._requires import require_jax

__all__ = ["ModuleVersions", "negotiate", "written_here"]


@dataclass(frozen=True)
class ModuleVersions:
    """The newest that a consumer reads, or that a producer writes.

    Attributes:
      calling_convention_version: Order and meaning of the main function's arguments.
      stablehlo_version: Of the module, such as `"1.13.7"`.
    """

    calling_convention_version: int
    stablehlo_version: str


def negotiate(reads: ModuleVersions, writes: ModuleVersions | None = None) -> ModuleVersions:
    """The versions to write a module in: of each number the lower of what is read and what is written.

    Only newest versions are compared. If what the consumer reads is older than anything that can be written, the result
    is what it reads, which `export` then refuses.

    Args:
      reads: The newest that the consumer reads.
      writes: The newest that the producer writes; by default this process, which needs JAX.

    Raises:
      CallingConventionError: `writes` is not given, and JAX's flag has a version that is not written.
      JaxRequiredError: `writes` is not given, and JAX is not installed.
      StablehloVersionError: Malformed.

    >>> negotiate(ModuleVersions(10, "1.20.0"), ModuleVersions(10, "1.17.0"))
    ModuleVersions(calling_convention_version=10, stablehlo_version='1.17.0')
    >>> negotiate(ModuleVersions(9, "1.9.1"), ModuleVersions(10, "1.17.0"))
    ModuleVersions(calling_convention_version=9, stablehlo_version='1.9.1')
    """
    writes = written_here() if writes is None else writes
    return ModuleVersions(
        min(reads.calling_convention_version, writes.calling_convention_version),
        min(reads.stablehlo_version, writes.stablehlo_version, key=parse_stablehlo_version),
    )


def written_here() -> ModuleVersions:
    """The newest that this process writes: the calling convention of JAX's flag, the StableHLO version of its jaxlib.

    Raises:
      CallingConventionError: The flag has a version that is not written.
      JaxRequiredError: JAX is not installed.
    """
    require_jax("negotiate")
    from jaxtf.serialization._jax_values.settings import default_calling_convention_version
    from jaxtf.serialization._program.portable_artifact import current_stablehlo_version

    return ModuleVersions(
        check_calling_convention_version(default_calling_convention_version()), current_stablehlo_version()
    )
