"""Factorizations: those of StableHLO, and those of libraries, which the exporter calls `jaxtf.<primitive>`.

Vectors of eigenvalue problems and singular values are determined up to factors, of which TensorFlow takes its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import as_shape, refuse, sizes, widening
from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._graph.ops.scales import scaled
from jaxtf.convert._graph.registry import Bound, refuses, translates
from jaxtf.convert._tf import asserted, compiled_svd, traces_compiled

IN_32_BITS = widening(float32=("bfloat16", "float16"))

_ERRORS = 64
"""Of left eigenvectors, relative to rounding and the matrix: random ones of 200 rows have less than 2."""

_ERROR = 1e-14
"""Relative, of singular values and vectors of float64 that XLA computes: it takes as long to get to 1e-16."""

# Native mode refuses these too: they are calls of LAPACK.
_REMEDY = "compute it in JAX, outside of the function that is converted"

refuses(
    "custom_call.jaxtf.schur",
    "custom_call.jaxtf.hessenberg",
    "custom_call.jaxtf.tridiagonal",
    "custom_call.jaxtf.geqp3",
    reason="TensorFlow has no such factorization",
    remedy=_REMEDY,
)


def parameters(bound: Bound) -> Mapping[str, Any]:
    """The parameters of the primitive, as the exporter wrote them down."""
    given = bound.get("backend_config")
    return given if isinstance(given, Mapping) else bound.operation.attributes


def _refuse_subset(bound: Bound, shape: list[int | None], what: str) -> None:
    """Refuses some of the values that there are for matrices of a shape; a subset may be all of them."""
    subset = parameters(bound).get("subset_by_index")
    if subset is None or str(subset).lower() == "none":
        return
    # The exporter writes a pair as an array.
    given = np.asarray(subset).tolist()
    known = [n for n in shape if n is not None]
    if given and (len(known) < len(shape) or given != [0, min(known)]):
        refuse(bound, f"a subset of {what}")


def _of_real_diagonal(operand: tf.Tensor) -> tf.Tensor:
    """A Hermitian matrix without the imaginary parts of its diagonal, which are not read."""
    if not operand.dtype.is_complex:
        return operand
    return tf.linalg.set_diag(operand, tf.cast(tf.math.real(tf.linalg.diag_part(operand)), operand.dtype))


@translates("stablehlo.cholesky", computed_in=IN_32_BITS)
def cholesky(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The triangular factor of a positive definite matrix, of which one triangle is read, and the real diagonal.

    Differs: compiled, XLA gives NaN for the whole triangle of a matrix with NaN, and for infinity; LAPACK in parts.
    Source: StableHLO specification, `cholesky`.
    """
    operand = _of_real_diagonal(operand)
    if bound.get("lower", False):
        return tf.linalg.cholesky(operand)
    return tf.linalg.adjoint(tf.linalg.cholesky(tf.linalg.adjoint(operand)))


@translates("stablehlo.triangular_solve", computed_in=IN_32_BITS)
def triangular_solve(bound: Bound, matrix: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """X where op(matrix) X = right, or X op(matrix) = right; op transposes, conjugates, or does nothing.

    Differs: compiled, XLA gives NaN for a matrix with 0 or infinity on its diagonal, where LAPACK has infinity and 0.
    Source: StableHLO specification, `triangular_solve`.
    """
    operation, lower = bound.get("transpose_a", "NO_TRANSPOSE"), bound["lower"]
    if bound["unit_diagonal"]:
        matrix = tf.linalg.set_diag(matrix, tf.ones(as_shape(sizes(matrix)[:-1]), matrix.dtype))
    if operation == "TRANSPOSE" and matrix.dtype.is_complex:
        matrix = tf.math.conj(matrix)
    adjoint = operation in ("TRANSPOSE", "ADJOINT")
    if bound["left_side"]:
        return tf.linalg.triangular_solve(matrix, right, lower=lower, adjoint=adjoint)
    # X op(A) = B is op(A)^H X^H = B^H, and the adjoint of an adjoint is the matrix itself.
    solved = tf.linalg.triangular_solve(matrix, tf.linalg.adjoint(right), lower=lower, adjoint=not adjoint)
    return tf.linalg.adjoint(solved)


@translates("custom_call.jaxtf.eigh", computed_in=IN_32_BITS)
def eigh(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix, of which one triangle is read.

    Differs: the phase of each vector, and the basis of repeated eigenvalues; compiled, float64 has 32-bit accuracy.
    Source: `jax.lax.linalg.eigh`.
    """
    given = parameters(bound)
    _refuse_subset(bound, operand.shape.as_list()[-1:], "the eigenvalues")
    triangle = tf.linalg.band_part(_of_real_diagonal(operand), *((-1, 0) if given.get("lower", True) else (0, -1)))
    matrices = scaled(triangle)  # what is not read has no say in the scale
    finite = matrices.finite
    values, vectors = tf.linalg.eigh(finite if given.get("lower", True) else tf.linalg.adjoint(finite))
    values, vectors = matrices.or_nan(matrices.restored(tf.math.real(values))), matrices.or_nan(vectors)
    return (vectors, values) if bound.result_types[0].rank == operand.shape.rank else (values, vectors)


@translates("custom_call.jaxtf.svd", computed_in=IN_32_BITS)
def svd(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Descending singular values and, if requested, left vectors and the adjoint of the right ones.

    Differs: the phase of each pair of vectors, and the basis of repeated values; compiled, with `enable_xla=False` and
    by `convert_stablehlo`, float64 has 32-bit accuracy.
    Source: `jax.lax.linalg.svd`.
    """
    given = parameters(bound)
    _refuse_subset(bound, operand.shape.as_list()[-2:], "the singular values")
    matrices = scaled(operand)
    has_vectors, is_full = bool(given.get("compute_uv", True)), bool(given.get("full_matrices", False))
    values, *vectors = _singular(bound, matrices.finite, has_vectors=has_vectors, is_full=is_full)
    values = matrices.or_nan(matrices.restored(values))
    if not has_vectors:
        return (values,)
    left, right = vectors
    return values, matrices.or_nan(left), matrices.or_nan(tf.linalg.adjoint(right))


def _singular(bound: Bound, operand: tf.Tensor, *, has_vectors: bool, is_full: bool) -> Sequence[tf.Tensor]:
    """Singular values, and the vectors in columns if they are asked for.

    Compiled, TensorFlow's own of float64 have an error of 1e-6; XLA's operation has the error that it is given.
    """
    if bound.allows_xla and traces_compiled() and operand.dtype == tf.float64 and not bound.is_differentiated:
        values, left, right = compiled_svd(operand, _ERROR)
        count = sizes(values)[-1]
        return (values, left, right) if is_full else (values, left[..., :count], right[..., :count])
    if not has_vectors:
        return (tf.linalg.svd(operand, compute_uv=False),)
    found: Sequence[tf.Tensor] = tf.linalg.svd(operand, full_matrices=is_full)
    return found


@translates("custom_call.jaxtf.qr", computed_in=IN_32_BITS)
def qr(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The unitary and the upper triangular factor.

    Differs: the phase of each column.
    Source: `jax.lax.linalg.qr`.
    """
    given = parameters(bound)
    if given.get("pivoting", False):
        raise unsupported(bound.operation, "TensorFlow has no factorization with pivoting", _REMEDY)
    matrices = scaled(operand, by_column=True)
    unitary, upper = tf.linalg.qr(matrices.matrices, full_matrices=bool(given.get("full_matrices", True)))
    return unitary, matrices.restored(upper)


def _left_vectors(matrices: tf.Tensor, values: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Left eigenvectors of norm 1, by the inverse of the right ones, if they are such."""
    inverse = tf.linalg.adjoint(tf.linalg.inv(vectors))
    found = inverse / tf.cast(tf.linalg.norm(inverse, axis=-2, keepdims=True), inverse.dtype)
    across = tf.linalg.adjoint(found)
    errors = tf.abs(across @ tf.cast(matrices, found.dtype) - values[..., None] * across)
    epsilon = float(np.finfo(errors.dtype.as_numpy_dtype).eps)
    allowed = _ERRORS * epsilon * tf.linalg.norm(tf.abs(matrices), axis=[-2, -1], keepdims=True)
    message = "the left eigenvectors of a matrix whose right ones are nearly dependent: TensorFlow has none; "
    message += f"remedy: {_REMEDY}"
    are_such = tf.logical_and(errors <= allowed, tf.linalg.norm(across, axis=-1, keepdims=True) != 0)
    with tf.control_dependencies(filter(None, [asserted(tf.reduce_all(are_such), [message])])):
        return tf.identity(found)


@translates("custom_call.jaxtf.eig")
def eig(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Eigenvalues of any square matrix and, if requested, its left and right eigenvectors of norm 1.

    Differs: the order of eigenvalues and the phase of each vector; left eigenvectors, which are computed from the right
    ones, are an error where these are nearly dependent.
    Source: `jax.lax.linalg.eig`.
    """
    given = parameters(bound)
    left, right = (bool(given.get(f"compute_{side}_eigenvectors", True)) for side in ("left", "right"))
    matrices = scaled(operand)
    if not (left or right):
        return (matrices.or_nan(matrices.restored(tf.linalg.eigvals(matrices.finite))),)
    values, vectors = tf.linalg.eig(matrices.finite)
    results = [matrices.restored(values)]
    if left:
        results.append(_left_vectors(matrices.finite, values, vectors))
    return tuple(map(matrices.or_nan, (*results, vectors) if right else results))
