"""What a TFLite model checks of the sizes of its inputs before anything else runs, as a function of TensorFlow.

TFLite has no assertion, and its converter drops those of graph mode. Its interpreter takes inputs of other sizes than
the function was made for, static ones too, and kernels then give other numbers or read past the end of an array. But
it refuses an index that is out of bounds. So the function takes an element at an index that is 0 where all sizes fit.

Not checked again: what JAX has decided for all sizes that fit, as of functions that are called with intermediate
results; and declared sizes of `call_tf`, which are reshapes to sizes that no array has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import TFLiteUnsupported
from jaxtf.convert._function.checked_sizes import REQUIRED

__all__ = ["SizeChecks", "size_checks"]

_ASSERTION = "Assert"
_INPUT = "Placeholder"
_OF_SIZES = frozenset(("Shape", "ShapeN", "Size", "Rank"))
_SAME = frozenset(("Identity", "EnsureShape", "PreventGradient", "StopGradient"))

# As TensorFlow calls the branch around an assertion whose message has numbers of some dtypes.
_GUARD = "AssertGuard"


@dataclass(frozen=True)
class SizeChecks:
    """A function that fails where sizes do not fit, in TensorFlow and in TFLite.

    Attributes:
      concrete: Of inputs of any sizes by their names: those of which something is asserted.
    """

    concrete: Any

    def allow(self, inputs: Mapping[str, Any]) -> bool:
        """Whether these arrays have sizes that fit."""
        _, taken = self.concrete.structured_input_signature
        try:
            self.concrete(**{name: tf.constant(inputs[name], spec.dtype) for name, spec in taken.items()})
        except tf.errors.InvalidArgumentError:
            return False
        return True


def size_checks(concrete: Any, specs: Mapping[str, tf.TensorSpec], compared: Iterable[str] = ()) -> SizeChecks | None:
    """What a model of a function checks; None if nothing is asserted of sizes.

    Where something is asserted of the sizes of an input, its static ones are compared too.

    Args:
      concrete: What the model computes, in graph mode, with its assertions. What it captures is still there.
      specs: Of its inputs, by their names.
      compared: The names of inputs whose static sizes are to be compared in any case.

    Raises:
      TFLiteUnsupported: Sizes are compared in a loop or in a branch.
    """
    graph = concrete.graph.as_graph_def()
    if any(node.op == _ASSERTION for function in graph.library.function for node in function.node_def):
        graph = _tf.without_calls(concrete)
    conditions, part = _conditions(graph)
    used = {node.name for node in part.node if node.op == _INPUT}
    taken = [name for name, spec in specs.items() if spec.name in used or name in compared]
    if not taken:
        return None

    def check(**inputs: tf.Tensor) -> tf.Tensor:
        given = {specs[name].name: value for name, value in inputs.items() if specs[name].name in used}
        holds = [*tf.graph_util.import_graph_def(part, given, conditions, name="sizes")]
        for name, value in inputs.items():
            shape = specs[name].shape
            static = [] if shape.rank is None else [(axis, n) for axis, n in enumerate(shape) if n is not None]
            if static:
                axes, sizes = zip(*static, strict=True)
                holds.append(tf.reduce_all(tf.equal(tf.gather(tf.shape(value), axes), sizes)))
        return tf.gather(tf.constant([1]), tf.cast(reduce(tf.logical_and, holds), tf.int32) - 1)

    of_any_sizes = {name: _of_any_sizes(specs[name]) for name in taken}
    return SizeChecks(tf.function(check, autograph=False).get_concrete_function(**of_any_sizes))


def _of_any_sizes(spec: tf.TensorSpec) -> tf.TensorSpec:
    shape = None if spec.shape.rank is None else [None] * spec.shape.rank
    return tf.TensorSpec(shape, spec.dtype, spec.name)


def _conditions(graph: Any) -> tuple[list[str], Any]:
    """What is asserted of sizes, each truth value once, and the part of a graph that computes it from the inputs."""
    nodes = _by_name(graph.node)
    functions = {function.signature.name: function for function in graph.library.function}
    guards = {node.name: node.attr["else_branch"].func.name for node in nodes.values() if _is_guard(node)}
    conditions: dict[str, None] = {}
    for node in nodes.values():
        if node.op == _ASSERTION:
            said = [nodes[_node(name)] for name in node.input]
        elif node.name in guards:
            said = [functions[guards[node.name]]]
        else:
            continue
        [name, *_] = node.input
        if _are_sizes(_computed_from([name], nodes)) or any(map(_is_about_required, said)):
            conditions[name] = None
    _refuse_in_control_flow(functions[name] for name in functions.keys() - guards.values())
    kept = _computed_from(conditions, nodes)
    if _are_sizes(kept):
        kept = _narrowed(kept)
    part = tf.compat.v1.GraphDef(versions=graph.versions, library=graph.library)
    part.node.extend(kept.values())
    return [name if ":" in name else f"{name}:0" for name in conditions], part


def _refuse_in_control_flow(functions: Iterable[Any]) -> None:
    for function in functions:
        for node in function.node_def:
            if node.op == _ASSERTION and _is_about_required(function):
                raise TFLiteUnsupported(
                    "TFLite cannot compare sizes in a loop or in a branch, as a module of convert_stablehlo needs it: "
                    f"{function.signature.name}\n"
                    "  remedy: give the arguments the sizes that are known, in the signature of the SavedModel"
                )


def _by_name(graph_nodes: Iterable[Any]) -> dict[str, Any]:
    """Copies of nodes by their names. Nothing runs before them, and what only passes a tensor on they do not take."""
    nodes = {}
    for node in graph_nodes:
        nodes[node.name] = copied = tf.compat.v1.NodeDef()
        copied.CopyFrom(node)
        copied.input[:] = [each for each in node.input if not each.startswith("^")]
    for node in nodes.values():
        node.input[:] = [_passed_on(name, nodes) for name in node.input]
    return nodes


def _passed_on(name: str, nodes: Mapping[str, Any]) -> str:
    """The result that one is, which nodes pass on."""
    while nodes[_node(name)].op in _SAME:
        name = nodes[_node(name)].input[0]
    return name


def _node(name: str) -> str:
    """The name of the node of a result."""
    return name.partition(":")[0]


def _computed_from(names: Iterable[str], nodes: Mapping[str, Any]) -> dict[str, Any]:
    """The nodes from which results are computed, by their names."""
    left, found = [_node(name) for name in names], {}
    while left:
        name = left.pop()
        if name not in found:
            found[name] = nodes[name]
            left += map(_node, nodes[name].input)
    return found


def _are_sizes(part: Mapping[str, Any]) -> bool:
    """Whether a part of a graph computes with the sizes of inputs and with constants alone."""
    for node in part.values():
        given = [part[_node(name)].op for name in node.input]
        if any((op == _INPUT) is not (node.op in _OF_SIZES) for op in given):
            return False
        if not given and node.op not in (_INPUT, "Const"):
            return False
    return True


def _narrowed(part: dict[str, Any]) -> dict[str, Any]:
    """The part that computes with int32, as TFLite's sizes are: it divides no int64. Not where a constant is larger."""
    narrowed = {}
    for name, node in part.items():
        narrowed[name] = copied = tf.compat.v1.NodeDef()
        copied.CopyFrom(node)
        for key, attribute in copied.attr.items():
            if node.op == _INPUT or (node.op in _OF_SIZES and key == "T"):
                continue  # the dtype of an input
            if attribute.type == tf.int64.as_datatype_enum:
                attribute.type = tf.int32.as_datatype_enum
            if attribute.tensor.dtype == tf.int64.as_datatype_enum:
                value = tf.io.parse_tensor(attribute.tensor.SerializeToString(), tf.int64).numpy()
                if np.abs(value).max(initial=0) > tf.int32.max:
                    return part
                attribute.tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    return narrowed


def _is_guard(node: Any) -> bool:
    return node.op in ("If", "StatelessIf") and node.name.rpartition("/")[2].startswith(_GUARD)


def _is_about_required(said: Any) -> bool:
    """Whether it has the message about what StableHLO requires, of which JAX decides when it exports a function."""
    return REQUIRED.encode() in said.SerializeToString()
