"""The release of this package, and the calling convention versions: their range, and what each changed and when.

The calling convention is the order and meaning of the exported main function's arguments. It
is one of three numbers that must not be mixed up; the other two are the StableHLO version of
the module (`stablehlo.py`) and the format of the artifact bytes.

| calling convention | since | what it changed |
| --- | --- | --- |
| 9 | JAX 0.4.20, the default from 0.4.24 | effects: one token argument and result for each ordered effect |
| 10 | JAX 0.4.36, the default from 0.7 | the consumer learns whether the module uses the Shardy partitioner |

Source: reference "Serialization version numbers" of the jax2tf guide.
"""

from __future__ import annotations

from jaxtf.serialization._errors import CallingConventionError

__all__ = [
    "RELEASE",
    "check_calling_convention_version",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]

# What `pip show jaxtf-serialization` prints, and what artifacts record.
RELEASE = "0.1.0"

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


def check_calling_convention_version(version: int) -> int:
    """Returns `version` if it can be written and read.

    Raises:
      CallingConventionError: It is outside the range; the message gives the range.
    """
    low, high = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    if isinstance(version, bool) or not isinstance(version, int) or not low <= version <= high:
        raise CallingConventionError(
            f"The requested export calling convention version {version} is outside the "
            f"range of supported versions [{low}..{high}]\n"
            f"  remedy: leave calling_convention_version out, or give one from {low} to {high}; it can also come "
            "from --jax_export_calling_convention_version or JAX_EXPORT_CALLING_CONVENTION_VERSION"
        )
    return version
