"""What a function is exported for: what the caller asks for, checked, and what JAX says where the caller does not.

Imports JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jaxtf.serialization._errors import CallingConventionError, StablehloVersionError
from jaxtf.serialization._jax_values.settings import (
    default_calling_convention_version,
    default_export_platform,
    registered_platforms,
)
from jaxtf.serialization._program import portable_artifact
from jaxtf.serialization._record.checks import DisabledSafetyCheck, checks_of
from jaxtf.serialization._record.negotiation import ModuleVersions, lower_of
from jaxtf.serialization._record.platforms import PLATFORMS_OF_GRAPHS, check_platforms
from jaxtf.serialization._record.stablehlo import check_stablehlo_version
from jaxtf.serialization._record.tensorflow import tensorflow_reads
from jaxtf.serialization._record.versions import (
    check_calling_convention_version,
    maximum_supported_calling_convention_version,
)

__all__ = [
    "LinearAlgebra",
    "Target",
    "target_for_graph",
    "target_of",
]

LinearAlgebra = Literal["calls", "expanded", "named"]


@dataclass(frozen=True)
class Target:
    """What to export for; the VJP is exported for the same."""

    platforms: tuple[str, ...]
    disabled_checks: tuple[DisabledSafetyCheck, ...]
    calling_convention_version: int
    stablehlo_version: str
    linear_algebra: LinearAlgebra


def target_of(
    *,
    platforms: Sequence[str] | None,
    disabled_checks: Sequence[DisabledSafetyCheck],
    calling_convention_version: int | None,
    stablehlo_version: str | None,
    tensorflow_version: str | None,
    expand_linear_algebra: bool,
) -> Target:
    """What `export` exports for; its parameters."""
    versions = module_versions(calling_convention_version, stablehlo_version, tensorflow_version)
    return Target(
        platforms=platforms_or_default(platforms),
        disabled_checks=checks_of(disabled_checks),
        calling_convention_version=versions.calling_convention_version,
        stablehlo_version=versions.stablehlo_version,
        linear_algebra="expanded" if expand_linear_algebra else "calls",
    )


def target_for_graph(disabled_checks: Sequence[DisabledSafetyCheck]) -> Target:
    """What `export_for_graph` exports for: no platform, the newest StableHLO."""
    return Target(
        platforms=PLATFORMS_OF_GRAPHS,
        disabled_checks=checks_of(disabled_checks),
        calling_convention_version=default_calling_convention_version(),
        stablehlo_version=portable_artifact.current_stablehlo_version(),
        linear_algebra="named",
    )


def platforms_or_default(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The lowering platforms, after checking them; for None that of JAX's default backend."""
    return check_platforms(
        (default_export_platform(),) if platforms is None else platforms, registered=registered_platforms()
    )


def module_versions(
    calling_convention_version: int | None, stablehlo_version: str | None, tensorflow_version: str | None
) -> ModuleVersions:
    """The versions to write a module in: those asked for, checked; for None what the consumer reads and JAX writes.

    The consumer is the TensorFlow of that version; for None one that was built in the last month, whatever it is.

    Raises:
      CallingConventionError, StablehloVersionError: Asked for, and not written here, or newer than the consumer reads.
      TensorFlowVersionError: No such TensorFlow.
    """
    if tensorflow_version is None:
        reads = ModuleVersions(
            maximum_supported_calling_convention_version, portable_artifact.month_old_stablehlo_version()
        )
    else:
        reads = tensorflow_reads(tensorflow_version)
    default = lower_of(reads, portable_artifact.written_here())
    asked = ModuleVersions(
        check_calling_convention_version(
            default.calling_convention_version if calling_convention_version is None else calling_convention_version
        ),
        check_stablehlo_version(
            default.stablehlo_version if stablehlo_version is None else stablehlo_version,
            oldest=portable_artifact.minimum_stablehlo_version(),
            newest=portable_artifact.current_stablehlo_version(),
        ),
    )
    if tensorflow_version is not None:
        _check_readable(asked, reads, tensorflow_version)
    return asked


def _check_readable(asked: ModuleVersions, reads: ModuleVersions, tensorflow_version: str) -> None:
    """Refuses options that the given version of TensorFlow does not read."""
    readable = lower_of(reads, asked)
    if readable.calling_convention_version != asked.calling_convention_version:
        raise CallingConventionError(
            f"calling_convention_version={asked.calling_convention_version} is newer than TensorFlow "
            f"{tensorflow_version} reads, which is up to {reads.calling_convention_version}\n"
            "  remedy: leave calling_convention_version out, or name a newer TensorFlow"
        )
    if readable.stablehlo_version != asked.stablehlo_version:
        raise StablehloVersionError(
            f"stablehlo_version={asked.stablehlo_version!r} is newer than TensorFlow {tensorflow_version} reads, which "
            f"is up to {reads.stablehlo_version}\n"
            "  remedy: leave stablehlo_version out, or name a newer TensorFlow"
        )
