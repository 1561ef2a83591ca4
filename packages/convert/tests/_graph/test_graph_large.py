"""Arrays with more elements than int32 counts, in graph mode.

Beside an int32 tensor TensorFlow takes a Python integer modulo 2**32 without a word: a size, a limit, an index.
The memory of the array here is asked for and never written, so that it takes none.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert, convert_stablehlo

MORE = 2**31 + 10
MOST = 2**32 + 16  # 16, modulo 2**32
MARKS = {3: 1, 2**31 - 2: 7, 2**31 + 5: 8, MOST - 2: 9}


@pytest.fixture(scope="module")
def bytes_():
    """So many bytes, zeros but for the marks."""
    memory = np.zeros(MOST + 64, np.uint8)
    array = memory[-memory.ctypes.data % 64 :][:MOST]
    for place, mark in MARKS.items():
        array[place] = mark
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())  # it shares the memory


CASES = {
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i,), (3,)), np.int32(2**31 - 3)),
    "dynamic_slice, far": (lambda x, i: lax.dynamic_slice(x, (i,), (3,)), np.int64(2**31 + 4)),
    "dynamic_slice, outside": (lambda x, i: lax.dynamic_slice(x, (i,), (3,)), np.int64(2**40)),
    "slice": (lambda x, i: x[2**31 + 4 :][:3] + i, np.uint8(0)),
    "last of a reshape": (lambda x, i: x.reshape(2, -1)[1, -4:] + i, np.uint8(0)),
    "gather": (lambda x, i: x[i], np.array([2**31 + 5, MOST - 2, 3, -2, 2**31 - 2])),
    "gather of two indices": (
        lambda x, i: x.reshape(16, -1)[i, np.array([2, 3, 268435447], np.int32)],
        np.array([15, 0, -9], np.int32),
    ),
    "gather of slices": (
        lambda x, i: jax.vmap(lambda j: lax.dynamic_slice(x, (j,), (2,)))(i),
        np.array([2**31 + 4, MOST - 3]),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_it_is_read_at_the_right_place(bytes_, name, enable_xla):
    function, index = CASES[name]
    with jax.enable_x64(True):
        converted = convert(function, native_serialization=False, enable_xla=enable_xla, with_gradient=False)
        found = tf.function(converted, autograph=False)(bytes_, tf.constant(index))
    expected = {
        "dynamic_slice": [0, 7, 0],
        "dynamic_slice, far": [0, 8, 0],
        "dynamic_slice, outside": [0, 9, 0],
        "slice": [0, 8, 0],
        "last of a reshape": [0, 0, 9, 0],
        "gather": [8, 9, 1, 9, 7],
        "gather of two indices": [0, 1, 7],
        "gather of slices": [[0, 8], [0, 9]],
    }[name]
    np.testing.assert_array_equal(found, expected)


SHAPES = {
    "reshape": lambda x: x.reshape(2, -1).reshape(-1),
    "broadcast": lambda x: jnp.broadcast_to(x[:1], x.shape),
    "slice of all but a few": lambda x: lax.dynamic_slice(x, (x[0].astype(int),), (MORE - 9,)),
    "update of all but a few": lambda x: lax.dynamic_update_slice(x, x[:-5], (x[0].astype(int),)),
    "update of a few": lambda x: lax.dynamic_update_slice(x, x[:5], (x[0].astype(int),)),
    "cut": lambda x: lax.pad(x, np.uint8(1), [(-1, -2, 0)]),
    "spread": lambda x: lax.pad(x, np.uint8(1), [(1, 1, 1)]),
    "argmax": lambda x: lax.argmax(x, 0, np.int64),
    "scatter": lambda x: x.at[x[:4].astype(int)].add(x[:4]),
}


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_its_sizes_are_right(name, enable_xla):
    with jax.enable_x64(True):
        expected = jax.eval_shape(SHAPES[name], jax.ShapeDtypeStruct((MORE,), jnp.uint8))
        converted = convert(SHAPES[name], native_serialization=False, enable_xla=enable_xla, with_gradient=False)
        traced = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec((MORE,), tf.uint8))
    assert traced.structured_outputs.shape == expected.shape


def test_its_size_is_not_an_int32():
    text = f"""
      func.func public @main(%x: tensor<{MORE}xui8>) -> tensor<i32> {{
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<{MORE}xui8>) -> tensor<i32>
        return %n : tensor<i32>
      }}
    """
    with pytest.raises(GraphModeUnsupported, match=f"{MORE} elements are more than int32 counts"):
        tf.function(convert_stablehlo(text)).get_concrete_function(tf.TensorSpec((MORE,), tf.uint8))
