"""The exported VJP."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import DisabledSafetyCheck, VjpUnavailable, deserialize, export
from jaxtf.serialization._export.frozen import frozen
from jaxtf.serialization._record.exported import Exported
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32


def weighted(x, i):
    return x**2 * i.astype(x.dtype), i + 1


@pytest.fixture(scope="module")
def exported():
    (b,) = symbolic_shape("b", constraints=["b >= 2"])
    return export(
        weighted,
        platforms=("cpu", "tpu"),
        calling_convention_version=9,
        stablehlo_version="1.10.0",
        disabled_checks=[DisabledSafetyCheck.platform()],
    )(ShapeDtypeStruct((b,), F32), ShapeDtypeStruct((b,), jnp.int32))


def test_the_vjp_takes_arguments_and_cotangents_and_gives_cotangents(exported):
    vjp = exported.vjp()
    assert [str(aval.shape) for aval in vjp.in_avals] == ["(b,)"] * 4
    assert vjp.in_avals[3].dtype == vjp.out_avals[1].dtype == jax.dtypes.float0
    x, i = np.array([1.0, 2.0, 3.0], F32), np.array([4, 5, 6], np.int32)
    cotangent, none = vjp.call(x, i, np.ones(3, F32), np.zeros(3, jax.dtypes.float0))
    np.testing.assert_array_equal(cotangent, 2 * x * i)
    assert none.dtype == jax.dtypes.float0


def test_the_vjp_is_exported_for_the_same_consumer_and_constraints(exported):
    vjp = exported.vjp()
    assert vjp.platforms == exported.platforms
    assert vjp.calling_convention_version == 9
    assert vjp.stablehlo_version == "1.10.0"
    assert vjp.disabled_safety_checks == exported.disabled_safety_checks
    with pytest.raises(ValueError, match="b >= 2"):
        vjp.call(np.ones(1, F32), np.ones(1, np.int32), np.ones(1, F32), np.zeros(1, jax.dtypes.float0))


def test_the_vjp_is_made_once(exported):
    assert exported.has_vjp()
    assert exported.vjp() is exported.vjp()


def test_custom_derivatives_are_respected():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, cotangent: (100 * cotangent,))
    found = jax.grad(export(f)(ShapeDtypeStruct((), F32)).call)(F32(1))
    assert found == 100


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def times(n, x):
    return n * x


@times.defjvp
def _(n, primals, tangents):
    return times(n, primals[0]), n * tangents[0]


def closes_over(n, x):
    @jax.custom_jvp
    def scaled(x):
        return n * x

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), n * tangents[0]))
    return scaled(x)


@pytest.mark.parametrize("function", [times, closes_over, jax.jit(times), lambda n, x: jax.jit(times)(n, 2 * x)])
def test_a_rule_that_uses_values_of_the_trace_has_no_vjp(function):
    scalar = ShapeDtypeStruct((), F32)
    exported = export(function)(scalar, scalar)
    assert exported.call(F32(2), F32(3)) == jax.jit(function)(F32(2), F32(3))
    with pytest.raises(VjpUnavailable, match="function uses an array that is not among the differentiable"):
        exported.vjp()


def test_the_exponential_integral_has_a_vjp_where_jax_makes_one():
    """JAX 0.12 does; the rule of JAX 0.10.2 uses the order."""
    function, (n, x) = jax.scipy.special.expn, (F32(2), F32(3))
    exported = export(function)(n, x)
    try:
        expected = jax.grad(jax.jit(function), 1)(n, x)
    except (jax.errors.UnexpectedTracerError, TypeError):
        with pytest.raises(VjpUnavailable):
            exported.vjp()
    else:
        np.testing.assert_allclose(jax.grad(exported.call, 1)(n, x), expected, rtol=1e-6)


def test_the_error_about_such_a_rule_gives_the_line_and_a_remedy_that_works():
    def function(n, x):
        return times(n, x)

    scalar = ShapeDtypeStruct((), F32)
    with pytest.raises(VjpUnavailable) as caught:
        export(jax.jit(function))(scalar, scalar).vjp()
    assert str(caught.value) == (
        "no VJP of 'function' can be made: the rule of a jax.custom_jvp function uses an array that is not among the "
        "differentiable arguments of that function, but in nondiff_argnums or closed over; jax.grad of the function "
        "under jax.jit fails too\n"
        f"  called at: {__file__}:{function.__code__.co_firstlineno + 1}\n"
        "  remedy: make the array an argument that the rule differentiates, or export the gradient itself: jax.grad of "
        "the function, with jax.jit nowhere within it"
    )
    assert export(jax.grad(function, 1))(scalar, scalar).call(F32(2), F32(3)) == 2


def test_a_rule_that_closes_over_a_constant_has_a_vjp():
    constant = np.arange(3, dtype=F32)

    @jax.custom_jvp
    def weighted_sum(x):
        return (constant * x).sum()

    weighted_sum.defjvp(lambda primals, tangents: (weighted_sum(*primals), (constant * tangents[0]).sum()))
    assert jax.grad(export(weighted_sum)(ShapeDtypeStruct((), F32)).call)(F32(1)) == 3


def test_a_value_that_left_its_trace_is_refused():
    left = []
    jax.jit(lambda x: left.append(x) or x)(F32(1))

    def uses(x):
        return x + left[0]

    with pytest.raises(jax.errors.UnexpectedTracerError, match="'uses' uses a value that JAX made while it traced"):
        export(uses)(ShapeDtypeStruct((), F32))


def test_vjps_of_vjps_exist():
    exported = export(lambda x: jnp.sin(x).sum())(ShapeDtypeStruct(symbolic_shape("b"), F32))
    x = np.linspace(0, 1, 4, dtype=F32)
    found = jax.grad(lambda x: jax.grad(exported.call)(x).sum())(x)
    np.testing.assert_allclose(found, -np.sin(x), rtol=1e-5)


@pytest.mark.parametrize("x64", [True, False])
def test_a_vjp_has_types_of_64_bits_as_the_function_has(x64):
    def function(x):
        return x.astype(float) * jnp.linspace(0, 1, 3) + x.argmax()

    with jax.enable_x64(x64):
        exported = export(function)(jax.ShapeDtypeStruct((3,), jnp.float32))
    with jax.enable_x64(not x64):
        vjp = exported.vjp()
        exported.serialize(vjp_order=1)
    assert [aval.dtype.name for aval in vjp.in_avals] == ["float32", "float64" if x64 else "float32"]
    with jax.enable_x64(x64):
        [found] = vjp.call(np.ones(3, np.float32), np.ones(3, vjp.in_avals[1].dtype))
    np.testing.assert_allclose(found, [0, 0.5, 1])


def test_a_vjp_has_64_bits_where_the_function_computes_them_with_64_bit_types_off():
    def function(x):
        with jax.enable_x64(True):
            return jnp.sin(jnp.asarray(x, jnp.float64)) * 3

    x = np.float32([1, 2, 3])
    exported = export(function)(ShapeDtypeStruct((3,), F32))
    blob = exported.serialize(vjp_order=2)
    for vjp in (exported.vjp(), deserialize(blob).vjp()):
        assert [aval.dtype.name for aval in vjp.in_avals] == ["float32", "float64"]
        with jax.enable_x64(True):
            [found] = vjp.call(x, np.ones(3))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, 3 * np.cos(x), rtol=1e-6)
    found = jax.grad(lambda x: exported.call(x).astype(F32).sum())(x)
    np.testing.assert_allclose(found, 3 * np.cos(x), rtol=1e-6)


ONES, ONE = np.ones(3, F32), np.ones((), F32)
CLOSES_OVER = {
    "an array": lambda x: x * ONES,
    "a part of one": lambda x: x[:2] * ONES[::2],
    "an array without axes": lambda x: x * ONE,
    "a jit within": jax.jit(lambda x: x * ONES),
    "a loop within": lambda x: jax.lax.scan(lambda y, _: (jax.jit(lambda y: y * ONES)(y), None), x, None, length=2)[0],
}


@pytest.mark.parametrize("name", CLOSES_OVER)
def test_value_and_gradients_are_of_the_numbers_at_the_time_of_export(name):
    x, function = np.array([1, 2, 3], F32), CLOSES_OVER[name]
    expected = function(x), jax.grad(lambda x: function(x).sum())(x)
    exported = export(function)(ShapeDtypeStruct((3,), F32))
    try:
        ONES[:] = ONE[...] = 5
        for found in (exported, deserialize(exported.serialize(vjp_order=1))):
            np.testing.assert_array_equal(found.call(x), expected[0])
            np.testing.assert_array_equal(jax.grad(lambda x, call=found.call: call(x).sum())(x), expected[1])
    finally:
        ONES[:] = ONE[...] = 1


def read_only(array):
    array.flags.writeable = False
    return array


def test_arrays_that_nobody_can_write_to_are_not_copied():
    def copied(array):
        traced = jax.jit(lambda x: x * array() * 2).trace(ShapeDtypeStruct((3,), F32))
        return frozen(traced) is not traced

    fixed, held = read_only(np.ones(3, F32)), np.ones(3, F32)
    assert not any(map(copied, (lambda: fixed, lambda: fixed[:], lambda: jnp.ones(3, F32), lambda: np.ones(3, F32))))
    shared = bytearray(12)
    of_others = [lambda: held, lambda: read_only(held[:]), lambda: np.frombuffer(shared, F32)]
    assert all(map(copied, of_others))


def test_a_vjp_is_traced_as_jax_was_set_for_the_function():
    @jax.custom_vjp
    def product(x):
        return x @ x

    product.defvjp(lambda x: (x @ x, x), lambda x, cotangent: (cotangent @ x,))
    with jax.default_matmul_precision("highest"), jax.numpy_rank_promotion("raise"):
        exported = export(product)(ShapeDtypeStruct((3, 3), F32))
    assert "HIGHEST" in exported.vjp().mlir_module()
    assert "HIGHEST" not in export(product)(ShapeDtypeStruct((3, 3), F32)).vjp().mlir_module()


def test_what_guards_or_looks_for_nan_is_not_of_the_function():
    found = []

    @jax.custom_vjp
    def product(x):
        return x * 2

    def seen(x):
        config = jax.config
        found.append((config.jax_debug_nans, config.jax_transfer_guard_host_to_device, config.jax_default_prng_impl))
        return x * 2, None

    product.defvjp(seen, lambda _, cotangent: (cotangent * 2,))
    spec = ShapeDtypeStruct((3,), F32)
    with jax.debug_nans(True), jax.transfer_guard_host_to_device("disallow"), jax.default_prng_impl("rbg"):
        exported = export(product)(spec)
    with jax.debug_infs(True):
        exported.vjp()
    assert found == [(False, None, "rbg")]


def test_an_export_without_vjp_says_how_to_get_one(exported):
    bare = Exported(**{name: getattr(exported, name) for name in exported.__dataclass_fields__ if name != "_make_vjp"})
    assert not bare.has_vjp()
    with pytest.raises(VjpUnavailable, match=r"No VJP is available for 'weighted'"):
        bare.vjp()
    assert bare.has_same_function(exported)


@pytest.mark.parametrize("rule", [lambda cotangent: -cotangent, lambda cotangent: jnp.clip(cotangent, -0.5, 0.5)])
def test_second_derivatives_by_a_rule_that_is_no_derivative_are_those_of_the_whole_function(rule):
    @jax.custom_vjp
    def passed(x):
        return x

    passed.defvjp(lambda x: (x, None), lambda _, cotangent: (rule(cotangent),))

    def loss(x):
        return (passed(x) ** 3).sum()

    x = np.array([0.3, 1.0, 2.0], np.float32)
    spec = ShapeDtypeStruct((3,), F32)
    whole, gradient = export(loss)(spec), export(jax.grad(loss))(spec)
    expected = jax.grad(lambda x: jax.grad(loss)(x).sum())(x)
    for function in (whole.call, deserialize(whole.serialize(vjp_order=2)).call):
        np.testing.assert_array_equal(jax.grad(lambda x, f=function: jax.grad(f)(x).sum())(x), expected)
    for function in (gradient.call, deserialize(gradient.serialize(vjp_order=1)).call, gradient.lift()):
        np.testing.assert_array_equal(jax.grad(lambda x, f=function: f(x).sum())(x), expected)
