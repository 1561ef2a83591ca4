"""What callers pass, as JAX can take it: containers, values that make tensors of themselves, variables of weak type.

`tf.Module` and Keras's layers wrap what is assigned to their attributes in classes of their own, which JAX takes for
leaves (`plain`).

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

import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError

__all__ = ["WeakVariable", "plain", "read"]

_WRAPPERS = ("tensorflow.", "keras.", "tf_keras.")


def plain(value: Any) -> Any:
    """The dict, list or tuple in a container of `tf.Module`'s or Keras's, at any depth; anything else as it is."""
    if isinstance(value, dict):
        items = {key: plain(item) for key, item in value.items()}
        is_wrapper = type(value).__module__.startswith(_WRAPPERS)
        return items if is_wrapper or type(value) is dict else type(value)(items)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        items_in_order = map(plain, value)
        # The class that a wrapped named tuple says it has is that of the named tuple.
        return value.__class__(*items_in_order) if hasattr(value, "_fields") else tuple(items_in_order)
    return value


def read(value: Any, path: Callable[[], str]) -> Any:
    """The tensor that a value makes of itself; tensors, variables of TensorFlow and all other values as they are.

    Args:
      value: What the caller passed.
      path: Says where, for the message of an error; not called otherwise.

    Raises:
      ArgumentTypeError: It is a symbolic input of Keras, or makes no tensor.
    """
    if isinstance(value, tf.Tensor | tf.Variable) or not hasattr(value, "__tf_tensor__"):
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


@dataclass(frozen=True, eq=False)
class WeakVariable:
    """A variable of weak type: an argument of a conversion, and a leaf to JAX.

    Attributes:
      variable: What TensorFlow holds.
    """

    variable: tf.Variable
