"""The structure of nested arguments and results, held without JAX.

A `Tree` says of a pytree what JAX's treedef says: which node is a tuple, a list, a dictionary, and
how many leaves there are. It comes from a treedef or from an artifact, and becomes a treedef when
JAX is at hand. Nodes of custom types are held as JAX has them (the type and its auxiliary data)
or as an artifact has them (a name and bytes); what is registered for the type or the name leads
from one to the other, and equality sees through it.

Knows pytrees; nothing of arrays or of bytes.
"""

from __future__ import annotations

import itertools
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import Any

from jaxtf.serialization._errors import ArgumentMismatch, ArtifactError, SerializationError
from jaxtf.serialization._record.dataclass_fields import fields_of, other_static_fields, static_texts
from jaxtf.serialization._record.kinds import PyTreeDefKind as Kind
from jaxtf.serialization._record.opaque import PREFIX, Opaque, OpaqueNode, static_text
from jaxtf.serialization._record.registration import (
    Registration,
    jax_trees,
    opaque_node_type,
    registered_name,
    registered_type,
)
from jaxtf.serialization._record.static_values import exact_text
from jaxtf.serialization._record.treedefs import is_same_structure

__all__ = ["LEAF", "CustomNode", "Tree"]

_BUILT_IN: dict[type[Any], Kind] = {type(None): Kind.NONE, tuple: Kind.TUPLE, list: Kind.LIST, dict: Kind.DICT}
# Of two texts that differ, a message shows so many characters, and so many of them before the difference.
_SHOWN, _SHOWN_BEFORE = 200, 40
_TYPES = {kind: node_type for node_type, kind in _BUILT_IN.items()}


@dataclass(frozen=True)
class CustomNode:
    """What is known of a node of a custom type: one of two forms, or both.

    Attributes:
      node_type: The Python type; None where only an artifact was read.
      auxdata: The auxiliary data that JAX keeps for it.
      name: Its name in artifacts; None where it came from JAX.
      auxdata_bytes: Its auxiliary data in artifacts.
      child_count: How many children it has; 0 where it came from an artifact.
      written: Name and text of each static field where the artifact was written; empty where they are unknown.
    """

    node_type: type[Any] | None = None
    auxdata: Any = None
    name: str | None = None
    auxdata_bytes: bytes = b""
    child_count: int = 0
    written: tuple[tuple[str, str], ...] = ()

    @cached_property
    def opaque(self) -> Opaque | None:
        """What is known of a node of a class that nobody registered where it was written; None for others.

        Raises:
          ArtifactError: It was read, and cannot be one.
        """
        if self.name is not None:
            return Opaque.of_artifact(self.name, self.auxdata_bytes) if self.name.startswith(PREFIX) else None
        return None

    def for_jax(self) -> tuple[type[Any], Any]:
        """The type and the auxiliary data.

        Raises:
          ArtifactError: Nothing is registered for the name, or the bytes are not what was registered.
        """
        if self.node_type is not None:
            return self.node_type, self.auxdata
        if self.opaque is not None:
            return opaque_node_type(), self.opaque
        registration = self._registration()
        return registration.node_type, self._read_auxdata(registration)

    def node_data(self, children: Iterable[Any]) -> tuple[type[Any], Any]:
        """The same as JAX keeps it in a treedef; what is registered may make it from a node with these children.

        Raises:
          ArtifactError: Likewise.
        """
        if self.node_type is not None or self.opaque is not None:
            return self.for_jax()
        if (registration := self._registration()).from_children is None:
            return self.for_jax()
        auxdata, examples = self._read_auxdata(registration), list(children)
        try:
            node = registration.from_children(auxdata, examples)
            _, auxdata = jax_trees().default_registry.flatten_one_level(node)
        except Exception as error:
            raise ArtifactError(
                f"a pytree node of type {self.name!r} in the artifact cannot be made by from_children: {error}"
            ) from error
        return registration.node_type, auxdata

    def check_known_to_jax(self) -> None:
        """Refuses a class that JAX takes for a leaf here, and so cannot make a node of.

        Raises:
          ArtifactError: It is such a class; or nothing is registered for the name.
        """
        node_type = self._registration().node_type if self.node_type is None else self.node_type
        if hasattr(node_type, "_fields") or node_type is OrderedDict:
            return
        trees = jax_trees()
        try:
            trees.PyTreeDef.from_node_data_and_children(trees.default_registry, (node_type, None), [])
        except RuntimeError as error:
            called = "an exported function has" if self.name is None else f"the artifact has, as {self.name!r},"
            raise ArtifactError(
                f"{called} a pytree node of {node_type}, which is not registered with JAX here\n"
                "  remedy: before calling it, register the class by jax.tree_util.register_dataclass, "
                "register_pytree_node or the like, as where it was exported"
            ) from error

    def _registration(self) -> Registration:
        assert self.name is not None, "a custom node has a type or a name"
        registration = registered_name(self.name)
        if registration is None:
            raise ArtifactError(
                f"the artifact holds a pytree node of a type called {self.name!r}, which is not registered here\n"
                "  remedy: before reading it, call register_namedtuple_serialization or "
                f"register_pytree_node_serialization with serialized_name={self.name!r}"
            )
        return registration

    def _read_auxdata(self, registration: Registration) -> Any:
        try:
            return registration.deserialize_auxdata(self.auxdata_bytes)
        except Exception as error:
            raise ArtifactError(
                f"the auxiliary data of a pytree node of type {self.name!r} in the artifact cannot be read: {error}"
            ) from error

    def for_artifact(self) -> tuple[str, bytes]:
        """The name and the bytes; of a type that is not registered, those of an opaque node.

        Raises:
          SerializationError: What is registered for the type fails.
        """
        if self.name is not None:
            return self.name, self.auxdata_bytes
        assert self.node_type is not None, "a custom node has a type or a name"
        registration = registered_type(self.node_type)
        if registration is None:
            return _opaque_of(self.node_type, self.auxdata, self.child_count).for_artifact()
        auxdata = registration.serialize_auxdata(self.auxdata)
        if auxdata is NotImplemented:  # of a library's class, with auxiliary data that are not plain
            return _opaque_of(self.node_type, self.auxdata, self.child_count).for_artifact()
        if not isinstance(auxdata, bytes | bytearray):
            raise SerializationError(
                f"serialize_auxdata, as registered for {self.node_type}, must return bytes; it returned {type(auxdata)}"
            )
        return registration.name, bytes(auxdata)

    @cached_property
    def static_fields(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each static field of a dataclass whose bytes may lack the names; none where unknown."""
        if self.node_type is None or not is_dataclass(self.node_type):
            return self.written
        registration = registered_type(self.node_type)
        if registration is None or registration.has_names:
            return ()
        return static_texts(self.node_type, self.auxdata, jax_trees())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CustomNode):
            return NotImplemented
        if self.node_type is not None and other.node_type is not None:
            return self.node_type is other.node_type and bool(self.auxdata == other.auxdata)
        try:
            is_same = self.for_artifact() == other.for_artifact()
            one, another = (self.static_fields, other.static_fields) if is_same else ((), ())
        except SerializationError:
            return False
        if not one or not another or [name for name, _ in one] == [name for name, _ in another]:
            return is_same
        return dict(one) == dict(another)  # the same bytes, of a class with its static fields in another order

    def __hash__(self) -> int:
        return 0  # an equal node may hold the other form


@dataclass(frozen=True)
class Tree:
    """A node of a pytree and what is below it.

    Attributes:
      kind: Whether it is a leaf, None, a tuple, a list, a dictionary or of a custom type.
      children: The nodes below it.
      keys: Of a dictionary: the key of each child.
      custom: Of a custom type: which.
      steps: Of a custom type in an artifact: the step to each child when it was written; None where that is unknown.
    """

    kind: Kind
    children: tuple[Tree, ...] = ()
    keys: tuple[Any, ...] = ()
    custom: CustomNode | None = None
    steps: tuple[str | None, ...] = field(default=(), compare=False, repr=False)
    # What it was made from, where that is known: JAX's treedef.
    _treedef: Any = field(default=None, compare=False, repr=False)

    @staticmethod
    def of_treedef(treedef: Any) -> Tree:
        """The structure that JAX's treedef describes."""
        return replace(_of_treedef(treedef), _treedef=treedef)

    def __reduce__(self) -> tuple[type[Tree], tuple[Any, ...]]:
        # Without JAX's treedef, which does not pickle with custom types: it is made again.
        return Tree, (self.kind, self.children, self.keys, self.custom, self.steps)

    @cached_property
    def treedef(self) -> Any:
        """JAX's treedef.

        Raises:
          ArtifactError: It has a custom type that is not registered here.
        """
        if self._treedef is not None:
            return self._treedef
        return self._treedef_over([child.treedef for child in self.children])

    def is_of(self, treedef: Any) -> bool:
        """Whether a treedef of JAX is of this structure, with the same classes.

        Raises:
          ArtifactError: As `treedef`.
        """
        if treedef != self.treedef:
            return False
        found = hash(treedef)  # in 0.1 us: that of another class is another one
        if found not in self._hashes and is_same_structure(treedef, self.treedef):
            self._hashes.add(found)
        return found in self._hashes

    @cached_property
    def _hashes(self) -> set[int]:
        """Hashes of treedefs that were found to be of this structure."""
        return {hash(self.treedef)}

    def _treedef_over(self, children: list[Any]) -> Any:
        """JAX's treedef of this node over those of its children."""
        trees = jax_trees()
        node_data = None if self.kind is Kind.LEAF else self._own_data
        if node_data is not None and hasattr(node_data[0], "_fields") and not self.is_known_to_python:
            raise ArtifactError(  # JAX 0.10.2 makes the treedef of its fields, whatever is registered
                f"a node of {node_data[0]}, a named tuple whose children for JAX are not its fields, cannot be made\n"
                "  remedy: use a class for it that is not a named tuple, and export again"
            )
        return trees.PyTreeDef.from_node_data_and_children(trees.default_registry, node_data, children)

    @cached_property
    def _own_data(self) -> tuple[type[Any], Any]:
        """The type and the auxiliary data, as JAX keeps them."""
        if self.custom is not None and self.custom.opaque is None:
            self.custom.check_known_to_jax()
        node_data = self._node_data()
        if self.custom is not None and self.custom.name is not None and self.custom.opaque is None:
            self._check_class(self.custom.name, self.custom.written, *node_data)
        return node_data

    def _check_class(self, name: str, static: tuple[tuple[str, str], ...], node_type: type[Any], auxdata: Any) -> None:
        """Refuses a class that has other fields here than where the artifact was written, or in another order.

        Keys of a dataclass are its fields and must be the same. Other classes may have changed the keys alone; children
        with the same keys in another order are others.
        """
        fields = fields_of(node_type, jax_trees()) if is_dataclass(node_type) else None
        keys = self._keys_in_class(node_type, auxdata) if fields is None else fields.keys
        written = tuple(key if step is None else step for key, step in zip(keys, self.steps, strict=False))
        is_other = len(written) == len(keys) and written != keys and not any(map(_is_position, written + keys))
        if fields is not None and len(keys) != len(self.children):
            is_other, written = True, tuple("?" if step is None else step for step in self.steps)
        if is_other and (fields is not None or sorted(written) == sorted(keys)):
            raise ArtifactError(
                f"the artifact has a pytree node of type {name!r} with the children "
                f"{', '.join(written) or len(self.children)}; those of the class here are {', '.join(keys) or 'none'}\n"
                "  remedy: read it with a release of the class that has the same"
            )
        if fields is None or fields.static is None:
            return
        if not isinstance(auxdata, tuple | list) or len(auxdata) != len(fields.static):
            raise ArtifactError(
                f"the artifact has a pytree node of type {name!r} with the static fields {auxdata!r:.60}; the class "
                f"here has {', '.join(fields.static) or 'none'}\n"
                "  remedy: read it with a release of the class that has the same"
            )
        if (other := other_static_fields(static, fields.static, auxdata)) is not None:
            raise ArtifactError(
                f"the artifact has a pytree node of type {name!r} {other}\n"
                "  remedy: read it with a release of the class that has the same in the same order; for another order, "
                "register a deserialize_auxdata that gives them in that of the class"
            )

    def _keys_in_class(self, node_type: type[Any], auxdata: Any) -> tuple[str, ...]:
        """The step to each child in the class here, of a class that is no dataclass; none where they are not known."""
        if not self.steps or None in self.steps or hasattr(node_type, "_fields") or node_type is OrderedDict:
            return ()
        return _keys_of(node_type, auxdata, len(self.children))

    def _node_data(self) -> tuple[type[Any], Any]:
        if self.kind is Kind.DICT:
            return dict, list(self.keys)
        if self.custom is not None:
            return self.custom.node_data(child._build(itertools.repeat(0.0)) for child in self.children)
        return _TYPES[self.kind], None

    def flatten(self, value: Any, path: str = "args") -> list[Any]:
        """The leaves of a nested value of this structure; needs JAX only for custom types other than namedtuples.

        Nodes of custom types must be of the same type, with equal auxiliary data and as many children.

        Raises:
          ArgumentMismatch: The value has another structure; the message says where.
          ArtifactError: It has nodes of a custom type that is not registered here.
          ImportError: It has nodes of a custom type that only JAX takes apart, and JAX is not there.

        >>> Tree(Kind.DICT, (LEAF, Tree(Kind.LIST, (LEAF,))), ("a", "b")).flatten({"b": [2], "a": 1})
        [1, 2]
        """
        if self.kind is Kind.LEAF:
            return [value]
        steps = self.children_of(value, path)
        return [
            leaf for child, (step, item) in zip(self.children, steps, strict=True) for leaf in child.flatten(item, step)
        ]

    def children_of(self, value: Any, path: str) -> list[tuple[str, Any]]:
        """Path and value of each child, after checking that the value is a node of this kind.

        Raises:
          ArgumentMismatch, ArtifactError, ImportError: As `flatten`.
        """
        if self.kind is Kind.NONE:
            fits, items = value is None, {}
        elif self.kind is Kind.DICT:
            fits = isinstance(value, dict) and value.keys() == set(self.keys)
            items = {key: value[key] for key in self.keys} if fits else {}
        elif self.custom is not None:
            return self._children_of_custom(value, path)
        else:
            fits = isinstance(value, _TYPES[self.kind]) and len(value) == len(self.children)
            items = dict(enumerate(value)) if fits else {}
        if not fits:
            raise ArgumentMismatch(f"{path} must be {self._described()}; found {type(value).__name__} ({value!r:.60})")
        return [(f"{path}[{key!r}]", item) for key, item in items.items()]

    def _children_of_custom(self, value: Any, path: str) -> list[tuple[str, Any]]:
        assert self.custom is not None, "a custom node says of what type"
        if self.custom.opaque is not None:
            return self._children_of_opaque(self.custom.opaque, value, path)
        node_type, auxdata = self._own_data
        if not self.is_known_to_python:
            return self._children_known_to_jax(value, path)
        if not isinstance(value, node_type) or (node_type is OrderedDict and tuple(value) != auxdata):
            raise ArgumentMismatch(f"{path} must be {self._described()}; found {type(value).__name__} ({value!r:.60})")
        if node_type is OrderedDict:
            return [(f"{path}[{key!r}]", item) for key, item in value.items()]
        return [(f"{path}.{name}", item) for name, item in zip(node_type._fields, value, strict=True)]

    def _children_known_to_jax(self, value: Any, path: str) -> list[tuple[str, Any]]:
        """The children of a node of the same type, with equal auxiliary data, as JAX takes it apart."""
        node_type, auxdata = self._own_data
        if type(value) is not node_type:  # a derived class is another node type of JAX's, or a leaf
            raise ArgumentMismatch(f"{path} must be {self._described()}; found {type(value).__name__} ({value!r:.60})")
        items, found = jax_trees().default_registry.flatten_one_level(value)
        try:
            is_same = bool(auxdata == found)
        except Exception as error:
            raise ArgumentMismatch(
                f"{path} must be {self._described()} whose auxiliary data can be compared: {error}"
            ) from error
        if not is_same:
            expected_text, found_text = _differing_texts(repr(auxdata), repr(found))
            raise ArgumentMismatch(
                f"{path} must be {self._described()} with the auxiliary data {expected_text}, as exported; found "
                f"{found_text}"
            )
        children = tuple(items)
        if len(children) != len(self.children):
            raise ArgumentMismatch(
                f"{path} must be {self._described()} with {len(self.children)} children, as exported; found "
                f"{len(children)}"
            )
        return [(path + _position(index), item) for index, item in enumerate(children)]

    @cached_property
    def is_known_to_python(self) -> bool:
        """Whether it is of Python, an OrderedDict or a named tuple whose children are its fields: JAX need not take it
        apart.
        """
        if self.custom is None or self.custom.opaque is not None:
            return self.custom is None
        node_type, _ = self._own_data
        if not hasattr(node_type, "_fields"):
            return node_type is OrderedDict
        if "jax" not in sys.modules:
            return True  # nobody registered another way
        example = tuple.__new__(node_type, node_type._fields)
        flattened = jax_trees().default_registry.flatten_one_level(example)
        return flattened is not None and flattened[1] is node_type

    def _children_of_opaque(self, opaque: Opaque, value: Any, path: str) -> list[tuple[str, Any]]:
        """The children of any node with the same keys and, as far as they are plain, auxiliary data."""
        if isinstance(value, OpaqueNode):
            keys, items = value.opaque.keys, value.children
            is_exact = opaque.exact is not None and value.opaque.exact is not None
            expected, found = (opaque.exact, value.opaque.exact) if is_exact else (opaque.static, value.opaque.static)
        else:
            keys, items, auxdata = _one_level(value)
            expected, found = _auxiliary_texts(opaque, type(value), auxdata)
        if keys != opaque.keys:
            raise ArgumentMismatch(
                f"{path} must be a {opaque.class_name} or another node with the children {', '.join(opaque.keys)}; "
                f"found {type(value).__name__} with {', '.join(keys) or 'none'}"
            )
        if expected is not None and found is not None and expected != found:
            expected_text, found_text = _differing_texts(expected, found)
            raise ArgumentMismatch(
                f"{path} must be a {opaque.class_name} with the auxiliary data {expected_text}, as exported; found "
                f"{found_text}"
            )
        return [(path + key, item) for key, item in zip(keys, items, strict=True)]

    def _described(self) -> str:
        match self.kind:
            case Kind.NONE:
                return "None"
            case Kind.DICT:
                return f"a dict with the keys {', '.join(map(repr, self.keys)) or '(none)'}"
            case Kind.CUSTOM:
                assert self.custom is not None, "a custom node says of what type"
                return f"a {self._own_data[0].__name__}"
            case _:
                return f"a {self.kind.name.lower()} of length {len(self.children)}"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The nested value of this structure with these leaves, without JAX unless it has custom types.

        >>> Tree(Kind.DICT, (LEAF, Tree(Kind.LIST, (LEAF,))), ("a", "b")).unflatten([1, 2])
        {'a': 1, 'b': [2]}
        """
        remaining = iter(leaves)
        value = self._build(remaining)
        assert next(remaining, remaining) is remaining, "as many leaves as the structure has"
        return value

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is Kind.LEAF:
            return next(leaves)
        items = [child._build(leaves) for child in self.children]
        match self.kind:
            case Kind.NONE:
                return None
            case Kind.DICT:
                return dict(zip(self.keys, items, strict=True))
            case Kind.CUSTOM:
                return self._build_custom(items)
            case _:
                return _TYPES[self.kind](items)

    def _build_custom(self, items: list[Any]) -> Any:
        assert self.custom is not None, "a custom node says of what type"
        if self.custom.opaque is not None:
            return OpaqueNode(self.custom.opaque, items)
        node_type, auxdata = self._own_data
        if self.is_known_to_python:
            return OrderedDict(zip(auxdata, items, strict=True)) if node_type is OrderedDict else node_type(*items)
        return jax_trees().tree_unflatten(self._treedef_over([LEAF.treedef] * len(items)), items)

    @cached_property
    def has_opaque(self) -> bool:
        """Whether it has a node of a class that is not registered, and so fits trees with other treedefs."""
        is_opaque = self.custom is not None and self.custom.opaque is not None
        return is_opaque or any(child.has_opaque for child in self.children)

    @cached_property
    def leaf_count(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is Kind.LEAF else sum(child.leaf_count for child in self.children)

    def paths(self, *roots: str) -> tuple[str, ...]:
        """The path of each leaf, written as Python would; `roots` name the children of a tuple of as many.

        >>> pair = Tree(Kind.TUPLE, (LEAF, LEAF))
        >>> Tree(Kind.TUPLE, (pair, Tree(Kind.DICT, (LEAF,), ("mask",)))).paths("args", "kwargs")
        ('args[0]', 'args[1]', "kwargs['mask']")
        """
        return tuple(self.each_path(*roots))

    def each_path(self, *roots: str) -> Iterator[str]:
        """The same, one by one: together they may be many times as long as the structure."""
        is_named = roots and self.kind is Kind.TUPLE and len(self.children) == len(roots)
        named = zip(roots, self.children, strict=True) if is_named else [("result", self)]
        return (path for root, child in named for path in child._paths(root))

    def _paths(self, here: str) -> Iterator[str]:
        if self.kind is Kind.LEAF:
            yield here
            return
        for index, child in enumerate(self.children):
            if self.kind is Kind.DICT:
                step = f"[{self.keys[index]!r}]"
            elif self.custom is not None:
                opaque = self.custom.opaque
                step = _position(index) if opaque is None else opaque.keys[index]
            else:
                step = f"[{index}]"
            yield from child._paths(here + step)


LEAF = Tree(Kind.LEAF)
"""An array."""


def _of_treedef(treedef: Any) -> Tree:
    node_data = treedef.node_data()
    if node_data is None:
        return LEAF
    node_type, auxdata = node_data
    children = tuple(map(_of_treedef, treedef.children()))
    kind = _BUILT_IN.get(node_type, Kind.CUSTOM)
    if kind is Kind.DICT:
        return Tree(kind, children, tuple(auxdata))
    custom = CustomNode(node_type, auxdata, child_count=len(children)) if kind is Kind.CUSTOM else None
    return Tree(kind, children, custom=custom)


def _differing_texts(expected: str, found: str) -> tuple[str, str]:
    """Two different texts, as long as a message shows them: from a little before the first difference."""
    first = next((at for at, (one, other) in enumerate(zip(expected, found, strict=False)) if one != other), 0)
    start = max(0, first - _SHOWN_BEFORE)
    shown = [text[start : start + _SHOWN] + "..." * (len(text) > start + _SHOWN) for text in (expected, found)]
    return ("..." * bool(start) + shown[0], "..." * bool(start) + shown[1])


def _opaque_of(node_type: type[Any], auxdata: Any, child_count: int) -> Opaque:
    """What is known of a node of a class that is not registered: its keys are those that the class has for JAX."""
    name = f"{node_type.__module__}.{node_type.__qualname__}"
    if node_type is opaque_node_type():
        known: Opaque = auxdata
        return known
    data = _by_name(node_type, auxdata)
    return Opaque(name, _keys_of(node_type, auxdata, child_count), static_text(data), exact_text(data))


def _auxiliary_texts(opaque: Opaque, node_type: type[Any], auxdata: Any) -> tuple[str | None, str | None]:
    """The text of the auxiliary data of an opaque node, and that of those of a node that takes its place."""
    if opaque.exact is not None:
        return opaque.exact, exact_text(_by_name(node_type, auxdata))
    if opaque.static is None:
        return None, None
    found = static_text(_by_name(node_type, auxdata))
    # Releases before that had a text of the values without their names.
    return opaque.static, opaque.static if static_text(auxdata) == opaque.static else found


def _by_name(node_type: type[Any], auxdata: Any) -> Any:
    """The auxiliary data of an opaque node; the static fields of a dataclass by their names, in any order."""
    fields = fields_of(node_type, jax_trees()) if is_dataclass(node_type) else None
    if fields is None or not fields.static or not isinstance(auxdata, tuple) or len(auxdata) != len(fields.static):
        return auxdata
    return dict(sorted(zip(fields.static, auxdata, strict=True)))


def _keys_of(node_type: type[Any], auxdata: Any, child_count: int) -> tuple[str, ...]:
    """The step to each child of a node of a class: those that the class has for JAX, or their positions."""
    trees = jax_trees()
    one_level = trees.PyTreeDef.from_node_data_and_children(
        trees.default_registry, (node_type, auxdata), [LEAF.treedef] * child_count
    )
    try:
        return _one_level(trees.tree_unflatten(one_level, [0.0] * child_count))[0]
    except Exception:  # a class that looks at its children
        return tuple(map(_position, range(child_count)))


def _position(index: int) -> str:
    """The step to a child that has no key."""
    return f"[<flat index {index}>]"


def _is_position(step: str) -> bool:
    return step.startswith("[<flat index ")


def _one_level(value: Any) -> tuple[tuple[str, ...], tuple[Any, ...], Any]:
    """Step and value of each child of a node, and its auxiliary data; none for what is not a node."""
    trees = jax_trees()

    def is_child(item: Any) -> bool:
        return item is not value

    # Not by the registry's `flatten_one_level_with_keys`, which gives all fields of a named tuple the name of the first
    # (JAX 0.10.2); nor the auxiliary data by it: JAX keeps none for a named tuple.
    pairs, structure = trees.tree_flatten_with_path(value, is_leaf=is_child)
    if structure == LEAF.treedef:
        return (), (), None
    return tuple(trees.keystr(path) for path, _ in pairs), tuple(child for _, child in pairs), structure.node_data()[1]
