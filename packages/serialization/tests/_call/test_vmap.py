"""`jax.vmap` of calls; `jax.vmap` of the function decides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
X = np.linspace(0, 1, 24, dtype=F32).reshape(3, 2, 4)
W = np.linspace(-1, 1, 24, dtype=F32).reshape(3, 4, 2)


def across(x, w):
    """Reduces over its first axis: a batch must not be folded into that."""
    return jnp.tanh(x / x.sum(axis=0)) @ w, x.sum(axis=0)


@pytest.fixture(scope="module", params=["b, 4", "2, 4"])
def exported(request):
    return export(across)(ShapeDtypeStruct(symbolic_shape(request.param), F32), ShapeDtypeStruct((4, 2), F32))


def assert_close(found, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, expected)


@pytest.mark.parametrize(
    ("in_axes", "out_axes"), [(0, 0), ((0, None), 0), ((None, 0), 0), ((2, 1), (1, 0)), ((-1, None), -1), ({}, 0)]
)
def test_the_batch_may_be_anywhere(exported, in_axes, out_axes):
    if in_axes == {}:
        in_axes = (0, 0)
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes, in_axes)
    x = X[0] if axes[0] is None else np.moveaxis(X, 0, axes[0])
    w = W[0] if axes[1] is None else np.moveaxis(W, 0, axes[1])
    for wrap in (lambda f: f, jax.jit):
        found = wrap(jax.vmap(exported.call, in_axes, out_axes))(x, w)
        assert_close(found, jax.vmap(across, in_axes, out_axes)(x, w))


@pytest.mark.parametrize(
    "use",
    [
        lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(X, W),
        lambda f: jax.vmap(jax.grad(lambda x, w: f(x, w)[0].sum(), argnums=(0, 1)))(X, W),
        lambda f: jax.grad(lambda x, w: jax.vmap(f)(x, w)[0].sum(), argnums=(0, 1))(X, W),
        lambda f: jax.jvp(jax.vmap(f), (X, W), (X, W)),
        lambda f: jax.vmap(lambda x, w: jax.jvp(f, (x, w), (x, w)))(X, W),
        lambda f: jax.jacfwd(lambda x: jax.vmap(f)(x, W)[0])(X),
        lambda f: jax.jvp(jax.vmap(f, (0, None)), (X, W[0]), (X, W[0])),
        lambda f: jax.grad(lambda w: jax.vmap(f, (0, None))(X, w)[0].sum())(W[0]),
        lambda f: jax.vmap(jax.hessian(lambda x: f(x, W[0])[0].sum()))(X),
        lambda f: jax.lax.map(lambda x: f(x, W[0]), X, batch_size=2),
    ],
    ids=["nested", "of grad", "in grad", "in jvp", "of jvp", "in jacfwd", "in jvp, shared", "in grad, shared",
         "of hessian", "batches"],
)  # fmt: skip
def test_vmap_and_derivatives_compose(exported, use):
    assert_close(use(exported.call), use(across))


def test_a_batch_of_none_gives_empty_results_as_in_jax(exported):
    found = jax.vmap(exported.call)(X[:0], W[:0])
    expected = jax.vmap(across)(X[:0], W[:0])
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in expected]
    assert_close(found, expected)


def test_what_does_not_fit_is_reported_of_one_element(exported):
    with pytest.raises(ValueError, match=r"Rank mismatch for args\[0\] .* called with \(2,\)"):
        jax.vmap(exported.call)(X[:, :, 0], W)


def test_a_batch_may_have_a_symbolic_size_in_another_export(exported):
    n = symbolic_shape("n")[0]
    outer = export(jax.vmap(exported.call))(ShapeDtypeStruct((n, 2, 4), F32), ShapeDtypeStruct((n, 4, 2), F32))
    assert [str(aval) for aval in outer.out_avals] == ["float32[n,2,2]", "float32[n,4]"]
    assert_close(outer.call(X, W), jax.vmap(across)(X, W))
    loss = lambda call: lambda x, w: call(x, w)[0].sum()  # noqa: E731
    assert_close(jax.grad(loss(outer.call), argnums=(0, 1))(X, W), jax.grad(loss(jax.vmap(across)), (0, 1))(X, W))


def test_sizes_of_the_batch_and_of_its_elements_may_both_be_symbolic():
    inner = export(lambda x: x / x.sum())(ShapeDtypeStruct(symbolic_shape("b"), F32))
    outer = export(jax.vmap(jax.vmap(inner.call)))(ShapeDtypeStruct(symbolic_shape("m, n, k"), F32))
    np.testing.assert_allclose(outer.call(X), X / X.sum(axis=-1, keepdims=True), rtol=1e-6)


def test_random_keys_and_integers_are_batched():
    def draw(key, i):
        return jax.random.uniform(jax.random.fold_in(key, i), (2,)), jax.random.split(key)[0], i + 1

    call = export(draw)(jax.random.key(0), ShapeDtypeStruct((), np.int32)).call
    keys, counts = jax.random.split(jax.random.key(3), 5), np.arange(5, dtype=np.int32)
    found, expected = jax.vmap(call)(keys, counts), jax.vmap(draw)(keys, counts)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(jax.random.key_data(found[1]), jax.random.key_data(expected[1]))


def test_cotangents_of_integers_are_batched_though_they_hold_nothing():
    exported = export(lambda x, i: (x * i, i))(ShapeDtypeStruct((4,), F32), ShapeDtypeStruct((4,), np.int32))
    x, i = X[:, 0], np.arange(12, dtype=np.int32).reshape(3, 4)
    none = np.zeros((3, 4), jax.dtypes.float0)
    found = jax.vmap(exported.vjp().call)(x, i, x, none)
    np.testing.assert_array_equal(found[0], x * i.astype(F32))
    assert (found[1].dtype, found[1].shape) == (none.dtype, none.shape)


def test_the_name_and_size_of_the_axis_are_accepted(exported):
    found = jax.vmap(exported.call, axis_name="batch", axis_size=3, spmd_axis_name="devices")(X, W)
    assert_close(found, jax.vmap(across)(X, W))
    with_index = jax.vmap(lambda x, w: exported.call(x, w)[0] + jax.lax.axis_index("batch"), axis_name="batch")
    assert_close(with_index(X, W), jax.vmap(across)(X, W)[0] + np.arange(3)[:, None, None])


def test_a_branch_chosen_per_element_is_right():
    call = export(jnp.sin)(ShapeDtypeStruct((), F32)).call
    x = np.linspace(-1, 1, 5, dtype=F32)
    found = jax.vmap(lambda x: jax.lax.cond(x > 0, call, jnp.negative, x))(x)
    np.testing.assert_allclose(found, np.where(x > 0, np.sin(x), -x), rtol=1e-6)
