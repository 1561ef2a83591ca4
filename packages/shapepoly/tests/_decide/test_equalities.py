"""What equalities of a scope make equal, also inside products and quotients."""

import itertools

import pytest

from jaxtf.shapepoly import IntegerOperations, SymbolicScope, solve_dimension_variables, symbolic_shape

from ..strategies import SYMBOLIC, value  # noqa: TID252

NAMES = "abcd"

CONSEQUENCES = [
    (
        ["a == 2*b"],
        ["a*c*d == 2*b*c*d", "a*a == 4*b*b", "floordiv(a*c, b) == 2*c", "mod(a*c, 2) == 0", "a*a*b == 4*b^3"],
    ),
    (["a == 2*b"], ["floordiv(a*c, 2) == b*c", "max(a, 2*b)*c == a*c", "(a - b)*c == b*c", "mod(a*c, b) == 0"]),
    (["a == b"], ["a*c*c == b*c*c", "floordiv(a*c, b) == c", "a*b == a*a"]),
    (["a == b*c"], ["floordiv(a, c) == b", "mod(a, b) == 0", "floordiv(a*d, b) == c*d", "a*a == b*b*c*c"]),
    (["mod(b, 4) == 0"], ["b*c*d == 4*floordiv(b, 4)*c*d", "mod(b*c, 4) == 0", "floordiv(b*c, floordiv(b, 4)) == 4*c"]),
    (["mod(b, 4) == 0"], ["floordiv(b*c, 2) == 2*floordiv(b, 4)*c", "b*b == 16*floordiv(b, 4)^2"]),
    (["mod(b, 4) == 1"], ["b*c - c == 4*floordiv(b, 4)*c", "mod(b*c - c, 4) == 0"]),
    (
        ["2*a == 3*b"],
        ["2*a*c == 3*b*c", "mod(b*c, 2) == 0", "mod(a*c, 3) == 0", "4*a*a == 9*b*b", "floordiv(a*c, a - b) == 3*c"],
    ),
    (["2*a == 3*b + 1"], ["2*a*c == 3*b*c + c", "mod(b*c - c, 2) == 0"]),
    (["floordiv(b, 2) == a"], ["floordiv(b, 2)*c == a*c", "floordiv(a, 2)*c == floordiv(b, 4)*c"]),
    (["max(a, b) == c"], ["max(b, a)*d == c*d", "(a + b - min(a, b))*d == c*d"]),
    (["max(a, b) == 8"], ["max(b, a)*d == 8*d"]),
    (
        ["a*b == c*d"],
        ["floordiv(a*b, c) == d", "floordiv(c*d*d, b) == a*d", "mod(a*b*b, d) == 0", "a*b*a*b == c*c*d*d"],
    ),
    (["a*b == 2*c*d"], ["mod(a*b, 2) == 0", "floordiv(2*c*d, a) == b"]),
    (["a*b == c + d"], ["floordiv(c + d, a) == b", "a*b*c == c*c + c*d"]),
    (["a*c == 2*b*c"], ["a == 2*b", "a*d == 2*b*d"]),
    (["mod(a*b, 4) == 0"], ["mod(a*b*c, 4) == 0", "floordiv(a*b*c, 2) == 2*floordiv(a*b, 4)*c"]),
    (["mod(a, c) == 0"], ["floordiv(a, c)*c*d == a*d", "mod(a*d, c) == 0"]),
    (["a + b == c + d"], ["a*b + b*b == b*c + b*d", "(a - c)*a == (d - b)*a"]),
    (["a == b*c", "d == b*b*c"], ["floordiv(d, a) == b", "a*b == d", "a*a == c*d"]),
    (["a*b == c*c", "c*d == a*a"], ["c*c*c*d == a*a*a*b", "b*d == a*c"]),
    (["a == 2*b", "c == 3*b"], ["3*a*d == 2*c*d", "floordiv(a*c, 6) == b*b", "(c - a)*d == b*d"]),
    (["a == 2*b", "b >= 3", "b <= 3"], ["a == 6", "b == 3"]),
]


def holds(statement, constraints):
    sizes = dict(zip(NAMES, symbolic_shape(", ".join(NAMES), constraints=constraints), strict=True))
    return value(statement, sizes, SYMBOLIC)


@pytest.mark.parametrize(
    ("constraints", "statement"), [(constraints, one) for constraints, all_ in CONSEQUENCES for one in all_]
)
def test_what_equalities_imply_is_equal(constraints, statement):
    for ordered in itertools.permutations(constraints):
        assert holds(statement, ordered) is True


@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        ("a == 2*b", "a*c == b*c"),
        ("mod(b, 4) == 0", "b*c == floordiv(b, 4)*c"),
        ("2*a == 3*b", "mod(a*c, 2) == 0"),
        ("a*b == c*d", "a*c == b*d"),
        ("a*a == b*b + c", "a == b"),
    ],
)
def test_what_equalities_do_not_imply_is_not_equal(constraint, statement):
    assert holds(statement, [constraint]) is False


@pytest.mark.parametrize(
    ("constraint", "text", "printed"),
    [
        ("a == 2*b", "a*c", "2*b*c"),
        ("mod(b, 4) == 0", "4*floordiv(b, 4)", "b"),
        ("mod(b, 4) == 0", "6*floordiv(b, 4)", "b + 2*floordiv(b, 4)"),
        ("mod(b, 4) == 0", "16*floordiv(b, 4)*floordiv(b, 4)", "b^2"),
        ("floordiv(b, 2) == a", "floordiv(b, 2)*c", "a*c"),
        ("2*a == 3*b", "2*a", "3*b"),
        ("a*b == c*d", "floordiv(a*b, 5)", "floordiv(c*d, 5)"),
        ("max(a, b) == c", "max(b, a)", "c"),
        ("max(a, b) == c", "min(a, b)", "min(a, b)"),
    ],
)
def test_equal_sizes_print_alike(constraint, text, printed):
    scope = SymbolicScope([constraint])
    (size,) = symbolic_shape(text, scope=scope)
    (again,) = symbolic_shape(printed, scope=scope)
    assert str(size) == str(again) == printed
    assert size == again
    assert hash(size) == hash(again)


def test_variables_that_equalities_define_are_solved_and_checked():
    solution = solve_dimension_variables([("args[0]", symbolic_shape("(a, b, c)", constraints=["a == b*c", "c >= 2"]))])
    assert solution.run(IntegerOperations([(6, 3, 2)])) == {"b": 3, "c": 2}
    with pytest.raises(ValueError, match=r"args\[0\].shape\[0\] \(= 7\) and the specification 'b\*c' \(= 6\)"):
        solution.run(IntegerOperations([(7, 3, 2)]))
    with pytest.raises(ValueError, match="the symbolic shape constraint c >= 2"):
        solution.run(IntegerOperations([(3, 3, 1)]))
    solution = solve_dimension_variables([("args[0]", symbolic_shape("(a, c)", constraints=["a == b*c"]))])
    assert solution.run(IntegerOperations([(6, 2)])) == {"b": 3, "c": 2}


def test_a_size_that_an_operation_defines_is_checked_in_the_order_of_causes():
    constraints = ["a == floordiv(c, b - d)", "b >= d + 1"]
    solution = solve_dimension_variables([("args[0]", symbolic_shape("(a, b, c, d)", constraints=constraints))])
    assert solution.run(IntegerOperations([(2, 4, 7, 1)])) == {"b": 4, "c": 7, "d": 1}
    with pytest.raises(ValueError, match=r"the symbolic shape constraint b >= d \+ 1"):
        solution.run(IntegerOperations([(2, 4, 7, 4)]))


def test_a_scope_of_many_equalities_is_made_at_once():
    chain = [f"v{index} == 2*v{index + 1}" for index in range(40)]
    (first, last) = symbolic_shape("v0, v40", constraints=chain)
    assert first == 2**40 * last
