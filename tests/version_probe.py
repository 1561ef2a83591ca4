"""What works with the JAX and the TensorFlow that are installed: one line of JSON.

    python tests/version_probe.py

Four functions in every way that `jaxtf.convert.verify` knows, at several sizes, with gradients; a TensorFlow function
called from JAX, eagerly, under `jit`, differentiated and vectorized. Used by the session `versions`.
"""

import json
import os
import platform
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.convert import verify
from jaxtf.shapepoly import symbolic_shape


def network(x):
    hidden = jax.nn.gelu(x @ np.sin(np.arange(32, dtype=np.float32)).reshape(4, 8))
    return jax.nn.softmax(hidden @ np.cos(np.arange(24, dtype=np.float32)).reshape(8, 3) / 8)


def recurrent(x):
    return jax.lax.scan(lambda c, row: (jnp.tanh(c + row), c.sum()), jnp.zeros_like(x[0]), x)


def decompositions(x):
    matrix = x @ x.T + 10 * jnp.eye(4)
    return jnp.linalg.cholesky(matrix), jax.lax.erf(x), jnp.linalg.solve(matrix, x)


def random(x):
    return x + jax.random.normal(jax.random.key(0), x.shape)


VERIFIED = {network: "b, 4", recurrent: "b, 4", decompositions: "4, n", random: "b, 4"}


def check_calltf() -> None:
    """A TensorFlow function in JAX agrees with JAX's own."""
    sin, x = call_tf(tf.math.sin), jnp.linspace(0, 1, 6).reshape(2, 3)
    for found, expected in (
        (sin(x), jnp.sin(x)),
        (jax.jit(sin)(x), jnp.sin(x)),
        (jax.jit(jax.grad(lambda x: sin(x).sum()))(x), jnp.cos(x)),
        (jax.jvp(sin, (x,), (x,))[1], x * jnp.cos(x)),
        (jax.vmap(sin)(x), jnp.sin(x)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def main() -> int:
    """Prints what works; 1 if something does not."""
    failed = []
    for function, shape in VERIFIED.items():
        try:
            report = verify(function, jax.ShapeDtypeStruct(symbolic_shape(shape), jnp.float32), tolerance=4096)
            wrong = [row for row in report.rows if row.outcome != "same"]
            failed += [f"{function.__name__}, {row.backend}, {row.question}: {row.where}" for row in wrong]
        except Exception:
            failed.append(f"{function.__name__}: {traceback.format_exc().splitlines()[-1]}")
    try:
        check_calltf()
    except Exception:
        failed.append(f"call_tf: {traceback.format_exc().splitlines()[-1]}")
    found = {"python": platform.python_version(), "jax": jax.__version__, "tensorflow": tf.__version__}
    print(json.dumps(found | {"numpy": np.__version__, "failed": list(dict.fromkeys(failed))}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
