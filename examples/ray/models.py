"""The two forms of the model, from bytes to a function of NumPy arrays; for the workers, which hold one for life.

`packed(kind, folder)` gives the bytes to send; `loaded(kind, bytes)` the function, in a worker. What a form needs is
imported when it is loaded: with a SavedModel TensorFlow alone, with an artifact JAX alone.
"""

import io
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

KINDS = ("savedmodel", "artifact")
# Sums of at most 512 float32 products, in another order: relative error below 512 * 2**-24 of the largest term.
TOLERANCE = 512 * 2.0**-24

# One thread for each worker, so that two workers are twice one: this is about Ray, not about thread pools.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
}

Model = Callable[[np.ndarray], np.ndarray]


def packed(kind: str, folder: Path) -> bytes:
    """The model as bytes; a SavedModel, which is a folder, as a tar archive."""
    if kind == "artifact":
        return (folder / "model.jaxtf").read_bytes()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder / "model", "model")
    return archive.getvalue()


def loaded(kind: str, model: bytes) -> Model:
    """Logits float32[b, 10] of images float32[b, 8, 8], for any b."""
    return {"savedmodel": _saved_model, "artifact": _artifact}[kind](model)


def _saved_model(archive: bytes) -> Model:
    import tensorflow as tf

    folder = tempfile.mkdtemp()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    reader = tf.saved_model.load(f"{folder}/model")
    serve = reader.signatures["serving_default"]

    def read(images: np.ndarray) -> np.ndarray:
        return serve(images=tf.constant(images))["logits"].numpy()

    read.keeps = reader  # a signature does not keep its variables alive
    return read


def _artifact(artifact: bytes) -> Model:
    import jax

    from jaxtf.serialization import deserialize

    call = jax.jit(deserialize(artifact).call)  # compiled once for each size of batch
    return lambda images: np.asarray(call(images))


def assert_as_in_jax(found: np.ndarray, expected: np.ndarray) -> None:
    """Ends the program if a logit differs by more than float32 rounding explains."""
    difference, allowed = float(np.max(np.abs(found - expected))), TOLERANCE * float(np.max(np.abs(expected)))
    if found.shape != expected.shape or not difference <= allowed:
        sys.exit(
            f"{found.shape} logits differ from JAX's {expected.shape} by {difference:.1e}, more than {allowed:.1e}"
        )
