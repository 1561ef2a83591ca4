"""Laws of sizes under equalities, products and quotients among them, against brute force."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from jaxtf.shapepoly import (
    InconclusiveDimensionOperation,
    IntegerOperations,
    ScopeError,
    SymbolicScope,
    evaluate,
    is_symbolic_dim,
    symbolic_shape,
)

# Under pytest's importlib mode tests have no absolute name.
from ..strategies import (  # noqa: TID252
    NAMES,
    SYMBOLIC,
    all_sizes,
    constraints,
    equalities,
    expressions,
    linear_expressions,
    value,
)

LARGEST = 6


def scope_and_sizes(declared):
    """A scope with the declared constraints, and small sizes that it allows."""
    try:
        allowed = [sizes for sizes in all_sizes(NAMES, LARGEST) if all(value(text, sizes) for text in declared)]
        assume(allowed)
        return SymbolicScope(declared), allowed
    except (ScopeError, ZeroDivisionError, InconclusiveDimensionOperation):
        assume(False)


def by_operators(text, scope):
    try:
        return value(text, dict(zip(NAMES, symbolic_shape(", ".join(NAMES), scope=scope), strict=True)), SYMBOLIC)
    except (ZeroDivisionError, InconclusiveDimensionOperation):
        assume(False)


def value_at(size, sizes):
    return evaluate(size, sizes, IntegerOperations())


@given(text=expressions, declared=equalities, more=constraints)
@example("a*c + floordiv(a*c, b)", ["a == 2*b"], [])
@example("floordiv(a*c, floordiv(b, 2))", ["mod(b, 4) == 0"], ["b >= 2"])
@example("floordiv(4*a*b, c) - 3*a*b", ["a * b == 2*c"], [])
@example("a", ["2 * b == ((3 * a * a) - floordiv(mod(a, b), c))"], [])  # a point of thousands of digits
def test_sizes_have_the_values_that_python_computes(text, declared, more):
    scope, allowed = scope_and_sizes([*declared, *more])
    size = by_operators(text, scope)
    assert [value_at(size, sizes) for sizes in allowed] == [value(text, sizes) for sizes in allowed]


@given(text=expressions, declared=equalities)
def test_what_prints_is_read_as_an_equal_size(text, declared):
    scope, _ = scope_and_sizes(declared)
    size = by_operators(text, scope)
    again = symbolic_shape(f"1000000 + {size}", scope=scope)[0] - 1_000_000
    assert again == size
    assert hash(again) == hash(size)
    assert str(again) == str(size)


@given(left=expressions, right=expressions, declared=equalities)
@example("a", "4", ["a == 2*b", "b == 2"])
def test_equal_sizes_are_equal_for_python_too_and_hash_equal(left, right, declared):
    scope, allowed = scope_and_sizes(declared)
    x, y = by_operators(left, scope), by_operators(right, scope)
    assert (x == y) is (y == x) is not (x != y)
    if x == y:
        assert hash(x) == hash(y)
        assert type(x) is type(y)
        assert all(value(left, sizes) == value(right, sizes) for sizes in allowed)


@given(factor=st.one_of(linear_expressions, expressions), declared=equalities)
@example(factor="a", declared=["floordiv(a, 2) == b", "c == (a + floordiv(b, a))"])
@example(factor="c", declared=["floordiv(a, 2) == 0", "2 * c == (a + b)"])
@example(factor="a", declared=["a * a == max(a, b)"])
@example(factor="a", declared=["2 * a == max(a, b)"])
def test_both_sides_of_an_equality_are_equal_in_products(factor, declared):
    scope, _ = scope_and_sizes(declared)
    for equality in declared:
        left, right = (by_operators(f"({side}) * ({factor})", scope) for side in equality.split(" == "))
        assert left == right
        assert hash(left) == hash(right)
        assert str(left) == str(right) or not is_symbolic_dim(left)


@given(left=expressions, right=expressions, declared=equalities)
def test_comparisons_under_equalities_are_never_wrong(left, right, declared):
    scope, allowed = scope_and_sizes(declared)
    x, y = by_operators(left, scope), by_operators(right, scope)
    try:
        answer = x >= y
    except InconclusiveDimensionOperation:
        return
    assert all((value(left, sizes) >= value(right, sizes)) is answer for sizes in allowed)


LARGE = {"3": str(10**310), "2": str(2**63)}  # the first is larger than any float


@given(left=expressions, right=expressions, declared=constraints)
@example("(3 * a) + b", "4", [])
@example("a", "3", ["b <= 2"])
def test_comparisons_with_numbers_of_any_size_are_never_wrong(left, right, declared):
    texts = [text.translate(str.maketrans(LARGE)) for text in (left, right, *declared)]
    scope, allowed = scope_and_sizes(texts[2:])
    x, y = by_operators(texts[0], scope), by_operators(texts[1], scope)
    try:
        answer = x >= y
    except InconclusiveDimensionOperation:
        return
    assert all((value(texts[0], sizes) >= value(texts[1], sizes)) is answer for sizes in allowed)
