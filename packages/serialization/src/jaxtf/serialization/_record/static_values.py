"""Static values as texts that are equal where the values are, in every process: `exact_text`.

Such a value is auxiliary data of a node of a class that nobody registered. Values of Python, its standard library,
NumPy and JAX have a text, also inside of each other, of the type and of all that a computation can see of it: `1`,
`1.0` and `True` differ, as do two deques of other lengths at most. The order of sets and of dictionaries (but an
`OrderedDict`) is not part of it, nor are the devices of a mesh, which another process may not have. Enumerations,
dataclasses, named tuples and what a module has by a name have one of their names and parts.

What another process cannot compare has a text of its type alone, after a `?`: closures, and objects of the user's
classes, whose attributes may be caches or hashes that differ from process to process.

Method: a table of types, each with the parts that make up its value. Types are found in modules that are loaded:
nothing is imported. Knows values; nothing of pytrees or artifacts.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jaxtf.serialization._record.opaque import UNKNOWN, name_in_module, shortened
from jaxtf.serialization._record.shardings import OWN_MEMORY

__all__ = ["exact_text"]

_Parts: TypeAlias = Callable[[Any], tuple[Any, ...]]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented))
_LONGEST_DECIMAL = 10_000  # bits; Python refuses decimals of more digits (sys.set_int_max_str_digits)
_SMALL_ARRAY = 32


def exact_text(value: Any) -> str:
    """The text of a value; one that is long ends in its digest.

    >>> exact_text((slice(0, 2), {"b": 1, "a": range(3)}, lambda x: x, object()))
    "(slice(0, 2, None), {'a': range(0, 3, 1), 'b': 1}, ?function, ?builtins.object)"
    """
    try:
        return shortened(_Writer().text(value))
    except RecursionError:
        return "?too deep"


def _attributes(*names: str) -> _Parts:
    return lambda value: tuple(getattr(value, name, None) for name in names)


def _reduced(value: Any) -> tuple[Any, ...]:
    made, arguments = value.__reduce__()[:2]
    return (*arguments,) if made is type(value) else (made, *arguments)


def _range(value: range) -> tuple[int, ...]:
    """Equal ranges have the same numbers, however they were made."""
    if len(value) < 2:
        return (value[0], value[0] + 1, 1) if value else (0, 0, 1)
    return value[0], value[-1] + (1 if value.step > 0 else -1), value.step


def _moment(value: Any) -> tuple[Any, ...]:
    return repr(value.replace(tzinfo=None)), value.tzinfo


def _partition_spec(value: Any) -> tuple[Any, ...]:
    # JAX 0.10 has no `partitions`; releases before 0.6 no reductions.
    partitions = value.partitions if hasattr(value, "partitions") else tuple(value)
    kind = getattr(value, "unreduced_kind", None)
    reduced = (frozenset(getattr(value, "unreduced", ())), frozenset(getattr(value, "reduced", ())))
    unconstrained = type(value).UNCONSTRAINED
    return (
        *(_Verbatim("UNCONSTRAINED") if names is unconstrained else names for names in partitions),
        *([] if reduced == (frozenset(), frozenset()) else [*reduced, getattr(kind, "name", kind)]),
    )


def _mesh(value: Any) -> tuple[Any, ...]:
    mesh = value.abstract_mesh
    return mesh.axis_names, mesh.axis_sizes, mesh.axis_types


def _named_sharding(value: Any) -> tuple[Any, ...]:
    return *_mesh(value.mesh), value.spec, None if value.memory_kind in OWN_MEMORY else value.memory_kind


def _treedef(value: Any) -> tuple[Any, ...]:
    node_data = value.node_data()
    return (_Verbatim("*"),) if node_data is None else (*node_data, *value.children())


def _jax_array(value: Any) -> tuple[Any, ...]:
    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return value.dtype, numpy.asarray(jax.random.key_data(value))
    return value.weak_type, numpy.asarray(value)


def _array(value: Any) -> tuple[Any, ...]:
    """The numbers of an array: all of a small one, the digest of the bytes of others.

    Bytes between the fields of a record, and at the end of a long double, are not of the value.
    """
    has_padding = value.dtype.names is not None or value.dtype.char in "gG"
    if value.dtype.hasobject or has_padding or (value.size <= _SMALL_ARRAY and value.dtype.kind in "biufcSU"):
        return value.dtype, value.shape, value.tolist()
    return value.dtype, value.shape, _Verbatim(hashlib.sha256(value.tobytes()).hexdigest())


def _scalar(value: Any) -> tuple[Any, ...]:
    """A scalar of NumPy: as Python has it, if that is exact."""
    item = value.item()
    return value.dtype, item if type(item) in (*_PLAIN, tuple) else str(value)


def _dtype(value: Any) -> tuple[Any, ...]:
    # The name of a structured dtype is its size alone; that of one in another byte order is the same.
    is_named = value.isnative and value.kind in "biufc" and value.subdtype is None
    return (_Verbatim(value.name if is_named else repr(value)),)


_DATE, _NETWORK, _SERIES = _attributes("year", "month", "day"), lambda value: (str(value),), "coef domain window symbol"

# The public name of each type, and what its value is made of. `label` in the text is the last part of the name.
_PARTS: dict[str, _Parts] = {
    "builtins.slice": _attributes("start", "stop", "step"),
    "builtins.range": _range,
    "builtins.bytearray": lambda value: (bytes(value),),
    "builtins.memoryview": lambda value: (value.format, value.shape, value.tobytes()),
    "builtins.property": _attributes("fget", "fset", "fdel"),
    "builtins.staticmethod": _attributes("__func__"),
    "builtins.classmethod": _attributes("__func__"),
    "array.array": lambda value: (value.typecode, value.tolist()),
    "collections.deque": lambda value: (list(value), value.maxlen),
    "collections.UserList": _attributes("data"),
    "collections.UserString": _attributes("data"),
    "datetime.date": _DATE,
    "datetime.datetime": _moment,
    "datetime.time": _moment,
    "datetime.timedelta": _attributes("days", "seconds", "microseconds"),
    "datetime.timezone": lambda value: (value.utcoffset(None), value.tzname(None)),
    "decimal.Decimal": lambda value: (str(value),),
    "fractions.Fraction": _attributes("numerator", "denominator"),
    "inspect.Parameter": _attributes("name", "kind", "default", "annotation"),
    "inspect.Signature": lambda value: (list(value.parameters.values()), value.return_annotation),
    "ipaddress.IPv4Address": _NETWORK,
    "ipaddress.IPv4Interface": _NETWORK,
    "ipaddress.IPv4Network": _NETWORK,
    "ipaddress.IPv6Address": _NETWORK,
    "ipaddress.IPv6Interface": _NETWORK,
    "ipaddress.IPv6Network": _NETWORK,
    "operator.attrgetter": _reduced,
    "operator.itemgetter": _reduced,
    "operator.methodcaller": _reduced,
    "pathlib.PosixPath": _NETWORK,
    "pathlib.PurePosixPath": _NETWORK,
    "pathlib.PureWindowsPath": _NETWORK,
    "pathlib.WindowsPath": _NETWORK,
    "re.Pattern": _attributes("pattern", "flags"),
    "statistics.NormalDist": _attributes("mean", "stdev"),
    "string.Template": _attributes("template"),
    "struct.Struct": _attributes("format"),
    "types.GenericAlias": _attributes("__origin__", "__args__"),
    "types.ModuleType": _attributes("__name__"),
    "types.SimpleNamespace": lambda value: (vars(value),),
    "types.UnionType": lambda value: (frozenset(value.__args__),),
    "uuid.UUID": lambda value: (str(value),),
    "zoneinfo.ZoneInfo": _attributes("key"),
    "numpy.ndarray": _array,
    "numpy.finfo": _attributes("dtype"),
    "numpy.iinfo": _attributes("dtype"),
    "numpy.ma.MaskedArray": _attributes("data", "mask", "fill_value"),
    "numpy.poly1d": _attributes("coeffs", "variable"),
    "numpy.polynomial.Chebyshev": _attributes(*_SERIES.split()),
    "numpy.polynomial.Hermite": _attributes(*_SERIES.split()),
    "numpy.polynomial.HermiteE": _attributes(*_SERIES.split()),
    "numpy.polynomial.Laguerre": _attributes(*_SERIES.split()),
    "numpy.polynomial.Legendre": _attributes(*_SERIES.split()),
    "numpy.polynomial.Polynomial": _attributes(*_SERIES.split()),
    "jax.ShapeDtypeStruct": _attributes("shape", "dtype", "weak_type", "sharding"),
    "jax.core.ShapedArray": lambda value: (value.shape, value.dtype, value.weak_type, value.sharding, str(value)),
    "jax.experimental.layout.Format": _attributes("layout", "sharding"),
    "jax.experimental.layout.Layout": _attributes("major_to_minor", "tiling", "sub_byte_element_size_in_bits"),
    "jax.sharding.AbstractMesh": _attributes("axis_names", "axis_sizes", "axis_types"),
    "jax.sharding.Mesh": _mesh,
    "jax.sharding.NamedSharding": _named_sharding,
    "jax.sharding.PartitionSpec": _partition_spec,
    "jax.tree_util.PyTreeDef": _treedef,
}
# Types of the interpreter whose values belong to a class, which has them by their names.
_OF_A_CLASS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


@dataclasses.dataclass(frozen=True)
class _Verbatim:
    """A part that is a text already."""

    text: str


class _Writer:
    """Writes one text; knows the values that it is inside of, which may hold themselves."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind in _PLAIN:
            return _plain(kind, value)
        if kind is _Verbatim:
            return str(value.text)
        if id(value) in self._open:
            return f"<itself, {len(self._open) - self._open.index(id(value))} up>"
        self._open.append(id(value))
        try:
            return self._composite(kind, value)
        except RecursionError:
            raise
        except Exception:  # of a class whose parts cannot be read
            return UNKNOWN + _name_of(kind)
        finally:
            self._open.pop()

    def _composite(self, kind: type[Any], value: Any) -> str:
        if kind is tuple:
            return f"({self._joined(value)}{',' * (len(value) == 1)})"
        if kind is list:
            return f"[{self._joined(value)}]"
        if kind in (set, frozenset):
            return f"{kind.__name__}({{{', '.join(sorted(map(self.text, value)))}}})"
        if kind is dict:
            return self._mapping(value)
        if (known := _known_parts(kind)) is not None:
            label, parts = known
            return f"{label}({self._joined(parts(value))})"
        if isinstance(value, type):
            name = name_in_module(value)
            return _name_of(value) if name == UNKNOWN else name
        return self._of_class(kind, value) or self._of_library(kind, value) or self._callable(kind, value)

    def _joined(self, items: Iterable[Any]) -> str:
        return ", ".join(map(self.text, items))

    def _mapping(self, value: Mapping[Any, Any]) -> str:
        items = [f"{self.text(key)}: {self.text(item)}" for key, item in value.items()]
        return f"{{{', '.join(items if isinstance(value, OrderedDict) else sorted(items))}}}"

    def _of_class(self, kind: type[Any], value: Any) -> str:
        """Of a class that says what its parts are; nothing for others."""
        if isinstance(value, Mapping):
            factory = f"({self.text(value.default_factory)})" if hasattr(value, "default_factory") else ""
            return f"{_name_of(kind)}{factory}{self._mapping(value)}"
        if isinstance(value, functools.partial):
            label = "partial" if kind is functools.partial else _name_of(kind)
            return f"{label}({self._joined((value.func, value.args, value.keywords))})"
        if isinstance(value, enum.Enum):
            return f"{_name_of(kind)}.{value.name if value.name is not None else self.text(value.value)}"
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return f"{_name_of(kind)}{self.text(tuple(value))}"
        if dataclasses.is_dataclass(value):
            missing = _Verbatim("missing")
            names = [field.name for field in dataclasses.fields(value)]
            fields = [f"{name}={self.text(getattr(value, name, missing))}" for name in names]
            return f"{_name_of(kind)}({', '.join(fields)})"
        return ""

    def _of_library(self, kind: type[Any], value: Any) -> str:
        """Of types of NumPy and JAX of which there are many; nothing for others."""
        numpy, jax = sys.modules.get("numpy"), sys.modules.get("jax")
        if numpy is not None:
            if isinstance(value, numpy.dtype):
                return f"dtype({self._joined(_dtype(value))})"
            if isinstance(value, numpy.generic):
                return f"scalar({self._joined(_scalar(value))})"
            name = getattr(value, "__name__", "")
            if kind is numpy.ufunc and getattr(numpy, name, None) is value:
                return f"numpy.{name}"
        if jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            return f"jax.Array({self._joined(_jax_array(value))})"
        if jax is not None and kind.__module__.partition(".")[0] in ("jax", "jaxlib"):
            scalar = getattr(value, "type", None)
            if isinstance(scalar, type) and issubclass(scalar, jax.dtypes.extended):
                return f"dtype({value.name})"
        sizes = sys.modules.get("jaxtf.shapepoly")
        return f"size({value})" if sizes is not None and sizes.is_symbolic_dim(value) else ""

    def _callable(self, kind: type[Any], value: Any) -> str:
        """Of a function or a method; then of what is derived from a known type, or unknown."""
        if (name := name_in_module(value)) != UNKNOWN:
            return name
        if isinstance(value, _METHODS):
            owner = value.__self__
            if isinstance(owner, types.ModuleType):
                return f"{owner.__name__}.{value.__name__}"
            function = value.__func__ if isinstance(value, types.MethodType) else _Verbatim(value.__name__)
            return f"method({self._joined((owner, function))})"
        if isinstance(value, _OF_A_CLASS):
            return f"{self.text(value.__objclass__)}.{value.__name__}"
        if kind.__module__ == "typing" and hasattr(value, "__origin__"):
            return f"{_name_of(kind)}({self._joined((value.__origin__, value.__args__))})"
        if callable(value) and (hasattr(value, "__wrapped__") or hasattr(value, "__name__")):
            return f"{UNKNOWN}function"
        for base in kind.__mro__[1:]:
            if base in (int, float, complex, str, bytes, tuple, list, set, frozenset):
                return f"{UNKNOWN}{_name_of(kind)}({self.text(_as(base, value))})"
            if (known := _known_parts(base)) is not None:
                return f"{UNKNOWN}{_name_of(kind)}({self._joined(known[1](value))})"
        return UNKNOWN + _name_of(kind)


def _as(base: type[Any], value: Any) -> Any:
    """What a value of a derived class is of a type of Python; not by the methods of the derived class."""
    if base in (int, float, complex):
        return base.__pos__(value)
    if base in (str, bytes):
        return base.__getitem__(value, slice(None)) if base is bytes else str.__str__(value)
    return base(base.__iter__(value))


def _plain(kind: type[Any], value: Any) -> str:
    if kind is str:
        return ascii(value)
    if kind is int and value.bit_length() > _LONGEST_DECIMAL:
        return hex(value)
    return repr(value)


def _name_of(kind: type[Any]) -> str:
    """The name of a class, for texts; JAX moves its private modules, which are left out of the names of its classes."""
    root = kind.__module__.partition(".")[0]
    return f"{'jax' if root in ('jax', 'jaxlib') else kind.__module__}.{kind.__qualname__}"


def _known_parts(kind: type[Any]) -> tuple[str, _Parts] | None:
    """What the table has for a type; a type that it has is of a module that is loaded."""
    if (known := _FOUND.get(kind)) is not None:
        return known
    loaded = len(sys.modules)
    if kind.__module__.partition(".")[0] not in _ROOTS or _MISSED.get(kind) == loaded:
        return None
    for name, parts in _PARTS.items():
        module, _, label = name.rpartition(".")
        if module in sys.modules and getattr(sys.modules[module], label, None) is kind:
            known = _FOUND[kind] = label, parts
            return known
    _MISSED[kind] = loaded
    return None


_FOUND: dict[type[Any], tuple[str, _Parts]] = {}
# How many modules were loaded when a type was not found: it may be in one that is loaded later.
_MISSED: dict[type[Any], int] = {}
_ROOTS = {
    *(name.partition(".")[0] for name in _PARTS),
    *("jaxlib", "_struct", "_decimal", "_operator", "_collections"),
}
