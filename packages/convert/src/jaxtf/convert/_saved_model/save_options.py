"""What `save_model` is asked to write, checked before anything is written: signatures, shapes, assets, metadata."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from jaxtf.convert._convert.callables import check_function
from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._saved_model.earlier import not_of_saved_model

__all__ = [
    "asset_files",
    "check_function_and_folder",
    "check_gradient_order",
    "check_input_names",
    "check_signature_name",
    "check_specifications",
    "encoded_metadata",
    "signatures_by_name",
    "with_params",
]

_DEFAULT_SIGNATURE = "serving_default"

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

# TensorFlow looks for the variables of a SavedModel by a pattern that its path is the beginning of.
_OF_PATTERNS = frozenset("*?[\\")


_INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

# Keys among the signatures of a SavedModel that are not of signatures.
_OF_TENSORFLOW = ("__saved_model_init_op", "__saved_model_train_op")


def check_function_and_folder(fun_jax: Any, path: Any) -> None:
    """Refuses what is not a function or not a path, and a place that cannot be written whole and read again.

    Raises:
      FunctionTypeError: It is not a JAX function.
      ConversionOptionError: It is not a folder, or the folder holds what `save_model` does not write.
    """
    check_function(fun_jax, "save_model")
    if not isinstance(path, str | os.PathLike):
        raise ConversionOptionError(f"save_model needs a folder to write, found {type(path).__name__}: {path!r:.60}")
    _check_name(os.fspath(path))
    _check_replaceable(Path(path))


def check_gradient_order(gradient_order: Any) -> None:
    """Refuses what is not a number of orders.

    Raises:
      ConversionOptionError: It is another thing.
    """
    if isinstance(gradient_order, bool) or not isinstance(gradient_order, int) or gradient_order < 0:
        raise ConversionOptionError(
            f"gradient_order must be a number of orders, 0 for no gradient. Got: {gradient_order!r}"
        )


def _check_name(path: Any) -> None:
    if not path:
        raise ConversionOptionError("save_model needs a folder to write, found an empty path")
    if not isinstance(path, str):
        raise ConversionOptionError(
            f"save_model needs a path that is a text, found {type(path).__name__}: {path!r:.60}"
        )
    if _REMOTE.match(path):
        raise ConversionOptionError(
            f"save_model writes to a folder of this machine, found {path!r:.60}\n"
            "  remedy: write it to a folder here, then copy that, with tf.io.gfile.copy or the tools of the store"
        )
    if patterns := sorted(set(path) & _OF_PATTERNS):
        raise ConversionOptionError(
            f"TensorFlow takes {' '.join(patterns)} in the path of a SavedModel for a pattern, and reads the variables "
            f"of another folder or of none. Got: {path!r}\n  remedy: write it to a folder without them in its path"
        )


def _check_replaceable(folder: Path) -> None:
    """Refuses a folder with files that are not of an earlier SavedModel: they would be deleted."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConversionOptionError(f"save_model needs a folder to write, found a file: {str(folder)!r}")
    if folder.resolve() == Path.cwd():
        raise ConversionOptionError(
            "save_model replaces the folder, which cannot be the working directory\n"
            "  remedy: name a folder in it, or write to it from elsewhere"
        )
    others = not_of_saved_model(folder)
    if others:
        raise ConversionOptionError(
            f"save_model replaces the whole folder, and {str(folder)!r} holds what it did not write: "
            f"{', '.join(others):.120}\n"
            "  remedy: write to a new folder, or one with nothing but an earlier SavedModel in it"
        )


def check_specifications(signature: Any, what: str) -> None:
    """Refuses what is not a list.

    Args:
      signature: What the user gave.
      what: What it was given for.

    Raises:
      ConversionOptionError: It is another thing.
    """
    if not isinstance(signature, list | tuple):
        raise ConversionOptionError(
            f"{what} must be a list of specifications, one for each input. Got: {signature!r:.60}\n"
            "  remedy: put it in brackets, also for one input: [tf.TensorSpec([None, 4], tf.float32)]"
        )


def signatures_by_name(input_signatures: Any) -> dict[str, Sequence[Any]]:
    """The signatures by name.

    Raises:
      ConversionOptionError: There is none, a name is not a text, or an entry is not a list of specifications.
    """
    if isinstance(input_signatures, Mapping):
        signatures = dict(input_signatures)
    else:
        signatures = {_DEFAULT_SIGNATURE: input_signatures}
    for name, inputs in signatures.items():
        if not isinstance(name, str):
            raise ConversionOptionError(f"a signature of input_signatures must have a text for a name. Got: {name!r}")
        check_signature_name(name)
        check_specifications(inputs, f"the signature '{name}' of input_signatures")
    if not signatures:
        raise ConversionOptionError("input_signatures is empty: a SavedModel needs at least one signature")
    return signatures


def check_signature_name(name: Any) -> None:
    """Refuses what is not a name that a signature can have.

    Raises:
      ConversionOptionError: It is not a text, or means another thing to TensorFlow.
    """
    if not isinstance(name, str):
        raise ConversionOptionError(f"signature must be a text. Got: {name!r:.60}")
    if name in _OF_TENSORFLOW:
        raise ConversionOptionError(
            f"a signature cannot be called {name!r}: TensorFlow runs what has this name when it loads or trains a model"
        )


def check_input_names(names: Sequence[Any]) -> None:
    """Refuses names that a signature of TensorFlow cannot have for its inputs.

    Raises:
      ConversionOptionError: One is not such a text, or is another one's.
    """
    are_texts = all(isinstance(name, str) and _INPUT_NAME.fullmatch(name) for name in names)
    if not are_texts or len({name.lower() for name in names}) < len(names) or "self" in names:
        raise ConversionOptionError(
            "input_names must be different texts of ASCII letters, digits and _ that begin with a letter, "
            f"different also in lower case, and other than 'self'. Got: {list(names)!r:.80}"
        )


def with_params(polymorphic_shapes: Any, signatures: Mapping[str, Sequence[Any]]) -> Any:
    """Polymorphic shapes of the inputs, with none of the parameters before them.

    Args:
      polymorphic_shapes: As the user gave them, for all of the signatures.
      signatures: The specifications of the inputs by the name of the signature.

    Raises:
      ConversionOptionError: Not a list with one entry for each input.
    """
    if polymorphic_shapes is None:
        return None
    if not isinstance(polymorphic_shapes, list | tuple):
        raise ConversionOptionError(
            "polymorphic_shapes of save_model must be a list, with one entry for each input. "
            f"Got: {polymorphic_shapes!r:.60}"
        )
    for name, inputs in signatures.items():
        if len(polymorphic_shapes) != len(inputs):
            has_params = len(polymorphic_shapes) == len(inputs) + 1 and polymorphic_shapes[0] is None
            entries = "one for each input, None where no size of it is open; all signatures share them"
            raise ConversionOptionError(
                "polymorphic_shapes of save_model must have one entry for each input, and none for the parameters. "
                f"The signature '{name}' has {_counted(len(inputs), 'input', 'inputs')}. "
                f"Got: {_counted(len(polymorphic_shapes), 'entry', 'entries')}: {polymorphic_shapes!r:.60}\n"
                f"  remedy: {'leave out the first entry' if has_params else f'write {entries}'}"
            )
    return [None, *polymorphic_shapes]


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


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
        if tf.io.gfile.isdir(files[name]):
            raise ConversionOptionError(
                f"assets[{name!r}] must be a file. Got the folder {files[name]!r}\n"
                "  remedy: name the files in it, or one archive of them"
            )
    return files


def encoded_metadata(metadata: Any) -> str | None:
    """The metadata as JSON; None if there are none.

    Raises:
      ConversionOptionError: JSON cannot hold them.
    """
    if metadata is None:
        return None
    try:
        return json.dumps(metadata, indent=2, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ConversionOptionError(f"metadata must be what JSON can hold: {error}") from error
