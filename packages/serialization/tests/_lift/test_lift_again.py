"""What a lifted function is exported as has, lifted again, the derivatives of the function."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special

from jaxtf.serialization import LiftUnsupported, deserialize, export, lift
from jaxtf.shapepoly import symbolic_args_specs

from . import test_lift_complex_functions as of_complex
from . import test_lift_guarded as of_choices
from .complex_functions_table import DTYPES, NAMES

REALS = np.array([-2.5, -0.5, -1e-3, 1e-3, 0.25, 0.75, 1.0, 2.0, 8.0, 100.0], np.float32)
OF_REALS = {
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "approximate gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "log_sigmoid": jax.nn.log_sigmoid,
    "softplus": jax.nn.softplus,
    "relu6": jax.nn.relu6,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erf_inv": lambda x: lax.erf_inv(x / 128),
    "digamma": lambda x: lax.digamma(jnp.abs(x) + 0.5),
    "lgamma": lambda x: lax.lgamma(jnp.abs(x) + 0.5),
    "i0e": special.i0e,
    "i1e": special.i1e,
    "xlogy": lambda x: special.xlogy(x, 2.0),
    "entr": lambda x: special.entr(jnp.abs(x)),
    "sinc": lambda x: jnp.sinc(x + 0.125),
    "logaddexp": lambda x: jnp.logaddexp(x, 0.0),
    "cbrt": lax.cbrt,
    "asinh": lax.asinh,
    "acosh": lambda x: lax.acosh(jnp.abs(x) + 1.5),
    "atanh": lambda x: lax.atanh(x / 128),
    "asin": lambda x: lax.asin(x / 128),
    "acos": lambda x: lax.acos(x / 128),
    "atan": lax.atan,
    "sinh": lambda x: lax.sinh(x / 4),
    "tan": lax.tan,
    "power": lambda x: jnp.abs(x) ** 1.5,
    "where": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), x),
    "cumsum": lambda x: jnp.cumsum(x) * x,
    "cummax": lambda x: lax.cummax(x) * x,
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x / 8) * x,
    "softmax": lambda x: jax.nn.softmax(x) * x,
    "logsumexp": lambda x: jax.nn.logsumexp(x / 8) * x,
    "max": lambda x: jnp.max(x) * x,
    "sort": lambda x: jnp.sort(-x) * x,
    "scan": lambda x: lax.scan(lambda c, x: (c * 0.5 + jax.nn.silu(x), jax.nn.gelu(c)), jnp.float32(0.5), x)[1],
    "pool": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"),
}


def again(function, *args, **options):
    """The function lifted, exported, and lifted; each from its bytes."""
    first = deserialize(export(jax.jit(function), **options)(*args).serialize()).lift()
    return deserialize(export(jax.jit(first), **options)(*args).serialize()).lift()


def assert_derivatives_are_those_of(function, found, x):
    along = np.full_like(x, 1 + 0.5j) if np.iscomplexobj(x) else np.ones_like(x)
    derivatives = [
        lambda f: jax.jvp(f, (x,), (along,))[1],
        lambda f: jax.grad(lambda x: f(x).real.sum())(x),
        lambda f: jax.vmap(jax.grad(lambda x: (f(x) * (1 + 2j)).real.sum()))(np.stack([x, x])),
    ]
    np.testing.assert_allclose(found(x), function(x), rtol=1e-5, atol=1e-6)
    for derivative in derivatives:
        np.testing.assert_allclose(derivative(found), derivative(function), rtol=1e-4, atol=1e-5)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("dtype", "platforms"), [*((dtype, None) for dtype in DTYPES), ("complex64", ("cpu", "cuda"))])
@pytest.mark.parametrize("name", NAMES.split())
def test_functions_of_complex_numbers_have_their_derivatives(name, dtype, platforms):
    function = getattr(lax, name)
    with jax.enable_x64(dtype == "complex128"):
        z = np.array(of_complex.POINTS, dtype)
        assert_derivatives_are_those_of(function, again(function, z, platforms=platforms), z)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", NAMES.split())
def test_functions_of_batches_and_of_open_sizes_have_their_derivatives(name):
    function, z = getattr(lax, name), np.array(of_complex.POINTS, np.complex64)
    lifted = export(jax.jit(function))(z[:1]).lift()
    of_batch = again(lambda z: jax.vmap(lifted)(z[:, None])[:, 0], z)
    assert_derivatives_are_those_of(function, of_batch, z)
    [open_] = symbolic_args_specs((z,), ("n",))
    assert_derivatives_are_those_of(function, again(function, open_), z)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", OF_REALS)
def test_functions_of_real_numbers_have_their_derivatives(name):
    if name == "lgamma" and jax.__version_info__ >= (0, 12):  # which writes it out by its bits
        with pytest.raises(LiftUnsupported, match="bitcast_convert"):
            jax.jvp(again(OF_REALS[name], REALS), (REALS,), (REALS,))
        return
    assert_derivatives_are_those_of(OF_REALS[name], again(OF_REALS[name], REALS), REALS)


@pytest.mark.slow(1)
@pytest.mark.parametrize("platforms", [None, ("cpu", "cuda")], ids=["one platform", "platforms"])
@pytest.mark.parametrize("name", of_choices.FUNCTIONS)
def test_choices_have_the_derivatives_of_jax(name, platforms):
    function, x = of_choices.FUNCTIONS[name], of_choices.X
    lifted = again(function, of_choices.INDEX, x, platforms=platforms)
    for derivative in ("grad", "jvp", "vmap", "vmap of the index", "hessian"):
        of = of_choices.DERIVATIVES[derivative]
        np.testing.assert_allclose(of(lifted)(x), of(function)(x), rtol=1e-5, atol=1e-6)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [lax.square, lax.sqrt, lax.exp, lax.sin, lax.atan, jax.nn.silu])
def test_defaults_of_attributes_may_be_written_out(function):
    x = REALS if function is jax.nn.silu else np.array(of_complex.POINTS, np.complex64)
    text = export(jax.jit(function))(x).mlir_module()
    written = with_defaults(text)
    assert written != text
    assert_derivatives_are_those_of(function, lift(written), x)


def with_defaults(text):
    """The module with the defaults of comparisons and of accuracies, which JAX leaves out."""
    accurate = "sqrt|exponential|log|log_plus_one|sine|cosine"
    text = re.sub(rf"(stablehlo\.(?:{accurate}) %\w+) :", rf"\1 {{result_accuracy = {DEFAULT_ACCURACY}}} :", text)
    return re.sub(r"(stablehlo\.compare \w+, %\w+, %\w+) :", r"\1, FLOAT :", text)


DEFAULT_ACCURACY = "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"
