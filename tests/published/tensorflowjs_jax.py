"""tensorflowjs: `convert_jax` of networks, a fixed batch and an open one; the values are compared in Node.

    python tensorflowjs_jax.py jaxtf|upstream FOLDER

The converter imports a package that no graph model needs and that does not go with TensorFlow 2.21: an empty module
replaces it. Node's packages are installed into FOLDER.
"""

import json
import shutil
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpy as np
import tensorflow as tf
from place import in_place

in_place()
sys.modules["tensorflow_decision_forests"] = types.ModuleType("tensorflow_decision_forests")

from flax import linen as nn  # noqa: E402
from tensorflowjs.converters.jax_conversion import convert_jax  # noqa: E402

PROGRAMS = Path(__file__).parents[2] / "examples" / "consumers" / "tfjs"


class Network(nn.Module):
    """A convolution, a pool, and two dense layers."""

    @nn.compact
    def __call__(self, images):
        x = nn.max_pool(nn.relu(nn.Conv(4, (3, 3))(images)), (2, 2), (2, 2))
        return nn.softmax(nn.Dense(5)(nn.gelu(nn.Dense(8)(x.reshape(x.shape[0], -1)))))


def main(folder: Path) -> None:
    shutil.copy(PROGRAMS / "package.json", folder)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], check=True, cwd=folder
    )
    network = Network()
    images = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 8, 8, 1)
    params = network.init(jax.random.key(0), images)
    fixed, free = str(folder / "fixed"), str(folder / "free")
    convert_jax(network.apply, params, input_signatures=[tf.TensorSpec((3, 8, 8, 1), tf.float32)], model_dir=fixed)
    convert_jax(
        network.apply,
        params,
        input_signatures=[tf.TensorSpec((None, 8, 8, 1), tf.float32)],
        polymorphic_shapes=["(b, ...)"],
        strip_debug_ops=True,
        model_dir=free,
    )
    for model, batches in ((fixed, [3]), (free, [3, 1])):
        [name] = json.loads((Path(model) / "model.json").read_text())["signature"]["inputs"]
        calls = [{name: _as_json(images[:batch])} for batch in batches]
        jobs, results = folder / "jobs.json", folder / "results.json"
        jobs.write_text(json.dumps([{"folder": model, "calls": calls}]))
        subprocess.run(["node", str(PROGRAMS / "run.mjs"), "cpu", str(jobs), str(results)], check=True)
        [found] = json.loads(results.read_text())
        assert "error" not in found, found["error"]
        for batch, result in zip(batches, found["results"], strict=True):
            [array] = result.values()
            expected = network.apply(params, images[:batch])
            np.testing.assert_allclose(np.reshape(array["data"], array["shape"]), expected, rtol=1e-4, atol=1e-6)
            print(f"tensorflowjs 4.22, {Path(model).name} batch: {batch} images in Node, values are JAX's")


def _as_json(array: np.ndarray) -> dict:
    return {"shape": list(array.shape), "dtype": str(array.dtype), "data": array.ravel().tolist()}


if __name__ == "__main__":
    main(Path(sys.argv[2]).resolve())
