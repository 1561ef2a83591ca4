"""Registering types for artifacts."""

from typing import NamedTuple

import pytest

from jaxtf.serialization import (
    SerializationError,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from jaxtf.serialization._record.registration import registered_name, registered_type
from jaxtf.serialization._record.tree import CustomNode


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
