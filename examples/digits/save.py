"""Converts the trained network and writes it as a SavedModel that runs, and differentiates, without JAX.

Beside it, in `expected.npz`: the held-out images, what JAX answers for them, and JAX's gradient of the loss
with respect to the parameters. `serve.py` compares with these.
"""

from pathlib import Path

from clock import Clock, output_folder

OUT = output_folder()
clock = Clock("save", OUT)
with clock("import JAX and TensorFlow"):
    import jax
    import numpy as np
    import tensorflow as tf
    from data import load
    from network import cross_entropy, predict

    from jaxtf.convert import convert


class Reader(tf.Module):
    """The network with its parameters as `tf.Variable`s, to be fine-tuned or served by those who have no JAX."""

    def __init__(self, parameters: dict[str, np.ndarray]):
        super().__init__()
        logits = convert(predict, polymorphic_shapes=[None, "(b, 8, 8)"])
        images = tf.TensorSpec((None, 8, 8), tf.float32, name="images")
        self.parameters = {name: tf.Variable(value, name=name) for name, value in parameters.items()}
        self.logits = tf.function(lambda images: logits(self.parameters, images), [images], autograph=False)
        self.serve = tf.function(lambda images: answers(logits(self.parameters, images)), [images], autograph=False)


def answers(logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """What the serving signature returns for each image: the digit read, and the logits of all ten."""
    return {"digit": tf.argmax(logits, axis=1, output_type=tf.int32), "logits": logits}


def main(out: Path) -> None:
    """Writes `model/`, a SavedModel, and `expected.npz`."""
    if not (out / "parameters.npz").exists():
        raise SystemExit(f"save.py: {out / 'parameters.npz'} does not exist; run train.py {out} first")
    parameters = dict(np.load(out / "parameters.npz"))
    with clock("convert"):
        reader = Reader(parameters)
        signature = reader.serve.get_concrete_function()
        reader.logits.get_concrete_function()
    with clock("write the SavedModel"):
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(reader, str(out / "model"), {"serving_default": signature}, options)
    with clock("JAX's answers"):
        _, held_out = load()
        gradient = jax.jit(jax.grad(cross_entropy))(parameters, *held_out)
        np.savez(
            out / "expected.npz",
            **held_out._asdict(),
            logits=jax.jit(predict)(parameters, held_out.images),
            **{f"gradient/{name}": value for name, value in gradient.items()},
        )
    size = sum(file.stat().st_size for file in (out / "model").rglob("*") if file.is_file())
    print(f"saved {out / 'model'}: {size:,} bytes, any batch size, gradients included")


if __name__ == "__main__":
    main(OUT)
