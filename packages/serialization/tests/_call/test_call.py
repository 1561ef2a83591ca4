"""Calling an exported function from JAX."""

import gc
import logging
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import ArgumentMismatch, DisabledSafetyCheck, PlatformError, deserialize, export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32


def model(params, x, *, scale=1.0):
    return {"y": jnp.tanh(x @ params["w"] + params["b"]) * scale, "n": jnp.array(x.shape[0])}


PARAMS = {"w": np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3), "b": np.arange(3, dtype=F32)}


@pytest.fixture(scope="module")
def exported():
    params = jax.tree.map(lambda leaf: ShapeDtypeStruct(leaf.shape, leaf.dtype), PARAMS)
    return export(model)(params, ShapeDtypeStruct(symbolic_shape("batch, 4"), F32), scale=ShapeDtypeStruct((), F32))


def images(size):
    return np.linspace(0, 1, size * 4, dtype=F32).reshape(size, 4)


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_call_gives_the_numbers_of_the_function(exported, size, wrap):
    found = wrap(exported.call)(PARAMS, images(size), scale=F32(2))
    expected = jax.jit(model)(PARAMS, images(size), scale=F32(2))
    np.testing.assert_array_equal(found["y"], expected["y"])
    assert int(found["n"]) == size


def test_a_call_can_be_differentiated(exported):
    def loss(call):
        return lambda params, x: (call(params, x, scale=F32(2))["y"] ** 2).sum()

    found = jax.grad(loss(exported.call), argnums=(0, 1))(PARAMS, images(5))
    expected = jax.grad(loss(model), argnums=(0, 1))(PARAMS, images(5))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


def test_a_call_is_used_in_control_flow_and_in_other_exports(exported):
    def twice(x):
        def step(carry, _):
            return carry + exported.call(PARAMS, x, scale=carry)["y"].sum(), None

        return jax.lax.scan(step, F32(1), None, length=2)[0]

    x = images(3)
    first = 1 + model(PARAMS, x)["y"].sum()
    expected = first + model(PARAMS, x, scale=first)["y"].sum()
    np.testing.assert_allclose(twice(x), expected, rtol=1e-5)
    outer = export(twice)(ShapeDtypeStruct(symbolic_shape("n, 4"), F32))
    np.testing.assert_allclose(outer.call(x), expected, rtol=1e-5)


def test_a_structure_that_differs_is_reported_by_its_paths(exported):
    with pytest.raises(ArgumentMismatch) as caught:
        exported.call({"w": PARAMS["w"], "c": 0.0}, images(2), scale=F32(1))
    assert str(caught.value) == (
        "The invocation args and kwargs must have the same pytree structure as when the function 'model' was "
        "exported, but they differ:\n"
        "  args[0]['b']: exported with it, missing in the call\n"
        "  args[0]['c']: in the call, not when exported"
    )


def test_a_list_in_place_of_an_array_is_reported_in_one_line(exported):
    with pytest.raises(ArgumentMismatch) as caught:
        exported.call(PARAMS, images(50).tolist(), scale=F32(1))
    assert str(caught.value).splitlines()[1:] == [
        "  args[1]: exported as one array, and in the call a container of 200 values: "
        "pass numpy.asarray of it, if that is an array"
    ]


def test_of_a_structure_that_differs_in_many_places_some_are_reported(exported):
    with pytest.raises(ArgumentMismatch) as caught:
        exported.call({**PARAMS, **{f"layer{index}": 0.0 for index in range(100)}}, images(2), scale=F32(1))
    lines = str(caught.value).splitlines()
    assert len(lines) == 14
    assert lines[1] == "  args[0]['layer0']: in the call, not when exported"
    assert lines[-1] == "  and 88 more"


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.ones(4, F32), r"Rank mismatch for args\[1\] .*: expected \(batch, 4\) and called with \(4,\)"),
        (np.ones((2, 4), np.int32), r"Dtype mismatch for args\[1\] .*: expected float32 and called with int32"),
        (
            np.ones((2, 5), F32),
            r"Shape mismatch for args\[1\].shape\[1\] .*expected \(batch, 4\) and called with \(2, 5\)",
        ),
    ],
)
def test_an_argument_that_differs_is_reported_by_its_path(exported, x, says):
    with pytest.raises(ArgumentMismatch, match=says):
        exported.call(PARAMS, x, scale=F32(1))


def test_sizes_that_the_symbolic_shapes_do_not_allow_are_reported_as_upstream_words_them():
    square = export(lambda x: x)(ShapeDtypeStruct(symbolic_shape("b, b, 2*d"), F32))
    with pytest.raises(ArgumentMismatch) as caught:
        square.call(np.ones((3, 3, 5), F32))
    text = str(caught.value)
    assert text.startswith(
        "Input shapes do not match the polymorphic shapes specification. "
        "Division had remainder 1 when computing the value of 'd'."
    )
    assert "args[0].shape = (b, b, 2*d)" in text
    assert "'b' = 3 from specification 'b' for dimension args[0].shape[0] (= 3)" in text


def test_a_symbolic_caller_whose_sizes_may_not_fit_is_refused_while_tracing():
    square = export(lambda x: x)(ShapeDtypeStruct(symbolic_shape("b, b"), F32))
    with pytest.raises(ArgumentMismatch, match=r"args\[0\].shape\[1\]"):
        export(square.call)(ShapeDtypeStruct(symbolic_shape("m, n"), F32))
    at_least_two = export(lambda x: x)(ShapeDtypeStruct(symbolic_shape("b + 1"), F32))
    with pytest.raises(ArgumentMismatch, match="Expected value >= 1 for dimension variable 'b'"):
        export(at_least_two.call)(ShapeDtypeStruct(symbolic_shape("n"), F32))
    assert export(at_least_two.call)(ShapeDtypeStruct(symbolic_shape("n + 1"), F32)).call(np.ones(2, F32)).shape == (2,)


def test_a_platform_it_was_not_exported_for_is_refused_unless_allowed():
    spec = ShapeDtypeStruct((2,), F32)
    with pytest.raises(
        PlatformError, match=r"Function 'sin' was exported for platforms '\('tpu',\)' but it is used on '\('cpu',\)'"
    ):
        export(jnp.sin, platforms=["tpu"])(spec).call(np.ones(2, F32))
    anywhere = export(jnp.sin, platforms=["tpu"], disabled_checks=[DisabledSafetyCheck.platform()])(spec)
    np.testing.assert_array_equal(anywhere.call(np.ones(2, F32)), jnp.sin(np.ones(2, F32)))


@pytest.mark.parametrize("callee", [("cpu", "tpu"), ("tpu", "cpu"), ("cuda", "tpu", "cpu")])
@pytest.mark.parametrize("caller", [("cpu",), ("tpu", "cpu"), ("cpu", "tpu")])
def test_the_platform_index_of_a_caller_selects_that_of_the_callee(callee, caller):
    def which(x):
        # int() of the name, by platform: a rule that differs by platform.
        branches = {name: (lambda x, value=value: x + value) for value, name in enumerate(("cpu", "cuda", "tpu"))}
        return jax.lax.platform_dependent(x, **branches)

    spec = ShapeDtypeStruct((), jnp.int32)
    inner = export(which, platforms=callee)(spec)
    outer = export(lambda x: inner.call(x) * 10, platforms=caller)(spec)
    assert int(outer.call(np.int32(5))) == 50


def test_artifacts_that_are_equal_share_one_compiled_program(caplog):
    """Read again and again, as a server does it: only the first call compiles, and the records are freed."""
    x = jnp.arange(3.0)
    blobs = [bytes(export(lambda x: jnp.sin(x) * 3)(x).serialize(vjp_order=order)) for order in (0, 1)]

    def used(blob):
        record = deserialize(blob)
        record.call(x)
        if record.has_vjp():
            jax.grad(lambda x: record.call(x).sum())(x)
        return weakref.ref(record)

    for blob in blobs:
        used(blob)
    caplog.clear()
    with caplog.at_level(logging.WARNING), jax.log_compiles():
        dropped = [used(blob) for blob in blobs * 3]
    gc.collect()
    assert [record.getMessage() for record in caplog.records if "ompil" in record.getMessage()] == []
    assert [reference() for reference in dropped] == [None] * 6


def test_artifacts_that_differ_in_their_vjps_share_nothing():
    def read(factor):
        @jax.custom_vjp
        def doubled(x):
            return x * 2

        doubled.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * factor,))
        return deserialize(export(doubled)(jnp.float32(1)).serialize(vjp_order=1))

    first, second = read(5.0), read(7.0)
    assert [jax.grad(record.call)(jnp.float32(1)) for record in (first, second)] == [5.0, 7.0]


@pytest.mark.parametrize("size", [2**31 - 2**21 + 1, 2**31, 2**32 + 5])
def test_an_axis_longer_than_32_bits_count_is_refused_where_it_is_symbolic(size):
    spec = jax.ShapeDtypeStruct(symbolic_shape("a, 0"), jnp.float32)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            exported = export(lambda x: jnp.array(x.shape[0]))(spec)
            with pytest.raises(ArgumentMismatch, match=rf"args\[0\].shape\[0\] .*called with \({size}, 0\), and what"):
                exported.call(np.zeros((size, 0), np.float32))
