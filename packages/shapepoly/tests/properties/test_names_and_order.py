"""Answers do not depend on the names of variables, nor on the order of constraints."""

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxtf.shapepoly import InconclusiveDimensionOperation, ScopeError, SymbolicScope, symbolic_shape

# Under pytest's importlib mode tests have no absolute name.
from ..strategies import NAMES, SYMBOLIC, constraints, expressions, linear_expressions, value  # noqa: TID252

EXAMPLES = max(60, settings.default.max_examples // 10)
"""Each example asks its question six times."""


def renamed(text, names):
    """The text with other names for a, b and c."""
    return re.sub(r"\b[abc]\b", lambda name: names[NAMES.index(name[0])], text)


def answer(left, right, declared):
    """What is answered, in a new scope, to `left >= right` and to `left == right`."""
    try:
        scope = SymbolicScope(declared)
        sizes = dict(zip("pqr", symbolic_shape("p, q, r", scope=scope), strict=True))
        x, y = value(left, sizes, SYMBOLIC), value(right, sizes, SYMBOLIC)
    except (ScopeError, InconclusiveDimensionOperation, ZeroDivisionError) as error:
        return type(error)
    try:
        return x >= y, x == y
    except InconclusiveDimensionOperation:
        return None, x == y


def check(left, right, declared, order):
    answers = {
        answer(
            renamed(left, names),
            renamed(right, names),
            [renamed(text, names) for text in (declared, order)[position % 2]],
        )
        for position, names in enumerate(itertools.permutations("pqr"))
    }
    assert len(answers) == 1


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(left=linear_expressions, right=linear_expressions, declared=constraints, random=st.randoms())
def test_answers_in_the_linear_fragment_do_not_depend_on_names_or_order(left, right, declared, random):
    check(left, right, declared, random.sample(declared, len(declared)))


@settings(max_examples=EXAMPLES)
@given(left=expressions, right=expressions, declared=constraints, random=st.randoms())
@example("floordiv(a, max(a - b, 1))", "1", ["a >= b"], None)
@example("floordiv(a, a - b)", "1", ["a >= b + 1"], None)
@example("floordiv(c, a - b)", "0", ["a <= 9", "a >= 5", "b <= 3"], None)
@example("floordiv(a*b, c - b)", "a", ["c >= b + 1"], None)
def test_answers_do_not_depend_on_names_or_order(left, right, declared, random):
    check(left, right, declared, random.sample(declared, len(declared)) if random else declared[::-1])
