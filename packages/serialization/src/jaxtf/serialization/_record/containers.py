"""The dict, list or tuple in a container that TensorFlow or Keras made of it.

`tf.Module` and Keras's layers wrap what is assigned to their attributes in classes of their own, which JAX takes for
leaves. Imports neither: the classes are known by the modules that they are of.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

__all__ = ["plain_containers"]

_WRAPPERS = ("tensorflow.", "keras.", "tf_keras.")


def plain_containers(value: Any) -> Any:
    """The dict, list or tuple in a container of `tf.Module`'s or Keras's, at any depth; anything else as it is."""
    if isinstance(value, dict):
        return _dict_of(value, {key: plain_containers(item) for key, item in value.items()})
    if isinstance(value, list):
        return [plain_containers(item) for item in value]
    if isinstance(value, tuple):
        items_in_order = map(plain_containers, value)
        # The class that a wrapped named tuple says it has is that of the named tuple.
        return value.__class__(*items_in_order) if hasattr(value, "_fields") else tuple(items_in_order)
    return value


def _dict_of(value: dict[Any, Any], items: dict[Any, Any]) -> Any:
    """Items in a dict of the class of another one."""
    if value.__class__ is OrderedDict:  # also what a wrapped one says
        return OrderedDict(items)
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory, items)
    is_wrapper = type(value).__module__.startswith(_WRAPPERS)
    return items if is_wrapper or type(value) is dict else type(value)(items)
