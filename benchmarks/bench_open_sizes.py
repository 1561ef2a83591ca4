"""What a StableHLO module of open sizes costs in graph mode, whose sizes are compared where they may not fit.

    python benchmarks/bench_open_sizes.py

Layers of a network over a batch of sequences, both sizes open: as a text, as another producer writes it, beside the
same function as `jaxtf.serialization` exports it, whose sizes follow from those of its arguments, so that nothing is
compared. Given are the time to the first result, the median time of a call, eager and in a graph, and the operations of
the graph, for 1, 4 and 16 layers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert_stablehlo
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_args_specs

ROUNDS = 50


def layers(x: jax.Array, *weights: jax.Array) -> jax.Array:
    for weight in weights:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = x + jax.nn.gelu((x - mean) * jax.lax.rsqrt(variance + 1e-5) @ weight)
    return jax.nn.softmax(x)


def measured(module: Any, tensors: list[tf.Tensor]) -> tuple[float, float, float, int]:
    """Seconds to the first result; milliseconds of a call, eager and in a graph; operations of the graph."""
    start = time.perf_counter()
    converted = convert_stablehlo(module)
    converted(*tensors)
    first = time.perf_counter() - start
    specs = [tf.TensorSpec([None] * tensor.shape.rank) for tensor in tensors]
    graph = tf.function(converted, specs, autograph=False).get_concrete_function()
    return first, median(converted, tensors), median(graph, tensors), len(graph.graph.get_operations())


def median(function: Callable[..., Any], tensors: list[tf.Tensor]) -> float:
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function(*tensors)
        spent.append(time.perf_counter() - start)
    return 1e3 * statistics.median(spent)


def main() -> None:
    random = np.random.default_rng(0)
    for count in (1, 4, 16):
        weights = [random.standard_normal((64, 64), np.float32) / 8 for _ in range(count)]
        args = [random.standard_normal((4, 16, 64), np.float32), *weights]
        exported = export(jax.jit(layers))(*symbolic_args_specs(tuple(args), ("b, t, _", *["..."] * count)))
        tensors = list(map(tf.constant, args))
        for what, module in (("text", exported.mlir_module()), ("exported", exported)):
            first, eager, graph, operations = measured(module, tensors)
            print(
                f"{count:3} layers, {what:8}: first {first:6.2f} s, eager {eager:6.2f} ms, graph {graph:6.2f} ms, "
                f"{operations:5} operations",
                flush=True,
            )


if __name__ == "__main__":
    main()
