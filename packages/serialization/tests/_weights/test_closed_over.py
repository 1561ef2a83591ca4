"""`export_model` of arrays in bodies of operations: each is taken out everywhere, or refused in words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax

from jaxtf.serialization import SerializationError, describe, export_model, load
from jaxtf.shapepoly import symbolic_shape

SIZE = 16
LEAST_BYTES = 4 * SIZE * SIZE
SPEC = jax.ShapeDtypeStruct((2, SIZE), jnp.float32)
OPEN = jax.ShapeDtypeStruct(symbolic_shape(f"b, {SIZE}"), jnp.float32)
KEY = jax.random.key(0)


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


X = array(0, 2, SIZE)
BIAS = array(1, SIZE)  # small, of NumPy
SCALE = jnp.float32(0.5)

# From a function of an array to one that computes as much within an operation.
OPERATIONS = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "checkpoint with a policy": lambda f: jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable),
    "scan": lambda f: lambda x: lax.scan(lambda carry, _: (f(carry), None), x, None, length=2)[0],
    "scan of slices": lambda f: (
        lambda x: lax.scan(
            lambda carry, number: (f(carry) + number, f(carry)), x, jnp.arange(3.0), reverse=True, unroll=2
        )[1][-1]
    ),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda number, value: f(value) + number, x),
    "while": lambda f: (
        lambda x: lax.while_loop(
            lambda state: (jnp.sum(f(state[1])) < 1e9) & (state[0] < 2.0),
            lambda state: (state[0] + 1.0, f(state[1]) * state[0]),
            (0.0, x),
        )[1]
    ),
    "cond": lambda f: lambda x: lax.cond(jnp.sum(x) > 0, f, lambda x: x * BIAS, x),
    "switch": lambda f: (
        lambda x: lax.switch(jnp.sum(x).astype(int) % 3, [f, lambda x: x * BIAS, lambda x: f(x) + SCALE], x)
    ),
    "platform_dependent": lambda f: lambda x: lax.platform_dependent(x, cpu=f, default=lambda x: x),
    "map": lambda f: lambda x: lax.map(f, x) if x.ndim == 2 else f(x),
    "vmap": lambda f: lambda x: jax.vmap(f)(x) if x.ndim == 2 else f(x),
    "gradient": lambda f: jax.grad(lambda x: jnp.sum(jax.checkpoint(f)(x))),
}


def layer(kernel):
    return jax.jit(lambda x: jnp.tanh(x @ kernel + BIAS) * SCALE + 0.1 * jax.random.uniform(KEY))


def results(function, kernels, has_vjp):
    """The value, and the gradients of its sum by the kernels and by the input."""
    if not has_vjp:
        return jax.jit(function)(kernels, X), None

    def with_total(kernels, x):
        value = function(kernels, x)
        return jnp.sum(value), value

    gradients, value = jax.jit(jax.grad(with_total, argnums=(0, 1), has_aux=True))(kernels, X)
    return value, gradients


def check(program_of, kernels, spec=SPEC, has_vjp=True):
    """Compares with JAX a model whose weights were replaced: values, and gradients by the input and by the weights."""
    kernels = tuple(map(jnp.asarray, kernels))
    others = tuple(kernel[::-1] + 0.25 for kernel in kernels)
    model = export_model(program_of(*kernels), least_bytes=LEAST_BYTES)(spec)
    number_of = {name: next(i for i, k in enumerate(kernels) if k is array) for name, array in model.params.items()}
    changed = model.with_params({name: others[number] for name, number in number_of.items()})
    found = results(changed.exported.call, changed.params, has_vjp)
    expected = results(lambda ks, x: program_of(*ks)(x), others, has_vjp)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    if has_vjp:
        np.testing.assert_allclose(found[1][1], expected[1][1], rtol=1e-3, atol=1e-4)
        for name, number in number_of.items():
            np.testing.assert_allclose(found[1][0][name], expected[1][0][number], rtol=1e-3, atol=1e-4)
    return model


@pytest.mark.parametrize("spec", [SPEC, OPEN], ids=["static", "symbolic"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_array_within_an_operation_and_beside_it_is_one_weight(operation, spec):
    def program_of(kernel):
        within = OPERATIONS[operation](layer(kernel))
        return lambda x: within(x) + x @ kernel

    model = check(program_of, [array(2, SIZE, SIZE)], spec, has_vjp=operation != "while")
    assert len(model.params) == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_array_within_an_operation_alone_is_taken_out(operation, tmp_path):
    model = check(lambda kernel: OPERATIONS[operation](layer(kernel)), [array(2, SIZE, SIZE)], has_vjp=False)
    description = model.save(tmp_path / "m", vjp_order=int(operation != "while"))
    assert description.weights.parameters == SIZE * SIZE
    np.testing.assert_array_equal(load(tmp_path / "m").call(X), model.call(X))
    assert describe(tmp_path / "m").weights.parameters == SIZE * SIZE


def added(one, other):
    return lambda x: one(x) + other(x)


@st.composite
def programs(draw, operations):
    """A function of two kernels that gives a program, and the names of the operations in it."""
    names = draw(st.lists(st.sampled_from(sorted(operations)), min_size=2, max_size=3))
    assume("while" not in names or "gradient" not in names)
    is_within = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    beside = draw(st.sampled_from(["", "first", "both"]))

    def program_of(first, second):
        f = layer(first)
        for name, holds in zip(names, is_within, strict=True):
            inner = operations[name](f)
            kernel = jax.jit(lambda x: x @ second)
            f = added(inner, kernel) if holds else inner
        used = {"": [], "first": [first], "both": [first, second]}[beside]
        return lambda x: f(x) + sum(x @ kernel for kernel in used)

    return program_of, names


@settings(max_examples=12, deadline=None)
@given(programs(OPERATIONS))
def test_nested_operations_compute_as_in_jax_when_weights_are_replaced(drawn):
    program_of, names = drawn
    check(program_of, [array(2, SIZE, SIZE), array(3, SIZE, SIZE)], has_vjp="while" not in names)


def solved(kernel):
    multiply = jax.jit(lambda x: x @ kernel)
    return lambda x: lax.custom_linear_solve(lambda x: x * 2.0, x, lambda _, b: multiply(b), symmetric=True)


def composed(kernel):
    return lax.composite(jax.jit(lambda x: x @ kernel), "jaxtf.test")


@pytest.mark.parametrize(("operation", "program_of"), [("custom_linear_solve", solved), ("composite", composed)])
def test_an_array_in_an_operation_that_is_not_rewritten_is_refused_with_its_name(operation, program_of):
    kernel = jnp.asarray(array(2, SIZE, SIZE))
    within = program_of(kernel)
    for program in (within, lambda x: within(x) + x @ kernel):
        with pytest.raises(SerializationError) as error:
            export_model(program, least_bytes=LEAST_BYTES)(SPEC)
        message = str(error.value)
        assert "closes over an array within an operation out of which export_model takes none" in message
        assert f"within: {operation} (float32[16,16])" in message
        assert "remedy: pass the array to the function within that operation as an argument" in message
