"""keras-hub on JAX: a small BERT and a small ViT, `model.export`ed, served from the SavedModel.

KERAS_BACKEND=jax python keras_hub_export.py jaxtf|upstream
"""

import tempfile

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from place import in_place

in_place()


def main() -> None:
    assert keras.backend.backend() == "jax"
    bert = keras_hub.models.BertBackbone(
        vocabulary_size=50, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32, max_sequence_length=12
    )
    vit = keras_hub.models.ViTBackbone(
        image_shape=(16, 16, 3), patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
    )
    random = np.random.default_rng(0)
    words = {
        "token_ids": random.integers(50, size=(3, 12), dtype=np.int32),
        "segment_ids": np.zeros((3, 12), np.int32),
        "padding_mask": np.ones((3, 12), np.int32),
    }
    images = random.normal(size=(3, 16, 16, 3)).astype(np.float32)
    # Left to itself, Keras leaves the length of BERT's texts open, which its table of 12 positions does not allow.
    lengths = {name: keras.InputSpec("int32", (None, 12), name=name) for name in words}
    for name, model, inputs, signature in (("BERT", bert, words, [lengths]), ("ViT", vit, images, None)):
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, verbose=False, input_signature=signature)
            loaded = tf.saved_model.load(folder)
            for batch in (inputs, keras.tree.map_structure(lambda array: array[:1], inputs)):
                keras.tree.map_structure(
                    lambda found, expected: np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5),
                    loaded.serve(batch),
                    keras.tree.map_structure(np.asarray, model(batch)),
                )
        print(f"keras-hub {keras_hub.__version__}, {name}: served from SavedModel, batches of 3 and 1")


if __name__ == "__main__":
    main()
