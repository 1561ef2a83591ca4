"""tf.data: a JAX function inside the input pipeline, and a TensorFlow pipeline in front of a JAX model.

python tf_data.py FOLDER
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert


def augment(image, seed):
    """Noise and a flip, by JAX's random numbers."""
    key = jax.random.key(seed)
    noisy = image + 0.1 * jax.random.normal(key, image.shape)
    return jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 1)), noisy[:, ::-1], noisy)


def model(image):
    return {"mean": image.mean(axis=(1, 2)), "edges": jnp.abs(jnp.diff(image, axis=2)).sum(axis=(1, 2))}


def main(folder: str) -> None:
    images = np.linspace(0, 1, 7 * 16, dtype=np.float32).reshape(7, 4, 4)
    file = f"{folder}/images.tfrecord"
    with tf.io.TFRecordWriter(file) as writer:
        for image in images:
            writer.write(tf.io.serialize_tensor(image).numpy())

    dataset = (
        tf.data.TFRecordDataset(file)
        .map(lambda record: tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), (4, 4)))
        .enumerate()
        .map(lambda i, image: convert(augment)(image, tf.cast(i, tf.int32)), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(3)
        .map(convert(model, polymorphic_shapes=["(b, _, _)"]), num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(2)
    )
    batches = list(dataset.as_numpy_iterator())
    augmented = jax.vmap(augment)(images, jnp.arange(7))
    expected = jax.tree.map(np.asarray, model(augmented))
    for name, value in expected.items():
        np.testing.assert_allclose(np.concatenate([batch[name] for batch in batches]), value, rtol=1e-4, atol=1e-5)
    assert [len(batch["mean"]) for batch in batches] == [3, 3, 1]
    print("tf.data: JAX functions ran in the pipeline, per element and per batch; values are JAX's")


if __name__ == "__main__":
    main(sys.argv[1])
