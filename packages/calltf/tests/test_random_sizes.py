"""Functions of a symbolic size, drawn at random, are right on both sides of each threshold, or refused by name.

RANDOM_PROGRAMS is the number to draw; by default a few, always the same.
"""

import os
import warnings

import pytest

from .size_programs import program, verdict

COUNT = int(os.environ.get("RANDOM_PROGRAMS", "40"))


@pytest.mark.slow(1)
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_function_of_a_size_is_right_or_refused_by_name(seed):
    drawn = program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = verdict(drawn)
    assert answer == "right" or (answer.startswith("refused: call_tf") and "remedy:" in answer), (drawn.source, answer)


@pytest.mark.slow
def test_programs_that_are_right_are_many():
    answers = [verdict(program(seed)) for seed in range(6)]
    assert answers.count("right") >= 3
