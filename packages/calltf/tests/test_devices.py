"""A call inside of programs for several devices, in a process with two virtual ones."""

import os
import subprocess
import sys

PROGRAM = """
import warnings
import jax, jax.numpy as jnp, numpy as np, tensorflow as tf
from jaxtf.calltf import call_tf
P = jax.P
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
x = np.arange(8, dtype=np.float32).reshape(4, 2)
call = call_tf(lambda x: tf.sin(x) * 2)
total = call_tf(lambda x: tf.reduce_sum(x * x))

f = jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
np.testing.assert_allclose(f(x), 2 * np.sin(x), rtol=1e-6)


@jax.jit
@jax.grad
def of_a_collective(x):
    f = jax.shard_map(lambda x: jax.lax.psum(total(x), "d"), mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)
    return f(x)


np.testing.assert_allclose(of_a_collective(x), 2 * x, rtol=1e-6)

with warnings.catch_warnings(action="ignore"):
    mapped = jax.pmap(call)(x.reshape(2, 2, 2))
np.testing.assert_allclose(mapped, 2 * np.sin(x.reshape(2, 2, 2)), rtol=1e-6)

sharding = jax.sharding.NamedSharding(mesh, P("d"))
y = jax.jit(call, out_shardings=sharding)(jax.device_put(x, sharding))
np.testing.assert_allclose(y, 2 * np.sin(x), rtol=1e-6)
assert len(y.devices()) == 2

# Eager: results go to the default device of the call, wherever the argument is, and whether it is split.
first, second = jax.devices()
for argument in (x, jnp.asarray(x), jax.device_put(x, second), jax.device_put(x, sharding)):
    np.testing.assert_allclose(call(argument), 2 * np.sin(x), rtol=1e-6)
    assert call(argument).devices() == {first}
    with jax.default_device(second):
        assert call(argument).devices() == {second}
"""


def test_a_call_runs_in_shard_map_with_gradients_in_pmap_and_on_sharded_arrays():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, timeout=300, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-2000:]
