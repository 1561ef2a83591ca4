"""Arguments and results of every dtype, static and weakly typed ones, and rules that differ by platform."""

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax
from jax.extend.core import Primitive
from jax.extend.random import define_prng_impl
from jax.interpreters import mlir

from jaxtf.serialization import ArgumentMismatch, ArtifactError, Aval, ExtendedDtype, export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
NARROW = ["bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bfloat16", "float16",
          "float32", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
          "float8_e5m2fnuz", "float4_e2m1fn"]  # fmt: skip
WIDE = ["int64", "uint64", "float64", "complex128"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def values(name):
    return np.array([0, 1, 0, 1, 1, 0], np.int32).astype(dtype_of(name))


def picks(x, y):
    """Moves and compares, which every dtype has."""
    return jnp.where(jnp.arange(x.shape[0]) % 2 == 0, x, y[::-1]), x.reshape(-1, 2).T


@pytest.mark.parametrize("shape", ["6", "2*n"])
@pytest.mark.parametrize(
    ("name", "x64"), [*((name, False) for name in NARROW), *((name, True) for name in NARROW + WIDE)]
)
def test_every_dtype_passes_unchanged(name, x64, shape):
    with jax.enable_x64(x64):
        spec = ShapeDtypeStruct(symbolic_shape(shape), dtype_of(name))
        exported = export(picks)(spec, spec)
        assert {aval.dtype for aval in (*exported.in_avals, *exported.out_avals)} == {dtype_of(name)}
        x = values(name)
        for found, expected in zip(exported.call(x, x[::-1]), jax.jit(picks)(x, x[::-1]), strict=True):
            assert found.dtype == expected.dtype == dtype_of(name)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_an_export_runs_the_same_whatever_x64_is_when_it_is_called():
    with jax.enable_x64(True):
        exported = export(lambda x: x.sum() + x.shape[0])(ShapeDtypeStruct(symbolic_shape("b"), F32))
    for x64 in (False, True):
        with jax.enable_x64(x64):
            found = exported.call(np.ones(3, F32))
            assert (float(found), found.dtype) == (6, F32)
            assert float(jax.grad(lambda x: exported.call(x).sum())(np.ones(3, F32))[0]) == 1


@pytest.mark.slow(1)
@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_random_keys_are_arguments_and_results(implementation, wrap):
    def step(keys):
        return jax.vmap(jax.random.split)(keys)[:, 0], jax.vmap(lambda key: jax.random.bits(key, (2,)))(keys)

    keys = jax.random.split(jax.random.key(3, impl=implementation), 4)
    exported = export(step)(ShapeDtypeStruct((4,), keys.dtype))
    assert exported.in_avals[0].dtype == ExtendedDtype(str(keys.dtype))
    found, expected = wrap(exported.call)(keys), jax.jit(step)(keys)
    assert found[0].dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(found[0]), jax.random.key_data(expected[0]))
    np.testing.assert_array_equal(found[1], expected[1])
    again = export(exported.call)(*exported.in_avals)
    np.testing.assert_array_equal(again.call(keys)[1], expected[1])


def test_a_key_of_another_implementation_is_refused():
    exported = export(jax.random.bits)(jax.random.key(0))
    with pytest.raises(
        ValueError, match=r"Dtype mismatch for args\[0\] .*: expected key<fry> and called with key<rbg>"
    ):
        exported.call(jax.random.key(0, impl="rbg"))


def test_functions_of_keys_and_numbers_are_differentiated_in_the_numbers():
    def noisy(key, x):
        return x * jax.random.normal(key, x.shape)

    key, x = jax.random.key(1), np.ones(4, F32)
    call = export(noisy)(key, x).call
    np.testing.assert_allclose(jax.grad(lambda x: call(key, x).sum())(x), jax.random.normal(key, (4,)), rtol=1e-6)
    found = jax.jvp(lambda x: call(key, x), (x,), (x,))[1]
    np.testing.assert_allclose(found, jax.random.normal(key, (4,)), rtol=1e-6)


def test_weak_types_are_recorded_and_kept():
    exported = export(lambda x: (x + 1, jnp.zeros((2,)) + x))(2.0)
    assert exported.in_avals == (Aval((), np.dtype(F32), weak_type=True),)
    assert [aval.weak_type for aval in exported.out_avals] == [True, False]
    found = exported.call(3.0)
    assert [jax.typeof(each).weak_type for each in found] == [True, False]
    assert (found[0] + jnp.bfloat16(1)).dtype == jnp.bfloat16


def test_static_arguments_by_position_and_name_are_part_of_the_function():
    @functools.partial(jax.jit, static_argnums=(1,), static_argnames=("mode", "n"), keep_unused=True)
    def scaled(x, n, unused, *, mode="up"):
        return x * n if mode == "up" else x / n

    exported = export(scaled)(ShapeDtypeStruct((2,), F32), 4, ShapeDtypeStruct((3,), F32), mode="down")
    assert [str(aval) for aval in exported.in_avals] == ["float32[2]", "float32[3]"]
    assert exported.module_kept_var_idx == (0, 1)
    np.testing.assert_array_equal(exported.call(np.ones(2, F32), np.ones(3, F32)), [0.25, 0.25])
    with pytest.raises(ValueError, match=r"args\[2\]: in the call, not when exported"):
        exported.call(np.ones(2, F32), 4, np.ones(3, F32))


def test_keyword_arguments_are_named_in_messages():
    exported = export(lambda x, *, mask: x * mask)(ShapeDtypeStruct((2,), F32), mask=ShapeDtypeStruct((2,), F32))
    np.testing.assert_array_equal(exported.call(np.ones(2, F32), mask=np.ones(2, F32)), [1, 1])
    with pytest.raises(ValueError, match=r"kwargs\['mask'\]: exported with it, missing in the call"):
        exported.call(np.ones(2, F32))
    with pytest.raises(ValueError, match=r"Dtype mismatch for kwargs\['mask'\] .*float32 and called with int32"):
        exported.call(np.ones(2, F32), mask=np.ones(2, np.int32))


@pytest.mark.parametrize("inline", [False, True])
def test_an_inlined_jit_is_exported(inline):
    inner = jax.jit(lambda x: jnp.sin(x) * 2, inline=inline)
    exported = export(jax.jit(lambda x: inner(x) + inner(x), inline=inline))(ShapeDtypeStruct((3,), F32))
    x = np.arange(3, dtype=F32)
    np.testing.assert_allclose(exported.call(x), np.sin(x) * 4, rtol=1e-6)


platform_number_p = Primitive("platform_number")
platform_number_p.def_impl(lambda x: x)
platform_number_p.def_abstract_eval(lambda x: x)
for _number, _platform in enumerate(("cpu", "cuda", "rocm", "tpu"), 1):
    mlir.register_lowering(
        platform_number_p, mlir.lower_fun(lambda x, _number=_number: x * 0 + _number, multiple_results=False), _platform
    )


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu"), ("cuda", "rocm", "cpu", "tpu")])
def test_a_lowering_of_ones_own_by_platform_is_chosen_at_run_time(platforms):
    def which(x):
        own = platform_number_p.bind(x)
        return own, lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)

    exported = export(which, platforms=platforms)(ShapeDtypeStruct(symbolic_shape("b"), F32))
    number, plus = exported.call(np.ones(2, F32))
    np.testing.assert_array_equal(number, [1, 1])
    np.testing.assert_array_equal(plus, [2, 2])


def test_calling_conventions_9_and_10_run_equal():
    def fun(x):
        return jnp.cumsum(x) * x.shape[0]

    spec, x = ShapeDtypeStruct(symbolic_shape("b"), F32), np.arange(5, dtype=F32)
    nine, ten = (export(fun, calling_convention_version=version)(spec) for version in (9, 10))
    np.testing.assert_array_equal(nine.call(x), ten.call(x))
    assert (nine.calling_convention_version, ten.calling_convention_version) == (9, 10)
    assert nine.vjp().calling_convention_version == 9


def test_the_calling_convention_version_comes_from_the_environment():
    program = "import jax, jaxtf.serialization as s; print(s.export(abs)(jax.numpy.ones(3)).calling_convention_version)"
    environment = {**os.environ, "JAX_EXPORT_CALLING_CONVENTION_VERSION": "9", "JAX_PLATFORMS": "cpu"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.strip() == "9"


@pytest.mark.parametrize("tag", ["own", "fry", "rbg"])
def test_keys_of_an_implementation_of_the_user_are_refused_whatever_their_name(tag):
    """JAX's threefry has the tag "fry"; the words of such keys mean something else."""
    own = define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: jnp.stack([seed.astype(jnp.uint32), jnp.uint32(0)]),
        split=lambda key, shape: jnp.broadcast_to(key, (*shape, 2)),
        random_bits=lambda key, width, shape: jnp.full(shape, key[0], jnp.uint32),
        fold_in=lambda key, data: key + data,
        name="own",
        tag=tag,
    )
    key = jax.random.key(5, impl=own)

    def draw(key):
        return jax.random.bits(key, (2,))

    for function, argument in (
        (draw, key),
        (lambda words: jax.random.wrap_key_data(words, impl=own), np.zeros(2, "u4")),
    ):
        with pytest.raises(ArtifactError, match="has no dtype"):
            export(function)(argument)
    exported = export(draw)(jax.random.key(5))
    np.testing.assert_array_equal(exported.call(jax.random.key(7)), draw(jax.random.key(7)))
    for called in (exported.call, exported.lift()):
        with pytest.raises(ArgumentMismatch, match="expected key<fry> and called with key<"):
            called(key)
