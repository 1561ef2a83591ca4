"""Values on their way between JAX and TensorFlow, and the dtypes both have.

`as_array` makes of what the user passed an array as JAX would take it, `as_tensor` of what
a TensorFlow function returned a tensor as JAX can take it; `to_tensor` and `to_array` carry
one concrete array across. Dtypes are canonicalized as JAX does: with 64-bit types
off, float64 becomes float32.

On a CPU nothing is copied in either direction: tensors and arrays are immutable, and each
keeps the memory alive. From TensorFlow to JAX they cross by NumPy's view of the memory, from JAX
to TensorFlow by DLPack. On a GPU that JAX and TensorFlow share, both directions use DLPack. Copied are dtypes
without a DLPack code in TensorFlow (float8, int4), NumPy arrays, which their owner may change,
memory that is not aligned for XLA or whose elements are not in row-major order, what is on a device
that only one of them has, and results on a GPU with TensorFlow 2.19, whose tensors have no `__dlpack__`.
Neither side writes to shared memory: TensorFlow does not own it, so that a variable assigned
from it copies before its first update; JAX donates no buffer that others refer to.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.calltf._errors import ArgumentTypeError, ResultError
from jaxtf.calltf._gpus import is_on_gpu_of_both, is_one_gpu_of_both
from jaxtf.calltf._jax import array_over, dlpack_capsule, is_one_cpu
from jaxtf.calltf._tf import context_handle, eager_elements, from_dlpack

_PYTHON_SCALARS = (bool, int, float, complex)
_TENSORS = (tf.Tensor, tf.Variable)
_NUMPY = (np.ndarray, np.generic)
ALIGNMENT = 64  # of every buffer of XLA and of TensorFlow's allocator, in bytes
_WITHOUT_ELEMENTS = (tf.string, tf.resource, tf.variant)


def canonical_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype JAX uses for this one, with 64-bit types on or off as they are now."""
    return canonical_dtype_for(dtype, bool(jax.config.jax_enable_x64))


@functools.cache
def canonical_dtype_for(dtype: Any, x64: bool) -> np.dtype[Any]:
    """The same with 64-bit types on or off; `x64` must be as they are now."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


@functools.cache
def tensorflow_dtype(dtype: Any) -> Any:
    """TensorFlow's dtype for JAX's.

    Raises:
      TypeError: TensorFlow has none, or JAX has none (strings).
    """
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        raise TypeError(f"TensorFlow has no dtype {dtype}")
    found = tf.as_dtype(np.dtype(dtype))
    if found in _WITHOUT_ELEMENTS:
        raise TypeError(f"JAX has no dtype {dtype}")
    return found


@functools.cache
def jax_dtype(dtype: Any) -> np.dtype[Any]:
    """JAX's dtype for TensorFlow's, 64-bit types included.

    Raises:
      TypeError: Not a number: string, resource, variant, quantized.
    """
    if _is_not_of_numbers(dtype):
        raise TypeError(f"JAX has no dtype {dtype.name}")
    found: np.dtype[Any] = np.dtype(dtype.as_numpy_dtype)
    return found


def _is_not_of_numbers(dtype: Any) -> bool:
    """Whether its elements are not numbers; NumPy's dtype of quantized numbers is one of plain integers."""
    found = tf.as_dtype(dtype)  # that of a variable of Keras is a name
    return found in _WITHOUT_ELEMENTS or bool(found.is_quantized)


def as_array(value: Any, where: str) -> Any:
    """An argument as a JAX or NumPy array of canonical dtype; tracers stay tracers.

    Args:
      value: A `jax.Array`, NumPy array or scalar, Python number, `tf.Tensor`, `tf.Variable` or a variable of Keras.
      where: The address of the argument, as the user would write it.

    Raises:
      ArgumentTypeError: Anything else, a masked array, an integer that does not fit, a dtype TensorFlow does not have.
    """
    if isinstance(value, jax.Array):
        if _is_taken_as_it_is(value.dtype, bool(jax.config.jax_enable_x64)):
            return value
    elif _is_tensor(value) and not _is_not_of_numbers(value.dtype):
        value = numpy_view(tf.convert_to_tensor(value))
    elif isinstance(value, _PYTHON_SCALARS) and not isinstance(value, np.generic):
        try:
            value = jnp.asarray(value)
        except OverflowError as error:
            raise ArgumentTypeError(
                f"call_tf: {where} is {value}, too large for {canonical_dtype(int)}, the dtype that JAX gives a Python"
                " integer\n  remedy: turn on jax_enable_x64, pass a float, or an array of the dtype that you want"
            ) from error
    elif isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"call_tf: {where} is a masked array, and neither JAX nor TensorFlow has masks\n"
            "  remedy: pass array.filled(value), and array.mask as another argument"
        )
    elif not isinstance(value, _NUMPY):
        raise ArgumentTypeError(
            f"call_tf: {where} is not an array: found {value!r} of type {type(value).__name__}\n"
            "  remedy: pass numbers, NumPy arrays, JAX arrays or tensors of numbers (or pytrees of them);"
            " close over anything else in the TensorFlow function"
        )
    try:
        tensorflow_dtype(value.dtype)
    except TypeError as error:
        raise ArgumentTypeError(
            f"call_tf: {where} has dtype {value.dtype}, which JAX and TensorFlow do not share\n"
            "  remedy: convert it first; for a JAX random key, pass jax.random.key_data(key)"
        ) from error
    dtype = canonical_dtype(value.dtype)
    return value if value.dtype == dtype else value.astype(dtype)


def _is_tensor(value: Any) -> bool:
    """Whether it is a dense tensor or a variable, also one of Keras."""
    return isinstance(value, _TENSORS) or (tf.is_tensor(value) and hasattr(value, "__tf_tensor__"))


@functools.cache
def _is_taken_as_it_is(dtype: Any, x64: bool) -> bool:
    """Whether TensorFlow has this dtype, and JAX too; `x64` as for `canonical_dtype_for`."""
    try:
        return bool(tensorflow_dtype(dtype)) and canonical_dtype_for(dtype, x64) == dtype
    except TypeError:
        return False


def as_tensor(value: Any, where: str, function: str) -> Any:
    """A result of a TensorFlow function as a `tf.Tensor` of canonical dtype.

    Raises:
      ResultError: Not convertible to a tensor, or to an array of JAX (strings; ragged, sparse, masked).
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ResultError(
            f"call_tf: {where} of {function} is a masked array, and neither JAX nor TensorFlow has masks\n"
            "  remedy: return array.filled(value), and array.mask as another result"
        )
    try:
        tensor = value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
        wanted = _tensor_dtype(tensor.dtype, bool(jax.config.jax_enable_x64))
    except (TypeError, ValueError) as error:
        raise ResultError(
            "The called TF function returns a result that is not convertible to JAX: "
            f"{where} of {function} is {value!r}\n"
            "  remedy: return dense tensors of numbers, for instance ragged.to_tensor() or tf.sparse.to_dense(sparse)"
        ) from error
    return tensor if tensor.dtype is wanted else tf.cast(tensor, wanted)


@functools.cache
def _tensor_dtype(dtype: Any, x64: bool) -> Any:
    """TensorFlow's type of the elements that JAX has for it."""
    return tensorflow_dtype(canonical_dtype_for(jax_dtype(dtype), x64))


@functools.cache
def has_elements_of_jax(dtype: Any, x64: bool) -> bool:
    """Whether a tensor of this type can be an array without a cast; `x64` as for `canonical_dtype_for`."""
    try:
        return _tensor_dtype(dtype, x64) is dtype
    except TypeError:
        return False


def to_tensor(array: Any) -> Any:
    """The `tf.Tensor` with the elements of a concrete array, or of a Python number as JAX takes it."""
    tensor = share(array) if isinstance(array, jax.Array) else None
    if tensor is not None:
        return tensor
    if not hasattr(array, "dtype"):
        array = jnp.asarray(array)
    return tf.constant(np.asarray(array, dtype=array.dtype))


def lasting(value: Any) -> Any:
    """What is kept of an array for a derivative or a program: a copy of a NumPy array that may change, itself else."""
    if not isinstance(value, np.ndarray) or _is_over_bytes(value):
        return value
    return np.ndarray(value.shape, value.dtype, value.tobytes())


def is_same(array: Any, other: Any) -> bool:
    """Whether these are one array; JAX makes NumPy arrays others over the same memory."""
    if array is other:
        return True
    if not (isinstance(array, np.ndarray) and isinstance(other, np.ndarray) and _is_over_bytes(array)):
        return False
    return array.dtype == other.dtype and array.__array_interface__ == other.__array_interface__


def _is_over_bytes(array: np.ndarray[Any, Any]) -> bool:
    """Whether its memory is that of `bytes`, which nobody can write to; as `lasting` makes it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, bytes)


def share(array: jax.Array) -> Any:
    """The tensor over the memory of an array: of all of it on one device; None if TensorFlow cannot have that."""
    if not has_dlpack_code(array.dtype):
        return None
    if not (is_one_cpu(array.sharding) or is_one_gpu_of_both(array.sharding)):
        return None
    return over_memory(array)


def over_memory(array: jax.Array) -> Any:
    """The tensor over the memory of an array on one device; None where TensorFlow takes only a copy.

    That is memory not aligned for XLA, and the elements in another order than row-major (`jax.experimental.layout`),
    which TensorFlow refuses: to ask for the layout first would cost a microsecond. The capsule is of a second array
    over the same memory: with one of the array itself, `array.delete()` ends the process as long as TensorFlow has it.
    """
    if array.unsafe_buffer_pointer() % ALIGNMENT:
        return None
    try:
        return from_dlpack(dlpack_capsule(array.addressable_data(0)), context_handle())
    except tf.errors.InvalidArgumentError:
        return None


@functools.cache
def has_dlpack_code(dtype: np.dtype[Any]) -> bool:
    """Whether TensorFlow 2.21 takes this dtype by DLPack: all but float8, int4 and their kin."""
    return bool(dtype.isbuiltin == 1 or dtype == jnp.bfloat16)


def to_array(tensor: Any) -> jax.Array:
    """The JAX array with the elements of an eager `tf.Tensor`."""
    if is_on_gpu_of_both(tensor) and has_dlpack_code(jax_dtype(tensor.dtype)) and hasattr(tensor, "__dlpack__"):
        shared: jax.Array = jax.dlpack.from_dlpack(tensor)
        if shared.unsafe_buffer_pointer() % ALIGNMENT == 0:
            return shared
    return array_over(numpy_view(tensor))


def numpy_view(tensor: Any) -> np.ndarray[Any, Any]:
    """A NumPy array over the memory of an eager tensor."""
    view = eager_elements(tensor)
    return view if type(view) is np.ndarray else np.asarray(tensor if view is None else view)
