"""What is written for a consumer: the lower of what it reads and what is written here.

Two numbers of a module are negotiated, each by itself: its calling convention (`versions`) and its StableHLO
version (`stablehlo`). Either side may be the newer one: JAX 0.12.0.1 writes StableHLO 1.22 and TensorFlow 2.21
reads 1.13, TensorFlow 2.22 reads 1.20 and JAX 0.10.2, the newest for Python 3.11, writes 1.17.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

__all__ = ["ModuleVersions", "lower_of"]


@dataclass(frozen=True)
class ModuleVersions:
    """The newest versions that a consumer reads, or that a producer writes.

    Attributes:
      calling_convention_version: Order and meaning of the main function's arguments.
      stablehlo_version: Of the module, such as `"1.13.7"`.
    """

    calling_convention_version: int
    stablehlo_version: str


def lower_of(reads: ModuleVersions, writes: ModuleVersions) -> ModuleVersions:
    """Of each number the lower of what is read and what is written."""
    return ModuleVersions(
        min(reads.calling_convention_version, writes.calling_convention_version),
        min(reads.stablehlo_version, writes.stablehlo_version, key=parse_stablehlo_version),
    )
