"""One export for each signature and configuration, in one thread or in eight."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from jaxtf.convert import convert
from jaxtf.convert._convert import convert as convert_module
from jaxtf.convert._convert import signature as signature_module
from jaxtf.convert._function.cache import Cache

THREADS = 8


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun):
        self.fun = fun
        self.traces = 0

    def __call__(self, *args):
        self.traces += 1
        return self.fun(*args)


def ramp(size):
    return np.linspace(0.1, 1, size, dtype=np.float32)


def in_threads(task, count=4 * THREADS):
    """The results of `task(number)`, eight at a time, all started at once."""
    start = threading.Barrier(THREADS)

    def run(number):
        if number < THREADS:
            start.wait(timeout=60)
        return task(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(count), timeout=300))


def test_a_function_is_traced_once_for_each_signature_and_configuration():
    counted = Counted(lambda x: jnp.sin(x) @ jnp.ones((x.shape[0],), x.dtype))
    converted = convert(counted)
    for _ in range(2):
        converted(ramp(3))
        converted(tf.constant(ramp(3)))
        converted(tf.Variable(ramp(3)))
    assert counted.traces == 1
    converted(ramp(4))
    assert counted.traces == 2
    for _ in range(2):
        with jax.default_matmul_precision("highest"):
            converted(ramp(4))
        with jax.enable_x64(True):
            assert converted(np.float64([1, 2])).dtype == tf.float64
        assert converted(np.float64([1, 2])).dtype == tf.float32
    assert counted.traces == 5


def test_the_function_is_its_own_key_and_keeps_what_it_closes_over():
    def scaled(factor):
        return lambda x: x * factor

    two, three = convert(scaled(2.0)), convert(scaled(3.0))
    np.testing.assert_array_equal(two(ramp(3)), 2 * ramp(3))
    np.testing.assert_array_equal(three(ramp(3)), 3 * ramp(3))


def differentiated(converted, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x)
    return tape.gradient(y, x)


def differentiated_twice(converted, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = differentiated(converted, x)
    return tape.gradient(y, x)


def twice(converted, x):
    return tf.while_loop(lambda x: True, lambda x: (converted(x),), (x,), maximum_iterations=2)[0]


USES = {
    "eager": lambda converted, x: converted(x),
    "eager gradient": differentiated,
    "eager second gradient": differentiated_twice,
    "graph": lambda converted, x: tf.function(converted)(x),
    "compiled": lambda converted, x: tf.function(converted, jit_compile=True)(x),
    "graph gradient": lambda converted, x: tf.function(lambda x: differentiated(converted, x))(x),
    "graph second gradient": lambda converted, x: tf.function(lambda x: differentiated_twice(converted, x))(x),
    "gradient of a graph": lambda converted, x: differentiated(tf.function(converted), x),
    "gradient of a loop": lambda converted, x: differentiated(tf.function(lambda x: twice(converted, x)), x),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("with_gradient", "use"),
    [*((True, use) for use in USES), (False, "eager"), (False, "graph"), (False, "compiled")],
)
@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
def test_what_a_dropped_function_held_is_freed(native, with_gradient, use):
    """The function, and a large array that it closes over; nobody need clear JAX's caches."""

    def used():
        array = jnp.ones((1 << 15,))

        def fun(x):
            return x * jnp.cumsum(x) * array[:3]

        USES[use](convert(fun, native_serialization=native, with_gradient=with_gradient), tf.constant(ramp(3)))
        return weakref.ref(fun), weakref.ref(array)

    assert [reference() for reference in collected(used)] == [None, None]


@pytest.mark.parametrize("with_gradient", [True, False])
def test_a_saved_function_that_is_dropped_is_freed(with_gradient, tmp_path):
    def saved():
        array, module = jnp.ones((1 << 15,)), tf.Module()
        module.fun = tf.function(convert(lambda x: jnp.sin(x) * array[:3], with_gradient=with_gradient))
        module.fun(ramp(3))
        tf.saved_model.save(module, str(tmp_path))
        return (weakref.ref(array),)

    assert [reference() for reference in collected(saved)] == [None]


def test_tensorflow_forgets_the_gradients_of_graphs_that_are_gone():
    def used():
        square = convert(jnp.square)
        tf.function(lambda x: differentiated(square, x), autograph=False)(ramp(3))

    def count():
        collected(used)
        return len(gradient_registry.list())

    assert count() == count()


def collected(use):
    """What `use` returns, after garbage was collected."""
    result = use()
    tf.constant(ramp(3))  # TensorFlow lets go of NumPy arrays when it is given another one
    gc.collect()
    return result


def test_eight_threads_that_convert_and_call_get_what_one_gets():
    def task(number):
        size = 2 + number % 3
        fun = jax.vmap(lambda x: jnp.tanh(x) * (number % 5))
        x = tf.constant(ramp(size))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(convert(fun, polymorphic_shapes=["(b,)"])(x))
        graph = tf.function(convert(fun), autograph=False)(x)
        return number, size, y.numpy(), tape.gradient(y, x).numpy(), graph.numpy()

    for number, size, y, gradient, graph in in_threads(task, 2 * THREADS):
        x, factor = ramp(size), number % 5
        np.testing.assert_allclose(graph, np.tanh(x) * factor, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(y, (np.tanh(x) * factor).sum(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradient, factor / np.cosh(x) ** 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_eight_threads_share_one_conversion_and_one_trace(mode):
    counted = Counted(lambda x: {"y": jnp.sin(x)})
    converted = convert(counted, polymorphic_shapes=["(b,)"])
    function = converted if mode == "eager" else tf.function(converted, autograph=False)

    def task(number):
        x = tf.constant(ramp(1 + number % 6))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)["y"]
        return x.numpy(), y.numpy(), tape.gradient(y, x).numpy()

    for x, y, gradient in in_threads(task):
        np.testing.assert_allclose(y, np.sin(x), rtol=1e-5)
        np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-5)
    assert counted.traces == 1


def test_eight_threads_under_other_configurations_do_not_mix_them():
    converted = convert(lambda x: x * 2)

    def task(number):
        with jax.enable_x64(number % 2 == 0):
            return converted(np.float64([number])).dtype

    dtypes = in_threads(task)
    assert dtypes == [tf.float64 if number % 2 == 0 else tf.float32 for number in range(len(dtypes))]


def test_a_value_that_could_not_be_made_is_tried_again():
    asked, dropped = [], []

    def make(key):
        asked.append(key)
        if len(asked) == 1:
            raise ValueError("not now")
        return key * 2

    cache = Cache(2, lambda: dropped.append(len(asked)))

    def once(key):
        return cache(key, lambda: make(key))

    with pytest.raises(ValueError, match="not now"):
        once(1)
    assert cache.peek(1) is None
    assert [once(1), once(1), once(2)] == [2, 2, 4]
    assert (asked, dropped) == ([1, 1, 2], [])
    assert once(3) == 6  # drops 1, the one asked for longest ago
    assert ([cache.peek(key) for key in (1, 2, 3)], dropped) == ([None, 4, 6], [3])
    assert [once(2), once(1)] == [4, 2]
    assert asked == [1, 1, 2, 3, 1]
    cache.clear()
    assert [cache.peek(key) for key in (1, 2, 3)] == [None] * 3


@pytest.mark.slow(1)
@pytest.mark.parametrize("with_gradient", [True, False])
def test_a_signature_that_is_dropped_keeps_no_array_alive(with_gradient, monkeypatch):
    monkeypatch.setattr(convert_module, "_SIGNATURES_KEPT", 2)
    arrays = {size: jnp.full((1 << 15,), size, jnp.float32) for size in (2, 3, 4, 5)}
    references = [weakref.ref(array) for array in arrays.values()]
    converted = convert(lambda x: x * arrays.pop(x.shape[0])[0], with_gradient=with_gradient)

    def used():
        for size in (2, 3, 4, 5):
            converted(tf.constant(ramp(size)))
        jax.clear_caches()  # JAX keeps what it traced as long as the function lives
        return references

    assert [reference() is not None for reference in collected(used)] == [False, False, True, True]
    np.testing.assert_array_equal(converted(tf.constant(ramp(5))), ramp(5) * 5)


def test_structures_and_ranks_beyond_a_number_are_forgotten(monkeypatch):
    monkeypatch.setattr(signature_module, "_STRUCTURES_KEPT", 2)
    signatures = signature_module.Signatures("b, ...", ())
    for count in (1, 2, 3, 1):
        tree = jax.tree.structure((({str(n): 0 for n in range(count)},), {}))
        signature, _ = signatures.of_call(tree, [tf.constant(ramp(count))] * count)
        assert [leaf.shape for leaf in signature.leaves] == [(None,)] * count
    assert len(signatures._open_sizes._entries) == 2
