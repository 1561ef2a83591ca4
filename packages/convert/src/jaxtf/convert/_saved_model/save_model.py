"""`save_model`: a JAX function and its parameters as a SavedModel that others can serve and train.

What the guide makes by hand. The object that TensorFlow loads has the interface of a reusable
SavedModel (TensorFlow 2): `__call__`, `variables`, `trainable_variables`, `regularization_losses`; that is
what tensorflow_hub and Keras ask for. `params` holds the variables in the structure of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._convert.convert import Conversion, make_conversion
from jaxtf.convert._convert.mode import DEFAULT_NATIVE_SERIALIZATION, NativeSerialization, is_native
from jaxtf.convert._convert.signature import leaf_spec
from jaxtf.convert._convert.target import target_of
from jaxtf.convert._function.constants import Constants
from jaxtf.convert._function.gradient import run_differentiable, run_without_gradient
from jaxtf.convert._saved_model.inputs import inputs_of
from jaxtf.convert._saved_model.results import by_result_name
from jaxtf.convert._saved_model.root import bytes_of, described, root_of
from jaxtf.convert._saved_model.save_options import (
    asset_files,
    check_function_and_folder,
    check_gradient_order,
    encoded_metadata,
    signatures_by_name,
    with_params,
)
from jaxtf.convert._saved_model.saved import METADATA_FILE, Saved
from jaxtf.convert._saved_model.whole_folder import written_whole
from jaxtf.convert._values.arguments import WeakVariable, read
from jaxtf.convert._values.names import argument_names, call_signature_of, in_graphs, parameter_names
from jaxtf.serialization import DisabledSafetyCheck
from jaxtf.serialization.interop import unwrapped

__all__ = ["save_model"]


def save_model(
    fun_jax: Callable[..., Any],
    params: Any,
    path: str | Path,
    *,
    input_signatures: Sequence[Any] | Mapping[str, Sequence[Any]],
    polymorphic_shapes: Any = None,
    polymorphic_constraints: list[str] | tuple[str, ...] = (),
    gradient_order: int = 1,
    platforms: list[str] | tuple[str, ...] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    assets: Mapping[str, str | Path] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tensorflow_version: str | None = None,
    native_serialization: NativeSerialization = DEFAULT_NATIVE_SERIALIZATION,
    enable_xla: bool = True,
) -> Saved:
    """Writes a SavedModel of `fun_jax(params, *inputs)` with the parameters as variables.

    Args:
      fun_jax: A function as in `convert`; its first argument is the parameters.
      params: A pytree of arrays and Python numbers, which are saved in the dtype that JAX computes in, or of
        `tf.Variable`s, which are saved as they are. Floating and complex ones can be trained.
      path: The folder to write. It appears only when it is complete; an empty folder, or one with nothing but an
        earlier SavedModel in it, is replaced in one step.
      input_signatures: The shapes and dtypes of the inputs, one specification for each: a `tf.TensorSpec`, or
        anything else with shape and dtype, nested as the function takes it. Several of them by
        name, for several signatures; a single one is called `serving_default`.
      polymorphic_shapes: As in `convert`, for the inputs only: a list with one entry for each.
      polymorphic_constraints: As in `convert`.
      gradient_order: How often the loaded function can be differentiated in reverse mode; 0 for functions
        that JAX cannot differentiate in that mode, as with `convert(..., with_gradient=False)`.
      platforms: Lowering platforms, such as `("cpu", "cuda", "tpu")`; by default that of JAX's
        default backend.
      disabled_checks: Safety checks to skip.
      assets: Files to copy into the SavedModel; when loaded, `assets[name].asset_path` is their path.
      metadata: What JSON can hold, for `assets.extra/metadata.json` in the folder.
      tensorflow_version: Of the oldest TensorFlow that is to load it, such as `"2.20"`; by default the installed one.
      native_serialization: As in `convert`.
      enable_xla: As in `convert`.

    Returns:
      What was saved: signatures with names, shapes and dtypes, and sizes in bytes. Serving
      inputs have the names of the arguments, results the names of their place in the pytree.

    Raises:
      FunctionTypeError: `fun_jax` is not a JAX function.
      ConversionOptionError: An invalid option, a file of `assets` that does not exist, a folder that
        holds other things, or one whose name TensorFlow cannot read again.
      GradientNotSaved: JAX cannot differentiate the function `gradient_order` times.
      GraphModeUnsupported, ArgumentTypeError, JaxRequiredError: As `convert` does.

    >>> import tempfile, jax.numpy as jnp, numpy as np, tensorflow as tf
    >>> from jaxtf.convert import save_model
    >>> def predict(params, images):
    ...     return {"scores": images @ params["w"]}
    >>> saved = save_model(
    ...     predict, {"w": np.ones((4, 2), np.float32)}, tempfile.mkdtemp(),
    ...     input_signatures=[tf.TensorSpec([None, 4], tf.float32)], polymorphic_shapes=["(b, _)"],
    ... )
    >>> print(saved.signatures["serving_default"])
    (images: float32[?,4]) -> scores: float32[?,2]
    """
    check_function_and_folder(fun_jax, path)
    check_gradient_order(gradient_order)
    signatures, files = signatures_by_name(input_signatures), asset_files(assets)
    encoded = encoded_metadata(metadata)
    constants = Constants(as_variables=True)
    conversion = make_conversion(
        fun_jax,
        polymorphic_shapes=with_params(polymorphic_shapes, signatures),
        polymorphic_constraints=polymorphic_constraints,
        target=target_of(
            native_serialization=native_serialization,
            platforms=platforms,
            disabled_checks=disabled_checks,
            tensorflow_version=tensorflow_version,
            enable_xla=enable_xla,
        ),
        run=partial(run_without_gradient, by_signature=True)
        if gradient_order == 0
        else partial(run_differentiable, orders=gradient_order),
        constants=constants,
    )
    arguments, variables = _variables(params)
    required = min(map(len, signatures.values()))
    fits_any_size = is_native(native_serialization, enable_xla)
    model = _Model(conversion, arguments, parameter_names(fun_jax)[1:], required, fits_any_size=fits_any_size)
    functions = {name: model.serving(inputs) for name, inputs in signatures.items()}
    leaves, held = _flat(variables), constants.variables()
    root = root_of(_trackable(variables), leaves, held, files)
    root.__call__ = model.call
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=gradient_order > 0)
    with written_whole(Path(path)) as folder:
        tf.saved_model.save(root, str(folder), signatures=functions, options=options)
        if encoded is not None:
            (folder / METADATA_FILE).parent.mkdir(exist_ok=True)
            (folder / METADATA_FILE).write_text(encoded, encoding="utf-8")
        graph_bytes = (folder / "saved_model.pb").stat().st_size
    return Saved(
        path=str(path),
        signatures={name: described(function) for name, function in functions.items()},
        gradient_order=gradient_order,
        parameter_bytes=bytes_of(leaves),
        constant_bytes=bytes_of(held),
        graph_bytes=graph_bytes,
    )


class _Model:
    """The function on inputs alone, and its signatures.

    Args:
      conversion: The function of parameters and inputs.
      params: The parameters, as arguments of that.
      names: Of the inputs.
      required: How many of them every signature has.
      fits_any_size: Whether the operations compute with the sizes that arrays have when they run, whatever the graph
        knows of them; else a signature compares those that it says.

    Attributes:
      call: For inputs as `fun_jax` takes them; traced for each signature.
    """

    def __init__(
        self, conversion: Conversion, params: Any, names: Sequence[str], required: int, *, fits_any_size: bool
    ) -> None:
        self._names = names
        self._fits_any_size = fits_any_size

        def call(*inputs: Any) -> Any:
            return _standard(conversion.call((params, *inputs), {}))

        call.__signature__ = call_signature_of(names[:required])  # type: ignore[attr-defined]
        self.call = tf.function(call, autograph=False)

    def serving(self, signature: Sequence[Any]) -> Any:
        """The concrete function of a signature: from inputs by name to results by name."""
        inputs = inputs_of(signature, self._names, "input_signatures")
        traces = self.call.experimental_get_tracing_count()
        self.call.get_concrete_function(*inputs.nested(inputs.specs))
        is_compared = self._fits_any_size or self.call.experimental_get_tracing_count() > traces

        def serve(**by_name: tf.Tensor) -> dict[str, tf.Tensor]:
            if not is_compared:  # TensorFlow takes the trace of an earlier signature, for which they may be open
                by_name = {
                    name: _tf.ensured(value, inputs.specs[name].shape, f"shape_of_{in_graphs(name).strip('_')}")
                    for name, value in by_name.items()
                }
            return by_result_name(self.call(*inputs.nested(by_name)))

        return tf.function(serve, autograph=False).get_concrete_function(**inputs.specs)


def _variables(params: Any) -> tuple[Any, Any]:
    """The parameters as arguments of the conversion and as variables, both in the same structure."""

    def argument(path: Any, leaf: Any) -> tf.Variable | WeakVariable:
        if isinstance(leaf, tf.Variable):
            return leaf
        where = f"args[0]{jax.tree_util.keystr(path)}"
        leaf = read(leaf, lambda: where)
        spec = leaf_spec(leaf, lambda: where)
        is_inexact = tf.as_dtype(spec.dtype).is_floating or tf.as_dtype(spec.dtype).is_complex
        [name] = argument_names((where,), ("params",))
        value = np.asarray(leaf).astype(spec.dtype, copy=False)
        variable = tf.Variable(value, trainable=is_inexact, name=name)
        return WeakVariable(variable) if spec.weak_type else variable

    leaves, tree = unwrapped(*jax.tree.flatten(params))
    arguments = jax.tree_util.tree_map_with_path(argument, jax.tree.unflatten(tree, leaves))
    variables = jax.tree.map(lambda held: held.variable if isinstance(held, WeakVariable) else held, arguments)
    return arguments, variables


def _flat(variables: Any) -> list[tf.Variable]:
    """The variables, each once."""
    return list({id(leaf): leaf for leaf in jax.tree.leaves(variables)}.values())


def _trackable(tree: Any) -> Any:
    """The variables in containers that a SavedModel keeps: dicts, lists, tuples; custom nodes by path."""
    if _is_standard(tree):
        return jax.tree.map(lambda leaf: leaf, tree)  # a copy: TensorFlow replaces the containers inside
    nested: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        *outer, last = [_key(entry) for entry in path]
        inside = nested
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = leaf
    return nested


def _standard(result: Any) -> Any:
    """A result in containers that `tf.function` returns; with custom nodes in it, a dict by name."""
    return result if _is_standard(result) else by_result_name(result)


def _is_standard(tree: Any) -> bool:
    """Whether a pytree has only dicts with texts for keys, lists and tuples for nodes."""
    if type(tree) is dict:
        return all(isinstance(key, str) for key in tree) and all(map(_is_standard, tree.values()))
    if type(tree) in (list, tuple):
        return all(map(_is_standard, tree))
    return isinstance(tree, tf.Variable | tf.Tensor) or tree is None


def _key(entry: Any) -> str:
    """An entry of a path in a pytree, as a text."""
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)
