"""Calls of LAPACK, cuSOLVER and rocSOLVER as functions of `jax.lax.linalg`, which run on every platform.

A call of LAPACK gives more than JAX uses: copies of its operands, workspaces, and a success code (`info`), 0 where it
succeeded. The functions of JAX give NaN where LAPACK fails, and the code is 1 there. What has no meaning outside of
LAPACK is NaN.

Source: the descriptions of the routines at netlib.org/lapack; `jax.lax.linalg`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.linear_algebra import adjoint, factored_by_reflections, product_of_reflections
from jaxtf.serialization._lift.registry import Bound, lifts, refuses
from jaxtf.serialization._program.program import TensorType

_OF_DTYPES = "sdcz"
_INFO = np.dtype(np.int32)


def _targets(*routines: str) -> Iterator[str]:
    """The typed custom calls of routines, for each of LAPACK's dtypes."""
    for routine in routines:
        complex_only = routine in ("ungqr", "heevd", "hetrd")
        real_only = routine in ("orgqr", "syevd", "sytrd")
        letters = "cz" if complex_only else "sd" if real_only else _OF_DTYPES
        yield from (f"custom_call.lapack_{letter}{routine}_ffi" for letter in letters)


def _flags(bound: Bound) -> Mapping[str, Any]:
    """The attributes of a typed call."""
    given = bound.get("backend_config")
    return given if isinstance(given, Mapping) else {}


def _letter(bound: Bound, name: str, default: str = "") -> str:
    """A flag that is given as the code of a letter."""
    given = _flags(bound).get(name)
    if given is None and not default:
        raise unsupported(bound.operation, f"it has no attribute {name}")
    return default if given is None else chr(int(given))


def _failed(result: Any) -> Any:
    """1 for each matrix of nothing but NaN, which JAX's functions give where LAPACK reports an error, else 0.

    Some NaN are results: of a matrix with NaN, or of one right side among several.
    """
    is_nan, axes = _is_nan(result), (result.ndim - 2, result.ndim - 1)
    wrong = lax.bitwise_and(lax.reduce_and(is_nan, axes), lax.reduce_or(is_nan, axes))  # an empty matrix has no NaN
    return lax.convert_element_type(wrong, _INFO)


def _no_error(result: Any) -> Any:
    """0 for each matrix: LAPACK reports no error but that of a wrong argument."""
    return lax.full(result.shape[:-2], 0, _INFO)


def _is_nan(result: Any) -> Any:
    values = lax.real(result) if np.issubdtype(result.dtype, np.complexfloating) else result
    return lax.ne(values, values)


def _nothing(bound: Bound, position: int, like: Any) -> Any:
    """The value used for a result that has no meaning outside of LAPACK."""
    type_ = bound.operation.results[position].type
    assert isinstance(type_, TensorType), "a call of LAPACK gives arrays"
    rank = type_.rank
    batch = like.shape[: like.ndim - 2]
    tail = type_.shape[len(batch) :]
    if None in tail:
        tail = like.shape[like.ndim - (rank - len(batch)) :]
    value = np.nan if np.issubdtype(type_.dtype, np.inexact) else 0
    return lax.full((*batch, *tail), value, type_.dtype)


def _triangle(shape: Any, lower: bool) -> Any:
    rows = lax.broadcasted_iota(_INFO, shape, len(shape) - 2)
    columns = lax.broadcasted_iota(_INFO, shape, len(shape) - 1)
    return lax.ge(rows, columns) if lower else lax.le(rows, columns)


def _factor(operand: Any, lower: bool) -> list[Any]:
    """The factor in its triangle, the operand in the other, and the code."""
    factor = lax.linalg.cholesky(operand if lower else adjoint(operand), symmetrize_input=False)
    factor = factor if lower else adjoint(factor)
    triangle = _triangle(operand.shape, lower)
    info = _failed(lax.select(triangle, factor, lax.full_like(factor, np.nan)))
    return [lax.select(triangle, factor, operand), info]


def _is_complex(operand: Any) -> bool:
    return bool(np.issubdtype(operand.dtype, np.complexfloating))


@lifts(*_targets("potrf"))
def potrf(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The triangular factor of a positive definite matrix; the other triangle is the operand's.

    Source: LAPACK, `xPOTRF`.
    """
    return _factor(operand, _letter(bound, "uplo") == "L")


@lifts("custom_call.cusolver_potrf_ffi", "custom_call.hipsolver_potrf_ffi")
def potrf_on_gpus(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """As `potrf`.

    Source: cuSOLVER, `potrf`.
    """
    return _factor(operand, bool(_flags(bound).get("lower", True)))


@lifts(*_targets("getrf"), "custom_call.cusolver_getrf_ffi", "custom_call.hipsolver_getrf_ffi")
def getrf(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The factors in one matrix, the row swaps, counted from 1, and the position of the first zero pivot, or 0.

    Source: LAPACK, `xGETRF`.
    """
    factors, pivots = lax.linalg.lu(operand)[:2]
    diagonal: Any = jnp.diagonal(factors, axis1=-2, axis2=-1)
    is_zero = lax.eq(diagonal, lax.full_like(diagonal, 0))
    places = lax.broadcasted_iota(_INFO, diagonal.shape, diagonal.ndim - 1)
    beyond = lax.full_like(places, np.iinfo(np.int32).max)
    first = lax.reduce_min(lax.select(is_zero, places, beyond), (diagonal.ndim - 1,))
    none = lax.eq(first, lax.full_like(first, np.iinfo(np.int32).max))
    info = lax.select(none, lax.full_like(first, 0), lax.add(first, lax.full_like(first, 1)))
    return [factors, lax.add(pivots, lax.full_like(pivots, 1)), info]


@lifts("custom_call.cu_lu_pivots_to_permutation", "custom_call.hip_lu_pivots_to_permutation")
def lu_pivots_to_permutation(bound: Bound, pivots: Any, *_: Any) -> Any:
    """The permutation that row swaps make.

    Source: `jax.lax.linalg.lu_pivots_to_permutation`.
    """
    size = bound.result_type.shape[-1]
    if size is None:
        raise unsupported(bound.operation, "the type of its result leaves a size open")
    return lax.linalg.lu_pivots_to_permutation(pivots, size)


@lifts(*_targets("geqrf"), "custom_call.cusolver_geqrf_ffi", "custom_call.hipsolver_geqrf_ffi")
def geqrf(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The packed reflections and R of a matrix, and the factors tau.

    Source: LAPACK, `xGEQRF`.
    """
    return list(factored_by_reflections(operand))


@lifts(*_targets("orgqr", "ungqr"), "custom_call.cusolver_orgqr_ffi", "custom_call.hipsolver_orgqr_ffi")
def orgqr(bound: Bound, packed: Any, taus: Any, *_: Any) -> Any:
    """The first columns of the product of the packed reflections.

    Source: LAPACK, `xORGQR`.
    """
    return product_of_reflections(packed, taus)


@lifts(*_targets("syevd", "heevd"))
def syevd(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix, of which one triangle is read.

    Source: LAPACK, `xSYEVD`.
    """
    if _letter(bound, "mode", "V") != "V":
        raise unsupported(bound.operation, "eigenvalues without vectors, which JAX does not write")
    return _eigenvectors(operand, _letter(bound, "uplo") == "L")


@lifts("custom_call.cusolver_syevd_ffi", "custom_call.hipsolver_syevd_ffi")
def syevd_on_gpus(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """As `syevd`.

    Source: cuSOLVER, `syevd`.
    """
    return _eigenvectors(operand, bool(_flags(bound).get("lower", True)))


def _eigenvectors(operand: Any, lower: bool) -> list[Any]:
    vectors, values = lax.linalg.eigh(operand, lower=lower, symmetrize_input=False)
    return [vectors, values, _failed(vectors)]


@lifts(*_targets("gesdd"))
def gesdd(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """Descending singular values and, if requested, left vectors and the adjoint of the right ones.

    Source: LAPACK, `xGESDD`.
    """
    mode = _letter(bound, "mode")
    if mode == "N":
        values = lax.linalg.svd(operand, compute_uv=False)
        info = _failed(lax.expand_dims(values, (values.ndim - 1,)))
        return [_nothing(bound, 0, operand), values, *(_nothing(bound, i, operand) for i in (2, 3)), info]
    if mode not in ("A", "S"):
        raise unsupported(bound.operation, f"mode {mode}, which JAX does not write")
    left, values, right = lax.linalg.svd(operand, full_matrices=mode == "A")
    return [_nothing(bound, 0, operand), values, left, right, _failed(left)]


@lifts(*_targets("geev"))
def geev(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """Eigenvalues of any square matrix and, if requested, its left and right eigenvectors of norm 1.

    Source: LAPACK, `xGEEV`.
    """
    left, right = (_letter(bound, f"compute_{side}") == "V" for side in ("left", "right"))
    values, *vectors = lax.linalg.eig(operand, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    parts = [values] if _is_complex(operand) else [lax.real(values), lax.imag(values)]
    first = len(parts)
    found = [
        vectors.pop(0) if wanted else _nothing(bound, first + i, operand) for i, wanted in enumerate((left, right))
    ]
    return [*parts, *found, _failed(lax.expand_dims(values, (values.ndim - 1,)))]


@lifts(*_targets("gees"))
def gees(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The Schur form and, if requested, its vectors.

    Source: LAPACK, `xGEES`.
    """
    if _letter(bound, "sort", "N") != "N":
        raise unsupported(bound.operation, "sorted eigenvalues, which JAX does not write")
    wanted = _letter(bound, "mode") == "V"
    form, *vectors = lax.linalg.schur(operand, compute_schur_vectors=wanted)
    middle = range(2, len(bound.operation.results) - 1)
    nothing = [_nothing(bound, i, operand) for i in middle]
    return [form, vectors[0] if vectors else _nothing(bound, 1, operand), *nothing, _failed(form)]


@lifts(*_targets("gehrd"))
def gehrd(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The packed Hessenberg form and its reflections.

    Source: LAPACK, `xGEHRD`.
    """
    given = _flags(bound)
    if (int(given.get("low", 1)), int(given.get("high", operand.shape[-1]))) != (1, operand.shape[-1]):
        raise unsupported(bound.operation, "a part of the rows, which JAX does not write")
    packed, taus = lax.linalg.hessenberg(operand)
    return [packed, taus, _no_error(packed)]


@lifts(*_targets("sytrd", "hetrd"))
def sytrd(bound: Bound, operand: Any, *_: Any) -> list[Any]:
    """The packed tridiagonal form, its diagonals and its reflections.

    Source: LAPACK, `xSYTRD`.
    """
    packed, diagonal, beside, taus = lax.linalg.tridiagonal(operand, lower=_letter(bound, "uplo") == "L")
    return [packed, diagonal, beside, taus, _no_error(packed)]


@lifts(*_targets("trsm"))
def trsm(bound: Bound, matrix: Any, right: Any, *_: Any) -> Any:
    """X where op(matrix) X = right, or X op(matrix) = right.

    Source: BLAS, `xTRSM`.
    """
    transposition = _letter(bound, "trans_x")
    return lax.linalg.triangular_solve(
        matrix,
        right,
        left_side=_letter(bound, "side") == "L",
        lower=_letter(bound, "uplo") == "L",
        transpose_a=transposition != "N",
        conjugate_a=transposition == "C",
        unit_diagonal=_letter(bound, "diag") == "U",
    )


@lifts(*_targets("gtsv"))
def gtsv(bound: Bound, *operands: Any) -> list[Any]:
    """The solution of a tridiagonal system.

    Source: LAPACK, `xGTSV`.
    """
    solution = lax.linalg.tridiagonal_solve(*operands[:4])
    nothing = [lax.full_like(x, np.nan) for x in operands[:3]]
    return [*nothing, solution, _failed(solution)]


_OTHER_RESULTS = "its results are laid out differently from those of JAX's function; export the function for CPU"

refuses(
    *(
        f"custom_call.{vendor}solver_{routine}_ffi"
        for vendor in ("cu", "hip")
        for routine in ("gesvd", "gesvdj", "sytrd")
    ),
    "custom_call.hipsolver_gesdd_ffi",
    "custom_call.cusparse_gtsv2_ffi",
    reason=_OTHER_RESULTS,
)
