"""The cost of calling a TensorFlow function from JAX, compared with the same work without jaxtf.

Each row is the median over rounds of the CPU time and of the wall time of one call, on the CPU: the sine of
f32[16], so that nearly all the time is the way to it; the identity of 4 MB, which shows copies; gradients of the
sum of sines. A row says why when it cannot be measured here. Then what the first call under jit takes, and what
an export takes by `jax.export` with constant and with symbolic sizes, of new functions each time.

    python3 benchmarks/bench_calltf.py
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import itertools
import statistics
import time
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import tensorflow as tf
from jax import export
from timing import line, seconds_in_turns

from jaxtf.calltf import call_tf

ROUNDS = 5
SECONDS_PER_ROUND = 0.2


def upstream(function: Callable[..., object]) -> Callable[..., object]:
    """The same by jax.experimental.jax2tf."""
    with warnings.catch_warnings(action="ignore"):
        from jax.experimental import jax2tf

        return jax2tf.call_tf(function)


def sum_of_sines(x: object) -> object:
    """What is differentiated, in TensorFlow."""
    return tf.reduce_sum(tf.sin(x))


def tape_gradient(x: tf.Tensor) -> tf.Tensor:
    """TensorFlow's own eager gradient of it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = sum_of_sines(x)
    return tape.gradient(y, x)


def batched(call: Callable[..., Callable[..., object]]) -> Callable[[jax.Array], object]:
    """A batch of 16 scalars, by jax.vmap, eagerly."""
    return jax.vmap(call(tf.sin))


def pushed(function: Callable[..., object]) -> Callable[[jax.Array], object]:
    """The forward derivative, under jit."""
    return jax.jit(lambda x: jax.jvp(function, (x,), (x,))[1])


SMALL, LARGE = jnp.ones(16), jnp.ones(1 << 20)
SMALL_TF = tf.ones(16)
LARGE_TF = tf.ones(1 << 20)
SUBJECTS = {
    "eager sin, TensorFlow alone": lambda: (tf.sin, SMALL_TF),
    "eager sin, jnp alone": lambda: (jnp.sin, SMALL),
    "eager sin, jaxtf": lambda: (call_tf(tf.sin), SMALL),
    "eager sin, upstream": lambda: (upstream(tf.sin), SMALL),
    "eager 4 MB identity, TensorFlow alone": lambda: (tf.identity, LARGE_TF),
    "eager 4 MB identity, jaxtf": lambda: (call_tf(tf.identity), LARGE),
    "eager 4 MB identity, upstream": lambda: (upstream(tf.identity), LARGE),
    "eager gradient, TensorFlow's tape": lambda: (tape_gradient, SMALL_TF),
    "eager gradient, jnp": lambda: (jax.grad(lambda x: jnp.sin(x).sum()), SMALL),
    "eager gradient, jaxtf": lambda: (jax.grad(call_tf(sum_of_sines)), SMALL),
    "eager gradient, upstream": lambda: (jax.grad(upstream(sum_of_sines)), SMALL),
    "jit sin, jnp": lambda: (jax.jit(jnp.sin), SMALL),
    "jit sin, jaxtf": lambda: (jax.jit(call_tf(tf.sin)), SMALL),
    "jit sin, upstream": lambda: (jax.jit(upstream(tf.sin)), SMALL),
    "jit jvp of sin, jnp": lambda: (pushed(jnp.sin), SMALL),
    "jit jvp of sin, jaxtf": lambda: (pushed(call_tf(tf.sin)), SMALL),
    "jit jvp of sin, upstream": lambda: (pushed(upstream(tf.sin)), SMALL),
    "eager vmap of sin, jnp": lambda: (jax.vmap(jnp.sin), SMALL),
    "eager vmap of sin, jaxtf": lambda: (batched(call_tf), SMALL),
    "eager vmap of sin, upstream": lambda: (batched(upstream), SMALL),
}


def network() -> Callable[[tf.Tensor], tf.Tensor]:
    """Eight dense layers, a new function each time."""

    def apply(x: tf.Tensor) -> tf.Tensor:
        for layer in range(8):
            x = tf.nn.relu(tf.linalg.matvec(tf.fill((16, 16), 0.1 + layer / 100), x))
        return x

    return apply


def first_calls() -> None:
    """What the first call under jit takes, tracing and compiling included: in turns, wall time, a new function each."""
    functions = {
        "sin": lambda: lambda x: tf.sin(x),  # noqa: PLW0108  # a new one each time
        "8 layers": network,
    }
    for what, make in functions.items():
        times: dict[str, list[float]] = {"jaxtf": [], "upstream": []}
        for _ in range(9):
            for name, call in (("jaxtf", call_tf), ("upstream", upstream)):
                start = time.perf_counter()
                jax.jit(call(make()))(SMALL).block_until_ready()
                times[name].append(time.perf_counter() - start)
        for name, found in times.items():
            print(f"{f'first jit call of {what}, {name}':40} {1e3 * statistics.median(found):10.1f} ms", flush=True)


def exports() -> None:
    """What `jax.export` of a call takes, with constant and with symbolic sizes: in turns, wall time, new functions."""
    functions = {
        "sin": lambda: lambda x: tf.sin(x),  # noqa: PLW0108  # a new one each time
        "8 layers": network,
        "half of the rows": lambda: lambda x: x[: tf.shape(x)[0] // 2] * 2.0,
        "a loop over the rows": lambda: (
            lambda x: tf.while_loop(lambda i, _: i < tf.shape(x)[0], lambda i, y: (i + 1, y + x[0]), (0, x[0]))[1]
        ),
    }
    arguments = {
        "constant": jax.ShapeDtypeStruct((16, 16), "float32"),
        "symbolic": jax.ShapeDtypeStruct(export.symbolic_shape("b, 16"), "float32"),
    }
    for what, make in functions.items():
        times: dict[str, list[float]] = {sizes: [] for sizes in arguments}
        for _ in range(9):
            for sizes, argument in arguments.items():
                start = time.perf_counter()
                export.export(jax.jit(call_tf(make())))(argument)
                times[sizes].append(time.perf_counter() - start)
        for sizes, found in times.items():
            print(f"{f'export of {what}, {sizes}':40} {1e3 * statistics.median(found):10.1f} ms", flush=True)


def main() -> None:
    """Prints one line per subject."""
    print(f"CPU time and wall time of one call, in turns; JAX {jax.__version__}, TensorFlow {tf.__version__}")
    for _, group in itertools.groupby(SUBJECTS.items(), lambda item: item[0].rpartition(", ")[0]):
        calls = {}
        for name, make in group:
            function, x = make()
            calls[name] = lambda f=function, x=x: f(x)
        for name, found in seconds_in_turns(calls, ROUNDS, SECONDS_PER_ROUND).items():
            print(line(name, found, 40), flush=True)
    first_calls()
    exports()


if __name__ == "__main__":
    main()
