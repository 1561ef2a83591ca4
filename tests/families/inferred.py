"""What Grappler (TensorFlow 2.21) infers of the sizes in a graph, compared with the sizes that there are.

A size that it takes for known, or for equal to another, it puts into the graph, whatever the arrays are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, rewriter_config_pb2
from tensorflow.python.grappler import item, tf_optimizer

__all__ = ["wrong_sizes"]

_HAVE_NO_SHAPE = (tf.variant, tf.resource)
Shapes = dict[tuple[str, int], list[tuple[int, ...]]]


def wrong_sizes(function: Any, rounds: Sequence[Sequence[np.ndarray]]) -> Iterator[str]:
    """What is inferred and is not so, for a concrete function that captures nothing.

    Args:
      function: The concrete function.
      rounds: Arguments, several times.
    """
    assert not function.captured_inputs
    inputs = [tensor.op.name for tensor in function.inputs]
    kept = [*(tensor.name for tensor in function.inputs), *(tensor.name for tensor in function.outputs)]
    graph_def = function.graph.as_graph_def()
    _feed(graph_def, {tensor.op.name: tensor.shape for tensor in function.inputs})
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.optimizers.append("function")  # so that functions, loops and branches are in the graph
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    graph_def = tf_optimizer.OptimizeGraph(config, _meta_graph(graph_def, kept))
    inferred = item.Item(_meta_graph(graph_def, kept)).GetOpProperties()
    for found in _runs(graph_def, [f"{name}_fed:0" for name in inputs], rounds):
        yield from _wrong(inferred, found)


def _wrong(inferred: Any, found: Shapes) -> Iterator[str]:
    equal: dict[int, set[int]] = defaultdict(set)
    for (name, index), shapes in found.items():
        if index >= len(inferred.get(name, ())) or inferred[name][index].shape.unknown_rank:
            continue
        sizes = [dimension.size for dimension in inferred[name][index].shape.dim]
        for shape in shapes:
            if any(size >= 0 and size != true for size, true in zip(sizes, shape, strict=True)):
                yield f"{name}:{index} is {shape}, not {sizes}"
        if len(set(shapes)) == 1:  # not what changes in a loop
            for size, true in zip(sizes, shapes[0], strict=True):
                equal[size].add(true)
    yield from (f"size {size} is {trues}" for size, trues in equal.items() if size < -1 and len(trues) > 1)


def _feed(graph_def: Any, shapes: dict[str, tf.TensorShape]) -> None:
    """Grappler knows nothing of what is fed, but of arguments what EnsureShape tells."""
    for node in list(graph_def.node):
        if node.op == "Placeholder" and node.name in shapes:
            fed = graph_def.node.add(name=f"{node.name}_fed", op="Placeholder")
            fed.attr["dtype"].type = node.attr["dtype"].type
            name = node.name
            node.Clear()
            node.name, node.op = name, "EnsureShape"
            node.input.append(fed.name)
            node.attr["T"].type = fed.attr["dtype"].type
            node.attr["shape"].shape.CopyFrom(shapes[name].as_proto())


def _meta_graph(graph_def: Any, kept: Sequence[str]) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    made: Any = tf.compat.v1.train.export_meta_graph(graph_def=graph.as_graph_def(), graph=graph)
    results = meta_graph_pb2.CollectionDef()
    results.node_list.value.extend(kept)
    made.collection_def["train_op"].CopyFrom(results)
    return made


def _runs(graph_def: Any, fed: Sequence[str], rounds: Sequence[Sequence[np.ndarray]]) -> Iterator[Shapes]:
    """The shapes of all tensors of a graph in each round, as often as each is computed."""
    found: Shapes = defaultdict(list)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
        tensors = [tensor for operation in graph.get_operations() for tensor in operation.outputs]
        seen = [_noted(tensor, found) for tensor in tensors if tensor.dtype not in _HAVE_NO_SHAPE]
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        for arguments in rounds:
            for shapes in found.values():
                shapes.clear()
            session.run(seen, dict(zip(fed, arguments, strict=True)))
            yield found


def _noted(tensor: tf.Tensor, found: Shapes) -> tf.Operation:
    shapes = found[tensor.op.name, tensor.value_index]
    return tf.numpy_function(lambda value: shapes.append(np.shape(value)), [tensor], [])
