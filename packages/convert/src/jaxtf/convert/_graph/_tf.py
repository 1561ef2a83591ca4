"""The door to TensorFlow for graph mode: XLA operations, most of which `tf.raw_ops` does not have, and nodes of graphs.

Each private name stands once, with why it is needed and the versions it was seen in:

- `tensorflow.compiler.tf2xla.ops.gen_xla_ops` (2.21): `xla_variadic_sort`, `xla_rng_bit_generator`. They have CPU
  kernels and run eagerly, in graphs and compiled; a SavedModel that has them loads with TensorFlow alone.
- `FuncGraph` and, of a graph, `_create_op_internal`, `_create_op_helper`, `_c_graph`, `_control_dependencies_stack`,
  `_default_original_op`, `_get_control_flow_context`; `Operation._from_c_op`, `Tensor._as_tf_output`; the C functions
  `TF_NewOperation`, `TF_AddInput`, `TF_SetAttrValueProto`, `TF_FinishOperation` and `TF_SetOpStackTrace` of
  `pywrap_tf_session`, with `tf_stack` (2.19.1, 2.20.0, 2.21): what `tf.Graph.create_op` does for a node of a function,
  without the protocol buffer of the node, which is made to be taken apart again. A node takes 26 us so, 62 us by
  `create_op`, 200 us by `tf.add` (2.21).
- `Graph._name_stack` (2.19.1, 2.20.0, 2.21): where a graph keeps the name scope that it is in; entering one by
  `tf.name_scope` takes half the time of a node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.util import tf_stack

from jaxtf.convert._tf import traces_compiled

__all__ = [
    "NameScope",
    "has_only_cpu",
    "is_compiled",
    "is_compiled_for_cpu",
    "new_node",
    "rng_bit_generator",
    "variadic_sort",
]

# `tf.Graph.create_op` asks at each call for the names of its parameters, to warn of one that nobody passes here.
_create_op = inspect.unwrap(tf.Graph.create_op)


def is_compiled() -> bool:
    """Whether the operations that are being made are those of a function with `jit_compile=True`."""
    return traces_compiled()


def is_compiled_for_cpu() -> bool:
    """Whether they are, and of a CPU.

    On a machine that has other devices it is not known where the function will run.
    """
    return is_compiled() and has_only_cpu()


def has_only_cpu() -> bool:
    """Whether TensorFlow has no other devices."""
    return all(device.device_type == "CPU" for device in tf.config.list_logical_devices())


def variadic_sort(
    operands: Sequence[tf.Tensor], axis: int, comparator: Callable[..., Sequence[tf.Tensor]]
) -> list[tf.Tensor]:
    """Arrays sorted together by a comparator of scalars, equal elements in order."""
    scalars = [tf.TensorSpec([], x.dtype) for x in operands for _ in range(2)]

    def compared(*arguments: tf.Tensor) -> tf.Tensor:
        return comparator(*arguments)[0]

    function = tf.function(compared, autograph=False, input_signature=scalars).get_concrete_function()
    return list(gen_xla_ops.xla_variadic_sort(operands, tf.constant(axis), comparator=function, is_stable=True))


def rng_bit_generator(
    algorithm: int, state: tf.Tensor, shape: Sequence[int], dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """The next state and random bits, those of XLA."""
    key, bits = gen_xla_ops.xla_rng_bit_generator(algorithm, state, list(shape), dtype=dtype)
    return key, bits


def new_node(op_type: str, inputs: Sequence[tf.Tensor], attributes: Mapping[str, bytes]) -> tf.Tensor:
    """The first result of a new node of the current graph.

    Args:
      op_type: The type of the operation: one that takes tensors one by one, not in lists.
      inputs: Tensors, also of the graphs around.
      attributes: By name, each the bytes of an `AttrValue`; those that are absent have their defaults.

    Raises:
      ValueError: The operation does not take such inputs or attributes.
    """
    graph = tf.compat.v1.get_default_graph()
    if not _is_plain(graph):
        attrs = {name: tf.compat.v1.AttrValue.FromString(value) for name, value in attributes.items()}
        result: tf.Tensor = _create_op(graph, op_type, list(inputs), attrs=attrs).outputs[0]
        return result
    outputs = [graph.capture(tensor)._as_tf_output() for tensor in inputs]
    with graph._c_graph.get() as c_graph:
        description = pywrap_tf_session.TF_NewOperation(c_graph, op_type, graph.unique_name(op_type))
    for output in outputs:
        pywrap_tf_session.TF_AddInput(description, output)
    for name, value in attributes.items():
        pywrap_tf_session.TF_SetAttrValueProto(description, name, value)
    try:
        made = pywrap_tf_session.TF_FinishOperation(description)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(error.message) from error
    pywrap_tf_session.TF_SetOpStackTrace(made, tf_stack.extract_stack(stacklevel=2))
    operation = tf.Operation._from_c_op(made, graph)
    graph._create_op_helper(operation)
    result = operation.outputs[0]
    return result


def _is_plain(graph: tf.Graph) -> bool:
    """Whether a graph is that of a function and does nothing of its own with a new node, nor what is around it."""
    return (
        isinstance(graph, FuncGraph)
        and type(graph)._create_op_internal is FuncGraph._create_op_internal
        and not graph._control_dependencies_stack
        and graph._default_original_op is None
        and graph._get_control_flow_context() is None
    )


class NameScope:
    """The name scope that `tf.name_scope` makes in a graph, as a context; nothing in eager mode.

    Args:
      name: Of letters, digits and `_.-`, in parts between slashes.
    """

    __slots__ = ("_graph", "_name", "_outer")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._graph: Any = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if self._graph is not None:
            self._outer = self._graph._name_stack
            self._graph._name_stack = self._graph.unique_name(self._name)

    def __exit__(self, *_: object) -> None:
        if self._graph is not None:
            self._graph._name_stack = self._outer
