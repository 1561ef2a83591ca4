"""Variables that stand for Python numbers.

JAX lets a Python number take the dtype of the other operand: it is of weak type. What `save_model` makes of one is a
variable like any other, in the dtype that JAX gives the number by itself; the function is traced as with the number.
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

__all__ = ["WeakVariable"]


@dataclass(frozen=True, eq=False)
class WeakVariable:
    """A variable of weak type: an argument of a conversion, and a leaf to JAX.

    Attributes:
      variable: What TensorFlow holds.
    """

    variable: tf.Variable
