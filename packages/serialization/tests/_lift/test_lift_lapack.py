"""Lifted calls of LAPACK give what it cannot compute as NaN, and no more than that."""

import itertools

import jax
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import export

RANDOM = np.random.RandomState(0)
MATRICES = RANDOM.randn(3, 4, 4)
DEFINITE = MATRICES @ MATRICES.swapaxes(-1, -2) + np.eye(4)
RIGHT = RANDOM.randn(3, 4, 2)
FUNCTIONS = {
    "cholesky": lambda a, b: lax.linalg.cholesky(a),
    "eig": lambda a, b: lax.linalg.eig(a),
    "eigh": lambda a, b: lax.linalg.eigh(a, symmetrize_input=False),
    "hessenberg": lambda a, b: lax.linalg.hessenberg(a),
    "lu": lambda a, b: lax.linalg.lu(a),
    "qr": lambda a, b: lax.linalg.qr(a),
    "schur": lambda a, b: lax.linalg.schur(a),
    "svd": lambda a, b: lax.linalg.svd(a),
    "svd, no vectors": lambda a, b: lax.linalg.svd(a, compute_uv=False),
    "triangular_solve": lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    "tridiagonal": lambda a, b: lax.linalg.tridiagonal(a),
    "tridiagonal_solve": lambda a, b: lax.linalg.tridiagonal_solve(a[:, 0].at[:, 0].set(0), a[:, 1], a[:, 2], b),
}
PLACES = {"first": (1, 0, 0), "above": (1, 1, 3), "below": (1, 3, 1), "last": (1, 3, 3), "in the right side": (1, 2, 1)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_numbers_reach_the_results_that_they_reach_in_jax(name):
    exported = export(FUNCTIONS[name])(*(x.astype(np.float32) for x in (MATRICES, RIGHT)))
    call, lifted = jax.jit(exported.call), jax.jit(exported.lift())
    values = (np.nan, 0.0, 5.0) if "svd" in name else (np.nan, np.inf, 0.0, 5.0)  # LAPACK does not end for inf
    for place, value in itertools.product(PLACES, values):
        matrices, right = DEFINITE.astype(np.float32), RIGHT.astype(np.float32)
        (right if place == "in the right side" else matrices)[PLACES[place]] = value
        for found, expected in zip(
            *map(jax.tree.leaves, (lifted(matrices, right), call(matrices, right))), strict=True
        ):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), f"{value} {place}")
            np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=f"{value} {place}")
