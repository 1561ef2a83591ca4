"""Sizes that a program computes with are right, or refused where 32 bits do not hold them."""

import contextlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxtf.serialization import ArgumentMismatch, deserialize, export, lift
from jaxtf.shapepoly import IntegerOperations, evaluate, max_dim, min_dim, symbolic_shape

REFUSED = "The size '{}', which the program computes with, is not an integer of 32 bits"
SIZES = [1, 2, 3, 7, 46340, 46341, 65535, 65536, 70_000, 3_000_000, 2**30, 2**31 - 2**21]


def rows(*names, constraints=(), shape=()):
    sizes = symbolic_shape(", ".join(names), constraints=constraints)
    return [jax.ShapeDtypeStruct((size, *shape), jnp.int8) for size in sizes]


def none_of(*sizes):
    """Arrays without elements, of any size."""
    return [np.zeros((size, 0), np.int8) for size in sizes]


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: jnp.mean(jnp.zeros((x.shape[0], x.shape[0]), jnp.float32) + x), "b^2"),
        (lambda x: x.sum() / x.shape[0] ** 2, "b^2"),
        (lambda x: jnp.float32(x.shape[0] ** 3), "b^3"),
        (lambda x: jnp.float32(x.shape[0] ** 2 // 4), "b^2"),
        (lambda x: jnp.ones(x.shape[0] * 100_000, jnp.int8).sum(), "100000*b"),
        (lambda x: jnp.arange(x.shape[0] ** 2)[-1], "b^2"),
        (lambda x: jnp.pad(x, (0, x.shape[0] * 100_000))[-1], "100001*b"),
        (lambda x: jax.lax.fori_loop(0, x.shape[0] ** 2, lambda i, y: i, 0), "b^2"),
        (
            lambda x: jax.lax.reduce_window(x, np.int8(0), jax.lax.max, (1,), (1,), [(0, x.shape[0] * 100_000)]).max(),
            "100001*b",
        ),
        (lambda x: jax.jit(lambda y: y.shape[0] ** 2 * y)(x).sum(), "b^2"),
        (lambda x: jax.lax.cond(x[0] > 0, lambda y: y.shape[0] ** 2, lambda y: 0, x), "b^2"),
        (lambda x: jax.vmap(lambda y: y * x.shape[0] ** 2)(x)[0], "b^2"),
        (lambda x: jnp.float32(-(x.shape[0] ** 2)), "-b^2"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(function, size):
    exported = deserialize(export(function)(*rows("b")).serialize())
    fitting, large = np.ones(9, np.int8), np.ones(65536, np.int8)
    np.testing.assert_allclose(exported.call(fitting), function(fitting), rtol=1e-6)
    for call in (exported.call, lift(exported)):
        # JAX refuses negative sizes first, in its own words.
        with pytest.raises((ArgumentMismatch, ValueError), match=f"{re.escape(REFUSED.format(size))}|refining"):
            call(large)


def test_what_is_refused_says_the_size_and_what_to_do():
    exported = export(lambda x: x.sum() / x.shape[0] ** 2)(*rows("b"))
    with pytest.raises(ArgumentMismatch, match=r"(?s)'b\^2', which .* of 32 bits for b = 65536\. .*remedy"):
        exported.call(np.ones(65536, np.int8))


@pytest.mark.parametrize("again", [lift, lambda exported: exported.call], ids=["lift", "call"])
def test_what_is_exported_again_for_symbolic_sizes_refuses_it(again):
    function = again(export(lambda x: x.sum() / x.shape[0] ** 2)(*rows("b")))
    exported = export(function)(*rows("c + 1"))
    assert exported.call(np.ones(4, np.int8)) == 0.25
    with pytest.raises(ArgumentMismatch, match=r"is not an integer of 32 bits for [bc] = 6553[56]"):
        exported.call(np.ones(65536, np.int8))


def test_gradients_refuse_it_too():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b"), jnp.float32)
    exported = export(lambda x: (x * x.shape[0] ** 2).sum())(spec)
    with pytest.raises(ArgumentMismatch, match=r"'b\^2', which the program computes with"):
        jax.grad(exported.call)(jnp.ones(65536))


@pytest.mark.parametrize(
    ("function", "constraints"),
    [
        (lambda x: x.shape[0] - 1, ()),
        (lambda x: (70_000 * x.shape[0] + 1) % 100_000, ()),
        (lambda x: x.shape[0] // 2 * 2, ()),
        (lambda x: min_dim(x.shape[0], 8), ()),
        (lambda x: x.shape[0] ** 2, ("b <= 1000",)),
    ],
)
def test_what_always_fits_is_not_checked(function, constraints):
    exported = export(lambda x: jnp.int32(function(x)))(*rows("b", constraints=constraints))
    assert "32 bits" not in exported.mlir_module()


def test_with_types_of_64_bits_larger_sizes_are_computed():
    with jax.enable_x64(True):
        exported = export(lambda x: x.sum(dtype=jnp.float64) / x.shape[0] ** 2)(*rows("b"))
        assert exported.call(np.ones(65536, np.int8)) == 2.0**-16


@pytest.mark.parametrize(
    ("function", "size", "bits"),
    [
        (lambda x: jnp.ones(x.shape[0] ** 2).sum(), "b^2", 32),
        (lambda x: jnp.broadcast_to(x[0] + 1.0, (x.shape[0] ** 2,)).mean(), "b^2", 32),
        (lambda x: jnp.arange(x.shape[0] ** 2).max(), "b^2", 32),
        (lambda x: jnp.array(x.shape[0] ** 4 // 1000), "b^4", 63),
        (lambda x: jnp.float64(1) * x.shape[0] ** 4, "b^4", 63),
    ],
)
def test_types_of_64_bits_have_limits_too(function, size, bits):
    with jax.enable_x64(True):
        exported = export(function)(*rows("b"))
        np.testing.assert_allclose(exported.call(np.ones(9, np.int8)), function(np.ones(9, np.int8)))
        with pytest.raises(ArgumentMismatch) as refused:
            exported.call(np.ones(65537, np.int8))
    assert f"{REFUSED.format(size)[:-7]}{bits} bits for b = 65537. Possible remedy: " in str(refused.value)
    assert "x64" not in str(refused.value)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda b, c: jnp.float32(1) * b, None),
        (lambda b, c: jnp.array(b // 4), None),
        (lambda b, c: jnp.array(b % 1000), None),
        (lambda b, c: jnp.array(max_dim(b, 5)), None),
        (lambda b, c: jnp.array((b + 1) // (c + 1)), None),
        (lambda b, c: jnp.zeros((b, 0)), None),
        (lambda b, c: jnp.array(b - 4 * c), 0),
        (lambda b, c: jnp.array(c // 2), 2**29),
    ],
)
def test_a_variable_that_is_no_size_may_have_more_bits(function, expected):
    spec = jax.ShapeDtypeStruct(symbolic_shape("b - 3*c, c, 0"), jnp.int8)
    exported = export(lambda x: function(x.shape[0] + 3 * x.shape[1], x.shape[1]))(spec)
    x = np.zeros((2**30, 2**30, 0), np.int8)  # b is 2**32
    if expected is None:
        with pytest.raises(ArgumentMismatch, match=r"4294967296|for b = .* 32 bits|32 bits for b ="):
            exported.call(x)
    else:
        assert exported.call(x) == expected


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: x.reshape(x.shape[0] * x.shape[0], 0), "b^2"),
        (lambda x: jnp.tile(x, (4, 1)), "4*b"),
        (lambda x: jnp.zeros((4 * x.shape[0], 0)), "4*b"),
    ],
)
def test_sizes_of_arrays_without_elements_fit_too(function, size):
    exported = export(function)(*rows("b", shape=(0,)))
    [large] = none_of(2**30 + 5)
    # The call compares the sizes of results first.
    with pytest.raises(ArgumentMismatch, match=re.escape(f"the size '{size}' of a result is")):
        exported.call(large)
    with pytest.raises(ArgumentMismatch, match=re.escape(REFUSED.format(size))):
        lift(exported)(large)
    assert exported.call(*none_of(3)).shape == function(*none_of(3)).shape


@pytest.mark.parametrize(
    ("function", "at_2"),
    [
        (lambda b: b * -(2**30), -(2**31)),
        (lambda b: max_dim(b * -(2**30), -(2**31)), -(2**31)),
        (lambda b: -(2**31) // b, -(2**30)),
        (lambda b: -(2**31) % (b + 1), 1),
        (lambda b: b - 2**31, -(2**31) + 2),
        (lambda b: b * -(2**30) - 1, None),
        (lambda b: b * -(2**31), None),
    ],
)
def test_the_least_integer_of_32_bits_is_one(function, at_2):
    exported = export(lambda x: jnp.array(function(x.shape[0])))(*rows("b"))
    if at_2 is not None:
        assert exported.call(np.ones(2, np.int8)) == lift(exported)(np.ones(2, np.int8)) == at_2
    else:
        with pytest.raises(ArgumentMismatch, match=r"is not an integer of 32 bits for b = 2\."):
            exported.call(np.ones(2, np.int8))


def expressions(a, b):
    """Sizes that are computed from two others."""
    numbers = st.one_of(st.integers(-9, 100_000), st.sampled_from([-(2**31), -(2**30), 2**31 - 1]))
    return st.recursive(
        st.sampled_from([a, b]),
        lambda inner: st.one_of(
            st.builds(lambda x, y: x * y, inner, inner),
            st.builds(lambda x, y: x + y, inner, inner),
            st.builds(lambda x, y: x - y, inner, inner),
            st.builds(lambda x, n: n * x, inner, numbers),
            st.builds(lambda x, n: x + n, inner, numbers),
            st.builds(lambda x, n: x // n, inner, st.integers(1, 100_000)),
            st.builds(lambda x, n: x % n, inner, st.integers(1, 100_000)),
            st.builds(max_dim, inner, inner),
            st.builds(min_dim, inner, inner),
        ),
        max_leaves=5,
    )


@pytest.mark.parametrize("is_wide", [False, True])
@given(st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_drawn_sizes_are_right_or_refused(is_wide, data):
    with jax.enable_x64(is_wide):
        # The second argument's rows, and b, which may have more bits than any of the sizes.
        specs = rows("a", data.draw(st.sampled_from(["b", "b - a", "b - 3*a"])), shape=(0,))
        a, b = symbolic_shape("a, b", scope=specs[0].shape[0].scope)
        drawn = data.draw(st.lists(expressions(a, b), min_size=1, max_size=2))
        a, rows_of_second = data.draw(st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)))
        b = rows_of_second + {"b": 0, "-a + b": a, "-3*a + b": 3 * a}[str(specs[1].shape[0])]
        try:
            exported = export(lambda x, y: [jnp.asarray(size) * jnp.asarray(1) for size in drawn])(*specs)
        except OverflowError:  # a number in the text has more bits
            assume(False)
        expected = [evaluate(size, {"a": a, "b": b}, IntegerOperations()) for size in drawn]

        def found():
            return [int(size) for size in exported.call(*none_of(a, rows_of_second))]

        bits = 63 if is_wide else 32
        if all(-(2 ** (bits - 1)) <= size < 2 ** (bits - 1) for size in expected):
            with contextlib.suppress(ArgumentMismatch):  # what another operation takes does not fit
                assert found() == expected
        else:
            with pytest.raises(ArgumentMismatch, match=f"is not an integer of {bits} bits"):
                found()
