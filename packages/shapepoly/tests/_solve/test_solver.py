"""Dimension variables from shapes: values, checks and their texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.shapepoly import (
    IntegerOperations,
    ShapeMismatch,
    SymbolicOperations,
    SymbolicScope,
    UnsolvableDimensionVariables,
    evaluate,
    solve_dimension_variables,
    symbolic_shape,
)

from ..strategies import all_sizes  # noqa: TID252

MORE = " Please see jaxtf's page 'Symbolic dimensions', section 'Shape assertion errors' for more details."


def solve(*texts, **options):
    scope = SymbolicScope(**options)
    return solve_dimension_variables(
        [(f"args[{i}]", symbolic_shape(text, scope=scope)) for i, text in enumerate(texts)]
    )


def run(solution, *shapes):
    return solution.run(IntegerOperations(shapes))


def failure(solution, *shapes):
    with pytest.raises(ShapeMismatch) as caught:
        run(solution, *shapes)
    return str(caught.value)


SOLVABLE = [
    ["b, 2*d"],
    ["b, b, 2*d"],
    ["a + b, a - b + 9"],
    ["a + b, b + c, a + c"],
    ["2*a + 3*b, a + b"],
    ["a, a*b"],
    ["a*b, a", "b + c"],
    ["a, floordiv(a, 2) + b"],
    ["a, max(a, 4) + 2*b"],
    ["4*a, 6*a"],
    ["a + 15", "mod(a, 3) + 3*b"],
    ["3, a, 4"],
]


@pytest.mark.parametrize("texts", SOLVABLE)
def test_the_sizes_that_made_the_shapes_are_found_again(texts):
    solution = solve(*texts)
    for sizes in all_sizes("abcd", 3):
        actual = [[] for _ in texts]
        for source in solution.sources:
            actual[source.argument].append(evaluate(source.specification, sizes, IntegerOperations()))
        assert run(solution, *actual) == {name: sizes[name] for name in solution.variables}


@given(data=st.data(), texts=st.sampled_from(SOLVABLE))
def test_shapes_that_pass_the_checks_are_those_of_some_sizes(data, texts):
    solution = solve(*texts)
    ranks = [sum(source.argument == argument for source in solution.sources) for argument in range(len(texts))]
    shapes = [data.draw(st.lists(st.integers(0, 20), min_size=rank, max_size=rank)) for rank in ranks]
    try:
        found = run(solution, *shapes)
    except ShapeMismatch:
        every = all_sizes(solution.variables, 21 if len(solution.variables) < 3 else 7)
        for sizes in every:
            made = [evaluate(s.specification, sizes, IntegerOperations()) for s in solution.sources]
            assert made != [size for shape in shapes for size in shape]
        return
    assert all(size >= 1 for size in found.values())
    for source in solution.sources:
        assert evaluate(source.specification, found, IntegerOperations()) == shapes[source.argument][source.axis]


def test_a_remainder_is_reported_as_the_guide_tells_it():
    assert failure(solve("(b, b, 2*d)"), (3, 3, 5)) == (
        "Input shapes do not match the polymorphic shapes specification. "
        "Division had remainder 1 when computing the value of 'd'. "
        "Using the following polymorphic shapes specifications: args[0].shape = (b, b, 2*d). "
        "Obtained dimension variables: 'b' = 3 from specification 'b' for dimension args[0].shape[0] (= 3)." + MORE
    )


def test_a_variable_below_one_is_reported():
    assert failure(solve("(b, b, 2*d)"), (3, 3, 0)) == (
        "Input shapes do not match the polymorphic shapes specification. "
        "Expected value >= 1 for dimension variable 'd'. "
        "Using the following polymorphic shapes specifications: args[0].shape = (b, b, 2*d). "
        "Obtained dimension variables: 'b' = 3 from specification 'b' for dimension args[0].shape[0] (= 3), "
        "'d' = 0 from specification '2*d' for dimension args[0].shape[2] (= 0)." + MORE
    )


def test_a_dimension_that_differs_is_reported():
    assert failure(solve("(b, b)"), (3, 4)) == (
        "Input shapes do not match the polymorphic shapes specification. "
        "Found inconsistency between dimension size args[0].shape[1] (= 4) and the specification 'b' (= 3). "
        "Using the following polymorphic shapes specifications: args[0].shape = (b, b). "
        "Obtained dimension variables: 'b' = 3 from specification 'b' for dimension args[0].shape[0] (= 3)." + MORE
    )


def test_a_static_dimension_is_checked_too():
    assert "dimension size args[0].shape[1] (= 5) and the specification '4' (= 4)" in failure(solve("(b, 4)"), (3, 5))
    assert failure(solve_dimension_variables([("args[0]", (4,))]), (5,)) == (
        "Input shapes do not match the polymorphic shapes specification. "
        "Found inconsistency between dimension size args[0].shape[0] (= 5) and the specification '4' (= 4)." + MORE
    )


def test_a_violated_constraint_is_reported():
    assert failure(solve("(a, b)", constraints_str=["a >= b"]), (2, 3)) == (
        "Input shapes do not match the symbolic shape constraint a >= b. "
        "Expected 'a - b' to be greater or equal to 0, but found -1. "
        "Using the following polymorphic shapes specifications: args[0].shape = (a, b). "
        "Obtained dimension variables: 'a' = 2 from specification 'a' for dimension args[0].shape[0] (= 2), "
        "'b' = 3 from specification 'b' for dimension args[0].shape[1] (= 3)." + MORE
    )
    equal = solve("(a, b)", constraints_str=["floordiv(b, 2) == a"])
    assert "Expected '-a + floordiv(b, 2)' to be equal to 0, but found -1." in failure(equal, (2, 3))
    assert run(equal, (2, 5)) == {"b": 5}


def test_variables_solved_together_name_all_their_sources():
    assert failure(solve("(a + b, a - b)"), (3, 3)) == (
        "Input shapes do not match the polymorphic shapes specification. "
        "Expected value >= 1 for dimension variable 'b'. "
        "Using the following polymorphic shapes specifications: args[0].shape = (a + b, a - b). "
        "Obtained dimension variables: 'a' = 3 from specifications 'a + b' for dimension args[0].shape[0] (= 3), "
        "'a - b' for dimension args[0].shape[1] (= 3), "
        "'b' = 0 from specifications 'a + b' for dimension args[0].shape[0] (= 3), "
        "'a - b' for dimension args[0].shape[1] (= 3)." + MORE
    )


def test_a_missing_axis_is_reported():
    assert "Flat argument 0 has shape (3,), of rank 1; its specification has a dimension 1." in failure(
        solve("(b, 4)"), (3,)
    )


@pytest.mark.parametrize(
    ("text", "unsolved", "unprocessed"),
    [
        ("a + b", "'a', 'b'", "'a + b' for dimension size args[0].shape[0]"),
        ("a * a", "'a'", "'a^2' for dimension size args[0].shape[0]"),
        ("floordiv(a, 2)", "'a'", "'floordiv(a, 2)' for dimension size args[0].shape[0]"),
        ("c, c + a + b", "'a', 'b'", "'a + b + c' for dimension size args[0].shape[1]"),
        (
            "2*a + 4*b, a + 2*b",
            "'a', 'b'",
            "'2*a + 4*b' for dimension size args[0].shape[0], 'a + 2*b' for dimension size args[0].shape[1]",
        ),
    ],
)
def test_what_cannot_be_solved_is_named(text, unsolved, unprocessed):
    with pytest.raises(UnsolvableDimensionVariables) as caught:
        solve(text)
    shape = str(symbolic_shape(text))
    assert str(caught.value) == (
        f"Cannot solve for values of dimension variables {{{unsolved}}}. "
        "We can only solve systems of linear constraints that determine each variable. "
        f"Using the following polymorphic shapes specifications: args[0].shape = {shape}. "
        f"Unprocessed specifications: {unprocessed}. "
        "Please see jaxtf's page 'Symbolic dimensions', section 'Dimension variables must be solvable "
        "from the input shapes' for more details."
    )


def test_a_product_determines_a_factor_only_where_the_other_one_is_positive():
    with pytest.raises(UnsolvableDimensionVariables, match=r"dimension variables \{'b'\}"):
        solve("(a, a*b - 3*b)")
    solution = solve("(a, a*b - 3*b)", constraints_str=["a >= 4"])
    assert run(solution, (5, 14)) == {"a": 5, "b": 7}
    assert "Expected value >= 1 for the factor 'a - 3' of dimension variable 'b'." in failure(solution, (3, 14))
    assert "Division had remainder 1 when computing the value of 'b'." in failure(solution, (5, 15))


def test_equality_constraints_help_to_solve():
    solution = solve("(a + b,)", constraints_str=["a == 2*b"])
    assert run(solution, (9,)) == {"b": 3}
    assert "Division had remainder 1" in failure(solution, (10,))


def test_a_variable_that_constraints_define_after_division_is_solved():
    solution = solve("(a, b)", "(c, d)", constraints_str=["d*d == b*c", "d == c"])
    assert run(solution, (5, 3), (3, 3))["c"] == 3
    assert "args[0]" in failure(solution, (5, 4), (3, 3))


def test_a_constraint_over_a_variable_that_no_shape_determines_is_refused():
    with pytest.raises(UnsolvableDimensionVariables, match=r"dimension variables \{'c'\}.*only constraints"):
        solve("(a,)", constraints_str=["a >= c", "c >= 5"])


def test_constraints_about_other_variables_are_no_concern():
    assert run(solve("(a,)", constraints_str=["c >= 5"]), (3,)) == {"a": 3}


def test_a_solution_runs_on_symbolic_sizes():
    solution = solve("(2*b, 4)")
    n, odd = symbolic_shape("n, 2*m + 1")
    assert solution.run(SymbolicOperations([(6 * n, 4)])) == {"b": 3 * n}
    with pytest.raises(ShapeMismatch, match="Division had remainder 1 when computing the value of 'b'"):
        solution.run(SymbolicOperations([(odd, 4)]))
    with pytest.raises(ShapeMismatch, match="shape constraint a >= b"):
        solve("(a, b)", constraints_str=["a >= b"]).run(SymbolicOperations([(n, n + 1)]))


def test_each_size_is_asked_for_once_and_no_check_is_issued_twice():
    class Recording(IntegerOperations):
        def __init__(self, shapes):
            super().__init__(shapes)
            self.asked, self.required = [], []

        def dimension_size(self, argument, axis):
            self.asked.append((argument, axis))
            return super().dimension_size(argument, axis)

        def require(self, relation, left, right, message):
            self.required.append((relation, message[0]))
            super().require(relation, left, right, message)

    operations = Recording([(3, 3, 8)])
    solve("(b, b, 2*d)").run(operations)
    assert sorted(operations.asked) == [(0, 0), (0, 1), (0, 2)]
    mismatch = "Input shapes do not match the polymorphic shapes specification. "
    assert operations.required == [
        (">=", mismatch + "Expected value >= 1 for dimension variable 'b'."),
        ("==", mismatch + "Division had remainder "),
        (">=", mismatch + "Expected value >= 1 for dimension variable 'd'."),
        ("==", mismatch + "Found inconsistency between dimension size args[0].shape[1] (= "),
    ]
