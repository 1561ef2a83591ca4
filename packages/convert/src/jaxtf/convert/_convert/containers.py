"""The containers that a `tf.Module` makes of lists, tuples and dicts in its attributes, for JAX.

Arguments are taken out of them. What a function closes over cannot be: there JAX takes a container for a leaf, unless
it is registered. That is for the whole process and cannot be undone; `jax.experimental.jax2tf` does it when it is
imported, and fails if somebody else did. So it is done on request only, and errors lead there.
"""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import tensorflow as tf

__all__ = ["note_of_containers", "register_tensorflow_containers"]

# The module that the classes are of, as JAX names them in errors about results.
_MODULE = "tensorflow.python.trackable.data_structures"

_Children = list[tuple[Any, Any]]


def register_tensorflow_containers() -> None:
    """Makes pytree nodes of the containers that a `tf.Module` or Keras model keeps lists, tuples and dicts in.

    Functions that are converted may then close over them: `jax.tree.map(f, module.weights)`. Arguments need no such
    call. Registers the classes with JAX for the whole process, as the import of `jax.experimental.jax2tf` does: a
    program that imports jax2tf too must import it first. If they are already registered, nothing happens.

    A node is rebuilt as a container of its own class, keys of a dict in the order that JAX has for a dict.

    >>> import jax, tensorflow as tf
    >>> from jaxtf.convert import convert, register_tensorflow_containers
    >>> register_tensorflow_containers()
    >>> module = tf.Module()
    >>> module.scales = {"first": [2.0, 3.0]}
    >>> convert(lambda x: x * sum(jax.tree.leaves(module.scales)))(1.0).numpy()
    np.float32(5.0)
    """
    for example, flatten, unflatten in _containers():
        node_type = type(example)
        if _is_leaf(example):
            jax.tree_util.register_pytree_with_keys(node_type, flatten, _rebuilding(node_type, unflatten))


def _containers() -> list[tuple[Any, Callable[[Any], tuple[_Children, Any]], Callable[[Any, Sequence[Any]], Any]]]:
    """One container of each class, what is in it, and what it is made of again."""
    module: Any = tf.Module()
    module.of_list, module.of_tuple, module.of_dict = [], (tf.Module(),), {}
    return [
        (module.of_list, _items_of_list, lambda _, items: list(items)),
        (module.of_tuple, _items_of_tuple, _tuple_of),
        (module.of_dict, _items_of_dict, lambda made_of, items: made_of[0](zip(made_of[1], items, strict=True))),
    ]


def _rebuilding(node_type: type[Any], unflatten: Callable[[Any, Sequence[Any]], Any]) -> Callable[[Any, Any], Any]:
    return lambda made_of, items: node_type(unflatten(made_of, items))


def _items_of_list(value: Any) -> tuple[_Children, Any]:
    return [(jax.tree_util.SequenceKey(index), item) for index, item in enumerate(value)], None


def _items_of_tuple(value: Any) -> tuple[_Children, Any]:
    names = getattr(value, "_fields", None)  # of a named tuple, whose class the container says it has
    keys = map(jax.tree_util.SequenceKey, range(len(value))) if names is None else map(jax.tree_util.GetAttrKey, names)
    return list(zip(keys, value, strict=True)), value.__class__


def _tuple_of(made_of: type[Any], items: Sequence[Any]) -> Any:
    return made_of(*items) if hasattr(made_of, "_fields") else made_of(items)


def _items_of_dict(value: Any) -> tuple[_Children, Any]:
    keys = list(value) if value.__class__ is OrderedDict else sorted(value)
    return [(jax.tree_util.DictKey(key), value[key]) for key in keys], (value.__class__, tuple(keys))


def note_of_containers(error: BaseException) -> str:
    """What to do about a container that JAX took for a leaf, where an error was raised; empty if there is none."""
    found = next((value for value in _values_in_jax(error) if _is_container(value)), None)
    if found is None and _MODULE not in str(error):
        return ""
    what = "a list, tuple or dict" if found is None else f"the {_kind(found)} {found!r:.60}"
    return (
        f"a tf.Module keeps {what} in its attributes as a container of its own, which is a leaf to JAX, not a pytree\n"
        "  remedy: jaxtf.convert.register_tensorflow_containers() first, once; or pass it as an argument"
    )


def _values_in_jax(error: BaseException) -> Iterator[Any]:
    """The local variables of JAX's functions that an error went through, and what is in lists and tuples of these."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] == "jax":
            for value in frame.f_locals.values():
                yield value
                if type(value) in (list, tuple):
                    yield from value


def _is_container(value: Any) -> bool:
    return type(value).__module__ == _MODULE and isinstance(value, list | tuple | dict) and _is_leaf(value)


def _kind(container: Any) -> str:
    return next(kind.__name__ for kind in (list, tuple, dict) if isinstance(container, kind))


def _is_leaf(value: Any) -> bool:
    return bool(jax.tree_util.all_leaves([value]))
