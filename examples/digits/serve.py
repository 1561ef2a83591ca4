"""Serves the SavedModel in a process that cannot import JAX, and compares with what JAX answered.

Batches of 1, 7 and all held-out images through the serving signature, then a gradient of the loss with respect
to the parameters. Fails if JAX is installed, or if a number differs by more than float32 rounding explains.
"""

import importlib.util
import sys
from pathlib import Path

from clock import Clock, output_folder

OUT = output_folder()
clock = Clock("serve", OUT)
for name in ("jax", "jaxlib", "jaxtf"):
    if importlib.util.find_spec(name) is not None:
        sys.exit(f"serve.py: {name} can be imported here ({sys.executable}); this step shows that it is not needed")

with clock("import TensorFlow"):
    import numpy as np
    import tensorflow as tf

BATCHES = (1, 7, 450)
# Sums of at most 512 float32 products, in another order: relative error below 512 * 2**-24 of the largest term.
TOLERANCE = 512 * 2.0**-24


def serve_batches(model: tf.Module, expected: dict[str, np.ndarray]) -> None:
    """Prints accuracy and the largest difference from JAX for each batch size."""
    serve = model.signatures["serving_default"]
    for size in BATCHES:
        images, labels = expected["images"][:size], expected["labels"][:size]
        with clock(f"first batch of {size}"):
            answer = serve(images=tf.constant(images))
        digits, logits = answer["digit"].numpy(), answer["logits"].numpy()
        difference = largest_difference(f"logits of {size} images", logits, expected["logits"][:size])
        print(f"batch of {size:3}: {np.mean(digits == labels):6.1%} right, logits within {difference:.1e} of JAX's")


def take_gradient(model: tf.Module, expected: dict[str, np.ndarray]) -> None:
    """Prints the largest difference from JAX of the loss's gradient with respect to each parameter."""
    with clock("gradient"):
        with tf.GradientTape() as tape:
            logits = model.logits(tf.constant(expected["images"]))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(expected["labels"], logits)
            loss = tf.reduce_mean(losses)
        gradient = tape.gradient(loss, dict(model.parameters))
    missing = [name for name, value in gradient.items() if value is None]
    if missing:
        sys.exit(f"serve.py: no gradient arrives at {', '.join(missing)}; was the model saved with custom gradients?")
    differences = [
        largest_difference(f"gradient of {name}", value.numpy(), expected[f"gradient/{name}"])
        for name, value in gradient.items()
    ]
    print(f"gradient of the loss, {len(gradient)} parameters: within {max(differences):.1e} of JAX's")


def largest_difference(what: str, found: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference; ends the program if it is more than rounding explains."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        sys.exit(f"serve.py: {what}: {found.dtype}{found.shape} here, {expected.dtype}{expected.shape} in JAX")
    difference, allowed = float(np.max(np.abs(found - expected))), TOLERANCE * float(np.max(np.abs(expected)))
    if not difference <= allowed:
        sys.exit(f"serve.py: {what}: differs from JAX's by {difference:.1e}, more than the {allowed:.1e} of rounding")
    return difference


def main(out: Path) -> None:
    """Loads what save.py wrote, serves it and differentiates it."""
    if not (out / "model").exists():
        sys.exit(f"serve.py: {out / 'model'} does not exist; run save.py {out} first")
    print(f"serving with TensorFlow {tf.__version__}; JAX is not installed here")
    with clock("load the SavedModel"):
        model = tf.saved_model.load(str(out / "model"))
    expected = dict(np.load(out / "expected.npz"))
    serve_batches(model, expected)
    take_gradient(model, expected)


if __name__ == "__main__":
    main(OUT)
