"""Factorizations in graph mode do not depend on the scale of a column, nor on what they do not read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert, convert_exported
from jaxtf.serialization import export

COMPILED = [False, True]
MATRICES = np.random.RandomState(0).randn(2, 4, 3).astype(np.float32)
SCALES = {
    "tiny": [2.0**-73] * 3,
    "huge": [2.0**83] * 3,
    "each": [2.0**-73, 1.0, 2.0**83],
    "falling": [2.0**60, 2.0**-10, 2.0**-83],
}


def run(function, *arguments, compiled):
    return [np.asarray(x) for x in tf.function(function, autograph=False, jit_compile=compiled)(*arguments)]


@pytest.mark.slow(1)
@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("by_xla", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", SCALES)
def test_the_orthogonal_factor_does_not_depend_on_the_scale_of_columns(name, dtype, by_xla, compiled):
    matrices = MATRICES.astype(dtype)
    if dtype == np.complex64:
        matrices = matrices + 1j * MATRICES[::-1].astype(dtype)
    if by_xla:  # the custom calls that JAX has for TPU
        exported = export(jnp.linalg.qr, platforms=("tpu",))(matrices)
        converted = convert_exported(exported, native_serialization=False)
    else:
        converted = convert(jnp.linalg.qr, native_serialization=False)
    unitary, upper = run(converted, matrices, compiled=compiled)
    scale = np.array(SCALES[name], np.float32)
    scaled_unitary, scaled_upper = run(converted, matrices * scale, compiled=compiled)
    np.testing.assert_allclose(scaled_unitary, unitary, atol=1e-6)
    np.testing.assert_allclose(scaled_upper / scale, upper, atol=1e-5)


@pytest.mark.slow(1)
@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("other", [np.nan, np.inf, 1e38, 3e20])
def test_eigenvalues_do_not_depend_on_the_triangle_that_is_not_read(other, dtype, lower, compiled):
    matrix = np.array([[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]], dtype) * np.float32(1e-3)
    spoiled = matrix.copy()
    spoiled[np.triu_indices(3, 1) if lower else np.tril_indices(3, -1)] = other
    if dtype == np.complex64:
        spoiled.imag[np.diag_indices(3)] = other

    def eigenvalues(x):
        return lax.linalg.eigh(x, lower=lower, symmetrize_input=False)

    converted = convert(eigenvalues, native_serialization=False)
    _, expected = run(converted, matrix, compiled=compiled)
    vectors, found = run(converted, spoiled, compiled=compiled)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-8)


SQUARE = np.random.RandomState(1).randn(2, 4, 4)


@pytest.mark.parametrize("shape", [(4, 4), (3, 4), (4, 3)])
@pytest.mark.parametrize("options", [{}, {"full_matrices": False}, {"compute_uv": False}], ids=str)
def test_a_subset_of_singular_values_is_all_of_them_or_refused(options, shape):
    matrix, count = SQUARE[0].astype(np.float32)[: shape[0], : shape[1]], min(shape)

    def by_index(subset, **options):
        return convert(lambda x: lax.linalg.svd(x, **options, subset_by_index=subset), native_serialization=False)

    found, expected = by_index((0, count), **options)(matrix), by_index(None, **options)(matrix)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    for subset in [(0, count - 1), (1, count)]:  # JAX refuses them of full matrices
        with pytest.raises(GraphModeUnsupported, match="a subset of the singular values"):
            by_index(subset, **options | {"full_matrices": False})(matrix)


def test_a_subset_of_eigenvalues_is_all_of_them_or_refused():
    matrix = SQUARE[0].astype(np.float32)

    def by_index(subset):
        return convert(lambda x: lax.linalg.eigh(x, subset_by_index=subset), native_serialization=False)

    jax.tree.map(np.testing.assert_array_equal, by_index((0, 4))(matrix), by_index(None)(matrix))
    for subset in [(0, 3), (1, 4)]:
        with pytest.raises(GraphModeUnsupported, match="a subset of the eigenvalues"):
            by_index(subset)(matrix)


@pytest.mark.parametrize("exponent", [-112, -74, -62, 60, 84, 124])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_eigenvectors_do_not_depend_on_the_scale_of_a_matrix(dtype, exponent):
    matrix = SQUARE.astype(dtype)
    if dtype == np.complex64:
        matrix = matrix + 1j * SQUARE[::-1].astype(dtype)
    scale = np.float32(2.0**exponent)
    # By a power of 2 nothing is rounded, so that NumPy's eigenvalues may be those of the other.
    expected = np.linalg.eigvals(matrix.astype(np.complex128))
    converted = convert(lambda x: lax.linalg.eig(x, compute_left_eigenvectors=True), native_serialization=False)
    values_only = convert(lambda x: (jnp.linalg.eigvals(x),), native_serialization=False)
    values, left, right = run(converted, matrix * scale, compiled=False)
    for found in (values, *run(values_only, matrix * scale, compiled=False)):
        np.testing.assert_allclose(by_size(found / scale), by_size(expected), atol=1e-5)
    values = np.asarray(values, np.complex128)[:, None, :] / scale
    np.testing.assert_allclose(matrix @ right, right * values, atol=1e-5)
    np.testing.assert_allclose(np.conj(np.swapaxes(matrix, 1, 2)) @ left, left * np.conj(values), atol=1e-5)
    for vectors in (left, right):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


TURN = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
DEFECTIVE = {
    "of one vector": np.array([[2, 1, 0], [0, 2, 1], [0, 0, 2]]),
    "nilpotent": np.eye(6, k=1),
    "nearly": TURN @ (np.diag([1.0, 1, 1, 2, 3]) + np.triu(np.ones((5, 5)), 1)) @ TURN.T,
}


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)], ids=["eager", "graph"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", DEFECTIVE)
def test_left_eigenvectors_are_right_or_an_error(name, dtype, wrap):
    """The inverse of nearly dependent right ones has none."""
    left = convert(
        lambda x: lax.linalg.eig(x, compute_left_eigenvectors=True, compute_right_eigenvectors=False),
        native_serialization=False,
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="left eigenvectors of a matrix whose right ones are nearly"
    ):
        wrap(left)(tf.constant(DEFECTIVE[name].astype(dtype)))
    for matrix in (np.eye(3), np.diag([1.0, 1, 2]), np.random.default_rng(1).standard_normal((40, 40))):
        values, vectors = (x.numpy() for x in wrap(left)(tf.constant(matrix.astype(dtype))))
        across = np.conj(vectors.T)
        np.testing.assert_allclose(across @ matrix, values[:, None] * across, atol=1e-4)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=1e-5)


def by_size(numbers):
    """Eigenvalues of each matrix in an order that errors do not change."""
    return np.stack([each[np.lexsort((np.round(each.imag, 3), np.round(each.real, 3)))] for each in numbers])


@pytest.mark.parametrize("other", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_matrix_with_a_number_that_is_not_finite_has_eigenvalues_of_nan_and_no_other_has(dtype, other):
    matrices = SQUARE.astype(dtype)
    matrices[0, 1, 2] = other
    for function in (jnp.linalg.eigvals, lax.linalg.eig):
        found = convert(function, native_serialization=False)(matrices)
        for mine, expected in zip(tf.nest.flatten(found), jax.tree.leaves(function(matrices)), strict=True):
            np.testing.assert_array_equal(np.isnan(np.real(mine)), np.isnan(np.real(expected)))
            np.testing.assert_array_equal(np.isnan(np.imag(mine)), np.isnan(np.imag(expected)))


def test_complex_numbers_whose_absolute_value_is_infinite_are_finite():
    values = np.array([2.5e38 + 2.5e38j, 1e38], np.complex64)
    found = convert(jnp.linalg.eigvals, native_serialization=False)(np.diag(values)).numpy()
    np.testing.assert_allclose(by_size(found[None] / 2.0**120), by_size(values[None] / 2.0**120), rtol=1e-6)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("part", [complex(1, np.nan), complex(np.nan, 1), complex(np.inf, 1), complex(1, -np.inf)])
def test_a_complex_matrix_with_a_part_that_is_not_finite_has_no_eigenvalues(part, compiled):
    matrices = np.stack([np.eye(3, dtype=np.complex64)] * 2)
    matrices[0, 2, 1] = part
    converted = convert(lambda x: lax.linalg.eigh(x, symmetrize_input=False), native_serialization=False)
    vectors, values = run(converted, matrices, compiled=compiled)
    np.testing.assert_array_equal(np.isnan(values), [[True] * 3, [False] * 3])
    np.testing.assert_array_equal(np.isnan(vectors).all((1, 2)), [True, False])


@pytest.mark.slow(1)
@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("shapes", [None, "b, m, n"])
@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 3, 5), (1, 20, 20)])
def test_singular_values_and_vectors_of_float64_are_as_exact_when_compiled(shape, is_full, shapes, compiled):
    matrices = np.random.RandomState(0).randn(*shape)

    def function(x):
        return *jnp.linalg.svd(x, full_matrices=is_full), jnp.linalg.svd(x, compute_uv=False)

    with jax.enable_x64(True):
        converted = convert(function, polymorphic_shapes=[shapes], native_serialization=False)
        signature = [tf.TensorSpec([None] * 3 if shapes else shape, tf.float64)]
        traced = tf.function(converted, autograph=False, jit_compile=compiled, input_signature=signature)
        left, values, right, only_values = (x.numpy() for x in traced(matrices))
    count = min(shape[1:])
    assert left.shape[-1] == (shape[1] if is_full else count)
    for found in (values, only_values):
        np.testing.assert_allclose(found, np.linalg.svd(matrices)[1], rtol=1e-13)
    for gram in left.swapaxes(1, 2) @ left:
        np.testing.assert_allclose(gram, np.eye(left.shape[-1]), atol=1e-13)
    np.testing.assert_allclose((left[..., :count] * values[:, None]) @ right[:, :count], matrices, atol=1e-13)
