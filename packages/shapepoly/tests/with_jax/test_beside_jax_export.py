"""Questions and programs under random equalities, compared with brute force and `jax.export`.

What `jax.export` decides rightly is decided here, and what is decided is right; what `jax.export` traces is traced
here. `BESIDE_JAX_EXPORT` sets how many cases are drawn: a fixed sample without it, thousands with
`python3 run.py beside_jax_export`.
"""

import os
import random

import jax
import pytest
from jax import export as jax_export

from jaxtf.shapepoly import IntegerOperations, SymbolicScope, evaluate, is_symbolic_dim, symbolic_shape

from .random_equalities import NAMES, OURS, PYTHON, THEIRS, declared, expression, outcome, program, value

CASES = int(os.environ.get("BESIDE_JAX_EXPORT", "60"))


def dimensions(texts):
    """The four sizes of this package and of `jax.export`, if it takes the constraints."""
    ours = symbolic_shape(", ".join(NAMES), scope=SymbolicScope(texts))
    theirs = outcome(lambda: jax_export.symbolic_shape(", ".join(NAMES), constraints=texts))
    return dict(zip(NAMES, ours, strict=True)), theirs and dict(zip(NAMES, theirs, strict=True))


def answers(texts, question):
    """What both answer."""
    ours, theirs = dimensions(texts)
    return outcome(lambda: value(question, ours, OURS)), theirs and outcome(lambda: value(question, theirs, THEIRS))


@pytest.mark.parametrize("seed", range(CASES))
def test_questions_under_equalities_are_decided_as_rightly_as_by_jax_export(seed):
    draw = random.Random(f"question {seed}")
    texts, _, allowed = declared(draw)
    question = f"{expression(draw)} {draw.choice(('>=', '>', '=='))} {expression(draw)}"
    ours, theirs = answers(texts, question)
    truths = {value(question, sizes) for sizes in allowed}
    if ours is not None and not ("==" in question and not ours):
        assert truths == {ours}, (texts, question)
    if theirs is not None and not ("==" in question and not theirs) and truths == {theirs}:
        assert ours == theirs, (texts, question)


@pytest.mark.parametrize("seed", range(CASES))
def test_programs_under_equalities_are_traced_that_jax_export_traces(seed):
    draw = random.Random(f"program {seed}")
    texts, sides, allowed = declared(draw)
    text = program(draw, *sides)
    ours, theirs = (
        dims and outcome(lambda dims=dims, functions=functions: shape_of(text, dims, functions))
        for dims, functions in zip(dimensions(texts), (OURS, THEIRS), strict=True)
    )
    assert ours is not None or theirs is None, (texts, text)
    for sizes in random.Random(seed).sample(allowed, min(3, len(allowed))) if ours is not None else ():
        expected = outcome(lambda sizes=sizes: shape_of(text, sizes, PYTHON))
        if expected is None:  # JAX does not check all reshapes to symbolic sizes while it traces
            continue
        found = tuple(evaluate(size, sizes, IntegerOperations()) for size in ours)
        assert expected == found, (texts, text, sizes)
        assert all(is_symbolic_dim(size) or isinstance(size, int) for size in ours)


def shape_of(text, dims, functions):
    """The shape of a program's result."""

    def run(x, y):
        return value(text, {**dims, "x": x, "y": y}, functions)

    shapes = ((dims["a"], dims["b"]), (dims["c"], dims["d"]))
    return jax.eval_shape(run, *(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes)).shape
