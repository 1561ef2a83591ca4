"""Dtypes of less than a byte, and floats of one, are right or refused when converted; TensorFlow raises no error."""

import os

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert

from .graph_mode import MODES, run_module

# Those that TensorFlow casts, and those that it does not; of each kind one, and all where JAXTF_FULL is 1.
CAST, OTHERS = ("int4", "float8_e5m2"), ("int2", "float8_e4m3fnuz")
if os.environ.get("JAXTF_FULL") == "1":
    CAST += ("uint4", "float8_e4m3fn")
    OTHERS += ("uint2", "float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz")

PLACES = np.array([1, 2, 1])


def one_of(x):
    return lax.full((), 1, x.dtype)


def is_positive(x):
    return x.astype(jnp.float32).sum() > 0


MOVED = {
    "reshape": lambda x: x.reshape(2, -1),
    "transpose": lambda x: x.reshape(2, -1).T,
    "slice": lambda x: x[1:3],
    "strided slice": lambda x: x[::2],
    "dynamic slice": lambda x: lax.dynamic_slice(x, (1,), (3,)),
    "dynamic update": lambda x: lax.dynamic_update_slice(x, x[:3], (1,)),
    "gather": lambda x: x[jnp.array(PLACES)],
    "along an axis": lambda x: jnp.take_along_axis(x, jnp.array([1, 0]), 0),
    "scatter": lambda x: x.at[PLACES].set(x[0]),
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 3)),
    "reverse": lambda x: x[::-1],
    "pad": lambda x: lax.pad(x, one_of(x), [(1, 2, 1)]),
    "select": lambda x: jnp.where(jnp.arange(x.shape[0]) % 2 == 0, x, x[::-1]),
    "full": lambda x: lax.full((3,), 1, x.dtype),
    "many": lambda x: lax.full((5000,), 1, x.dtype),
    "equal constants": lambda x: lax.concatenate([x, np.ones(3, x.dtype), np.ones(5000, x.dtype)], 0),
    "equal constants in a branch": lambda x: lax.cond(
        is_positive(x), lambda: x[:2], lambda: jnp.asarray(np.ones(2, x.dtype))
    ),
    "a loop of them": lambda x: lax.fori_loop(0, 3, lambda i, y: y[::-1], x),
    "a loop that takes them": lambda x: lax.fori_loop(0, 3, lambda i, y: y + x.astype(jnp.float32), jnp.zeros(x.shape)),
    "a branch that gives them": lambda x: lax.cond(is_positive(x), lambda: x, lambda: x[::-1]),
    "a branch that takes them": lambda x: lax.cond(
        is_positive(x), lambda: x.astype(jnp.float32), lambda: -x.astype(jnp.float32)
    ),
    "branches": lambda x: lax.switch(is_positive(x).astype(int), [lambda y: y, lambda y: y[::-1], lambda y: y], x),
    "scan": lambda x: lax.scan(lambda carry, y: (y, carry), x[0], x),
}
COMPUTED = {
    "compare": lambda x: x < x[0],
    "equal": lambda x: x == x[0],
    "add": lambda x: x + x[::-1],
    "maximum": lambda x: jnp.maximum(x, x[::-1]),
    "clamp": lambda x: lax.clamp(x[0], x, one_of(x)),
    "sign": jnp.sign,
    "remainder": lambda x: lax.rem(x, one_of(x)),
    "sort": jnp.sort,
    "sort by": lambda x: lax.sort((x, jnp.arange(x.shape[0])), num_keys=1)[1],
    "argmax": jnp.argmax,
    "top k": lambda x: lax.top_k(x, 3),
    "sum": lambda x: lax.reduce(x[:3], one_of(x), lax.add, (0,)),
    "window": lambda x: lax.reduce_window(x, one_of(x), lax.max, (3,), (1,), "SAME"),
    "scatter add": lambda x: x.at[PLACES].add(x[:3]),
    "scatter max": lambda x: x.at[PLACES].max(x[:3]),
    "dot": lambda x: x @ x,
    "outer": lambda x: jnp.outer(x, x),
    "convolution": lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :3], (1,), "SAME"),
    "reduce precision": lambda x: lax.reduce_precision(x, 3, 2),
    "nonzero": lambda x: jnp.nonzero(x, size=3),
    "search": lambda x: jnp.searchsorted(jnp.sort(x), x),
}


def arguments(name):
    dtype = getattr(ml_dtypes, name)
    numbers = [0, 1, 1, 0, 1, 1, 0, 1] if "int" in name else [0, 1, 2, 0.5, -1, 4, -0.5, 3]
    return np.array(numbers).astype(dtype)


def leaves(results):
    return [x.numpy() if isinstance(x, tf.Tensor) else np.asarray(x) for x in tf.nest.flatten(results)]


def check(function, x):
    """Results as JAX has them.

    Raises:
      GraphModeUnsupported: When it is converted.
    """
    try:
        expected = leaves(jax.jit(function)(x))
    except (NotImplementedError, TypeError, ValueError, jax.errors.JaxRuntimeError) as error:
        pytest.skip(f"JAX does not compute it: {error!r:.100}")
    converted = tf.function(convert(function, native_serialization=False), autograph=False)
    concrete = converted.get_concrete_function(tf.TensorSpec(x.shape, tf.as_dtype(x.dtype)))
    for found in (concrete(tf.constant(x)), convert(function, native_serialization=False)(x)):
        for one, other in zip(leaves(found), expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))


@pytest.mark.parametrize("name", CAST)
@pytest.mark.parametrize("program", [*MOVED, *COMPUTED])
def test_what_tensorflow_casts_is_right(name, program):
    check({**MOVED, **COMPUTED}[program], arguments(name))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("program", [*MOVED, *COMPUTED])
def test_what_it_does_not_cast_is_right_or_refused_when_converted(name, program):
    if not hasattr(tf.dtypes.experimental, name):
        pytest.skip(f"this TensorFlow has no {name}")
    try:
        check({**MOVED, **COMPUTED}[program], arguments(name))
    except GraphModeUnsupported as error:
        assert name in str(error)  # noqa: PT017
    else:
        assert program not in COMPUTED


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("program", COMPUTED)
def test_what_it_does_not_cast_is_right_or_refused_when_it_is_compiled(name, program):
    if "float8" not in name or not hasattr(tf.dtypes.experimental, name):
        pytest.skip("arguments of less than a byte are refused")
    function, x = COMPUTED[program], arguments(name)
    converted = tf.function(convert(function, native_serialization=False), autograph=False, jit_compile=True)
    try:
        found = leaves(converted(tf.constant(x)))
    except GraphModeUnsupported as error:
        assert name in str(error)  # noqa: PT017
        return
    for one, other in zip(found, leaves(jax.jit(function)(x)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))


TOTAL_ORDER = """
func.func @main(%x: tensor<SIZExELEMENT>, %y: tensor<SIZExELEMENT>) -> tensor<SIZExi1> {
  %0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<SIZExELEMENT>, tensor<SIZExELEMENT>) -> tensor<SIZExi1>
  return %0 : tensor<SIZExi1>
}
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
def test_the_total_order_is_that_of_bits_but_of_nan_with_nan(name, mode):
    bits = np.arange(256, dtype=np.uint8)
    left, right = (x.reshape(-1) for x in np.meshgrid(bits, bits))
    places = [np.where(x < 0, x ^ 127, x) for x in (left.view(np.int8), right.view(np.int8))]
    x, y = (each.view(getattr(ml_dtypes, name)) for each in (left, right))
    text = TOTAL_ORDER.replace("SIZE", str(x.size)).replace("ELEMENT", f"f8{name[7:].upper()}")
    are_nan = np.isnan(x.astype(np.float32)) & np.isnan(y.astype(np.float32)) & (left // 128 == right // 128)
    found = run_module(text, x, y, mode=mode)[0]
    np.testing.assert_array_equal(found & ~are_nan, (places[0] < places[1]) & ~are_nan)
    assert not found[are_nan].any()
