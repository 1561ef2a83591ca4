"""The command line of a benchmark that has several parts."""

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence

import jax
import tensorflow as tf

__all__ = ["run_parts"]


def run_parts(parts: Mapping[str, Callable[[], None]], names: Sequence[str]) -> None:
    """Runs the parts that are named, or all, after a line about versions and the machine."""
    unknown = [name for name in names if name not in parts]
    if unknown:
        sys.exit(f"this benchmark has no part {', '.join(map(repr, unknown))}; it has {', '.join(parts)}")
    print(f"JAX {jax.__version__}, TensorFlow {tf.__version__}, {os.cpu_count()} CPUs, {platform.machine()}")
    for name in names or parts:
        parts[name]()
