"""Linear algebra as loops and products of StableHLO, for processes that have no LAPACK. Imports JAX.

JAX lowers `jax.lax.linalg` for CPU to custom calls named `lapack_*`, which jaxlib registers and
TensorFlow does not. The functions here compute the same results in JAX itself; `_export.lowering_rules` puts them
in the place of JAX's rules for CPU. They take one matrix or a batch of any rank, real or complex; sizes
may be symbolic. A matrix with a NaN or an infinity gives NaN.

Method: `eigh` is the cyclic Jacobi method; `svd` is one-sided Jacobi on the triangular factor of a
QR decomposition. Both rotate all disjoint pairs of columns of a round at once. `lu` eliminates
column by column with partial pivoting, `geqrf` reflects column by column; neither has blocks. Residuals
and orthogonality are within a few times size times machine epsilon. Cost grows with the cube of
the size; for `eigh` and `svd`, times the sweeps.

Not here: `cholesky` and `triangular_solve`, which XLA expands itself. Two of its expansions are not
used (seen in TensorFlow 2.21): `Eigh` stops early, so that eigenvectors have 9 digits in float64,
whatever tolerance it is given; `Qr` of a complex matrix with dependent columns gives a factor that is
not unitary (seen in JAX 0.12.0.1 too).

Source: LAPACK, larfg and org2r (`geqrf`, `householder_product`); Golub, Van Loan, Matrix Computations
(2013), 3.4 (LU), 8.5 (Jacobi, pairs in parallel), 8.6.3 (one-sided Jacobi); Drmac, Veselic, New Fast
and Accurate Jacobi SVD Algorithm (2008), for the use of QR first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._errors import LapackNeeded
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["eigh", "geqrf", "householder_product", "lu", "svd", "tridiagonal_solve"]

_MOST_SWEEPS = 40


def eigh(a: Any, *, lower: bool, subset_by_index: tuple[int, int] | None = None, **options: Any) -> tuple[Any, Any]:
    """Eigenvectors and ascending eigenvalues of Hermitian matrices, of which one triangle is read."""
    n = a.shape[-1]
    _refuse_subset("eigenvalues", subset_by_index, n)
    triangle = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    diagonal = jnp.eye(n, dtype=a.dtype) * jnp.real(a).astype(a.dtype)
    scaled, scale, finite = _scaled(triangle + _adjoint(triangle) + diagonal)
    half = _half(n)
    matrix = _padded(scaled, 2 * half)
    threshold = _epsilon(a.dtype) * _norm(matrix)
    row, column = _positions(matrix)
    pivots, off_diagonal = abs(row - column) == half, row != column

    def turn(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        matrix, vectors = state
        values = _diagonal(jnp.real(matrix))
        rotation = _rotation(values[..., :half], values[..., half:], _diagonal(matrix[..., :half, half:]))
        # (A J)^H J is J^H A J. What the rotation makes zero is zero.
        turned = _rotated(_adjoint(_rotated(matrix, rotation)), rotation)
        turned = _next_pairs(jnp.where(pivots, 0, turned))
        return _adjoint(_next_pairs(_adjoint(turned))), _next_pairs(_rotated(vectors, rotation))

    def sweep(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        count, *pair = state
        return count + 1, *lax.fori_loop(0, 2 * half - 1, turn, tuple(pair))

    def unfinished(state: tuple[Any, Any, Any]) -> Any:
        count, matrix, _ = state
        return (count < _MOST_SWEEPS) & jnp.any(_norm(jnp.where(off_diagonal, matrix, 0)) > threshold)

    _, matrix, vectors = lax.while_loop(unfinished, sweep, (0, matrix, _identity_like(matrix)))
    values = _diagonal(jnp.real(matrix))[..., :n]
    order = jnp.argsort(values, axis=-1)
    values = jnp.take_along_axis(values, order, axis=-1) * scale[..., 0]
    vectors = jnp.take_along_axis(vectors[..., :n, :n], order[..., None, :], axis=-1)
    return _nan_unless(finite, vectors), _nan_unless(finite[..., 0], values)


def svd(
    a: Any,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Descending singular values; before and after them in the product, if requested: `s, u, vh`."""
    m, n = a.shape[-2:]
    _refuse_subset("singular values", subset_by_index, m if m < n else n)
    if m < n:
        results = svd(_adjoint(a), full_matrices=full_matrices, compute_uv=compute_uv)
        return (results[0], _adjoint(results[2]), _adjoint(results[1])) if compute_uv else results
    scaled, scale, finite = _scaled(a)
    q, r = lax.linalg.qr(scaled, full_matrices=full_matrices)
    half = _half(n)
    columns = _padded(_adjoint(r[..., :n, :]), 2 * half)
    if compute_uv:
        columns = jnp.concatenate([columns, _identity_like(columns)], axis=-2)
    columns = _orthogonal_columns(columns, 2 * half)
    # R^H W = X S, so that A = Q W S X^H.
    product, w = columns[..., :n, :n], columns[..., 2 * half :, :n][..., :n, :]
    s = jnp.sqrt(_squares(product))
    order = jnp.argsort(-s, axis=-1)
    s = jnp.take_along_axis(s, order, axis=-1)
    values = _nan_unless(finite[..., 0], s * scale[..., 0])
    if not compute_uv:
        return (values,)
    product = jnp.take_along_axis(product, order[..., None, :], axis=-1)
    x = _completed(product / jnp.where(s == 0, 1, s)[..., None, :].astype(a.dtype))
    w = jnp.take_along_axis(w, order[..., None, :], axis=-1)
    u = jnp.concatenate([_product(q[..., :n], w), q[..., n:]], axis=-1)
    return values, _nan_unless(finite, u), _adjoint(_nan_unless(finite, x))


def _refuse_subset(what: str, subset: tuple[int, int] | None, count: Any) -> None:
    """Refuses some of the values, as JAX does for CPU: its gradients of vectors need those that are left out.

    Raises:
      NotImplementedError: The subset is not all there are.
    """
    if subset is not None and tuple(subset) != (0, count):
        low, high = map(int, subset)
        raise NotImplementedError(
            f"subset_by_index=({low}, {high}) of {count} {what}: JAX does not support a subset on CPU\n"
            f"  remedy: compute all of them, and take those from {low} to {high}"
        )


def geqrf(a: Any) -> tuple[Any, Any]:
    """R over the reflections that make it, and their factors: `Q = (I - taus[0] v v^H) (I - taus[1] ...) ...`."""
    taus = jnp.zeros((*a.shape[:-2], _steps(a)), a.dtype)
    if 0 in a.shape:
        return a, taus
    row, column = _positions(a)

    def reflect(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        matrix, taus = state
        x = lax.dynamic_index_in_dim(matrix, k, axis=-1)
        alpha = lax.dynamic_index_in_dim(x, k, axis=-2)
        below = jnp.where(row[:, :1] > k, x, 0)
        is_done = (_length(below) == 0) & (jnp.imag(alpha) == 0)
        length = _length(jnp.where(row[:, :1] >= k, x, 0))
        beta = jnp.where(jnp.real(alpha) < 0, length, -length)
        beta = jnp.where(is_done, jnp.real(alpha), beta).astype(a.dtype)
        tau = jnp.where(is_done, 0, (beta - alpha) / jnp.where(is_done, 1, beta))
        v = jnp.where(row[:, :1] == k, 1, below / jnp.where(is_done, 1, alpha - beta))
        reflected = matrix - jnp.conj(tau) * v * jnp.sum(jnp.conj(v) * matrix, axis=-2, keepdims=True)
        stored = jnp.where(row == k, beta, jnp.where(row > k, v, matrix))
        matrix = jnp.where(column > k, reflected, jnp.where(column == k, stored, matrix))
        return matrix, lax.dynamic_update_index_in_dim(taus, tau[..., 0], k, axis=-1)

    factored: tuple[Any, Any] = lax.fori_loop(0, taus.shape[-1], reflect, (a, taus))
    return factored


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of Q, of the reflections that `geqrf` leaves in `a`."""
    row, column = _positions(a)
    identity = jnp.broadcast_to((row == column).astype(a.dtype), a.shape)
    if 0 in a.shape or taus.shape[-1] == 0:
        return identity

    def reflect(step: Any, q: Any) -> Any:
        k = taus.shape[-1] - 1 - step
        x = lax.dynamic_index_in_dim(a, k, axis=-1)
        v = jnp.where(row[:, :1] == k, 1, jnp.where(row[:, :1] > k, x, 0))
        tau = lax.dynamic_index_in_dim(taus, k, axis=-1)[..., None]
        return q - tau * v * jnp.sum(jnp.conj(v) * q, axis=-2, keepdims=True)

    return lax.fori_loop(0, taus.shape[-1], reflect, identity)


def lu(a: Any) -> tuple[Any, Any, Any]:
    """The factors in one matrix, the row swaps and the permutation that they make: `a[permutation] = L U`."""
    pivots = jnp.zeros((*a.shape[:-2], _steps(a)), jnp.int32)
    permutation = lax.broadcasted_iota(jnp.int32, a.shape[:-1], a.ndim - 2)
    if 0 in a.shape:
        return a, pivots, permutation
    row, column = _positions(a)
    rows = row[:, 0]

    def eliminate(k: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        matrix, pivots, permutation = state
        found = _taxicab(lax.dynamic_index_in_dim(matrix, k, axis=-1, keepdims=False))
        pivot = jnp.argmax(jnp.where(rows >= k, found, -1), axis=-1).astype(pivots.dtype)[..., None]
        pivots = lax.dynamic_update_index_in_dim(pivots, pivot, k, axis=-1)
        permutation = _swapped(permutation[..., None], rows[:, None], k, pivot[..., None])[..., 0]
        matrix = _swapped(matrix, row, k, pivot[..., None])
        upper = lax.dynamic_index_in_dim(matrix, k, axis=-2)
        at_pivot = lax.dynamic_index_in_dim(upper, k, axis=-1)
        factors = lax.dynamic_index_in_dim(matrix, k, axis=-1) / jnp.where(at_pivot == 0, 1, at_pivot)
        rest = jnp.where(column > k, matrix - factors * upper, jnp.where(column == k, factors, matrix))
        return jnp.where(row > k, rest, matrix), pivots, permutation

    factored: tuple[Any, Any, Any] = lax.fori_loop(0, pivots.shape[-1], eliminate, (a, pivots, permutation))
    return factored


def tridiagonal_solve(below: Any, diagonal: Any, above: Any, b: Any, *, perturb_singular: bool) -> Any:
    """`x` of `A x = b`, by elimination with row exchanges; NaN if `A` is singular. `below[0]` is not read."""
    if perturb_singular:
        raise LapackNeeded(
            "tridiagonal_solve with perturb_singular=True calls jaxlib and cannot be written out in StableHLO\n"
            "  remedy: leave perturb_singular out, or compute it in JAX, outside the function that is exported"
        )
    if 0 in b.shape:
        return b

    def by_row(values: Any, last: int) -> Any:
        """The rows from the second on, each `[..., 1]` or as in `b`, and one more that represents none."""
        values = jnp.moveaxis(values, -2, 0)
        return jnp.concatenate([values[1:], jnp.full_like(values[:1], last)])

    def eliminate(row: Any, following: Any) -> tuple[Any, Any]:
        d, u, rhs = row
        low, d1, u1, rhs1 = following
        swap = jnp.abs(d) < jnp.abs(low)
        pivot: Any = tuple(jnp.where(swap, *pair) for pair in ((low, d), (d1, u), (u1, 0), (rhs1, rhs)))
        factor = jnp.where(swap, d, low) / pivot[0]
        others = ((u, d1), (0, u1), (rhs, rhs1))
        rest = (
            jnp.where(swap, *pair) - factor * eliminated for pair, eliminated in zip(others, pivot[1:], strict=True)
        )
        return tuple(rest), pivot

    def substitute(solved: Any, pivot: Any) -> tuple[Any, Any]:
        nearer, farther = solved
        d, u, uu, rhs = pivot
        x = (rhs - u * nearer - uu * farther) / d
        return (x, nearer), x

    below, diagonal, above = (values[..., None] for values in (below, diagonal, above))
    last = lax.broadcasted_iota(jnp.int32, above.shape, above.ndim - 2) == above.shape[-2] - 1
    above = jnp.where(last, 0, above)
    following = (by_row(below, 0), by_row(diagonal, 1), by_row(above, 0), by_row(b, 0))
    first = (diagonal[..., 0, :], above[..., 0, :], b[..., 0, :])
    pivots = lax.scan(eliminate, first, following)[1]
    none = jnp.zeros_like(first[2])
    return jnp.moveaxis(lax.scan(substitute, (none, none), pivots, reverse=True)[1], 0, -2)


def _swapped(matrix: Any, row: Any, k: Any, other: Any) -> Any:
    """`matrix` with its rows `k` and `other` exchanged; `row` numbers them."""
    here = lax.dynamic_index_in_dim(matrix, k, axis=-2)
    there = jnp.take_along_axis(matrix, jnp.broadcast_to(other, here.shape), axis=-2)
    return jnp.where(row == k, there, jnp.where(row == other, here, matrix))


class _Rotation(NamedTuple):
    """For each pair of columns `x`, `y`: `x cos - y conj(sin)`, `x sin + y cos`."""

    cos: Any
    sin: Any


def _rotation(a: Any, b: Any, g: Any) -> _Rotation:
    """What makes the Hermitian matrices `[[a, g], [conj(g), b]]` diagonal, by the smaller of the two angles."""
    size = jnp.abs(g)
    divisor = jnp.where(size == 0, 1, size)
    cotangent = (b - a) / (2 * divisor)
    far = jnp.abs(cotangent) > 1 / _epsilon(a.dtype)  # its square may overflow
    near = jnp.where(far, 0, cotangent)
    tangent = jnp.where(near < 0, -1, 1) / (jnp.abs(near) + jnp.sqrt(1 + near * near))
    tangent = jnp.where(far, 0.5 / jnp.where(far, cotangent, 1), tangent)
    tangent = jnp.where(size == 0, 0, tangent)
    cos = lax.rsqrt(1 + tangent * tangent)
    return _Rotation(cos.astype(g.dtype), (cos * tangent).astype(g.dtype) * (g / divisor.astype(g.dtype)))


def _rotated(matrix: Any, rotation: _Rotation) -> Any:
    """The columns in pairs of one from the left half and one from the right, each pair rotated."""
    left, right = jnp.split(matrix, 2, axis=-1)
    cos, sin = rotation.cos[..., None, :], rotation.sin[..., None, :]
    return jnp.concatenate([left * cos - right * jnp.conj(sin), left * sin + right * cos], axis=-1)


def _next_pairs(matrix: Any) -> Any:
    """The columns in the next order: a round robin, in which all meet and are back after one less than there are."""
    left, right = jnp.split(matrix, 2, axis=-1)
    parts = [left[..., :1], right[..., :1], left[..., 1:-1], right[..., 1:], left[..., -1:]]
    return jnp.concatenate(parts, axis=-1)


def _orthogonal_columns(columns: Any, rows: Any) -> Any:
    """`columns` rotated in pairs until the first `rows` of them are orthogonal."""
    count = columns.shape[-1]
    threshold = _epsilon(columns.dtype) * jnp.sqrt(jnp.asarray(count, jnp.real(columns).dtype))

    def turn(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        columns, largest = state
        left, right = jnp.split(columns[..., :rows, :], 2, axis=-1)
        a, b = _squares(left), _squares(right)
        g = jnp.sum(jnp.conj(left) * right, axis=-2)
        sizes = jnp.sqrt(a) * jnp.sqrt(b)
        cosine = jnp.abs(g) / jnp.where(sizes == 0, 1, sizes)
        g = jnp.where((cosine > threshold) & (sizes > 0), g, 0)
        return _next_pairs(_rotated(columns, _rotation(a, b, g))), jnp.maximum(largest, jnp.max(cosine))

    def sweep(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        done, columns, largest = state
        return done + 1, *lax.fori_loop(0, count - 1, turn, (columns, jnp.zeros_like(largest)))

    def unfinished(state: tuple[Any, Any, Any]) -> Any:
        done, _, largest = state
        return (done < _MOST_SWEEPS) & (largest > threshold)

    start = jnp.asarray(jnp.inf, threshold.dtype)
    return lax.while_loop(unfinished, sweep, (0, columns, start))[1]


def _completed(columns: Any) -> Any:
    """Orthonormal columns of which some may be zero, those replaced by others."""
    q, r = lax.linalg.qr(columns, full_matrices=False)
    phase = _diagonal(r)
    size = jnp.abs(phase)
    found = size > 0.5
    return q * jnp.where(found, phase / jnp.where(found, size, 1).astype(q.dtype), 1)[..., None, :]


def _epsilon(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)


def _half(n: Any) -> Any:
    """Half the number of columns, after some of zeros: at least 2, so that a round has a middle."""
    return (n + 1) // 2 + 1 if is_symbolic_dim(n) else max(2, (n + 1) // 2)


def _steps(a: Any) -> Any:
    """The smaller of the two sizes, which may be symbolic."""
    return jax.eval_shape(lax.linalg.lu, a)[1].shape[-1]


def _length(columns: Any) -> Any:
    """The length of each column, also where its square is not representable."""
    largest = jnp.max(jnp.abs(columns), axis=-2, keepdims=True)
    scale = jnp.where(largest > 0, largest, 1)
    return scale * jnp.sqrt(_squares(columns / scale.astype(columns.dtype)))[..., None, :]


def _padded(matrix: Any, size: Any) -> Any:
    rows, columns = matrix.shape[-2:]
    return jnp.pad(matrix, [(0, 0)] * (matrix.ndim - 2) + [(0, size - rows), (0, size - columns)])


def _scaled(a: Any) -> tuple[Any, Any, Any]:
    """`a` with a largest element of about 1, by which factor it was larger, and whether it is finite."""
    largest = jnp.max(jnp.abs(a), axis=(-2, -1), keepdims=True, initial=0)
    finite = jnp.isfinite(largest)
    scale = jnp.where(finite & (largest > 0), largest, 1)
    return jnp.where(finite, a / scale.astype(a.dtype), 0), scale, finite


def _nan_unless(finite: Any, value: Any) -> Any:
    return jnp.where(finite, value, jnp.asarray(jnp.nan, value.dtype))


def _positions(matrix: Any) -> tuple[Any, Any]:
    """The row and the column of each element."""
    shape = matrix.shape[-2:]
    return lax.broadcasted_iota(jnp.int32, shape, 0), lax.broadcasted_iota(jnp.int32, shape, 1)


def _identity_like(matrix: Any) -> Any:
    return jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)


def _diagonal(matrix: Any) -> Any:
    row, column = _positions(matrix)
    return jnp.sum(jnp.where(row == column, matrix, 0), axis=-2)


def _adjoint(matrix: Any) -> Any:
    return jnp.conj(jnp.swapaxes(matrix, -1, -2))


def _product(left: Any, right: Any) -> Any:
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


def _squares(columns: Any) -> Any:
    """The squared length of each column."""
    return jnp.sum(jnp.real(columns) ** 2 + jnp.imag(columns) ** 2, axis=-2)


def _norm(matrix: Any) -> Any:
    return jnp.sqrt(jnp.sum(_squares(matrix), axis=-1))


def _taxicab(values: Any) -> Any:
    """The magnitude by which LAPACK chooses pivots."""
    return jnp.abs(jnp.real(values)) + jnp.abs(jnp.imag(values))
