"""A SavedModel for TFLite's converter, with functions in place of the operations that it would rewrite wrongly.

TFLite has no builtin operation for these, and its converter (TensorFlow 2.21) writes others for them: `exp(x) - 1` and
`log(1 + x)`, which lose what is small, and for an update at indices `x * (1 - count) + sum of updates`, which is
another number where indices repeat, and NaN where x is not finite. So it does for sums of updates, and there its form
ends the process where there are none. Differences and quotients whose first operand is a constant it writes with their
operands swapped if the other one is transposed. Each such node becomes a call of a function made of operations that
TFLite has, which the converter writes in its place. Graph mode itself keeps TensorFlow's own operations: they are right
there, and faster.

In 8 bits what is small is lost in any case, and what is computed between has ranges of its own: there `exp(x) - 1` and
`log(1 + x)` are nearer, and stay. But sums of updates are of floats there: its own have the scale of one update.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._tflite.graphs import nodes_of
from jaxtf.convert._tflite.loops import has_loops, keep_nothing
from jaxtf.convert._tflite.padded_pools import padded_pools, with_edges
from jaxtf.convert._tflite.reordered import DIFFERENCES_AND_QUOTIENTS, RECIPROCALS, may_reorder, reordered, sigmoids
from jaxtf.convert._tflite.saturating import SaturatingCast, saturating_casts

__all__ = ["converter_of_folder", "converter_of_function"]

_CALL = "PartitionedCall"
_PROGRAM = "saved_model.pb"
_SIGNATURE = "serving_default"

# To which 1 adds nothing.
_LARGE = 1e30


def _expm1(x: tf.Tensor) -> tf.Tensor:
    """By `tanh(x / 2) = (exp(x) - 1) / (exp(x) + 1)`, which loses nothing for any x."""
    return tf.tanh(x * 0.5) * (tf.exp(x) + 1)


def _log1p(x: tf.Tensor) -> tf.Tensor:
    """`log(u) x / (u - 1)` of `u = 1 + x`, which gives back what the sum rounds. Quotients of infinities are left out.

    Source: Goldberg, What Every Computer Scientist Should Know About Floating-Point Arithmetic (1991), theorem 4.
    """
    u = 1 + x
    rounded = tf.minimum(u, _LARGE) - 1
    return tf.where(tf.equal(rounded, 0), x, tf.math.log(u) * (tf.minimum(x, _LARGE) / rounded))


def _rows_of(array: tf.Tensor, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The numbers of an array's rows, the shape of one, and the number of that which each of the indices is of."""
    depth, shape = tf.shape(indices)[-1], tf.shape(array)
    leading, row = shape[:depth], shape[depth:]
    numbers = tf.range(tf.reduce_prod(leading))
    return numbers, row, tf.reshape(tf.gather_nd(tf.reshape(numbers, leading), indices), [-1])


def _with_sums(array: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """With sums of updates; the converter's own form ends the process where there are none."""
    return array + tf.scatter_nd(indices, updates, tf.shape(array))


def _increased(array: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """With sums of updates, of float; a ScatterNd of 8 bits gives its sums the scale of what it sums."""
    numbers, row, place = _rows_of(array, indices)
    rows = tf.reshape(updates, tf.concat([[-1], row], 0))
    return array + tf.reshape(tf.math.unsorted_segment_sum(rows, place, tf.size(numbers)), tf.shape(array))


def _updated(array: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor) -> tf.Tensor:
    """Rows of the array, or the last update of each that has one, by one gather from both."""
    numbers, row, place = _rows_of(array, indices)
    count = tf.size(numbers)
    last = tf.math.unsorted_segment_max(tf.range(tf.size(place)), place, count)
    source = tf.where(last >= 0, last + count, numbers)
    rows = [tf.reshape(x, tf.concat([[-1], row], 0)) for x in (array, updates)]
    return tf.reshape(tf.gather(tf.concat(rows, 0), source), tf.shape(array))


def _compared(operation: str) -> Callable[..., tf.Tensor]:
    """Of integers of 8 and 16 bits, as those of 32: TFLite refuses them, or ends the process where it runs them."""

    def compared(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return getattr(tf.raw_ops, operation)(x=tf.cast(x, tf.int32), y=tf.cast(y, tf.int32))

    return compared


def _ordered(x: tf.Tensor) -> tf.Tensor:
    """Integers in the order of finite floats: their bits, those of negative ones the other way round."""
    bits = tf.bitcast(x, tf.int32)
    return tf.where(bits < 0, tf.int32.min - bits, bits)


def _compared_as_integers(operation: str) -> Callable[..., tf.Tensor]:
    """Of floats in models of 8 bits: TFLite's kernels take scales of 1 and more for others, without an error."""

    def compared(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return getattr(tf.raw_ops, operation)(x=_ordered(x), y=_ordered(y))

    return compared


def _negated(x: tf.Tensor) -> tf.Tensor:
    """As a product, which the converter does not take for a part of a difference; exact, with the sign of zero."""
    return x * tf.constant(-1, x.dtype)


def _difference(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """As a sum, whose operands may be swapped."""
    return x + _negated(y)


def _quotient(operation: str) -> Callable[..., tf.Tensor]:
    """Of a second operand that comes from no Transpose: none is moved behind the maximum, which uses it twice."""

    def quotient(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return getattr(tf.raw_ops, operation)(x=x, y=tf.maximum(y, y))

    return quotient


def _reciprocal(x: tf.Tensor) -> tf.Tensor:
    return tf.math.reciprocal(tf.maximum(x, x))


_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")

# By the name of the operation: the function, the attributes with the dtypes of its operands, and its result's name.
_FUNCTIONS: dict[str, tuple[Callable[..., tf.Tensor], tuple[str, ...], str]] = {
    "Expm1": (_expm1, ("T",), "y"),
    "Log1p": (_log1p, ("T",), "y"),
    "TensorScatterUpdate": (_updated, ("T", "Tindices", "T"), "output"),
    "TensorScatterAdd": (_with_sums, ("T", "Tindices", "T"), "output"),
    **{name: (_compared(name), ("T", "T"), "z") for name in _COMPARISONS},
}
_REORDERED: dict[str, tuple[Callable[..., tf.Tensor], tuple[str, ...], str]] = {
    "Neg": (_negated, ("T",), "y"),
    **{name: (_quotient(name), ("T", "T"), "z") for name in DIFFERENCES_AND_QUOTIENTS},
    **dict.fromkeys(RECIPROCALS, (_reciprocal, ("T",), "y")),
    "Sub": (_difference, ("T", "T"), "z"),
}

# The functions for floats in models of 8 bits, where these are others.
_IN_8_BITS: dict[str, Callable[..., tf.Tensor]] = {
    "TensorScatterAdd": _increased,
    **{name: _compared_as_integers(name) for name in _COMPARISONS},
}

# In which TFLite computes these functions. The converter refuses the operations of other dtypes by their names.
_GATHERED = (tf.float32, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.bool)
_DTYPES = {
    "Expm1": (tf.float32,),
    "Log1p": (tf.float32,),
    "TensorScatterUpdate": _GATHERED,
    "TensorScatterAdd": (tf.float32, tf.int32, tf.int64),
    **dict.fromkeys(_COMPARISONS, (tf.int8, tf.uint8, tf.int16)),
    **dict.fromkeys(_REORDERED, (tf.float32, tf.int32, tf.int64)),
}


# Replaced in models of floats alone: in 8 bits the converter's own form is as near, or nearer.
_IN_FLOAT = frozenset(("Expm1", "Log1p"))


def _is_replaced(node: Any, reordered_nodes: Container[str], is_quantized: bool) -> bool:
    """Whether a node of a graph is of an operation that the converter rewrites wrongly."""
    if is_quantized and node.op in _IN_FLOAT:
        return False
    is_one = node.op in _FUNCTIONS or (node.op in _REORDERED and node.name in reordered_nodes)
    if is_quantized and node.op in _COMPARISONS and node.attr["T"].type == tf.float32.as_datatype_enum:
        return True
    return is_one and tf.dtypes.as_dtype(node.attr["T"].type) in _DTYPES[node.op]


@contextmanager
def converter_of_function(concrete: Any, module: tf.Module, is_quantized: bool = False) -> Iterator[Any]:
    """TFLite's converter of a concrete function that a module holds."""
    if not _has_replaced(concrete, is_quantized):
        yield tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
        return
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={_SIGNATURE: concrete})
        _write_replaced(Path(folder), Path(folder), is_quantized)
        yield tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[_SIGNATURE])


@contextmanager
def converter_of_folder(folder: Path, signature: str, concrete: Any, is_quantized: bool = False) -> Iterator[Any]:
    """TFLite's converter of a signature of a SavedModel, which is that concrete function."""
    if not _has_replaced(concrete, is_quantized):
        yield tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=[signature])
        return
    with tempfile.TemporaryDirectory() as place:
        for entry in folder.iterdir():
            if entry.name != _PROGRAM:
                os.symlink(entry.resolve(), Path(place, entry.name))
        _write_replaced(folder, Path(place), is_quantized)
        yield tf.lite.TFLiteConverter.from_saved_model(place, signature_keys=[signature])


def _has_replaced(concrete: Any, is_quantized: bool) -> bool:
    """Whether it may have nodes to replace: which of its inputs are constants, its SavedModel shows."""
    graph = concrete.graph.as_graph_def()
    if is_quantized and (has_loops(graph) or any(node.op in ("PadV2", "Cast") for node in nodes_of(graph))):
        return True
    names = {node.name for node in nodes_of(graph) if node.op in _REORDERED} if may_reorder(graph) else set()
    return any(_is_replaced(node, names, is_quantized) for node in nodes_of(graph))


def _write_replaced(folder: Path, place: Path, is_quantized: bool) -> None:
    """Writes the program of a SavedModel to another place, or to the same one, with functions for those nodes."""
    message = _tf.saved_model_message((folder / _PROGRAM).read_bytes())
    for graph in message.meta_graphs:
        functions: dict[str, Any] = {}
        if is_quantized:
            keep_nothing(graph.graph_def)
        places = reordered(graph.graph_def)
        found = _in_8_bits(graph.graph_def.node) if is_quantized else {}
        _replace(graph.graph_def.node, places.get("", ()), functions, found, is_quantized)
        for function in graph.graph_def.library.function:
            found = _in_8_bits(function.node_def, function.ret.values()) if is_quantized else {}
            names = _replace(function.node_def, places.get(function.signature.name, ()), functions, found, is_quantized)
            if names:
                _rename(function, names)
        for made in functions.values():
            _add(graph.graph_def.library, made.graph.as_graph_def().library, made.function_def)
    (place / _PROGRAM).write_bytes(message.SerializeToString())


def _in_8_bits(nodes: Iterable[Any], results: Iterable[str] = ()) -> dict[str, list[tuple[int, int]] | SaturatingCast]:
    """What is replaced in models of 8 bits by what is around it: pads, with their edges, and casts, by their names."""
    return {**padded_pools(nodes, results), **saturating_casts(nodes)}


def _replace(
    nodes: Iterable[Any],
    reordered_nodes: Container[str],
    functions: dict[str, Any],
    in_8_bits: Mapping[str, list[tuple[int, int]] | SaturatingCast],
    is_quantized: bool,
) -> dict[str, str]:
    """Makes calls of nodes, and functions where there are none; gives the names of results that have new ones."""
    names, of_sigmoids = {}, sigmoids(nodes)
    for node in nodes:
        around = in_8_bits.get(node.name)
        if around is None and not _is_replaced(node, reordered_nodes, is_quantized):
            continue
        if node.name in of_sigmoids:
            names[f"{node.name}:z:0"] = f"{node.name}:y:0"
            node.op = "Sigmoid"
            node.input[:] = [of_sigmoids[node.name]]
            continue
        function, types, result, details = _instead_of(node, around, is_quantized)
        specs = [tf.TensorSpec(None, tf.dtypes.as_dtype(dtype)) for dtype in types]
        key = "_".join(["jaxtf_tflite", node.op, *(spec.dtype.name for spec in specs), *details])
        if isinstance(around, SaturatingCast):
            node.input[:] = [around.operand]
        if key not in functions:
            functions[key] = tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
        made = functions[key].function_def.signature
        names[f"{node.name}:{result}:0"] = f"{node.name}:output:0"
        node.op = _CALL
        node.ClearField("attr")
        node.attr["Tin"].list.type.extend(argument.type for argument in made.input_arg)
        node.attr["Tout"].list.type.extend(argument.type for argument in made.output_arg)
        node.attr["f"].func.name = made.name
    return names


def _instead_of(
    node: Any, around: list[tuple[int, int]] | SaturatingCast | None, is_quantized: bool
) -> tuple[Callable[..., tf.Tensor], list[int], str, tuple[str, ...]]:
    """The function in the place of a node: it, the dtypes of what it takes, its result's name, what it depends on."""
    if isinstance(around, SaturatingCast):
        result = "y" if node.op == "Cast" else "output"
        details = (around.dtype.name, *map(str, around.bounds))
        return around.function(), [tf.float32.as_datatype_enum], result, details
    if around is None:
        function, dtypes, result = _FUNCTIONS.get(node.op) or _REORDERED[node.op]
        if is_quantized and node.attr["T"].type == tf.float32.as_datatype_enum:
            function = _IN_8_BITS.get(node.op, function)
    else:
        function, dtypes, result = with_edges(around), ("T", "Tpaddings", "T"), "output"
    # A SavedModel leaves out what is the default: of places and paddings int32.
    types = [node.attr[name].type or tf.int32.as_datatype_enum for name in dtypes]
    return function, types, result, tuple(map(str, around or ()))


def _rename(function: Any, names: dict[str, str]) -> None:
    """Gives the results of replaced nodes the names that those of a call have."""
    for node in function.node_def:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
    for result, name in function.ret.items():
        function.ret[result] = names.get(name, name)


def _add(library: Any, inner: Any, function: Any) -> None:
    """Adds a function, and those that it calls, to a library."""
    there = {each.signature.name for each in library.function}
    library.function.extend(each for each in (*inner.function, function) if each.signature.name not in there)
