"""Dataclasses of `register_library` by the names of their fields, where the class changed before reading."""

import dataclasses
import itertools
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
from jaxtf.serialization._record import registration
from jaxtf.serialization._record.dataclass_fields import Fields, fields_of

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
