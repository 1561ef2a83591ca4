"""Uses what graph mode made, in a process that cannot import jax (jaxlib is there); prints what it found as JSON."""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.modules["jax"] = None

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import jaxtf.convert  # noqa: E402

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

TEXT = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""


def value_and_gradient(function):
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        value = function(x)
    return {"value": value.numpy().tolist(), "gradient": tape.gradient(value, x).numpy().tolist()}


def orders(model):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = model(tf.constant(X))
        first = inner.gradient(value, model.params)
    return [first.numpy().tolist(), outer.gradient(first, model.params).numpy().tolist()]


def xla_types(model):
    definition = model.f.get_concrete_function().graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return sorted({node.op for node in nodes if node.op.startswith("Xla")})


def main(folder: Path) -> None:
    assert "jaxlib" not in sys.modules, "importing jaxtf.convert needs no jaxlib"
    plain = tf.saved_model.load(str(folder / "plain"))
    artifact = jaxtf.convert.convert_exported((folder / "artifact").read_bytes(), native_serialization=False)
    portable = jaxtf.convert.convert_stablehlo((folder / "portable").read_bytes())
    found = {
        "plain": value_and_gradient(plain.f),
        "types": xla_types(plain),
        "trained": orders(tf.saved_model.load(str(folder / "trained"))),
        "artifact": value_and_gradient(artifact),
        "portable": portable(X).numpy().tolist(),
        "text": jaxtf.convert.convert_stablehlo(TEXT)(tf.constant([1.0, 2.0]), np.float32([3, 4])).numpy().tolist(),
    }
    assert not any(name.split(".")[0] == "jax" and module for name, module in sys.modules.items())
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
