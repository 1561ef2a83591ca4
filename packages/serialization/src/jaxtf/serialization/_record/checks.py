"""Safety checks: refusals at export or call time that a caller may disable by name.

A `DisabledSafetyCheck` names one check. The names travel with the exported function, as
strings, into artifacts and into TensorFlow's XlaCallModule op, which reads the same words.

The list of stable custom-call targets is data: names whose meaning the projects behind them
keep over releases. A call to any other target runs today and may mean nothing tomorrow.
Source: the targets that JAX declares stable, read with JAX 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._errors import DisabledCheckError, UnstableCustomCall, UnstableDialect
from jaxtf.serialization._record.locations import user_line

__all__ = [
    "STABLE_CUSTOM_CALLS",
    "STABLE_DIALECTS",
    "DisabledSafetyCheck",
    "check_custom_calls",
    "check_dialects",
    "checks_of",
    "is_callback",
]


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """One safety check that is to be skipped; made by the class methods, not directly.

    >>> DisabledSafetyCheck.custom_call("my_target")
    DisabledSafetyCheck('custom_call:my_target')
    """

    _name: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Lets a module run on a platform that it was not lowered for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Lets an export contain calls of `target_name`, a target not known to be stable."""
        return cls(f"custom_call:{target_name}")

    @classmethod
    def shape_assertions(cls) -> DisabledSafetyCheck:
        """Lets a module run on argument shapes that its symbolic shapes do not allow."""
        return cls("shape_assertions")

    @classmethod
    def of(cls, check: Any) -> DisabledSafetyCheck:
        """The same check, given as one of this class or of `jax.export.DisabledSafetyCheck`, known by its text.

        Raises:
          DisabledCheckError: It is another thing, or a check of `jax.export` that there is none of here.
        """
        if isinstance(check, cls):
            return check
        kind = type(check)
        if kind.__name__ == "DisabledSafetyCheck" and kind.__module__.partition(".")[0] == "jax":
            own = cls(str(check))
            if own in (cls.platform(), cls.shape_assertions()) or own.is_custom_call() is not None:
                return own
        raise DisabledCheckError(
            f"a disabled check must be a DisabledSafetyCheck. Got: {check!r:.60}, of type {kind.__name__}\n"
            "  remedy: DisabledSafetyCheck.platform(), DisabledSafetyCheck.shape_assertions(), or "
            "DisabledSafetyCheck.custom_call(target)"
        )

    def is_custom_call(self) -> str | None:
        """The custom-call target that this allows, if it is about one."""
        kind, _, target = self._name.partition(":")
        return target if kind == "custom_call" and target else None

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"DisabledSafetyCheck({self._name!r})"


def _lapack() -> Iterator[str]:
    """LAPACK's routines behind jax.numpy.linalg on CPU, for each of the four dtypes."""
    routines = ("potrf", "geqrf", "geev", "gesdd", "getrf", "gehrd", "gees", "trsm", "gtsv")
    yield from (f"lapack_{element}{routine}_ffi" for routine in routines for element in "sdcz")
    for real, complex_ in (("orgqr", "ungqr"), ("syevd", "heevd"), ("sytrd", "hetrd")):
        yield from (f"lapack_{element}{real}_ffi" for element in "sd")
        yield from (f"lapack_{element}{complex_}_ffi" for element in "cz")


def _gpu() -> Iterator[str]:
    """The same on GPUs, for CUDA and ROCm, and their random bits."""
    solver = ("getrf", "geqrf", "orgqr", "potrf", "syevd", "gesvd", "gesvdj", "sytrd")
    yield from (f"{vendor}solver_{routine}_ffi" for vendor in ("cu", "hip") for routine in solver)
    yield from (f"{vendor}_lu_pivots_to_permutation" for vendor in ("cu", "hip"))
    yield from (f"{vendor}_threefry2x32_ffi" for vendor in ("cu", "hip"))
    yield from ("hipsolver_gesdd_ffi", "cusparse_gtsv2_ffi", "mosaic_gpu_v2")


STABLE_CUSTOM_CALLS = frozenset(
    (
        *_lapack(),
        *_gpu(),
        # Sharding and memory placement, read by XLA's partitioners.
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        # Linear algebra, approximate top-k and kernels on TPU.
        "Eigh",
        "Qr",
        "ProductOfElementaryHouseholderReflectors",
        "LuDecomposition",
        "ApproxTopK",
        "tpu_custom_call",
        # Dynamic shapes: resolved by shape refinement before compilation.
        "stablehlo.dynamic_approx_top_k",
        "stablehlo.dynamic_reduce_window",
        "stablehlo.dynamic_rng_bit_generator",
        "stablehlo.dynamic_top_k",
        "shape_assertion",
        # jax.lax.empty, and TensorFlow functions called by name.
        "AllocateBuffer",
        "tf.call_tf_function",
    )
)


_CALLBACK = re.compile(r"python.*callback|callback.*python", re.IGNORECASE)


def is_callback(target: str) -> bool:
    """Whether a custom-call target calls a function of this Python process, by a number or an address.

    >>> is_callback("xla_ffi_python_cpu_callback"), is_callback("lapack_spotrf_ffi")
    (True, False)
    """
    return _CALLBACK.search(target) is not None


STABLE_DIALECTS = frozenset(("builtin", "func", "stablehlo", "chlo", "mhlo", "sdy"))
"""Dialects whose operations a portable artifact holds with a meaning that lasts.

MHLO's become StableHLO's when they are serialized; Shardy's are carried as they are.
"""


def checks_of(disabled_checks: Any) -> tuple[DisabledSafetyCheck, ...]:
    """The checks that a caller lists.

    Raises:
      DisabledCheckError: One is not a check, or there is no list.
    """
    if not isinstance(disabled_checks, Iterable) or isinstance(disabled_checks, str):
        raise DisabledCheckError(
            "disabled_checks must be a list of DisabledSafetyCheck, such as [DisabledSafetyCheck.platform()]. "
            f"Got: {disabled_checks!r:.60}"
        )
    return tuple(map(DisabledSafetyCheck.of, disabled_checks))


def check_dialects(foreign: Iterable[tuple[str, object]]) -> None:
    """Refuses operations of dialects without compatibility guarantees.

    Args:
      foreign: (operation, source location) of each operation of a module that is of another dialect.

    Raises:
      UnstableDialect: Names each operation and its location.
    """
    refused = dict(reversed(list(foreign)))
    if refused:
        found = "\n".join(f"  {operation!r} at {user_line(location)}" for operation, location in refused.items())
        raise UnstableDialect(
            "Cannot serialize code with operations of dialects that have no compatibility guarantees:\n"
            f"{found}\n  remedy: lower to StableHLO operations; stable are {', '.join(sorted(STABLE_DIALECTS))}"
        )


def check_custom_calls(targets: Iterable[tuple[str, object]], disabled_checks: Iterable[DisabledSafetyCheck]) -> None:
    """Refuses custom calls whose target is neither stable nor allowed by the caller.

    Args:
      targets: (target, source location) of each custom call of a module.
      disabled_checks: What the caller allows; `custom_call("ALL")` allows every target.

    Raises:
      UnstableCustomCall: Names each target refused, its location, and the check to disable.
    """
    allowed = {target for check in disabled_checks if (target := check.is_custom_call())}
    if "ALL" in allowed:
        return
    refused: dict[str, object] = {}
    for target, location in targets:
        if target not in STABLE_CUSTOM_CALLS and target not in allowed:
            refused.setdefault(target, location)
    if not refused:
        return
    found = "\n".join(f"  {target!r} at {user_line(location)}" for target, location in refused.items())
    remedy = ", ".join(f"DisabledSafetyCheck.custom_call({target!r})" for target in refused)
    written_out = "export it with expand_linear_algebra=True, which writes linear algebra out without LAPACK; or, "
    first = written_out if any(target.startswith(("lapack_", "blas_")) for target in refused) else ""
    raise UnstableCustomCall(
        f"Cannot serialize code with custom calls whose targets have no compatibility guarantees:\n{found}\n"
        f"  remedy: {first}if you vouch for them, pass disabled_checks=[{remedy}]"
    )
