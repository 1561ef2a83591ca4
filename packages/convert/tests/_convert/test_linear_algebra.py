"""Linear algebra runs in TensorFlow in every mode, with gradients; what cannot is refused when it is converted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import DisabledSafetyCheck, GraphModeUnsupported, UnknownCustomCall, convert, convert_exported
from jaxtf.serialization import LapackNeeded, deserialize, export

MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def adjoint(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def hermitian(x):
    return x + adjoint(x)


def positive(x):
    return x @ adjoint(x) + jnp.eye(x.shape[-1], dtype=x.dtype)


def projectors(v):
    """What eigenvectors say without their phases, each as a matrix: the squares of their elements."""
    return jnp.abs(v) ** 2


def eigh(x):
    w, v = jnp.linalg.eigh(hermitian(x))
    return w, projectors(v)


def svd(x):
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return projectors(u), s, projectors(vh)


def qr(x):
    q, r = jnp.linalg.qr(x)
    return projectors(q), projectors(r)


# Results that do not depend on the choices that an algorithm has: signs, phases.
FUNCTIONS = {
    "cholesky": lambda x: jnp.linalg.cholesky(positive(x)),
    "triangular_solve": lambda x: lax.linalg.triangular_solve(positive(x), x, left_side=True, lower=True),
    "cho_solve": lambda x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(positive(x)), x),
    "solve": lambda x: jnp.linalg.solve(positive(x), x),
    "inv": lambda x: jnp.linalg.inv(positive(x)),
    "det": jnp.linalg.det,
    "slogdet": lambda x: tuple(jnp.linalg.slogdet(x)),
    "lu": lambda x: lax.linalg.lu(x)[0],
    "qr": qr,
    "eigh": eigh,
    "svd": svd,
    "svdvals": jnp.linalg.svdvals,
    "pinv": lambda x: jnp.linalg.pinv(positive(x)),
    "norm": lambda x: jnp.linalg.norm(x, ord=2, axis=(-2, -1)),
}


def matrices(*shape, dtype, seed=0):
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape) + 3 * np.eye(*shape[-2:])
    return (values + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def assert_close(found, expected):
    """Equal to within the error of two backward stable algorithms: 500 eps times the largest element.

    The condition numbers of the matrices and of their eigenvectors are below 100.
    """
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    scale = max(np.abs(expected).max(initial=0), 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=500 * np.finfo(expected.dtype).eps * scale)


def parts(x):
    """Real arrays that make up `x`: conventions of complex gradients differ, those of real ones do not."""
    return (jnp.real(x), jnp.imag(x)) if jnp.iscomplexobj(x) else (x,)


def of_parts(function):
    def real_function(*x):
        return [part for leaf in jax.tree.leaves(function(lax.complex(*x) if x[1:] else x[0])) for part in parts(leaf)]

    return real_function


@pytest.mark.slow(1)
@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_jax_for_any_batch(name, dtype):
    with jax.enable_x64(True):
        function = of_parts(FUNCTIONS[name])
        a = matrices(3, 4, 4, dtype=dtype)
        arguments = [np.asarray(part) for part in parts(a)]
        converted = convert(function, polymorphic_shapes=["(b, _, _)"] * len(arguments))
        results, vjp = jax.vjp(function, *arguments)
        weights = [np.cos(np.arange(result.size)).reshape(result.shape).astype(result.dtype) for result in results]
        variables = list(map(tf.Variable, arguments))
        with tf.GradientTape() as tape:
            found = converted(*variables)
            total = tf.add_n(
                [tf.reduce_sum(x * weight) for x, weight in zip(found, weights, strict=True) if x.dtype.is_floating]
            )
        jax.tree.map(lambda x, y: assert_close(x.numpy(), y), found, results)
        for one, other in zip(tape.gradient(total, variables), vjp(weights), strict=True):
            assert_close(one.numpy(), other)
        for x, y in zip(
            converted(*(part[:1] for part in arguments)), function(*(part[:1] for part in arguments)), strict=True
        ):
            assert_close(x.numpy(), y)


@pytest.mark.slow(1)
@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("name", ["cholesky", "solve", "qr", "eigh", "svd"])
def test_they_run_in_graphs(name, mode):
    converted = MODES[mode](convert(FUNCTIONS[name], polymorphic_shapes=["(b, n, n)"]))
    for shape in ((2, 4, 4), (1, 5, 5)):
        a = matrices(*shape, dtype="float32")
        jax.tree.map(lambda x, y: assert_close(x.numpy(), y), converted(a), FUNCTIONS[name](a))


def lu_of_any_sizes(x):
    factors, _, permutation = lax.linalg.lu(x)
    return factors, permutation.astype(jnp.float32)


@pytest.mark.slow(1)
@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ["det", "slogdet", "solve", "inv", "lu"])
def test_graph_mode_factors_matrices_of_any_size(name, dtype, mode):
    function = lu_of_any_sizes if name == "lu" else FUNCTIONS[name]
    sizes = "(b, m, n)" if name == "lu" else "(b, n, n)"
    converted = MODES[mode](convert(function, polymorphic_shapes=[sizes], native_serialization=False))
    for shape in ((2, 4, 4), (1, 1, 1), (3, 5, 5), *(((2, 2, 5), (1, 5, 2)) if name == "lu" else ())):
        a = matrices(*shape, dtype=dtype)
        jax.tree.map(lambda x, y: assert_close(x.numpy(), y), converted(a), function(a))


def product_of(u, s, vh):
    return (u * s[..., None, :]) @ vh


def product_of_eigenvectors(w, v):
    return product_of(v, w, adjoint(v))


# Functions that grow as their matrices do.
HOMOGENEOUS = {
    "svdvals": jnp.linalg.svdvals,
    "svd": lambda x: product_of(*jnp.linalg.svd(x, full_matrices=False)),
    "qr": lambda x: jnp.matmul(*jnp.linalg.qr(x)),
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(hermitian(x)),
    "eigh": lambda x: product_of_eigenvectors(*jnp.linalg.eigh(hermitian(x))),
    "eigvals": lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))),
}
SCALES = {"float32": (-60, -24, 60, 110), "float64": (-900, -60, 60, 900), "complex64": (-60, 60)}
# TensorFlow compiles no eigenvalues of a general matrix, and no singular values of a complex one.
NOT_COMPILED = {("eigvals", dtype) for dtype in SCALES} | {(name, "complex64") for name in ("svd", "svdvals")}


@pytest.mark.slow(1)
@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_factorizations_in_graph_mode_are_as_exact_for_any_scale(name, dtype, mode):
    if mode == "compiled" and (name, dtype) in NOT_COMPILED:
        pytest.skip("TensorFlow does not compile it")
    with jax.enable_x64(True):
        function, a = HOMOGENEOUS[name], matrices(2, 4, 4, dtype=dtype)
        converted = MODES[mode](convert(function, native_serialization=False))
        of_one = np.asarray(function(a))
        tolerance = 2e-5 if mode == "compiled" else 2000 * np.finfo(of_one.dtype).eps
        for power in SCALES[dtype]:
            scale = np.array(2.0**power, of_one.real.dtype)
            found = converted(a * scale).numpy() / scale
            np.testing.assert_allclose(found, of_one, rtol=0, atol=tolerance * np.abs(of_one).max())


@pytest.mark.slow(1)
@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HOMOGENEOUS)
@pytest.mark.parametrize("element", [np.nan, np.inf, -np.inf])
def test_a_matrix_with_an_element_that_is_no_number_gives_nan(element, name, mode):
    if name == "eigvals":
        pytest.skip("TensorFlow raises an error")
    a = matrices(2, 3, 3, dtype="float32")
    a[0, 1, 0] = element  # of the first column, from which QR starts
    found = MODES[mode](convert(HOMOGENEOUS[name], native_serialization=False))(a).numpy()
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], HOMOGENEOUS[name](a[1]), atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_a_cholesky_factor_is_that_of_the_real_diagonal(mode):
    a = np.complex64([[4 + 2j, 1], [1, 3 - 5j]])
    converted = convert(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), native_serialization=False)
    np.testing.assert_allclose(MODES[mode](converted)(a), np.linalg.cholesky([[4, 1], [1, 3]]), rtol=1e-6)


def test_least_squares_and_tall_matrices():
    a, b = matrices(6, 3, dtype="float32"), matrices(6, 2, dtype="float32", seed=1)
    found = convert(lambda a, b: tuple(jnp.linalg.lstsq(a, b)))(a, b)
    for one, other in zip(found, jnp.linalg.lstsq(a, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    u, s, vh = convert(lambda a: tuple(jnp.linalg.svd(a)))(a)
    assert (u.shape, s.shape, vh.shape) == ((6, 6), (3,), (3, 3))
    assert_close((u[:, :3] * s @ vh).numpy(), a)


SERVE = """
import sys
sys.modules["jax"] = sys.modules["jaxlib"] = None  # as where they are not installed
import numpy as np, tensorflow as tf
restored = tf.saved_model.load(sys.argv[1])
a = tf.constant(np.load(sys.argv[1] + "/a.npy"))
with tf.GradientTape() as tape:
    tape.watch(a)
    result = restored.f(a)
np.savez(sys.argv[1] + "/results.npz", result=result, gradient=tape.gradient(result, a))
"""


@pytest.mark.slow
def test_a_saved_model_runs_where_there_is_no_jax(run_without_jax, tmp_path):
    def loss(x):
        w, v = jnp.linalg.eigh(positive(x))
        return jnp.linalg.svdvals(x).sum(-1) + jnp.linalg.slogdet(x)[1] + w[:, 0] + jnp.abs(v[:, 0, 0])

    module = tf.Module()
    module.f = tf.function(
        convert(loss, polymorphic_shapes=["(b, _, _)"]),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 4, 4], tf.float32)],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    a = matrices(3, 4, 4, dtype="float32")
    np.save(tmp_path / "a.npy", a)
    done = run_without_jax("-c", SERVE, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(tmp_path / "results.npz") as results:
        assert_close(results["result"], loss(a))
        assert_close(results["gradient"], jax.grad(lambda x: loss(x).sum())(a))


def test_one_module_for_several_platforms_runs_here():
    converted = convert(jnp.linalg.svdvals, native_serialization_platforms=("tpu", "cuda", "cpu"))
    a = matrices(4, 3, dtype="float32")
    assert_close(converted(a).numpy(), jnp.linalg.svdvals(a))


@pytest.mark.parametrize(
    ("name", "function"),
    {
        "eig": jnp.linalg.eigvals,
        "schur": lax.linalg.schur,
        "hessenberg": lax.linalg.hessenberg,
        "tridiagonal": lax.linalg.tridiagonal,
        "qr with pivoting=True": lambda x: lax.linalg.qr(x, pivoting=True),
    }.items(),
)
def test_what_cannot_run_is_refused_when_it_is_converted(name, function):
    converted = tf.function(convert(function), autograph=False)
    with pytest.raises(
        LapackNeeded, match=rf"written out in StableHLO: {name} \(lapack_s\w+_ffi\)\n  asked at: {name}"
    ):
        converted.get_concrete_function(tf.TensorSpec([3, 3], tf.float32))


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_run_is_refused_with_the_users_line(mode):
    def spectrum(x):
        return jnp.linalg.eig(x)[0]

    line = spectrum.__code__.co_firstlineno + 1
    with pytest.raises(LapackNeeded) as error:
        MODES[mode](convert(spectrum))(np.eye(3, dtype=np.float32))
    assert str(error.value) == (
        "linear algebra that calls jaxlib's LAPACK and cannot be written out in StableHLO: eig (lapack_sgeev_ffi)\n"
        f"  asked at: eig, {__file__}:{line}\n"
        "  remedy:   compute it in JAX, outside the function that is exported or converted; where the process that "
        "runs it registers the target, disable the check: DisabledSafetyCheck.custom_call('lapack_sgeev_ffi')"
    )


def test_an_artifact_that_calls_lapack_is_refused_by_name():
    spec = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    exported = export(jnp.linalg.cholesky, stablehlo_version="1.13.7")(spec)
    for one in (exported, exported.serialize()):
        with pytest.raises(UnknownCustomCall) as error:
            convert_exported(one)
        assert str(error.value) == (
            "'cholesky' calls LAPACK of jaxlib, which TensorFlow does not have: cholesky (lapack_spotrf_ffi)\n"
            "  remedy: export it with expand_linear_algebra=True, which writes linear algebra out in StableHLO "
            "(all but eig, schur, hessenberg, tridiagonal and qr with pivoting), convert(exported.lift()) where it "
            "cannot be exported again, or run it in JAX"
        )
        with pytest.raises(GraphModeUnsupported) as error:
            convert_exported(one, native_serialization=False)
        assert str(error.value).startswith("graph mode does not translate custom_call.lapack_spotrf_ffi")
        assert str(error.value).count("convert(exported.lift()) where it cannot be exported again") == 1


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
def test_an_artifact_that_calls_lapack_runs_when_it_is_lifted(native):
    spec = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    lifted = deserialize(export(FUNCTIONS["cholesky"])(spec).serialize()).lift()
    a = matrices(3, 3, dtype="float32")
    assert_close(convert(lifted, native_serialization=native)(a).numpy(), FUNCTIONS["cholesky"](a))


def test_an_expanded_artifact_runs():
    spec = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    exported = export(FUNCTIONS["cholesky"], stablehlo_version="1.13.7", expand_linear_algebra=True)(spec)
    a = matrices(3, 3, dtype="float32")
    assert_close(convert_exported(exported.serialize())(a).numpy(), FUNCTIONS["cholesky"](a))


@pytest.mark.parametrize("target", ["lapack_spotrf_ffi", "ALL"])
def test_a_target_that_the_caller_registers_is_not_refused(target):
    spec = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    allowed = [DisabledSafetyCheck.custom_call(target)]
    convert_exported(export(jnp.linalg.cholesky, stablehlo_version="1.13.7", disabled_checks=allowed)(spec))


def test_a_name_that_is_not_a_target_is_no_reason_to_refuse():
    def lapack_spotrf_ffi(x):
        return x + 1

    converted = convert_exported(export(lapack_spotrf_ffi)(jax.ShapeDtypeStruct((), jnp.float32)))
    assert converted(1.0) == 2.0
