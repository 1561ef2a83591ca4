"""What an export costs: `jaxtf.serialization` compared with `jax.export`, in one process.

A transformer of 12 layers, static and with symbolic batch and sequence: medians of CPU milliseconds
(exporting runs in one thread, so that this is wall time on a machine with nothing else to do). "fresh
scope" makes the symbolic sizes anew for each export, so that JAX's caches of traced functions do not
hit; "same scope" does not. Then writing and reading the artifact, and the peak memory of exporting a
function that closes over a large constant, each in a process of its own.

    python benchmarks/bench_export.py
    python benchmarks/bench_export.py --stages     where our time goes
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import ShapeDtypeStruct
from models import WIDTH, parameters, transformer_of

import jaxtf.serialization
import jaxtf.shapepoly

ROUNDS = 11
CONSTANT_MB = 200


def ours(shape: Any) -> Any:
    return jaxtf.serialization.export(transformer_of())(parameters(), ShapeDtypeStruct(shape, jnp.float32))


def theirs(shape: Any) -> Any:
    jitted = jax.jit(transformer_of())
    return jax.export.export(jitted)(parameters(), ShapeDtypeStruct(shape, jnp.float32))


def medians(**actions: Callable[[], object]) -> dict[str, float]:
    """Median CPU milliseconds of each action, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for round_number in range(ROUNDS + 1):
        for name, action in actions.items():
            start = time.process_time()
            action()
            if round_number:
                times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(each) for name, each in times.items()}


def report(what: str, found: dict[str, float], ndigits: int = 1) -> None:
    print(f"{what:52}" + "".join(f"{name} {value:8.{ndigits}f}   " for name, value in found.items()), flush=True)


def exporting() -> None:
    text, static = f"b, s, {WIDTH}", (4, 32, WIDTH)
    our_scope, their_scope = jaxtf.shapepoly.symbolic_shape(text), jax.export.symbolic_shape(text)
    fresh = {
        "ours": lambda: ours(jaxtf.shapepoly.symbolic_shape(text)),
        "theirs": lambda: theirs(jax.export.symbolic_shape(text)),
    }
    same = {"ours": lambda: ours(our_scope), "theirs": lambda: theirs(their_scope)}
    measured = {
        "static": medians(ours=lambda: ours(static), theirs=lambda: theirs(static)),
        "symbolic, fresh scope": medians(**fresh),
        "symbolic, same scope": medians(**same),
    }
    for name, found in measured.items():
        report(f"export, {name} (ms)", found)
    for name in ("symbolic, fresh scope", "symbolic, same scope"):
        ratio = {who: measured[name][who] / measured["static"][who] for who in ("ours", "theirs")}
        report(f"  {name} / static", ratio, 2)
    mine, other = ours(our_scope), theirs(their_scope)
    report("module, symbolic (bytes)", {"ours": len(mine.mlir_module_serialized),
                                        "theirs": len(other.mlir_module_serialized)}, 0)  # fmt: skip
    report("serialize (ms)", medians(ours=mine.serialize, theirs=other.serialize), 2)
    if hasattr(jaxtf.serialization, "deserialize"):
        blob, their_blob = mine.serialize(), other.serialize()
        read = {
            "ours": lambda: jaxtf.serialization.deserialize(blob),
            "theirs": lambda: jax.export.deserialize(their_blob),
        }
        report("deserialize (ms)", medians(**read), 2)


def stages() -> None:
    """Where our time goes, by stage."""
    from jaxtf.serialization import _jax
    from jaxtf.serialization._export import export as export_module
    from jaxtf.serialization._export import main as main_module
    from jaxtf.serialization._program import portable_artifact

    spent: dict[str, float] = {}

    def timed(module: Any, name: str) -> None:
        function = getattr(module, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + 1e3 * (time.process_time() - start) / ROUNDS

        setattr(module, name, wrapper)

    timed(export_module, "_export")
    timed(_jax, "lower")
    for name in ("serialize_module", "expand_chlo"):
        timed(portable_artifact, name)
    timed(main_module, "export_main")
    for shape in ((4, 32, WIDTH), jaxtf.shapepoly.symbolic_shape(f"b, s, {WIDTH}")):
        ours(shape)
        spent.clear()
        for _ in range(ROUNDS):
            ours(shape)
        report(f"stages of {shape} (ms, of _export)", spent)


def peak(who: str) -> None:
    """Prints the memory, in MB, that exporting a function over a constant adds at its peak."""
    constant = np.random.default_rng(0).standard_normal((CONSTANT_MB << 20) // 4, np.float32)
    export = jaxtf.serialization.export if who == "ours" else lambda f: jax.export.export(jax.jit(f))
    export(lambda x: x + 1)(ShapeDtypeStruct((3,), jnp.float32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exported = export(lambda x: x + constant)(ShapeDtypeStruct(constant.shape, jnp.float32))
    exported_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exported.serialize()
    written_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print((exported_peak - before) / 1024, (written_peak - before) / 1024)


def memory() -> None:
    for what, index in [("export", 0), ("export and serialize", 1)]:
        found = {}
        for who in ("ours", "theirs"):
            out = subprocess.run([sys.executable, __file__, "--peak", who], capture_output=True, text=True, check=True)
            found[who] = float(out.stdout.split()[index]) / CONSTANT_MB
        report(f"peak of {what} / constant of {CONSTANT_MB} MB", found, 2)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--peak")
    arguments.add_argument("--stages", action="store_true")
    chosen = arguments.parse_args()
    if chosen.peak:
        peak(chosen.peak)
        return
    print(f"JAX {jax.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs of {platform.machine()}")
    if chosen.stages:
        stages()
        return
    exporting()
    memory()


if __name__ == "__main__":
    main()
