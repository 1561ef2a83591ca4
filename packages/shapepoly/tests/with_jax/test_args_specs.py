"""`symbolic_args_specs`: pytrees of specifications."""

import collections
import dataclasses

import jax
import numpy as np
import pytest
from jax import export as jax_export

from jaxtf.shapepoly import (
    IntegerOperations,
    PolyShape,
    ShapeMismatch,
    ShapeSpecError,
    SymbolicScope,
    solve_dimension_variables,
    symbolic_args_specs,
    symbolic_shape,
)

ARGS = ({"w": np.ones((3, 4), np.float32), "b": np.ones(4, np.float32)}, np.ones((7, 3), np.int32))


def shapes(specs):
    return jax.tree.map(lambda leaf: f"{leaf.shape} {leaf.dtype}", specs)


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (None, ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(7, 3) int32")),
        ("n, ...", ({"w": "(n, 4) float32", "b": "(n,) float32"}, "(n, 3) int32")),
        ((None, "batch, _"), ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(batch, 3) int32")),
        ([None, "batch, _"], ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(batch, 3) int32")),
        (({"w": "(i, o)", "b": "(o,)"}, None), ({"w": "(i, o) float32", "b": "(o,) float32"}, "(7, 3) int32")),
        (
            ({"w": "(i, o)", "b": None}, PolyShape("n", ...)),
            ({"w": "(i, o) float32", "b": "(4,) float32"}, "(n, 3) int32"),
        ),
    ],
)
def test_specifications_are_a_prefix_of_the_arguments(specs, expected):
    assert shapes(symbolic_args_specs(ARGS, specs)) == expected


def test_all_arguments_share_a_scope():
    x, y = symbolic_args_specs((np.ones(3), np.ones(4)), ("a", "b"), constraints=["a >= b"])
    assert x.shape[0] >= y.shape[0]
    scope = SymbolicScope()
    (z,) = symbolic_args_specs((np.ones(3),), ("a",), scope=scope)
    assert z.shape[0].scope is scope


def test_scalars_and_shape_dtype_structs_are_arguments():
    specs = symbolic_args_specs((3.0, jax.ShapeDtypeStruct((2, 3), "bfloat16")), ("", "b, _"))
    assert shapes(specs) == ("() float32", "(b, 3) bfloat16")


def test_an_error_names_the_argument():
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_args_specs(ARGS, ({"w": "(i, o, k)", "b": None}, None))
    assert str(caught.value) == (
        "in the specification of args[0]['w']: syntax error in symbolic shape '(i, o, k)': it has rank 3, but the "
        "shape it is for, (3, 4), has rank 2; write one dimension for each axis"
    )


class Pair:
    """A container that only JAX's registry knows."""

    def __init__(self, first, second):
        self.first, self.second = first, second


jax.tree_util.register_pytree_node(
    Pair, lambda pair: ((pair.first, pair.second), None), lambda _, children: Pair(*children)
)

Layer = collections.namedtuple("Layer", "w, b")
X = np.ones((2, 4), np.float32)
OPTIONAL = {"w": X, "bias": None}


def structure_of_shapes(specs):
    """The structure with None at the places of None, and shapes as texts."""
    tree = jax.tree.structure(specs)
    return tree, [str(leaf.shape) for leaf in jax.tree.leaves(specs)]


@pytest.mark.parametrize(
    ("args", "specs"),
    [
        ((OPTIONAL, X, None), (None, "b, _", None)),
        ((OPTIONAL, X, None), None),
        ((X, None), ("b, _", None)),
        ((X, None), ("b, _", "c, _")),
        ((None,), (None,)),
        ((None, X), "b, _"),
        ((OPTIONAL,), ({"w": "b, _", "bias": None},)),
        ((OPTIONAL,), ({"w": "b, _", "bias": "c"},)),
        ((OPTIONAL,), ("b, _",)),
        (([None, (X, None)],), ([None, ("b, _", None)],)),
        ((Pair(X, None), X), (Pair("b, _", None), None)),
        ((Pair(None, X), X), (None, "b, _")),
        ((Layer(X, None), X), (Layer("b, _", None), None)),
        (({}, X, ()), ({}, "b, _", ())),
        (({}, X, ()), ("c", "b, _", None)),
        ((), ()),
        ((), None),
    ],
)
def test_an_argument_that_is_none_stays_none_as_in_jax_export(args, specs):
    expected = structure_of_shapes(jax_export.symbolic_args_specs(args, specs))
    assert structure_of_shapes(symbolic_args_specs(args, specs)) == expected


ENTRY = 'an entry is None, a text such as "(b, _)", or a pytree of these that is a prefix of its argument'


def refused(args, specs, **options):
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_args_specs(args, specs, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "specs", "detail"),
    [
        ((X, X), (None, "x, _", None), "there are 2 arguments, and 3 were given: (None, 'x, _', None)"),
        ((X, X), ["x, _"], "there are 2 arguments, and 1 was given: ('x, _',)"),
        ((), ("x",), "there are 0 arguments, and 1 was given: ('x',)"),
        (
            (X,),
            {"x": "b, _"},
            "there is 1 argument, and a dict with the keys 'x' was given in place of a tuple or list",
        ),
        ((X,), Pair("b", "c"), "there is 1 argument, and a Pair was given in place of a tuple or list"),
    ],
)
def test_there_is_one_entry_for_each_positional_argument(args, specs, detail):
    message = f"polymorphic shapes have one entry for each positional argument; {detail}\n  {ENTRY}"
    assert refused(args, specs) == message


@pytest.mark.parametrize(
    ("args", "specs", "detail", "text"),
    [
        ((X,), (None, 4), "there is 1 argument, and (None, 4) was given, which is a shape", "(b, 4)"),
        ((X, X), [None, 4], "there are 2 arguments, and (None, 4) was given, which is a shape", "(b, 4)"),
        ((X,), ("b", "_"), "there is 1 argument, and 2 were given: ('b', '_')", "(b, _)"),
    ],
)
def test_sizes_in_place_of_the_entries_raise_with_the_text_to_write(args, specs, detail, text):
    assert refused(args, specs) == (
        f"polymorphic shapes have one entry for each positional argument; {detail}\n  {ENTRY}\n"
        f'  the shape of an argument is written as one text, such as "{text}"'
    )
    assert str(symbolic_args_specs((X,), (text,))[0].shape) == text.replace("_", "4")


@pytest.mark.parametrize(
    ("specs", "detail", "text"),
    [
        ((None, 4), "tuple (None, 4)", "(b, 4)"),
        ([None, None], "list [None, None]", "(b, d1)"),
        ((np.int64(2), ...), f"tuple ({np.int64(2)!r}, Ellipsis)", "(2, ...)"),
        (("b", "_"), "tuple ('b', '_')", "(b, _)"),
        (("b", None), "tuple ('b', None)", "(b, d1)"),
        (symbolic_shape("b, 4"), "tuple (b, 4)", "(b, 4)"),
        (jax_export.symbolic_shape("b, 4"), "tuple (b, 4)", "(b, 4)"),
    ],
)
def test_a_tuple_of_sizes_in_place_of_a_text_raises_with_the_text(specs, detail, text):
    message = f'in the specification of args[1]: the {detail} is where a text belongs; write "{text}"'
    assert refused((X, X), (None, specs)) == message
    symbolic_args_specs((X, X), (None, text))


def test_a_tuple_of_sizes_is_blamed_and_not_the_entries_that_it_happens_to_match():
    message = 'in the specification of args[0]: the tuple (None, 4) is where a text belongs; write "(b, 4)"'
    assert refused(((X, X),), ((None, 4),)) == message


class Sizes:
    """A shape as TensorFlow has it: iterable, and no tuple."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        return iter(self.sizes)

    def __repr__(self):
        return f"Sizes({list(self.sizes)})"


def test_a_tensor_shape_in_place_of_a_text_raises_with_the_text():
    found = "in the specification of args[0]: polymorphic shape spec should be None or a string; found"
    assert refused((X,), (Sizes(None, 4),)) == f'{found} Sizes([None, 4]) of type Sizes; write the text "(b, 4)"'
    assert refused((X,), (Sizes("a, b"),)) == f"{found} Sizes(['a, b']) of type Sizes"
    assert refused((X,), (np.ones(2),)) == f"{found} array([1., 1.]) of type ndarray"


@pytest.mark.parametrize(
    ("args", "specs", "detail"),
    [
        ((X,), ({"x": "b, _"},), "args[0]: found a dict with the keys 'x', but args[0] is an array of shape (2, 4)"),
        ((3.0,), ({"x": "b"},), "args[0]: found a dict with the keys 'x', but args[0] is a float"),
        ((None,), (("b", "c"),), "args[0]: found the tuple ('b', 'c'), but args[0] is None"),
        (([X, X],), (("b, _", None),), "args[0]: found the tuple ('b, _', None), but args[0] is a list of 2"),
        ((Layer(X, X),), (("b, _", None),), "args[0]: found the tuple ('b, _', None), but args[0] is a Layer of 2"),
        (((X, X),), ((None,),), "args[0]: found the tuple (None,), but args[0] is a tuple of 2"),
        (
            ({"w": X, "b": X},),
            ({"w": None, "c": None},),
            "args[0]: found a dict with other keys than args[0]: without 'b' and with 'c'",
        ),
        (
            ({f"w{i}": X for i in range(6)},),
            ({},),
            "args[0]: found a dict with other keys than args[0]: without 'w0', 'w1', 'w2', 'w3' and 2 more",
        ),
        (
            (X, {"w": {"k": X}}),
            (None, {"w": collections.OrderedDict(k="b, _")}),
            "args[1]['w']: found an OrderedDict with the keys 'k', but args[1]['w'] is a dict with the keys 'k'",
        ),
        ((Pair(X, X),), ({},), "args[0]: found a dict without keys, but args[0] is a Pair"),
        (X, ["b, _"], "args: found the list ['b, _'], but args is an array of shape (2, 4)"),
    ],
)
def test_an_entry_that_is_not_a_prefix_is_named_with_what_its_argument_is(args, specs, detail):
    assert refused(args, specs) == f"in the specification of {detail}\n  {ENTRY}"


def test_a_constraint_on_a_variable_that_occurs_in_no_shape_is_refused():
    assert refused((X,), ("batch, n",), constraints=["n >= 2", "bacth >= 2"]) == (
        "the constraint 'bacth >= 2' mentions 'bacth', which occurs in no shape of the arguments: nothing would "
        "check it\n  in the shapes there are 'batch', 'n'; did you mean 'batch'?"
    )
    assert refused((X,), ("b, _",), constraints=["b >= 2*k"]).endswith("\n  in the shapes there is 'b'")
    assert refused((X,), None, constraints=["b >= 2"]) == (
        "the constraint 'b >= 2' mentions 'b', which occurs in no shape of the arguments: nothing would check it\n"
        '  the shapes have no dimension variables; write them as texts such as "(b, _)", or leave the constraint out'
    )


def test_a_constraint_may_mention_a_variable_that_equalities_tie_to_the_shapes():
    constraints = ["j >= 3", "b == 2*k", "floordiv(k, 2) == j"]
    (x,) = symbolic_args_specs((X,), ("b, _",), constraints=constraints)
    assert x.shape[0] % 2 == 0
    solution = solve_dimension_variables([("args[0]", x.shape)])
    assert solution.run(IntegerOperations([(12, 4)])) == {"k": 6}
    with pytest.raises(ShapeMismatch, match="constraint j >= 3"):
        solution.run(IntegerOperations([(8, 4)]))


def test_a_scope_may_have_constraints_on_variables_of_other_shapes():
    (x,) = symbolic_args_specs((X,), ("b, _",), scope=SymbolicScope(["n >= 2"]))
    assert str(x.shape) == "(b, 4)"


def test_a_dataclass_of_another_class_is_no_specification():
    made = [dataclasses.make_dataclass(name, ["a", "b"]) for name in ("One", "Other")]
    one, other = (jax.tree_util.register_dataclass(each, ["a", "b"], []) for each in made)
    argument = one(X, X)
    assert shapes(symbolic_args_specs((argument,), (one("n, _", None),))) == (one("(n, 4) float32", "(2, 4) float32"),)
    assert refused((argument,), (other("n, _", None),)) == (
        f"in the specification of args[0]: found an Other, but args[0] is an One\n  {ENTRY}"
    )
