"""Questions without names."""

import re
from itertools import permutations

import pytest

from jaxtf.shapepoly import symbolic_shape
from jaxtf.shapepoly._expressions.anonymous import anonymous, is_linear

TEXTS = ["a*b - c", "floordiv(a, max(b - c, 1))", "a*a + b*c - b", "max(a*b, c + 1) - b", "a*b + b*c + c*a - 2*a"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_question_is_the_same_whatever_the_names_and_the_order_of_facts(text):
    questions = set()
    for names in permutations("pqr"):
        table = {"a": names[0], "b": names[1], "c": names[2]}
        renamed = re.sub(r"\b[abc]\b", lambda name, table=table: table[name[0]], text)
        facts = [f"{names[0]} - 2*{names[1]}", f"{names[1]}*{names[2]} - {names[0]}"]
        expression, *known = (d.expression for d in symbolic_shape(", ".join([renamed, *facts])))
        for order in (known, known[::-1]):
            question = anonymous(expression, order, frozenset("pqr"))
            questions.add((repr(question.expression), repr(question.facts)))
            assert sorted(question.names) == ["p", "q", "r"]
    assert len(questions) == 1


def test_what_is_linear():
    linear = symbolic_shape("a + 2*b, floordiv(a, 3), max(a, floordiv(b, 2)) - 1, mod(a, 4)")
    others = symbolic_shape("a*b, a^2, floordiv(a, b), max(a, b*c), floordiv(a*b, 2), a*floordiv(b, 2)")
    assert all(is_linear(d.expression) for d in linear)
    assert not any(is_linear(d.expression) for d in others)
