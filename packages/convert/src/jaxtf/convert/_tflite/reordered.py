"""Which operations of a graph TFLite's converter would give their operands in the wrong order.

The converter (TensorFlow 2.21) moves a Transpose behind elementwise operations whose other operand is a constant, and
then gives all of them the constant as the second operand, differences and quotients too: `5 - x.T` becomes `x.T - 5`.
It makes such a difference of a sum with what is negated as well. What is moved may be an operation or more away, in
another function, or made by the converter; so all are found whose first operand the converter may know, in graphs that
have any operation that it writes as a Transpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from jaxtf.convert._tflite.graphs import nodes_of

__all__ = ["DIFFERENCES_AND_QUOTIENTS", "RECIPROCALS", "constants", "may_reorder", "reordered", "sigmoids"]

DIFFERENCES_AND_QUOTIENTS = ("Sub", "RealDiv", "Div", "TruncateDiv", "Xdivy")
RECIPROCALS = ("Reciprocal", "Inv")

_SUMS = frozenset(("Add", "AddV2", "AddN"))
_PASSES_ON = frozenset(("Identity", "IdentityN", "StopGradient", "PreventGradient", "EnsureShape", "Snapshot"))
_INPUTS = frozenset(("Placeholder", "PlaceholderWithDefault"))

# Known where the shapes of their operands are.
_OF_SHAPES = frozenset(("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"))

_MAIN = ""
_ONE = np.float32(1).tobytes()


def may_reorder(graph: Any) -> bool:
    """Whether the converter may write any operation of a graph, or of the functions in it, as a Transpose."""
    return any(_is_transposed(node) or "MatMul" in node.op for node in nodes_of(graph))


def reordered(graph: Any) -> dict[str, set[str]]:
    """The names of the nodes that would be reordered, by the function that they are in: "" is none."""
    if not may_reorder(graph):
        return {}
    functions = {function.signature.name: function for function in graph.library.function}
    bodies, known = _bodies(graph), constants(graph)
    if not any(
        # A product of a constant and an array is one of both transposed, and that is transposed.
        _is_transposed(node) or ("MatMul" in node.op and _names(node.input)[0] in known[name])
        for name, nodes in bodies.items()
        for node in nodes
    ):
        return {}
    results = {name: list(function.ret.values()) for name, function in functions.items()}
    return {name: _reordered(nodes, known[name], results.get(name, [])) for name, nodes in bodies.items()}


def sigmoids(nodes: Iterable[Any]) -> dict[str, str]:
    """Quotients that the converter takes for a sigmoid, `1 / (1 + exp(-x))`: by their names, the names of `x`."""
    by_name = {node.name: node for node in nodes}

    def source(name: str) -> Any:
        while (node := by_name.get(_names([name])[0])) is not None and node.op == "Identity":
            name = node.input[0]
        return node

    def is_one(name: str) -> bool:
        node = source(name)
        if node is None or node.op != "Const":
            return False
        value = node.attr["value"].tensor
        return not value.tensor_shape.dim and ([*value.float_val] == [1] or value.tensor_content == _ONE)

    found = {}
    for node in by_name.values():
        if node.op != "RealDiv" or not is_one(node.input[0]) or (total := source(node.input[1])) is None:
            continue
        for one, other in (total.input[:2], total.input[1::-1]) if total.op in _SUMS - {"AddN"} else ():
            power = source(other)
            if is_one(one) and power is not None and power.op == "Exp":
                negated = source(power.input[0])
                if negated is not None and negated.op == "Neg":
                    found[node.name] = negated.input[0]
    return found


def _is_transposed(node: Any) -> bool:
    """Whether it is a Transpose, or has a layout or an order of dimensions of its own."""
    has_layout = "data_format" in node.attr and node.attr["data_format"].s.startswith(b"NC")
    return "Transpose" in node.op or node.op == "Einsum" or has_layout


def _reordered(nodes: list[Any], known: set[str], results: list[str]) -> set[str]:
    """Those of a body: differences from what is known, and what is negated and then added to that."""
    by_name = {node.name: node for node in nodes}
    names = {
        node.name
        for node in nodes
        if node.op in RECIPROCALS or (node.op in DIFFERENCES_AND_QUOTIENTS and _names(node.input)[0] in known)
    }
    # What is added in another function is added there after it was put in place.
    rest = _names(results)
    for node in nodes:
        operands = _names(node.input)
        if any(_called(node)) or (node.op in _SUMS and not known.isdisjoint(operands)):
            rest += operands
    seen: set[str] = set()
    while rest:
        name = rest.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            node = by_name[name]
            if node.op == "Neg":
                names.add(name)
            elif node.op in _PASSES_ON:
                rest += _names(node.input)
    return names


def _bodies(graph: Any) -> dict[str, list[Any]]:
    """The nodes of each function in a graph, by its name, and of the graph itself: of none."""
    return {_MAIN: list(graph.node), **{each.signature.name: list(each.node_def) for each in graph.library.function}}


def constants(graph: Any) -> dict[str, set[str]]:
    """The nodes and arguments of each body that may depend on no input: in any call, of those of functions."""
    bodies = _bodies(graph)
    arguments = {function.signature.name: _arguments(function) for function in graph.library.function}
    known: dict[str, set[str]] = {name: set() for name in bodies}
    count = -1
    while count < (count := sum(map(len, known.values()))):
        for name, nodes in bodies.items():
            for node in nodes:
                operands = _names(node.input)
                if node.op not in _INPUTS and (
                    node.op in _OF_SHAPES or any(_called(node)) or known[name].issuperset(operands)
                ):
                    known[name].add(node.name)
                for callee in _called(node):
                    taken = arguments.get(callee, [])
                    # Of a branch the operands come after its condition.
                    pairs = zip(reversed(taken), reversed(operands), strict=False)
                    known.get(callee, set()).update(argument for argument, value in pairs if value in known[name])
    return known


def _arguments(function: Any) -> list[str]:
    return [argument.name for argument in function.signature.input_arg]


def _called(node: Any) -> Iterator[str]:
    """The functions that a node calls."""
    for value in node.attr.values():
        yield from (function.name for function in (value.func, *value.list.func) if function.name)


def _names(inputs: Iterable[str]) -> list[str]:
    """The nodes and arguments that results are of, without those that only come before."""
    return [name.partition(":")[0] for name in inputs if not name.startswith("^")]
