"""What is decided: the statements of the guide, and such that a weaker procedure leaves open."""

import itertools
import re
import statistics

import pytest

from jaxtf.shapepoly import InconclusiveDimensionOperation, SymbolicScope, symbolic_dim_bounds, symbolic_shape

from ..strategies import SYMBOLIC, value  # noqa: TID252


def holds(statement, constraints):
    scope = SymbolicScope(constraints)
    names = "abcd"
    return value(statement, dict(zip(names, symbolic_shape(", ".join(names), scope=scope), strict=True)), SYMBOLIC)


@pytest.mark.parametrize(
    "statement",
    [
        *["b >= 1", "b >= 0", "2*a + b >= 3", "a + 2 >= 3", "a * 2 >= 1", "a + b + c >= 3", "a // 4 >= 0", "a**2 >= 1"],
        *["a % 4 <= a", "a // b <= a", "(a + b - 1) // b >= 1", "2*max(a, b) >= a + b", "a*b >= a", "a*a >= a"],
        *["a % b < b", "b >= 4*floordiv(b, 4)", "a*b*c >= a*c", "max(a, max(b, c)) == max(max(c, a), b)"],
        *["a//2 + (a + 1)//2 == a", "min(a, b) <= b", "a*b >= a + b - 1", "b + (2*d) % 5 >= 1"],
    ],
)
def test_what_holds_for_all_sizes_is_decided(statement):
    assert holds(statement, []) is True


@pytest.mark.parametrize("statement", ["a <= 0", "a + b < 2", "a == 0", "a == a + 1", "a % 4 >= 4", "a // b > a"])
def test_what_fails_for_all_sizes_is_decided(statement):
    assert holds(statement, []) is False


CONSEQUENCES = [
    (["a >= b + c"], ["a >= 2"]),
    (["2*a == 3*b"], ["a >= 3", "b >= 2"]),
    (["a >= 2*b", "b >= 2*c"], ["a >= 4"]),
    (["a + b + c <= 6"], ["a <= 4"]),
    (["a - b >= 3", "b - c >= 3"], ["a >= 7"]),
    (["2*a == b", "b >= 5"], ["a >= 3", "b >= 6"]),
    (["b >= 10", "a >= c", "c >= b"], ["a + b + c >= 30"]),
    (["c >= a", "c >= b"], ["2*c >= a + b"]),
    (["b <= 6", "c <= 5", "a + b + c >= 30"], ["a >= 19"]),
    (["2*a + 3*c + 4*b <= 20"], ["a <= 6"]),
    (["mod(a, 4) == 0"], ["a >= 4", "a % 2 == 0", "4*(a//4) == a"]),
    (["a >= b"], ["a//b >= 1", "a*c >= b*c", "max(a, b) == a", "min(a, b) == b"]),
    (["a >= b", "b >= a"], ["a == b"]),
    (["floordiv(b, 2) == a"], ["b//2 == a", "b >= 2"]),
    (["a*b == c"], ["a*b*d == c*d", "c >= a"]),
    (["a >= 16", "b >= 8"], ["a + 2*b >= 32"]),
    (["a <= 1"], ["a == 1"]),
    (["a - b >= 1", "b >= 2"], ["c // (a - b) <= c", "(a*b - b*b) // (a - b) == b"]),
    (["b >= 4*floordiv(a, 4)", "a >= 8"], ["b >= 8"]),
]


@pytest.mark.parametrize(("constraints", "consequences"), CONSEQUENCES)
def test_consequences_of_constraints_are_decided_in_whatever_order_they_have(constraints, consequences):
    for ordered in itertools.permutations(constraints):
        for consequence in consequences:
            assert holds(consequence, ordered) is True, consequence


@pytest.mark.parametrize(("constraints", "consequences"), CONSEQUENCES)
def test_answers_do_not_depend_on_the_names_of_variables(constraints, consequences):
    for renamed in ("bacd", "cdab", "dcba"):
        table = str.maketrans("abcd", renamed)
        # only variables are single letters: operations keep their names
        words = {"floordiv": "\0", "max": "\1", "min": "\2", "mod": "\3"}

        def rename(text, words=words, table=table):
            for word, mark in words.items():
                text = text.replace(word, mark)
            text = text.translate(table)
            for word, mark in words.items():
                text = text.replace(mark, word)
            return text

        for consequence in consequences:
            assert holds(rename(consequence), [rename(c) for c in constraints]) is True, rename(consequence)


@pytest.mark.parametrize(
    ("text", "constraints", "bounds"),
    [
        ("a", [], (1, float("inf"))),
        ("a - b", [], (float("-inf"), float("inf"))),
        ("mod(a, 4)", [], (0, 3)),
        ("min(a, 7) + min(b, 3)", [], (2, 10)),
        ("2*a - b", ["a >= b", "b >= 3", "a <= 10"], (3, 17)),
        ("a*b", ["a <= 3", "b <= 5"], (1, 15)),
        ("7*a - 7*b", ["a == b"], (0, 0)),
        ("5", [], (5, 5)),
    ],
)
def test_bounds_are_attained(text, constraints, bounds):
    (dimension,) = symbolic_shape(text, constraints=constraints)
    assert symbolic_dim_bounds(dimension) == bounds


def test_bounds_are_of_integers_and_dimensions_only():
    with pytest.raises(TypeError):
        symbolic_dim_bounds("a")


def test_an_inconclusive_comparison_shows_witnesses_and_the_constraint_to_paste():
    a, b = symbolic_shape("a, b", constraints=["a <= 9"])
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        a + 1 >= b  # noqa: B015
    line = caught.traceback[0].lineno + 1
    assert str(caught.value) == (
        "Symbolic dimension comparison 'a + 1' >= 'b' is inconclusive: cannot decide a + 1 >= b for every size\n"
        "  it holds for a=1, b=1 and fails for a=1, b=3\n"
        '  if it always holds for you, add the constraint "a + 1 >= b"\n'
        f"  asked at: {__file__}:{line}, in "
        "test_an_inconclusive_comparison_shows_witnesses_and_the_constraint_to_paste\n"
        "  known:    a <= 9\n"
        "  see jaxtf's page 'Symbolic dimensions', section 'When a comparison is inconclusive'"
    )
    a, b = symbolic_shape("a, b", constraints=["a <= 9", "a + 1 >= b"])
    assert a + 1 >= b


def test_the_line_of_an_inconclusive_comparison_is_not_one_of_the_standard_library():
    a, b = symbolic_shape("a, b")
    with pytest.raises(InconclusiveDimensionOperation, match=f"asked at: {re.escape(__file__)}:"):
        statistics.median([a, b])  # sorts in its own frame


def test_the_constraint_to_paste_decides_a_strict_comparison_too():
    a, b = symbolic_shape("a, b")
    with pytest.raises(InconclusiveDimensionOperation, match=r'add the constraint "a >= b \+ 1"'):
        a > b  # noqa: B015
    a, b = symbolic_shape("a, b", constraints=["a >= b + 1"])
    assert a > b


def test_witnesses_beyond_the_sizes_that_are_tried_are_found_too():
    _, b = symbolic_shape("a, b", constraints=["a >= 100000", "b >= a"])
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        b >= 200001  # noqa: B015
    (witnesses,) = (line for line in str(caught.value).splitlines() if "it holds for" in line)
    holds_for, fails_for = witnesses.removeprefix("  it holds for ").split(" and fails for ")
    sizes = [dict(size.split("=") for size in side.split(", ")) for side in (holds_for, fails_for)]
    assert all(int(size["b"]) >= int(size["a"]) >= 100000 for size in sizes)
    assert int(sizes[0]["b"]) >= 200001 > int(sizes[1]["b"])


def test_a_question_that_takes_too_much_work_is_inconclusive_and_returns_soon():
    scope = SymbolicScope([f"max(a{i}, b{i}) + max(c{i}, 3*a{i}) >= 7" for i in range(8)])
    shape = symbolic_shape(", ".join(f"max(a{i}, min(b{i}, c{i} + a{i}))" for i in range(8)), scope=scope)
    with pytest.raises(InconclusiveDimensionOperation, match="is inconclusive"):
        sum(shape) >= 1000  # noqa: B015
