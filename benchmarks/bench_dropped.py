"""Memory kept for functions that were made, called once and dropped, compared with the same loop without jaxtf.

Each row is a process of its own, which makes 200 functions and then 300 more: the resident memory that these added,
after a collection, for 1,000 of them. The second column does the same by JAX or TensorFlow alone, for `convert` by the
bare XlaCallModule op; where TensorFlow compiles, it does so there too, at the same place. The second table is of
functions that close over an array of 100 MB: what 10 of them added to what was there after two.

    python3 benchmarks/bench_dropped.py
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ctypes
import functools
import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from bare_op import bare_op

from jaxtf.calltf import call_tf
from jaxtf.convert import convert, convert_exported
from jaxtf.serialization import deserialize, export

WARM, ROUNDS = 200, 300
HUNDRED_MB = 25_000_000
SPEC = jax.ShapeDtypeStruct((4,), np.float32)

Make = Callable[[], object]


def in_jax() -> Callable[[jax.Array], jax.Array]:
    """A new function."""
    return lambda x: jnp.sin(x) * 2


def in_tensorflow() -> Callable[[tf.Tensor], tf.Tensor]:
    """A new function."""
    return lambda x: tf.sin(x) * 2


def summed(function: Callable[..., object], total: Callable[..., object]) -> Callable[..., object]:
    """A new function to differentiate."""
    return lambda x: total(function(x))


def compiled(*functions: Callable[..., object]) -> None:
    """What TensorFlow is asked for a staged call: HLO for the CPU."""
    for function in functions:
        traced = tf.function(function, autograph=False, jit_compile=True)
        traced.experimental_get_compiler_ir(tf.TensorSpec((4,)))(stage="hlo_serialized", platform_name="CPU")


def compiling_in_jax(*functions: Callable[..., object]) -> Callable[[jax.Array], jax.Array]:
    """A new function of JAX; while JAX traces it, TensorFlow compiles others."""

    def function(x: jax.Array) -> jax.Array:
        compiled(*functions)
        return jnp.sin(x) * 2

    return function


def tape_gradient(function: Callable[..., object], x: tf.Tensor) -> tf.Tensor:
    """TensorFlow's own gradient."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return tape.gradient(y, x)


def pulled_back(function: Callable[..., object]) -> Callable[..., object]:
    """The function that TensorFlow compiles for the gradient of a staged call: of the argument and a cotangent."""
    return lambda x: tape_gradient(function, x)


def gradient_in_graph(function: Callable[..., object]) -> Callable[..., object]:
    """A new `tf.function` of a gradient."""
    return tf.function(lambda x: tape_gradient(function, x), autograph=False)


@functools.cache
def x() -> jax.Array:
    """The argument of JAX functions."""
    return jnp.ones(4)


@functools.cache
def t() -> tf.Tensor:
    """That of TensorFlow's."""
    return tf.ones(4)


@functools.cache
def artifact() -> bytes:
    """One artifact, which either reader takes."""
    return bytes(export(in_jax())(SPEC).serialize())


# By subject: what jaxtf does, and the same without it.
LOOPS: dict[str, tuple[Make, Make]] = {
    "export": (lambda: export(in_jax())(SPEC), lambda: jax.export.export(jax.jit(in_jax()))(SPEC)),
    "deserialize the same artifact, call": (
        lambda: deserialize(artifact()).call(x()),
        lambda: jax.export.deserialize(bytearray(artifact())).call(x()),
    ),
    "call_tf(f), eager": (lambda: call_tf(in_tensorflow())(x()), lambda: in_tensorflow()(t())),
    "jax.grad(call_tf(f)), eager": (
        lambda: jax.grad(summed(call_tf(in_tensorflow()), jnp.sum))(x()),
        lambda: tape_gradient(in_tensorflow(), t()),
    ),
    "jax.jit(call_tf(f))": (
        lambda: jax.jit(call_tf(in_tensorflow()))(x()),
        lambda: jax.jit(compiling_in_jax(in_tensorflow()))(x()),
    ),
    "jax.jit(jax.grad(call_tf(f)))": (
        lambda: jax.jit(jax.grad(summed(call_tf(in_tensorflow()), jnp.sum)))(x()),
        lambda: jax.jit(compiling_in_jax(in_tensorflow(), pulled_back(in_tensorflow())))(x()),
    ),
    "convert(f), eager": (
        lambda: convert(in_jax())(t()),
        lambda: tf.function(bare_op(in_jax(), SPEC), autograph=False, jit_compile=True)(t()),
    ),
    "convert_exported of the same artifact, eager": (
        lambda: convert_exported(artifact())(t()),
        lambda: tf.function(bare_op(in_jax(), SPEC), autograph=False, jit_compile=True)(t()),
    ),
    "tf.function(convert(f))": (
        lambda: tf.function(convert(in_jax()))(t()),
        lambda: tf.function(bare_op(in_jax(), SPEC), autograph=False)(t()),
    ),
    "its gradient": (
        lambda: gradient_in_graph(convert(in_jax()))(t()),
        lambda: gradient_in_graph(in_tensorflow())(t()),
    ),
    "tf.function(convert(f)), graph mode": (
        lambda: tf.function(convert(in_jax(), native_serialization=False))(t()),
        lambda: tf.function(in_tensorflow(), autograph=False)(t()),
    ),
    "tf.function(convert(f), jit_compile=True)": (
        lambda: tf.function(convert(in_jax()), jit_compile=True)(t()),
        lambda: tf.function(bare_op(in_jax(), SPEC), autograph=False, jit_compile=True)(t()),
    ),
}


def over_jax_array() -> Callable[[jax.Array], jax.Array]:
    """A new function that closes over 100 MB."""
    array = jnp.ones(HUNDRED_MB)
    return lambda x: x * array[:4]


def over_tensor() -> Callable[[tf.Tensor], tf.Tensor]:
    """The same in TensorFlow."""
    array = tf.ones(HUNDRED_MB)
    return lambda x: x * array[:4]


LARGE: dict[str, tuple[Make, Make]] = {
    "jax.jit(call_tf(f))": (lambda: jax.jit(call_tf(over_tensor()))(x()), lambda: jax.jit(over_jax_array())(x())),
    "convert(f), eager": (lambda: convert(over_jax_array())(t()), lambda: over_tensor()(t())),
    "tf.function(convert(f))": (
        lambda: tf.function(convert(over_jax_array()))(t()),
        lambda: tf.function(over_tensor(), autograph=False)(t()),
    ),
    "tf.function(convert(f)), graph mode": (
        lambda: tf.function(convert(over_jax_array(), native_serialization=False))(t()),
        lambda: tf.function(over_tensor(), autograph=False)(t()),
    ),
}


def resident_mb() -> float:
    """The resident memory after a collection, without what the allocator only keeps for later."""
    for _ in range(3):  # what TensorFlow's objects hold is garbage only after them
        gc.collect()
        tf.constant(np.ones(1))  # TensorFlow lets go of NumPy arrays when it is given another one
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(make: Make, warm: int, rounds: int, collect: bool) -> tuple[float, float]:
    """The MB that rounds of making, calling and dropping added, and the milliseconds of one.

    Args:
      make: Makes a function and calls it.
      warm: Rounds before.
      rounds: Rounds that are measured.
      collect: Whether garbage is collected after each round, not only after the last.
    """
    for _ in range(warm):
        jax.block_until_ready(make())
    before, start = resident_mb(), time.perf_counter()
    for _ in range(rounds):
        jax.block_until_ready(make())
        if collect:
            resident_mb()
    seconds = time.perf_counter() - start
    return resident_mb() - before, 1e3 * seconds / rounds


def in_process(*words: object) -> tuple[float, float]:
    """`measured` for one row, in a process of its own."""
    command = [sys.executable, __file__, *map(str, words)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.split()
    return float(printed[-2]), float(printed[-1])


def main() -> None:
    """Prints the tables; with words, measures one row."""
    if sys.argv[1:]:
        table, subject, index = sys.argv[1:]
        warnings.simplefilter("ignore")  # captured tensors become constants
        make = {"small": LOOPS, "large": LARGE}[table][subject][int(index)]
        print(*measured(make, WARM, ROUNDS, False) if table == "small" else measured(make, 2, 10, True))
        return
    print(f"functions made, called and dropped; JAX {jax.__version__}, TensorFlow {tf.__version__}")
    print(f"MB that stay of 1,000, and ms of one{'':18}    jaxtf               without")
    for subject in LOOPS:
        ours, bare = in_process("small", subject, 0), in_process("small", subject, 1)
        cells = [f"{mb * 1000 / ROUNDS:8.1f} MB {ms:6.1f} ms" for mb, ms in (ours, bare)]
        print(f"  {subject:46}", *cells, flush=True)
    print("MB that stay of 10 functions, each over an array of 100 MB")
    for subject in LARGE:
        ours, bare = in_process("large", subject, 0), in_process("large", subject, 1)
        print(f"  {subject:46} {ours[0]:8.1f} MB           {bare[0]:8.1f} MB", flush=True)


if __name__ == "__main__":
    main()
