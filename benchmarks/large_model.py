"""A program with weights of many bytes: written, described, loaded and called, each in a process of its own.

`python benchmarks/large_model.py FOLDER` prints of each step the time and the peak of the process's resident memory, as
a multiple of the weights; pages of the mapped file count, as far as they are in memory. It fails where the peak is
above 1.2 times the weights. `--gigabytes 4` is the size; the file is deleted at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

LAYERS, MOST = 16, 1.2


def width_of(gigabytes: float) -> int:
    """The width of `LAYERS` square matrices of float32 of that size together."""
    return int((gigabytes * 1e9 / 4 / LAYERS) ** 0.5) // 64 * 64


def write(path: str, gigabytes: float) -> None:
    """Exports for specifications, makes the weights, writes both."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxtf.serialization import export, save

    width = width_of(gigabytes)
    specs = [jax.ShapeDtypeStruct((width, width), jnp.float32) for _ in range(LAYERS)]

    def network(layers, x):
        for layer in layers:
            x = jnp.tanh(x @ layer)
        return x

    exported = export(network)(specs, jax.ShapeDtypeStruct((1, width), jnp.float32))
    source = np.random.default_rng(0)
    weights = [source.standard_normal((width, width), np.float32) for _ in range(LAYERS)]
    save(path, exported, weights, overwrite=True)


def describe(path: str, gigabytes: float) -> None:
    from jaxtf.serialization import describe

    described = describe(path).weights
    assert described is not None
    assert described.size == 4 * LAYERS * width_of(gigabytes) ** 2


def load(path: str, gigabytes: float) -> None:
    from jaxtf.serialization import load

    load(path)


def load_unverified(path: str, gigabytes: float) -> None:
    from jaxtf.serialization import load

    load(path, verify=False)


def call(path: str, gigabytes: float) -> None:
    import numpy as np

    from jaxtf.serialization import load

    model = load(path)
    result = np.asarray(model.call(np.ones((1, width_of(gigabytes)), np.float32)))
    assert np.all(np.abs(result) <= 1)


STEPS: dict[str, Callable[[str, float], None]] = {
    "write": write,
    "describe": describe,
    "load": load,
    "load, verify=False": load_unverified,
    "load and call": call,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--step", choices=STEPS)
    options = parser.parse_args()
    path = os.path.join(options.folder, "large.jaxtf")
    if options.step:
        STEPS[options.step](path, options.gigabytes)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return 0
    weights, worst = 4 * LAYERS * width_of(options.gigabytes) ** 2, 0.0
    print(f"{weights:,} bytes of weights\n")
    print("| step | seconds | peak memory | times the weights |\n| --- | --- | --- | --- |")
    try:
        for step in STEPS:
            options_of_step = [f"--gigabytes={options.gigabytes}", f"--step={step}"]
            arguments = [sys.executable, __file__, options.folder, *options_of_step]
            start = time.perf_counter()
            peak = int(subprocess.run(arguments, stdout=subprocess.PIPE, check=True).stdout)
            seconds = time.perf_counter() - start
            worst = max(worst, peak / weights)
            print(f"| {step} | {seconds:.1f} | {peak / 1e9:.2f} GB | {peak / weights:.2f} |", flush=True)
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
