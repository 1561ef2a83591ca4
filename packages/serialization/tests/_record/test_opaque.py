"""Trees of classes that are not registered: what an artifact keeps of them, and what it accepts in their place."""

import copy
import dataclasses
import enum
import functools
import importlib
import json
import pickle
import sys
import tracemalloc
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    OpaqueNode,
    describe,
    deserialize,
    export,
    load,
    register_library,
    save,
)
from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.trees import tree
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.opaque import static_text
from jaxtf.serialization._record.registration import registered_type
from jaxtf.serialization._record.tree import CustomNode, Tree

X = np.arange(3, dtype=np.float32)


class Moments(NamedTuple):
    count: object
    mu: object


class Twin(NamedTuple):
    count: object
    mu: object


class Other(NamedTuple):
    mu: object
    count: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    params: object
    moments: object
    decay: float = dataclasses.field(default=0.5, metadata={"static": True})
    apply: object = dataclasses.field(default=abs, metadata={"static": True})


@jax.tree_util.register_pytree_node_class
class Looks:
    """Of a class that looks at its children when it is made, and names no keys."""

    def __init__(self, array):
        self.shape = array.shape
        self.array = array

    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, auxdata, children):
        made = object.__new__(cls)
        (made.array,) = children
        made.shape = getattr(made.array, "shape", "?")
        return made


def step(state, x):
    moments = Moments(state.moments.count + 1, state.moments.mu * state.decay + x)
    return dataclasses.replace(state, params={"w": state.params["w"] - moments.mu}, moments=moments)


def start(**static):
    return State({"w": X}, Moments(np.int32(0), X), **static)


@pytest.fixture(scope="module")
def artifact():
    return bytes(export(step)(start(), X).serialize(vjp_order=1))


def test_a_record_with_unregistered_classes_comes_back_equal(artifact):
    assert deserialize(artifact).has_same_function(export(step)(start(), X))
    assert [argument.path for argument in describe(artifact).function.arguments] == [
        "args[0].params['w']",
        "args[0].moments.count",
        "args[0].moments.mu",
        "args[1]",
    ]


def test_a_call_takes_the_class_itself_and_gives_an_opaque_node(artifact):
    result = deserialize(artifact).call(start(), X)
    expected = step(start(), X)
    assert isinstance(result, OpaqueNode)
    np.testing.assert_array_equal(result.params["w"], expected.params["w"])
    assert int(result.moments.count) == 1
    assert jax.tree.structure(jax.tree.map(jnp.sin, result)) == jax.tree.structure(result)
    assert copy.deepcopy(result).opaque == pickle.loads(pickle.dumps(result)).opaque == result.opaque
    with pytest.raises(AttributeError, match=r"State has no attribute 'gradients'; it has \('.params', '.moments'\)"):
        _ = result.gradients
    with pytest.raises(KeyError):
        result["w"]


def test_what_came_out_goes_in_again(artifact):
    loaded = deserialize(artifact)
    again = loaded.call(loaded.call(start(), X), X)
    expected = step(step(start(), X), X)
    np.testing.assert_array_equal(again.params["w"], expected.params["w"])
    assert int(again.moments.count) == 2
    gradient = jax.grad(lambda state: loaded.call(state, X).params["w"].sum(), allow_int=True)(loaded.call(start(), X))
    np.testing.assert_array_equal(gradient.moments.mu, np.full(3, -0.5, np.float32))


def test_any_tree_with_the_same_keys_is_taken_and_others_are_refused_by_their_path(artifact):
    loaded = deserialize(artifact)
    twin = dataclasses.replace(start(), moments=Twin(np.int32(0), X))
    np.testing.assert_array_equal(loaded.call(twin, X).params["w"], step(start(), X).params["w"])
    with pytest.raises(ArgumentMismatch) as caught:
        loaded.call(dataclasses.replace(start(), moments=Other(X, np.int32(0))), X)
    assert str(caught.value) == (
        f"args[0].moments must be a {Moments.__module__}.Moments or another node with the children .count, .mu; found "
        "Other with .mu, .count"
    )
    with pytest.raises(
        ArgumentMismatch, match=r"args\[0\] must be a .*State or another node with the children .*; found"
    ):
        loaded.call({"params": {"w": X}}, X)


def test_other_auxiliary_data_that_are_plain_are_refused(artifact):
    with pytest.raises(
        ArgumentMismatch, match=r"args\[0\] must be a .*State with the auxiliary data .*0\.5.*found .*0\.9"
    ):
        deserialize(artifact).call(start(decay=0.9), X)


def test_auxiliary_data_that_are_not_plain_are_not_compared():
    loaded = deserialize(export(step)(start(apply=lambda x: x), X).serialize())
    np.testing.assert_array_equal(loaded.call(start(apply=lambda x: 0), X).params["w"], step(start(), X).params["w"])
    with pytest.raises(ArgumentMismatch, match=r"'decay': 0\.5.*found .*'decay': 0\.9"):
        loaded.call(start(apply=lambda x: x, decay=0.9), X)
    assert static_text((1, lambda x: x, object())) == "(1, ?, ?)"


def times(count):
    def decorate(function):
        @functools.wraps(function)
        def multiplied(x):
            return count * function(x)

        return multiplied

    return decorate


def identity(x):
    return x


twice, thrice = times(2)(identity), times(3)(identity)
jitted = jax.jit(identity)


class Colors(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    act: object


# Of each, values that differ: their texts differ, or both are unknown.
DIFFERENT = [
    [tuple(range(5000)), tuple(range(1, 5001)), tuple(range(4999))],
    ["x" * 2**15 + "a", "x" * 2**15 + "b"],
    [np.dtype([("a", "f4")]), np.dtype([("b", "i4")]), np.dtype("V4"), np.dtype((np.float32, 1)), np.dtype("f4")],
    [np.dtype("float16"), np.dtype(">f2"), jnp.dtype(jnp.bfloat16)],
    [np.dtype("M8[s]"), np.dtype("M8[ms]")],
    [identity, twice, thrice, jitted],
    [jnp.add, jnp.multiply, jax.nn.relu, jax.nn.gelu],
    [functools.partial(identity, 1), functools.partial(identity, 2), functools.partial(step, 1), identity],
    [Colors.RED, Colors.BLUE, 1],
    [Config(1, abs), Config(2, abs), Config(1, max)],
    [Moments(1, 2), Moments(2, 1), Other(1, 2), (1, 2)],
    [np.float32(1), np.float64(1), np.float32(2)],
    [0.0, -0.0, 0, False, None, ()],
    [types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2}), {"a": 1}],
    [{"a": 1}, {"a": 2}, {"b": 1}, {1: "a"}, frozenset({1}), frozenset({2})],
]


@pytest.mark.parametrize("values", DIFFERENT, ids=[str(values[0])[:20] for values in DIFFERENT])
def test_texts_of_different_data_differ(values):
    texts = [static_text(value) for value in values]
    assert len(set(texts)) == len(texts)
    cannot_copy = (types.MappingProxyType, types.FunctionType, type(jitted), type(jnp.add), type(jax.nn.relu))
    copies = [value if isinstance(value, cannot_copy) else copy.deepcopy(value) for value in values]
    assert texts == list(map(static_text, copies))
    assert all(len(text) < 2**15 for text in texts)


@pytest.mark.parametrize(
    ("exported", "called"),
    [(tuple(range(5000)), tuple(range(1, 5001))), (identity, twice), (np.dtype("float16"), np.dtype(">f2"))],
    ids=["long", "wrapped", "byte order"],
)
def test_calls_with_other_auxiliary_data_are_refused(exported, called):
    loaded = deserialize(export(step)(start(apply=exported), X).serialize())
    np.testing.assert_array_equal(loaded.call(start(apply=exported), X).params["w"], step(start(), X).params["w"])
    with pytest.raises(ArgumentMismatch, match=r"args\[0\] must be a .*State with the auxiliary data .*; found .*"):
        loaded.call(start(apply=called), X)


def test_a_name_is_that_of_the_function_which_the_module_has():
    assert static_text(identity) == f"{__name__}.identity"
    assert [static_text(jitted), static_text(twice)] == [f"{__name__}.jitted", f"{__name__}.twice"]
    assert static_text(times(2)(identity)) == "?"
    assert static_text(jnp.sin.__class__).endswith("PjitFunction")


def test_static_fields_in_another_order_are_matched_by_their_names():
    def release(*static):
        made = dataclasses.make_dataclass("Release", ["x", *static])
        return jax.tree_util.register_dataclass(made, ["x"], list(static))

    first, second = release("k", "b"), release("b", "k")
    loaded = deserialize(export(lambda node: node.x * node.k + node.b)(first(x=X, k=3, b=4)).serialize())
    np.testing.assert_array_equal(loaded.call(second(x=X, k=3, b=4)), X * 3 + 4)
    with pytest.raises(
        ArgumentMismatch, match=r"auxiliary data \{'b': 4, 'k': 3\}, as exported; found \{'b': 3, 'k': 4"
    ):
        loaded.call(second(x=X, k=4, b=3))


def test_artifacts_with_values_of_static_fields_and_no_names_are_compared(artifact):
    name, auxdata = Tree.of_treedef(jax.tree.structure(start())).custom.for_artifact()
    values = json.loads(auxdata)
    for static, other in (("(0.5, builtins.abs)", "(0.9, builtins.abs)"), (None, None)):
        written = json.dumps({**values, "static": static}).encode()
        children = Tree.of_treedef(jax.tree.structure(start())).children
        tree_read = Tree(PyTreeDefKind.CUSTOM, children, custom=CustomNode(name=name, auxdata_bytes=written))
        assert len(tree_read.flatten(start())) == 3
        if other is not None:
            with pytest.raises(ArgumentMismatch):
                tree_read.flatten(start(decay=0.9))


def test_a_class_without_keys_has_those_of_its_positions():
    loaded = deserialize(export(lambda looks: Looks(looks.array + 1))(Looks(X)).serialize())
    result = loaded.call(Looks(X))
    assert result.opaque.keys == ("[<flat index 0>]",)
    np.testing.assert_array_equal(result.children[0], X + 1)


def test_weights_of_unregistered_classes_are_saved_and_loaded(tmp_path):
    exported = export(lambda state, x: state.moments.mu + x)(start(), X)
    save(tmp_path / "m", exported, start())
    model = load(tmp_path / "m")
    assert isinstance(model.params, OpaqueNode)
    np.testing.assert_array_equal(model.call(X), X + X)
    np.testing.assert_array_equal(load(tmp_path / "m", params=start()).call(X), X + X)


@pytest.mark.parametrize(
    "auxdata",
    [b"", b"[]", b"{}", b'{"keys":1,"static":null}', b'{"keys":[1],"static":null}', b'{"keys":[],"static":1}'],
)
def test_what_is_not_an_opaque_node_is_refused_when_it_is_read(auxdata):
    node = CustomNode(name="jaxtf.opaque:a.B", auxdata_bytes=auxdata)
    with pytest.raises(ArtifactError, match=r"a pytree node 'jaxtf.opaque:a.B'"):
        _ = Tree(PyTreeDefKind.CUSTOM, (), custom=node).has_opaque


def test_keys_of_many_times_their_size_are_refused_before_they_are_read():
    keys = json.dumps({"keys": [""] * 100_000, "static": None}, separators=(",", ":")).encode()
    table = schema.PyTreeDefTable(kind=PyTreeDefKind.CUSTOM, custom_name="jaxtf.opaque:a.B", custom_auxdata=keys)
    tracemalloc.start()
    with pytest.raises(ArtifactError, match="more keys than children"):
        tree(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(keys)


# Libraries


@pytest.fixture
def library(monkeypatch):
    """A package with named tuples in a module of it, and one that it took from elsewhere."""
    root, inner = types.ModuleType("test_opaque_library"), types.ModuleType("test_opaque_library.transforms")
    inner.Momentum = NamedTuple("Momentum", [("trace", object)])
    inner.Momentum.__module__ = inner.__name__
    root.Momentum, root.Moments, root.number = inner.Momentum, Moments, 3
    for module in (root, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return root


def test_the_classes_of_a_library_come_back_as_what_they_were(library):
    exported = export(lambda state: library.Momentum(state.trace * 2))(library.Momentum(X))
    assert exported.serialize() is not None
    assert register_library("test_opaque_library") == ("test_opaque_library.transforms.Momentum",)
    assert register_library(library) == ()
    assert registered_type(Moments) is None
    result = deserialize(exported.serialize()).call(library.Momentum(X))
    assert type(result) is library.Momentum
    np.testing.assert_array_equal(result.trace, 2 * X)


def test_a_library_that_there_is_not_is_an_import_error():
    with pytest.raises(ImportError):
        register_library("a_library_that_there_is_not")


def test_no_name_in_an_artifact_is_imported(artifact, monkeypatch):
    def refuse(name, *_):
        raise AssertionError(f"import of {name}")

    monkeypatch.setattr(importlib, "import_module", refuse)
    loaded = deserialize(artifact)
    assert loaded.in_structure.children[0].children[0].custom.name.endswith(".State")
    assert loaded.in_structure.has_opaque
