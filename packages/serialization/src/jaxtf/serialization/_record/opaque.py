"""Nodes of classes that nobody registered: by their qualified name, their keys, and their plain auxiliary data.

Such a node is written where a type has no name in artifacts, and read where it has none. It matches any node with
the same keys in the same order; nothing is imported by the name, which is for people. Auxiliary data are compared as a
text: `exact_text` of `static_values` has all values but closures and objects of the user's, of which the type alone is
compared, and the function computes with the one that it was exported with. Artifacts of earlier releases have
`static_text` alone, which has no text for more values; it is written for those releases too, and stays as it is.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._errors import ArtifactError

__all__ = ["PREFIX", "UNKNOWN", "Opaque", "OpaqueNode", "name_in_module", "shortened", "static_text"]

PREFIX = "jaxtf.opaque:"
"""What the name of such a node begins with in artifacts."""

UNKNOWN = "?"
"""In texts of auxiliary data: what is not compared."""

_LONGEST_STATIC, _SHOWN_OF_LONG = 2**14, 200
_BRACKETS: dict[type[Any], str] = {tuple: "({})", list: "[{}]", set: "set({})", frozenset: "frozenset({})"}


@dataclass(frozen=True)
class Opaque:
    """What is known of such a node.

    Attributes:
      class_name: The qualified name of its class where it was written.
      keys: The step to each child, as it is written in a path: `['w']`, `.mu`, `[0]`.
      static: Its auxiliary data as earlier releases compare them; None in artifacts of still earlier ones, where they
        were not plain.
      exact: Its auxiliary data as a text; None in artifacts of earlier releases.
    """

    class_name: str
    keys: tuple[str, ...]
    static: str | None = None
    exact: str | None = None

    def for_artifact(self) -> tuple[str, bytes]:
        """The name and the auxiliary data that an artifact has."""
        values: dict[str, Any] = {"keys": list(self.keys), "static": self.static}
        if self.exact is not None:
            values["exact"] = self.exact
        return PREFIX + self.class_name, json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    @staticmethod
    def of_artifact(name: str, auxdata: bytes) -> Opaque:
        """The reverse.

        Raises:
          ArtifactError: The auxiliary data are not those of such a node.
        """
        try:
            values = json.loads(auxdata)
            keys, static, exact = values["keys"], values["static"], values.get("exact")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"the artifact has a pytree node {name!r:.80} that cannot be read: {error}") from error
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ArtifactError(f"the artifact has a pytree node {name!r:.80} whose keys are not texts: {keys!r:.80}")
        for text in (static, exact):
            if not isinstance(text, str | None):
                raise ArtifactError(f"the artifact has a pytree node {name!r:.80} with {text!r:.80} for a text")
        return Opaque(name.removeprefix(PREFIX), tuple(keys), static, exact)


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


def static_text(value: Any) -> str:
    """Auxiliary data as earlier releases compare them: as a text that is `?` for what they have none for.

    Plain values, dtypes, members of enumerations, dataclasses, and what a module has by a name have a text. One that is
    long ends in its digest.

    >>> static_text((3, "relu", None, {"a": 1.5})), static_text((abs, lambda x: x))
    ("(3, 'relu', None, {'a': 1.5})", '(builtins.abs, ?)')
    """
    try:
        text = _text(value)
    except Exception:  # it holds itself, or is of a class whose items or fields cannot be read
        return UNKNOWN
    return shortened(text)


def shortened(text: str) -> str:
    """A text as it is written: one that is long ends in its digest."""
    if len(text) <= _LONGEST_STATIC:
        return text
    return f"{text[:_SHOWN_OF_LONG]}... ({len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"


def _text(value: Any) -> str:
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return ascii(value) if kind is str else repr(value)
    if kind in _BRACKETS:
        items = list(map(_text, value))
        inside = ", ".join(items if kind in (tuple, list) else sorted(items))
        return _BRACKETS[kind].format(inside + "," * (kind is tuple and len(items) == 1))
    if isinstance(value, Mapping):
        name = "" if kind is dict else name_in_module(kind)
        return f"{name}{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    numpy = sys.modules.get("numpy")  # who describes an artifact does not import it
    if numpy is not None and isinstance(value, numpy.dtype):
        # The name of a structured dtype is its size alone; that of one in another byte order is the same.
        is_named = value.isnative and value.kind in "biufc" and value.subdtype is None
        return f"dtype({value.name})" if is_named else repr(value)
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{_text(value.dtype)}({_text(value.item())})"
    if isinstance(value, functools.partial):
        return f"partial{_text((value.func, value.args, value.keywords))}"
    if isinstance(value, enum.Enum):
        return f"{name_in_module(kind)}.{value.name}"
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return f"{name_in_module(kind)}{_text(tuple(value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [f"{field.name}={_text(getattr(value, field.name, None))}" for field in dataclasses.fields(value)]
        return f"{name_in_module(kind)}({', '.join(items)})"
    return name_in_module(value)


def name_in_module(value: Any) -> str:
    """The name that a module has for a function or class; unknown where it has none, or another object by the name.

    A decorator may give a function the name of the one that it wraps: such a one is found by its own name.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = getattr(value, "__name__", None) if name is None else name
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return UNKNOWN
    names = vars(sys.modules[module]) if module in sys.modules else {}
    found: Any = names.get(name.partition(".")[0])
    for step in name.split(".")[1:]:
        found = getattr(found, step, None)
    if found is not value:
        name = next((other for other, known in list(names.items()) if known is value), "")
    return f"{module}.{name}" if name else UNKNOWN
