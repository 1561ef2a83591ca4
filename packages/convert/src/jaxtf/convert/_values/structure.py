"""The flat arguments of a call of an exported function, or where the call has another structure; needs no JAX.

Differences are reported as `Exported.call` reports them, by their paths, and without what arrays hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from jaxtf.serialization import ArgumentMismatch, Exported, OpaqueNode, Tree

__all__ = ["flat_arguments"]


def flat_arguments(exported: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The flat arguments, in the order of `exported.in_avals`.

    Raises:
      ArgumentMismatch: The structure is not that which the function was exported with; the message says where.
      ArtifactError, ImportError: As `Tree.flatten` says, for nodes of custom types.
    """
    positional, by_name = exported.in_structure.children
    try:
        return [*positional.flatten(args, "args"), *by_name.flatten(kwargs, "kwargs")]
    except ArgumentMismatch:
        pass  # refused below, for all arguments and without their contents
    lines = [*_differences(positional, args, "args"), *_differences(by_name, kwargs, "kwargs")]
    raise ArgumentMismatch(
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they differ:\n"
        + "\n".join([*lines, *_remedy(exported, args, kwargs)])
    )


def _differences(tree: Tree, value: Any, path: str) -> Iterator[str]:
    """A line for each place where a value has another structure than a tree."""
    if tree.kind.name == "LEAF":
        return
    expected = _type_of(tree)
    if expected is not OpaqueNode and not isinstance(value, expected):  # of an opaque one any node may be in the place
        yield f"  {path}: {_named(expected)} when exported, {_named(type(value))} in the call"
        return
    if not tree.is_known_to_python:
        try:
            children = tree.children_of(value, path)
        except ArgumentMismatch as error:
            yield f"  {error}"
            return
        for child, (step, item) in zip(tree.children, children, strict=True):
            yield from _differences(child, item, step)
        return
    steps, items = _steps(tree, expected), _items(value)
    for step, child in steps.items():
        if step in items:
            yield from _differences(child, items[step], f"{path}{step}")
        else:
            yield f"  {path}{step}: exported with it, missing in the call"
    for step in items:
        if step not in steps:
            yield f"  {path}{step}: in the call, not when exported"
    if expected is OrderedDict and steps.keys() == items.keys() and list(steps) != list(items):
        yield f"  {path}: its keys in another order than when exported"


def _type_of(tree: Tree) -> type[Any]:
    """The type of the values of a node."""
    if tree.custom is not None:
        return tree.custom.for_jax()[0]
    built_in: dict[str, type[Any]] = {"NONE": type(None), "TUPLE": tuple, "LIST": list, "DICT": dict}
    return built_in[tree.kind.name]


def _steps(tree: Tree, node_type: type[Any]) -> dict[str, Tree]:
    """The nodes below a node by their step in a path."""
    if hasattr(node_type, "_fields"):
        keys = [f".{name}" for name in node_type._fields]
    elif node_type is OrderedDict and tree.custom is not None:
        keys = [f"[{key!r}]" for key in tree.custom.for_jax()[1]]
    else:
        keys = [f"[{key!r}]" for key in (tree.keys or range(len(tree.children)))]
    return dict(zip(keys, tree.children, strict=True))


def _items(value: Any) -> dict[str, Any]:
    """What is in a container by its step in a path."""
    if isinstance(value, dict):
        return {f"[{key!r}]": item for key, item in value.items()}
    if hasattr(value, "_fields"):
        return {f".{name}": item for name, item in zip(value._fields, value, strict=True)}
    return {f"[{index}]": item for index, item in enumerate(value or ())}


def _named(node_type: type[Any]) -> str:
    """A type with its article."""
    if node_type is type(None):
        return "None"
    name = node_type.__name__
    return f"an {name}" if name.lower().startswith(("a", "e", "i", "o", "ndarray")) else f"a {name}"


def _remedy(exported: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The remedy where arguments were passed by name instead of by position, or the reverse."""
    positional, by_name = exported.in_structure.children
    if len(args) < len(positional.children) and not kwargs.keys() <= set(by_name.keys):
        return [f"  remedy: pass the first {len(positional.children)} by position, as when it was exported"]
    if len(args) > len(positional.children) and kwargs.keys() < set(by_name.keys):
        return [f"  remedy: pass {', '.join(sorted(by_name.keys))} by name, as when it was exported"]
    return []
