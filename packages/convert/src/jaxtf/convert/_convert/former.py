"""Parameters that `convert` had in jax2tf once: what to write today."""

from __future__ import annotations

from collections.abc import Iterable

from jaxtf.convert._errors import ParameterError

__all__ = ["refuse_former"]

_CHECKS = (
    "native_serialization_disabled_checks: True is what happens without it; for False, list what to skip, such as "
    "[DisabledSafetyCheck.platform()]"
)
_TODAY = {
    "experimental_native_lowering": "native_serialization",
    "experimental_native_lowering_platforms": "native_serialization_platforms",
    "experimental_native_lowering_strict_checks": _CHECKS,
    "native_serialization_strict_checks": _CHECKS,
    "in_shapes": "polymorphic_shapes",
}


def refuse_former(names: Iterable[str]) -> None:
    """Refuses parameters that there are not.

    Raises:
      ParameterError: There is a name.
    """
    for name in names:
        today = f"\n  remedy: today it is {_TODAY[name]}" if name in _TODAY else ""
        raise ParameterError(f"convert() got an unexpected keyword argument '{name}'{today}")
