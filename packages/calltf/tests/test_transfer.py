"""Every dtype that JAX and TensorFlow share crosses between them bit by bit."""

import gc

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax.experimental.layout import Format, Layout

from jaxtf.calltf import ArgumentTypeError, ResultError, _transfer, call_tf
from jaxtf.calltf._gpus import is_on_gpu_of_both, is_one_gpu_of_both, numbers_of_both
from jaxtf.calltf._transfer import canonical_dtype, jax_dtype, tensorflow_dtype, to_array, to_tensor

NUMPY = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]


@pytest.mark.parametrize("name", NUMPY + ML_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_an_element_type_crosses_and_comes_back(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    with jax.enable_x64(True):
        array = np.random.default_rng(0).integers(0, 7, size=shape).astype(dtype)
        tensor = to_tensor(jnp.asarray(array))
        assert (tensor.dtype.name, tuple(tensor.shape)) == (name, shape)
        back = to_array(tensor)
    assert back.dtype == dtype
    assert np.asarray(back).tobytes() == array.tobytes()


@pytest.mark.parametrize("name", NUMPY + ML_DTYPES)
def test_the_two_tables_of_element_types_are_inverse(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert jax_dtype(tensorflow_dtype(dtype)) == dtype


@pytest.mark.parametrize("name", NUMPY)
def test_canonical_element_types_are_those_of_jax(name, x64):
    assert canonical_dtype(name) == jnp.asarray(np.zeros(1, name)).dtype


@pytest.mark.parametrize("dtype", [tf.string, tf.resource, tf.variant, tf.qint8])
def test_element_types_that_are_no_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match=f"JAX has no dtype {dtype.name}"):
        jax_dtype(dtype)


def test_an_array_made_of_a_tensor_does_not_change_with_the_variable():
    variable = tf.Variable(np.zeros(100, np.float32))
    array = to_array(variable.read_value())
    variable.assign_add(np.ones(100, np.float32))
    np.testing.assert_array_equal(array, np.zeros(100))


SHARED = [*NUMPY, "bfloat16"]


def address(tensor):
    return np.asarray(tensor).__array_interface__["data"][0]


@pytest.mark.parametrize("name", SHARED)
def test_a_tensor_has_the_memory_of_the_array(name):
    with jax.enable_x64(True):
        array = jnp.ones((4, 5), getattr(ml_dtypes, name, name))
        assert address(to_tensor(array)) == array.unsafe_buffer_pointer()


LAYOUTS = [((16, 3), (1, 0)), ((1, 5), (1, 0)), ((0, 4), (1, 0)), ((2, 3, 4), (0, 2, 1)), ((2, 3, 4), (2, 0, 1))]


@pytest.mark.parametrize(("shape", "major_to_minor"), LAYOUTS)
@pytest.mark.parametrize("name", NUMPY + ML_DTYPES)
def test_an_array_of_another_layout_crosses(name, shape, major_to_minor):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
    placement = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with jax.enable_x64(True):
        array = jax.device_put(values, Format(Layout(major_to_minor), placement))
        assert array.format.layout.major_to_minor == major_to_minor
        in_dict = call_tf(lambda d: tf.identity(d["x"]))({"x": array})
        for found in (to_tensor(array), call_tf(tf.identity)(array), in_dict):
            assert (np.asarray(found).dtype, np.asarray(found).tobytes()) == (dtype, values.tobytes())


def test_a_gradient_by_an_array_of_another_layout_is_that_of_its_elements():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    placement = Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    array, cotangent = jax.device_put(values, placement), jax.device_put(values[::-1], placement)
    result, pull = jax.vjp(call_tf(tf.square), array)
    np.testing.assert_array_equal(result, values**2)
    np.testing.assert_array_equal(pull(cotangent)[0], 2 * values * values[::-1])


@pytest.mark.parametrize("name", SHARED)
def test_an_array_has_the_memory_of_the_tensor(name):
    tensor = tf.cast(tf.ones((4, 5)), tensorflow_dtype(np.dtype(getattr(ml_dtypes, name, name))))
    with jax.enable_x64(True):
        assert to_array(tensor).unsafe_buffer_pointer() == address(tensor)


def test_a_call_copies_neither_argument_nor_result():
    x = jnp.arange(1 << 10, dtype=jnp.float32)
    seen = []
    result = call_tf(lambda x: (seen.append(address(x)), tf.identity(x))[1])(x)
    assert seen == [x.unsafe_buffer_pointer()]
    assert result.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_a_numpy_array_is_copied_because_its_owner_may_change_it():
    mutable = np.zeros(64, np.float32)
    tensor = to_tensor(mutable)
    mutable[:] = 1
    np.testing.assert_array_equal(tensor, np.zeros(64))


@pytest.mark.parametrize("make", [tf.Variable, lambda x: assigned(tf.Variable(tf.zeros_like(x)), x)])
def test_a_variable_that_took_an_array_does_not_change_it(make):
    array = jnp.zeros(100)
    variable = make(to_tensor(array))
    variable.assign_add(tf.ones(100))
    np.testing.assert_array_equal(array, np.zeros(100))
    np.testing.assert_array_equal(variable, np.ones(100))


def assigned(variable, value):
    variable.assign(value)
    return variable


def test_a_tensor_does_not_change_when_jax_is_given_the_array_to_write_to():
    array = jnp.zeros(1000) + 1
    tensor = to_tensor(array)
    jax.jit(lambda x: x + 1, donate_argnums=0)(array).block_until_ready()
    np.testing.assert_array_equal(tensor, np.ones(1000))
    jax.jit(lambda x: x + 1, donate_argnums=0)(to_array(tensor)).block_until_ready()
    np.testing.assert_array_equal(tensor, np.ones(1000))


def test_memory_lives_as_long_as_either_side():
    tensors = [to_tensor(jnp.full(1000, i, jnp.float32)) for i in range(50)]
    arrays = [to_array(tf.fill([1000], float(i))) for i in range(50)]
    gc.collect()
    assert [float(t[999]) for t in tensors] == [float(a[999]) for a in arrays] == list(range(50))


def test_arrays_of_tensors_are_not_committed_to_a_device():
    assert not to_array(tf.ones(3)).committed


def test_results_of_every_kind_become_arrays():
    variable = tf.Variable([1.0, 2.0])
    results = call_tf(
        lambda x: {"v": variable, "none": None, "n": 3, "b": tf.cast(x, tf.bfloat16), "deep": [(x, []), x[:0]]}
    )(jnp.ones(2))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(results))
    assert results["none"] is None
    assert (results["n"], results["b"].dtype, results["deep"][1].shape) == (3, jnp.bfloat16, (0,))
    variable.assign_add([5.0, 5.0])
    np.testing.assert_array_equal(results["v"], [1.0, 2.0])


@pytest.mark.skipif(not hasattr(tf.constant(0), "__dlpack__"), reason="TensorFlow 2.19 has no Tensor.__dlpack__")
def test_arrays_cross_by_dlpack_where_a_gpu_is_shared(monkeypatch):
    """The route of a GPU, on memory of the CPU: DLPack takes both. On a GPU itself: `tests/test_calltf_gpu.py`."""
    tensor = tf.range(64, dtype=tf.float32)
    monkeypatch.setattr(_transfer, "is_on_gpu_of_both", lambda _: True)
    monkeypatch.setattr(_transfer, "array_over", None)
    array = to_array(tensor)
    assert array.unsafe_buffer_pointer() == address(tensor)
    monkeypatch.setattr(_transfer, "is_one_cpu", lambda _: False)
    monkeypatch.setattr(_transfer, "is_one_gpu_of_both", lambda _: True)
    assert address(to_tensor(array)) == address(tensor)
    monkeypatch.setattr(_transfer, "is_one_gpu_of_both", lambda _: False)
    assert address(to_tensor(array)) != address(tensor)


@pytest.mark.parametrize(
    ("of_jax", "visible", "logical", "expected"),
    [
        ([0, 1], [0, 1], 2, {0, 1}),
        ([0], [0, 1], 2, {0}),
        ([0, 1], [1], 1, set()),  # TensorFlow's first is JAX's second
        ([0, 1], [0, 1], 3, set()),  # one of them is split
        ([], [0], 1, set()),
        ([None], [], 0, set()),
    ],
)
def test_gpus_are_shared_that_have_one_number(of_jax, visible, logical, expected):
    names = [f"/physical_device:GPU:{number}" for number in visible]
    assert numbers_of_both(of_jax, names, logical) == expected


def test_there_is_no_shared_gpu_here():
    if jax.default_backend() != "cpu":
        pytest.skip("for a machine without a GPU")
    assert not is_on_gpu_of_both(tf.ones(3))
    assert not is_one_gpu_of_both(jnp.ones(3).sharding)


MASKED = np.ma.masked_array(np.float32([1, 2]), [False, True])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("value", [MASKED, np.ma.masked], ids=["array", "constant"])
def test_the_mask_of_an_array_is_not_lost(wrap, value):
    call = call_tf(lambda d: tf.reduce_sum(d["x"]))
    with pytest.raises(ArgumentTypeError) as refused:
        wrap(lambda: call({"x": value}))()
    assert str(refused.value) == (
        "call_tf: args[0]['x'] is a masked array, and neither JAX nor TensorFlow has masks\n"
        "  remedy: pass array.filled(value), and array.mask as another argument"
    )
    with pytest.raises(ResultError, match=r"^call_tf: result\[1\] of <lambda> is a masked array"):
        wrap(call_tf(lambda x: (x, value)))(np.float32(1))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_quantized_tensors_are_not_integers(wrap):
    quantized = tf.quantization.quantize([0.0, 1.0], 0.0, 3.0, tf.quint8)[0]
    with pytest.raises(ArgumentTypeError, match=r"^call_tf: args\[0\] is not an array: found .*quint8"):
        wrap(lambda: call_tf(lambda x: x)(quantized))()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_python_integer_that_does_not_fit_is_refused(wrap):
    bits = 64 if jax.config.jax_enable_x64 else 32
    with pytest.raises(ArgumentTypeError) as refused:
        wrap(lambda: call_tf(lambda x: x)(2**bits))()
    assert str(refused.value) == (
        f"call_tf: args[0] is {2**bits}, too large for int{bits}, the dtype that JAX gives a Python integer\n"
        "  remedy: turn on jax_enable_x64, pass a float, or an array of the dtype that you want"
    )


@pytest.mark.parametrize("kept", ["a tensor", "a variable", "residuals"])
def test_an_array_can_be_deleted_while_tensorflow_refers_to_its_memory(kept):
    """With a DLPack capsule of the array itself the process ends here."""
    x, held = jnp.arange(1000.0), []
    expected = np.arange(1000.0, dtype=np.float32)
    if kept == "a tensor":
        call_tf(lambda x: held.append(x) or x + 1)(x)
        x.delete()
        np.testing.assert_array_equal(held[0], expected)
    elif kept == "a variable":
        variable = tf.Variable(tf.zeros(1000))
        call_tf(variable.assign)(x)
        x.delete()
        np.testing.assert_array_equal(variable, expected)
    else:
        _, vjp = jax.vjp(call_tf(tf.sin), x)
        x.delete()
        np.testing.assert_allclose(vjp(jnp.ones(1000))[0], np.cos(expected), rtol=1e-5, atol=1e-6)


CALLS = {
    "eager": lambda f: f,
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](x),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "vjp of vjp": lambda f: lambda x: jax.vjp(lambda x: jax.vjp(f, x)[1](x)[0], x)[1](x),
    "vmap": jax.vmap,
    "jit": jax.jit,
}


@pytest.mark.parametrize("guard", ["disallow", "disallow_explicit"])
@pytest.mark.parametrize("name", CALLS)
def test_what_transfers_nothing_is_no_matter_of_a_guard(name, guard):
    x = jnp.arange(1.0, 17.0)
    call = CALLS[name](call_tf(lambda x: x**3))
    expected = call(x)
    with jax.transfer_guard(guard):
        found = call(x)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
