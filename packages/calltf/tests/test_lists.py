"""Lists of tensors, which TensorFlow's compiler keeps as one array of all that there is room for."""

import random

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import CompilationError, call_tf

_X = np.array([3.0, 5.0, 7.0], np.float32)
_SCALAR = np.zeros(0, np.int32)


def _empty(room=5, dtype=tf.float32):
    return tf.raw_ops.EmptyTensorList(element_shape=_SCALAR, max_num_elements=room, element_dtype=dtype)


def _push(found, *items):
    for item in items:
        found = tf.raw_ops.TensorListPushBack(input_handle=found, tensor=item)
    return found


def _pop(found, dtype=tf.float32):
    return tf.raw_ops.TensorListPopBack(input_handle=found, element_shape=_SCALAR, element_dtype=dtype)


def _reserved(count):
    return tf.raw_ops.TensorListReserve(element_shape=_SCALAR, num_elements=count, element_dtype=tf.float32)


def _of_rows(x):
    return tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=_SCALAR)


def _set(found, place, item):
    return tf.raw_ops.TensorListSetItem(input_handle=found, index=place, item=item)


def _get(found, place):
    return tf.raw_ops.TensorListGetItem(
        input_handle=found, index=place, element_shape=_SCALAR, element_dtype=tf.float32
    )


def _stack(found):
    return tf.raw_ops.TensorListStack(input_handle=found, element_shape=_SCALAR, element_dtype=tf.float32)


def _length(found):
    return tf.raw_ops.TensorListLength(input_handle=found)


def _pushed_in_a_loop(x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, found: (i + 1, _push(found, x[i])), (0, _empty()))[1]


def _pushed_in_a_branch(x):
    return tf.cond(x[0] > 0, lambda: _push(_empty(), x[0]), _empty)


def _pushed_in_a_call(x):
    return tf.function(lambda x: _push(_empty(), x[0], x[1]))(x)


def _list_of_a_list(x):
    return _pop(_push(_empty(2, tf.variant), _push(_empty(), x[0])), tf.variant)[1]


@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (lambda x: _stack(_push(_empty(), x[0], x[1])), "TensorListStack"),
        (lambda x: _length(_push(_empty(), x[0], x[1])), "TensorListLength"),
        (lambda x: _length(_pop(_push(_empty(), x[0], x[1]))[0]), "TensorListLength"),
        (lambda x: _stack(_push(_of_rows(x), x[0])), "TensorListPushBack"),
        (lambda x: _stack(_pop(_of_rows(x))[0]), "TensorListPopBack"),
        (lambda x: _length(_push(_reserved(2), x[0])), "TensorListPushBack"),
        (lambda x: _stack(_set(_push(_empty(), x[0]), 0, x[1])), "TensorListSetItem, TensorListStack"),
        (lambda x: _stack(_pushed_in_a_loop(x)), "TensorListStack"),
        (lambda x: _length(_pushed_in_a_branch(x)), "TensorListLength"),
        (lambda x: _stack(_pushed_in_a_call(x)), "TensorListStack"),
        (lambda x: _stack(_list_of_a_list(x)), "TensorListStack"),
        (lambda x: tf.cond(x[0] > 0, lambda: _length(_push(_empty(), x[0])), lambda: 0), "TensorListLength"),
        (lambda x: _stack(tf.zeros_like(_push(_empty(), x[0]))), "TensorListStack"),
    ],
)
def test_what_asks_how_many_elements_there_are_is_refused(function, operation):
    """Lists have all that there is room for where they are compiled."""
    np.testing.assert_array_equal(call_tf(function)(_X), tf.function(function)(_X))
    with pytest.raises(CompilationError, match=rf"(?s): {operation} would have other elements .*remedy"):
        jax.jit(call_tf(function))(_X)


def test_elements_that_are_appended_and_taken_are_compiled():
    def function(x):
        found, last = _pop(_push(_empty(), x[0], x[1] * x[2]))
        return _pop(found)[1] * last, _get(_push(_empty(1), x[0]), 0), tf.shape(_stack(_of_rows(x)))[0]

    for one, other in zip(jax.jit(call_tf(function))(_X), function(_X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_gradients_of_loops_that_keep_lists_are_compiled():
    """They append, take and ask for lengths: of lists of lists too."""

    def gradient(function):
        def of(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                result = function(x)
            return tape.gradient(result, x)

        return of

    def rows(x):
        return tf.map_fn(lambda row: tf.map_fn(lambda x: tf.sin(x) * x, row), x)

    def turns(x):
        return tf.while_loop(
            lambda i, _: i < 2, lambda i, a: (i + 1, tf.sin(a) * x[i]), (0, x[0]), maximum_iterations=6
        )[1]

    for function in (gradient(rows), gradient(turns), gradient(gradient(turns))):
        x = tf.reshape(tf.range(6.0), (2, 3))
        np.testing.assert_allclose(jax.jit(call_tf(function))(x.numpy()), tf.function(function)(x), rtol=1e-5)


def _drawn(draw, x):
    """A function that keeps lists: what it returns, which is of TensorFlow's errors where it asks for what is not."""
    kinds = draw.choices(["empty", "reserved", "rows"], k=2)
    makes = {"empty": _empty, "reserved": lambda: _reserved(3), "rows": lambda: _of_rows(x)}
    lists, results = [makes[kind]() for kind in kinds], []
    for _ in range(draw.randrange(2, 7)):
        k = draw.randrange(2)
        operation = draw.choice(["push", "push", "pop", "set", "get", "length", "stack", "choose"])
        if operation == "push":
            lists[k] = _push(lists[k], x[draw.randrange(3)] * draw.randrange(1, 9))
        elif operation == "pop":
            lists[k], item = _pop(lists[k])
            results.append(item)
        elif operation == "set":
            lists[k] = _set(lists[k], draw.randrange(3), x[draw.randrange(3)] + 1)
        elif operation == "get":
            results.append(_get(lists[k], draw.randrange(3)))
        elif operation == "choose":
            one, other = lists
            lists[k] = tf.cond(x[0] > draw.choice([0, 9]), lambda one=one: one, lambda other=other: other)
        else:
            results.append({"length": _length, "stack": _stack}[operation](lists[k]))
    return results or [_length(lists[0])]


@pytest.mark.parametrize("seed", range(3))
def test_drawn_lists_are_right_or_refused(seed):
    compiled = 0
    for number in range(30):

        def function(x, name=f"{seed} {number}"):
            return _drawn(random.Random(name), x)

        try:
            expected = tf.function(function)(_X)
        except tf.errors.InvalidArgumentError:
            continue
        try:
            found = jax.jit(call_tf(function))(_X)
        except CompilationError:
            continue
        compiled += 1
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{seed} {number}")
    assert compiled, "everything was refused"
