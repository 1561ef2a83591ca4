"""Operations of a traced graph that compute with sizes: what the formulas of `_sizes` cannot follow is refused.

A value of the graph is a constant, a size (computed from sizes and constants alone) or data. TensorFlow folds sizes
when it compiles for constant shapes, so what is computed from them is seen only as numbers. Sums, products and
divisions by constants of sizes are polynomials, which numbers determine; a root, a comparison, a rounding or a bit of a
size is not, whatever numbers it shows at some sizes.

`refuse_what_has_no_formula` looks at every operation that a result depends on, in the functions that it calls too.
Knows GraphDefs; nothing of formulas, samples or JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import tensorflow as tf

from jaxtf.calltf._errors import LIMITATIONS, UnsupportedError

LARGEST_THRESHOLD = 1 << 30
"""Beyond it, sizes above a threshold do not fit the 32-bit integers that TensorFlow computes sizes with."""


class Kind(IntEnum):
    """What a value depends on; the larger of two is what depends on both."""

    CONSTANT = 0
    SIZE = 1
    DATA = 2


_SIZES = {"Shape", "ShapeN", "Size", "TensorListLength", "TensorListElementShape"}
_MOVES = {
    *("Identity", "IdentityN", "Pack", "Unpack", "ConcatV2", "Concat", "StridedSlice", "Slice", "Gather", "GatherV2"),
    *("Reshape", "ExpandDims", "Squeeze", "Split", "SplitV", "ReverseV2", "StopGradient", "PreventGradient"),
    *(
        "ConcatOffset",
        "BroadcastGradientArgs",
        "BroadcastArgs",
        "InvertPermutation",
        "Transpose",
        "PlaceholderWithDefault",
    ),
    *("EnsureShape", "ZerosLike", "OnesLike", "DynamicStitch", "BroadcastTo", "PlaceholderWithDefault"),
}
_AFFINE = {"Add", "AddV2", "AddN", "Sub", "Neg", "Sum"}
_FILLED = {"Range", "Fill", "Tile", "Pad", "PadV2", "Empty", "EmptyTensorList", "TensorListReserve"}
_WIDE = (tf.int32, tf.int64)
_REAL = (tf.float32, tf.float64, tf.complex64, tf.complex128)
_CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
_BRANCHES = {"If", "StatelessIf", "Case", "StatelessCase"}
_LOOPS = {"While", "StatelessWhile"}


def refuse_what_has_no_formula(concrete: Any, function: Any) -> None:
    """Refuses a trace with an operation on sizes that is not one of `+ - *` and division by a constant.

    Raises:
      UnsupportedError: It names the operation.
    """
    graph = concrete.graph
    uses = _Uses(graph.as_graph_def(), function)
    outputs = [output.name.removesuffix(":0") for output in concrete.outputs]
    arguments = {placeholder.op.name: Kind.DATA for placeholder in graph.inputs}
    uses.outputs(graph.as_graph_def().node, outputs, arguments)


class _Uses:
    def __init__(self, graph: Any, function: Any):
        self._library = {f.signature.name: f for f in graph.library.function}
        self._function = function

    def outputs(self, nodes: Sequence[Any], outputs: Sequence[str], arguments: dict[str, Kind]) -> list[Kind]:
        """The kinds of the outputs of a graph or of the body of a function."""
        by_name = {node.name: node for node in nodes}
        kinds: dict[str, list[Kind]] = {name: [kind] for name, kind in arguments.items()}

        def of(text: str) -> Kind:
            name, *port = text.split(":")
            found = kinds[name]
            # Of a graph `name:index`, of a function `name:output:index`; nearly all have one output.
            index = int(port[-1]) if port else 0
            return found[index] if len(port) < 2 and index < len(found) else max(found)

        waiting = [text.partition(":")[0] for text in outputs]
        while waiting:
            name = waiting[-1]
            if name in kinds:
                waiting.pop()
                continue
            inputs = [text for text in by_name[name].input if not text.startswith("^")]
            missing = [n for n in (text.partition(":")[0] for text in inputs) if n not in kinds]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            producers = [by_name.get(text.partition(":")[0]) for text in inputs]
            kinds[name] = self._kinds(by_name[name], [of(text) for text in inputs], producers)
        return [of(text) for text in outputs]

    def _called(self, name: str, arguments: Sequence[Kind]) -> list[Kind]:
        definition = self._library[name]
        names = [argument.name for argument in definition.signature.input_arg]
        outputs = [definition.ret[argument.name] for argument in definition.signature.output_arg]
        return self.outputs(definition.node_def, outputs, dict(zip(names, arguments, strict=True)))

    def _kinds(self, node: Any, inputs: list[Kind], producers: Sequence[Any]) -> list[Kind]:
        op = node.op
        if op in self._library:
            return self._called(op, inputs)
        if op in _CALLS:
            return self._called(node.attr["f"].func.name, inputs)
        if op in _BRANCHES:
            if inputs[0] == Kind.SIZE:
                raise self._refused(node, "branches on a size")
            functions = [a.func.name for a in node.attr.values() if a.func.name]
            functions += [f.name for a in node.attr.values() for f in a.list.func]
            columns = zip(*(self._called(name, inputs[1:]) for name in functions), strict=True)
            return [max(inputs[0], *column) for column in columns]
        if op in _LOOPS:
            return self._loop(node, inputs)
        if op in _SIZES:
            return [Kind.SIZE]
        kind = max(inputs, default=Kind.CONSTANT)
        if kind == Kind.CONSTANT and inputs and op not in _MOVES:
            self._constant(node)
        if kind != Kind.SIZE or op in _MOVES or op in _FILLED:
            return [Kind.DATA if op in _FILLED and inputs and kind else kind]
        self._arithmetic(node, inputs, producers)
        return [kind]

    def _loop(self, node: Any, inputs: list[Kind]) -> list[Kind]:
        body = self._library[node.attr["body"].func.name]
        names = [argument.name for argument in body.signature.input_arg]
        passed = {n.name: n.input[0] for n in body.node_def if n.op == "Identity"}
        carried = list(inputs)
        for index, argument in enumerate(body.signature.output_arg):
            source = body.ret[argument.name]
            while (name := source.partition(":")[0]) in passed:
                source = passed[name]
            if source != names[index]:
                carried[index] = Kind.DATA
        self._called(body.signature.name, carried)
        self._called(node.attr["cond"].func.name, carried)
        if max(inputs) < Kind.DATA:
            raise self._refused(node, "loops over sizes alone")
        return carried

    def _constant(self, node: Any) -> None:
        """Computed constants may be thresholds that no number in the graph shows."""
        if node.op in ("Pow", "Prod", "Mul", "LeftShift", "Exp", "Cumsum", "Cumprod"):
            dtype = node.attr["T"].type
            if tf.as_dtype(dtype) in _WIDE:
                raise self._refused(node, "computes an integer constant, which may be a threshold for sizes,")

    def _arithmetic(self, node: Any, inputs: list[Kind], producers: Sequence[Any]) -> None:
        op = node.op
        dtype = tf.as_dtype(node.attr["DstT" if op == "Cast" else "T"].type)
        if op == "Cast" and tf.as_dtype(node.attr["SrcT"].type) in _WIDE and dtype in (*_WIDE, *_REAL):
            return
        if dtype in _WIDE:
            if op in _AFFINE:
                return
            if op in ("Mul", "Prod") and (dtype == tf.int32 or Kind.CONSTANT in inputs):
                return
            if op == "FloorDiv" and inputs[1] == Kind.CONSTANT:
                return
            # A gradient of a mean: the elements of its argument over those of its result, which divide them.
            kinds = [producer.op if producer is not None else "" for producer in producers]
            if op == "Maximum" and "Prod" in kinds:
                return
            if op == "FloorDiv" and kinds[0] == "Prod" and kinds[1] in ("Maximum", "Prod"):
                return
            if op in ("FloorMod", "Maximum", "Mod") and node.name.rpartition("/")[0].endswith("_grad"):
                return
        raise self._refused(node, "computes with a size")

    def _refused(self, node: Any, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"call_tf: {self._function} is called with symbolic sizes, and its operation {node.op} ({node.name}) "
            f"{what} in a way that call_tf does not follow: it follows sums, products and divisions by constants\n"
            "  remedy: use constant shapes for the arguments of this function, or split it, and write in JAX the part "
            f"that depends on sizes in this way; see {LIMITATIONS}"
        )
