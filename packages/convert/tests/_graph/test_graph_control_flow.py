"""Loops, branches and functions in graph mode: values and gradients of JAX, each function once in the graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
EPS = np.finfo(np.float32).eps


def graph(function, **options):
    return convert(function, native_serialization=False, **options)


def scanned(x):
    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry * row

    return lax.scan(step, jnp.zeros(4), x)


def nested(x):
    def outer(state):
        count, value = state
        return count + 1, lax.fori_loop(0, count + 2, lambda i, v: jnp.sin(v) + i, value)

    return lax.while_loop(lambda state: state[0] < 4, outer, (0, x))


def switched(x):
    index = (x.sum() * 3).astype(jnp.int32)
    return lax.switch(index, [jnp.sin, jnp.cos, lambda v: v * v, jnp.ones_like], x)


def cond_in_scan(x):
    def step(carry, row):
        return lax.cond(row.sum() > 0, lambda c: c * row, lambda c: c - jnp.exp(row), carry), carry.sum()

    return lax.scan(step, jnp.ones(4), x)


def closes_over(x):
    """Branches and bodies that use values, also constants, from outside."""
    y, table = jnp.exp(x), np.arange(4, dtype=np.float32)
    return lax.fori_loop(0, 3, lambda i, v: lax.cond(i > 1, lambda: v * y + table, lambda: v + 2.5 * y), x)


def reverse_scan(x):
    return lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(4), x, reverse=True, unroll=2)


def mapped(x):
    return lax.map(lambda row: jnp.cumsum(row) / (1 + row @ row), x)


FUNCTIONS = (scanned, switched, cond_in_scan, reverse_scan, mapped)
FORWARD_ONLY = (nested, closes_over)


def tolerance(expected):
    """A few eps for each of the 12 elements and steps that a value depends on."""
    return {"rtol": 48 * EPS, "atol": 48 * EPS * max(1, np.max(np.abs(expected), initial=0))}


def check(found, expected):
    found, expected = tf.nest.flatten(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype.name, tuple(a.shape)) == (b.dtype.name, b.shape)
        np.testing.assert_allclose(a, b, **tolerance(b))


@pytest.mark.parametrize("function", [*FUNCTIONS, *FORWARD_ONLY], ids=lambda f: f.__name__)
def test_values_are_those_of_jax_in_eager_mode_and_in_graphs(function):
    converted = graph(function)
    for x in (X, X - 0.5, X + 0.7):
        expected = jax.jit(function)(x)
        check(converted(x), expected)
        check(tf.function(converted, autograph=False)(x), expected)
    check(tf.function(converted, autograph=False, jit_compile=True)(X), jax.jit(function)(X))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_jax(function):
    def loss(x):
        return sum(jnp.sum(value**2) for value in jax.tree.leaves(function(x)))

    variable = tf.Variable(X)
    with tf.GradientTape() as tape:
        value = graph(loss)(variable)
    check(tape.gradient(value, variable), jax.jit(jax.grad(loss))(X))


def test_a_second_gradient_through_a_scan_is_that_of_jax():
    def loss(x):
        return jnp.sum(scanned(x)[1] ** 2)

    x = tf.Variable(X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = graph(loss)(x)
        first = tf.reduce_sum(inner.gradient(value, x) ** 2)
    expected = jax.grad(lambda x: jnp.sum(jax.grad(loss)(x) ** 2))(X)
    np.testing.assert_allclose(outer.gradient(first, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 5])
def test_a_branch_beside_the_last_is_the_last(index):
    """The specification of `case`: an index that there is no branch for takes the last one."""
    from jaxtf.convert import convert_stablehlo

    branches = ", ".join(
        f"{{ %c{i} = stablehlo.constant dense<{i}> : tensor<i32>\n stablehlo.return %c{i} : tensor<i32> }}"
        for i in range(3)
    )
    text = f"""func.func @main(%i: tensor<i32>) -> tensor<i32> {{
      %0 = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> tensor<i32>
      return %0 : tensor<i32> }}"""
    expected = index if 0 <= index < 3 else 2
    assert convert_stablehlo(text)(np.int32(index)).numpy() == expected


def concrete(function, *args, **options):
    return tf.function(graph(function, **options), autograph=False).get_concrete_function(*map(tf.constant, args))


def all_types(concrete_function):
    """The types of all operations of a graph, and of the functions in its library by name."""
    definition = concrete_function.graph.as_graph_def()
    library = {
        function.signature.name: [node.op for node in function.node_def] for function in definition.library.function
    }
    return [node.op for node in definition.node], library


@jax.jit
def block(x):
    for _ in range(6):
        x = jnp.sin(x) * jnp.cos(x) + 1
    return x


def test_a_function_called_often_is_in_the_graph_once():
    def function(x):
        for _ in range(5):
            x = block(x)
        return lax.fori_loop(0, 3, lambda i, v: block(v), x)

    types, library = all_types(concrete(function, X))
    blocks = [name for name, ops in library.items() if ops.count("Sin") == 6]
    assert len(blocks) == 1
    assert "block" in blocks[0]
    assert types.count("Sin") == 0
    check(graph(function)(X), jax.jit(function)(X))


def test_random_numbers_drawn_often_do_not_make_the_graph_grow_with_each():
    def function(count):
        def draw(seed):
            keys = jax.random.split(jax.random.wrap_key_data(seed, impl="threefry2x32"), count)
            return sum(jax.random.normal(key, (3,)) for key in keys)

        return draw

    seed = np.array([0, 7], np.uint32)

    def total(count):
        types, library = all_types(concrete(function(count), seed))
        return len(types) + sum(map(len, library.values()))

    two, ten = total(2), total(10)
    assert (ten - two) / 8 < 80  # threefry alone is some hundreds
    np.testing.assert_allclose(graph(function(3))(seed), function(3)(seed), rtol=1e-6)


def test_names_of_operations_are_the_users():
    def function(x):
        with jax.named_scope("encoder"):
            return jnp.sin(x) + 1

    names = [operation.name for operation in concrete(function, X).graph.get_operations()]
    assert "jaxtf_function/encoder/sin/Sin" in names


def test_a_loop_without_change_and_an_empty_scan():
    check(graph(lambda x: lax.scan(lambda c, r: (c + 1, r), 0, x[:0]))(X), lax.scan(lambda c, r: (c + 1, r), 0, X[:0]))
    check(graph(lambda x: lax.while_loop(lambda v: v.sum() > 1e9, lambda v: v, x))(X), X)


def test_a_loop_over_a_size_that_is_open_keeps_it_open():
    converted = graph(lambda x: lax.fori_loop(0, 3, lambda i, v: v * 2 + i, x), polymorphic_shapes=["(b, _)"])
    traced = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([None, 4]))
    assert traced.structured_outputs.shape.as_list() == [None, 4]
    for size in (1, 3, 7):
        x = np.ones((size, 4), np.float32)
        np.testing.assert_array_equal(traced(tf.constant(x)), x * 8 + 4)


@pytest.mark.slow(1)
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_scan_over_rows_of_any_batch_size_is_compiled(batch):
    def sums(x):
        return lax.scan(lambda c, e: (c * 0.5 + e, c), jnp.zeros(x.shape[1:]), x)[1]

    converted = graph(sums, polymorphic_shapes=["(2, b, 3)"])
    x = tf.constant(np.arange(6.0 * batch, dtype=np.float32).reshape(2, batch, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = tf.function(converted, autograph=False, jit_compile=True)(x)
    np.testing.assert_array_equal(found, sums(x.numpy()))
    np.testing.assert_array_equal(tape.gradient(found, x), jax.grad(lambda x: sums(x).sum())(x.numpy()))


OF_TENSORFLOW_1 = {
    "a branch": lambda p, x: lax.cond(p, lambda x: x * TERMS + x, lambda x: x - TERMS, x),
    "what is used behind it": lambda p, x: lax.cond(p, lambda x: x * TERMS, lambda x: x - TERMS, x) + x * TERMS - 3,
    "several": lambda p, x: lax.switch(p.astype(int), [lambda x: x * 2, lambda x: x * TERMS, jnp.negative], x) + x / 3,
    "sorted": lambda p, x: lax.cond(p, lambda x: jnp.sort(x)[::-1] * TERMS, jnp.cumsum, x) + jnp.max(x),
    "in a loop": lambda p, x: (
        lax.fori_loop(0, 3, lambda _, c: lax.cond(p, lambda: c * x + TERMS, lambda: c - x), x) * x
    ),
    "a loop": lambda p, x: (
        lax.fori_loop(0, jnp.where(p, 3, 0), lambda _, c: c * jnp.sin(x) + TERMS, x) + jnp.sin(x) * 2
    ),
}
TERMS = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("name", OF_TENSORFLOW_1)
def test_control_flow_of_tensorflow_1_has_the_values_of_jax(name, allows_xla):
    function, x = OF_TENSORFLOW_1[name], np.float32([0.1, 0.2, 0.3])
    converted = convert(function, native_serialization=False, enable_xla=allows_xla)
    tf.compat.v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            given = tf.compat.v1.placeholder(tf.bool, []), tf.compat.v1.placeholder(tf.float32, [3])
            result = converted(*given)
        with tf.compat.v1.Session(graph=graph) as session:
            found = [session.run(result, dict(zip(given, (p, x), strict=True))) for p in (False, True)]
    finally:
        tf.compat.v1.enable_control_flow_v2()
    np.testing.assert_allclose(found, [function(jnp.asarray(p), x) for p in (False, True)], rtol=1e-5)


def test_assertions_in_a_branch_of_tensorflow_1_run_with_it():
    def function(p, x):
        return lax.cond(
            p, lambda x: x[: x.shape[0] // 2] + x[x.shape[0] - x.shape[0] // 2 :], lambda x: x[: x.shape[0] // 2], x
        )

    converted = convert(function, polymorphic_shapes=[None, "(2*n,)"], native_serialization=False)
    tf.compat.v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            given = tf.compat.v1.placeholder(tf.bool, []), tf.compat.v1.placeholder(tf.float32, [None])
            result = converted(*given)
        with tf.compat.v1.Session(graph=graph) as session:
            for p in (False, True):
                x = np.float32([1, 2, 3, 4])
                found = session.run(result, dict(zip(given, (p, x), strict=True)))
                np.testing.assert_array_equal(found, function(jnp.asarray(p), x))
                with pytest.raises(tf.errors.InvalidArgumentError, match="polymorphic shapes"):
                    session.run(result, dict(zip(given, (p, x[:3]), strict=True)))
    finally:
        tf.compat.v1.enable_control_flow_v2()
