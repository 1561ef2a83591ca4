"""Dataclasses by the names of their fields, where the class changed before reading."""

import dataclasses
import itertools
import json
import pickle
import sys
import types

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import (
    ArtifactError,
    deserialize,
    export,
    register_library,
    register_pytree_node_serialization,
)
from jaxtf.serialization._artifact import serialize as artifact_serialize
from jaxtf.serialization._record import registration
from jaxtf.serialization._record.dataclass_fields import Fields, fields_of
from jaxtf.serialization._record.tree import Tree

LIBRARY = "test_dataclass_fields_library"
X, Y = np.float32(2), np.float32(5)
SCALAR = jax.ShapeDtypeStruct((), np.float32)


def dataclass(children, static, name="State"):
    """A dataclass of a library with these fields, as JAX keeps them in this order."""
    made = dataclasses.make_dataclass(name, [(field, object) for field in (*children, *static)])
    made.__module__, made.__qualname__ = LIBRARY, name
    return jax.tree_util.register_dataclass(made, list(children), list(static))


def registered(node_type):
    """The class, registered as one of a release of the library in a process of its own."""
    for known in [name for name in registration._BY_NAME if name.startswith(LIBRARY)]:
        del registration._BY_TYPE[registration._BY_NAME.pop(known).node_type]
    module = types.ModuleType(LIBRARY)
    module.State = node_type
    sys.modules[LIBRARY] = module
    assert register_library(module) == (f"{LIBRARY}.State",)
    return node_type


def function(state):
    return state.mu * 10 + state.nu * state.k - state.b


def written(node_type):
    return bytes(export(function)(registered(node_type)(mu=SCALAR, nu=SCALAR, k=3, b=4)).serialize())


ORDERS = list(itertools.product(itertools.permutations(["mu", "nu"]), itertools.permutations(["k", "b"])))
WRITER = dataclass(["mu", "nu"], ["k", "b"])
READERS = [dataclass(*order) for order in ORDERS]


@given(st.sampled_from(READERS), st.permutations([3, 4]), st.booleans())
def test_a_class_with_its_fields_in_another_order_gives_the_same_or_is_refused(reader, static, is_pickled):
    artifact = written(WRITER)
    registered(reader)
    read = deserialize(artifact)
    read = pickle.loads(pickle.dumps(read)) if is_pickled else read
    state = reader(mu=X, nu=Y, k=static[0], b=static[1])
    try:
        result = read.call(state)
    except (ArtifactError, ValueError):
        # The children are refused in another order, static fields with other values.
        assert fields_of(reader, jax.tree_util).keys != (".mu", ".nu") or static != [3, 4]
    else:
        assert result == function(state)
        assert static == [3, 4]


def test_children_in_another_order_are_refused_by_their_names():
    artifact = written(WRITER)
    registered(dataclass(["nu", "mu"], ["k", "b"]))
    with pytest.raises(ArtifactError) as caught:
        _ = deserialize(artifact).in_tree
    assert str(caught.value) == (
        f"the artifact has a pytree node of type '{LIBRARY}.State' with the children .mu, .nu; those of the class here "
        "are .nu, .mu\n  remedy: read it with a release of the class that has the same"
    )


@pytest.mark.parametrize(
    ("children", "static", "message"),
    [
        (["mu", "nv"], ["k", "b"], "with the children .mu, .nu; those of the class here are .mu, .nv"),
        (["mu", "nu", "xi"], ["k", "b"], "with the children .mu, .nu; those of the class here are .mu, .nu, .xi"),
        (["mu"], ["k", "b"], "with the children .mu, .nu; those of the class here are .mu"),
        (["mu", "nu"], ["k", "c"], "its static fields are 'k', 'c', those in the artifact 'k', 'b'"),
        (["mu", "nu"], ["k"], "its static fields are 'k', those in the artifact 'k', 'b'"),
        (["mu", "nu"], ["k", "b", "c"], "its static fields are 'k', 'b', 'c', those in the artifact 'k', 'b'"),
        (["mu", "nu"], [], "its static fields are none, those in the artifact 'k', 'b'"),
    ],
)
def test_a_class_with_other_fields_is_refused(children, static, message):
    artifact = written(WRITER)
    registered(dataclass(children, static))
    with pytest.raises(ArtifactError) as caught:
        deserialize(artifact).call(X)
    assert message in str(caught.value)


# What releases before wrote: the values of static fields without their names.
OLD = b"(3, 4)"


@pytest.mark.parametrize(
    ("children", "static", "is_read"),
    [
        (["mu", "nu"], ["k", "b"], True),
        (["nu", "mu"], ["k", "b"], False),
        (["mu", "nu"], ["k"], False),
        (["mu", "nu"], ["k", "b", "c"], False),
    ],
)
def test_artifacts_without_the_names_of_static_fields_are_read(children, static, is_read, monkeypatch):
    monkeypatch.setattr(registration, "_fields_bytes", lambda node_type, auxdata: repr(auxdata).encode())
    artifact = written(WRITER)
    assert OLD in artifact
    monkeypatch.undo()
    reader = registered(dataclass(children, static))
    if is_read:
        state = reader(mu=X, nu=Y, k=3, b=4)
        assert deserialize(artifact).call(state) == function(state)
    else:
        with pytest.raises(ArtifactError):
            _ = deserialize(artifact).in_tree


class Pair:
    """Of a class with keys that is no dataclass."""

    def __init__(self, one, other):
        self.one, self.other = one, other


class Reversed(Pair):
    """A later release of it."""


def with_keys(kind, *names):
    keys = [jax.tree_util.GetAttrKey(name) for name in names]
    jax.tree_util.register_pytree_with_keys(
        kind,
        lambda node: ([(key, getattr(node, key.name)) for key in keys], None),
        lambda _, children: kind(**dict(zip(names, children, strict=True))),
    )
    register_pytree_node_serialization(
        kind,
        serialized_name=f"{LIBRARY}.{kind.__name__}",
        serialize_auxdata=lambda _: b"",
        deserialize_auxdata=lambda _: None,
    )


def test_children_of_any_class_in_another_order_are_refused(monkeypatch):
    with_keys(Pair, "one", "other")
    with_keys(Reversed, "other", "one")

    def fun(tree):
        return tree["a"][0].one - tree["a"][0].other["b'["]

    artifact = export(fun)({"a": [Pair(X, {"b'[": Y})]}).serialize()
    assert deserialize(artifact).call({"a": [Pair(X, {"b'[": Y})]}) == -3
    in_later_release = dataclasses.replace(registration._BY_NAME[f"{LIBRARY}.Pair"], node_type=Reversed)
    monkeypatch.setitem(registration._BY_NAME, f"{LIBRARY}.Pair", in_later_release)
    with pytest.raises(ArtifactError, match=r"the children \.one, \.other; those of the class here are \.other, \.one"):
        _ = deserialize(artifact).in_tree


def test_the_fields_of_a_class_are_found_without_making_one():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True, slots=True)
    class Checked:
        x: object
        k: int = dataclasses.field(metadata={"static": True})
        y: object = None

        def __post_init__(self):
            raise AssertionError("it is not made")

    @dataclasses.dataclass
    class NoNode:
        x: object

    assert fields_of(Checked, jax.tree_util) == Fields((".x", ".y"), ("k",))
    assert fields_of(NoNode, jax.tree_util) is None


def by_order(node_type):
    """What a user registers for a class who writes the values of its static fields in their order."""
    return lambda auxdata: json.dumps(auxdata).encode(), lambda data: tuple(json.loads(data))


def by_names(node_type):
    """Likewise by their names; a field that the artifact lacks is 0."""
    names = fields_of(node_type, jax.tree_util).static
    return (
        lambda auxdata: json.dumps(dict(zip(names, auxdata, strict=True))).encode(),
        lambda data: tuple(json.loads(data).get(name, 0) for name in names),
    )


def by_user(node_type, functions=by_order, from_children=None):
    """The class, registered by a user in a process of its own."""
    for known in [name for name in registration._BY_NAME if name.startswith(LIBRARY)]:
        del registration._BY_TYPE[registration._BY_NAME.pop(known).node_type]
    to_bytes, of_bytes = functions(node_type)
    return register_pytree_node_serialization(
        node_type,
        serialized_name=f"{LIBRARY}.State",
        serialize_auxdata=to_bytes,
        deserialize_auxdata=of_bytes,
        from_children=from_children,
    )


def written_by_user(functions=by_order, k=3, b=4):
    node = by_user(WRITER, functions)(mu=SCALAR, nu=SCALAR, k=k, b=b)
    return bytes(export(lambda state: (function(state), state))(node).serialize(vjp_order=1))


@given(
    st.sampled_from([*READERS, None]),
    st.permutations([3, 4]),
    st.sampled_from([by_order, by_names]),
    st.sampled_from(["", "pickled", "written again"]),
)
def test_static_fields_of_a_user_in_another_order_give_the_same_or_are_refused(reader, static, functions, way):
    artifact = written_by_user(functions)
    reader = by_user(WRITER if reader is None else reader, functions)
    read = deserialize(artifact)
    read = pickle.loads(pickle.dumps(read)) if way == "pickled" else read
    read = deserialize(read.serialize(vjp_order=1)) if way == "written again" else read
    state = reader(mu=X, nu=Y, k=static[0], b=static[1])
    fields = fields_of(reader, jax.tree_util)
    must_be_read = fields.keys == (".mu", ".nu") and static == [3, 4]
    must_be_read = must_be_read and (functions is by_names or fields.static == ("k", "b"))
    try:
        result, again = read.call(state)
    except (ArtifactError, ValueError):
        assert not must_be_read
    else:
        assert must_be_read
        assert result == function(state)
        assert (again.k, again.b) == (3, 4)


def test_static_fields_in_another_order_are_refused_by_their_names():
    artifact = written_by_user()
    by_user(dataclass(["mu", "nu"], ["b", "k"]))
    for structure in ("in_tree", "out_tree"):
        with pytest.raises(ArtifactError) as caught:
            getattr(deserialize(artifact), structure)
        assert str(caught.value) == (
            f"the artifact has a pytree node of type '{LIBRARY}.State' with the static fields k=3, b=4; the class here "
            "has them in another order, and reads b=3, k=4\n"
            "  remedy: read it with a release of the class that has the same in the same order; for another order, "
            "register a deserialize_auxdata that gives them in that of the class"
        )


@pytest.mark.parametrize(
    ("static", "functions", "message"),
    [
        (["k", "c"], by_order, "with the static fields k, b; those of the class here are k, c\n"),
        (["k", "c"], by_names, "with the static fields k, b; those of the class here are k, c\n"),
        (["k"], by_order, "with the static fields (3, 4); the class here has k\n"),
        (["k"], by_names, None),
        (["k", "b", "c"], by_names, None),
        (["c", "b", "k"], by_names, None),
        (["c", "k", "b"], lambda kind: (None, lambda data: (*json.loads(data), 0)), "and reads c=3, k=4, b=0\n"),
        (["k", "b", "c"], lambda kind: (None, lambda data: (*json.loads(data), 0)), None),
    ],
)
def test_a_class_of_a_user_with_other_static_fields(static, functions, message):
    artifact = written_by_user(by_names if functions is by_names else by_order)
    by_user(dataclass(["mu", "nu"], static), functions)
    if message is None:
        assert deserialize(artifact).in_tree.num_leaves == 2
        return
    with pytest.raises(ArtifactError) as caught:
        _ = deserialize(artifact).in_tree
    assert message in str(caught.value)


def test_from_children_may_give_static_fields_their_names():
    artifact = written_by_user()
    reader = dataclass(["mu", "nu"], ["b", "k"])
    by_user(reader, from_children=lambda static, children: reader(*children, k=static[0], b=static[1]))
    state = reader(mu=X, nu=Y, k=3, b=4)
    assert deserialize(artifact).call(state)[0] == function(state)
    with pytest.raises(ValueError, match="as exported"):
        deserialize(artifact).call(reader(mu=X, nu=Y, k=4, b=3))


class Nameless:
    """Two of these cannot be told apart by a text."""


def test_moved_static_fields_that_have_no_text_are_refused():
    kept = [Nameless(), Nameless()]

    def functions(kind):
        return lambda auxdata: json.dumps([kept.index(one) for one in auxdata]).encode(), lambda data: tuple(kept)

    node = by_user(WRITER, functions)(mu=SCALAR, nu=SCALAR, k=kept[0], b=kept[1])
    artifact = export(lambda state: state.mu)(node).serialize()
    assert deserialize(artifact).call(WRITER(mu=X, nu=Y, k=kept[0], b=kept[1])) == X
    by_user(dataclass(["mu", "nu"], ["b", "k"]), functions)
    with pytest.raises(ArtifactError, match=r"k=\?, b=\?; the class here has them in another order"):
        _ = deserialize(artifact).in_tree


def test_artifacts_of_a_user_without_the_names_of_static_fields_are_read(monkeypatch):
    monkeypatch.setattr(artifact_serialize, "static_fields", lambda *trees: ())
    artifact = written_by_user()
    monkeypatch.undo()
    assert b'"static_fields":' not in artifact
    assert b'"static_fields":' in written_by_user()
    reader = by_user(dataclass(["mu", "nu"], ["k", "b"]))
    state = reader(mu=X, nu=Y, k=3, b=4)
    assert deserialize(artifact).call(state)[0] == function(state)


def test_nodes_with_their_static_fields_in_another_order_are_not_equal():
    read = deserialize(written_by_user()).in_structure
    same = Tree.of_treedef(jax.tree.structure(((WRITER(mu=X, nu=Y, k=3, b=4),), {})))
    assert read == same
    reader = by_user(dataclass(["mu", "nu"], ["b", "k"]))
    assert read != Tree.of_treedef(jax.tree.structure(((reader(mu=X, nu=Y, k=4, b=3),), {})))


def test_notes_with_static_fields_of_another_number_of_nodes_are_refused(monkeypatch):
    monkeypatch.setattr(artifact_serialize, "static_fields", lambda *trees: ((("k", "3"),),))
    artifact = written_by_user()
    with pytest.raises(ArtifactError, match="static fields of 1 pytree nodes of custom types; it has 2"):
        deserialize(artifact)
