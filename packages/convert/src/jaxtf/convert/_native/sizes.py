"""Sizes that depend on values: refused when a module is converted, not when it runs.

XLA compiles a module with arrays whose sizes have bounds only; XlaCallModule (of TensorFlow 2.19 to 2.21) takes none.
"""

from __future__ import annotations

from jaxtf.convert._errors import NativeModeUnsupported
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import has_bounded_sizes

__all__ = ["check_sizes"]


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
