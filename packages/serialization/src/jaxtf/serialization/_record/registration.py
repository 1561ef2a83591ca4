"""Which Python types have which names of pytree nodes in artifacts.

An artifact never holds code: a node of a custom type is a name and the bytes of its auxiliary
data, and the reader says which type the name means. Registering is once per type and name, for
the whole process. What a library registered with `jax.export` holds here too, after what is registered here.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from types import ModuleType
from typing import Any, TypeVar

from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._record.dataclass_fields import fields_of
from jaxtf.serialization._record.opaque import Opaque, OpaqueNode

__all__ = [
    "Registration",
    "jax_trees",
    "opaque_node_type",
    "register_library",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "registered_name",
    "registered_type",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Registration:
    """What is known of a custom pytree type.

    Attributes:
      node_type: The type.
      name: What it is called in artifacts.
      serialize_auxdata: From the auxiliary data that JAX keeps for a node to bytes.
      deserialize_auxdata: The reverse.
      from_children: From auxiliary data and children to a node, used in place of JAX's own.
      has_names: Whether the bytes have the values of static fields by their names.
    """

    node_type: type[Any]
    name: str
    serialize_auxdata: Callable[[Any], bytes]
    deserialize_auxdata: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None
    has_names: bool = False


_BY_TYPE: dict[type[Any], Registration] = {}
_BY_NAME: dict[str, Registration] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Registers how nodes of a custom pytree type are written to artifacts and read from them.

    The type is registered with JAX by `jax.tree_util.register_pytree_node` or the like; its
    auxiliary data is what that flattening function returns besides the children.

    Args:
      nodetype: The type.
      serialized_name: What it is called in artifacts; the same name when writing and reading.
      serialize_auxdata: From auxiliary data to bytes.
      deserialize_auxdata: From those bytes to equal auxiliary data; it receives bytes from the artifact, which may be
        damaged. Of a dataclass whose static fields are in another order than where the artifact was written, in the
        order that they have here; another order, or as many of other names, is refused.
      from_children: From auxiliary data and children to a node; by default as JAX does it.

    Returns:
      `nodetype`, so that this can decorate a class.

    Raises:
      ValueError: The type or the name is registered already.
    """
    return _register(
        Registration(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children), nodetype
    )


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Registers the name of a namedtuple type in artifacts; JAX flattens it by itself.

    Args:
      nodetype: A type made by `collections.namedtuple` or `typing.NamedTuple`. When an artifact is
        read, the type must have the fields that it had when the artifact was written.
      serialized_name: What it is called in artifacts; the same name when writing and reading.

    Returns:
      `nodetype`, so that this can decorate a class.

    Raises:
      ValueError: It is not a namedtuple type, or the type or the name is registered already.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> register_namedtuple_serialization(Point, serialized_name="docs.Point") is Point
    True
    """
    fields = getattr(nodetype, "_fields", None)
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and fields is not None):
        raise ValueError(
            f"{nodetype!r} is not a namedtuple type\n"
            "  remedy: register other types by register_pytree_node_serialization"
        )

    def check_fields(auxdata: bytes) -> None:
        found = tuple(_field_names(auxdata))
        if found != fields:
            raise ValueError(f"the fields of {nodetype} are {fields}, those in the artifact {found}")

    return _register(
        Registration(nodetype, serialized_name, lambda _: json.dumps(fields).encode(), check_fields), nodetype
    )


def registered_type(node_type: type[Any]) -> Registration | None:
    """What is registered for a type."""
    return _BY_TYPE.get(node_type) or _register_known(node_type) or _of_jax_export(node_type=node_type)


def registered_name(name: str) -> Registration | None:
    """What is registered for a name in artifacts."""
    known = _BY_NAME.get(name)
    if known is None and name in _JAX_NAMEDTUPLES:
        known = _register_known(_JAX_NAMEDTUPLES[name]())
    return known or _of_jax_export(name=name)


def _register(registration: Registration, node_type: type[T]) -> type[T]:
    before = _BY_TYPE.get(registration.node_type)
    if before is not None:
        raise ValueError(
            f"Duplicate serialization registration for type {registration.node_type}: "
            f"it is registered already, as {before.name!r}"
        )
    before = _BY_NAME.get(registration.name)
    if before is not None:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name {registration.name!r}: "
            f"it is registered for {before.node_type}"
        )
    _BY_TYPE[registration.node_type] = registration
    _BY_NAME[registration.name] = registration
    return node_type


def _of_jax_export(*, node_type: type[Any] | None = None, name: str | None = None) -> Registration | None:
    """What is registered for a type or a name with `jax.export`, and not here."""
    if "jax.export" not in sys.modules:
        return None
    found = _compatibility().registered_with_jax_export(node_type, name)
    if found is None or found[0] in _BY_TYPE or found[1] in _BY_NAME:
        return None
    return Registration(*found)


def jax_trees() -> ModuleType:
    """`jax.tree_util`, which takes custom types apart that only JAX knows."""
    from jax import tree_util

    return tree_util


@functools.cache
def opaque_node_type() -> type[OpaqueNode]:
    """The class of opaque nodes, which JAX knows from the first time on that it is asked for."""
    trees = jax_trees()

    def flatten_with_keys(node: OpaqueNode) -> tuple[list[tuple[Any, Any]], Opaque]:
        return [(_Step(key), child) for key, child in node.items()], node.opaque

    trees.register_pytree_with_keys(
        OpaqueNode, flatten_with_keys, OpaqueNode, lambda node: (node.children, node.opaque)
    )
    return OpaqueNode


@dataclass(frozen=True)
class _Step:
    """A key of JAX's whose text is the step itself."""

    text: str

    def __str__(self) -> str:
        return self.text


def register_library(library: str | ModuleType) -> tuple[str, ...]:
    """Registers the classes of a library that occur in pytrees, so that they are restored as the same classes.

    For libraries such as `optax` and `flax`: the library is imported, and each class of it that is a named tuple, a
    dataclass, or a state or variable of `flax.nnx` gets its qualified name. What such a class keeps
    besides its children must be plain (numbers, texts, tuples of these), or the node is written as an opaque one. Call
    it where artifacts are written and where they are read, with releases that have the classes.

    Args:
      library: The module, or its name, which is imported.

    Returns:
      The names that were registered; classes that were registered before are skipped.

    Raises:
      ImportError: There is no such library.

    >>> import types, typing
    >>> library = types.ModuleType("a_library")
    >>> library.State = typing.NamedTuple("State", [("count", int)])
    >>> library.State.__module__ = "a_library"
    >>> register_library(library)
    ('a_library.State',)
    """
    root = importlib.import_module(library) if isinstance(library, str) else library
    prefix = f"{root.__name__}."
    modules = [root, *(module for name, module in sorted(sys.modules.items()) if name.startswith(prefix))]
    classes = {
        f"{value.__module__}.{value.__qualname__}": value
        for module in modules
        for value in list(vars(module).values())
        if isinstance(value, type) and f"{value.__module__}.".startswith(prefix)
    }
    registered = []
    for name, node_type in sorted(classes.items()):
        if node_type in _BY_TYPE or name in _BY_NAME or "<" in name:
            continue
        if hasattr(node_type, "_fields") and issubclass(node_type, tuple):
            register_namedtuple_serialization(node_type, serialized_name=name)
        elif _keeps_plain_data(node_type):
            to_bytes, of_bytes = (functools.partial(take, node_type) for take in (_fields_bytes, _of_fields_bytes))
            _register(Registration(node_type, name, to_bytes, of_bytes, has_names=True), node_type)
        else:
            continue
        registered.append(name)
    return tuple(registered)


def _keeps_plain_data(node_type: type[Any]) -> bool:
    """Whether it is a class that may be a pytree node and says itself what it keeps besides its children."""
    bases = {f"{base.__module__}.{base.__qualname__}" for base in node_type.__mro__}
    return is_dataclass(node_type) or bool(bases & _NODES_OF_FLAX)


_NODES_OF_FLAX = {"flax.nnx.statelib.State", "flax.nnx.variablelib.Variable"}


def _literal_bytes(auxdata: Any) -> Any:
    """Plain data as a literal of Python; NotImplemented for others."""
    text = repr(auxdata)
    try:
        return text.encode() if ast.literal_eval(text) == auxdata else NotImplemented
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return NotImplemented


def _fields_bytes(node_type: type[Any], auxdata: Any) -> Any:
    """Auxiliary data of a class of a library: the static fields of a dataclass by their names, others as a literal."""
    fields = fields_of(node_type, jax_trees())
    if fields is None or not fields.static or not isinstance(auxdata, tuple) or len(auxdata) != len(fields.static):
        return _literal_bytes(auxdata)
    literal = _literal_bytes(dict(zip(fields.static, auxdata, strict=True)))
    return literal if literal is NotImplemented else _BY_NAMES + literal


def _of_fields_bytes(node_type: type[Any], auxdata: bytes) -> Any:
    """The reverse, in the order that the class has here; of artifacts without names, in the order that they have."""
    literal = ast.literal_eval(auxdata.removeprefix(_BY_NAMES).decode())
    if not auxdata.startswith(_BY_NAMES):
        return literal
    fields = fields_of(node_type, jax_trees())
    static = () if fields is None or fields.static is None else fields.static
    if not isinstance(literal, dict) or sorted(static) != sorted(map(str, literal)):
        here, written = (", ".join(map(repr, names)) or "none" for names in (static, literal))
        raise ValueError(f"its static fields are {here}, those in the artifact {written}")
    return tuple(literal[name] for name in static)


# Begins auxiliary data that are the static fields of a dataclass by their names.
_BY_NAMES = b"fields:"


def _compatibility() -> ModuleType:
    from jaxtf.serialization import _jax

    return _jax


def _field_names(auxdata: bytes) -> list[str]:
    """The names in the auxiliary data of a namedtuple or of an OrderedDict."""
    names = json.loads(auxdata)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected a JSON list of names, found {auxdata[:60]!r}")
    return names


def _ordered_dict_keys(keys: Sequence[Any]) -> bytes:
    if not all(isinstance(key, str) for key in keys):
        raise SerializationError(
            f"an OrderedDict can be written to an artifact only if its keys are strings; found {tuple(keys)}\n"
            "  remedy: use strings, or a dict"
        )
    return json.dumps(list(keys)).encode()


def _linalg_result_type(name: str) -> type[Any]:
    """The type of the results of `jax.numpy.linalg`'s functions, by its name, such as `EighResult`."""
    result_type: type[Any] = _compatibility().linalg_result_type(name)
    return result_type


_JAX_NAMEDTUPLES: Mapping[str, Callable[[], type[Any]]] = {
    f"jax.numpy.linalg.{name}": functools.partial(_linalg_result_type, name)
    for name in ("EighResult", "QRResult", "SVDResult", "SlogdetResult")
}


def _register_known(node_type: type[Any]) -> Registration | None:
    """Registers a namedtuple of jax.numpy.linalg when it is first met; None for any other type."""
    name = f"jax.numpy.linalg.{node_type.__name__}"
    if not node_type.__module__.startswith("jax.") or name not in _JAX_NAMEDTUPLES:
        return None
    register_namedtuple_serialization(node_type, serialized_name=name)
    return _BY_TYPE[node_type]


register_pytree_node_serialization(
    OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_ordered_dict_keys,
    deserialize_auxdata=lambda auxdata: tuple(_field_names(auxdata)),
)
