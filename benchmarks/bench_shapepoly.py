"""What dimensions cost: `jaxtf.shapepoly` compared with `jax.export`, in one process.

Arithmetic and comparisons of symbolic dimensions, small and hard, as medians over rounds; the memory
that a scope keeps; and the share of tracing a transformer that is spent in dimensions. "warm" asks the
same question again; "cold" asks it in a new scope (making the scope is not counted).

    python3 run.py bench
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jax import ShapeDtypeStruct

import jaxtf.shapepoly

OURS, THEIRS = jaxtf.shapepoly, jax.export
ROUNDS = 9


def median_us(
    action: Callable[[Any], object], prepare: Callable[[], Any], repeat: int, rounds_wanted: int = ROUNDS
) -> float:
    """Median microseconds of `action(prepare())` over rounds of `repeat`; preparing is not counted."""
    rounds = []
    for _ in range(rounds_wanted):
        given = [prepare() for _ in range(repeat)]
        start = time.perf_counter()
        for one in given:
            action(one)
        rounds.append((time.perf_counter() - start) / repeat)
    return 1e6 * statistics.median(rounds)


def dense_constraints(seed: int, variables: str = "abcdef", count: int = 10) -> list[str]:
    """Constraints between sums of variables that (3, 4, 5, ...) satisfies."""
    made: list[str] = []
    generator = random.Random(seed)
    sizes = {name: 3 + position for position, name in enumerate(variables)}
    while len(made) < count:
        factors = {name: generator.choice([-3, -2, -1, 1, 2, 3]) for name in variables}
        bound = sum(factor * sizes[name] for name, factor in factors.items()) - generator.randint(0, 3)
        made.append(" + ".join(f"{factor}*{name}" for name, factor in factors.items()) + f" >= {bound}")
    return made


def dense_systems() -> list[float]:
    """Milliseconds of a first question in each of twelve scopes with 6 variables and 10 constraints."""
    found = []
    for seed in range(12):
        shape = OURS.symbolic_shape("a, b, c, d, e, f", constraints=dense_constraints(seed))
        start = time.perf_counter()
        attempt(lambda shape=shape: sum(shape) >= 20)
        found.append(1e3 * (time.perf_counter() - start))
    return found


def nested(size: Any, depth: int = 8) -> Any:
    """The size after `depth` convolutions of stride 2."""
    for _ in range(depth):
        size = (size - 1) // 2 + 1
    return size


def attempt(compare: Callable[[], object]) -> None:
    """Asks, whether or not the answer is conclusive."""
    try:
        compare()
    except Exception as error:
        if "inconclusive" not in str(error):
            raise


def subjects(module: Any) -> dict[str, Callable[[], float]]:
    """Each measurement of one of the two modules: name -> microseconds."""

    def pair() -> Any:
        return module.symbolic_shape("a, b")

    a, b = pair()
    expression = 2 * a + b
    return {
        "a + b": lambda: median_us(lambda _: a + b, lambda: None, 2000),
        "2*a*b + 3*a": lambda: median_us(lambda _: 2 * a * b + 3 * a, lambda: None, 500),
        "(4*a + 4) // 4": lambda: median_us(lambda _: (4 * a + 4) // 4, lambda: None, 500),
        "a // 3, a % 3": lambda: median_us(lambda _: divmod(a, 3), lambda: None, 200),
        "max(a, b)": lambda: median_us(lambda _: module_max(module, a, b), lambda: None, 200),
        "2*a + b == b + 2*a": lambda: median_us(lambda _: expression == b + 2 * a, lambda: None, 500),
        "a == b": lambda: median_us(lambda _: a == b, lambda: None, 1000),
        "hash": lambda: median_us(lambda _: hash(expression), lambda: None, 2000),
        "a >= 1, warm": lambda: median_us(lambda _: a >= 1, lambda: None, 1000),
        "a + b >= 2, warm": lambda: median_us(lambda _: a + b >= 2, lambda: None, 1000),
        "a + b >= 2, cold": lambda: median_us(lambda s: s[0] + s[1] >= 2, pair, 200),
        "4*(a//4) <= a, cold": lambda: median_us(lambda s: attempt(lambda: 4 * (s[0] // 4) <= s[0]), pair, 50),
        "(a + b - 1)//b >= 1, cold": lambda: median_us(
            lambda s: attempt(lambda: (s[0] + s[1] - 1) // s[1] >= 1), pair, *((50,) if module is OURS else (1, 3))
        ),
        "depth 8 of (e - 1)//2 + 1, >= 1": lambda: median_us(lambda s: attempt(lambda: nested(s[0]) >= 1), pair, 3),
        "parse 'b, 2*d + 1, floordiv(b, 4)'": lambda: median_us(
            lambda _: module.symbolic_shape("b, 2*d + 1, floordiv(b, 4)"), lambda: None, 100
        ),
    }


def module_max(module: Any, a: Any, b: Any) -> Any:
    """The larger of two sizes, in either module."""
    return module.max_dim(a, b) if module is OURS else a.max(b)


def scope_memory(module: Any, questions: int) -> float:
    """MiB that one scope keeps after as many distinct questions."""
    gc.collect()
    tracemalloc.start()
    a, b = module.symbolic_shape("a, b")
    for number in range(questions):
        attempt(lambda n=number: a * n + b * (n % 7) >= n)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 2**20


def transformer(x: jax.Array, layers: int = 12, heads: int = 4) -> jax.Array:
    """A stack of attention and feed-forward blocks on `(batch, sequence, width)`."""
    batch, sequence, width = x.shape
    for layer in range(layers):
        weight = jnp.full((width, 3 * width), 0.01 * layer)
        mean = x.mean(axis=-1, keepdims=True)
        normal = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-6)
        q, k, v = (
            part.reshape(batch, sequence, heads, width // heads).swapaxes(1, 2)
            for part in jnp.split(normal @ weight, 3, axis=-1)
        )
        scores = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((sequence, sequence))), q @ k.swapaxes(2, 3), -1e9))
        x = x + (scores @ v).swapaxes(1, 2).reshape(batch, sequence, width)
        x = x + jax.nn.gelu(x @ jnp.full((width, 4 * width), 0.02)) @ jnp.full((4 * width, width), 0.03)
    return x


def tracing() -> None:
    """Prints how long tracing a transformer takes, and the share spent in this package."""
    specs = {
        "static": ShapeDtypeStruct((8, 16, 64), jnp.float32),
        "jax.export, symbolic batch and sequence": ShapeDtypeStruct((*THEIRS.symbolic_shape("b, s"), 64), jnp.float32),
        "jaxtf.shapepoly, symbolic batch and sequence": ShapeDtypeStruct(
            (*OURS.symbolic_shape("b, s"), 64), jnp.float32
        ),
    }
    print("\ntracing a 12-layer transformer, ms")
    for name, spec in specs.items():
        rounds = []
        for _ in range(5):
            start = time.perf_counter()
            jax.jit(partial(transformer, layers=12)).trace(spec)  # a new function: JAX remembers traces
            rounds.append(1e3 * (time.perf_counter() - start))
        print(f"  {name:46} {statistics.median(rounds):8.1f}", flush=True)
    profile = cProfile.Profile()
    (b, s), wrapped = OURS.symbolic_shape("b, s"), jax.jit(partial(transformer, layers=12))
    profile.enable()
    wrapped.trace(ShapeDtypeStruct((b, s, 64), jnp.float32))
    profile.disable()
    entries = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in entries.values())
    ours = sum(entry[2] for (file, _, _), entry in entries.items() if "jaxtf/shapepoly" in file or "islpy" in file)
    print(f"  share spent in jaxtf.shapepoly and islpy, under a profiler: {100 * ours / total:.1f} %")


def main() -> None:
    """Prints one line per measurement."""
    print(f"symbolic dimensions, us (median of {ROUNDS} rounds); JAX {jax.__version__}")
    print(f"  {'':38}{'jaxtf':>12}{'jax.export':>12}{'ratio':>8}")
    ours, theirs = subjects(OURS), subjects(THEIRS)
    for name, measure in ours.items():
        found, upstream = measure(), theirs[name]()
        print(f"  {name:38}{found:12.2f}{upstream:12.2f}{found / upstream:8.2f}", flush=True)
    dense = dense_systems()
    print("\n6 variables, 10 constraints, a first question in 12 scopes, ms (jax.export: seconds to minutes each)")
    print(f"  median {statistics.median(dense):.2f}, largest {max(dense):.2f}", flush=True)
    print("\nmemory that a scope keeps, MiB")
    for questions in (1_000, 10_000, 30_000):
        print(f"  after {questions:6} questions: {scope_memory(OURS, questions):8.2f}", flush=True)
    tracing()


if __name__ == "__main__":
    main()
