"""`symbolic_shape`: placeholders, ranks, scopes."""

import pytest

from jaxtf.shapepoly import PolyShape, ShapeSpecError, symbolic_shape


def rendered(text, like):
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_shape(text, like=like)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "like", "shape"),
    [
        ("(b, _, _)", (None, 28, 28), "(b, 28, 28)"),
        ("(b, _, _)", (1, 28, 28), "(b, 28, 28)"),
        ("(b, ...)", (None, 28, 28), "(b, 28, 28)"),
        ("(b, ...)", (3,), "(b,)"),
        ("...", (2, 3), "(2, 3)"),
        (None, (2, 3), "(2, 3)"),
        ("b, 4", (None, 4), "(b, 4)"),
        ("b, 4", (None, None), "(b, 4)"),
        (PolyShape("b", None, ...), (1, 2, 3), "(b, 2, 3)"),
        (PolyShape("b"), (1,), "(b,)"),
        ("", (), "()"),
    ],
)
def test_placeholders_take_the_sizes_of_the_shape_given(text, like, shape):
    assert str(symbolic_shape(text, like=like)) == shape


def test_too_few_dimensions_are_reported_with_both_ranks():
    assert rendered("(b, _)", (None, 28, 28)) == (
        "syntax error in symbolic shape '(b, _)': it has rank 2, but the shape it is for, (None, 28, 28), has rank 3; "
        "write one dimension for each axis, or end it with '...' to keep the sizes of the last 1"
    )


def test_too_many_dimensions_are_reported_with_both_ranks():
    assert rendered("(a, b, ...)", (3,)) == (
        "syntax error in symbolic shape '(a, b, ...)': it has rank at least 2, but the shape it is for, (3,), has rank "
        "1; write one dimension for each axis"
    )


def test_a_placeholder_needs_a_known_size():
    assert rendered("(b, _)", (None, None)) == (
        "syntax error in symbolic shape '(b, _)': placeholder '_' is for dimension 1, whose size is unknown in "
        "(None, None); write a dimension variable in its place\n"
        "  (b, _)\n"
        "      ^"
    )
    assert rendered("b, ...", (3, None)).splitlines()[1:] == ["  b, ...", "     ^"]
    assert "takes its size from a shape, and none was given (parameter 'like')" in rendered("b, _", None)


def test_a_shape_without_a_text_needs_known_sizes_and_raises_with_the_text_to_write():
    assert rendered(None, (None, 3, None)) == (
        "syntax error in symbolic shape None: the shape given, (None, 3, None), has unknown sizes, and no symbolic "
        "shape says what they may be\n"
        "  remedy: write one with a dimension variable for each of them, such as '(d0, _, d2)'"
    )
    assert rendered(None, (None,)).endswith("such as '(d0,)'")
    assert "takes its size from a shape, and none was given (parameter 'like')" in rendered("b, ...", None)


def test_a_constant_must_be_the_known_size():
    assert rendered("(b, 4)", (3, 5)) == (
        "syntax error in symbolic shape '(b, 4)': dimension 1 is 4, but the shape given is (3, 5)\n  (b, 4)\n      ^"
    )


def test_a_specification_is_a_text_or_none():
    with pytest.raises(ShapeSpecError, match=r"should be None or a string; found \('b',\) of type tuple"):
        symbolic_shape(("b",))
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_shape((None, 4))
    assert str(caught.value) == (
        'polymorphic shape spec should be None or a string; found (None, 4) of type tuple; write the text "(b, 4)"'
    )
    with pytest.raises(ShapeSpecError, match=r"found \{'b': 2\} of type dict$"):
        symbolic_shape({"b": 2})


def test_all_dimensions_of_a_call_share_a_scope():
    a, b = symbolic_shape("a, b")
    assert a.scope is b.scope
    (c,) = symbolic_shape("c", scope=a.scope)
    assert c.scope is a.scope
