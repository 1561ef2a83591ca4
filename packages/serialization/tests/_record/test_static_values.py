"""Static values that JAX compares in a process are compared by an artifact in another one."""

import array
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import ipaddress
import json
import operator
import pathlib
import re
import statistics
import string
import struct
import subprocess
import sys
import types
import uuid
import zoneinfo
from typing import List, NamedTuple  # noqa: UP035, for values of typing's own

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental.layout import Layout
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from jaxtf.serialization import ArgumentMismatch, deserialize, export
from jaxtf.serialization._record.opaque import Opaque
from jaxtf.serialization._record.static_values import exact_text
from jaxtf.serialization._record.tree import CustomNode
from jaxtf.shapepoly import symbolic_shape

X = np.arange(4, dtype=np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Window:
    x: object
    rows: object = dataclasses.field(metadata={"static": True})


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass(frozen=True)
class Config:
    width: object


class Colors(enum.Flag):
    RED = 1
    BLUE = 2


class Text(str):
    pass


class Pixels(list):
    pass


class Thing:
    def __init__(self, value):
        self.value = value

    def method(self):
        return self.value


class Model(Thing):
    pass


def artifact(static):
    return deserialize(export(lambda window: window.x * 2)(Window(X, static)).serialize())


def is_accepted(loaded, static):
    try:
        loaded.call(Window(X, static))
    except ArgumentMismatch:
        return False
    return True


def inside(value):
    held = [value]
    held.append(held)
    return held


MESH, OTHER_MESH = AbstractMesh((2, 4), ("x", "y")), AbstractMesh((4, 2), ("x", "y"))
HERE, ELSEWHERE = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
DAY = datetime.datetime(2024, 1, 2, 3)
BATCH, LENGTH = symbolic_shape("b, n")
DIMENSIONS = jax.lax.GatherDimensionNumbers((0,), (0,), (0,))
CONVOLUTION = jax.lax.conv_dimension_numbers((1, 2, 3, 3), (1, 2, 3, 3), None)
RECORD = np.dtype([("a", "i1"), ("b", "f4")], align=True)

# Of each, values that differ; each is equal to a copy of itself.
DIFFERENT = {
    "slice": [slice(0, 2), slice(2, 4), slice(0, 2, 1), (0, 2, None)],
    "range": [range(2), range(2, 4), range(0, 4, 2), range(0), [0, 1]],
    "bytes": [bytearray(b"a"), bytearray(b"b"), b"a", memoryview(b"a"), memoryview(b"b")],
    "deque": [collections.deque([1]), collections.deque([2]), collections.deque([1], 3), [1]],
    "singletons": [..., NotImplemented, None],
    "mappings": [
        collections.Counter(a=1),
        collections.Counter(a=2),
        collections.OrderedDict(a=1, b=2),
        collections.OrderedDict(b=2, a=1),
        collections.defaultdict(int, a=1),
        collections.defaultdict(list, a=1),
        collections.ChainMap({"a": 1}),
        collections.UserDict(a=1),
        {"a": 1},
    ],
    "derived": [Text("a"), Text("b"), "a", Pixels([1]), Pixels([2]), [1], collections.UserList([1])],
    "itself": [inside(1), inside(2)],
    "numbers": [decimal.Decimal(1), decimal.Decimal("1.0"), fractions.Fraction(1, 2), fractions.Fraction(1, 3), 1, 1.0],
    "large": [10**5000, 10**5000 + 1, -(10**5000)],
    "moments": [DAY, DAY.replace(fold=1), DAY.replace(tzinfo=HERE), DAY.replace(tzinfo=ELSEWHERE), DAY.date()],
    "times": [DAY.time(), DAY.time().replace(hour=4), datetime.timedelta(1), datetime.timedelta(2), HERE, ELSEWHERE],
    "zones": [zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo("Asia/Tokyo")],
    "paths": [pathlib.Path("a"), pathlib.Path("b"), pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("a"), "a"],
    "patterns": [re.compile("a"), re.compile("b"), re.compile("a", re.IGNORECASE), string.Template("a")],
    "identities": [uuid.UUID(int=1), uuid.UUID(int=2), struct.Struct("<i"), struct.Struct("<f")],
    "addresses": [*map(ipaddress.ip_address, ("10.0.0.1", "10.0.0.2", "::1")), ipaddress.ip_network("10.0.0.0/24")],
    "namespaces": [types.SimpleNamespace(a=1), types.SimpleNamespace(a=2), types.SimpleNamespace(b=1)],
    "arrays": [array.array("i", [1]), array.array("i", [2]), array.array("q", [1])],
    "annotations": [list[int], list[float], int | str, int | bytes, List[int], List[float]],  # noqa: UP006
    "signatures": [inspect.signature(Thing), inspect.signature(Pair), inspect.signature(exact_text)],
    "statistics": [statistics.NormalDist(0, 1), statistics.NormalDist(1, 1)],
    "enumerations": [Colors.RED, Colors.BLUE, Colors.RED | Colors.BLUE, Colors(0)],
    "operators": [
        operator.itemgetter(0),
        operator.itemgetter(1),
        operator.itemgetter(0, 1),
        operator.attrgetter("a"),
        operator.attrgetter("b"),
        operator.methodcaller("sum", 1),
        operator.methodcaller("sum", 2),
        operator.methodcaller("sum", axis=2),
    ],
    "partial": [functools.partial(max, 1), functools.partial(max, 2), jax.tree_util.Partial(max, 1)],
    "methods": ["a".upper, "a".lower, "b".upper, "a".upper(), (1).__add__, (2).__add__, str.upper, str.lower],
    "bound": [Thing(1).method, Config(1).__eq__, dict.fromkeys, np.array, len, Thing.method, Config(2).__eq__],
    "modules": [np, jnp, jax.nn],
    "types": [Thing, Model, int, jnp.float32, np.float32, jnp.float64],
    "unknown": [Thing(1), Model(1), lambda: 1, object()],
    "ufuncs": [np.sin, np.cos, jnp.sin, jnp.cos],
    "numpy scalars": [
        *map(np.datetime64, ("2020", "2021", "2020-01-01")),
        np.datetime64("nat", "s"),
        np.timedelta64(1, "s"),
        np.timedelta64(2, "s"),
        np.longdouble(1),
        np.longdouble(1) / 3,
        np.str_("a"),
        np.bytes_(b"a"),
        np.bool_(True),
        jnp.bfloat16(1.5),
        jnp.bfloat16(2.5),
        jnp.float8_e4m3fn(1.5),
        np.zeros((), RECORD)[()],
        np.ones((), RECORD)[()],
        np.void(b"a"),
        np.void(b"b"),
    ],
    "numpy arrays": [
        np.arange(3),
        np.arange(1, 4),
        np.arange(3.0),
        np.arange(3)[None],
        np.arange(1000),
        np.arange(1000)[::-1],
        np.array([None, "a"]),
        np.array([None, "b"]),
        np.ma.masked_array([1, 2], [0, 1]),
        np.ma.masked_array([1, 2], [1, 0]),
        jnp.arange(3),
        jnp.arange(1, 4),
    ],
    "polynomials": [
        np.polynomial.Polynomial([1, 2]),
        np.polynomial.Polynomial([1, 3]),
        np.polynomial.Chebyshev([1, 2]),
        np.poly1d([1, 2]),
        np.poly1d([1, 3]),
        np.finfo(np.float32),
        np.finfo(np.float64),
    ],
    "specs": [
        PartitionSpec("a"),
        PartitionSpec("b"),
        PartitionSpec("a", None, "b"),
        PartitionSpec(("a", "b")),
        PartitionSpec(PartitionSpec.UNCONSTRAINED),
        PartitionSpec("a", unreduced={"b"}),
        PartitionSpec(),
    ],
    "meshes": [MESH, OTHER_MESH, AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Manual,) * 2)],
    "shardings": [
        NamedSharding(MESH, PartitionSpec("x")),
        NamedSharding(MESH, PartitionSpec("y")),
        NamedSharding(OTHER_MESH, PartitionSpec("x")),
        NamedSharding(MESH, PartitionSpec("x"), memory_kind="pinned_host"),
    ],
    "layouts": [Layout((0, 1)), Layout((1, 0)), Layout((0, 1), ((8, 128),))],
    "dimensions": [DIMENSIONS, DIMENSIONS._replace(offset_dims=(1,)), CONVOLUTION, tuple(CONVOLUTION)],
    "specifications": [
        jax.ShapeDtypeStruct((2,), jnp.float32),
        jax.ShapeDtypeStruct((2,), jnp.int32),
        jax.ShapeDtypeStruct((3,), jnp.float32),
        jax.core.ShapedArray((2,), jnp.float32),
        jax.core.ShapedArray((2,), jnp.float32, weak_type=True),
    ],
    "trees": [*map(jax.tree.structure, ((1, 2), [1, 2], {"a": 1}, {"b": 1}, Pair(1, 2), Window(1, 2), Window(1, 3)))],
    "keys": [jax.random.key(0), jax.random.key(1), jax.random.key(0).dtype, jax.random.key(0, impl="rbg").dtype],
    "sizes": [BATCH, LENGTH, 2 * BATCH, BATCH + 1],
    "precisions": [jax.lax.Precision.HIGH, jax.lax.Precision.DEFAULT, jax.lax.DotAlgorithmPreset.F32_F32_F32],
    "functions": [jnp.add, jnp.multiply, jax.nn.relu, jax.nn.gelu, jax.nn.initializers.zeros, jax.nn.initializers.ones],
}


@pytest.mark.parametrize("values", DIFFERENT.values(), ids=DIFFERENT)
def test_values_that_differ_have_other_texts_and_copies_the_same(values):
    texts = list(map(exact_text, values))
    assert len(set(texts)) == len(texts), texts
    copies = [copied(value) for value in values]
    assert texts == list(map(exact_text, copies))


def copied(value):
    if hasattr(value, "__wrapped__") or isinstance(value, type(jnp.add)):  # a function that is known by its name
        return value
    try:
        return copy.deepcopy(value)
    except (TypeError, ValueError):
        return value


@pytest.mark.parametrize("name", ["slice", "range", "deque", "specs", "methods", "sizes", "moments", "operators"])
def test_an_artifact_refuses_other_static_values(name):
    exported, *others = DIFFERENT[name]
    loaded = artifact(exported)
    assert is_accepted(loaded, copied(exported))
    assert not any(is_accepted(loaded, other) for other in others)


def test_an_artifact_gives_no_numbers_of_other_rows():
    loaded = deserialize(export(lambda window: window.x[window.rows].sum())(Window(X, slice(0, 2))).serialize())
    np.testing.assert_array_equal(loaded.call(Window(X, slice(0, 2))), 1)
    with pytest.raises(
        ArgumentMismatch, match=r"'rows': slice\(0, 2, None\)\}, as exported; found .*slice\(2, 4, None"
    ):
        loaded.call(Window(X, slice(2, 4)))
    with pytest.raises(ArgumentMismatch, match=r"slice\(2, 4, None\)"):
        loaded.lift()(Window(X, slice(2, 4)))


def test_order_of_items_devices_and_the_way_that_a_range_was_made_are_not_of_the_value():
    assert is_accepted(artifact({"a": 1, "b": (2,)}), {"b": (2,), "a": 1})
    assert is_accepted(artifact(functools.partial(max, key=1, default=2)), functools.partial(max, default=2, key=1))
    assert range(0, 3, 2) == range(0, 4, 2)
    assert is_accepted(artifact(range(0, 3, 2)), range(0, 4, 2))
    devices = np.array(jax.devices()[:8])
    one, other = (Mesh(order.reshape(2, 4), ("x", "y")) for order in (devices, devices[::-1]))
    spec = PartitionSpec("x")
    assert is_accepted(artifact(NamedSharding(one, spec)), NamedSharding(other, spec))


def test_of_closures_and_objects_the_type_is_compared():
    closures = [lambda x: x, lambda x: 0]
    assert is_accepted(artifact(closures[0]), closures[1])
    assert is_accepted(artifact(Thing(1)), Thing(2))
    assert not is_accepted(artifact(Thing(1)), Model(1))
    assert not is_accepted(artifact(Thing(1)), closures[0])
    assert is_accepted(artifact(Thing(1).method), Thing(2).method)
    assert not is_accepted(artifact(Thing(1).method), Thing(2).__init__)


class Fails:
    @property
    def __wrapped__(self):
        raise RuntimeError


def test_a_value_that_cannot_be_read_has_the_text_of_its_type():
    assert exact_text((1, Fails())) == f"(1, ?{__name__}.Fails)"
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    assert exact_text(deep) == "?too deep"


def test_artifacts_of_earlier_releases_are_compared_as_those_did():
    static = (slice(0, 2), {"b": 1, "a": 2})
    node = jax.tree.structure(Window(X, static)).node_data()
    written = Opaque.of_artifact(*CustomNode(*node, child_count=1).for_artifact())
    assert written.static == "{'rows': (?, {'b': 1, 'a': 2})}"
    assert written.exact == "{'rows': (slice(0, 2, None), {'a': 2, 'b': 1})}"
    earlier = json.dumps({"keys": [".x"], "static": written.static}).encode()
    assert Opaque.of_artifact("jaxtf.opaque:a.Window", earlier).exact is None
    loaded = artifact(static)
    child = loaded.in_structure.children[0].children[0]
    old = dataclasses.replace(child, custom=CustomNode(name="jaxtf.opaque:a.Window", auxdata_bytes=earlier))
    assert old.flatten(Window(X, static)) == [X]
    assert old.flatten(Window(X, (slice(2, 4), {"b": 1, "a": 2})))
    with pytest.raises(ArgumentMismatch, match=r"auxiliary data .*'a': 2.*; found .*'a': 3"):
        old.flatten(Window(X, (slice(0, 2), {"b": 1, "a": 3})))
    # What one returned is taken by the other, and is compared by what both have.
    assert len(old.flatten(child.unflatten([X]))) == len(child.flatten(old.unflatten([X]))) == 1


PROCESS = """
import collections, datetime, decimal, enum, fractions, functools, json, pathlib, re, sys, uuid
import jax, numpy as np
from jaxtf.serialization._record.static_values import exact_text
values = [
    {"b", "a", "c"}, {"x": slice(1), "y": range(3)}, frozenset({("a", 1), ("b", 2)}), decimal.Decimal("1.5"),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), fractions.Fraction(1, 3), re.compile("a+"),
    uuid.UUID(int=5), functools.partial(max, key=abs, default=2), np.dtype("f4"), np.arange(100), jax.nn.relu,
    jax.sharding.PartitionSpec("a", unreduced={"b", "c"}), jax.sharding.AbstractMesh((2,), ("x",)), lambda x: x,
    jax.tree.structure({"a": (1, 2)}), "a".upper, int | str,
]
print(json.dumps(list(map(exact_text, values))))
"""


def test_texts_are_the_same_in_every_process(monkeypatch):
    outputs = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        outputs.append(json.loads(subprocess.check_output([sys.executable, "-c", PROCESS], timeout=300)))
    assert outputs[0] == outputs[1]


def test_the_texts_that_artifacts_have_stay_what_they_are():
    texts = {
        "(slice(0, 2, None), range(0, 3, 1), bytearray(b'a'), deque([1], None))": (
            (slice(0, 2), range(3), bytearray(b"a"), collections.deque([1]))
        ),
        "{'a': frozenset({1, 2}), 'b': dtype(float32), 'c': scalar(dtype(int8), 1)}": {
            "b": np.dtype("f4"),
            "a": frozenset({1, 2}),
            "c": np.int8(1),
        },
        "(PartitionSpec('a', UNCONSTRAINED), Decimal('1.5'), method('a', upper), partial(builtins.max, (1,), {}))": (
            (
                PartitionSpec("a", PartitionSpec.UNCONSTRAINED),
                decimal.Decimal("1.5"),
                "a".upper,
                functools.partial(max, 1),
            )
        ),
        "jax.ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))": CONVOLUTION,
        f"(?{__name__}.Thing, ?function, ?{__name__}.Text('a'))": (Thing(1), lambda x: x, Text("a")),
    }
    assert list(map(exact_text, texts.values())) == list(texts)


# Values whose equality in Python is that of all that they are: none of 1, 1.0 and True.
SMALL = st.integers(2, 4)
LEAVES = st.one_of(
    SMALL,
    SMALL.map(lambda n: n + 0.5),
    SMALL.map(str),
    SMALL.map(bytes),
    SMALL.map(bytearray),
    st.sampled_from([None, True, ..., Colors.RED, Colors.BLUE, jax.nn.relu, jax.nn.gelu, len, int, np.dtype("i2")]),
    st.builds(slice, SMALL, st.none() | SMALL),
    st.builds(range, SMALL, SMALL.map(lambda n: n + 2), st.integers(1, 2)),
    st.builds(PartitionSpec, st.sampled_from(["a", "b", None]), st.sampled_from(["c", ("d", "e")])),
    SMALL.map(lambda n: datetime.date(2024, 1, n)),
    SMALL.map(lambda n: datetime.timedelta(seconds=n)),
    SMALL.map(lambda n: decimal.Decimal(n) / 8),
    SMALL.map(lambda n: fractions.Fraction(n, 7)),
    SMALL.map(lambda n: pathlib.PurePosixPath(str(n))),
    SMALL.map(lambda n: uuid.UUID(int=n)),
    SMALL.map(lambda n: re.compile("a" * n)),
    SMALL.map(lambda n: jax.ShapeDtypeStruct((n,), jnp.float32)),
    SMALL.map(lambda n: Layout(tuple(range(n)))),
    SMALL.map(lambda n: symbolic_shape("b")[0] * n),
    SMALL.map(lambda n: np.polynomial.Polynomial([n, 1])),
    SMALL.map(lambda n: array.array("i", [n])),
)


def holding(inner):
    keys = st.sampled_from(["a", "b", 5, (6, "c")])
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(collections.deque),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
        st.dictionaries(keys, inner, max_size=2).map(types.MappingProxyType),
        st.frozensets(SMALL | SMALL.map(str), max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Config, inner),
        inner.map(lambda value: types.SimpleNamespace(a=value)),
    )


VALUES = st.recursive(LEAVES, holding, max_leaves=6)


@st.composite
def pairs(draw):
    """Two values, often equal or almost: both are made of the same parts but, perhaps, one."""
    held = draw(VALUES)
    other = draw(st.one_of(st.just(held), VALUES))
    wrap = draw(st.sampled_from([tuple, list, lambda items: dict(enumerate(items)), collections.deque]))
    around = draw(st.lists(VALUES, max_size=2))
    items = [wrap([*around, value]) for value in (held, other)]
    if isinstance(items[1], dict):
        items[1] = dict(reversed(items[1].items()))
    return items


def is_same(one, other):
    """Equality of Python, which takes a named tuple for a tuple; a dictionary for an ordered one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list | collections.deque) and not isinstance(one, PartitionSpec):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict | types.MappingProxyType):
        ordered = not isinstance(one, collections.OrderedDict) or list(one) == list(other)
        return ordered and one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, Config | types.SimpleNamespace):
        return vars(one).keys() == vars(other).keys() and all(map(is_same, vars(one).values(), vars(other).values()))
    return bool(one == other)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(pair=pairs())
def test_a_call_is_refused_exactly_if_the_static_value_is_another(pair):
    exported, called = pair
    assert is_accepted(artifact(exported), called) == is_same(exported, called)
