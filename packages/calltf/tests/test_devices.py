"""A call inside of programs for several devices, in a process with two virtual ones."""

import os
import subprocess
import sys

import pytest

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

# Types say over which axes a value varies: what is the same on all devices has one gradient, the sum of theirs.
scaled, sine = call_tf(lambda x, w: tf.sin(x * w)), call_tf(tf.sin)
w = np.array([2.0, 3.0], np.float32)


def mapped(f, in_specs, out_specs):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def programs(scaled, sine):
    spread = lambda w: mapped(scaled, (P("d"), P()), P("d"))(x, w).sum()
    loss = lambda w, x: jax.lax.pmean(jnp.mean(scaled(x, w)), "d")
    inside = lambda x, w: jax.grad(lambda w: scaled(x, w).sum())(w)
    twice = lambda x: jax.lax.scan(lambda state, _: (sine(state), None), x, None, length=2)[0]
    chosen = lambda x: jax.lax.cond(x[0, 0] > 0, sine, lambda x: x * 2, x)
    return {
        "gradient of a loss": jax.jit(jax.grad(mapped(loss, (P(), P("d")), P())))(w, x),
        "gradient, not staged": jax.grad(spread)(w),
        "gradient inside": jax.jit(mapped(inside, (P("d"), P()), P()))(x, w),
        "gradient of what varies": jax.grad(lambda x: mapped(sine, P("d"), P("d"))(x).sum())(x),
        "jvp": jax.jvp(spread, (w,), (w,))[1],
        "hessian": jax.jit(jax.hessian(spread))(w),
        "scan": jax.jit(mapped(twice, P("d"), P("d")))(x),
        "cond": jax.jit(mapped(chosen, P("d"), P("d")))(x),
        "the same everywhere": jax.jit(mapped(scaled, (P(), P()), P()))(x, w),
    }


expected = programs(lambda x, w: jnp.sin(x * w), jnp.sin)
for name, found in programs(scaled, sine).items():
    np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
try:
    jax.jit(mapped(scaled, (P("d"), P()), P()))(x, w)
except ValueError as error:
    assert "can't be statically inferred" in str(error), error
else:
    raise AssertionError("a result that varies was taken for one that is the same everywhere")

sharding = jax.sharding.NamedSharding(mesh, P("d"))
y = jax.jit(call, out_shardings=sharding)(jax.device_put(x, sharding))
np.testing.assert_allclose(y, 2 * np.sin(x), rtol=1e-6)
assert len(y.devices()) == 2

# What is split between them crosses over, and comes back whole.
np.testing.assert_array_equal(call_tf(lambda x: x * 2)(jax.device_put(x, sharding)), 2 * x)

# Eager: results go to the default device of the call, wherever the argument is, and whether it is split.
first, second = jax.devices()
for argument in (x, jnp.asarray(x), jax.device_put(x, second), jax.device_put(x, sharding)):
    np.testing.assert_allclose(call(argument), 2 * np.sin(x), rtol=1e-6)
    assert call(argument).devices() == {first}
    with jax.default_device(second):
        assert call(argument).devices() == {second}
"""


@pytest.mark.slow
def test_a_call_runs_in_shard_map_with_gradients_in_pmap_and_on_sharded_arrays():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, timeout=300, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-2000:]
