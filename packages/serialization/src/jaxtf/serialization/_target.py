"""What a function is exported for: what the caller asks for, checked, and what JAX says where the caller does not.

Imports JAX when a function is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jaxtf.serialization._checks import DisabledSafetyCheck
from jaxtf.serialization._platforms import check_platforms
from jaxtf.serialization._stablehlo import check_stablehlo_version
from jaxtf.serialization._versions import check_calling_convention_version

__all__ = [
    "LinearAlgebra",
    "Target",
    "calling_convention_version_or_default",
    "platforms_or_default",
    "stablehlo_version_or_default",
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


def platforms_or_default(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The lowering platforms, after checking them; for None that of JAX's default backend."""
    from jaxtf.serialization._settings import default_export_platform, registered_platforms

    return check_platforms(
        (default_export_platform(),) if platforms is None else platforms, registered=registered_platforms()
    )


def calling_convention_version_or_default(version: int | None) -> int:
    """The calling convention version, after checking it; for None what JAX's flag says."""
    from jaxtf.serialization._settings import default_calling_convention_version

    return check_calling_convention_version(default_calling_convention_version() if version is None else version)


def stablehlo_version_or_default(version: str | None) -> str:
    """The StableHLO version, after checking it; for None one that consumers built in the last month read."""
    from jaxtf.serialization._portable_artifact import (
        current_stablehlo_version,
        minimum_stablehlo_version,
        month_old_stablehlo_version,
    )

    return check_stablehlo_version(
        month_old_stablehlo_version() if version is None else version,
        oldest=minimum_stablehlo_version(),
        newest=current_stablehlo_version(),
    )
