"""Writes the trained digits network as an artifact: `python export.py FOLDER`, where train.py wrote its parameters.

The parameters are constants of the artifact: one file is the whole model. Batches of any size; gradients are left out.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "digits"))
from network import predict


def main(out: Path) -> None:
    """Writes `model.jaxtf`."""
    parameters = {name: jnp.asarray(value) for name, value in np.load(out / "parameters.npz").items()}
    images = jax.ShapeDtypeStruct(symbolic_shape("b, 8, 8"), jnp.float32)
    exported = export(lambda images: predict(parameters, images), platforms=("cpu", "cuda", "tpu"))(images)
    written = (out / "model.jaxtf").write_bytes(exported.serialize())
    print(f"wrote {out / 'model.jaxtf'}: {written:,} bytes, {exported}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
