"""What graph mode costs: compiled calls against JAX's, operations against StableHLO's, conversion against export.

    python benchmarks/bench_graph.py              all of it, in about four minutes
    python benchmarks/bench_graph.py calls        compiled graph mode, native mode and jax.jit, called in turns
    python benchmarks/bench_graph.py windows      the same of single convolutions and pools
    python benchmarks/bench_graph.py operations   TensorFlow operations for each operation of StableHLO
    python benchmarks/bench_graph.py conversion   first trace of transformers of 3 to 24 layers, relative to their
    export python benchmarks/bench_graph.py first        the same of 12 layers, the first of a process: each in its own

What is compared runs in turns; given are the least time and the median of the ratios of neighbours. Calls are wall
time, followed by the ratio of CPU time, conversions CPU time, which is the same on a machine with nothing else to do.
"""

from __future__ import annotations

import functools
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import models_in_tensorflow
import numpy as np
import tensorflow as tf
from models import WIDTH, block, parameters, transformer, transformer_of
from parts import run_parts
from timing import Spent, mean_of_calls

from jaxtf.convert import convert
from jaxtf.serialization import export

T = TypeVar("T")

ROUNDS = int(os.environ.get("ROUNDS", "15"))
SECONDS_PER_ROUND = 0.15


# --- what is measured ---


def filled(*shape: int) -> np.ndarray:
    """Numbers between -1 and 1, divided by the square root of the inputs of a layer."""
    inputs = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) * 1.7).reshape(shape) / np.float32(inputs) ** 0.5


def mlp(params: Any, x: Any) -> Any:
    """Three layers and a softmax."""
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jax.nn.softmax(x @ w + b)


def convolved(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def cnn(params: Any, images: Any) -> Any:
    """Convolutions, one of them depthwise if it has a kernel, a residual, pools, a dense layer."""
    x = jax.nn.relu(convolved(images, params["k1"]) + params["b1"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x + jax.nn.relu(convolved(x, params["k2"]) + params["b2"])
    if "depthwise" in params:
        x = jax.nn.relu6(convolved(x, params["depthwise"], groups=32))
    x = jax.nn.silu(convolved(x, params["k3"], stride=2))
    return jax.nn.softmax(x.mean(axis=(1, 2)) @ params["w"])


def layer_of(layer: Any, x: Any) -> Any:
    """A block, its parameters first."""
    return block(x, layer)


def subjects() -> Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions with their parameters and what they are applied to, by a name that tells the size."""
    layer = jax.tree.map(lambda spec: filled(*spec.shape), parameters(1)[0])
    dense = [(filled(m, n), filled(n)) for m, n in ((784, 1024), (1024, 1024), (1024, 10))]
    kernels = {
        "k1": filled(3, 3, 3, 32),
        "b1": filled(32),
        "k2": filled(3, 3, 32, 32),
        "b2": filled(32),
        "k3": filled(3, 3, 32, 64),
        "w": filled(64, 10),
    }
    return {
        "MLP 784-1024-1024-10, batch 128": (mlp, (dense, filled(128, 784))),
        "MLP 784-1024-1024-10, batch 1024": (mlp, (dense, filled(1024, 784))),
        "CNN, 32 images of 32x32x3": (cnn, (kernels, filled(32, 32, 32, 3))),
        "CNN, one convolution more, depthwise": (
            cnn,
            ({**kernels, "depthwise": filled(3, 3, 1, 32)}, filled(32, 32, 32, 3)),
        ),
        "transformer block, width 256, 4x128": (layer_of, (layer, filled(4, 128, WIDTH))),
    }


IN_TENSORFLOW: Mapping[Callable[..., Any], Callable[..., Any]] = {
    mlp: models_in_tensorflow.mlp,
    cnn: models_in_tensorflow.cnn,
    layer_of: lambda layer, x: models_in_tensorflow.block(x, layer),
}


def seconds(call: Callable[[], object]) -> Spent:
    """Mean of the calls of one round."""
    return mean_of_calls(call, SECONDS_PER_ROUND)


def in_turns(actions: Mapping[str, Callable[[], T]], rounds: int) -> Mapping[str, list[T]]:
    """What each action measured in each round; a first round, which compiles, is not counted."""
    found: dict[str, list[T]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        # Another one goes first each time.
        names = list(actions)
        names = names[number % len(names) :] + names[: number % len(names)]
        for name in names:
            measured = actions[name]()
            if number:
                found[name].append(measured)
    return found


def table(found: Mapping[str, list[float]], base: str) -> None:
    """A line for each: the least, and the ratio to the base."""
    for name, times in found.items():
        print(row(name, times, found[base]), flush=True)


def table_of_calls(found: Mapping[str, list[Spent]], base: str) -> None:
    """The same of wall time, and the ratio of CPU time to that of the base."""
    for name, times in found.items():
        walls, bases = ([spent.wall for spent in spents] for spents in (times, found[base]))
        cpu = statistics.median(one.cpu / other.cpu for one, other in zip(times, found[base], strict=True))
        print(f"{row(name, walls, bases)}, CPU x {cpu:5.2f}", flush=True)


def row(name: str, times: list[float], bases: list[float]) -> str:
    """The least, and the ratio to the base."""
    ratio = statistics.median(one / other for one, other in zip(times, bases, strict=True))
    least = min(times) / min(bases)
    return f"  {name:58} {1e3 * min(times):9.2f} ms   x {ratio:5.2f} (of the least: {least:5.2f})"


# --- compiled calls ---


def calls() -> None:
    """Compiled graph mode, without and with XLA operations, and native mode, compared with jax.jit.

    Parameters are arguments, as JAX has them; and variables of the TensorFlow function, as SavedModels have them. An
    eager call in native mode runs compiled, without tf.function. What tf.function costs is seen on a
    compiled function of the same arguments that gives an element of the last one; what TensorFlow's XLA makes of such a
    model, on the same one written in TensorFlow.
    """
    print("compiled calls")
    for what, (function, arguments) in subjects().items():
        jitted, given = jax.jit(function), jax.tree.map(jnp.asarray, arguments)
        tensors = tf.nest.map_structure(tf.constant, arguments)
        actions: dict[str, Callable[[], Spent]] = {
            "jax.jit": lambda jitted=jitted, given=given: seconds(lambda: jitted(*given).block_until_ready())
        }
        compiled = {
            name: tf.function(convert(function, **options), autograph=False, jit_compile=True)
            for name, options in {
                "graph mode": {"native_serialization": False},
                "graph mode, enable_xla=False": {"native_serialization": False, "enable_xla": False},
                "native mode": {"native_serialization": True},
            }.items()
        }
        compiled["written in TensorFlow"] = tf.function(IN_TENSORFLOW[function], autograph=False, jit_compile=True)
        compiled["native mode, eager call"] = convert(function)
        variables = tf.nest.map_structure(tf.Variable, arguments[0])
        for mode, is_native in (("graph", False), ("native", True)):
            converted = convert(function, native_serialization=is_native)
            compiled[f"{mode} mode, variables"] = served(converted, variables)
        for name, compiled_function in compiled.items():
            difference = np.abs(compiled_function(*tensors) - np.asarray(jitted(*given))).max()
            assert difference < 1e-4, f"{what}, {name}: {difference}"
            actions[name] = lambda f=compiled_function, tensors=tensors: seconds(lambda: f(*tensors))
        empty = tf.function(lambda *values: tf.nest.flatten(values)[-1][:1, :1], autograph=False, jit_compile=True)
        actions["tf.function alone"] = lambda empty=empty, tensors=tensors: seconds(lambda: empty(*tensors))
        found = in_turns(actions, ROUNDS)
        table_of_calls({f"{what}: {name}": times for name, times in found.items()}, f"{what}: jax.jit")


def served(converted: Callable[..., Any], variables: Any) -> Callable[..., Any]:
    """A compiled function that reads variables, and leaves the parameters that it is called with."""
    compiled = tf.function(lambda x: converted(variables, x), autograph=False, jit_compile=True)
    return lambda _, x: compiled(x)


# --- convolutions and pools ---


def pooled(x: Any, size: int, stride: int) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


def windows() -> None:
    """Single convolutions and pools, in graph mode and as XLA has them: native mode, jax.jit."""
    print("compiled convolutions and pools")
    images, features = filled(16, 64, 64, 3), filled(8, 28, 28, 64)
    single: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "3x3, 3 to 32 features, 16x64x64": (convolved, (images, filled(3, 3, 3, 32))),
        "depthwise 3x3, 8x28x28x64": (lambda x, k: convolved(x, k, groups=64), (features, filled(3, 3, 1, 64))),
        "its gradients": (
            jax.grad(lambda x, k: jnp.sin(convolved(x, k, groups=64)).sum(), (0, 1)),
            (features, filled(3, 3, 1, 64)),
        ),
        "depthwise 7x7, 8x28x28x64": (lambda x, k: convolved(x, k, groups=64), (features, filled(7, 7, 1, 64))),
        "max pool 3x3, stride 2, 8x28x28x64": (lambda x: pooled(jax.nn.relu(x), 3, 2), (features,)),
    }
    for what, (function, arguments) in single.items():
        jitted, given = jax.jit(function), jax.tree.map(jnp.asarray, arguments)
        tensors = tf.nest.map_structure(tf.constant, arguments)
        actions: dict[str, Callable[[], Spent]] = {
            "jax.jit": lambda jitted=jitted, given=given: seconds(lambda: jax.block_until_ready(jitted(*given)))
        }
        for name, is_native in (("graph mode", False), ("native mode", True)):
            converted = convert(function, native_serialization=is_native)
            call = tf.function(converted, autograph=False, jit_compile=True)
            for ours, theirs in zip(tf.nest.flatten(call(*tensors)), jax.tree.leaves(jitted(*given)), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
            actions[name] = lambda call=call, tensors=tensors: seconds(lambda: call(*tensors))
        found = in_turns(actions, ROUNDS)
        table_of_calls({f"{what}: {name}": times for name, times in found.items()}, f"{what}: jax.jit")


# --- operations ---


def operations() -> None:
    """How many operations of TensorFlow there are for each of StableHLO."""
    print("operations of an inference graph, functions included; constants and what names results apart")
    layers = transformer, (jax.tree.map(lambda spec: filled(*spec.shape), parameters()), filled(4, 32, WIDTH))
    for what, (function, arguments) in {**subjects(), "transformer of 12 layers": layers}.items():
        of_module, constants = count_of_module(function, arguments)
        converted = convert(function, native_serialization=False, with_gradient=False)
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), arguments)
        definition = tf.function(converted, autograph=False).get_concrete_function(*specs).graph.as_graph_def()
        nodes = [*definition.node, *(node for inner in definition.library.function for node in inner.node_def)]
        types = [node.op for node in nodes if node.op not in ("Placeholder", "NoOp")]
        work = [type_ for type_ in types if type_ not in ("Const", "Identity")]
        print(
            f"  {what:46} StableHLO {of_module:5} and {constants:4} constants; TensorFlow {len(work):5} and "
            f"{types.count('Const'):5} constants, {types.count('Identity'):4} identities: {len(work) / of_module:5.2f}"
        )


def count_of_module(function: Callable[..., Any], arguments: Any) -> tuple[int, int]:
    """The operations of a function's module, calls left out, and its constants."""
    lines = str(export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module()).splitlines()
    names = [word for line in lines for word in line.split()[:3] if word.startswith(("stablehlo.", "chlo."))]
    constants = names.count("stablehlo.constant")
    return len(names) - constants, constants


# --- conversion ---


def conversion() -> None:
    """The first trace of a transformer in graph mode, compared with its export.

    And what of it is TensorFlow's: the trace of the same model written in TensorFlow, and of a function that only takes
    in the finished graph, by `tf.graph_util.import_graph_def`.
    """
    print("conversion of a transformer: first trace in tf.function, beside jaxtf.serialization.export")
    for layers in (3, 6, 12, 24):
        specs = parameters(layers), jax.ShapeDtypeStruct((4, 32, WIDTH), jnp.float32)
        tensor_specs = jax.tree.map(lambda spec: tf.TensorSpec(spec.shape, spec.dtype.name), specs)

        def exported(specs: Any = specs) -> None:
            export(jax.jit(transformer_of()))(*specs)

        def traced(function: Callable[..., Any], tensor_specs: Any = tensor_specs) -> Any:
            return tf.function(function, autograph=False).get_concrete_function(*tensor_specs)

        def converted(native: bool, traced: Callable[..., Any] = traced) -> Any:
            return traced(convert(transformer_of(), native_serialization=native))

        finished = taking_in(converted(False).graph)
        actions: dict[str, Callable[[], Any]] = {
            "export": exported,
            "graph mode": functools.partial(converted, False),
            "native mode": functools.partial(converted, True),
            "written in TensorFlow": lambda traced=traced: traced(functools.partial(models_in_tensorflow.transformer)),
            "the finished graph taken in": lambda traced=traced, finished=finished: traced(finished),
        }
        found = in_turns({name: lambda do=do: once(do) for name, do in actions.items()}, max(3, ROUNDS // 2))
        table({f"{layers} layers: {name}": times for name, times in found.items()}, f"{layers} layers: export")


def taking_in(graph: tf.Graph) -> Callable[..., Any]:
    """A function of the inputs of a finished graph whose trace has the same nodes."""
    definition = graph.as_graph_def()
    inputs = [tensor.op.name for tensor in graph.inputs]
    outputs = [tensor.name for tensor in graph.outputs]
    return lambda *arguments: tf.graph_util.import_graph_def(
        definition, dict(zip(inputs, tf.nest.flatten(arguments), strict=True)), outputs, name=""
    )


def once(action: Callable[[], object]) -> float:
    """The CPU time of one run."""
    gc.collect()  # or a full collection falls into one of them
    start = time.process_time()
    action()
    return time.process_time() - start


STEPS = ("export", "graph mode", "native mode", "JAX: trace and lower")


def first() -> None:
    """The first conversion of a process, the first export, and JAX's part of each, when nothing has been traced yet."""
    print("the first conversion of a process: a transformer of 12 layers")
    ask = [sys.executable, __file__, "--first"]
    actions = {
        step: lambda step=step: float(subprocess.run([*ask, step], capture_output=True, text=True, check=True).stdout)
        for step in STEPS
    }
    table(in_turns(actions, max(3, ROUNDS // 4)), "export")


def run_first(step: str) -> None:
    """In a process of its own: prints the time of one conversion.

    What the imports left is collected before, or the collector does it, for 0.1 s and more, within what is measured.
    """
    specs = parameters(), jax.ShapeDtypeStruct((4, 32, WIDTH), jnp.float32)
    tensor_specs = jax.tree.map(lambda spec: tf.TensorSpec(spec.shape, spec.dtype.name), specs)
    if step == "export":
        print(once(lambda: export(jax.jit(transformer_of()))(*specs)))
        return
    if step == "JAX: trace and lower":
        print(once(lambda: jax.jit(transformer_of()).trace(*specs).lower(lowering_platforms=("cpu",))))
        return
    converted = convert(transformer_of(), native_serialization=step == "native mode")
    print(once(lambda: tf.function(converted, autograph=False).get_concrete_function(*tensor_specs)))


PARTS = {"calls": calls, "windows": windows, "operations": operations, "conversion": conversion, "first": first}


def main(arguments: list[str]) -> None:
    """Runs the parts that are named, or all."""
    if arguments[:1] == ["--first"]:
        run_first(arguments[1])
        return
    run_parts(PARTS, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
