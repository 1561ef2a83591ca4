"""States of optax, flax, equinox and haiku in artifacts: by one call for a library, or as opaque nodes.

python library_trees.py FOLDER

Each function is exported and written twice: before its library is registered, so that nodes of its classes are opaque,
and after. Both give the numbers of JAX; after, results have the library's own classes.
"""

import sys
from pathlib import Path

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training import train_state

from jaxtf.serialization import deserialize, export, register_library

X = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)


def optax_update():
    """A chain of transformations: named tuples in a tuple."""
    params = {"w": jnp.ones((3, 2))}
    optimizer = optax.chain(optax.clip(1.0), optax.adamw(1e-3))

    def update(gradients, state, params):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    return update, (params, optimizer.init(params), params)


def train_step():
    """A TrainState, which keeps functions next to its arrays."""
    params = {"w": jnp.ones((3, 2))}
    state = train_state.TrainState.create(apply_fn=jnp.dot, params=params, tx=optax.sgd(0.1, momentum=0.9))
    return lambda state, gradients: state.apply_gradients(grads=gradients), (state, params)


def nnx_state():
    """The state of a module of nnx, with Params in it."""
    graph, state = nnx.split(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))

    def apply(state, x):
        return nnx.merge(graph, state)(x), jax.tree.map(lambda array: array * 2, state)

    return apply, (state, X)


def equinox_module():
    """The arrays of a module of equinox."""
    arrays, static = eqx.partition(eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0)), eqx.is_array)
    return lambda arrays, x: jax.vmap(eqx.combine(arrays, static))(x), (arrays, X)


def haiku_state():
    """Parameters and state of haiku, which are dictionaries."""
    transformed = hk.transform_with_state(lambda x: hk.BatchNorm(True, True, 0.9)(x, True))
    params, state = transformed.init(jax.random.key(0), X)
    return lambda params, state, x: transformed.apply(params, state, None, x), (params, state, X)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cases = [optax_update, train_step, nnx_state, equinox_module, haiku_state]
    for registered in (False, True):
        if registered:
            counts = {library: len(register_library(library)) for library in ("optax", "flax")}
            print("registered:", ", ".join(f"{count} classes of {library}" for library, count in counts.items()))
        for case in cases:
            function, arguments = case()
            path = folder / f"{case.__name__}.jaxtf"
            path.write_bytes(export(function)(*arguments).serialize())
            loaded = deserialize(path)
            result, expected = loaded.call(*arguments), function(*arguments)
            for found, wanted in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
            opaque = loaded.in_structure.has_opaque or loaded.out_structure.has_opaque
            same = jax.tree.structure(result) == jax.tree.structure(expected)
            print(f"{case.__name__:16}{'opaque nodes' if opaque else 'its own classes'}")
            assert same == (not loaded.out_structure.has_opaque)
    assert not deserialize(folder / "optax_update.jaxtf").out_structure.has_opaque
    assert not deserialize(folder / "nnx_state.jaxtf").out_structure.has_opaque


if __name__ == "__main__":
    main(Path(sys.argv[1]))
