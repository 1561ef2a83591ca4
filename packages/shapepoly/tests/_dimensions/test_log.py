"""The log of comparisons: one line for each, and nothing where it is off."""

import logging
import os
import re
import subprocess
import sys

import pytest

from jaxtf.shapepoly import InconclusiveDimensionOperation, symbolic_shape
from jaxtf.shapepoly._dimensions import algebra, comparison


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "jaxtf.shapepoly")
    return lambda: [re.sub(r"\d+ us$", "TIME", message) for message in caplog.messages]


@pytest.mark.parametrize(
    ("constraints", "ask", "line"),
    [
        ([], lambda a, b: a + b >= 2, "a + b >= 2 is True, by intervals"),
        ([], lambda a, b: a + b < 2, "2 > a + b is False, by intervals"),
        ([], lambda a, b: b * (a % 4) >= 0, "b*mod(a, 4) >= 0 is True, by signs of factors"),
        (["mod(a, 4) == 0"], lambda a, b: a >= 4, "a >= 4 is True, by integer sets"),
        (["a >= 3", "b >= a"], lambda a, b: b >= 3, "b >= 3 is True, by integer sets"),
        ([], lambda a, b: a == b, "a == b is False, by sizes for which it fails"),
        (["a == 2*b"], lambda a, b: a * b == 2 * b * b, "2*b^2 == 2*b^2 is True, by normal form"),
        (["2*a*a == 3*b"], lambda a, b: a * a == 3 * b - a * a, "a^2 == -a^2 + 3*b is True, by equalities"),
        ([], lambda a, b: a == 4, "a == 4 is False, by normal form"),
    ],
)
def test_each_comparison_has_a_line_with_what_decided_it(lines, constraints, ask, line):
    a, b = symbolic_shape("a, b", constraints=constraints)
    for _ in range(2):
        ask(a, b)
    code = ask.__code__
    expected = f"{code.co_filename}:{code.co_firstlineno}, in <lambda>: {line}, TIME"
    assert lines() == [expected, expected]


def test_an_inconclusive_comparison_has_a_line(lines):
    a, b = symbolic_shape("a, b")
    with pytest.raises(InconclusiveDimensionOperation):
        a >= b  # noqa: B015
    [line] = lines()
    assert re.search(
        r"test_log.py:\d+, in test_an_inc.*: a >= b is inconclusive, by sizes for which it holds and fails, TIME$", line
    )


def test_where_the_log_is_off_nothing_is_made(monkeypatch):
    for module in (algebra, comparison):
        monkeypatch.setattr(module, "log_answer", lambda *_: pytest.fail("a line was made"))
    a, b = symbolic_shape("a, b")
    assert (a + b >= 2, a == b, a == 4, a + b == b + a) == (True, False, False, True)


def test_the_environment_turns_the_log_on():
    program = "from jaxtf.shapepoly import symbolic_shape; a, b = symbolic_shape('a, b'); a > 0"
    for variable, expected in (
        ("dims", r"jaxtf.shapepoly: <string>:1, in <module>: a > 0 is True, by intervals, \d+ us\n"),
        ("", ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "JAXTF_LOG": variable},
        )
        assert re.fullmatch(expected, done.stderr)
