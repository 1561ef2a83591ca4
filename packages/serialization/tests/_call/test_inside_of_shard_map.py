"""Exports over several devices, called where each device, or row of devices, computes for itself: right or refused.

A fixed few are drawn always; JAXTF_FULL=1 draws `RANDOM_PROGRAMS` of them, others each time. A seed is in the name of
its test.
"""

import math
import os
import random
import secrets
import subprocess
import sys
import textwrap
from dataclasses import replace

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import DeviceCountError, deserialize, export

from .sharded_programs import program, random_mesh

SEEDS = range(12)
if os.environ.get("JAXTF_FULL") == "1":
    SEEDS = [secrets.randbelow(2**32) for _ in range(int(os.environ.get("RANDOM_PROGRAMS", "100")))]

F32 = np.float32
X = np.arange(16, dtype=F32).reshape(8, 2)
PART = ShapeDtypeStruct((2, 2), F32)

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="XLA was started with fewer devices")


def mesh_of(**axes):
    count = math.prod(axes.values())
    devices = np.array(jax.devices()[:count]).reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def inside(call, mesh, axes, **options):
    """What `call` gives to each row of devices along `axes`, of its part of the first dimension."""
    over = P(tuple(axes))
    return jax.shard_map(call, mesh=mesh, in_specs=over, out_specs=over, axis_names=set(axes), **options)


def by_parts(function, mesh, axes):
    """The same, one part after the other."""
    count = math.prod(mesh.shape[axis] for axis in axes)
    return lambda x: np.concatenate([np.asarray(function(part)) for part in np.split(x, count)])


# --- what computes by devices: of a mesh, and the axis over which it does ---


def summed(mesh, axis):
    return jax.shard_map(lambda v: lax.psum(v, axis), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)


def by_index(mesh, axis):
    def of_a_device(v):
        return lax.psum(v * (1.0 + lax.axis_index(axis)), axis)

    return jax.shard_map(of_a_device, mesh=mesh, in_specs=P(), out_specs=P(), axis_names={axis}, check_vma=False)


def shifted(mesh, axis):
    def of_a_device(v):
        return lax.ppermute(v, axis, [(i, i + 1) for i in range(mesh.shape[axis] - 1)])

    return jax.shard_map(
        of_a_device, mesh=mesh, in_specs=P(None, axis), out_specs=P(None, axis), axis_names={axis}, check_vma=False
    )


BY_DEVICE = [summed, by_index, shifted]

# --- what says where values are ---


def constrained(mesh, axis):
    return lambda x: jnp.cumsum(lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, axis))), 0) + x.sum()


def split_arguments(mesh, axis):
    return jax.jit(lambda x: jnp.cumsum(x, 0) + x.sum(), in_shardings=NamedSharding(mesh, P(axis)))


def split_results(mesh, axis):
    return jax.jit(lambda x: jnp.cumsum(x, 0) + x.sum(), out_shardings=NamedSharding(mesh, P(axis)))


PLACED = [constrained, split_arguments, split_results]


@pytest.mark.parametrize("check_vma", [True, False])
def test_what_devices_compute_together_is_refused_where_each_computes_for_itself(check_vma):
    mesh = mesh_of(x=8)
    exported = export(jax.jit(summed(mesh, "x")))(ShapeDtypeStruct((1,), F32))
    with pytest.raises(DeviceCountError) as caught:
        jax.jit(inside(exported.call, mesh, "x", check_vma=check_vma))(np.arange(8, dtype=F32))
    assert str(caught.value) == (
        f"Function '{exported.fun_name}' was exported for 8 devices, which compute it together, and is called inside "
        "of jax.shard_map, or jax.pmap, over 'x' of the mesh x=8, where each device computes for itself\n"
        "  found:  sdy.manual_computation, stablehlo.all_reduce\n"
        "  remedy: call it outside of jax.shard_map; or export what each device is to compute as a function of its "
        "own, without a mesh"
    )


def test_it_is_refused_inside_of_pmap():
    exported = export(jax.jit(summed(mesh_of(x=8), "x")))(ShapeDtypeStruct((2,), F32))
    with pytest.raises(DeviceCountError, match=r"inside of jax\.shard_map, or jax\.pmap, over 'i' of the mesh i=8"):
        jax.pmap(exported.call, axis_name="i")(X)


def along(call, mesh):
    return inside(call, mesh, mesh.axis_names[:1])


def over_eight(call):
    return jax.jit(call, in_shardings=NamedSharding(mesh_of(x=8), P()))


# Of a record, and of a mesh.
WAYS = {
    "compiled": lambda exported, mesh: jax.jit(along(exported.call, mesh)),
    "not compiled": lambda exported, mesh: along(exported.call, mesh),
    "read again": lambda exported, mesh: along(deserialize(exported.serialize()).call, mesh),
    "gradient": lambda exported, mesh: jax.grad(lambda x: along(exported.call, mesh)(x).sum()),
    "tangents": lambda exported, mesh: lambda x: jax.jvp(along(exported.call, mesh), (x,), (x,)),
    "VJP": lambda exported, mesh: along(lambda x: exported.vjp().call(x, x)[0], mesh),
    "batch": lambda exported, mesh: along(lambda x: jax.vmap(exported.call)(jnp.stack([x, x]))[0], mesh),
    "exported again": lambda exported, mesh: lambda x: export(jax.jit(along(exported.call, mesh)))(x).call(x),
    "in what is exported": lambda exported, mesh: along(export(over_eight(exported.call))(PART).call, mesh),
}
MESHES = {"its own": {"x": 8}, "another": {"a": 8}, "in part": {"a": 4, "b": 2}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axes", MESHES.values(), ids=MESHES)
def test_every_way_to_call_it_there_is_refused(axes, way):
    exported = export(jax.jit(by_index(mesh_of(x=8), "x")))(PART)
    x = np.ones((2 * next(iter(axes.values())), 2), F32)
    call = WAYS[way](exported, mesh_of(**axes))
    with pytest.raises(DeviceCountError, match="which compute it together"):
        call(x)


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("axes", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("made", PLACED)
def test_what_only_says_where_values_are_is_computed_by_each_device(made, axes, check_vma):
    function, mesh = jax.jit(made(mesh_of(x=2, y=4), "x")), mesh_of(**axes)
    exported = export(function)(PART)
    assert exported.nr_devices == 8
    over = mesh.axis_names[:1]
    x = np.arange(4 * mesh.shape[over[0]], dtype=F32).reshape(-1, 2)
    expected = by_parts(function, mesh, over)(x)
    for record in (exported, deserialize(exported.serialize(vjp_order=1))):
        call = inside(record.call, mesh, over, check_vma=check_vma)
        np.testing.assert_array_equal(jax.jit(call)(x), expected)
        found = jax.jit(jax.grad(lambda x: (call(x) ** 2).sum()))(x)  # noqa: B023
        own = by_parts(jax.grad(lambda x: (function(x) ** 2).sum()), mesh, over)
        np.testing.assert_array_equal(found, own(x))


def test_what_only_says_where_values_are_is_computed_by_each_device_of_pmap():
    function = split_arguments(mesh_of(x=2, y=4), "x")
    x = np.arange(32, dtype=F32).reshape(8, 2, 2)
    np.testing.assert_array_equal(jax.pmap(export(function)(PART).call)(x), [function(part) for part in x])


@pytest.mark.parametrize("names", ["ab", "ba"])
@pytest.mark.parametrize("made", BY_DEVICE[1:] + PLACED)
def test_what_is_computed_along_the_other_axes_of_the_mesh_runs_there(made, names):
    mesh = mesh_of(**{name: {"a": 4, "b": 2}[name] for name in names})
    function = jax.jit(made(mesh, "b"))
    exported = export(function)(PART)
    expected = by_parts(function, mesh, "a")(X)
    try:
        jax.jit(inside(exported.call, mesh, "a", check_vma=False))(X)
    except DeviceCountError:
        assert made is by_index  # JAX 0.12 computes `axis_index` of the number of the device
        return
    for record in (exported, deserialize(exported.serialize(vjp_order=1))):
        call = inside(record.call, mesh, "a", check_vma=False)
        np.testing.assert_array_equal(jax.jit(call)(X), expected)
        found = jax.jit(jax.grad(lambda x: (call(x) ** 2).sum()))(X)  # noqa: B023
        np.testing.assert_array_equal(found, by_parts(jax.grad(lambda x: (function(x) ** 2).sum()), mesh, "a")(X))
    if made in BY_DEVICE:  # of the same axes in another order the devices of a row are others
        other = mesh_of(**dict(reversed(mesh.shape.items())))
        with pytest.raises(DeviceCountError):
            jax.jit(inside(exported.call, other, "a", check_vma=False))(X)


@pytest.mark.parametrize("axis", ["x", "a"])
def test_a_mesh_of_one_device_inside_of_another_one_is_run_or_refused(axis):
    function = jax.jit(by_index(mesh_of(x=1), "x"))
    exported = export(function)(PART)
    call = jax.jit(inside(exported.call, mesh_of(**{axis: 1}), axis))
    try:
        np.testing.assert_array_equal(call(X[:2]), function(X[:2]))
    except DeviceCountError:
        assert axis == "x"


@pytest.mark.slow
def test_without_shardy_it_is_the_same():
    """In a process of its own, which XLA ends where it is given such a program."""
    code = """
        import jax, numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        from jaxtf.serialization import DeviceCountError, export

        jax.config.update("jax_use_shardy_partitioner", False)
        mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
        x = np.arange(16, dtype=np.float32).reshape(8, 2)
        part = jax.ShapeDtypeStruct((2, 2), np.float32)

        def inside(call, axes):
            options = {"in_specs": P("a"), "out_specs": P("a"), "axis_names": set(axes), "check_vma": False}
            return jax.jit(jax.shard_map(call, mesh=mesh, **options))

        def total(axis):
            options = {"in_specs": P(), "out_specs": P(), "axis_names": {axis}, "check_vma": False}
            return jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, axis), mesh=mesh, **options))

        for axis in ("a", "b"):
            for axes in ("a", "ab"):
                try:
                    inside(export(total(axis))(part).call, axes)(x)
                except DeviceCountError:
                    print("refused")
        split = jax.jit(lambda x: x.cumsum(0), in_shardings=NamedSharding(mesh, P("b")))
        for axes in ("a", "ab"):
            found = inside(export(split)(part).call, axes)(x)
            assert (found == x.reshape(4, 2, 2).cumsum(1).reshape(8, 2)).all(), found
            print("right")
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert ran.stdout.split() == ["refused"] * 4 + ["right"] * 2, ran.stderr[-2000:]


def rows_of(drawn, count):
    """Arguments for so many rows of devices, others for each: one after the other, along a first dimension."""
    return [np.stack([array * (row + 1) for row in range(count)]) for array in drawn.arguments]


def of_rows(call, mesh, axes, *, check_vma):
    """What `call` gives to each row of devices, of arguments that `rows_of` made."""

    def of_a_row(*parts):
        return jax.tree.map(lambda x: x[None], call(*(part[0] for part in parts)))

    over = P(tuple(axes))
    return jax.shard_map(of_a_row, mesh=mesh, in_specs=over, out_specs=over, axis_names=set(axes), check_vma=check_vma)


def values(call, places):
    return call


def gradients(call, places):
    return jax.grad(lambda *arrays: sum(jnp.sin(result).sum() for result in call(*arrays)), places)


@pytest.mark.slow(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_over_devices_called_in_shard_map_is_right_or_refused(seed):
    draw, drawn = random.Random(f"{seed}, called"), program(seed)  # else what is drawn first goes with the kind
    mesh = drawn.mesh if drawn.kind != "explicit" and draw.random() < 0.5 else random_mesh(draw)
    axes = draw.sample(mesh.axis_names, draw.randint(1, len(mesh.axis_names)))
    arguments = rows_of(drawn, math.prod(mesh.shape[axis] for axis in axes))
    places = tuple(range(len(arguments)))
    with jax.set_mesh(drawn.mesh) if drawn.kind == "explicit" else jax.set_mesh(None):
        exported = export(drawn.function)(*drawn.shapes())
    record = draw.choice([exported, deserialize(exported.serialize(vjp_order=1))])
    refused = set()
    for derived in (values, gradients):
        try:
            with jax.set_mesh(drawn.mesh) if drawn.kind == "explicit" else jax.set_mesh(None):
                own = [
                    jax.jit(derived(drawn.function, places))(*replace(drawn, arguments=parts).placed())
                    for parts in zip(*arguments, strict=True)
                ]
        except jax.errors.JaxRuntimeError:  # XLA of JAX 0.10 does not compile some gradients of parts along some axes
            if drawn.kind != "in part":
                raise
            continue
        try:
            rows = of_rows(derived(record.call, places), mesh, axes, check_vma=draw.random() < 0.5)
            found = jax.jit(rows)(*arguments)
        except DeviceCountError as error:
            refused.add(str(error))
            continue
        for row, expected in enumerate(own):
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                bound = 1e-3 * (1 + abs(np.asarray(other)).max())
                np.testing.assert_allclose(np.asarray(one)[row], np.asarray(other), rtol=1e-3, atol=bound)
    if exported.nr_devices > 1 and drawn.kind in ("auto", "explicit"):
        assert not refused
