"""Decisions against brute force over all sizes up to a bound.

The variables are bounded by constraints, so that brute force over the bounded sizes is the whole truth.
"""

from hypothesis import assume, example, given

from jaxtf.shapepoly import (
    InconclusiveDimensionOperation,
    ScopeError,
    SymbolicScope,
    symbolic_dim_bounds,
    symbolic_shape,
)

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


def allowed_sizes(declared):
    """The sizes that satisfy the declared constraints."""
    return [sizes for sizes in all_sizes(NAMES, LARGEST) if all(value(text, sizes) for text in declared)]


def scope_of(declared, allowed):
    """The scope, or None where no sizes are allowed and the scope was rightly refused."""
    try:
        scope = SymbolicScope((*BOUNDED, *declared))
    except ScopeError:
        assert not allowed, "a scope that sizes satisfy was refused"
        return None
    assert allowed, "a scope that no sizes satisfy was accepted"
    return scope


def dimension(text, scope):
    """What the operators of dimensions make of the text."""
    return value(text, dict(zip(NAMES, symbolic_shape(", ".join(NAMES), scope=scope), strict=True)), SYMBOLIC)


def decided(comparison):
    """True, False, or the text of the error where the comparison is inconclusive."""
    try:
        return comparison()
    except InconclusiveDimensionOperation as error:
        return str(error)


def agrees(answer, expected):
    """Whether an answer is the truth, with witnesses on both sides where there is no boolean."""
    if expected is None:
        return "it holds for" in answer and "and fails for" in answer
    return answer is expected


def truth(values):
    """True or False where all agree, None otherwise."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


@given(left=linear_expressions, right=linear_expressions, declared=constraints)
@example(left="a", right="b", declared=["a >= b"])
@example(left="a", right="4", declared=["mod(a, 4) == 0"])
def test_comparisons_in_the_linear_fragment_are_exact(left, right, declared):
    allowed = allowed_sizes(declared)
    scope = scope_of(declared, allowed)
    if scope is None:
        return
    x, y = dimension(left, scope), dimension(right, scope)
    pairs = [(value(left, sizes), value(right, sizes)) for sizes in allowed]
    assert agrees(decided(lambda: x >= y), truth(a >= b for a, b in pairs))
    assert agrees(decided(lambda: x < y), truth(a < b for a, b in pairs))
    assert (x == y) == all(a == b for a, b in pairs)
    assert x != y or type(x) is not type(y) or hash(x) == hash(y)


@given(text=linear_expressions, declared=constraints)
def test_bounds_in_the_linear_fragment_are_attained(text, declared):
    allowed = allowed_sizes(declared)
    scope = scope_of(declared, allowed)
    if scope is None:
        return
    values = [value(text, sizes) for sizes in allowed]
    assert symbolic_dim_bounds(dimension(text, scope)) == (min(values), max(values))


@given(left=expressions, right=expressions, declared=constraints)
def test_comparisons_of_any_expressions_are_never_wrong(left, right, declared):
    allowed = allowed_sizes(declared)
    assume(allowed)
    scope = SymbolicScope((*BOUNDED, *declared))
    x, y = dimension(left, scope), dimension(right, scope)
    pairs = [(value(left, sizes), value(right, sizes)) for sizes in allowed]
    answer = decided(lambda: x >= y)
    assert isinstance(answer, str) or answer is truth(a >= b for a, b in pairs)
    if x == y:
        assert all(a == b for a, b in pairs)
        assert type(x) is not type(y) or hash(x) == hash(y)


@given(left=expressions, right=expressions)
def test_comparisons_without_constraints_agree_with_the_sizes_that_can_be_tried(left, right):
    scope = SymbolicScope()
    x, y = dimension(left, scope), dimension(right, scope)
    pairs = [(value(left, sizes), value(right, sizes)) for sizes in all_sizes(NAMES, 6)]
    answer = decided(lambda: x >= y)
    assert isinstance(answer, str) or all((a >= b) is answer for a, b in pairs)
    if x == y:
        assert all(a == b for a, b in pairs)
