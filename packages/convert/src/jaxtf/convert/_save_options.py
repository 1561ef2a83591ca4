"""What `save_model` is asked to write, checked before anything is written: signatures, shapes, assets, metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._errors import ConversionOptionError

__all__ = [
    "asset_files",
    "check_function_and_folder",
    "encoded_metadata",
    "signatures_by_name",
    "spec_of",
    "with_params",
]

_DEFAULT_SIGNATURE = "serving_default"


def check_function_and_folder(fun_jax: Any, path: Any) -> None:
    """Refuses what is no function, or no path.

    Raises:
      ConversionOptionError: It is another thing.
    """
    if not callable(fun_jax):
        raise ConversionOptionError(f"save_model needs a function, found {type(fun_jax).__name__}: {fun_jax!r:.60}")
    if not isinstance(path, str | os.PathLike):
        raise ConversionOptionError(f"save_model needs a folder to write, found {type(path).__name__}: {path!r:.60}")


def signatures_by_name(input_signatures: Any) -> dict[str, Sequence[Any]]:
    """The signatures by name.

    Raises:
      ConversionOptionError: There is none, one has no text for a name, or one is no list of specifications.
    """
    if isinstance(input_signatures, Mapping):
        signatures = dict(input_signatures)
    else:
        signatures = {_DEFAULT_SIGNATURE: input_signatures}
    for name, inputs in signatures.items():
        if not isinstance(name, str):
            raise ConversionOptionError(f"a signature of input_signatures must have a text for a name. Got: {name!r}")
        if not isinstance(inputs, list | tuple):
            raise ConversionOptionError(
                f"the signature '{name}' of input_signatures must be a list of specifications, one for each input. "
                f"Got: {inputs!r:.60}"
            )
    if not signatures:
        raise ConversionOptionError("input_signatures is empty: a SavedModel needs at least one signature")
    return signatures


def spec_of(like: Any, name: str) -> tf.TensorSpec:
    """The specification of the input of this name, like something with shape and dtype.

    Raises:
      ConversionOptionError: It has none.
    """
    if not hasattr(like, "shape") or not hasattr(like, "dtype"):
        raise ConversionOptionError(
            f"input_signatures must say shape and dtype of '{name}', as tf.TensorSpec([None, 4], tf.float32) does. "
            f"Got: {like!r:.60}"
        )
    return tf.TensorSpec([None if size is None else int(size) for size in like.shape], like.dtype, name)


def with_params(polymorphic_shapes: Any) -> Any:
    """Polymorphic shapes of the inputs, with none of the parameters before them.

    Raises:
      ConversionOptionError: They are no list.
    """
    if polymorphic_shapes is None:
        return None
    if not isinstance(polymorphic_shapes, list | tuple):
        raise ConversionOptionError(
            "polymorphic_shapes of save_model must be a list, with one entry for each input. "
            f"Got: {polymorphic_shapes!r:.60}"
        )
    return [None, *polymorphic_shapes]


def asset_files(assets: Any) -> dict[str, str]:
    """The files to copy, by name.

    Raises:
      ConversionOptionError: No mapping of names to files, or a file that does not exist: TensorFlow would leave it out.
    """
    if not isinstance(assets, Mapping | None):
        raise ConversionOptionError(
            "assets of save_model must be a mapping of names to files, such as {'labels': 'labels.txt'}. "
            f"Got: {assets!r:.60}\n"
            "  remedy: give each file a name; loaded, the model has it as assets[name].asset_path"
        )
    files: dict[str, str] = {}
    for name, file in (assets or {}).items():
        if not isinstance(name, str) or not isinstance(file, str | os.PathLike):
            raise ConversionOptionError(
                "assets of save_model must be a mapping of names to files, both of them texts. "
                f"Got: {name!r:.60}: {file!r:.60}"
            )
        files[name] = os.fspath(file)
        if not tf.io.gfile.exists(files[name]):
            raise ConversionOptionError(f"the file of assets[{name!r}] does not exist: {files[name]!r}")
    return files


def encoded_metadata(metadata: Any) -> str | None:
    """The metadata as JSON; None if there are none.

    Raises:
      ConversionOptionError: JSON cannot hold them.
    """
    if metadata is None:
        return None
    try:
        return json.dumps(metadata, indent=2, sort_keys=True) + "\n"
    except (TypeError, ValueError) as error:
        raise ConversionOptionError(f"metadata must be what JSON can hold: {error}") from error
