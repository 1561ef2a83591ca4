"""Slices with steps are NumPy's, of arrays so large, or so open, that they become reshapes, and of small ones."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jaxtf.convert import convert
from jaxtf.convert._graph.strided import strided

from .graph_mode import drawn

DTYPES = (tf.float32, tf.bfloat16, tf.int8, tf.uint64, tf.bool, tf.complex128)


@st.composite
def slices(draw):
    """A shape, one slice for each of its dimensions, which sizes are open, and which ends are computed from them."""
    rank = draw(st.integers(1, 4))
    sizes = st.sampled_from([0, 1, 2, 3, 5, 8, 17])
    shape = [draw(sizes) for _ in range(rank)]
    if draw(st.booleans()):
        shape[draw(st.integers(0, rank - 1))] = draw(st.sampled_from([4096, 4097, 4099]))
    parts = []
    for size in shape:
        start = draw(st.integers(0, min(size, 9)))
        stop = draw(st.integers(start, size))
        parts.append(slice(start, stop, draw(st.integers(1, 5))))
    is_open, is_computed = ([draw(st.integers(0, 3)) == 0 for _ in shape] for _ in range(2))
    return shape, parts, is_open, is_computed, draw(st.sampled_from(DTYPES)), draw(st.booleans())


def with_computed_ends(shape, parts, is_computed):
    def taken(x):
        sizes = tf.shape(x)
        ends = (sizes[i] - (shape[i] - part.stop) if is_computed[i] else part.stop for i, part in enumerate(parts))
        return strided(x, [slice(part.start, end, part.step) for part, end in zip(parts, ends, strict=True)])

    return taken


def counted(shape, dtype):
    whole = np.arange(np.prod(shape)).reshape(shape) * 7 % 251
    return tf.cast(whole % 2 if dtype == tf.bool else whole % 16, dtype)


@pytest.mark.slow
@given(slices())
@drawn(150)
def test_slices_with_steps_are_those_of_numpy(case):
    shape, parts, is_open, is_computed, dtype, is_eager = case
    taken, x = with_computed_ends(shape, parts, is_computed), counted(shape, dtype)
    if is_eager:
        found = taken(x)
    else:
        spec = tf.TensorSpec([None if o else n for o, n in zip(is_open, shape, strict=True)], dtype)
        found = tf.function(taken, [spec], autograph=False)(x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), x.numpy()[tuple(parts)])


@pytest.mark.slow
@given(slices().filter(lambda case: all(part.start < part.stop for part in case[1])), st.integers(0, 3), st.booleans())
@drawn(15)
def test_compiled_of_a_size_that_depends_on_values(case, axis, is_traced_before):
    shape, parts, is_open, is_computed, dtype, _ = case
    axis %= len(shape)
    is_computed[axis], parts[axis] = True, slice(parts[axis].start, parts[axis].stop)
    taken, x = with_computed_ends(shape, parts, is_computed), counted(shape, dtype)
    if is_traced_before:
        sizes = [None if o or i == axis else n for i, (o, n) in enumerate(zip(is_open, shape, strict=True))]
        taken = tf.function(taken, [tf.TensorSpec(sizes, dtype)], autograph=False).get_concrete_function()
    more = np.concatenate([x, x], axis)
    run = tf.function(lambda x, mask: taken(tf.boolean_mask(x, mask, axis=axis)), autograph=False, jit_compile=True)
    found = run(more, np.arange(2 * shape[axis]) < shape[axis])
    np.testing.assert_array_equal(found.numpy(), x.numpy()[tuple(parts)])


@pytest.mark.parametrize("shape", [[8, 1000, 64], [8, 999, 61], [None, None, 64]])
@pytest.mark.parametrize("compiled", [False, True])
def test_of_many_elements_none_is_taken_by_a_step_but_by_xla(compiled, shape):
    function = tf.function(
        lambda x: strided(x, [slice(0, 8), slice(0, tf.shape(x)[1], 2), slice(3, 60, 8)]), jit_compile=compiled
    )
    graph = function.get_concrete_function(tf.TensorSpec(shape, tf.float32)).graph
    steps = [
        tf.get_static_value(operation.inputs[3])
        for operation in graph.get_operations()
        if operation.type == "StridedSlice"
    ]
    assert any((step > 1).any() for step in steps) == compiled


def test_whole_dimensions_emit_nothing_and_small_arrays_one_operation():
    x = tf.zeros([4, 6])
    assert strided(x, [slice(0, 4), slice(None)]) is x
    function = tf.function(lambda x: strided(x, [slice(0, 4, 2), slice(1, 6, 3)]))
    kinds = [operation.type for operation in function.get_concrete_function(x).graph.get_operations()]
    assert "StridedSlice" in kinds
    assert "Reshape" not in kinds


def test_nine_dimensions():
    x = np.arange(2**9 * 16).reshape([2] * 8 + [32])
    found = tf.function(lambda x: strided(x, [slice(0, 2, 2)] * 8 + [slice(1, 32, 3)]))(x)
    np.testing.assert_array_equal(found, x[(slice(0, 2, 2),) * 8 + (slice(1, 32, 3),)])


@pytest.mark.parametrize("shapes", [None, "(b, 512, n)", "(b, 512, 12)", "(3, n, 12)", "(b, n, 12)", "(b, n, c)"])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_slices_of_programs_with_their_derivatives(mode, shapes):
    x = np.cos(np.arange(3 * 512 * 12, dtype=np.float32)).reshape(3, 512, 12)

    def function(x):
        return lax.slice_in_dim(x, 0, x.shape[1], 3, 1) ** 2

    converted = convert(function, polymorphic_shapes=shapes, native_serialization=False)
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        found = converted(given)
    value, pull = jax.vjp(function, x)
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(tape.gradient(found, given), pull(np.ones_like(value))[0])


def test_vectorized_map_of_a_slice():
    x = tf.reshape(tf.range(3.0 * 5000), [3, 5000])
    converted = convert(lambda x: x[1::3], native_serialization=False)
    found = tf.function(lambda x: tf.vectorized_map(converted, x))(x)
    np.testing.assert_array_equal(found, x[:, 1::3])
