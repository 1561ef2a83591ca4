"""Laws of equality: equal sizes hash equal, integers among them; what can only be one integer is that integer."""

from hypothesis import assume, example, given

from jaxtf.shapepoly import ScopeError, SymbolicScope, symbolic_dim_bounds, symbolic_shape

# Under pytest's importlib mode tests have no absolute name.
from ..strategies import (  # noqa: TID252
    NAMES,
    SYMBOLIC,
    all_sizes,
    constraints,
    expressions,
    linear_expressions,
    value,
)

LARGEST = 5
BOUNDED = tuple(f"{name} <= {LARGEST}" for name in NAMES)


def scope_and_sizes(declared):
    """A scope of small sizes with the declared constraints, and the sizes that it allows."""
    allowed = [sizes for sizes in all_sizes(NAMES, LARGEST) if all(value(text, sizes) for text in declared)]
    assume(allowed)
    return SymbolicScope((*BOUNDED, *declared)), allowed


def by_operators(text, scope):
    return value(text, dict(zip(NAMES, symbolic_shape(", ".join(NAMES), scope=scope), strict=True)), SYMBOLIC)


def check_equality(left, right, *, equal):
    assert (left == right) is (right == left) is equal
    assert (left != right) is not equal
    assert not equal or hash(left) == hash(right)
    assert len({left, right}) == (1 if equal else 2)


@given(left=linear_expressions, right=linear_expressions, declared=constraints)
@example(left="a", right="4", declared=["a == 4"])
@example(left="a", right="a - b", declared=["a == b + 3"])
@example(left="mod(a, 4)", right="floordiv(c, b)", declared=["mod(a, 4) == 3"])
def test_in_the_linear_fragment_equal_values_are_equal_sizes(left, right, declared):
    scope, allowed = scope_and_sizes(declared)
    x, y = by_operators(left, scope), by_operators(right, scope)
    pairs = [(value(left, sizes), value(right, sizes)) for sizes in allowed]
    check_equality(x, y, equal=all(a == b for a, b in pairs))
    assert (type(x) is int) == (len({a for a, _ in pairs}) == 1)
    assert x == symbolic_shape(f"1000000 + {left}", scope=scope)[0] - 1_000_000


@given(left=expressions, right=expressions, declared=constraints)
def test_equality_and_hash_agree_for_all_expressions(left, right, declared):
    scope, allowed = scope_and_sizes(declared)
    x, y = by_operators(left, scope), by_operators(right, scope)
    check_equality(x, y, equal=x == y)
    if type(x) is int:
        assert {value(left, sizes) for sizes in allowed} == {x}
    lower, upper = symbolic_dim_bounds(x)
    assert type(x) is int or lower < upper


@given(text=expressions, declared=constraints)
def test_what_prints_is_read_as_an_equal_size(text, declared):
    try:
        scope = SymbolicScope(declared)
    except ScopeError:
        return
    size = by_operators(text, scope)
    assert symbolic_shape(f"1000000 + {size}", scope=scope)[0] - 1_000_000 == size
