"""Random functions over several devices, exported, give what the function gives, however they are called.

A fixed few are tried always; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` of them, others each time (the session
`random_programs`). A seed is in the name of its test.
"""

import os
import random
import secrets

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import DeviceCountError, LiftUnsupported, deserialize, export, lift

from .sharded_programs import program, random_mesh, random_spec

SEEDS = range(8)
if os.environ.get("JAXTF_FULL") == "1":
    SEEDS = [secrets.randbelow(2**32) for _ in range(int(os.environ.get("RANDOM_PROGRAMS", "100")))]

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="XLA was started with fewer devices")


def assert_same(found, expected):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        whole = np.asarray(other)
        for shard in one.addressable_shards:  # of each device, those that have the same part too
            np.testing.assert_allclose(shard.data, whole[shard.index], rtol=1e-3, atol=1e-3 * (1 + abs(whole).max()))


def anyhow(draw, drawn, mesh):
    """Arguments split by the axes of a mesh at random."""
    return drawn.placed(mesh, [random_spec(draw, array.ndim, mesh.axis_names) for array in drawn.arguments])


def reordered(draw, mesh):
    """A mesh of other devices, or of the same ones in another order."""
    devices = draw.sample(list(mesh.devices.flat), mesh.size)
    return Mesh(np.array(devices).reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)


# --- how it is called: of a draw, the program, what is exported ---


def eager(draw, drawn, exported):
    return exported.call(*drawn.placed())


def split_otherwise(draw, drawn, exported):
    return jax.jit(exported.call)(*anyhow(draw, drawn, drawn.mesh))


def read_again(draw, drawn, exported):
    return jax.jit(deserialize(exported.serialize()).call)(*drawn.placed())


def read_by_jax(draw, drawn, exported):
    return jax.jit(jax.export.deserialize(bytearray(exported.serialize())).call)(*drawn.placed())


def written_by_jax(draw, drawn, exported):
    theirs = jax.export.export(drawn.function)(*drawn.shapes())
    return jax.jit(deserialize(theirs.serialize()).call)(*drawn.placed())


def over_devices_in_another_order(draw, drawn, exported):
    mesh = reordered(draw, drawn.mesh)
    with jax.set_mesh(mesh):
        return jax.jit(exported.call)(*drawn.placed(mesh))


def over_another_mesh(draw, drawn, exported):
    """Where results are placed is said: XLA places others as the mesh of the arguments has no word for."""
    mesh = random_mesh(draw, drawn.mesh.size)
    return jax.jit(exported.call, out_shardings=NamedSharding(mesh, P()))(*anyhow(draw, drawn, mesh))


def under_an_explicit_mesh(draw, drawn, exported):
    names = draw.choice((drawn.mesh.axis_names, tuple(draw.sample("abc", drawn.mesh.devices.ndim))))
    mesh = Mesh(drawn.mesh.devices, names, axis_types=(AxisType.Explicit,) * len(names))
    with jax.set_mesh(mesh):
        return jax.jit(exported.call)(*anyhow(draw, drawn, mesh))


def exported_once_more(draw, drawn, exported):
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in drawn.placed()]
    outer = export(jax.jit(exported.call))(*shapes)
    return jax.jit(deserialize(outer.serialize()).call)(*drawn.placed())


def beside_one_over_another_mesh(draw, drawn, exported):
    """The sizes of the axes are the same: for others XLA of JAX 0.12 may end the process, for the functions too."""
    other = Mesh(drawn.mesh.devices, tuple(draw.sample("abc", drawn.mesh.devices.ndim)))
    spec = random_spec(draw, 2, other.axis_names, of_all=True)

    def by_index(x):
        return x * (1 + jax.lax.axis_index(other.axis_names)) + jax.lax.psum(x.sum(), other.axis_names)

    function = jax.jit(jax.shard_map(by_index, mesh=other, in_specs=spec, out_specs=spec, check_vma=False))
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    beside = export(function)(x)
    expected = function(jax.device_put(x, NamedSharding(other, P())))
    both = [lambda x, arrays: (beside.call(x), exported.call(*arrays))]
    both += [lambda x, arrays: (exported.call(*arrays), beside.call(x))[::-1]]
    call = jax.jit(draw.choice(both), out_shardings=NamedSharding(drawn.mesh, P()))
    found, own = call(jax.device_put(x, NamedSharding(drawn.mesh, P())), drawn.placed())
    assert_same(found, expected)
    return own


def lifted(draw, drawn, exported):
    """What devices compute by themselves is refused."""
    try:
        function = lift(exported)
    except LiftUnsupported:
        assert drawn.kind in ("manual", "in part")
        return drawn.function(*drawn.placed())
    return jax.jit(function)(*drawn.placed())


def in_a_scan(draw, drawn, exported):
    arrays = [jnp.stack([array, array]) for array in drawn.placed()]
    turns = jax.jit(lambda *arrays: jax.lax.scan(lambda c, parts: (c, exported.call(*parts)), 0, arrays)[1])
    return jax.tree.map(lambda x: x[1], turns(*arrays))


WAYS = [
    eager,
    split_otherwise,
    read_again,
    read_by_jax,
    written_by_jax,
    over_devices_in_another_order,
    exported_once_more,
    lifted,
]
WAYS_OF_AUTO = [over_another_mesh, under_an_explicit_mesh, beside_one_over_another_mesh, in_a_scan]


# --- derivatives and batches: of a function, its program ---


def loss(call):
    def total(*arrays):
        return sum(jnp.sin(result).sum() for result in call(*arrays))

    return total


def gradient(call, drawn):
    return jax.jit(jax.grad(loss(call), tuple(range(len(drawn.arguments)))))(*drawn.placed())


def second_gradient(call, drawn):
    places = tuple(range(len(drawn.arguments)))

    def total(*arrays):
        return sum(jnp.sin(result).sum() for result in jax.grad(loss(call), places)(*arrays))

    return jax.jit(jax.grad(total, places))(*drawn.placed())


def batch(call, drawn):
    return jax.jit(jax.vmap(call))(*(jnp.stack([array, 2 * array]) for array in drawn.placed()))


def tangents(call, drawn):
    return jax.jit(lambda *arrays: jax.jvp(call, arrays, arrays))(*drawn.placed())


@pytest.mark.slow(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_over_devices_gives_the_same_exported(seed):
    draw, drawn = random.Random(seed), program(seed)
    is_explicit = drawn.kind == "explicit"
    with jax.set_mesh(drawn.mesh) if is_explicit else jax.set_mesh(None):
        expected = drawn.function(*drawn.placed())
        exported = export(drawn.function)(*drawn.shapes())
        for way in draw.sample(WAYS if is_explicit else WAYS + WAYS_OF_AUTO, 4):
            assert_same(way(draw, drawn, exported), expected)
        stored = deserialize(exported.serialize(vjp_order=1))
        for derived, record in [(gradient, stored), (draw.choice((tangents, batch, second_gradient)), exported)]:
            if not (is_explicit and derived is batch):
                assert_same(derived(record.call, drawn), derived(drawn.function, drawn))
        if exported.nr_devices > 1 and not is_explicit:
            with pytest.raises(DeviceCountError):
                exported.call(*drawn.arguments)
