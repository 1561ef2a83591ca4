"""Sizes that depend on values: refused, in a module when it is converted, of arguments when TensorFlow compiles.

XLA compiles arrays whose sizes have bounds only; XlaCallModule (of TensorFlow 2.19 to 2.21) takes none in a module, and
of such an argument it takes all that there is room for, with what is behind the elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert._errors import NativeModeUnsupported
from jaxtf.convert._function.checked_sizes import compiled_if_constants
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import has_bounded_sizes

__all__ = ["check_sizes", "compiled_if_sizes_are_constants"]


def check_sizes(exported: Exported) -> None:
    """Refuses a module with an array whose size depends on values.

    Raises:
      NativeModeUnsupported: It has one.
    """
    if has_bounded_sizes(exported.mlir_module_serialized):
        raise NativeModeUnsupported(
            f"'{exported.fun_name}' has arrays whose sizes depend on values, which native mode does not run\n"
            "  found:  in what call_tf calls, such as tf.boolean_mask, tf.where(x > 0), tf.unique or x[:n]\n"
            "  remedy: graph mode (native_serialization=False), call_tf(f, call_tf_graph=True), or constant sizes"
        )


def compiled_if_sizes_are_constants(arguments: Sequence[tf.Tensor], scope: str) -> list[tf.Operation]:
    """Operations that XLA compiles only if the sizes of arrays are constants; the module is to come after them."""
    open_ones = [argument for argument in arguments if not argument.shape.is_fully_defined()]
    name = f"{scope}/sizes_depend_on_values/remedy_graph_mode_or_constant_sizes"
    return compiled_if_constants(lambda: map(tf.size, open_ones), name)
