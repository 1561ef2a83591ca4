"""Registering types for artifacts."""

import dataclasses
import pickle
from typing import NamedTuple

import jax
import numpy as np
import pytest

from jaxtf.serialization import (
    ArtifactError,
    SerializationError,
    deserialize,
    export,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from jaxtf.serialization._record import registration
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.registration import registered_name, registered_type
from jaxtf.serialization._record.tree import LEAF, CustomNode, Tree


class Point(NamedTuple):
    x: float
    y: float


class Other(NamedTuple):
    x: float


register_namedtuple_serialization(Point, serialized_name="test_registration.Point")


def test_what_is_registered_is_found_by_type_and_by_name():
    assert registered_type(Point) is registered_name("test_registration.Point")
    assert registered_type(Point).node_type is Point
    assert registered_type(Other) is registered_name("nobody") is None


def test_a_type_is_registered_once():
    with pytest.raises(ValueError, match=r"Duplicate serialization registration for type .*Point.*: it is registered "):
        register_namedtuple_serialization(Point, serialized_name="another")


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match=r"serialized_name 'test_registration.Point': it is registered for .*Point"):
        register_namedtuple_serialization(Other, serialized_name="test_registration.Point")


def test_only_namedtuple_types_are_registered_as_such():
    with pytest.raises(ValueError, match=r"<class 'dict'> is not a namedtuple type"):
        register_namedtuple_serialization(dict, serialized_name="test_registration.dict")


def test_auxiliary_data_must_become_bytes():
    class Node:
        pass

    register_pytree_node_serialization(
        Node, serialized_name="test_registration.Node", serialize_auxdata=str, deserialize_auxdata=bytes.decode
    )
    with pytest.raises(SerializationError, match=r"must return bytes; it returned <class 'str'>"):
        CustomNode(node_type=Node, auxdata=1).for_artifact()


def test_registering_can_decorate():
    assert register_namedtuple_serialization(Other, serialized_name="test_registration.Other") is Other


class Late:
    """A class that JAX gets to know after an artifact with it was read."""

    def __init__(self, x):
        self.x = x


def register_late(kind):
    jax.tree_util.register_pytree_node(kind, lambda node: ((node.x,), None), lambda _, children: kind(*children))


@pytest.mark.parametrize("makes_nodes", [False, True])
def test_a_class_that_only_artifacts_know_is_refused_until_jax_knows_it(monkeypatch, makes_nodes):
    class Writer(Late):
        pass

    class Reader(Late):
        pass

    register_late(Writer)
    name = f"test_registration.Late{makes_nodes}"
    register_pytree_node_serialization(
        Writer, serialized_name=name, serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
    )
    artifact = export(lambda node: node.x + 1)(Writer(np.float32(2))).serialize()
    make = (lambda _, children: Reader(*children)) if makes_nodes else None
    reader = dataclasses.replace(registration._BY_NAME[name], node_type=Reader, from_children=make)
    monkeypatch.setitem(registration._BY_NAME, name, reader)
    read = deserialize(artifact)
    arguments = ((Reader(np.float32(2)),), {})
    for use in (
        lambda: read.in_tree,
        lambda: read.call(*arguments[0]),
        lambda: read.in_structure.flatten(arguments),
        lambda: read.in_structure.unflatten([2]),
    ):
        with pytest.raises(ArtifactError) as caught:
            use()
        assert str(caught.value) == (
            f"the artifact has, as '{name}', a pytree node of {Reader}, which is not registered with JAX here\n"
            "  remedy: before calling it, register the class by jax.tree_util.register_dataclass, "
            "register_pytree_node or the like, as where it was exported"
        )
    register_late(Reader)
    assert read.call(Reader(np.float32(2))) == 3


def test_a_pickled_function_of_a_class_that_jax_does_not_know_is_refused():
    node = Tree(PyTreeDefKind.CUSTOM, (LEAF,), custom=CustomNode(node_type=Late, child_count=1))
    with pytest.raises(ArtifactError, match=r"^an exported function has a pytree node of .*Late.*not registered with"):
        _ = pickle.loads(pickle.dumps(node)).treedef
