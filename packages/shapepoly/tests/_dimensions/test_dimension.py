"""Dimensions as Python objects: operators, equality, hashing, refusals."""

import operator

import pytest

from jaxtf.shapepoly import (
    InconclusiveDimensionOperation,
    SymbolicScope,
    is_symbolic_dim,
    max_dim,
    min_dim,
    symbolic_shape,
)


class Seven:
    """Anything that converts by `operator.index` is an integer."""

    def __index__(self):
        return 7


OPERATORS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]


@pytest.mark.parametrize("operation", OPERATORS)
@pytest.mark.parametrize("other", [7, Seven(), True])
def test_integers_and_what_converts_to_them_are_operands_on_both_sides(operation, other):
    (a,) = symbolic_shape("a")
    for size in (1, 2, 8, 9):
        left, right = operation(a, other), operation(other, a)
        assert (left if isinstance(left, int) else left._evaluate({"a": size})) == operation(
            size, operator.index(other)
        )
        assert (right if isinstance(right, int) else right._evaluate({"a": size})) == operation(
            operator.index(other), size
        )


def test_divmod_power_negation_and_absolute_value_are_those_of_integers():
    a, b = symbolic_shape("a, b")
    assert divmod(7 * a + 3, 7) == (a, 3)
    assert divmod(20, a) == (20 // a, 20 % a)
    assert (a + b) ** 2 == a * a + 2 * a * b + b * b
    assert a**0 == 1
    assert -a + a == 0
    assert +a is a
    assert abs(-a) == a
    assert abs(b - a) == abs(a - b)
    assert abs(a - b)._evaluate({"a": 3, "b": 8}) == 5
    assert sum([a, b, 1]) == a + b + 1


def test_a_constant_result_is_an_integer():
    a, b = symbolic_shape("a, b")
    assert type(a - a) is int
    assert type((6 * a + 4) % 3) is int
    assert type(a * 0) is int
    assert not is_symbolic_dim(a + b - a - b)


def test_equality_is_total_and_disequality_is_its_negation():
    a, b = symbolic_shape("a, b")
    assert b + b == 2 * b
    for left, right in [(b + 1, b), (b, 0), (b, 1), (a, b), (a, "a"), (a, None), (a * b, a), (a, 1.5)]:
        assert (left == right) is False
        assert (left != right) is True
    assert a in [b, a]
    assert a not in (b, 1, "a")


def test_equal_dimensions_hash_equal_however_they_were_made():
    a, b = symbolic_shape("a, b", constraints=["a <= 1", "floordiv(b, 2) >= 3"])
    assert len({a + b, b + a, (a + b) * 1, b + 1}) == 1


@pytest.mark.parametrize(
    ("text", "constraint", "size"),
    [
        ("a", "a == 4", 4),
        ("a", "a <= 1", 1),
        ("2*a + 1", "2*a == 8", 9),
        ("floordiv(a, b)", "a == 2*b", 2),
        ("a // (b - a + 3)", "b == a", None),
        ("mod(a, 4)", "mod(a, 4) == 3", 3),
        ("a - b", "a == b + 3", 3),
        ("max(a - b, 1)", "a == b + 3", 3),
        ("min(a, 4)", "a >= 4", 4),
        ("floordiv(4, a)", "a >= 5", 0),
        ("a*b", "a + b == 2", 1),
    ],
)
def test_a_size_that_constraints_fix_is_that_integer(text, constraint, size):
    scope = SymbolicScope([constraint])
    by_text = symbolic_shape(text, scope=scope)[0]
    a, b = symbolic_shape("a, b", scope=scope)
    by_operators = eval(
        text, {"floordiv": operator.floordiv, "mod": operator.mod, "max": max_dim, "min": min_dim}, {"a": a, "b": b}
    )
    assert by_text == by_operators
    if size is not None:
        assert (type(by_text), type(by_operators), by_text) == (int, int, size)
        assert len({by_text, by_operators, size}) == 1
        assert len(range(by_text)) == size


def test_what_can_only_be_one_integer_without_constraints_is_that_integer():
    a, b = symbolic_shape("a, b")
    for size, value in ((a // 2 + (a + 1) // 2 - a, 0), (1 // (a + 1), 0), (max_dim(a, b) - max_dim(b - a, 0) - a, 0)):
        assert type(size) is int
        assert size == value
    assert type(a // 2 - b // 2) is not int


def test_a_variable_that_constraints_fix_is_an_integer_within_expressions():
    scope = SymbolicScope(["a >= 4", "a <= 4"])
    assert str(symbolic_shape("a + b, a*b, floordiv(b, a), max(b, a)", scope=scope)) == (
        "(b + 4, 4*b, floordiv(b, 4), max(b, 4))"
    )


def test_a_dimension_equals_no_integer():
    a, b = symbolic_shape("a, b", constraints=["a <= 2", "a * b >= 4", "a * b <= 5"])
    for size in (a, b, a * b, a - b):
        assert all(size != value for value in range(-3, 7))


def test_what_a_constraint_makes_equal_hashes_equal():
    a, b, c = symbolic_shape("a, b, c", constraints=["2*a == b", "c == b*b"])
    assert len({b, 2 * a, a + b - a}) == 1
    assert len({b // 2, a, 3 * a - b}) == 1
    assert len({c, b * b, b * b + b - 2 * a}) == 1
    assert len({a, b, c}) == 3


def test_min_and_max_need_no_decision():
    a, b = symbolic_shape("a, b")
    assert str(max_dim(a, b)) == "max(a, b)"
    assert str(min_dim(a, 3)) == "min(a, 3)"
    assert max_dim(a, b) == max_dim(b, a)
    assert max_dim(a, 0) is not None
    assert max_dim(0, a) == a
    assert min_dim(0, a) == 0
    assert (max_dim(2, 3), min_dim(2, 3)) == (3, 2)
    assert a.rmax(b) == b.max(a)
    assert a.rmin(b) == b.min(a)
    with pytest.raises(TypeError, match="max of the symbolic dimension 'a' and 'x', which is not an integer"):
        a.max("x")


def test_the_built_in_max_decides_or_raises():
    a, b = symbolic_shape("a, b")
    assert max(a, 0) == a
    with pytest.raises(InconclusiveDimensionOperation, match="is inconclusive"):
        max(a, b)


def test_truth_is_being_other_than_zero():
    a, b = symbolic_shape("a, b")
    assert a
    assert 2 * a - 2 * b + 1
    with pytest.raises(InconclusiveDimensionOperation, match="'a - b' != 0 is inconclusive") as caught:
        bool(a - b)
    assert "it holds for a=1, b=2 and fails for a=1, b=1" in str(caught.value)
    assert "if 'a - b' is always positive for you, add the constraint \"a >= b + 1\"\n" in str(caught.value)
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        bool(1 - a)
    assert "if '-a + 1' is always negative for you, add the constraint \"a >= 2\"\n" in str(caught.value)
    assert "positive" not in str(caught.value)


def test_conversion_to_an_integer_says_what_to_write_instead():
    (a,) = symbolic_shape("a")
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        int(a)
    assert str(caught.value) == (
        "Symbolic dimension 'a' used in a context that requires a constant.\n"
        "  its value is known only when the program runs. Instead of int(d) write d: it adds, multiplies and\n"
        "  divides as an integer does, and can be used in shapes; jnp.array(d) is its value as an array"
    )


@pytest.mark.parametrize("use", [operator.index, range, lambda a: [1, 2][a], lambda a: "x" * a])
def test_use_as_an_index_says_what_to_write_instead(use):
    (a,) = symbolic_shape("a")
    with pytest.raises(TypeError) as caught:
        use(a)
    assert str(caught.value) == (
        "Symbolic dimension 'a' used in a context that requires a constant.\n"
        "  its value is known only when the program runs; range(d), NumPy's shapes and the indices of\n"
        "  sequences need it now. Instead write jax.lax.fori_loop(0, d, ...), jnp.zeros((d,)), jnp.arange(d);\n"
        "  jnp.array(d) is its value as an array"
    )


def test_a_divisor_that_can_be_zero_is_refused():
    a, b = symbolic_shape("a, b")
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        a // (a - b)
    assert str(caught.value) == (
        "Cannot divide 'a' by 'a - b': whether the divisor is nonzero is inconclusive.\n"
        "  it is 0 for a=1, b=1\n"
        '  if the divisor is always positive for you, add the constraint "a >= b + 1"\n'
        '  if it is always negative for you, add the constraint "b >= a + 1"\n'
        "  see jaxtf's page 'Symbolic dimensions', section 'Division'"
    )
    with pytest.raises(ZeroDivisionError):
        a // 0
    with pytest.raises(ZeroDivisionError):
        a % (a - a)
    a, b = symbolic_shape("a, b", constraints=["a - b >= 1"])
    assert str(a // (a - b)) == "floordiv(a, a - b)"


def test_a_negative_exponent_is_refused():
    (a,) = symbolic_shape("a")
    for power in (lambda: a**-1, lambda: (2 * a) ** -2, lambda: a ** (a - a - 3)):
        with pytest.raises(ValueError, match=r"'.*a' to the power of -\d: a size has no negative powers\n"):
            power()


def test_powers_of_terms_may_be_large():
    a, b = symbolic_shape("a, b")
    assert (3 * a * b) ** 100 == 3**100 * a**100 * b**50 * b**50
    assert (a**200)._evaluate({"a": 3}) == 3**200
    assert (a**0, (2 * a) ** 0, (a + 1) ** 0) == (1, 1, 1)


def test_other_types_are_left_to_themselves():
    (a,) = symbolic_shape("a")
    for operation in OPERATORS:
        with pytest.raises(TypeError):
            operation(a, "x")
    with pytest.raises(TypeError):
        a >= "x"  # noqa: B015


def test_evaluation_names_a_variable_without_value():
    a, b = symbolic_shape("a, b")
    with pytest.raises(
        ValueError, match="the value of 'a \\+ b' needs 'b', which no shape of the arguments determines"
    ):
        (a + b)._evaluate({"a": 1})
    assert (a + b)._get_vars() == {"a", "b"}
