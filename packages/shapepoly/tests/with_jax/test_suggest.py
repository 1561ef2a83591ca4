"""`suggest_constraints`: what it suggests is what a function needs, and no more."""

import re

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtf.shapepoly import ScopeError, SymbolicScope, suggest_constraints, symbolic_shape


def specs(*shapes, constraints=()):
    scope = SymbolicScope(constraints)
    return tuple(jax.ShapeDtypeStruct(symbolic_shape(shape, scope=scope), jnp.float32) for shape in shapes)


def crop(x, stop):
    return jax.lax.slice_in_dim(x, 0, stop)


def cropped(x, y):
    x = crop(x, 16)  # needs b >= 16
    half = y.reshape(-1, 2)  # needs the number of columns to be even
    return x.sum() + half.sum()


def here(function, line):
    return f"{__file__}:{function.__code__.co_firstlineno + line}, in {function.__name__}"


def test_each_constraint_comes_with_the_line_that_needs_it():
    found = suggest_constraints(cropped, *specs("b, 3", "n,"))
    assert found.error == ""
    assert found.texts == ["b >= 16", "mod(n, 2) == 0"]
    assert [constraint.asked_at for constraint in found.constraints] == [here(crop, 1), here(cropped, 2)]
    assert str(found).splitlines()[0] == "constraints=['b >= 16', 'mod(n, 2) == 0']"
    again = suggest_constraints(cropped, *specs("b, 3", "n,", constraints=found.texts))
    assert (again.constraints, again.error) == ((), "")
    assert str(again) == "no further constraints are needed"


def test_a_constraint_that_others_imply_is_left_out():
    found = suggest_constraints(lambda x: (crop(x, 3), crop(x, 8), crop(x, 5)), *specs("b,"))
    assert found.texts == ["b >= 8"]


def test_constraints_that_cannot_hold_together_end_it_with_the_line():
    def opposed(x, y):
        for longer, shorter in ((x, y), (y, x)):
            if longer.shape[0] <= shorter.shape[0]:
                raise ValueError("too short")
        return x

    found = suggest_constraints(opposed, *specs("a,", "b,"))
    assert found.texts == ["b >= a"]
    assert found.error == f"ValueError: too short, at {here(opposed, 3)}"
    assert "with all of these the trace fails: ValueError: too short" in str(found)


def test_another_error_ends_it_with_what_was_found():
    found = suggest_constraints(lambda x, y: crop(x, 4).sum() + x @ y, *specs("a,", "b,"))
    assert found.texts == ["a >= 4"]
    assert found.error.startswith("TypeError: dot_general requires contracting dimensions to have the same shape")


def test_sizes_of_two_scopes_are_refused():
    with pytest.raises(ScopeError, match="two scopes\n  remedy: make them with one scope"):
        suggest_constraints(jnp.add, *specs("a,"), *specs("a,"))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 20)), max_size=4))
def test_what_is_suggested_is_the_least_that_every_slice_needs(slices):
    def sliced(a, b):
        return [crop({"a": a, "b": b}[name], stop) for name, stop in slices]

    found = suggest_constraints(sliced, *specs("a,", "b,"))
    most = {name: max((stop for other, stop in slices if other == name), default=1) for name in "ab"}
    assert found.error == ""
    assert sorted(found.texts) == [f"{name} >= {stop}" for name, stop in most.items() if stop > 1]
    assert all(re.fullmatch(r".*test_suggest\.py:\d+, in crop", c.asked_at) for c in found.constraints)
