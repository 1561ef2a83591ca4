"""Arguments with the shapes that specifications say: specifications are a pytree prefix of the arguments.

A specification is None, a shape text or a `PolyShape`. It holds for every array below its place; an
argument that is None has no arrays, and its specification is ignored. Specifications
that are not a prefix are refused; the error names the place where they first differ from the arguments, in the
order of the arguments.

Imported where JAX is: containers are JAX's pytrees.
"""

import reprlib
from collections.abc import Callable, Iterator
from typing import Any

from jaxtf.shapepoly import _jax
from jaxtf.shapepoly._errors import ShapeSpecError
from jaxtf.shapepoly._polyshape import PolyShape, text_of_sizes

_WHAT_AN_ENTRY_IS = 'an entry is None, a text such as "(b, _)", or a pytree of these that is a prefix of its argument'
_KEYS_SHOWN = 4


def specs_of_arguments(args: Any, shapes_specs: Any, shape_of: Callable[[str, Any, Any], tuple[Any, ...]]) -> Any:
    """Returns the pytree `args` with a `jax.ShapeDtypeStruct` for each leaf.

    Args:
      args: A pytree of arrays, scalars or `jax.ShapeDtypeStruct`s.
      shapes_specs: A prefix pytree of `args` of shape specifications; a list may be given for a tuple of arguments.
      shape_of: Makes a shape from the path of an argument, its specification and its actual shape.

    Raises:
      ShapeSpecError: `shapes_specs` is not a prefix of `args`.
    """
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    if type(args) is tuple:
        _check_count(args, shapes_specs)
    made = []
    for path, spec, leaf in _matched("args", shapes_specs, args):
        shape, _ = _jax.shape_and_dtype(leaf)
        made.append(_jax.spec_of(leaf, shape_of(path, spec, shape)))
    _, structure = _jax.flat(args)
    return _jax.unflat(structure, made)


def _matched(path: str, spec: Any, argument: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields each leaf of an argument, with its path and its specification."""
    specs = None if _is_entry(spec) else _jax.container(spec)
    if specs is None:
        leaves, _ = _jax.flat(argument)
        yield from ((path + inner, spec, leaf) for inner, leaf in leaves)
        return
    found = _jax.container(argument)
    text = _shape_meant(spec, is_for_array=found is None)
    if text is not None:
        raise ShapeSpecError(
            f"in the specification of {path}: the {type(spec).__name__} {reprlib.repr(spec)} is where a text "
            f'belongs; write "{text}"'
        )
    if found is None or found.structure != specs.structure:
        raise ShapeSpecError(
            f"in the specification of {path}: {_difference(path, spec, argument)}\n  {_WHAT_AN_ENTRY_IS}"
        )
    for (key, inner_spec), (_, inner) in zip(specs.children, found.children, strict=True):
        yield from _matched(path + key, inner_spec, inner)


def _is_entry(spec: Any) -> bool:
    """Returns whether JAX's containers None and `PolyShape`, a tuple, mean a specification."""
    return spec is None or isinstance(spec, PolyShape)


def _check_count(args: tuple[Any, ...], specs: Any) -> None:
    """Raises where specifications are a container, and not of one entry for each argument."""
    if _is_entry(specs) or _jax.container(specs) is None:
        return
    is_shape = _shape_meant(specs, is_for_array=False) is not None
    if type(specs) is tuple and len(specs) == len(args) and not is_shape:
        return
    if is_shape:
        given = f"and {reprlib.repr(specs)} was given, which is a shape"
    elif type(specs) is tuple:
        given = f"and {len(specs)} {'was' if len(specs) == 1 else 'were'} given: {reprlib.repr(specs)}"
    else:
        given = f"and {_described(specs)} was given in place of a tuple or list"
    is_for_array = len(args) == 1 and type(specs) is tuple and any(spec is not None for spec in specs)
    text = _shape_meant(specs, is_for_array=is_for_array)
    remedy = f'\n  the shape of an argument is written as one text, such as "{text}"' if text is not None else ""
    raise ShapeSpecError(
        f"polymorphic shapes have one entry for each positional argument; "
        f"there {'is 1 argument' if len(args) == 1 else f'are {len(args)} arguments'}, {given}\n"
        f"  {_WHAT_AN_ENTRY_IS}{remedy}"
    )


def _shape_meant(spec: Any, *, is_for_array: bool) -> str | None:
    """Returns the text of the shape that somebody meant by a tuple or list; None where it means something else.

    What has a size that is not a text is a shape. Texts and None are entries, but not where one array is in their
    place.
    """
    if type(spec) not in (tuple, list) or not spec:
        return None
    is_shape = is_for_array or any(size is not None and not isinstance(size, str) for size in spec)
    return text_of_sizes(spec) if is_shape else None


def _difference(path: str, spec: Any, argument: Any) -> str:
    """Describes how a container of specifications differs from the argument at its place."""
    if type(spec) is type(argument) and isinstance(spec, dict):
        missing, surplus = _keys(argument, spec), _keys(spec, argument)
        if missing or surplus:
            differences = [f"without {missing}"] * bool(missing) + [f"with {surplus}"] * bool(surplus)
            return f"found a {type(spec).__name__} with other keys than {path}: {' and '.join(differences)}"
    of_other_structure = ", of another structure" if _described(spec) == _described(argument) else ""
    shown = f"the {type(spec).__name__} {reprlib.repr(spec)}" if type(spec) in (tuple, list) else _described(spec)
    return f"found {shown}, but {path} is {_described(argument)}{of_other_structure}"


def _keys(one: dict[Any, Any], other: dict[Any, Any]) -> str:
    """Returns the text of the keys that one dict has and another has not."""
    keys = [repr(key) for key in one if key not in other]
    return ", ".join(keys[:_KEYS_SHOWN]) + (f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else "")


def _described(node: Any) -> str:
    """Describes a node of a pytree in the caller's terms."""
    kind = type(node).__name__
    article = "an" if kind[0] in "AEIOaeio" else "a"
    if node is None:
        return "None"
    if isinstance(node, dict):
        return f"{article} {kind} with the keys {_keys(node, {})}" if node else f"{article} {kind} without keys"
    if isinstance(node, tuple | list):
        return f"{article} {kind} of {len(node)}"
    shape = getattr(node, "shape", None)
    if shape is not None:
        return f"an array of shape {tuple(shape)}"
    return f"{article} {kind}"
