"""Values of dimension variables from the shapes of actual arguments, with the checks that they entail.

`solve_dimension_variables` takes the specified shapes and plans, once, how each variable follows from
the sizes of the arguments. `Solution.run` carries the plan out on a caller's operations: on integers
at once, or as operations of a program that will know the sizes.

Method: each symbolic dimension, and each equality constraint of the scope, is an equation, linear in
the variables not yet known as long as its other terms are known. Rounds of three steps, each used when
the ones before it find nothing: an equation with one unknown; all equations jointly, by Gauss-Jordan
elimination with integer combinations; an equation whose one unknown has a known expression as its
factor. A quotient is checked for a remainder; every equation that was not used up by a value is
checked when all variables are known. So whatever passes all checks is a solution, and the only one.
Knows nothing of JAX.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.operands import as_size
from jaxtf.shapepoly._dimensions.scope import Constraint, SymbolicScope
from jaxtf.shapepoly._errors import ScopeError, UnsolvableDimensionVariables
from jaxtf.shapepoly._expressions.expression import ZERO, Expression, Variable, integer
from jaxtf.shapepoly._expressions.substitution import substituted
from jaxtf.shapepoly._solve.elimination import Combination, determined_unknowns
from jaxtf.shapepoly._solve.solution import Equation, Solution, Source, Step

Shape = Sequence[int | Dimension]

_MORE_ON_SOLVING = (
    "Please see jaxtf's page 'Symbolic dimensions', section 'Dimension variables must be solvable "
    "from the input shapes' for more details."
)


def solve_dimension_variables(specs: Sequence[tuple[str, Shape]]) -> Solution:
    """Plans how dimension variables follow from argument shapes.

    >>> from jaxtf.shapepoly import IntegerOperations, symbolic_shape
    >>> solution = solve_dimension_variables([("args[0]", symbolic_shape("(a + b, a - b)"))])
    >>> solution.run(IntegerOperations([(7, 3)]))
    {'a': 5, 'b': 2}

    Args:
      specs: For each flat argument, in order, its path, such as `args[0]`, and its shape.

    Raises:
      UnsolvableDimensionVariables: The shapes do not determine every variable.
      ScopeError: The shapes mix scopes.
    """
    sources = tuple(
        Source(path, argument, axis, as_size(size))
        for argument, (path, shape) in enumerate(specs)
        for axis, size in enumerate(shape)
    )
    scope = _common_scope(sources)
    specifications = ", ".join(
        f"{path}.shape = {_shape_text(shape)}" for path, shape in specs if any(isinstance(d, Dimension) for d in shape)
    )
    symbolic = [s.specification for s in sources if isinstance(s.specification, Dimension)]
    wanted = frozenset[str]().union(*(size._get_vars() for size in symbolic))
    equations = [
        Equation(s.specification.scope.algebra.named(s.specification.expression), s)
        for s in sources
        if isinstance(s.specification, Dimension)
    ]
    constraints = _constraints_about(scope, wanted)
    needed = wanted.union(
        *(equation.expression.variables() for equation in equations), *(c.difference.variables() for c in constraints)
    )
    equations += [Equation(c.difference, None) for c in constraints if c.relation == "=="]
    equations += [Equation(difference, None) for difference in _defined(scope) if difference.variables() <= needed]
    steps = _plan(equations, needed, scope, specifications)
    return Solution(tuple(sorted(wanted)), steps, sources, constraints, specifications)


def _common_scope(sources: Sequence[Source]) -> SymbolicScope | None:
    """Returns the scope of all symbolic dimensions; None if there are none."""
    first: Source | None = None
    for source in sources:
        if not isinstance(source.specification, Dimension):
            continue
        if first is None:
            first = source
        assert isinstance(first.specification, Dimension)
        if source.specification.scope is not first.specification.scope:
            raise ScopeError(
                f"Invalid mixing of symbolic scopes: {first} is '{first.specification}' in a "
                f"{first.specification.scope}\n"
                f"  and {source} is '{source.specification}' in a {source.specification.scope}\n"
                "  make them in one call of symbolic_shape, or pass the scope of one as scope= to the other call"
            )
    return first.specification.scope if first is not None and isinstance(first.specification, Dimension) else None


def _constraints_about(scope: SymbolicScope | None, variables: frozenset[str]) -> tuple[Constraint, ...]:
    """Returns the constraints that mention the variables, or variables that those mention, and so on.

    The others cannot change what holds for these variables, since a scope can be satisfied.
    """
    constraints = () if scope is None else _without_fixed_variables(scope)
    reached = variables
    while True:
        related = tuple(c for c in constraints if reached & c.difference.variables())
        wider = reached.union(*(c.difference.variables() for c in related))
        if wider == reached:
            return tuple(sorted(related, key=lambda c: c.depth))
        reached = wider


def _without_fixed_variables(scope: SymbolicScope) -> tuple[Constraint, ...]:
    """Returns the constraints of a scope, with integers in place of the variables that can only be these."""
    fixed = scope.algebra.fixed_variables
    if not fixed:
        return scope.constraints
    return tuple(Constraint(substituted(c.difference, fixed), c.relation, c.text, c.depth) for c in scope.constraints)


def _defined(scope: SymbolicScope | None) -> list[Expression]:
    """Returns what is 0 by the definitions of variables that follow from constraints: `b - c` where `b*c == c*c`."""
    definitions = {} if scope is None else scope.algebra.decider.equalities.definitions
    return [Expression({((Variable(name), 1),): 1}) - value for name, value in definitions.items()]


def _plan(
    equations: Sequence[Equation], needed: frozenset[str], scope: SymbolicScope | None, specifications: str
) -> tuple[Step, ...]:
    """Returns steps that compute all needed variables.

    Raises:
      UnsolvableDimensionVariables: Some cannot be computed.
    """
    steps: list[Step] = []
    known: set[str] = set()
    while known != needed:
        split = [_split(equation, frozenset(known)) for equation in equations]
        found = _single_unknown(split) or _jointly(split) or _known_factor(split, scope)
        if not found:
            raise UnsolvableDimensionVariables(_unsolvable_message(equations, needed - known, specifications))
        steps += found
        known |= {step.variable for step in found}
    return tuple(steps)


class _SplitEquation(NamedTuple):
    """An equation as known terms plus factors (known expressions) of unknown variables.

    `factors` is None where an unknown occurs in another way: in an operation, or in a product of unknowns.
    """

    equation: Equation
    known: Expression
    factors: Mapping[str, Expression] | None

    def integer_factors(self) -> dict[str, int] | None:
        """Returns the factors if all are integers."""
        if not self.factors:
            return None
        factors = {name: factor.as_integer for name, factor in self.factors.items()}
        integers = {name: factor for name, factor in factors.items() if factor is not None}
        return integers if len(integers) == len(factors) else None


def _split(equation: Equation, known: frozenset[str]) -> _SplitEquation:
    """Separates the known terms of an equation from those with unknown variables."""
    known_terms = ZERO
    factors: dict[str, Expression] = {}
    for monomial, coefficient in equation.expression.terms.items():
        term = Expression({monomial: coefficient})
        unknown = [power for power in monomial if not Expression({(power,): 1}).variables() <= known]
        if not unknown:
            known_terms = known_terms + term
            continue
        atom, exponent = unknown[0]
        if len(unknown) > 1 or exponent > 1 or not isinstance(atom, Variable):
            return _SplitEquation(equation, ZERO, None)
        rest = tuple(power for power in monomial if power[0] != atom)
        factors[atom.name] = factors.get(atom.name, ZERO) + Expression({rest: coefficient})
    return _SplitEquation(equation, known_terms, factors)


def _single_unknown(split: Sequence[_SplitEquation]) -> list[Step]:
    """Returns a step for the first equation with one unknown that has an integer factor."""
    for one in split:
        factors = one.integer_factors()
        if factors is not None and len(factors) == 1:
            ((name, factor),) = factors.items()
            sign = 1 if factor > 0 else -1
            return [Step(name, ((one.equation, sign, one.known),), integer(abs(factor)))]
    return []


def _jointly(split: Sequence[_SplitEquation]) -> list[Step]:
    """Returns steps for all unknowns that the equations determine together."""
    rows = [(one, factors) for one in split if (factors := one.integer_factors()) is not None]
    found = determined_unknowns([factors for _, factors in rows])
    return [_joint_step(name, combination, [one for one, _ in rows]) for name, combination in sorted(found.items())]


def _joint_step(name: str, combination: Combination, split: Sequence[_SplitEquation]) -> Step:
    terms = tuple(
        (one.equation, factor, one.known) for one, factor in zip(split, combination.factors, strict=True) if factor
    )
    return Step(name, terms, integer(combination.divisor))


def _known_factor(split: Sequence[_SplitEquation], scope: SymbolicScope | None) -> list[Step]:
    """Returns a step for an equation with one unknown, whose factor is a known, positive expression."""
    for one in split:
        if scope is None or one.factors is None or len(one.factors) != 1:
            continue
        ((name, factor),) = one.factors.items()
        if scope.algebra.decider.verdict(factor - integer(1)).always:
            return [Step(name, ((one.equation, 1, one.known),), factor)]
    return []


def _unsolvable_message(equations: Sequence[Equation], unknown: frozenset[str], specifications: str) -> str:
    """Returns the text of the error for variables that cannot be solved."""
    names = ", ".join(f"'{name}'" for name in sorted(unknown))
    unprocessed = ", ".join(
        f"'{e.source.specification}' for dimension size {e.source}"
        for e in equations
        if e.source is not None and e.expression.variables() & unknown
    )
    return (
        f"Cannot solve for values of dimension variables {{{names}}}. "
        f"We can only solve systems of linear constraints that determine each variable. "
        f"Using the following polymorphic shapes specifications: {specifications}. "
        f"Unprocessed specifications: {unprocessed or 'none: only constraints of the scope mention them'}. "
        f"{_MORE_ON_SOLVING}"
    )


def _shape_text(shape: Shape) -> str:
    sizes = ", ".join(map(str, shape))
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"
