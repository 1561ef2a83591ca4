"""What is inside the containers of `tf.Module` and of Keras's layers.

They wrap what is assigned to their attributes in classes of their own, which JAX takes for leaves.
"""

from __future__ import annotations

from typing import Any

__all__ = ["plain"]

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
