"""Names of arguments and results in TensorFlow: the user's own, by the path in the pytree.

`images` and `{"loss": ..., "state": (a, b)}` become `images`, `loss`, `state_0`, `state_1`. A result
that is not a container is `output_0`, as TensorFlow calls it. Names are valid in graphs and unique; those of arguments
also where a SavedModel takes names for the same: in lower case.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["argument_names", "call_signature", "call_signature_of", "in_graphs", "parameter_names", "result_names"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_NOT_IN_GRAPHS = re.compile(r"[^A-Za-z0-9_.\-]+")


def parameter_names(fun: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional parameters of a function; none where Python cannot tell."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(parameter.name for parameter in parameters if parameter.kind in _POSITIONAL)


def in_graphs(name: str) -> str:
    """A name with underscores for what names of operations do not have."""
    return _NOT_IN_GRAPHS.sub("_", name)


def call_signature(fun: Callable[..., Any]) -> inspect.Signature:
    """How `tf.function` is to take the arguments: those that must be given by name, any others after them.

    Defaults stay with `fun`: `tf.function` would pass them, and what is passed is traced.
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    taken = {parameter.name for parameter in parameters}
    required = []
    for parameter in parameters:
        if parameter.kind not in _POSITIONAL or parameter.default is not inspect.Parameter.empty:
            break
        required.append(parameter.replace(annotation=inspect.Parameter.empty))
    rest = [
        inspect.Parameter(_unused("args", taken), inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter(_unused("kwargs", taken), inspect.Parameter.VAR_KEYWORD),
    ]
    return inspect.Signature([*required, *rest])


def call_signature_of(names: Sequence[str]) -> inspect.Signature:
    """The same for positional parameters of these names; TensorFlow saves no function with a `self`."""
    names = [_unused("self_", set(names)) if name == "self" else name for name in names]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    rest = inspect.Parameter(_unused("args", set(names)), inspect.Parameter.VAR_POSITIONAL)
    return inspect.Signature([*parameters, rest])


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def argument_names(paths: Sequence[str], parameters: Sequence[str]) -> tuple[str, ...]:
    """Names for flat arguments.

    Args:
      paths: `args[0]['w']` or `kwargs['scale']`.
      parameters: The names of the positional parameters.

    An argument that is an array has the name of its parameter before a part of another argument may have it.

    >>> argument_names(("args[0]['w']", "args[1]", "kwargs['scale']"), ("params",))
    ('params_w', 'args_1', 'scale')
    >>> argument_names(("args[0]['b']", "args[1]", "args[2]"), ("a", "a_b", "A_b"))
    ('a_b_2', 'a_b', 'A_b_1')
    """

    def words(path: str) -> list[str]:
        root, *rest = _words(path)
        if root == "kwargs":
            return rest
        index = int(rest[0])
        name = parameters[index] if index < len(parameters) else f"args_{index}"
        return [re.sub(r"\W", "_", name, flags=re.ASCII), *rest[1:]]

    parts = [words(path) for path in paths]
    order = sorted(range(len(parts)), key=lambda index: len(parts[index]) > 1)
    names = _unique((parts[index] for index in order), taken=("self",), fold=str.lower)
    by_place = dict(zip(order, names, strict=True))
    return tuple(by_place[index] for index in range(len(parts)))


def result_names(paths: Sequence[str]) -> tuple[str, ...]:
    """Names for flat results, from their paths.

    >>> result_names(("result['loss']", "result['state'][0]"))
    ('loss', 'state_0')
    >>> result_names(("result",)), result_names(("result[0]", "result[1]['y']"))
    (('output_0',), ('output_0', 'output_1_y'))
    """

    def words(path: str) -> list[str]:
        _, *rest = _words(path)
        if not rest:
            return ["output", "0"]
        return ["output", *rest] if rest[0].isdigit() else rest

    return _unique(map(words, paths))


def _words(path: str) -> list[str]:
    found: list[str] = re.findall(r"[A-Za-z0-9_]+", path)
    return found


def _unique(
    words: Iterable[Sequence[str]], taken: Iterable[str] = (), fold: Callable[[str], str] = str
) -> tuple[str, ...]:
    """Names of these words, in order.

    Args:
      words: Of each name.
      taken: Names that none may have: `self` is TensorFlow's own, where it takes arguments by name.
      fold: Names are the same if this is.
    """
    names, used = [], set(map(fold, taken))
    for parts in words:
        name = "_".join(parts).lstrip("_") or "value"
        name = name if not name[0].isdigit() else f"value_{name}"
        candidate, count = name, 0
        while fold(candidate) in used:
            count += 1
            candidate = f"{name}_{count}"
        used.add(fold(candidate))
        names.append(candidate)
    return tuple(names)
