"""An equivariant message of e3nn: spherical harmonics, a tensor product, a linear layer; any number of atoms."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np
from comparison import compare

RADIAL = 4


def message(positions, features, weights):
    """Features `2x0e + 1o` of each atom, from those of all atoms and the directions to them."""
    relative = positions[:, None] - positions[None]
    distances = jnp.sqrt((relative**2).sum(-1) + 0.1)
    harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", e3nn.IrrepsArray("1o", relative / distances[..., None]), False)
    senders = e3nn.IrrepsArray("2x0e + 1o", jnp.broadcast_to(features[None], (*relative.shape[:2], 5)))
    product = e3nn.tensor_product(senders, harmonics, filter_ir_out=("0e", "1o"))
    radial = jnp.exp(-((distances[..., None] - jnp.linspace(0, 2, RADIAL)) ** 2)) @ weights
    mixed = product.array * jnp.tanh(radial)[..., : product.array.shape[-1]]
    return mixed.sum(1)


def main():
    random = np.random.default_rng(0)
    positions, features = (random.standard_normal((5, n)).astype(np.float32) for n in (3, 5))
    width = jax.eval_shape(message, positions, features, np.zeros((RADIAL, 64), np.float32)).shape[-1]
    weights = random.standard_normal((RADIAL, width)).astype(np.float32)
    compare("e3nn", message, [positions, features, weights], 1e-4)
    shapes = ["(n, 3)", "(n, 5)", None]
    compare("e3nn, any number", message, [positions, features, weights], 1e-4, polymorphic_shapes=shapes)


main()
