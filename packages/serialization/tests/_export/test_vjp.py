"""The exported VJP."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import DisabledSafetyCheck, VjpUnavailable, export
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


def test_vjps_of_vjps_exist():
    exported = export(lambda x: jnp.sin(x).sum())(ShapeDtypeStruct(symbolic_shape("b"), F32))
    x = np.linspace(0, 1, 4, dtype=F32)
    found = jax.grad(lambda x: jax.grad(exported.call)(x).sum())(x)
    np.testing.assert_allclose(found, -np.sin(x), rtol=1e-5)


def test_an_export_without_vjp_says_how_to_get_one(exported):
    bare = Exported(**{name: getattr(exported, name) for name in exported.__dataclass_fields__ if name != "_make_vjp"})
    assert not bare.has_vjp()
    with pytest.raises(VjpUnavailable, match=r"No VJP is available for 'weighted'"):
        bare.vjp()
    assert bare == exported
