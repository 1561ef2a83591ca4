"""`to_tflite`: a JAX function, or a SavedModel of graph mode, as a TFLite model of builtin operations.

Graph mode with regular operations only, then TensorFlow's own converter, which recognizes fully connected layers,
convolutions, pools, GELU and softmax in them. What TFLite has no builtin operation for is refused with the names that
it has in the user's program, and with the converter's own error behind it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionOptionError, TFLiteUnsupported
from jaxtf.convert._tflite.casts import casts_of_int4
from jaxtf.convert._tflite.first import run_first
from jaxtf.convert._tflite.graphs import nodes_of
from jaxtf.convert._tflite.left_over import left_over_in
from jaxtf.convert._tflite.reductions import with_checked_reductions
from jaxtf.convert._tflite.replaced import converter_of_folder, converter_of_function
from jaxtf.convert._tflite.representative import checked_samples
from jaxtf.convert._tflite.size_checks import size_checks
from jaxtf.convert._values.progress import Progress
from jaxtf.serialization.interop import require_jax

__all__ = ["to_tflite"]

_SIGNATURE = "serving_default"


def to_tflite(
    target: Callable[..., Any] | str | Path,
    *,
    input_signature: Sequence[Any] | None = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: list[str] | tuple[str, ...] = (),
    representative_data: Iterable[Sequence[Any]] | None = None,
    signature: str = _SIGNATURE,
) -> bytes:
    """The bytes of a TFLite model, of builtin operations only.

    Args:
      target: A JAX function of the inputs, its parameters closed over; or the folder of a SavedModel in graph mode
        (`save_model(..., native_serialization=False)`). One in native mode is refused: TFLite's converter reads a part
        of StableHLO, and remainders of negative numbers, among others, are wrong without an error.
      input_signature: For a function: a `tf.TensorSpec` for each argument, or anything else with shape and dtype.
      polymorphic_shapes: For a function: as in `convert`, where sizes of the signature are None.
      polymorphic_constraints: As in `convert`.
      representative_data: About a hundred typical samples: for each a list with one array for
        each argument, in their order (of a SavedModel: in that of the names of its inputs). If given, weights and
        activations become int8, with the ranges seen here; inputs and results keep their dtypes.
      signature: For a SavedModel: which of its signatures.

    Returns:
      What `tf.lite.Interpreter(model_content=...)` and `ai_edge_litert.interpreter.Interpreter` take. Its signature
      runner takes the inputs by the names of the function's arguments. Of inputs with open sizes it refuses those that
      do not fit (`RuntimeError`: gather index out of bounds); a static input an interpreter resizes unless strict.

    Raises:
      ConversionOptionError: No such folder or signature, a SavedModel of native mode, shapes left out, or
        representative data of other shapes or without samples, or of sizes that do not fit.
      JaxRequiredError: A function, where JAX is not installed.
      GraphModeUnsupported: An operation that graph mode has no regular TensorFlow operations for.
      TFLiteUnsupported: An operation that TFLite has no builtin operation for; with its place in the program. Sizes
        that are compared in loops or branches.

    >>> import jax.numpy as jnp, tensorflow as tf
    >>> from jaxtf.convert import to_tflite
    >>> model = to_tflite(lambda x: jnp.tanh(x @ jnp.ones((4, 2))), input_signature=[tf.TensorSpec([1, 4])])
    >>> model[4:8]
    b'TFL3'
    """
    is_quantized = representative_data is not None
    if isinstance(target, str | Path):
        module, concrete, specs = _of_saved_model(Path(target), signature)
        narrowed: list[str] = []
        conversion = converter_of_folder(Path(target), signature, concrete, is_quantized)
    elif callable(target):
        require_jax("to_tflite of a function", "jaxtf-convert")
        if input_signature is None:
            raise ConversionOptionError(
                "to_tflite of a function needs input_signature, a tf.TensorSpec for each argument"
            )
        from jaxtf.convert._tflite.of_function import of_function

        module, concrete, specs, narrowed = of_function(
            target, input_signature, polymorphic_shapes, polymorphic_constraints
        )
        conversion = converter_of_function(concrete, module, is_quantized)
    else:
        raise ConversionOptionError(
            f"to_tflite needs a JAX function or the folder of a SavedModel, found {type(target).__name__}"
        )
    checks = size_checks(concrete, specs, narrowed)
    with Progress("to_tflite") as progress, conversion as converter:
        if representative_data is not None:
            _quantize(converter, checked_samples(representative_data, specs, checks), progress)
        progress.at("TFLite's converter")
        are_named = not isinstance(target, str | Path) and _are_names(polymorphic_shapes)
        model = with_checked_reductions(_converted(converter, concrete), _converted_check, are_named)
    return model if checks is None else run_first(_converted_check(checks.concrete), model)


def _are_names(shapes: Any) -> bool:
    """Whether all open sizes are variables, which are at least 1, and no expressions."""
    texts = [shapes] if isinstance(shapes, str) else shapes
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return False
    return not re.search(r"[-+*/^]|\w\s*\(", " ".join(f"({text})" for text in texts))


def _converted_check(check: Any) -> bytes:
    """The model of a function that captures nothing; with a module it has a signature."""
    return _converted(tf.lite.TFLiteConverter.from_concrete_functions([check], tf.Module()), check)


def _quantize(converter: Any, samples: Sequence[Any], progress: Progress) -> None:
    """Has a converter make weights and activations int8, with the ranges that these samples have."""
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: progress.over(samples, "sample", len(samples))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]


def _converted(converter: Any, concrete: Any) -> bytes:
    """What a converter makes of a concrete function."""
    casts = casts_of_int4(concrete.graph.as_graph_def())
    if casts:
        raise _refused(casts)
    try:
        with warnings.catch_warnings():
            # Samples by name make TFLite read its own model, whose reader warns that it moves to another package.
            warnings.filterwarnings("ignore", r"\s*Warning: tf\.lite\.Interpreter is deprecated", UserWarning)
            model: bytes = converter.convert()
    except _tf.tflite_converter_error() as error:
        raise _refusal(error, concrete.graph.as_graph_def()) from error
    return model


def _of_saved_model(folder: Path, signature: str) -> tuple[Any, Any, dict[str, tf.TensorSpec]]:
    """A SavedModel, the concrete function of a signature, and its inputs by name, in the order of which it has them."""
    if not tf.saved_model.contains_saved_model(str(folder)):
        raise ConversionOptionError(f"there is no SavedModel in {folder}")
    loaded = tf.saved_model.load(str(folder))
    if signature not in loaded.signatures:
        found = ", ".join(loaded.signatures) or "none"
        raise ConversionOptionError(f"the SavedModel in {folder} has no signature {signature!r}; it has {found}")
    concrete = loaded.signatures[signature]
    if any(node.op == "XlaCallModule" for node in nodes_of(concrete.graph.as_graph_def())):
        raise ConversionOptionError(
            f"the SavedModel in {folder} is in native mode: its functions are StableHLO, which TFLite's converter "
            "reads in part, and with other values for some operations\n"
            "  remedy: save it in graph mode: save_model(..., native_serialization=False, enable_xla=False)"
        )
    _, specs = concrete.structured_input_signature
    return loaded, concrete, dict(sorted(specs.items()))


def _refusal(error: Exception, graph: Any) -> Exception:
    """Our error for one of the converter: it names the operations that were left over, and where they are."""
    left = left_over_in(error, graph)
    if not left:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        return TFLiteUnsupported(
            f"TFLite's converter could not convert the function: {first}\n"
            "  remedy: see its own error above; a static batch size often helps"
        )
    return _refused(left)


def _refused(left: Sequence[tuple[str, str, list[str]]]) -> TFLiteUnsupported:
    """The error for operations that are left over: their names, types and nodes."""
    lines = []
    for name, types, places in left:
        first, more = "".join(places[:1]), f" and {len(places) - 1} more" if len(places) > 1 else ""
        lines.append(f"  found:  {name} {types}{f' at {first}{more}' if places else ''}")
    names = ", ".join(dict.fromkeys(f"tf.{name}" for name, _, _ in left))
    remedy = "  remedy: compute that part outside of the model, or write it with other operations or dtypes"
    return TFLiteUnsupported("\n".join([f"TFLite has no builtin operation for {names}", *lines, remedy]))
