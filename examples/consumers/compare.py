"""What all consumers share: a SavedModel in graph mode, the comparison with JAX, and the line that is printed.

A consumer is a function `run(model, inputs, folder) -> Run`: it converts the model, with a batch of any size, and calls
it with each of the inputs.
"""

from __future__ import annotations

import functools
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from models import MODELS, Arrays, Model

from jaxtf.convert import save_model, to_tflite

BATCHES = (2, 8)


@dataclass(frozen=True)
class Run:
    """The results for each of the inputs, by name; bytes of the converted model; seconds of a call with the last."""

    results: list[Arrays]
    size: int
    seconds: float


Consumer = Callable[[Model, Sequence[Arrays], Path], Run]


def compare(consumer: str, run: Consumer, folder: str | Path) -> None:
    """Runs all models and compares with JAX; prints a line for each, and writes the numbers to results-CONSUMER.json.

    Args:
      consumer: Its name, for the lines.
      run: The consumer.
      folder: Where it may write.
    """
    folder = Path(folder)
    rows = []
    for model in MODELS:
        inputs = [model.inputs(batch) for batch in BATCHES]
        made = run(model, inputs, made_folder(folder, model.name))
        error = max(differences(model, one, result) for one, result in zip(inputs, made.results, strict=True))
        print(
            f"{consumer:16} {model.name:12} {made.size:8d} bytes  {1e3 * made.seconds:8.3f} ms  error {error:.1e}",
            flush=True,
        )
        rows.append(asdict(Row(consumer, model.name, made.size, made.seconds, error)))
    (folder / f"results-{consumer.replace(' ', '-')}.json").write_text(json.dumps(rows, indent=1))


@dataclass(frozen=True)
class Row:
    """One line."""

    consumer: str
    model: str
    size: int
    seconds: float
    error: float


def differences(model: Model, inputs: Arrays, found: Arrays) -> float:
    """The largest difference from JAX's results; shapes, dtypes and the tolerance are asserted."""
    expected = model.expected(inputs)
    assert found.keys() == expected.keys(), (sorted(found), sorted(expected))
    largest = 0.0
    for name, value in expected.items():
        assert found[name].shape == value.shape, (model.name, name, found[name].shape, value.shape)
        assert found[name].dtype == value.dtype, (model.name, name, found[name].dtype, value.dtype)
        assert np.isfinite(found[name]).all(), (model.name, name)
        error = float(np.abs(found[name] - value).max())
        assert error <= model.tolerance(value), (
            f"{model.name}, {name}: differs by {error:.2e} > {model.tolerance(value):.1e}"
        )
        largest = max(largest, error)
    return largest


# --- for consumers ---


def saved_model(model: Model, folder: Path) -> str:
    """Writes the SavedModel in graph mode, of regular operations only, and returns its folder."""
    path = str(folder / "saved_model")
    save_model(
        model.predict,
        model.params,
        path,
        input_signatures=specs(model),
        polymorphic_shapes=model.polymorphic_shapes,
        gradient_order=1,
        native_serialization=False,
        enable_xla=False,
    )
    return path


def tflite_model(model: Model, representative_data: Iterable[Sequence[np.ndarray]] | None = None) -> bytes:
    """The TFLite model; with 8-bit integers if there are representative data."""
    params = jax.tree.map(jnp.asarray, model.params)
    return to_tflite(
        functools.partial(model.predict, params),
        input_signature=specs(model),
        polymorphic_shapes=model.polymorphic_shapes,
        representative_data=representative_data,
    )


def specs(model: Model) -> list[tf.TensorSpec]:
    """The input signature; the batch size is None."""
    return [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in model.signature.items()]


def median_seconds(call: Callable[[], object], count: int = 30) -> float:
    """Of `count` calls, after three that do not count."""
    for _ in range(3):
        call()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def made_folder(*parts: str | Path) -> Path:
    """An existing folder."""
    path = Path(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def folder_size(folder: str | Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
