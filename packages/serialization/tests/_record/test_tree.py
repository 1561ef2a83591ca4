"""Pytree structures without JAX, against JAX's own treedefs."""

import ast
import dataclasses
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    deserialize,
    export,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.tree import CustomNode, Tree
from jaxtf.serialization.interop import argument_paths as jax_argument_paths


class Registered(NamedTuple):
    x: float
    y: float


class Unregistered(NamedTuple):
    x: float


@jax.tree_util.register_pytree_node_class
class Counted:
    """A node of a custom type, with auxiliary data."""

    def __init__(self, *children, label):
        self.children, self.label = children, label

    def tree_flatten(self):
        return self.children, self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label=label)


@pytest.fixture(scope="module", autouse=True)
def registrations():
    register_namedtuple_serialization(Registered, serialized_name="test_tree.Registered")


pytrees = st.recursive(
    st.just(0.0),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.integers(-20, 20), inner, max_size=3),
        st.none(),
        st.builds(Registered, inner, inner),
        st.builds(Unregistered, inner),
        st.lists(st.tuples(st.text(max_size=2), inner), max_size=3).map(OrderedDict),
        st.builds(lambda a, b: Counted(a, b, label="two"), inner, inner),
    ),
    max_leaves=8,
)


@given(pytrees)
def test_a_structure_leads_back_to_the_treedef_that_it_was_made_from(pytree):
    treedef = jax.tree.structure(pytree)
    tree = Tree.of_treedef(treedef)
    forgetful = Tree(tree.kind, tree.children, tree.keys, tree.custom)
    assert forgetful == tree
    assert forgetful.treedef == treedef
    assert tree.leaf_count == treedef.num_leaves


@given(
    st.recursive(st.just(0.0), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner))
)
def test_paths_are_those_of_jax(pytree):
    treedef = jax.tree.structure(((pytree,), {"k": pytree}))
    assert Tree.of_treedef(treedef).paths("args", "kwargs") == jax_argument_paths(treedef)


def test_structures_of_one_shape_and_different_nodes_differ():
    different = [
        (1, 2),
        [1, 2],
        {"a": 1, "b": 2},
        {"a": 1, "c": 2},
        {1: 1, 2: 2},
        Registered(1, 2),
        Counted(1, 2, label=""),
    ]
    different += [Counted(1, 2, label="other"), OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), (1, None), (1, (2,))]
    structures = [Tree.of_treedef(jax.tree.structure(pytree)) for pytree in different]
    for position, structure in enumerate(structures):
        assert [structure == other for other in structures] == [other is structure for other in structures], position


def test_a_name_and_a_type_are_equal_where_the_name_is_registered_for_the_type():
    in_jax = Tree.of_treedef(jax.tree.structure(Registered(1, 2)))
    name, auxdata = in_jax.custom.for_artifact()
    read = Tree(PyTreeDefKind.CUSTOM, in_jax.children, custom=CustomNode(name=name, auxdata_bytes=auxdata))
    assert (name, auxdata) == ("test_tree.Registered", b'["x", "y"]')
    assert read == in_jax
    assert hash(read) == hash(in_jax)
    assert read.treedef == jax.tree.structure(Registered(1, 2))


def test_the_named_tuples_of_linalg_are_known():
    for result in (jnp.linalg.eigh(jnp.eye(2)), jnp.linalg.svd(jnp.eye(2)), jnp.linalg.slogdet(jnp.eye(2))):
        structure = Tree.of_treedef(jax.tree.structure(result))
        name, auxdata = structure.custom.for_artifact()
        assert name == f"jax.numpy.linalg.{type(result).__name__}"
        assert CustomNode(name=name, auxdata_bytes=auxdata).for_jax() == (type(result), None)


def test_an_unregistered_type_is_written_as_an_opaque_node():
    structure = Tree.of_treedef(jax.tree.structure(Unregistered(1)))
    name, auxdata = structure.custom.for_artifact()
    assert name == f"jaxtf.opaque:{Unregistered.__module__}.Unregistered"
    read = Tree(PyTreeDefKind.CUSTOM, structure.children, custom=CustomNode(name=name, auxdata_bytes=auxdata))
    assert read == structure


def test_an_unknown_name_cannot_become_a_treedef():
    with pytest.raises(ArtifactError) as caught:
        CustomNode(name="nobody.Knows").for_jax()
    assert str(caught.value) == (
        "the artifact holds a pytree node of a type called 'nobody.Knows', which is not registered here\n"
        "  remedy: before reading it, call register_namedtuple_serialization or register_pytree_node_serialization "
        "with serialized_name='nobody.Knows'"
    )


@pytest.mark.parametrize("auxdata", [b"", b"[1]", b"{", b'["y", "x"]', b"\xff"])
def test_bytes_that_do_not_fit_a_type_are_refused(auxdata):
    with pytest.raises(ArtifactError, match=r"auxiliary data of a pytree node of type 'test_tree.Registered'"):
        CustomNode(name="test_tree.Registered", auxdata_bytes=auxdata).for_jax()


@given(pytrees)
def test_values_are_taken_apart_and_put_together_as_jax_does(pytree):
    leaves, treedef = jax.tree.flatten(jax.tree.map(lambda _: object(), pytree))
    value = jax.tree.unflatten(treedef, leaves)
    tree = Tree.of_treedef(treedef)
    assert tree.flatten(value) == leaves
    rebuilt = tree.unflatten(leaves)
    assert jax.tree.structure(rebuilt) == treedef
    assert jax.tree.leaves(rebuilt) == leaves


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        ((1, 2), (1,), "args must be a tuple of length 2; found tuple ((1,))"),
        ((1, 2), [1, 2], "args must be a tuple of length 2; found list ([1, 2])"),
        ((1, [2]), (1, [2, 3]), "args[1] must be a list of length 1; found list ([2, 3])"),
        ({"a": 1}, {"b": 1}, "args must be a dict with the keys 'a'; found dict ({'b': 1})"),
        ({"a": (1,)}, {"a": 1}, "args['a'] must be a tuple of length 1; found int (1)"),
        ([None], [1], "args[0] must be None; found int (1)"),
        (Registered(1, (2,)), Registered(1, 2), "args.y must be a tuple of length 1; found int (2)"),
        (Registered(1, 2), (1, 2), "args must be a Registered; found tuple ((1, 2))"),
        (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), "args must be a OrderedDict; found OrderedDict"),
    ],
)
def test_values_of_another_structure_are_refused(expected, found, message):
    with pytest.raises(ArgumentMismatch) as caught:
        Tree.of_treedef(jax.tree.structure(expected)).flatten(found)
    assert str(caught.value).startswith(message)


class OfJaxExport(NamedTuple):
    """Registered with `jax.export` alone, as a library does."""

    x: float
    y: float


class Scaled:
    """Registered with `jax.export` alone, with auxiliary data that only `from_children` makes whole."""

    def __init__(self, array, unit):
        self.array, self.unit = array, unit


class Measured(Scaled):
    """The same, registered here."""


def registered(kind, register):
    jax.tree_util.register_pytree_node(
        kind, lambda node: ((node.array,), ("unit", node.unit)), lambda auxdata, children: kind(*children, auxdata[1])
    )
    register(
        kind,
        serialized_name=f"test_tree.{kind.__name__}",
        serialize_auxdata=lambda auxdata: auxdata[1].encode(),
        deserialize_auxdata=bytes.decode,
        from_children=lambda unit, children: kind(*children, unit),
    )


@pytest.fixture(scope="module")
def registrations_of_libraries():
    jax.export.register_namedtuple_serialization(OfJaxExport, serialized_name="test_tree.OfJaxExport")
    registered(Scaled, jax.export.register_pytree_node_serialization)
    registered(Measured, register_pytree_node_serialization)


@pytest.mark.usefixtures("registrations_of_libraries")
@pytest.mark.parametrize("kind", [Scaled, Measured])
def test_what_a_library_registered_with_jax_export_holds_here(kind):
    x = jnp.arange(3.0)

    def fun(pair, scaled):
        return kind(OfJaxExport(pair.y, {"sum": pair.x + scaled.array}), scaled.unit * 2)

    exported = export(fun)(OfJaxExport(x, x), kind(x, "m"))
    read = deserialize(exported.serialize())
    assert read.has_same_function(exported)
    assert (read.in_tree, read.out_tree) == (exported.in_tree, exported.out_tree)
    result = read.call(OfJaxExport(x, x), kind(x, "m"))
    assert (result.unit, result.array.y["sum"].tolist()) == ("mm", [0, 2, 4])
    structure = Tree.of_treedef(read.out_tree)
    assert structure.unflatten([1, 2]).array == OfJaxExport(1, {"sum": 2})


@pytest.mark.usefixtures("registrations_of_libraries")
def test_artifacts_with_types_of_a_library_go_both_ways():
    x = jnp.arange(3.0)
    arguments = (OfJaxExport(x, x), Scaled(x, "m"))

    def fun(pair, scaled):
        return Scaled(pair, scaled.unit * 2)

    ours, theirs = export(fun)(*arguments).serialize(), jax.export.export(jax.jit(fun))(*arguments).serialize()
    for result in (jax.export.deserialize(ours).call(*arguments), deserialize(theirs).call(*arguments)):
        assert (result.unit, result.array.y.tolist()) == ("mm", [0, 1, 2])


@pytest.mark.usefixtures("registrations_of_libraries")
def test_a_name_that_is_registered_here_is_not_that_of_jax_export():
    jax.export.register_namedtuple_serialization(Unregistered, serialized_name="test_tree.Registered")
    name, _ = Tree.of_treedef(jax.tree.structure(Unregistered(1))).custom.for_artifact()
    assert name.startswith("jaxtf.opaque:")
    assert CustomNode(name="test_tree.Registered", auxdata_bytes=b'["x", "y"]').for_jax()[0] is Registered


def test_a_node_that_from_children_does_not_make_is_refused():
    class Broken(Scaled):
        pass

    registered(Broken, register_pytree_node_serialization)
    read = Tree(PyTreeDefKind.CUSTOM, (), custom=CustomNode(name="test_tree.Broken", auxdata_bytes=b"m"))
    with pytest.raises(ArtifactError, match=r"'test_tree\.Broken' in the artifact cannot be made by from_children: "):
        read.treedef  # noqa: B018


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Static:
    """A dataclass with a static field."""

    x: object
    k: int = dataclasses.field(default=3, metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Derived(Static):
    """A node type of its own, of a class derived from another."""


class Keyed:
    """A node of as many children as it has keys, in the order in which they were given."""

    def __init__(self, **items):
        self.items = items


class Swapped(NamedTuple):
    """A named tuple that its author registered with JAX: other children than its fields."""

    unit: object
    first: object
    second: object


jax.tree_util.register_pytree_node(
    Keyed,
    lambda node: (list(node.items.values()), tuple(node.items)),
    lambda keys, children: Keyed(**dict(zip(keys, children, strict=True))),
)
jax.tree_util.register_pytree_node(
    Swapped, lambda node: ((node.second, node.first), node.unit), lambda unit, c: Swapped(unit, c[1], c[0])
)


class Compares:
    """Auxiliary data that cannot be compared, as an array of NumPy."""

    def __eq__(self, other):
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None


@pytest.fixture(scope="module")
def registrations_with_auxiliary_data(registrations):
    def as_literal(auxdata):
        return repr(auxdata).encode()

    for kind in (Static, Derived, Keyed, Swapped):
        register_pytree_node_serialization(
            kind,
            serialized_name=f"test_tree.{kind.__name__}",
            serialize_auxdata=as_literal,
            deserialize_auxdata=lambda auxdata: ast.literal_eval(auxdata.decode()),
        )


def of_an_artifact(tree):
    """The tree as an artifact has it."""
    custom = tree.custom and CustomNode(**dict(zip(("name", "auxdata_bytes"), tree.custom.for_artifact(), strict=True)))
    return Tree(tree.kind, tuple(map(of_an_artifact, tree.children)), tree.keys, custom)


def has_swapped(tree):
    is_swapped = tree.custom is not None and tree.custom.node_type is Swapped
    return is_swapped or any(map(has_swapped, tree.children))


kinds_of_nodes = st.recursive(
    st.just(0.0),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.builds(Static, inner, st.sampled_from([3, 4, 3.5])),
        st.builds(Derived, inner, st.sampled_from([3, 4])),
        st.builds(Registered, inner, inner),
        st.builds(Swapped, st.sampled_from(["m", "s"]), inner, inner),
        st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(lambda items: Keyed(**dict(items))),
        st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(lambda items: OrderedDict(dict(items))),
        st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(
            lambda items: defaultdict(float, dict(items))
        ),
    ),
    max_leaves=4,
)


@pytest.mark.usefixtures("registrations_with_auxiliary_data")
@given(kinds_of_nodes, kinds_of_nodes)
def test_a_value_is_taken_apart_where_jax_says_that_its_structure_is_the_same(exported, called):
    expected, found = jax.tree.structure(exported), jax.tree.structure(called)
    in_jax = Tree.of_treedef(expected)
    for tree in (in_jax, of_an_artifact(in_jax)):
        if tree.has_opaque:
            continue  # it takes any node with the same keys
        if expected == found:
            leaves = list(range(found.num_leaves))
            assert tree.flatten(jax.tree.unflatten(found, leaves)) == leaves
            if not has_swapped(in_jax):
                assert jax.tree.structure(tree.unflatten(leaves)) == expected
        else:
            try:
                leaves = tree.flatten(called)
            except ArgumentMismatch:
                continue
            assert any(leaf != 0.0 for leaf in leaves), "a node in the place of an array, and no node of another kind"


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        (Static(1), Static(1, 4), "args must be a Static with the auxiliary data (3,), as exported; found (4,)"),
        (
            [Keyed(a=1, b=2)],
            [Keyed(b=2, a=1)],
            "args[0] must be a Keyed with the auxiliary data ('a', 'b'), as exported; found ('b', 'a')",
        ),
        (Static(1), Derived(1), "args must be a Static; found Derived"),
        (Static(1), 1, "args must be a Static; found int (1)"),
        (Static(1, Compares()), Static(1, Compares()), "args must be a Static whose auxiliary data can be compared"),
        (
            Static(1, "x" * 500 + "a"),
            Static(1, "x" * 500 + "b"),
            f"args must be a Static with the auxiliary data ...{'x' * 40}a',), as exported; found ...{'x' * 40}b',)",
        ),
        (
            Static(Keyed(a=1)),
            Static(Keyed(a=(1, 2), b=3)),
            "args[<flat index 0>] must be a Keyed with the auxiliary data ('a',), as exported; found ('a', 'b')",
        ),
    ],
)
def test_nodes_with_other_auxiliary_data_are_refused(expected, found, message):
    with pytest.raises(ArgumentMismatch) as caught:
        Tree.of_treedef(jax.tree.structure(expected)).flatten(found)
    assert str(caught.value).startswith(message)


@pytest.mark.usefixtures("registrations_with_auxiliary_data")
def test_a_named_tuple_that_jax_does_not_take_apart_by_its_fields_is_not_made_by_them():
    tree = of_an_artifact(Tree.of_treedef(jax.tree.structure([Swapped("m", 1, 2)])))
    for make in (lambda: tree.treedef, lambda: tree.unflatten([1, 2])):
        with pytest.raises(ArtifactError, match="a named tuple whose children for JAX are not its fields, cannot be"):
            make()


class Bag:
    """A node whose number of children is not in its auxiliary data."""

    def __init__(self, *items):
        self.items = items


jax.tree_util.register_pytree_node(Bag, lambda bag: (bag.items, None), lambda _, items: Bag(*items))


def test_a_node_with_another_number_of_children_is_refused():
    with pytest.raises(ArgumentMismatch, match=r"^args must be a Bag with 2 children, as exported; found 3$"):
        Tree.of_treedef(jax.tree.structure(Bag(1, 2))).flatten(Bag(1, 2, 3))


def test_a_call_with_an_opaque_node_compares_the_other_nodes():
    class Unnamed(NamedTuple):
        x: object

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Known:
        x: object
        k: int = dataclasses.field(default=1, metadata={"static": True})

    register_pytree_node_serialization(
        Known,
        serialized_name="test_tree.Known",
        serialize_auxdata=lambda auxdata: repr(auxdata).encode(),
        deserialize_auxdata=lambda auxdata: ast.literal_eval(auxdata.decode()),
    )
    x = jnp.float32(1)
    read = deserialize(export(lambda u, s: u.x * 1000 + s.x * s.k)(Unnamed(x), Known(x, 3)).serialize())
    assert float(read.call(Unnamed(x), Known(x, 3))) == 1003
    for call in (read.call, read.lift()):
        with pytest.raises(ArgumentMismatch, match=r"args\[1\] must be a Known with the auxiliary data \(3,\)"):
            call(Unnamed(x), Known(x, 4))
