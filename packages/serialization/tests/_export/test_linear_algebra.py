"""Linear algebra without LAPACK: against NumPy's, and by what defines each decomposition.

Tolerances are in units of size times machine epsilon times the norm: what backward stable algorithms
leave, times 10.
"""

import functools
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import DisabledSafetyCheck, LapackNeeded, export
from jaxtf.serialization._bytecode.portable import custom_call_targets
from jaxtf.serialization._export.lapack import lapack_function
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import symbolic_shape

DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [0, 1, 2, 3, 8, 13]


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


def targets(exported):
    return set(custom_call_targets(exported.mlir_module_serialized)) - {"shape_assertion"}


def lowered(function, *shapes, dtype, **options):
    """The exported function, with nothing of LAPACK in it."""
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    exported = export(function, expand_linear_algebra=True, **options)(*specs)
    assert not [target for target in targets(exported) if lapack_function(target)]
    return exported


def expanded(function, *arrays):
    """What the exported function gives, without LAPACK."""
    results = lowered(function, *(a.shape for a in arrays), dtype=arrays[0].dtype).call(*arrays)
    return jax.tree.map(np.asarray, results)


def matrices(*shape, dtype="float64", seed=0):
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape)
    return (values + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def assert_near(found, expected, dtype, size, scale=None):
    """Equal to within 10 size eps of the scale: the largest element, unless given."""
    scale = np.abs(expected).max(initial=0) if scale is None else scale
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    bound = 10 * max(size, 1) * np.finfo(dtype).eps * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(bound, np.finfo(dtype).tiny))


def assert_orthonormal(columns, dtype, size):
    identity = np.broadcast_to(np.eye(columns.shape[-1], dtype=dtype), (*columns.shape[:-2], *[columns.shape[-1]] * 2))
    assert_near(adjoint(columns) @ columns, identity, dtype, size, scale=1)


def hermitian(n, dtype):
    """Matrices with eigenvalues apart, all equal, in two clusters, of very different sizes, and zero."""
    a = matrices(5, n, n, dtype=dtype) if n else np.zeros((5, 0, 0), dtype)
    q = np.linalg.qr(a)[0]
    spread = np.logspace(0, np.log10(np.finfo(dtype).eps), n)
    a[0] = a[0] + adjoint(a[0])
    a[1] = np.eye(n)
    a[2] = (q[2] * (np.arange(n) % 2)) @ adjoint(q[2])
    a[3] = (q[3] * spread) @ adjoint(q[3])
    a[4] = 0
    return ((a + adjoint(a)) / 2).astype(dtype)


@pytest.mark.slow(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh_gives_orthonormal_vectors_and_their_values(dtype, n):
    a = hermitian(n, dtype)
    values, vectors = expanded(lambda x: tuple(jnp.linalg.eigh(x)), a)
    assert_orthonormal(vectors, dtype, n)
    for one, w, v in zip(a, values, vectors, strict=True):
        assert_near(one @ v, v * w, dtype, n, scale=np.abs(one).max(initial=0) * max(n, 1))
        assert_near(w, np.linalg.eigvalsh(one), dtype, n)


@pytest.mark.parametrize("lower", [True, False])
def test_eigh_reads_one_triangle_and_the_real_part_of_the_diagonal(lower):
    a = matrices(6, 6, dtype="complex128")
    found = expanded(lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False), a)[1]
    np.testing.assert_allclose(found, np.linalg.eigvalsh(a, UPLO="L" if lower else "U"), rtol=1e-13, atol=1e-13)


def rectangular(m, n, dtype):
    """Matrices of full rank, of rank one, with zero columns, with very different singular values, and zero."""
    a = matrices(5, m, n, dtype=dtype) if m and n else np.zeros((5, m, n), dtype)
    if min(m, n):
        a[1] = a[1][:, :1] * a[1][:1, :]
        a[2][:, ::2] = 0
        a[3] = a[3] * np.logspace(0, np.log10(np.finfo(dtype).eps), n)
    a[4] = 0
    return a.astype(dtype)


@pytest.mark.slow(1)
@pytest.mark.parametrize("full_matrices", [True, False])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (5, 3), (8, 8), (13, 20)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_svd_gives_orthonormal_factors_and_the_singular_values(dtype, m, n, full_matrices):
    a = rectangular(m, n, dtype)
    u, s, vh = expanded(lambda x: tuple(jnp.linalg.svd(x, full_matrices=full_matrices)), a)
    k, size = min(m, n), max(m, n)
    assert u.shape == (5, m, m if full_matrices else k)
    assert vh.shape == (5, n if full_matrices else k, n)
    assert_orthonormal(u, dtype, size)
    assert_orthonormal(adjoint(vh), dtype, size)
    assert (np.diff(s, axis=-1) <= 0).all()
    for one, left, values, right in zip(a, u, s, vh, strict=True):
        assert_near((left[:, :k] * values) @ right[:k], one, dtype, size)
        assert_near(values, np.linalg.svd(one, compute_uv=False), dtype, size)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("full_matrices", [True, False])
def test_matrices_without_elements_have_decompositions(shape, full_matrices):
    a = np.zeros(shape, "float32")
    found = expanded(lambda x: tuple(jnp.linalg.svd(x, full_matrices=full_matrices)), a)
    expected = np.linalg.svd(a, full_matrices=full_matrices)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    lu = expanded(lax.linalg.lu, a)
    for one, other in zip(lu, lax.linalg.lu(a), strict=True):
        assert_near(one, np.asarray(other), "float32", 1)


def test_singular_values_alone_are_the_same():
    a = matrices(2, 7, 5)
    np.testing.assert_allclose(expanded(jnp.linalg.svdvals, a), np.linalg.svd(a, compute_uv=False), rtol=1e-13)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 3), (3, 5), (20, 20), (2, 3, 8, 6)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_chooses_the_pivots_of_lapack(dtype, shape):
    a = matrices(*shape, dtype=dtype)
    for found, expected in zip(expanded(lax.linalg.lu, a), lax.linalg.lu(a), strict=True):
        assert_near(found, np.asarray(expected), dtype, 10 * max(shape))


def test_lu_of_a_singular_matrix_is_finite():
    a = np.ones((3, 3))
    for found, expected in zip(expanded(lax.linalg.lu, a), lax.linalg.lu(a), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("full_matrices", [True, False])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (3, 5), (8, 8), (20, 13), (13, 20)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_gives_an_orthonormal_and_a_triangular_factor(dtype, m, n, full_matrices):
    a = rectangular(m, n, dtype)
    q, r = expanded(lambda x: tuple(jnp.linalg.qr(x, mode="complete" if full_matrices else "reduced")), a)
    assert q.shape == (5, m, m if full_matrices else min(m, n))
    assert_orthonormal(q, dtype, max(m, n))
    np.testing.assert_array_equal(r, np.triu(r))
    assert_near(q @ r, a, dtype, max(m, n), scale=max(m, n) * np.abs(a).max())


def test_qr_in_raw_form_is_that_of_lapack():
    a = matrices(2, 6, 4, dtype="complex128")
    found, expected = (f(lambda x: tuple(jnp.linalg.qr(x, mode="raw")), a) for f in (expanded, lambda f, x: f(x)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow(1)
@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_and_cholesky_have_small_residuals(dtype, n):
    a, b = matrices(2, n, n, dtype=dtype), matrices(2, n, 3, dtype=dtype)
    x = expanded(jnp.linalg.solve, a, b)
    assert_near(a @ x, b, dtype, n, scale=n * np.abs(a).max() * np.abs(x).max())
    positive = a @ adjoint(a) + np.eye(n, dtype=dtype)
    factor = expanded(jnp.linalg.cholesky, positive)
    np.testing.assert_array_equal(factor, np.tril(factor))
    assert_near(factor @ adjoint(factor), positive, dtype, n)


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_solve_reads_one_triangle(lower, left, conjugate, transpose):
    n, dtype = 7, "complex128"
    a, b = matrices(2, n, n, dtype=dtype) + 4 * np.eye(n), matrices(2, n, n, dtype=dtype)

    def solve(a, b):
        return lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate
        )

    x = expanded(solve, a, b)
    triangle = np.tril(a) if lower else np.triu(a)
    triangle = triangle.conj() if conjugate else triangle
    triangle = triangle.swapaxes(-1, -2) if transpose else triangle
    assert_near(triangle @ x if left else x @ triangle, b, dtype, 10 * n)


@pytest.mark.slow(1)
@pytest.mark.parametrize("yes", [1, np.bool_(True), np.int64(1)])
def test_flags_of_a_triangular_solve_need_not_be_bool(yes):
    a, b = matrices(3, 3) + 4 * np.eye(3), matrices(3, 2)
    no = type(yes)(0)

    def solve(a, b):
        x = jax.scipy.linalg.solve_triangular(a, b, lower=yes) + jax.scipy.linalg.cho_solve((a, yes), b)
        y = lax.linalg.triangular_solve(a, b.T, left_side=no, lower=yes, transpose_a=yes, conjugate_a=no)
        return x + y.T + lax.linalg.triangular_solve(a, b, left_side=yes, lower=no, unit_diagonal=yes)

    cotangent = matrices(3, 2, seed=1)
    vjp = export(solve, expand_linear_algebra=True)(a, b).vjp()
    np.testing.assert_allclose(expanded(solve, a, b), solve(a, b), rtol=1e-12, atol=1e-12)
    for found, expected in zip(vjp.call(a, b, cotangent), jax.vjp(solve, a, b)[1](cotangent), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("exporter", [functools.partial(export, platforms=("cuda", "tpu")), export_for_graph])
def test_flags_that_are_not_bool_are_as_bool_also_where_jax_does_not_take_them(exporter):
    def module(yes, no):
        solve = functools.partial(lax.linalg.triangular_solve, left_side=yes, lower=no, unit_diagonal=yes)
        return str(exporter(jax.jit(solve))(np.eye(3), np.eye(3)).mlir_module())

    assert len({module(kind(1), kind(0)) for kind in (bool, int, np.bool_)}) == 1


def test_numbers_of_numpy_reach_the_translator_of_calls_by_name():
    def module(boolean, integer):
        def function(x):
            vectors, _ = lax.linalg.eigh(x, lower=boolean(False), symmetrize_input=False)
            u, _, _ = lax.linalg.svd(x, full_matrices=boolean(False), subset_by_index=(integer(0), integer(1)))
            return vectors, u

        return str(export_for_graph(jax.jit(function))(np.eye(3)).mlir_module())

    assert len({module(boolean, integer) for boolean, integer in ((bool, int), (np.bool_, np.int64))}) == 1


@pytest.mark.slow(1)
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (2, 2, 3)])
@pytest.mark.parametrize("options", [{}, {"full_matrices": False}, {"compute_uv": False}], ids=str)
def test_a_subset_of_all_singular_values_is_no_subset(options, shape):
    a = matrices(*shape)
    found = expanded(lambda x: lax.linalg.svd(x, **options, subset_by_index=(0, min(shape[-2:]))), a)
    jax.tree.map(np.testing.assert_array_equal, found, expanded(lambda x: lax.linalg.svd(x, **options), a))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("subset", [(0, 1), (1, 2), (0, 4), (1, 3)])
def test_subsets_are_refused_as_jax_refuses_them(subset, shape):
    a = matrices(*shape)

    def singular(x):
        return lax.linalg.svd(x, full_matrices=False, compute_uv=False, subset_by_index=subset)

    functions = [singular]
    if shape[0] == shape[1]:
        functions.append(lambda x: lax.linalg.eigh(x, subset_by_index=subset, symmetrize_input=False))
    for function in functions:
        with pytest.raises(NotImplementedError, match="subset_by_index not "):
            jax.jit(function)(a)
        with pytest.raises(NotImplementedError, match=rf"subset_by_index={re.escape(str(subset))} .*\n  remedy: "):
            export(function, expand_linear_algebra=True)(a)


def test_a_subset_of_all_eigenvalues_is_no_subset():
    a = matrices(4, 4)
    found = expanded(lambda x: lax.linalg.eigh(x, subset_by_index=(0, 4)), a)
    jax.tree.map(np.testing.assert_array_equal, found, expanded(lax.linalg.eigh, a))


@pytest.mark.parametrize("m", [1, 2, 3, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve_exchanges_rows(dtype, m):
    below, diagonal, above = matrices(3, 2, m, dtype=dtype)
    below[:, 0] = above[:, -1] = 0
    if m > 1:
        diagonal[:, 0] = 0
    b = matrices(2, m, 3, dtype=dtype)
    x = expanded(lax.linalg.tridiagonal_solve, below, diagonal, above, b)
    a = np.stack(
        [
            np.diag(d) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
            for lower, d, upper in zip(below, diagonal, above, strict=True)
        ]
    )
    assert_near(a @ x, b, dtype, m, scale=3 * np.abs(a).max() * np.abs(x).max())


NOT_FINITE = {
    "eigh": lambda x: tuple(jnp.linalg.eigh(x)),
    "svd": lambda x: tuple(jnp.linalg.svd(x)),
    "cholesky": jnp.linalg.cholesky,
}


@pytest.mark.parametrize("name", NOT_FINITE)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan_in_that_matrix_only(name, bad):
    a = np.stack([np.eye(4), np.eye(4)])
    a[0, 1, 1] = bad
    for leaf in jax.tree.leaves(expanded(NOT_FINITE[name], a)):
        assert np.isnan(leaf[0]).any()
        assert np.isfinite(leaf[1]).all()


def test_cholesky_of_a_matrix_that_is_not_positive_definite_is_nan():
    a = np.diag([1.0, -1.0, 1.0])
    found, expected = expanded(jnp.linalg.cholesky, a), np.asarray(jnp.linalg.cholesky(a))
    assert np.isnan(found[np.tril_indices(3)]).any()
    assert np.isnan(expected[np.tril_indices(3)]).any()


SYMBOLIC = {
    "eigh": lambda x: jnp.linalg.eigh(x + jnp.swapaxes(x, -1, -2))[0],
    "svd": lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
    "qr": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "lu": lambda x: lax.linalg.lu(x)[0],
    "solve": lambda x: jnp.linalg.solve(x, x + 1),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ jnp.swapaxes(x, -1, -2)),
    "slogdet": lambda x: tuple(jnp.linalg.slogdet(x)),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_batches_and_sizes_may_be_symbolic(name):
    function = SYMBOLIC[name]
    exported = lowered(function, symbolic_shape("b, n, n"), dtype="float64")
    for shape in ((1, 1, 1), (2, 2, 2), (3, 7, 7)):
        a = matrices(*shape)
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11), exported.call(a), function(a)
        )


@pytest.mark.slow
def test_the_vjp_has_no_lapack_either():
    def function(a):
        w, v = jnp.linalg.eigh(a @ a.T)
        return jnp.linalg.slogdet(a)[1] + w @ jnp.abs(v[0]) + jnp.linalg.svdvals(a).sum() + jnp.linalg.inv(a).sum()

    a = matrices(5, 5)
    vjp = lowered(function, (5, 5), dtype="float64").vjp()
    assert not [target for target in targets(vjp) if lapack_function(target)]
    np.testing.assert_allclose(vjp.call(a, 1.0)[0], jax.grad(function)(a), rtol=1e-10, atol=1e-10)


def test_only_cpu_is_expanded():
    everywhere = lowered(jnp.linalg.svdvals, (4, 3), dtype="float32", platforms=("cuda", "cpu"))
    assert targets(everywhere) >= {"cusolver_gesvdj_ffi"}
    a = matrices(4, 3, dtype="float32")
    np.testing.assert_allclose(everywhere.call(a), np.linalg.svd(a, compute_uv=False), rtol=1e-6)
    cuda = export(jnp.linalg.svdvals, platforms=("cuda",), expand_linear_algebra=True)
    assert targets(cuda(a)) == targets(export(jnp.linalg.svdvals, platforms=("cuda",))(a))


def test_lapack_is_called_unless_expansion_is_asked_for():
    assert targets(export(jnp.linalg.cholesky)(np.eye(3))) == {"lapack_dpotrf_ffi"}


REFUSED = {
    "eig": (jnp.linalg.eigvals, "eig", "lapack_dgeev_ffi"),
    "schur": (lax.linalg.schur, "schur", "lapack_dgees_ffi"),
    "hessenberg": (lax.linalg.hessenberg, "hessenberg", "lapack_dgehrd_ffi"),
    "tridiagonal": (lax.linalg.tridiagonal, "tridiagonal", "lapack_dsytrd_ffi"),
    "pivoted qr": (lambda x: lax.linalg.qr(x, pivoting=True), "qr with pivoting=True", "lapack_dgeqp3_ffi"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_expansion_is_refused_by_name(name):
    function, called, target = REFUSED[name]
    with pytest.raises(LapackNeeded) as error:
        export(function, expand_linear_algebra=True)(np.eye(3))
    first, found, remedy = str(error.value).split("\n")
    assert first == (
        f"linear algebra that calls jaxlib's LAPACK and cannot be written out in StableHLO: {called} ({target})"
    )
    assert re.fullmatch(rf"  asked at: {called}, {re.escape(__file__)}:\d+", found)
    assert remedy == (
        "  remedy:   compute it in JAX, outside the function that is exported or converted; where the process that "
        f"runs it registers the target, disable the check: DisabledSafetyCheck.custom_call('{target}')"
    )


def test_every_function_is_refused_with_its_line_also_within_functions_that_jax_gave_to_jit():
    def spectrum(x):
        return jnp.linalg.eig(x)[0].real, jax.lax.scan(lambda x, _: (jax.scipy.linalg.schur(x)[0], ()), x, length=2)

    line = spectrum.__code__.co_firstlineno + 1
    with pytest.raises(LapackNeeded) as error:
        export(spectrum, expand_linear_algebra=True)(np.eye(3))
    found = str(error.value).split("\n")
    assert found[0].endswith("StableHLO: eig (lapack_dgeev_ffi), schur (lapack_dgees_ffi)")
    assert found[1:3] == [f"  asked at: {name}, {__file__}:{line}" for name in ("eig", "schur")]
    assert found[3].endswith(
        ": DisabledSafetyCheck.custom_call('lapack_dgeev_ffi'), DisabledSafetyCheck.custom_call('lapack_dgees_ffi')"
    )


def test_a_target_that_the_caller_has_may_stay():
    allowed = [DisabledSafetyCheck.custom_call("lapack_dgeev_ffi")]
    exported = export(jnp.linalg.eigvals, expand_linear_algebra=True, disabled_checks=allowed)(np.eye(3))
    assert targets(exported) == {"lapack_dgeev_ffi"}


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("lapack_sgeev_ffi", "eig"),
        ("lapack_zheevd", "eigh"),
        ("blas_ctrsm", "triangular_solve"),
        ("lapack_dunknown_ffi", "unknown"),
        ("tridiagonal_solve_perturbed_ffi", "tridiagonal_solve with perturb_singular=True"),
        ("Eigh", None),
        ("my_lapack_sgeev_ffi", None),
    ],
)
def test_the_function_behind_a_target(target, function):
    assert lapack_function(target) == function
