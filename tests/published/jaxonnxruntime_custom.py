"""jaxonnxruntime: its example of a custom operation, which calls TensorFlow from JAX.

python jaxonnxruntime_custom.py jaxtf|upstream
"""

import jax
import numpy as np
import onnx
from place import in_place

in_place()

from jaxonnxruntime.experimental.custom_ops.zeros_like import tf_zeros_like  # noqa: E402


def main() -> None:
    x = np.ones((2, 3), np.float32)
    zeros = tf_zeros_like(x, dtype=onnx.TensorProto.FLOAT)
    np.testing.assert_array_equal(zeros, np.zeros((2, 3), np.float32))
    both = jax.jit(lambda y: y + tf_zeros_like(y, dtype=onnx.TensorProto.FLOAT))(x)
    np.testing.assert_array_equal(both, x)
    print("jaxonnxruntime: its custom operation, alone and under jit")


if __name__ == "__main__":
    main()
