"""Linear algebra of StableHLO, and Householder reflections with derivatives."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax

from jaxtf.serialization import _jax
from jaxtf.serialization._export import linear_algebra as written_out
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Bound, lifts

__all__ = ["adjoint", "factored_by_reflections", "product_of_reflections"]


@lifts("stablehlo.cholesky")
def cholesky(bound: Bound, operand: Any) -> Any:
    """The triangular factor of a positive definite matrix, of which one triangle is read; zeros in the other.

    Differs: NaN in the whole factor of a matrix that is not positive definite.
    Source: StableHLO specification, `cholesky`.
    """
    if bound.get("lower", False):
        return lax.linalg.cholesky(operand, symmetrize_input=False)
    return adjoint(lax.linalg.cholesky(adjoint(operand), symmetrize_input=False))


def adjoint(matrix: Any) -> Any:
    """The conjugate transpose of matrices."""
    order = (*range(matrix.ndim - 2), matrix.ndim - 1, matrix.ndim - 2)
    turned = lax.transpose(matrix, order)
    return lax.conj(turned) if np.issubdtype(matrix.dtype, np.complexfloating) else turned


@lifts("stablehlo.triangular_solve")
def triangular_solve(bound: Bound, matrix: Any, right: Any) -> Any:
    """X where op(matrix) X = right, or X op(matrix) = right; op transposes, conjugates, or does nothing.

    Source: StableHLO specification, `triangular_solve`.
    """
    operation = bound.get("transpose_a", "NO_TRANSPOSE")
    if operation not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise unsupported(bound.operation, f"transpose_a = {operation}")
    return lax.linalg.triangular_solve(
        matrix,
        right,
        left_side=bool(bound["left_side"]),
        lower=bool(bound["lower"]),
        transpose_a=operation != "NO_TRANSPOSE",
        conjugate_a=operation == "ADJOINT",
        unit_diagonal=bool(bound["unit_diagonal"]),
    )


@jax.custom_jvp
def factored_by_reflections(matrix: Any) -> tuple[Any, Any]:
    """The packed reflections and R of a matrix, and the factors tau: what `geqrf` of LAPACK gives.

    JAX has the operation and no derivative of it; that is the one of the algorithm, written out.
    """
    packed, taus = _jax.geqrf_p.bind(matrix)
    return packed, taus


@factored_by_reflections.defjvp
def _factored_jvp(primals: Any, tangents: Any) -> Any:
    _, pushed = jax.jvp(written_out.geqrf, primals, tangents)
    return factored_by_reflections(*primals), tuple(pushed)


@jax.custom_jvp
def product_of_reflections(packed: Any, taus: Any) -> Any:
    """The first columns of the product of packed reflections: `orgqr` of LAPACK."""
    return lax.linalg.householder_product(packed, taus)


@product_of_reflections.defjvp
def _product_jvp(primals: Any, tangents: Any) -> Any:
    _, pushed = jax.jvp(written_out.householder_product, primals, tangents)
    return product_of_reflections(*primals), pushed


@lifts("custom_call.Qr")
def factorize(bound: Bound, operand: Any) -> list[Any]:
    """The packed reflections and R of a matrix, and the factors tau.

    Source: XLA, `QrExpander`; LAPACK, `xGEQRF`.
    """
    return list(factored_by_reflections(operand))


@lifts("custom_call.ProductOfElementaryHouseholderReflectors")
def product(bound: Bound, packed: Any, taus: Any) -> Any:
    """The first columns of the product of the packed reflections.

    Source: LAPACK, `xORGQR`.
    """
    return product_of_reflections(packed, taus)


@lifts("custom_call.LuDecomposition")
def lu_decomposition(bound: Bound, operand: Any) -> list[Any]:
    """The factors in one matrix, the row swaps and the permutation that they make.

    Source: `jax.lax.linalg.lu`.
    """
    return list(lax.linalg.lu(operand))


@lifts("custom_call.Eigh")
def eigh(bound: Bound, operand: Any) -> list[Any]:
    """Eigenvectors and eigenvalues of a Hermitian matrix, of which one triangle is read.

    Differs: the phase of each vector, and the basis of repeated eigenvalues.
    Source: `jax.lax.linalg.eigh`.
    """
    lower, sorts, *_ = str(bound["backend_config"]).split(",")
    return list(lax.linalg.eigh(operand, lower=lower == "1", symmetrize_input=False, sort_eigenvalues=sorts == "1"))
