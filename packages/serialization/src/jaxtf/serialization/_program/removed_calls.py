"""Custom calls that jaxlib no longer has: which they are, and how those of LAPACK are rewritten.

Each routine is one entry: its operands and results before and after, by name, and how its
flags become attributes. Results that the typed call does not give are workspaces, which nobody
reads, and success codes (`info`), which are 0 for every call with valid sizes. What is
removed and not rewritten is in `NOT_REWRITTEN`, with the reason.

Knows names only; `custom_calls` does the rewriting, and says what typed and untyped calls are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

__all__ = ["NOT_REWRITTEN", "OPERATIONS_OF_XLA", "REWRITTEN", "Routine"]

_Scalars = Callable[[str], int]
_Attributes = dict[str, int | str]


@dataclass(frozen=True)
class Routine:
    """How calls of one routine are rewritten.

    Attributes:
      target: The target of the typed call.
      operands: Names of the untyped call's operands, without those that give shapes of results.
      results: Names of its results; workspaces start with `work`.
      typed_operands: Names of the operands that the typed call takes.
      typed_results: Names of the results that it gives.
      attributes: Its attributes, from a function that reads a scalar operand by name; None if the
        call is a typed one already, which keeps its own.
    """

    target: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    typed_operands: tuple[str, ...]
    typed_results: tuple[str, ...]
    attributes: Callable[[_Scalars], _Attributes] | None


# --- flags as attributes ---


def _no_attributes(_: _Scalars) -> _Attributes:
    return {}


def _triangle(scalar: _Scalars) -> _Attributes:
    return {"uplo": "L" if scalar("lower") else "U"}


def _eigenvectors_of_triangle(scalar: _Scalars) -> _Attributes:
    return {"mode": "V", **_triangle(scalar)}


def _svd_mode(scalar: _Scalars) -> _Attributes:
    if not scalar("compute_uv"):
        return {"mode": "N"}
    return {"mode": "A" if scalar("full_matrices") else "S"}


def _eigenvector_sides(scalar: _Scalars) -> _Attributes:
    return {"compute_left": chr(scalar("jobvl")), "compute_right": chr(scalar("jobvr"))}


def _schur_mode(scalar: _Scalars) -> _Attributes:
    return {"mode": chr(scalar("jobvs")), "sort": chr(scalar("sort"))}


def _row_range(scalar: _Scalars) -> _Attributes:
    return {"low": scalar("ilo"), "high": scalar("ihi")}


def _triangular_system(scalar: _Scalars) -> _Attributes:
    return {
        "side": "L" if scalar("left") else "R",
        "uplo": "L" if scalar("lower") else "U",
        "trans_x": "NTC"[scalar("transposed")],
        "diag": "U" if scalar("unit_diagonal") else "N",
    }


# --- the table ---


def _entry(
    name: str,
    operands: str,
    results: str,
    typed: str,
    attributes: Callable[[_Scalars], _Attributes] = _no_attributes,
    *,
    element: str,
    library: str = "lapack",
) -> tuple[str, Routine]:
    typed_operands, _, typed_results = typed.partition(" -> ")
    return f"{library}_{element}{name}", Routine(
        target=f"lapack_{element}{name}_ffi",
        operands=tuple(operands.split()),
        results=tuple(results.split()),
        typed_operands=tuple(typed_operands.split()),
        typed_results=tuple(typed_results.split()),
        attributes=attributes,
    )


def _entries() -> Iterator[tuple[str, Routine]]:
    """The untyped target of each routine and how it is rewritten, for LAPACK's dtypes."""
    for e in "sdcz":
        real = e in "sd"
        entry = functools.partial(_entry, element=e)
        # Cholesky, LU and QR factors; the product of elementary reflectors.
        yield entry("potrf", "lower batch n a", "a info", "a -> a info", _triangle)
        yield entry("getrf", "batch m n a", "a pivots info", "a -> a pivots info")
        yield entry("geqrf", "batch m n lwork a", "a tau info work", "a -> a tau")
        product = "orgqr" if real else "ungqr"
        yield entry(product, "batch m n k lwork a tau", "a info work", "a tau -> a")
        # Singular values; eigenvalues of symmetric (Hermitian) and of general matrices; Schur form.
        workspaces = "work1 work2" if real else "work1 work2 work3"
        svd = "full_matrices compute_uv batch m n lwork a"
        yield entry("gesdd", svd, f"a s u vt info {workspaces}", "a -> a s u vt info", _svd_mode)
        symmetric = "syevd" if real else "heevd"
        yield entry(symmetric, "lower batch n a", f"a w info {workspaces}", "a -> a w info", _eigenvectors_of_triangle)
        values = "wr wi" if real else "w"
        workspaces = "work1 work2 work3" if real else "work1 work2"
        eig = "batch n jobvl jobvr a"
        yield entry("geev", eig, f"{workspaces} {values} vl vr info", f"a -> {values} vl vr info", _eigenvector_sides)
        schur = f"a {values} vs selected info" if real else f"a work {values} vs selected info"
        yield entry("gees", "batch n jobvs sort a", schur, f"a -> a vs {values} selected info", _schur_mode)
        # Hessenberg and tridiagonal forms.
        yield entry("gehrd", "n ilo ihi lda batch lwork a", "a tau info work", "a -> a tau info", _row_range)
        reduction = "sytrd" if real else "hetrd"
        yield entry(reduction, "n lower lda batch lwork a", "a d e tau info work", "a -> a d e tau info", _triangle)
        # Triangular systems. The typed call has no factor `alpha`; JAX only ever gave 1.
        system = "left lower transposed unit_diagonal m n batch alpha a b"
        yield entry("trsm", system, "x", "a b -> x", _triangular_system, library="blas")
        # JAX 0.5 gave the factor to the typed call too; its attributes stay.
        yield f"lapack_{e}trsm_ffi", replace(entry("trsm", "a b alpha", "x", "a b -> x")[1], attributes=None)


REWRITTEN: Mapping[str, Routine] = dict(_entries())
"""The removed targets that are rewritten, and how."""

_DESCRIPTOR = (
    "its sizes are in an opaque descriptor of the jaxlib that wrote it, and no artifact here holds one to check"
)


def _gpu_targets() -> Iterator[str]:
    """What old releases called on GPUs and declared stable, or used with it."""
    for vendor in ("cu", "hip"):
        yield f"{vendor}_threefry2x32"
        yield from (
            f"{vendor}solver_{name}" for name in ("geqrf", "orgqr", "getrf", "syevj", "syevd", "gesvd", "gesvdj")
        )
        yield from (f"{vendor}blas_{name}_batched" for name in ("geqrf", "getrf"))


NOT_REWRITTEN: Mapping[str, str] = dict.fromkeys(_gpu_targets(), _DESCRIPTOR)
"""The removed targets that are not rewritten, all of them for GPUs, and why."""

OPERATIONS_OF_XLA = frozenset(
    (
        *(f"mhlo.{name}" for name in ("acosh", "asinh", "atanh", "erf", "sinh", "tan", "topk")),
        "xla.sdy.FuncResultSharding",
    )
)
"""Targets that no exporter calls: serialization until JAX 0.9.0 wrote operations in this form, which XLA reads back."""
