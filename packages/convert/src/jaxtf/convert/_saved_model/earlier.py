"""What a folder holds that is not of a SavedModel, and so must not be deleted with one.

The names of its folders prove nothing: `assets` and `variables` are names that people give to their own. A file is of a
SavedModel if there is one, with its `saved_model.pb`, and the file has a name that TensorFlow, or `save_model`, gives:
shards of the checkpoint, an asset that the SavedModel names, debug information, metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaxtf.convert import _tf
from jaxtf.convert._saved_model.saved import METADATA_FILE

__all__ = ["not_of_saved_model"]

_PROGRAM = "saved_model.pb"

_CHECKPOINT = re.compile(r"variables\.(index|data-\d{5}-of-\d{5})")

# For each folder of a SavedModel: from its `saved_model.pb` to whether a file of some name in that folder is its own.
_WRITTEN: dict[str, Callable[[Path], Callable[[str], Any]]] = {
    "assets": lambda program: _assets(program).__contains__,
    "variables": lambda _: _CHECKPOINT.fullmatch,
    "debug": lambda _: "saved_model_debug_info.pb".__eq__,
    METADATA_FILE.parent.name: lambda _: METADATA_FILE.name.__eq__,
}


def not_of_saved_model(folder: Path) -> list[str]:
    """Paths in a folder that are not of a SavedModel there: relative to it, and sorted."""
    found = list(_others(folder) if (folder / _PROGRAM).is_file() else _inside(folder))
    still_there = [path for path in found if os.path.lexists(folder / path)]  # another process may have replaced it
    return sorted(still_there)


def _inside(folder: Path) -> Iterator[str]:
    """What a folder holds; for the folders that a SavedModel has, what they hold."""
    for entry in folder.iterdir():
        within = [file.name for file in entry.iterdir()] if entry.name in _WRITTEN and _is_own_folder(entry) else []
        yield from (f"{entry.name}/{name}" for name in within)
        if not within:
            yield entry.name


def _others(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name in _WRITTEN and _is_own_folder(entry):
            if files := list(entry.iterdir()):
                is_written = _WRITTEN[entry.name](folder / _PROGRAM)
                yield from (f"{entry.name}/{x.name}" for x in files if x.is_dir() or not is_written(x.name))
        elif entry.name not in (_PROGRAM, "fingerprint.pb") or not entry.is_file():
            yield entry.name


def _assets(program: Path) -> frozenset[str]:
    message = _tf.saved_model_message(program.read_bytes())
    return frozenset(asset.filename for graph in message.meta_graphs for asset in graph.asset_file_def)


def _is_own_folder(entry: Path) -> bool:
    """Whether it is a folder, and not a link to one, which nobody but the user has put there."""
    return entry.is_dir() and not entry.is_symlink()
