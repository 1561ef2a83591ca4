"""`save_exported`: an exported function, with its weights or without, as a SavedModel; needs no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from jaxtf.convert._convert.convert_exported import ExportedConversion, conversion_of, read_exported
from jaxtf.convert._convert.mode import DEFAULT_NATIVE_SERIALIZATION, NativeSerialization
from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._function.gradient import run_differentiable, run_without_gradient
from jaxtf.convert._saved_model.root import bytes_of, described, root_of
from jaxtf.convert._saved_model.save_options import (
    asset_files,
    check_function_and_folder,
    check_gradient_order,
    check_input_names,
    check_signature_name,
    encoded_metadata,
)
from jaxtf.convert._saved_model.saved import METADATA_FILE, Saved
from jaxtf.convert._saved_model.whole_folder import written_whole
from jaxtf.convert._values.names import argument_names, result_names
from jaxtf.serialization import DisabledSafetyCheck, Exported, ExportedModel, Readable, Tree

__all__ = ["save_exported"]


def save_exported(
    exported: Exported | ExportedModel | Readable,
    path: str | Path,
    *,
    input_names: list[str] | tuple[str, ...] = (),
    signature: str = "serving_default",
    gradient_order: int | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    assets: Mapping[str, str | Path] | None = None,
    metadata: Mapping[str, Any] | None = None,
    native_serialization: NativeSerialization = DEFAULT_NATIVE_SERIALIZATION,
    enable_xla: bool = True,
) -> Saved:
    """Writes a SavedModel of an exported function, its weights being variables; needs no JAX.

    The loaded object has the interface of a reusable SavedModel, like that of `save_model`: `__call__`, `variables`,
    `trainable_variables`, and `params`, the weights by name in nested dictionaries.

    Args:
      exported: A program with its weights or an exported function: as returned by `load` and `deserialize`, or the
        path, the file or the bytes to read it from; from a source you trust.
      path: The folder to write, as for `save_model`.
      input_names: The names of the positional arguments, without those that are weights; by default `args_1` and so on.
      signature: The name of the signature.
      gradient_order: How often the loaded function can be differentiated; by default as often as the program has orders
        of VJP (one, of a function that was exported in this process).
      disabled_checks: As for `convert_exported`.
      assets: As for `save_model`.
      metadata: As for `save_model`; by default those in the file of the program.
      native_serialization: As for `convert_exported`.
      enable_xla: Likewise.

    Returns:
      What was saved.

    Raises:
      ConversionOptionError: Not an exported function, another number of names than of arguments or names that
        TensorFlow cannot have, more orders of
        gradient than orders of VJP, or a folder that holds other things.
      ArtifactError, VersionError, OSError: As `jaxtf.serialization.load`.
      UnknownCustomCall, TensorFlowTooOld, GraphModeUnsupported, NativeModeUnsupported: As `convert_exported`.
    """
    program = read_exported(exported, "save_exported")
    check_function_and_folder(save_exported, path)
    check_signature_name(signature)
    orders = _orders(program.exported if isinstance(program, ExportedModel) else program, gradient_order)
    files = asset_files(assets)
    if metadata is None and isinstance(program, ExportedModel):
        metadata = program.metadata or None
    encoded = encoded_metadata(metadata)
    conversion = conversion_of(
        program,
        native_serialization=native_serialization,
        enable_xla=enable_xla,
        disabled_checks=disabled_checks,
        run=partial(run_without_gradient, by_signature=True)
        if orders == 0
        else partial(run_differentiable, orders=orders),
    )
    served = _Served(conversion, input_names)
    function = served.concrete(signature)
    leaves = [] if conversion.weights is None else conversion.weights.distinct
    root = root_of(_by_name(conversion), leaves, (), files)
    root.__call__ = served.call
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=orders > 0)
    with written_whole(Path(path)) as folder:
        tf.saved_model.save(root, str(folder), signatures={signature: function}, options=options)
        if encoded is not None:
            (folder / METADATA_FILE).parent.mkdir(exist_ok=True)
            (folder / METADATA_FILE).write_text(encoded, encoding="utf-8")
        graph_bytes = (folder / "saved_model.pb").stat().st_size
    return Saved(
        path=str(path),
        signatures={signature: described(function)},
        gradient_order=orders,
        parameter_bytes=bytes_of(leaves),
        constant_bytes=0,
        graph_bytes=graph_bytes,
    )


def _orders(exported: Exported, asked: int | None) -> int:
    """How many orders of gradient to save."""
    if asked is not None:
        check_gradient_order(asked)
    available, function = 0, exported
    while function.has_vjp() and not function.has_endless_vjps:
        available, function = available + 1, function.vjp()
    if function.has_endless_vjps:
        return 1 if asked is None else asked
    if asked is not None and asked > available:
        raise ConversionOptionError(
            f"gradient_order must be from 0 to {available}, the orders of VJP that '{exported.fun_name}' has. Got: "
            f"{asked!r}\n  remedy: write it with vjp_order={asked!r}"
        )
    return available if asked is None else asked


class _Served:
    """The function on inputs alone, nested and by name.

    Args:
      conversion: The function.
      input_names: Of its positional arguments, without the weights.

    Attributes:
      call: For inputs as the function takes them.
    """

    def __init__(self, conversion: ExportedConversion, input_names: Sequence[str]) -> None:
        exported = conversion.function.exported
        model = None if conversion.weights is None else conversion.weights.model
        positional, by_name = exported.in_structure.children
        weights = set() if model is None else set(model.positions)
        places = set() if model is None else set(model.flat_positions)
        free = [position for position in range(len(positional.children)) if position not in weights]
        if isinstance(input_names, str) or (input_names and len(input_names) != len(free)):
            raise ConversionOptionError(
                f"input_names must be {len(free)} names, one for each positional argument that is not a weight. Got: "
                f"{input_names!r:.80}"
            )
        check_input_names(input_names)
        _refuse_names_of_positions(len(positional.children), by_name.keys)
        parameters = [f"args_{position}" for position in range(len(positional.children))]
        for position, name in zip(free, input_names, strict=False):
            parameters[position] = name
        flat = [place for place in range(len(exported.in_avals)) if place not in places]
        names = argument_names([exported.in_names[place] for place in flat], parameters)
        specs = conversion.function.specifications()
        self._specs = {
            name: tf.TensorSpec(specs[place].shape, specs[place].dtype, name)
            for name, place in zip(names, flat, strict=True)
        }
        self._trees = [positional.children[position] for position in free]
        self._by_name = by_name
        self._out_names = result_names(exported.out_names)
        self._out_structure = exported.out_structure

        def call(*args: Any, **kwargs: Any) -> Any:
            result = conversion.call(args, kwargs)
            return result if _is_standard(exported.out_structure) else self._named(result)

        self.call = tf.function(call, autograph=False)

    def _nested(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        remaining = iter(flat)
        args = tuple(tree.unflatten([next(remaining) for _ in range(tree.leaf_count)]) for tree in self._trees)
        return args, self._by_name.unflatten(list(remaining))

    def _named(self, result: Any) -> dict[str, Any]:
        return dict(zip(self._out_names, self._out_structure.flatten(result), strict=True))

    def concrete(self, signature: str) -> Any:
        """The concrete function of the signature, from inputs by name to results by name."""
        args, kwargs = self._nested(list(self._specs.values()))
        self.call.get_concrete_function(*args, **kwargs)

        def serve(**by_name: tf.Tensor) -> dict[str, tf.Tensor]:
            args, kwargs = self._nested([by_name[name] for name in self._specs])
            result = self.call(*args, **kwargs)
            return self._named(result) if _is_standard(self._out_structure) else result

        return tf.function(serve, autograph=False).get_concrete_function(**self._specs)


def _refuse_names_of_positions(count: int, keywords: Sequence[Any]) -> None:
    taken = [name for name in (f"args_{position}" for position in range(count)) if name in keywords]
    if taken:
        raise ConversionOptionError(
            f"the function takes a keyword argument {taken[0]!r}, which is TensorFlow's name of a positional argument\n"
            "  remedy: give the keyword argument another name, and export the function again"
        )


def _is_standard(tree: Tree) -> bool:
    """Whether `tf.function` returns a result of this structure as it is: tuples, lists, dicts with texts for keys."""
    is_plain = tree.custom is None and all(isinstance(key, str) for key in tree.keys)
    return is_plain and all(map(_is_standard, tree.children))


def _by_name(conversion: ExportedConversion) -> dict[str, Any]:
    """The variables in nested dictionaries, by the names of the arrays in the file: `a.b` in `a` as `b`."""
    nested: dict[str, Any] = {}
    if conversion.weights is None:
        return nested
    for leaf, variable in zip(conversion.weights.model.leaves, conversion.weights.flat, strict=True):
        *outer, last = [leaf.name] if "[" in leaf.name else leaf.name.split(".")
        inside = nested
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = variable
    return nested
