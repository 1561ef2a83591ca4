"""`explain`: what would be refused, in every mode, and how large what is made would be; nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert._convert.callables import check_function
from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._graph.survey import Refusal, Survey, surveyed
from jaxtf.convert._native.consumer import versions_to_write
from jaxtf.convert._tflite.left_over import left_over
from jaxtf.convert._tflite.of_function import AVOIDED
from jaxtf.convert._tflite.replaced import converter_of_function
from jaxtf.convert._verify.explanation import Explanation, Mode
from jaxtf.serialization import Exported, deserialize, export
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import SuggestedConstraints, SymbolicScope, is_symbolic_dim, suggest_constraints, symbolic_shape

__all__ = ["explain"]


def explain(target: Any, *specs: Any) -> Explanation:
    """Every operation of a function that would be refused, per mode, and the size of the result.

    Native mode, graph mode with TensorFlow's XLA operations and without them, and TFLite. The function is traced and
    translated, and not run.

    Args:
      target: A JAX function, an `Exported`, or the bytes of an artifact.
      specs: For a function: the shapes and dtypes of its positional arguments, as `jax.ShapeDtypeStruct`, also
        symbolic. Where its sizes need constraints, these are part of the explanation, which assumes them.

    Returns:
      An explanation that prints as text: for each mode the refusals with count, line and remedy, or the numbers of
      operations and of bytes, with the lines that most operations come from.

    Raises:
      FunctionTypeError: `target` is neither a JAX function, nor an `Exported`, nor bytes.
      ConversionOptionError: Specifications for a target that has its own.
      JaxRequiredError: JAX is not installed.

    >>> import jax, jax.numpy as jnp
    >>> from jaxtf.convert import explain
    >>> explanation = explain(jnp.linalg.eigvals, jax.ShapeDtypeStruct((3, 3), jnp.float32))
    >>> [(mode.name, mode.ok) for mode in explanation.modes]
    [('native', False), ('graph', True), ('graph_without_xla', True), ('tflite', False)]
    """
    if isinstance(target, bytes | bytearray | memoryview):
        target = deserialize(target)
    if isinstance(target, Exported):
        if specs:
            raise ConversionOptionError("explain takes no shapes with an exported function: it has its own")
        return _explained(target.fun_name, lambda: target, lambda: target, None)
    check_function(target, "explain")
    suggested = suggest_constraints(target, *specs) if _sizes(specs) else None
    if suggested is not None and suggested.constraints:
        specs = _constrained(specs, suggested)
    versions = asdict(versions_to_write(None))
    name = getattr(target, "__name__", type(target).__name__)
    return _explained(
        name,
        lambda: export(target, expand_linear_algebra=True, **versions)(*specs),
        lambda: export_for_graph(target)(*specs),
        suggested,
    )


def _explained(
    name: str,
    for_native: Callable[[], Exported],
    for_graph: Callable[[], Exported],
    suggested: SuggestedConstraints | None,
) -> Explanation:
    modes = [_native(for_native)]
    graphs: dict[str, dict[str, Any]] = {
        "graph": {"allows_xla": True},
        "graph_without_xla": {"allows_xla": False},
        "tflite": {"allows_xla": False, "avoids": AVOIDED},
    }
    try:
        exported = for_graph()
    except Exception as error:  # whatever keeps JAX from lowering it
        modes += [Mode(mode, error=_text(error)) for mode in graphs]
    else:
        modes += [_graph(mode, exported, options) for mode, options in graphs.items()]
    return Explanation(name, tuple(modes), suggested)


def _native(make: Callable[[], Exported]) -> Mode:
    try:
        return Mode("native", nodes=1, size=len(make().mlir_module_serialized))
    except Exception as error:  # whatever keeps JAX from lowering it
        return Mode("native", error=_text(error))


def _graph(mode: str, exported: Exported, options: dict[str, Any]) -> Mode:
    try:
        survey = surveyed(exported, **options)
    except NotImplementedError as error:
        return Mode(mode, error=_text(error))
    refusals = survey.refusals
    if mode == "tflite":
        refusals = (*refusals, *_left_over_by_tflite(survey))
    return Mode(mode, refusals, survey.nodes, survey.size, survey.nodes_of_lines)


def _left_over_by_tflite(survey: Survey) -> list[Refusal]:
    """What TFLite's converter does not take of a graph."""
    module = tf.Module()
    module.f = survey.concrete
    remedy = "compute that part outside of the model, or write it with other operations or dtypes"
    try:
        with converter_of_function(survey.concrete, module) as converter:
            found = left_over(converter, survey.concrete.graph.as_graph_def())
    except Exception as error:  # the converter raises errors of several kinds
        return [Refusal("TFLite's converter", _text(error).partition("\n")[0], remedy, "")]
    refusals: dict[tuple[str, str, str], int] = {}
    for name, types, places in found:
        for place in places or [""]:
            key = name, types, _line_of(place, survey.lines)
            refusals[key] = refusals.get(key, 0) + 1
    return [
        Refusal(f"tf.{name}", f"TFLite has no builtin operation for {types}", remedy, line, count)
        for (name, types, line), count in refusals.items()
    ]


def _line_of(node: str, lines: dict[str, str]) -> str:
    """The line of the operation that a node was made for: it is in a name scope of that."""
    scope = node
    while scope:
        scope = scope.rpartition("/")[0]
        if lines.get(scope):
            return lines[scope]
    return node


def _sizes(specs: Sequence[Any]) -> bool:
    """Whether a size is symbolic."""
    return any(is_symbolic_dim(size) for leaf in jax.tree.leaves(specs) for size in getattr(leaf, "shape", ()))


def _constrained(specs: tuple[Any, ...], suggested: SuggestedConstraints) -> tuple[Any, ...]:
    """The specifications with the constraints that are suggested."""
    known = {size.scope for leaf in jax.tree.leaves(specs) for size in leaf.shape if is_symbolic_dim(size)}
    given = [constraint.text for scope in known for constraint in scope.constraints]
    scope = SymbolicScope([*given, *suggested.texts])

    def in_scope(leaf: Any) -> Any:
        text = f"({', '.join(map(str, leaf.shape))}{',' if len(leaf.shape) == 1 else ''})"
        return jax.ShapeDtypeStruct(symbolic_shape(text, scope=scope), leaf.dtype)

    constrained: tuple[Any, ...] = jax.tree.map(in_scope, specs)
    return constrained


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
