"""Custom calls that TensorFlow has no code for: refused when a module is converted, not when it runs.

A custom call runs code that its process has registered under a name. TensorFlow registers none of
jaxlib's LAPACK. Knows the module's bytes and names, nothing of JAX.
"""

from __future__ import annotations

from jaxtf.convert._errors import UnknownCustomCall
from jaxtf.serialization import Exported, custom_call_targets, lapack_function

__all__ = ["check_custom_calls"]

_IN_EVERY_TARGET = (b"lapack_", b"blas_", b"tridiagonal_solve_perturbed_ffi")


def check_custom_calls(exported: Exported) -> None:
    """Refuses a module that calls LAPACK, unless its export disabled the check of that target.

    Raises:
      UnknownCustomCall: Names each function with its target.
    """
    module = exported.mlir_module_serialized
    if not any(text in module for text in _IN_EVERY_TARGET):
        return
    allowed = {check.is_custom_call() for check in exported.disabled_safety_checks}
    found = {target: lapack_function(target) for target in custom_call_targets(module)}
    refused = {target: function for target, function in found.items() if function and target not in allowed}
    if not refused or "ALL" in allowed:
        return
    names = ", ".join(f"{function} ({target})" for target, function in refused.items())
    raise UnknownCustomCall(
        f"'{exported.fun_name}' calls LAPACK of jaxlib, which TensorFlow does not have: {names}\n"
        "  remedy: export it with expand_linear_algebra=True, which writes linear algebra out in StableHLO "
        "(all but eig, schur, hessenberg, tridiagonal and qr with pivoting), or run it in JAX"
    )
