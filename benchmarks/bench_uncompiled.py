"""What graph mode costs where nothing is compiled, beside the same written in TensorFlow.

    python benchmarks/bench_uncompiled.py              all of it, in about two minutes
    python benchmarks/bench_uncompiled.py models       the models of bench_graph.py
    python benchmarks/bench_uncompiled.py operations   single operations on a million elements and more

TensorFlow's graph optimizer rewrites what is written in TensorFlow: it adds in another order, multiplies factors first,
and so on; and kernels of TensorFlow lose NaN. Graph mode has the numbers that the function has in JAX, which costs
something. The two are called in turns; given are the median times and the median of the ratios of neighbours.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from bench_graph import IN_TENSORFLOW, ROUNDS, in_turns, pooled, seconds, subjects
from jax import lax
from parts import run_parts

from jaxtf.convert import convert

Pair = tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]


def compared(name: str, in_jax: Callable[..., Any], in_tensorflow: Callable[..., Any], arguments: Any) -> None:
    """Prints a line: both times, and their ratio."""
    tensors = tf.nest.map_structure(tf.constant, arguments)
    functions = {
        "graph mode": tf.function(convert(in_jax, native_serialization=False), autograph=False),
        "TensorFlow": tf.function(in_tensorflow, autograph=False),
    }
    actions = {who: lambda f=f: seconds(lambda: f(*tensors)).wall for who, f in functions.items()}
    for result, expected in zip(*(tf.nest.flatten(f(*tensors)) for f in functions.values()), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    found = in_turns(actions, ROUNDS)
    ours, theirs = found["graph mode"], found["TensorFlow"]
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    times = (1e3 * statistics.median(taken) for taken in (ours, theirs))
    print(f"  {name:42} {next(times):8.3f} ms, in TensorFlow {next(times):8.3f} ms: x {ratio:5.2f}", flush=True)


def models() -> None:
    """The models of `bench_graph`."""
    print("models, not compiled")
    for what, (function, arguments) in subjects().items():
        compared(what, function, IN_TENSORFLOW[function], arguments)


def single() -> Mapping[str, Pair]:
    """Operations on arrays of a million numbers between 1 and 2, images and rows."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return 1 + random.random(shape, np.float32)

    x, y, z = (drawn(1000, 1000) for _ in range(3))
    scalar, other = drawn(), drawn()
    images = drawn(8, 112, 112, 64)
    places, rows = random.integers(0, 15625, 2000, np.int32), drawn(2000, 64)
    q, k, mask = drawn(8, 8, 128, 64), drawn(8, 8, 64, 128), drawn(8, 1, 128, 128)
    scale = np.float32(0.125)

    def scatter_max(operand: Any, where: Any, updates: Any) -> Any:
        return tf.tensor_scatter_nd_max(operand, where[:, None], updates)

    return {
        "x + y": (lambda x, y: x + y, lambda x, y: x + y, (x, y)),
        "1 / x": (lambda x: 1 / x, lambda x: 1 / x, (x,)),
        "x / 255 * 2 - 1": (lambda x: x / 255 * 2 - 1, lambda x: x / 255 * 2 - 1, (x,)),
        "log(1 + x)": (lambda x: jnp.log(1 + x), lambda x: tf.math.log(1 + x), (x,)),
        "x + y + z": (lambda x, y, z: x + y + z, lambda x, y, z: x + y + z, (x, y, z)),
        "(x + y) + (z + x)": (lambda x, y, z: (x + y) + (z + x), lambda x, y, z: (x + y) + (z + x), (x, y, z)),
        "x * s * t of scalars": (lambda x, s, t: x * s * t, lambda x, s, t: x * s * t, (x, scalar, other)),
        "x + s + t of scalars": (lambda x, s, t: x + s + t, lambda x, s, t: x + s + t, (x, scalar, other)),
        "x / norm(x), rows": (
            lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
            lambda x: x / tf.norm(x, axis=1, keepdims=True),
            (x,),
        ),
        "x ** 0.5": (lambda x: lax.pow(x, np.float32(0.5)), lambda x: x**0.5, (x,)),
        "x ** -0.5": (lambda x: lax.pow(x, np.float32(-0.5)), lambda x: x**-0.5, (x,)),
        "not x < y": (lambda x, y: ~(x < y), lambda x, y: tf.logical_not(x < y), (x, y)),
        "gelu": (jax.nn.gelu, lambda x: tf.nn.gelu(x, approximate=True), (x,)),
        "max pool 2x2, stride 2": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
            (images,),
        ),
        "max pool 3x3, stride 2": (
            lambda x: pooled(x, 3, 2),
            lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"),
            (images,),
        ),
        "scatter max of 2000 rows": (lambda x, i, u: x.at[i].max(u), scatter_max, (drawn(15625, 64), places, rows)),
        "top 5 of 64 rows": (lambda x: lax.top_k(x, 5)[0], lambda x: tf.math.top_k(x, 5)[0], (drawn(64, 16384),)),
        "scores, scaled after, and a mask": (
            lambda q, k, mask: (q @ k) * scale + mask,
            lambda q, k, mask: (q @ k) * scale + mask,
            (q, k, mask),
        ),
        "scores, scaled before, and a mask": (
            lambda q, k, mask: (q * scale) @ k + mask,
            lambda q, k, mask: (q * scale) @ k + mask,
            (q, k, mask),
        ),
    }


def operations() -> None:
    """Single operations."""
    print("single operations, not compiled")
    for name, (in_jax, in_tensorflow, arguments) in single().items():
        compared(name, in_jax, in_tensorflow, arguments)


PARTS = {"models": models, "operations": operations}


if __name__ == "__main__":
    run_parts(PARTS, sys.argv[1:])
