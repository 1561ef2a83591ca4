"""A C program that serves a JAX function: saved here, compiled with the system's C compiler, run without Python.

python c_program.py FOLDER
"""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import save_model

SOURCE = Path(__file__).with_name("serve.c")


def predict(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def main(folder: str) -> None:
    params = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}
    save_model(
        predict,
        params,
        f"{folder}/model",
        input_signatures=[tf.TensorSpec([None, 4], tf.float32)],
        polymorphic_shapes=["(batch, _)"],
    )
    library = tf.sysconfig.get_lib()
    program = f"{folder}/serve"
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{library}"]
    command = ["cc", str(SOURCE), f"-I{tf.sysconfig.get_include()}", f"-L{library}", *libraries, "-o", program]
    subprocess.run(command, check=True)
    for batch in (1, 5):
        call = [program, f"{folder}/model", "serving_default_x", "StatefulPartitionedCall", str(batch), "4"]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env={"TF_CPP_MIN_LOG_LEVEL": "2"})
        assert done.returncode == 0, done.stderr[-2000:]
        found = np.array([line.split() for line in done.stdout.splitlines()], np.float32)
        x = (np.arange(4 * batch, dtype=np.float32) / (4 * batch)).reshape(batch, 4)
        np.testing.assert_allclose(found, predict(params, x), rtol=1e-5, atol=1e-6)
    print(f"C: served batches of 1 and 5 without Python; the program has {Path(program).stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
