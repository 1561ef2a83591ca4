"""Scopes of any constraints, many of them contradictory: refused as one documents, or right.

A divisor may be 0, negative or both by the constraints, and constraints may leave no sizes at all, so that what is
asked while a scope is read, and what advice is tried, is asked under facts that contradict each other.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxtf.shapepoly import (
    InconclusiveDimensionOperation,
    IntegerOperations,
    ScopeError,
    ShapeSpecError,
    SymbolicScope,
    evaluate,
    symbolic_dim_bounds,
    symbolic_shape,
)

# Under pytest's importlib mode tests have no absolute name.
from ..strategies import NAMES, SYMBOLIC, all_sizes, value  # noqa: TID252

LARGEST = 6

_variables = st.sampled_from(NAMES)
_numbers = st.integers(-3, 6).map(str)
_divisors = st.one_of(
    _variables,
    st.builds("({} - {})".format, _variables, st.one_of(_numbers, _variables)),
    st.builds("({}*{} - {})".format, st.sampled_from(("2", *NAMES)), _variables, st.integers(0, 3)),
    st.builds("({} - {})".format, _numbers, _variables),
)
_dividends = st.one_of(_variables, st.builds("{}*{}".format, st.sampled_from(("2", *NAMES)), _variables))
_divisions = st.builds("{}({}, {})".format, st.sampled_from(("floordiv", "mod")), _dividends, _divisors)
_powers = st.builds("{}*{}*{}".format, _variables, _variables, _variables)
_simple = st.builds("{} {} {}".format, _variables, st.sampled_from((">=", "<=", "==")), st.one_of(_numbers, _variables))
_harder = st.builds(
    "{} {} {}".format,
    st.one_of(_divisions, _powers, _variables),
    st.sampled_from((">=", "<=", "==")),
    st.one_of(_divisions, _variables, _numbers),
)
declarations = st.builds(
    lambda simple, harder: [*simple, *harder], st.lists(_simple, max_size=3), st.lists(_harder, max_size=2)
)


def sizes_that_satisfy(declared):
    """The small sizes for which each constraint is defined and holds."""
    found = []
    for sizes in all_sizes(NAMES, LARGEST):
        try:
            if all(value(text, sizes) for text in declared):
                found.append(sizes)
        except ZeroDivisionError:
            continue
    return found


def is_defined(text, sizes):
    try:
        value(text, sizes)
    except ZeroDivisionError:
        return False
    return True


@given(declared=declarations, text=st.one_of(_divisions, _powers))
@example(["mod(a, b) == 0"], "floordiv(a, (b - 1))")
@example(["floordiv(a, b) >= 2"], "floordiv(a, (b - 1))")
@example(["b <= 0", "a >= floordiv(a, b)"], "a*b*c")
@example(["b <= 0", "a >= floordiv(a, 2*b)"], "a*b*c")
@example(["a >= mod(a, b)", "b <= 0"], "a*b*c")
@example(["b <= 0", "a*b*c >= floordiv(a, b)"], "a*b*c")
@example(["b >= 5", "b <= 4", "a >= floordiv(a, (b - 4))"], "a*b*c")
@example(["c == 2", "mod(a*c, (a - -1)) == -2"], "a*b*c")
@example(["b >= c", "c >= b + 1", "a >= floordiv(a, (b - c))"], "a*b*c")
def test_scopes_of_any_constraints_are_refused_as_documented_or_right(declared, text):
    allowed = sizes_that_satisfy(declared)
    try:
        scope = SymbolicScope(declared)
    except ScopeError:
        assert not allowed, "a scope that sizes satisfy was refused"
        return
    except InconclusiveDimensionOperation:
        return
    except ShapeSpecError as error:
        if "division by zero" not in str(error):
            raise
        assert not allowed, "a divisor is other than 0 for some sizes"
        return
    try:
        dimension = value(text, dict(zip(NAMES, symbolic_shape(", ".join(NAMES), scope=scope), strict=True)), SYMBOLIC)
    except InconclusiveDimensionOperation:
        return
    except ZeroDivisionError:
        assert not any(is_defined(text, sizes) for sizes in allowed)
        return
    lower, upper = symbolic_dim_bounds(dimension)
    for sizes in allowed:
        number = evaluate(dimension, sizes, IntegerOperations())
        assert number == value(text, sizes)
        assert lower <= number <= upper


@pytest.mark.parametrize(
    ("declared", "culprits"),
    [
        (["b <= 0", "a >= floordiv(a, b)"], "no sizes satisfy the symbolic constraint 'b <= 0'"),
        (["b >= 5", "b <= 4", "a >= floordiv(a, b - 4)"], "contradict each other .*\n  b >= 5\n  b <= 4$"),
        (["b >= c", "c >= b + 1", "a >= floordiv(a, b - c)"], "contradict each other .*\n  b >= c\n  c >= b \\+ 1$"),
    ],
)
def test_a_contradiction_is_found_whatever_divides_by_sizes_that_it_leaves_none_of(declared, culprits):
    with pytest.raises(ScopeError, match=culprits):
        SymbolicScope(declared)


@pytest.mark.parametrize("constraint", ["mod(a, b) == 0", "floordiv(a, b) >= 2"])
def test_a_divisor_that_may_be_zero_is_refused_where_advice_contradicts_a_quotient(constraint):
    a, b = symbolic_shape("a, b", constraints=[constraint])
    with pytest.raises(InconclusiveDimensionOperation, match="Cannot divide 'a' by 'b - 1'"):
        a // (b - 1)
