"""Values and dtypes between TensorFlow and JAX.

JAX computes in 32 bits unless x64 is on, whatever the dtype of the argument; TensorFlow keeps
64 bits. A converted function behaves as JAX does: its arguments are cast. JAX's `float0`, the
dtype of the gradient of an integer, has no counterpart: in modules it is lowered as bool, and
so it is in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError
from jaxtf.convert._values.arguments import WeakVariable, read, refuse_masked
from jaxtf.serialization.interop import require_jax

__all__ = [
    "as_tensor",
    "check_range",
    "dtype_matches",
    "dtype_of_val",
    "has_tf_dtype",
    "is_float0",
    "numpy_dtype",
    "tf_dtype",
]


def is_float0(dtype: Any) -> bool:
    """Whether it is JAX's dtype of no gradient: the one structured dtype, [('float0', 'V')]."""
    return isinstance(dtype, np.dtype) and dtype.names is not None


def tf_dtype(dtype: Any) -> tf.DType:
    """The TensorFlow dtype of values that JAX holds in `dtype`."""
    return tf.bool if is_float0(dtype) else tf.as_dtype(np.dtype(dtype))


def has_tf_dtype(dtype: Any) -> bool:
    """Whether TensorFlow has a dtype for values that JAX holds in `dtype`."""
    try:
        tf_dtype(dtype)
    except TypeError:
        return False
    return True


_NUMERIC = (
    "pass a dense tf.Tensor, tf.Variable, NumPy array or Python scalar, or nested tuples, lists and dicts of those"
)

_ARRAYS_ALONE = (
    "pass arrays alone and let the function close over the rest; of a module of Equinox: arrays, rest = "
    "eqx.partition(module, eqx.is_array), and eqx.combine(arrays, rest) in the function"
)


def numpy_dtype(value: Any, path: Callable[[], str]) -> np.dtype[Any]:
    """The NumPy dtype of a tensor, variable, array or NumPy scalar.

    Args:
      value: What the caller passed.
      path: Says where, for the message of an error; not called otherwise.

    Raises:
      ArgumentTypeError: JAX has no arrays of its dtype (strings, resources, objects), or it is
        no array; the message names the argument.
    """
    refuse_masked(value, path)
    dtype = getattr(value, "dtype", None)
    is_composite = tf.is_tensor(value) and not isinstance(value, tf.Tensor | tf.Variable)
    if dtype is None or is_composite:
        raise ArgumentTypeError(
            f"{path()} is not a numeric value: found {type(value).__name__} ({value!r:.60})\n"
            f"  remedy: {_ARRAYS_ALONE if callable(value) and dtype is None else _NUMERIC}"
        )
    found = _numeric_dtype(dtype)
    if found is None:
        raise ArgumentTypeError(
            f"{path()} has dtype {_name_of(dtype)}, which is not a valid JAX array type. Only arrays of "
            "numeric types are supported by JAX.\n"
            "  remedy: convert it to numbers before the call of the converted function (a JAX random key with "
            "jax.random.key_data, and back inside)"
        )
    return found


def _name_of(dtype: Any) -> Any:
    is_turned = isinstance(dtype, np.dtype) and not dtype.isnative
    return dtype.str if is_turned else getattr(dtype, "name", dtype)


def _numeric_dtype(dtype: Any) -> np.dtype[Any] | None:
    """The NumPy dtype of numbers; None for strings, resources, objects, dates, quantized and JAX's extended dtypes.

    None also for what TensorFlow does not have: more than 64 bits, bytes in another order, some floats of 8 bits.
    """
    if isinstance(dtype, tf.DType):
        dtype = np.dtype(dtype.as_numpy_dtype) if dtype.is_numpy_compatible else None
    # The kind of bfloat16 and its like is V, as is that of bytes and of structured dtypes.
    is_numeric = isinstance(dtype, np.dtype) and dtype.kind in "biufcV" and dtype.type is not np.void
    return dtype if is_numeric and dtype.isnative and _is_of_tensorflow(dtype) else None


def _is_of_tensorflow(dtype: np.dtype[Any]) -> bool:
    try:
        tf.as_dtype(dtype)
    except TypeError:
        return False
    return True


_PYTHON_SCALARS = {bool: "b", int: "iuf", float: "f", complex: "c"}


def dtype_matches(value: Any, dtype: tf.DType) -> bool:
    """Whether a value can be passed as an argument of a dtype without losing more than JAX would.

    Tensors and variables must have the dtype. A Python scalar is what it is called, an integer also a
    float; a NumPy array of 64 bits may be given for 32.
    """
    if type(value) in _PYTHON_SCALARS:
        # NumPy's kind of bfloat16 and its like is V, and so is that of int4 and its like.
        kind = np.dtype(dtype.as_numpy_dtype).kind.replace("V", "i" if dtype.is_integer else "f")
        return kind in _PYTHON_SCALARS[type(value)] or (kind == "c" and type(value) in (int, float))
    found = getattr(value, "dtype", None)
    if isinstance(found, np.dtype) and not isinstance(value, tf.Tensor | tf.Variable):
        narrowed = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
        return found.name in (dtype.name, *(wide for wide, narrow in narrowed.items() if narrow == dtype.name))
    return bool(found == dtype)


def _range_of(dtype: tf.DType) -> tuple[int, int]:
    """The least and the greatest Python integer that can be passed for a dtype: those of 64 bits where it rounds."""
    return (int(dtype.min), int(dtype.max)) if dtype.is_integer else (-(2**63), 2**64 - 1)


def check_range(value: int, dtype: tf.DType, what: str) -> None:
    """Refuses an integer that the dtype does not have; NumPy and TensorFlow would take it modulo a power of 2.

    Args:
      value: A Python integer.
      dtype: What the function takes for it.
      what: What it is, for the message.

    Raises:
      ArgumentTypeError: The dtype does not have it.
    """
    least, greatest = _range_of(dtype)
    if not least <= value <= greatest:
        raise ArgumentTypeError(
            f"{what} is {value}, and {dtype.name}, the dtype that it was exported with, has integers from {least} to "
            f"{greatest}\n  remedy: pass a number in that range, or export the function with a wider dtype"
        )


def dtype_of_val(val: Any) -> tf.DType:
    """The dtype in which a converted function computes with a value, by JAX's rules and configuration.

    Args:
      val: A tensor, a variable, a NumPy array or scalar, or a Python scalar.

    Raises:
      ArgumentTypeError: JAX has no arrays of its dtype.
      JaxRequiredError: JAX is not installed.

    >>> dtype_of_val(3.14)
    tf.float32
    """
    require_jax("dtype_of_val", "jaxtf-convert")
    from jaxtf.convert import _jax

    if type(val) in _PYTHON_SCALARS:
        return tf_dtype(_jax.python_scalar_dtype(val))
    return tf_dtype(_jax.canonical_dtype(numpy_dtype(read(val, lambda: "the value"), lambda: "the value")))


def as_tensor(value: Any, dtype: tf.DType, name: str | None = None) -> tf.Tensor:
    """`value` as a tensor of `dtype`: a variable is read, a wider dtype is cast as JAX does."""
    if isinstance(value, WeakVariable):
        value = value.variable
    if isinstance(value, tf.Tensor | tf.Variable):
        tensor = tf.convert_to_tensor(value, name=name)
        return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
    refuse_masked(value, lambda: name or "an argument")
    return tf.convert_to_tensor(np.asarray(value).astype(dtype.as_numpy_dtype, copy=False), name=name)
