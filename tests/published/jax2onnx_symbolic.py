"""jax2onnx: a function with a symbolic batch, run by ONNX Runtime; it uses `jax.export`, which must stay JAX's.

python jax2onnx_symbolic.py jaxtf|upstream
"""

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax2onnx import to_onnx
from place import in_place

in_place()

WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def predict(x):
    return jax.nn.softmax(jnp.tanh(x @ WEIGHTS), axis=-1) + jnp.arange(3, dtype=jnp.float32)


def main() -> None:
    model = to_onnx(predict, [("B", 4)])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    [taken] = session.get_inputs()
    for batch in (1, 5):
        x = np.linspace(0, 1, 4 * batch, dtype=np.float32).reshape(batch, 4)
        [found] = session.run(None, {taken.name: x})
        np.testing.assert_allclose(found, predict(x), rtol=1e-5, atol=1e-6)
    print("jax2onnx: batches of 1 and 5 from one model")


if __name__ == "__main__":
    main()
