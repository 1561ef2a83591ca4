"""The grammar of shape texts, and the carets of its errors."""

import pytest
from hypothesis import given

from jaxtf.shapepoly import ShapeSpecError, SymbolicScope, max_dim, symbolic_shape

from ..strategies import NAMES, SYMBOLIC, expressions, value  # noqa: TID252


def rendered(text, **options):
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_shape(text, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", "()"),
        ("()", "()"),
        ("b", "(b,)"),
        ("b,", "(b,)"),
        ("(b,)", "(b,)"),
        ("(b)", "(b,)"),
        (" ( b , 3 ) ", "(b, 3)"),
        ("(a + b) * 2, (c)", "(2*a + 2*b, c)"),
        ("(a)*(b)", "(a*b,)"),
        ("- a + 2*b", "(-a + 2*b,)"),
        ("+ 2", "(2,)"),
        ("+ a - b, -+b, 2*+a", "(a - b, -b, 2*a)"),
        ("(-7) - b", "(-b - 7,)"),
        ("123456789012345678901234567890*a", "(123456789012345678901234567890*a,)"),
        ("batch_size, Dim2", "(batch_size, Dim2)"),
        ("floordiv(a, 2), mod(a, 3), max(a, 2), min(a, b)", "(floordiv(a, 2), mod(a, 3), max(a, 2), min(a, b))"),
        ("a // 2, a % 3, a ** 2, a^2", "(floordiv(a, 2), mod(a, 3), a^2, a^2)"),
    ],
)
def test_a_text_denotes_a_shape(text, shape):
    assert str(symbolic_shape(text)) == shape


@given(text=expressions)
def test_the_parser_reads_what_the_operators_compute(text):
    scope = SymbolicScope()
    by_operators = value(text, dict(zip(NAMES, symbolic_shape("a, b, c", scope=scope), strict=True)), SYMBOLIC)
    assert symbolic_shape(f"1000000 + {text}", scope=scope) == (1_000_000 + by_operators,)


@given(text=expressions)
def test_a_printed_expression_parses_to_itself(text):
    scope = SymbolicScope()
    dimension = value(text, dict(zip(NAMES, symbolic_shape("a, b, c", scope=scope), strict=True)), SYMBOLIC)
    if not isinstance(dimension, int):
        (again,) = symbolic_shape(str(dimension), scope=scope)
        assert again.expression == dimension.expression
        assert str(again) == str(dimension)


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: a**65,
        lambda a, b: a**640 * b + a**129,
        lambda a, b: 10**400 * a - 10**30 * b - 10**19,
        lambda a, b: (a + 10**25) // (10**20 + 7) * b**3,
        lambda a, b: max_dim(a, 10**40 * b) % (3 * b),
    ],
)
def test_what_prints_parses_also_where_numbers_are_large(make):
    dimension = make(*symbolic_shape("a, b", scope=(scope := SymbolicScope())))
    (again,) = symbolic_shape(str(dimension), scope=scope)
    assert again.expression == dimension.expression


def test_an_unknown_operation_is_named_with_the_known_ones():
    assert rendered("(b, foo(b))") == (
        "syntax error in symbolic shape '(b, foo(b))': unknown operation 'foo'; "
        "the known operations are floordiv, max, min, mod\n"
        "  (b, foo(b))\n"
        "      ^"
    )


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a b", "expected an operator, ',' or the end, found 'b'", 2),
        ("2 b", "expected an operator, ',' or the end, found 'b'", 2),
        ("a +", "expected an integer, a name or '(', found the end of the text", 3),
        ("a,, b", "expected an integer, a name or '(', found ','", 2),
        ("(a, b", "this '(' is never closed", 0),
        ("a $ b", "unexpected character '$'", 2),
        ("max(a)", "expected ',', found ')'", 5),
        ("max, b", "'max' is an operation; write max(e1, e2)", 0),
        ("_ + 1", "expected an operator, ',' or the end, found '+'", 2),
        ("a + _", "the placeholder '_' must be alone in its dimension", 4),
        ("..., a", "'...' can only be at the end of a shape", 5),
        (
            "a + True",
            "'True' names no size; write a letter, such as 'b', for a size that varies, "
            "or '_' for the size that the argument has",
            4,
        ),
        ("a > 3", "expected an operator, ',' or the end, found '>'", 2),
        ("(a, _platform_index)", "the name '_platform_index' is reserved by JAX; choose another one", 4),
        ("a // 0", "division by zero", 2),
        ("a ^ b", "expected an integer exponent up to 64, found 'b'", 4),
        ("a, -3", "the size of dimension 1 is -3", 3),
        ("(" * 80 + "a" + ")" * 80, "more than 64 levels of nesting", 65),
        ("a.b", "unexpected character '.'", 1),
        ("a, b²", "unexpected character '²'", 4),
        ("٣, b", "unexpected character '٣'", 0),
        ("a, 3é", "expected an operator, ',' or the end, found 'é'", 4),
        ("b * (((2^64)^64)^64)^64", "the expression has integers of more than 4000 digits", 17),
        ("((a^64)^64)^64", "the expression has products of more than 4096 factors", 12),
        ("(a + b + c + d + e + f)^64", "the expression has more than 5000 terms", 24),
    ],
)
def test_a_mistake_gets_a_caret_under_it(text, problem, column):
    assert rendered(text) == f"syntax error in symbolic shape {text!r}: {problem}\n  {text}\n  {' ' * column}^"


@pytest.mark.parametrize(
    ("text", "problem", "near", "column"),
    [
        (f"a, {'1' * 4001}", "more than 4000 digits", f"a, {'1' * 197}...", 3),
        (
            f"a^{'1' * 4301}",
            f"expected an integer exponent up to 64, found '{'1' * 200}...'",
            f"a^{'1' * 198}...",
            2,
        ),
        (f"{'a + ' * 1000}b.c", "unexpected character '.'", f"...{('a + ' * 50)[3:]}b.c", 201),
        (f"b.{'c' * 60000}", "unexpected character '.'", f"b.{'c' * 198}...", 1),
        (f"{'a + ' * 1000}b.{'c' * 60000}", "unexpected character '.'", f"...{('a + ' * 25)[1:]}b.{'c' * 99}...", 103),
    ],
)
def test_of_a_long_text_a_mistake_shows_what_is_near_it(text, problem, near, column):
    assert rendered(text) == f"syntax error in symbolic shape {near!r}: {problem}\n  {near}\n  {' ' * column}^"


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a > b", "there is no relation '>', only '>=', '<=' and '=='; write 'a >= b + 1'", 2),
        ("a > b - 1", "there is no relation '>', only '>=', '<=' and '=='; write 'a >= b'", 2),
        ("2*a < 8", "there is no relation '<', only '>=', '<=' and '=='; write '2*a <= 7'", 4),
        ("b = 4", "there is no relation '=', only '>=', '<=' and '=='; write 'b == 4'", 2),
        ("b => 4", "there is no relation '=>', only '>=', '<=' and '=='; write 'b >= 4'", 2),
        ("b =< 4", "there is no relation '=<', only '>=', '<=' and '=='; write 'b <= 4'", 2),
        ("b ≥ 4", "there is no relation '≥', only '>=', '<=' and '=='; write 'b >= 4'", 2),
        (
            "a != b",
            "there is no relation '!=', only '>=', '<=' and '=='; write 'a >= b + 1' or 'a <= b - 1', whichever holds",
            2,
        ),
        (
            "a <> 4",
            "there is no relation '<>', only '>=', '<=' and '=='; write 'a >= 5' or 'a <= 3', whichever holds",
            2,
        ),
        ("a > ", "expected an integer, a name or '(', found the end of the text", 3),
        ("False == 4", "'False' names no size; write a letter, such as 'b', for a size that varies", 0),
        ("a", "expected an operator or one of '>=', '<=', '==', found the end of the text", 1),
        ("a >= b >= c", "expected an operator or the end, found '>='", 7),
        ("a >= ", "expected an integer, a name or '(', found the end of the text", 4),
    ],
)
def test_a_mistake_in_a_constraint_gets_a_caret_too(text, problem, column):
    with pytest.raises(ShapeSpecError) as caught:
        SymbolicScope([text])
    assert str(caught.value) == f"syntax error in constraint {text!r}: {problem}\n  {text}\n  {' ' * column}^"


@pytest.mark.parametrize("text", ["none", "nonetheless, true_size", "None1", "Truest"])
def test_names_that_begin_as_constants_of_python_do_are_variables(text):
    assert str(symbolic_shape(f"{text}, 3")) == f"({text}, 3)"


@pytest.mark.parametrize("name", ["_a", "__", "_1", "None", "é", "größe", "大小", "ⅷ", "if"])
def test_every_name_of_python_is_one_of_a_variable(name):
    first, twice, three = symbolic_shape(f"({name}, 2*{name} + b, 3)", constraints=[f"{name} >= b + 2"])
    assert (str(first), three) == (name, 3)
    assert (first >= 3, twice >= 2 * first + 1) == (True, True)
    assert symbolic_shape(str(twice), scope=first.scope) == (twice,)


def test_a_text_that_would_grow_without_bound_is_refused():
    text = "a"
    for _ in range(40):
        text = f"min(b, max({text}, c) + 1)"
    with pytest.raises(ShapeSpecError):
        symbolic_shape(text)
