"""Exported functions compiled for accelerators that this machine does not have.

`JAXTF_AOT=tpu` or `cuda` chooses the target; without it nothing is tested here (`python3 run.py aot_tpu`, `aot_cuda`).
One artifact of each function, for cpu, cuda and tpu, with its VJP, is read back and compiled for real by the
target's own compiler, for a topology without devices. That shows that what is lowered for it compiles: custom calls,
calling convention, refinement of symbolic sizes, shardings. It does not run.

A deterministic sample of the battery is compiled; with `JAXTF_FULL=1` all of it.
"""

import contextlib
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxtf.serialization import SerializationError, deserialize, export
from jaxtf.shapepoly import symbolic_args_specs, symbolic_shape

from .aot_targets import TARGETS
from .battery import BATTERY

TARGET = os.environ.get("JAXTF_AOT")
if TARGET not in TARGETS:
    pytest.skip("JAXTF_AOT names no target", allow_module_level=True)

FULL = os.environ.get("JAXTF_FULL") == "1"
PLATFORMS = ("cpu", "cuda", "tpu")
WORKING = [name for name, entry in BATTERY.items() if entry.refusal is None]


@pytest.fixture(scope="module")
def devices():
    return TARGETS[TARGET].devices()


def compile_for(device, function, avals):
    """Compiles a function for a device that need not be there."""
    sharding = SingleDeviceSharding(device)
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding) for aval in avals]
    return jax.jit(function).lower(*specs).compile()


@pytest.mark.parametrize("name", WORKING[:: 1 if FULL else 8])
def test_one_artifact_for_all_platforms_compiles(devices, name):
    expected = TARGETS[TARGET].refused.get(name)
    found = refusal(devices[0], BATTERY[name])
    if expected is None:
        assert found is None
    else:
        assert expected in (found or "it compiles now: delete its entry in aot_targets.py")


def refusal(device, entry):
    """What the compiler of a device says against a function or its VJP; None if both compile."""
    arguments = entry.arguments(1)
    examples = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arguments]
    specs = symbolic_args_specs(examples, list(entry.shapes), constraints=entry.constraints)
    exported = export(jax.jit(entry.function), platforms=PLATFORMS)(*specs)
    differentiable = entry.differentiable and entry.gradient_refusal is None
    with contextlib.suppress(SerializationError):  # for a pytree type of the battery's own, which nobody registered
        exported = deserialize(exported.serialize(int(differentiable)))
    try:
        compile_for(device, exported.call, arguments)
        results = jax.tree.leaves(jax.eval_shape(exported.call, *arguments))
        if differentiable and all(jnp.issubdtype(result.dtype, jnp.inexact) for result in results):
            compile_for(device, exported.vjp().flat_call, [*examples, *results])
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    return None


def shard_mapped(mesh):
    def total(x):
        return jax.lax.psum(x, "rows") * 2

    return jax.shard_map(total, mesh=mesh, in_specs=PartitionSpec("rows"), out_specs=PartitionSpec())


def constrained(mesh):
    def product(x):
        y = jax.lax.with_sharding_constraint(x @ x.T, NamedSharding(mesh, PartitionSpec("rows", "columns")))
        return jnp.tanh(y)

    return product


@pytest.mark.parametrize("make", [shard_mapped, constrained])
def test_a_function_over_four_devices_compiles(devices, make):
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("rows", "columns"))
    split = NamedSharding(mesh, PartitionSpec("rows"))
    spec = jax.ShapeDtypeStruct((8, 4), jnp.float32)
    exported = export(jax.jit(make(mesh), in_shardings=split), platforms=PLATFORMS)(spec)
    read = deserialize(exported.serialize())
    assert read.nr_devices == 4
    sharded = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=split)
    assert jax.jit(read.call).lower(sharded).compile().as_text()


def test_symbolic_sizes_over_four_devices_compile(devices):
    mesh = Mesh(np.array(devices[:4]), ("rows",))
    split = NamedSharding(mesh, PartitionSpec("rows"))
    b = symbolic_shape("4*b, 4")
    exported = export(jax.jit(lambda x: x @ x.T, in_shardings=split), platforms=PLATFORMS)(
        jax.ShapeDtypeStruct(b, jnp.float32)
    )
    sharded = jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=split)
    assert jax.jit(deserialize(exported.serialize()).call).lower(sharded).compile().as_text()


def test_a_random_function_compiles_for_each_implementation(devices):
    for implementation in ("threefry2x32", "rbg"):

        def draw(seed, implementation=implementation):
            return jax.random.normal(jax.random.key(seed, impl=implementation), (128,))

        exported = export(draw, platforms=PLATFORMS)(jax.ShapeDtypeStruct((), jnp.uint32))
        compile_for(devices[0], deserialize(exported.serialize()).call, [np.uint32(0)])
