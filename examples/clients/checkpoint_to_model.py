"""Old programs: an artifact and a checkpoint, of orbax or of flax's msgpack, become one file with the weights in it.

python checkpoint_to_model.py FOLDER

The artifact says which structure its weights have, so that neither the network's code nor its class is needed: the
checkpoint is read into that structure. Then `save` writes both, and `load` gives a function that is called with the
input alone.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from flax import linen as nn
from flax import serialization as msgpack

from jaxtf.serialization import deserialize, export, load, save
from jaxtf.shapepoly import symbolic_shape


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(16)(x)))


def long_ago(folder: Path, x: np.ndarray) -> np.ndarray:
    """What a project left: an artifact, and a checkpoint in two forms. Returns what the network computed."""
    network = Network()
    variables = network.init(jax.random.key(0), x)
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 8"), jnp.float32)
    (folder / "network.bin").write_bytes(export(network.apply)(variables, spec).serialize(vjp_order=1))
    (folder / "weights.msgpack").write_bytes(msgpack.to_bytes(variables))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "checkpoint", variables, force=True)
    return np.asarray(network.apply(variables, x))


def weights_like(exported):
    """Zeros in the structure of the first argument, for readers of checkpoints that want an example."""
    structure = exported.in_structure.children[0].children[0]
    avals = exported.in_avals[: structure.leaf_count]
    return structure.unflatten(np.zeros(aval.shape, aval.dtype) for aval in avals)


def main(folder: Path) -> None:
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    expected = long_ago(folder, x)

    exported = deserialize(folder / "network.bin")
    example = weights_like(exported)
    from_msgpack = msgpack.from_bytes(example, (folder / "weights.msgpack").read_bytes())
    with ocp.StandardCheckpointer() as checkpointer:
        from_orbax = checkpointer.restore(folder / "checkpoint", example)
    for name, weights in (("msgpack", from_msgpack), ("orbax", from_orbax)):
        path = folder / f"{name}.jaxtf"
        description = save(path, exported, weights, vjp_order=1, metadata={"from": name}, overwrite=True)
        np.testing.assert_allclose(load(path).call(x), expected, rtol=1e-6)
        print(f"{name}: {description.weights.parameters} parameters in {path.name}, called with the input alone")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
