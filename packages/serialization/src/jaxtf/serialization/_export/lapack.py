"""Calls of LAPACK: which functions they are, and their refusal where there is no LAPACK. Needs no JAX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jaxtf.serialization._errors import LapackNeeded
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.locations import source_line

__all__ = ["check_lapack", "lapack_function"]

# What users call, by LAPACK's name of the routine without its dtype.
_FUNCTIONS = {
    "potrf": "cholesky",
    "trsm": "triangular_solve",
    "getrf": "lu",
    "geqrf": "qr",
    "orgqr": "householder_product",
    "ungqr": "householder_product",
    "ormqr": "ormqr",
    "unmqr": "ormqr",
    "syevd": "eigh",
    "heevd": "eigh",
    "gesdd": "svd",
    "gesvd": "svd",
    "gtsv": "tridiagonal_solve",
    "geev": "eig",
    "gees": "schur",
    "gehrd": "hessenberg",
    "sytrd": "tridiagonal",
    "hetrd": "tridiagonal",
    "geqp3": "qr with pivoting=True",
}
_TARGET = re.compile(r"(?:lapack|blas)_[sdcz](\w+?)(?:_ffi)?")


def lapack_function(target: str) -> str | None:
    """The function of `jax.lax.linalg` behind a custom-call target of LAPACK; None if it is not one.

    >>> lapack_function("lapack_zgeev_ffi")
    'eig'
    """
    if target == "tridiagonal_solve_perturbed_ffi":
        return "tridiagonal_solve with perturb_singular=True"
    found = _TARGET.fullmatch(target)
    return found and _FUNCTIONS.get(found[1], found[1])


def check_lapack(targets: Iterable[tuple[str, Any]], disabled_checks: Iterable[DisabledSafetyCheck]) -> None:
    """Refuses calls of LAPACK in a module that is to need none, unless the caller allows them.

    Args:
      targets: (target, source location) of each custom call of a module.
      disabled_checks: What the caller allows; `custom_call("ALL")` allows every target.

    Raises:
      LapackNeeded: Names each function, its target and its location.
    """
    allowed = {target for check in disabled_checks if (target := check.is_custom_call())}
    if "ALL" in allowed:
        return
    refused: dict[str, tuple[str, Any]] = {}
    for target, location in targets:
        function = lapack_function(target)
        if function is not None and target not in allowed:
            refused.setdefault(target, (function, location))
    if not refused:
        return
    found = ", ".join(f"{function} ({target})" for target, (function, _) in refused.items())
    places = (", ".join(filter(None, (function, source_line(location)))) for function, location in refused.values())
    checks = ", ".join(f"DisabledSafetyCheck.custom_call({target!r})" for target in refused)
    lines = [
        f"linear algebra that calls jaxlib's LAPACK and cannot be written out in StableHLO: {found}",
        *(f"  asked at: {place}" for place in places),
        "  remedy:   compute it in JAX, outside the function that is exported or converted; where the process that "
        f"runs it registers the target, disable the check: {checks}",
    ]
    raise LapackNeeded("\n".join(lines))
