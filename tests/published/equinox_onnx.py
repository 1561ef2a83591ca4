"""equinox: `equinox.internal.to_onnx`, run by ONNX Runtime.

python equinox_onnx.py jaxtf|upstream
"""

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from place import in_place

in_place()


def main() -> None:
    network = eqx.nn.MLP(4, 3, 16, 2, key=jax.random.key(0))
    programs = {
        "two arguments": (lambda x, y: jnp.sin(x) @ y.T + 1, [(2, 4), (3, 4)]),
        "MLP": (jax.vmap(network), [(5, 4)]),
        "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y * 2 + i), x), [(4,)]),
    }
    for name, (function, shapes) in programs.items():
        arguments = [np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape) for shape in shapes]
        model, _ = eqxi.to_onnx(function)(*arguments)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        inputs = {taken.name: argument for taken, argument in zip(session.get_inputs(), arguments, strict=True)}
        [found] = session.run(None, inputs)
        np.testing.assert_allclose(found, function(*arguments), rtol=1e-5, atol=1e-6)
        operations = sorted({node.op_type for node in model.graph.node})
        print(f"equinox {eqx.__version__}, {name}: {len(operations)} kinds of operations in ONNX")


if __name__ == "__main__":
    main()
