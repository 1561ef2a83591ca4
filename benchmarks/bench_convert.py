"""The cost of converting, compared with its parts: large arrays, the first trace of a transformer, gradients, models.

    python benchmarks/bench_convert.py              all of it
    python benchmarks/bench_convert.py calls        eager calls and eager gradients, compared with TensorFlow's own
    operations python benchmarks/bench_convert.py trace        first trace in tf.function, compared with JAX's trace and
    lower python benchmarks/bench_convert.py memory       10,000 polymorphic eager calls
    python benchmarks/bench_convert.py constants    200 MB closed over, compared with 200 MB of variables

Times are medians: of CPU time and of wall time for calls, of wall time for the rest. Each holder of 200 MB runs
in a process of its own, of which the peak memory is reported.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from bare_op import bare_op
from models import WIDTH, parameters, transformer, transformer_of
from parts import run_parts
from timing import line, seconds_in_turns

from jaxtf.convert import convert, save_model

CONSTANT_MB = 200
ROWS = CONSTANT_MB * 2**20 // (4 * 1024)


def upstream(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The same function by jax.experimental.jax2tf."""
    with warnings.catch_warnings(action="ignore"):
        from jax.experimental import jax2tf

        return jax2tf.convert(fun, **options)


def report(what: str, call: Callable[[], str]) -> None:
    """One line; a subject that cannot run here says why."""
    try:
        found = call()
    except Exception as error:
        found = f"fails: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
    print(f"  {what:54} {found}", flush=True)


# --- eager calls ---


def mlp(params: Any, x: Any) -> Any:
    """Three layers, for JAX."""
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def mlp_tf(params: Any, x: tf.Tensor) -> tf.Tensor:
    """The same in TensorFlow's own operations."""
    for w, b in params[:-1]:
        x = tf.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def mlp_parameters() -> list[tuple[np.ndarray, np.ndarray]]:
    sizes = [64, 128, 128, 10]
    return [
        (np.sin(np.arange(m * n, dtype=np.float32)).reshape(m, n) / 16, np.zeros(n, np.float32))
        for m, n in itertools.pairwise(sizes)
    ]


def gradient(fun: Callable[..., tf.Tensor], watched: Any, *arguments: Any) -> Callable[[], Any]:
    """An eager gradient of the sum of the result."""

    def call() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(watched)
            total = tf.reduce_sum(fun(*arguments))
        return tape.gradient(total, watched)

    return call


def calls() -> None:
    """Eager calls and gradients of a tiny function and of a small network."""
    x = tf.constant(np.linspace(0, 1, 16, dtype=np.float32))
    images = tf.constant(np.linspace(-1, 1, 32 * 64, dtype=np.float32).reshape(32, 64))
    params = [tuple(map(tf.constant, layer)) for layer in mlp_parameters()]
    layers = tf.nest.flatten(params)
    tree = jax.tree.structure(params)
    bare_network = bare_op(
        lambda *flat: mlp(jax.tree.unflatten(tree, flat[:-1]), flat[-1]),
        *(jax.ShapeDtypeStruct(tensor.shape, np.float32) for tensor in (*layers, images)),
    )
    networks = {
        "TensorFlow": mlp_tf,
        "jaxtf": convert(mlp),
        "jaxtf, any batch": convert(mlp, polymorphic_shapes=[None, "(b, _)"]),
        "upstream": upstream(mlp),
    }
    subjects = {
        "sin f32[16]": (
            {
                "bare op": bare_op(jnp.sin, jax.ShapeDtypeStruct((16,), np.float32)),
                "TensorFlow": tf.sin,
                "jaxtf": convert(jnp.sin),
                "upstream": upstream(jnp.sin),
            },
            lambda f: lambda: f(x),
        ),
        "sin f32[16], gradient": (
            {"TensorFlow": tf.sin, "jaxtf": convert(jnp.sin), "upstream": upstream(jnp.sin)},
            lambda f: gradient(f, [x], x),
        ),
        "MLP of 3 layers, batch 32": (
            {"bare op": lambda params, images: bare_network(*layers, images)} | networks,
            lambda f: lambda: f(params, images),
        ),
        "MLP of 3 layers, gradient": (
            networks,
            lambda f: gradient(f, layers, params, images),
        ),
    }
    print("eager calls, CPU time and wall time, in turns")
    for what, (functions, make) in subjects.items():
        calls = {f"{what}: {name}": make(fun) for name, fun in functions.items()}
        for name, found in seconds_in_turns(calls, 7, 0.3).items():
            print(f"  {line(name, found, 54)}", flush=True)


# --- first trace ---


def trace() -> None:
    """The first trace of a 12-layer transformer; what the one before left is collected first."""
    specs = parameters(), jax.ShapeDtypeStruct((4, 32, WIDTH), jnp.float32)
    tensor_specs = jax.tree.map(lambda spec: tf.TensorSpec(spec.shape, spec.dtype.name), specs)

    def lower() -> None:
        jax.jit(transformer_of()).trace(*specs).lower(lowering_platforms=("cpu",))

    def concrete(converted: Callable[..., Any]) -> None:
        tf.function(converted, autograph=False).get_concrete_function(*tensor_specs)

    flat, tree = jax.tree.flatten(specs)
    bare = bare_op(lambda *leaves: transformer(*jax.tree.unflatten(tree, leaves)), *flat)
    subjects = {
        "JAX: trace and lower": lower,
        "TensorFlow: first trace of the bare op, lowered before": lambda: concrete(
            lambda *arguments: bare(*tf.nest.flatten(arguments))
        ),
        "jaxtf: first trace in tf.function": lambda: concrete(convert(transformer_of())),
        "upstream: first trace in tf.function": lambda: concrete(upstream(transformer_of())),
    }
    print("first trace of a transformer of 12 layers, wall time, in turns")
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for round_number in range(8):
        for name, action in subjects.items():
            gc.collect()
            start = time.perf_counter()
            action()
            if round_number:
                times[name].append(time.perf_counter() - start)
    for name, found in times.items():
        report(name, lambda found=found: f"{1e3 * statistics.median(found):9.1f} ms")


# --- memory ---


def resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def memory() -> None:
    """How much 10,000 eager calls of a polymorphic function leave behind."""
    x = tf.ones(16)
    print("resident memory after eager calls of a polymorphic function, beside that after the first")
    for name, make, count in (("jaxtf", convert, 10_000), ("upstream", upstream, 100)):

        def grown(make: Any = make, count: int = count) -> str:
            f = make(lambda x: jnp.sin(x) * x.shape[0], polymorphic_shapes=["(b,)"])
            f(x)
            before = resident_mb()
            for _ in range(count):
                f(x)
            return f"{resident_mb() - before:+9.1f} MB after {count:,} calls"

        report(name, grown)


# --- large arrays ---


def lookup(table: Any, x: Any) -> Any:
    """Uses the whole table; what is closed over is an array of JAX from the start, or NumPy would slice it."""
    return jnp.tanh(x @ jnp.asarray(table).T).sum()


def hold(holder: str) -> None:
    """In a process of its own: first call, save, load and call of a function with 200 MB."""
    table = np.sin(np.arange(ROWS * 1024, dtype=np.float32)).reshape(ROWS, 1024)
    x = tf.ones((4, 1024))
    path = tempfile.mkdtemp()
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    if holder == "closed over, save_model":
        mark()  # it makes no call of its own
        save_model(
            lambda params, x: lookup(table, x) * params,
            np.float32(1),
            path,
            input_signatures=[tf.TensorSpec([4, 1024], tf.float32)],
        )
    else:
        make = upstream if holder.startswith("upstream") else convert
        module = tf.Module()
        if holder.endswith("variables"):
            module.table = tf.Variable(table)
            converted = make(lookup)
            module.f = tf.function(lambda x: converted(module.table, x), autograph=False)
        else:
            converted = make(lambda x: lookup(table, x))
            module.f = tf.function(converted, autograph=False)
        module.f(x)
        mark()
        tf.saved_model.save(module, path, signatures=module.f.get_concrete_function(tf.TensorSpec([4, 1024], name="x")))
    mark()
    loaded = tf.saved_model.load(path)
    mark()
    [result] = loaded.signatures["serving_default"](x=x).values()
    mark()
    assert np.isfinite(result)
    first, save, load, call = (after - before for before, after in itertools.pairwise(marks))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    graph = os.path.getsize(os.path.join(path, "saved_model.pb")) / 2**20
    print(
        f"first call {first:5.1f} s, save {save:5.1f} s, load {load:5.1f} s, its first call {call:5.1f} s, "
        f"peak {peak:6.0f} MB, graph {graph:5.0f} MB"
    )


HOLDERS = (
    "variables",
    "closed over, save_model",
    "closed over, saved by hand",
    "upstream, variables",
    "upstream, closed over",
)


def constants() -> None:
    """Each holder of 200 MB, in its own process."""
    print(f"{CONSTANT_MB} MB in a function, wall time")
    for holder in HOLDERS:

        def run(holder: str = holder) -> str:
            done = subprocess.run(
                [sys.executable, __file__, "--hold", holder], capture_output=True, text=True, timeout=400, check=False
            )
            if done.returncode:
                raise RuntimeError((done.stderr.strip().splitlines() or ["it was killed"])[-1])
            return done.stdout.strip().splitlines()[-1]

        report(holder, run)


PARTS = {"calls": calls, "trace": trace, "memory": memory, "constants": constants}


def main(arguments: list[str]) -> None:
    """Runs the parts that are named, or all."""
    if arguments[:1] == ["--hold"]:
        hold(arguments[1])
        return
    run_parts(PARTS, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
