"""What a traced TensorFlow graph does besides computing.

`stateful_ops` and `variable_writes` look at every op of a concrete function and of the
functions it calls, however deep: a call, a branch or a loop is what its body is.

Reading a captured variable is not state here: in a staged call its value is a constant of
the program. `Assert` is not either: XLA compiles it to nothing. Where nothing is compiled, in
what stays a call by name, `has_assertions` says whether there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jaxtf.calltf._tf import is_compilable, is_stateful, operation_definition

_ASSERTION = "Assert"
# Stateful by declaration, harmless in a compiled program: reads of captured variables,
# assertions, and the ops whose bodies are looked at instead.
_HARMLESS = re.compile(
    rf"ReadVariableOp|ResourceGather(Nd)?|VariableShape|VarIsInitializedOp|{_ASSERTION}"
    r"|Placeholder.*|StatefulPartitionedCall|If|While|Case|NoOp"
)
_WRITES = re.compile(
    r"Assign.*|Resource(Scatter|Apply|SparseApply|StridedSliceAssign|CountUpTo|Accumulator).*"
    r"|Rng(ReadAndSkip|Skip)|NonDeterministicInts|Stateful(Uniform|StandardNormal|Truncated|Random|Binomial).*"
)
_CONTROL_FLOW = re.compile(r"(Stateless)?(If|While|Case)|TensorList.*|Optional.*|TensorArray.*|Switch|Merge|Enter")
_LIST_WRITE = "TensorListSetItem"
# Linear ops, parts of gradients, that TensorFlow declares not differentiable, so that its tape
# silently passes zeros on. Among all such declarations, these are wrong. Seen in TensorFlow 2.21.
LINEAR_WITHOUT_GRADIENT = {
    "ResizeBilinearGrad",
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "SparseAddGrad",
}


def stateful_ops(concrete: Any) -> frozenset[str]:
    """Types of the ops, anywhere in a concrete function, that do more than compute their results."""
    return frozenset(filter(does_more_than_compute, set(op_types(concrete))))


def does_more_than_compute(op_type: str) -> bool:
    """Whether ops of this type do, by themselves."""
    return is_stateful(op_type) and not _HARMLESS.fullmatch(op_type)


def variable_writes(stateful: frozenset[str]) -> list[str]:
    """Those of the stateful op types that write to a variable, sorted."""
    return sorted(op for op in stateful if _WRITES.fullmatch(op))


def has_assertions(concrete: Any) -> bool:
    """Whether there are assertions, which TensorFlow checks where it does not compile the graph."""
    return _ASSERTION in op_types(concrete)


def may_assert(op_type: str) -> bool:
    """Whether ops of this type are assertions, or run graphs in which there may be some."""
    return op_type in (_ASSERTION, "StatefulPartitionedCall", "If", "While", "Case")


def ops_without_compiler(concrete: Any) -> list[str]:
    """Types of the ops, anywhere in it, for which TensorFlow's compiler has no kernel; sorted."""
    types = {op for op in op_types(concrete) if operation_definition(op) is not None}
    return sorted(op for op in types if not (op.startswith("Placeholder") or is_compilable(op)))


def has_control_flow(concrete: Any) -> bool:
    """Whether the graph branches, loops, or keeps lists of tensors, as loops do."""
    return any(_CONTROL_FLOW.fullmatch(op) for op in op_types(concrete))


def has_growing_lists(concrete: Any) -> bool:
    """Whether a list of tensors may grow by being written to, as `tf.TensorArray(..., dynamic_size=True)` does."""
    return any(node.attr["resize_if_index_out_of_bounds"].b for node in nodes(concrete) if node.op == _LIST_WRITE)


def has_functions_of_python(concrete: Any) -> bool:
    """Whether it calls tf.py_function."""
    return "EagerPyFunc" in op_types(concrete)


def linear_ops_without_gradient(concrete: Any) -> list[str]:
    """Types of the ops in the graph that are linear, but that TensorFlow gives the gradient zero; sorted."""
    return sorted(LINEAR_WITHOUT_GRADIENT.intersection(op_types(concrete)))


def op_types(concrete: Any) -> Iterator[str]:
    """The type of every op that a call of the concrete function may reach."""
    return (node.op for node in nodes(concrete))


def nodes(concrete: Any) -> Iterator[Any]:
    """Every op that a call of the concrete function may reach."""
    graph = concrete.graph.as_graph_def()
    library = {function.signature.name: function.node_def for function in graph.library.function}
    waiting, met = [graph.node], set[str]()
    while waiting:
        for node in waiting.pop():
            yield node
            called = {node.op} | {attr.func.name for attr in node.attr.values()}
            called |= {function.name for attr in node.attr.values() for function in attr.list.func}
            for name in (called & library.keys()) - met:
                met.add(name)
                waiting.append(library[name])
