"""Nodes of classes that nobody registered: by their qualified name, their keys, and their plain auxiliary data.

Such a node is written where a type has no name in artifacts, and read where it has none. It matches any node with
the same keys in the same order; nothing is imported by the name, which is for people. Auxiliary data that consist of
plain values, classes and named functions are compared as a text; where they hold anything else (a closure, an object
of the user's) they are not, and the function computes with those that it was exported with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

from jaxtf.serialization._errors import ArtifactError

__all__ = ["PREFIX", "Opaque", "OpaqueNode", "static_text"]

PREFIX = "jaxtf.opaque:"
"""What the name of such a node begins with in artifacts."""

_LONGEST_STATIC = 2**14


@dataclass(frozen=True)
class Opaque:
    """What is known of such a node.

    Attributes:
      class_name: The qualified name of its class where it was written.
      keys: The step to each child, as it is written in a path: `['w']`, `.mu`, `[0]`.
      static: Its auxiliary data as a text; None where they are not plain.
    """

    class_name: str
    keys: tuple[str, ...]
    static: str | None = None

    def for_artifact(self) -> tuple[str, bytes]:
        """The name and the auxiliary data that an artifact has."""
        values = {"keys": list(self.keys), "static": self.static}
        return PREFIX + self.class_name, json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    @staticmethod
    def of_artifact(name: str, auxdata: bytes) -> Opaque:
        """The reverse.

        Raises:
          ArtifactError: The auxiliary data are not those of such a node.
        """
        try:
            values = json.loads(auxdata)
            keys, static = values["keys"], values["static"]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ArtifactError(f"the artifact has a pytree node {name!r:.80} that cannot be read: {error}") from error
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ArtifactError(f"the artifact has a pytree node {name!r:.80} whose keys are not texts: {keys!r:.80}")
        if not isinstance(static, str | None):
            raise ArtifactError(f"the artifact has a pytree node {name!r:.80} with {static!r:.80} for a text")
        return Opaque(name.removeprefix(PREFIX), tuple(keys), static)


class OpaqueNode:
    """A node of a class that is not registered in this process, as functions return it.

    Children are attributes and items, by the keys that they have in the class: `node.mu`, `node["w"]`, `node[0]`.

    Args:
      opaque: What is known of it.
      children: Its children.
    """

    def __init__(self, opaque: Opaque, children: Sequence[Any]) -> None:
        self._opaque = opaque
        self._children = tuple(children)

    @property
    def opaque(self) -> Opaque:
        """What is known of it."""
        return self._opaque

    @property
    def children(self) -> tuple[Any, ...]:
        """Its children, in order."""
        return self._children

    def items(self) -> Iterator[tuple[str, Any]]:
        """Step and child of each."""
        return zip(self._opaque.keys, self._children, strict=True)

    def __getattr__(self, name: str) -> Any:
        if name in ("_opaque", "_children"):
            raise AttributeError(name)  # of one that is being made
        if f".{name}" in self._opaque.keys:
            return self._children[self._opaque.keys.index(f".{name}")]
        raise AttributeError(f"{self._opaque.class_name} has no attribute {name!r}; it has {self._opaque.keys}")

    def __getitem__(self, key: Any) -> Any:
        if f"[{key!r}]" in self._opaque.keys:
            return self._children[self._opaque.keys.index(f"[{key!r}]")]
        raise KeyError(key)

    def __tf_flatten__(self) -> tuple[Opaque, tuple[Any, ...]]:
        return self._opaque, self._children  # so `tf.nest` takes it apart, and a `tf.function` returns it

    @classmethod
    def __tf_unflatten__(cls, metadata: Opaque, components: Sequence[Any]) -> OpaqueNode:
        return cls(metadata, components)

    def __reduce__(self) -> tuple[type[OpaqueNode], tuple[Any, ...]]:
        return OpaqueNode, (self._opaque, self._children)

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}: {child!r}" for key, child in self.items())
        return f"OpaqueNode({self._opaque.class_name}, {{{inside}}})"


def static_text(value: Any) -> str | None:
    """Auxiliary data as a text that is equal for equal data; None where they are not plain.

    >>> static_text((3, "relu", None, {"a": 1.5})), static_text(lambda x: x)
    ("(3, 'relu', None, {'a': 1.5})", None)
    """
    text = _text(value)
    return text if text is None or len(text) <= _LONGEST_STATIC else None


def _text(value: Any) -> str | None:
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) in (tuple, list):
        parts = [_text(item) for item in value]
        inside = None if None in parts else ", ".join(map(str, parts))
        if inside is None or type(value) is list:
            return None if inside is None else f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if type(value) is dict:
        pairs = [(_text(key), _text(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    if type(value).__module__ == "numpy.dtypes":
        return f"dtype({value.name})"
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
        return None if "<" in name else name
    return None
