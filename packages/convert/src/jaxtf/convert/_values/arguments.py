"""What callers pass, as JAX can take it: values that make tensors of themselves, variables of weak type.

Variables of Keras make tensors of themselves by TensorFlow's protocol, the method `__tf_tensor__` (`read`).
`tf.convert_to_tensor` asks values for it, and `tf.types.experimental.TensorLike` lists it. The tensor decides, not what
the value says of itself: in an autocast scope of Keras a float32 variable makes a float16 tensor. Tapes see it made.
Imports no Keras; of Keras it knows the name of the class of symbolic inputs, to refuse them with what to do.

JAX lets a Python number take the dtype of the other operand: it is of weak type. What `save_model` makes of one is a
variable like any other, in the dtype that JAX gives the number by itself; the function is traced as with the number
(`WeakVariable`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError

__all__ = ["WeakVariable", "read", "refuse_masked", "refuse_specification"]


def read(value: Any, path: Callable[[], str]) -> Any:
    """The tensor that a value makes of itself; tensors, variables of TensorFlow and all other values as they are.

    Args:
      value: What the caller passed.
      path: Says where, for the message of an error; not called otherwise.

    Raises:
      ArgumentTypeError: It is a symbolic input of Keras, a masked array, or makes no tensor.
    """
    if isinstance(value, tf.Tensor | tf.Variable) or not hasattr(value, "__tf_tensor__"):
        refuse_masked(value, path)
        return value
    if any(base.__name__ == "KerasTensor" for base in type(value).__mro__):
        raise ArgumentTypeError(
            f"{path()} is a KerasTensor, a symbolic input or result of Keras layers, of shape {tuple(value.shape)}: it "
            "holds no numbers\n"
            "  remedy: call the converted function in a layer: keras.layers.Lambda(converted)(...), or the method "
            "`call` of a layer of your own; polymorphic_shapes name the sizes that Keras leaves open"
        )
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ArgumentTypeError(
            f"{path()} is a {type(value).__name__} of which TensorFlow makes no tensor: {error}\n"
            "  remedy: pass a dense tf.Tensor, tf.Variable, NumPy array or Python scalar"
        ) from error


def refuse_masked(value: Any, path: Callable[[], str]) -> None:
    """Refuses an array with a mask, which arrays of JAX and TensorFlow do not have.

    Raises:
      ArgumentTypeError: It is a masked array of NumPy.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{path()} is a masked array of NumPy, whose mask would be lost\n"
            "  remedy: array.filled(value) with a value for masked elements, and the mask as an argument of its own"
        )


def refuse_specification(value: Any, path: Callable[[], str]) -> None:
    """Refuses what has a dtype, but no numbers, such as `tf.TensorSpec`, `jax.ShapeDtypeStruct` or `tf.TensorArray`.

    Raises:
      ArgumentTypeError: It is such a thing: neither a tensor nor something of which NumPy makes an array.
    """
    if isinstance(value, tf.Tensor | tf.Variable) or hasattr(value, "__array__") or not hasattr(value, "dtype"):
        return
    if not hasattr(value, "shape"):
        raise ArgumentTypeError(
            f"{path()} is a {type(value).__name__}, which has a dtype, but no shape: {value!r:.80}\n"
            "  remedy: pass a tensor or an array, such as the result of tf.TensorArray.stack()"
        )
    raise ArgumentTypeError(
        f"{path()} is a {type(value).__name__}, which has a shape and a dtype, but no numbers: {value!r:.80}\n"
        "  remedy: pass a tensor or an array; to trace the function for a specification, call "
        "tf.function(converted).get_concrete_function(...) with a tf.TensorSpec"
    )


@dataclass(frozen=True, eq=False)
class WeakVariable:
    """A variable of weak type: an argument of a conversion, and a leaf to JAX.

    Attributes:
      variable: What TensorFlow holds.
    """

    variable: tf.Variable
