"""A call takes arguments of the classes that the function was exported with, and of no others."""

import dataclasses
import itertools
import random
from collections import OrderedDict, defaultdict, namedtuple

import jax
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import ArgumentMismatch, deserialize, export, register_pytree_node_serialization
from jaxtf.serialization.interop import is_same_structure


def dataclass_of(name, *fields, static=()):
    made = dataclasses.make_dataclass(name, [*fields, *static])
    return jax.tree_util.register_dataclass(made, data_fields=list(fields), meta_fields=list(static))


def with_a_static_field():
    made = dataclass_of("Static", "angle", "radius", static=["n"])
    return lambda a, b: made(a, b, 1)


def node_class(name):
    class Node:
        def __init__(self, *children):
            self.children = children

    Node.__name__ = name
    jax.tree_util.register_pytree_node(Node, lambda node: (node.children, None), lambda _, items: Node(*items))
    return Node


Polar = dataclass_of("Polar", "angle", "radius")
Reversed = dataclass_of("Reversed", "radius", "angle")
Point = dataclass_of("Point", "x", "y")
register_pytree_node_serialization(
    Polar,
    serialized_name="tests.structures.Polar",
    serialize_auxdata=lambda _: b"",
    deserialize_auxdata=lambda _: (),
)
SCALAR = ShapeDtypeStruct((), np.float32)

# Each makes a container of two children.
CONTAINERS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"angle": a, "radius": b},
    "ordered": lambda a, b: OrderedDict(angle=a, radius=b),
    "default": lambda a, b: defaultdict(int, angle=a, radius=b),
    "named": namedtuple("Named", "angle radius"),
    "named again": namedtuple("Named", "angle radius"),
    "node": node_class("Node"),
    "node again": node_class("Node"),
    "dataclass": Polar,
    "dataclass again": dataclass_of("Polar", "angle", "radius"),
    "other fields": Point,
    "static": with_a_static_field(),
    "static again": with_a_static_field(),
}


def in_polar(point):
    return point.radius * 100 + point.angle


@pytest.fixture(params=["exported", "deserialized"])
def exported(request):
    made = export(in_polar)(Polar(SCALAR, SCALAR))
    return made if request.param == "exported" else deserialize(made.serialize())


def jitted(exported):
    """A function of its own: to the cache of one, which JAX asks first, a dataclass may be one of another class."""
    return jax.jit(lambda point: exported.call(point))  # noqa: PLW0108


@pytest.mark.parametrize("wrap", [lambda e: e.call, jitted, lambda e: e.lift()])
@pytest.mark.parametrize("other", [Reversed, Point], ids=["same fields in another order", "other fields"])
def test_a_dataclass_of_another_class_is_refused(exported, wrap, other):
    assert wrap(exported)(Polar(np.float32(1), np.float32(2))) == 201
    with pytest.raises(ArgumentMismatch, match=r"Reversed|args\[0\]\.angle: exported with it, missing in the call"):
        wrap(exported)(other(np.float32(1), np.float32(2)))


def test_a_class_that_was_defined_twice_is_named_as_that(exported):
    again = CONTAINERS["dataclass again"]
    with pytest.raises(ArgumentMismatch, match=r"Polar\[.*\n.*Polar\[.*\n.*defined twice: export again"):
        exported.call(again(np.float32(1), np.float32(2)))


@pytest.mark.parametrize("seed", range(20))
def test_structures_are_the_same_where_the_classes_of_all_nodes_are(seed):
    source = random.Random(seed)
    made = [_random_tree(source, 2) for _ in range(30)]
    for (kinds, tree), (other_kinds, other) in itertools.combinations_with_replacement(made, 2):
        one, another = jax.tree.structure(tree), jax.tree.structure(other)
        assert is_same_structure(one, another) == (kinds == other_kinds), (kinds, other_kinds)


def _random_tree(source, depth):
    """A random pytree, and the kinds of its nodes."""
    if depth == 0 or source.random() < 0.2:
        return None, 0.0
    name = source.choice(list(CONTAINERS))
    (left_kinds, left), (right_kinds, right) = (_random_tree(source, depth - 1) for _ in range(2))
    return (name, left_kinds, right_kinds), CONTAINERS[name](left, right)


@pytest.mark.parametrize(("name", "other"), [*itertools.permutations(CONTAINERS, 2)])
def test_no_container_is_taken_for_another_one(name, other):
    call = export(lambda tree: jax.tree.leaves(tree)[0])(CONTAINERS[name](SCALAR, SCALAR)).call
    assert call(CONTAINERS[name](np.float32(1), np.float32(2))) == 1
    with pytest.raises(ArgumentMismatch):
        call(CONTAINERS[other](np.float32(1), np.float32(2)))


def test_a_node_with_arrays_for_auxiliary_data_is_called():
    whole = np.arange(2)

    class Holder:
        def __init__(self, child):
            self.child = child

    jax.tree_util.register_pytree_node(Holder, lambda node: ((node.child,), whole), lambda _, items: Holder(*items))
    call = export(lambda holder: holder.child + 1)(Holder(SCALAR)).call
    assert call(Holder(np.float32(1))) == 2
