"""StableHLO versions: which one a module is written for.

A module is serialized through VHLO for a target version; every consumer of that version or a
later one (within the compatibility window of five years) reads it. JAX's newest is newer than
what most consumers read, so the target is the consumer's, never the producer's own.
Source: StableHLO, "Compatibility"; `stablehlo.get_current_version`.
"""

from __future__ import annotations

from jaxtf.serialization._errors import StablehloVersionError

__all__ = ["check_stablehlo_version", "parse_stablehlo_version", "refines_composites"]

# The oldest version seen to refine them (jaxlib 0.10.2); 1.13.7 (TensorFlow 2.21) does not.
_COMPOSITES_REFINED_SINCE = (1, 17, 0)


def refines_composites(consumer: str) -> bool:
    """Whether a consumer of this StableHLO version refines composites of dynamic shape."""
    return parse_stablehlo_version(consumer) >= _COMPOSITES_REFINED_SINCE


def parse_stablehlo_version(text: str) -> tuple[int, int, int]:
    """The three numbers of a StableHLO version such as `1.13.7`.

    Raises:
      StablehloVersionError: `text` is not three numbers joined by dots.
    """
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise StablehloVersionError(f"not a StableHLO version: {text!r}; write three numbers such as '1.13.7'")
    major, minor, patch = map(int, parts)
    return major, minor, patch


def check_stablehlo_version(target: str, *, oldest: str, newest: str) -> str:
    """Returns `target` if the installed jaxlib writes it.

    Args:
      target: The requested StableHLO version.
      oldest: The oldest that can be written.
      newest: The newest that can be written.

    Raises:
      StablehloVersionError: Malformed, or outside the range.
    """
    asked = parse_stablehlo_version(target)
    if not parse_stablehlo_version(oldest) <= asked <= parse_stablehlo_version(newest):
        raise StablehloVersionError(
            f"cannot write StableHLO version {target}\n"
            f"  the installed jaxlib writes versions {oldest} to {newest}\n"
            "  remedy: give a version in that range that your consumer reads, or install another jaxlib"
        )
    return target
