"""Lets one reader read each artifact of a file, in this process: `python hostile_readers.py READER FILE`.

The file is a pickle of pairs of a name and bytes. For each pair a line is printed: the name when it begins, and, when
it is done, the class of the error, or `RAN`. Whoever started the process sees where it died.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxtf.serialization import Exported, deserialize


def arguments(exported: Exported) -> list[np.ndarray]:
    """Ones of the recorded dtypes and shapes, symbolic sizes 2."""
    shapes = [tuple(size if isinstance(size, int) else 2 for size in aval.shape) for aval in exported.in_avals]
    return [np.ones(shape, aval.dtype) for shape, aval in zip(shapes, exported.in_avals, strict=True)]


def in_jax(name: str, blob: bytes) -> None:
    exported = deserialize(blob)
    exported = exported.vjp() if "VJP" in name else exported
    call = exported.flat_call  # its module is checked before there is an argument
    call(*arguments(exported))


def converted(name: str, blob: bytes, **options: Any) -> None:
    import tensorflow as tf

    from jaxtf.convert import convert_exported

    fun = convert_exported(blob, **options)
    tensors = list(map(tf.constant, arguments(deserialize(blob))))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        results = tf.nest.flatten(fun(*tensors))
    if "VJP" in name and not any(tensor.dtype.is_floating or tensor.dtype.is_complex for tensor in tensors):
        convert_exported(deserialize(blob).vjp(), **options)  # TensorFlow does not ask for gradients of integers
    elif "VJP" in name:
        tape.gradient(results, tensors)


def native(name: str, blob: bytes) -> None:
    converted(name, blob)


def graph(name: str, blob: bytes) -> None:
    converted(name, blob, native_serialization=False)


def stablehlo(name: str, blob: bytes) -> None:
    """Reads no VJP."""
    from jaxtf.convert import convert_stablehlo

    if "VJP" in name:
        raise NotImplementedError
    convert_stablehlo(blob)(*arguments(deserialize(blob)))


def command(*words: str) -> None:
    from jaxtf.serialization._cli.program import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    if code:
        raise SystemExit(code)


def check(name: str, blob: bytes) -> None:
    command("check", "--no-parse", str(written(blob)))


def upgrade(name: str, blob: bytes) -> None:
    command("upgrade", str(written(blob)), "-o", str(FOLDER / "upgraded"), "--force")


def written(blob: bytes) -> Path:
    (FOLDER / "artifact").write_bytes(blob)
    return FOLDER / "artifact"


READERS: dict[str, Callable[[str, bytes], None]] = {
    reader.__name__: reader for reader in (in_jax, native, graph, stablehlo, check, upgrade)
}

if __name__ == "__main__":
    reader = READERS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = Path(folder)
        for name, blob in pickle.loads(Path(sys.argv[2]).read_bytes()):
            print(name, end="\t", flush=True)
            try:
                reader(name, blob)
                print("RAN", flush=True)
            except (Exception, SystemExit) as error:
                print(type(error).__name__, str(error).partition("\n")[0][:200], sep="\t", flush=True)
