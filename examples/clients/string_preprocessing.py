"""Text in, scores out: TensorFlow's string operations, which do not compile, around a compiled JAX model.

python string_preprocessing.py FOLDER
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert

WORDS = ["the", "a", "good", "bad", "film", "was"]


def score(params, ids, mask):
    vectors = params["embedding"][ids] * mask[..., None]
    mean = vectors.sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1)[:, None]
    return jax.nn.sigmoid(mean @ params["w"])


class Classifier(tf.Module):
    """Strings to scores; only `score` is compiled."""

    def __init__(self, params) -> None:
        super().__init__()
        self.params = {name: tf.Variable(value) for name, value in params.items()}
        keys = tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(1, len(WORDS) + 1))
        self.table = tf.lookup.StaticHashTable(keys, 0)
        shapes = [None, "(batch, length)", "(batch, length)"]
        self.score = tf.function(convert(score, polymorphic_shapes=shapes), autograph=False, jit_compile=True)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        words = tf.strings.split(tf.strings.lower(tf.strings.regex_replace(texts, r"[^\w\s]", "")))
        ids = self.table.lookup(words.to_tensor())
        mask = tf.sequence_mask(words.row_lengths(), dtype=tf.float32)
        return tf.strings.as_string(self.score(self.params, ids, mask), precision=4)


def main(folder: str) -> None:
    params = {
        "embedding": np.sin(np.arange(28, dtype=np.float32)).reshape(7, 4),
        "w": np.linspace(-2, 2, 4, dtype=np.float32),
    }
    texts = ["The film was GOOD!", "bad", "a film; the film, a bad film."]
    tf.saved_model.save(Classifier(params), folder)
    loaded = tf.saved_model.load(folder)
    ids = np.array([[1, 5, 6, 3, 0, 0, 0], [4, 0, 0, 0, 0, 0, 0], [2, 5, 1, 5, 2, 4, 5]])
    mask = np.array([[1] * 4 + [0] * 3, [1] + [0] * 6, [1] * 7], np.float32)
    expected = [f"{value:.4f}" for value in np.asarray(score(params, ids, mask))]
    assert [text.decode() for text in loaded(tf.constant(texts)).numpy()] == expected
    assert [text.decode() for text in loaded(tf.constant(texts[:1])).numpy()] == expected[:1]
    print("strings:", dict(zip(texts, expected, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1])
