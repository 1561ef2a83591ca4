"""What a lifted artifact costs, compared with its original function and with its call, in one process.

A transformer of 12 layers and a scanned recurrence, each exported with the shapes of one example: CPU milliseconds to
trace and to compile, and to run, compiled, alone and over a batch of 8 (`jax.vmap`), and the gradient. Medians, the
functions in turns, so that what else the machine does meets all.

    python benchmarks/bench_lift.py
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from models import WIDTH, parameters, transformer_of
from timing import seconds_in_turns

from jaxtf.serialization import Exported, deserialize, export

BATCH = 8
ROUNDS = 5


def recurrence(p: Any, x: Any) -> Any:
    """A recurrence over the rows of `x`, with a state of their width."""
    return lax.scan(lambda h, row: (jnp.tanh(h @ p + row), jnp.sum(h)), jnp.zeros(x.shape[-1]), x)


def once(make: Callable[[], Callable[[], object]]) -> float:
    """CPU milliseconds of what `make` gives; the median of a few."""
    times = []
    for _ in range(ROUNDS):
        run = make()
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def functions(exported: Exported, original: Callable[..., Any]) -> Mapping[str, Callable[[], Callable[..., Any]]]:
    """By name, what makes each function anew, so that JAX has traced none of it."""
    return {
        "original": lambda: functools.partial(original),
        "lift": exported.lift,
        "call": lambda: functools.partial(exported.call),
    }


def report(what: str, found: Mapping[str, float | Exception]) -> None:
    """A line: each time, and how many times the original's it is."""
    cells = []
    base = found["original"]
    for name, value in found.items():
        if isinstance(value, Exception):
            cells.append(f"{name} {'-':>9}        ")
            continue
        ratio = f"{value / base:5.2f}x" if isinstance(base, float) and base else ""
        cells.append(f"{name} {value:9.2f} {ratio}  ")
    print(f"{what:34}" + "".join(cells), flush=True)


def measure(name: str, original: Callable[..., Any], p: Any, x: Any) -> None:
    """All lines of one function."""
    exported = deserialize(export(original)(p, x).serialize(vjp_order=1))
    made = functions(exported, original)
    print(f"{name}: {len(exported.mlir_module_serialized):,} bytes of module")
    report("  make, once (ms)", {"original": 0.0, "lift": once(lambda: exported.lift)})
    fresh = {name: make() for name, make in made.items()}
    report("  trace (ms)", {n: once(lambda make=make: _tracing(make(), p, x)) for n, make in made.items()})
    compiling = {n: once(lambda make=make: _compiling(make(), p, x)) for n, make in made.items()}
    report("  lower and compile (ms)", compiling)
    compiled = {n: jax.jit(f) for n, f in fresh.items()}
    report("  run (ms)", _milliseconds({n: (f, (p, x)) for n, f in compiled.items()}))
    batch = jnp.stack([x + i for i in range(BATCH)])
    over = {n: jax.jit(jax.vmap(f, (None, 0))) for n, f in fresh.items()}
    report(f"  run under vmap, batch {BATCH} (ms)", _milliseconds({n: (f, (p, batch)) for n, f in over.items()}))
    pulled = {n: jax.jit(jax.grad(_total(f))) for n, f in fresh.items()}
    report("  run the gradient (ms)", _milliseconds({n: (f, (p, x)) for n, f in pulled.items()}))


def _tracing(function: Callable[..., Any], p: Any, x: Any) -> Callable[[], object]:
    return lambda: jax.jit(function).trace(p, x)


def _compiling(function: Callable[..., Any], p: Any, x: Any) -> Callable[[], object]:
    traced = jax.jit(function).trace(p, x)
    return lambda: traced.lower().compile()


def _total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(function(p, x)))


def _milliseconds(calls: Mapping[str, tuple[Callable[..., Any], Any]]) -> dict[str, float | Exception]:
    taken = seconds_in_turns(
        {n: lambda f=f, args=args: jax.block_until_ready(f(*args)) for n, (f, args) in calls.items()}, ROUNDS, 0.2
    )
    return {n: value if isinstance(value, Exception) else 1e3 * value.cpu for n, value in taken.items()}


def main() -> None:
    """Prints the table."""
    jax.config.update("jax_enable_compilation_cache", False)
    random = np.random.RandomState(0)

    def filled(spec: Any) -> Any:
        return jnp.asarray(0.05 * random.randn(*spec.shape), spec.dtype)

    measure("transformer, 12 layers", transformer_of(), jax.tree.map(filled, parameters()), jnp.ones((4, 32, WIDTH)))
    measure("recurrence, 256 steps", recurrence, 0.05 * jnp.ones((64, 64)), jnp.ones((256, 64)))


if __name__ == "__main__":
    main()
