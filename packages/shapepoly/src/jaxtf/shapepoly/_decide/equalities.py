"""What equalities of a scope make of its expressions: one form for those that are equal.

Equalities that define a variable, such as `a == 2*b`, `a == b*c` or `n == floordiv(m, 2)`, are used up: the variable is
replaced wherever it occurs, in facts too, so that a scope with such equalities alone costs what one without costs.
`2*a == 3*b` defines `a` as `floordiv(3*b, 2)`, and leaves that `3*b` is even. This is canonical for linear equalities.

Others, such as `mod(b, 4) == 0` or `a*b == c*d`, remain facts, and rules by which expressions are simplified:
`4*floordiv(b, 4)` is `b`, and `a*b` is `c*d`. That an expression is 0 by them is decided by a Groebner basis
(`_decide.ideal`), which is made when it is first needed and is bounded; it finds all polynomial consequences that the
bound allows, also inside products, which elimination one equality after the other does not.

Rewriting ends: a variable that was replaced does not occur any more, and each rule makes monomials or coefficients
smaller in an order without endless descents.

In: expressions that are 0, and others that are at least 0. Out: definitions, facts without the variables that they
define, simplified expressions. What is chosen does not depend on the order of equalities or on names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from jaxtf.shapepoly._decide.ideal import Ideal, degree_of_atom, weighted_degree, without_common_factor
from jaxtf.shapepoly._expressions import normal
from jaxtf.shapepoly._expressions.anonymous import colours
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    ZERO,
    Atom,
    Expression,
    Monomial,
    Operation,
    Variable,
    divide_monomials,
    from_atom,
    has_operations,
    integer,
    variable,
)
from jaxtf.shapepoly._expressions.substitution import substituted

_MOST_DEFINITIONS = 64
_LARGEST_DEFINITION = 32
_LARGEST_POWER = 3
_STEPS_OF_A_TERM = 3


class Equalities:
    """The equalities of a scope.

    Args:
      equations: Expressions that are 0.
      inequalities: Expressions that are at least 0.
      budget: Bound on the work.

    Attributes:
      definitions: The variables that are replaced, each with an expression that has none of them.
      facts: What else is at least 0, without these variables; -1 alone where the equations make a divisor 0, as no
        sizes satisfy them then.
      rules: What is 0, without these variables, and is not a definition.
    """

    def __init__(
        self,
        equations: Sequence[Expression] = (),
        inequalities: Sequence[Expression] = (),
        budget: Budget = UNBOUNDED,
    ) -> None:
        self._budget = budget
        self._given = (*equations, *inequalities)
        self.definitions: dict[str, Expression] = {}
        self.rules: tuple[Expression, ...] = ()
        self.facts = tuple(inequalities)
        if not equations:
            return
        try:
            found = _Elimination(equations, inequalities, budget)
            remaining = [found.without_defined(fact) for fact in inequalities]
        except ZeroDivisionError:  # where a divisor was found to be other than 0 for all sizes, there are none
            self.facts = (integer(-1),)
            return
        self.definitions, self.rules = found.definitions, tuple(found.equations)
        for value in self.definitions.values():
            value.is_plain = not has_operations(value)
        remaining += [value - integer(1) for value in self.definitions.values()]
        remaining += [side for rule in self.rules for side in (rule, -rule)]
        simpler = map(_without_quotient, remaining)
        self.facts = tuple(dict.fromkeys(fact for fact in simpler if not _is_evident(fact)))

    @cached_property
    def positive(self) -> tuple[Expression, ...]:
        """Sums that are at least 1, because they are the values of variables."""
        names = sorted(frozenset[str]().union(*(rule.variables() for rule in self.rules)))
        values = map(self.simplified, [*self.definitions.values(), *map(variable, names)])
        return tuple(dict.fromkeys(value for value in values if len(value.terms) > 1))

    @property
    def equations(self) -> list[Expression]:
        """What is 0: the differences of definitions, and the rules."""
        return [variable(name) - value for name, value in self.definitions.items()] + list(self.rules)

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables of all that was given."""
        return frozenset[str]().union(*(fact.variables() for fact in self._given))

    def simplified(self, expression: Expression) -> Expression:
        """Returns an equal expression, the same for those that are equal as far as rules are canonical."""
        return self._ideal.simplified(expression) if self.rules else expression

    def are_zero(self, expression: Expression) -> bool:
        """Returns whether the rules make an expression 0; False is not certain."""
        return bool(self.rules) and self._ideal.contains(expression)

    def quotient(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns the simplest form of `dividend // divisor` that is found under the rules."""
        plain = normal.floordiv(dividend, divisor)
        if not self.rules or self._is_exact(dividend, divisor, plain):
            return plain
        spread = self.simplified(normal.floordiv(self._spread(dividend), self._spread(divisor)))
        if self._is_exact(dividend, divisor, spread):
            return spread
        exact = None if divisor.as_integer is not None else self._ideal.quotient(dividend, divisor)
        return min(plain, spread, key=lambda quotient: quotient.size) if exact is None else exact

    def _is_exact(self, dividend: Expression, divisor: Expression, quotient: Expression) -> bool:
        """Returns whether a division is known to leave no remainder."""
        return not self.simplified(dividend - quotient * divisor).terms

    def with_tied(self, names: frozenset[str]) -> frozenset[str]:
        """Returns variables and those that rules may bring into expressions of them."""
        while True:
            tied = [other for rule in self.rules if (other := rule.variables()) & names]
            wider = names.union(*tied)
            if wider == names:
                return names
            names = wider

    def named(self, expression: Expression) -> Expression:
        """Returns an expression with variables in place of the operations that define them.

        For people, and for the solution of variables: `n` for `floordiv(m, 2)` where `n == floordiv(m, 2)`.
        """
        for name, value in self.definitions.items():
            for operation, factor in _unit_operations(value):
                rest = value.plus(from_atom(operation), -factor)
                renamed = _replaced(expression, operation, (variable(name) - rest).scaled(factor))
                if renamed is not expression and len(renamed.terms) <= len(expression.terms):
                    expression = renamed
                    break
        return expression

    @cached_property
    def _ideal(self) -> Ideal:
        atoms = {atom: None for rule in self.rules for atom in rule.atoms()}
        rank = self._rank()
        order = sorted(atoms, key=lambda atom: (isinstance(atom, Variable), -degree_of_atom(atom), *rank(atom)))
        return Ideal(self.rules, order, self._budget)

    def _rank(self) -> Callable[[Atom], tuple[int, int, tuple[int, str]]]:
        """Returns a key of atoms: those first that are factors of leading terms with coefficient 1; then by part."""
        leading: dict[Atom, int] = {}
        for rule in self.rules:
            highest = max(map(weighted_degree, rule.terms))
            for monomial, coefficient in rule.terms.items():
                if abs(coefficient) == 1 and weighted_degree(monomial) == highest:
                    leading.update((atom, leading.get(atom, 0) + 1) for atom, _ in monomial)
        parts = colours(ZERO, self.rules, frozenset[str]().union(*(rule.variables() for rule in self.rules)))

        def rank(atom: Atom) -> tuple[int, int, tuple[int, str]]:
            part = parts[atom.name] if isinstance(atom, Variable) else -atom.size
            return -leading.get(atom, 0), part, atom.sort_key

        return rank

    def _spread(self, expression: Expression) -> Expression:
        """Returns an expression with multiples of quotients for variables: `4*floordiv(b, 4)` for `b`."""
        for rule in self.rules:
            found = _leading_product(rule)
            if found is None:
                continue
            monomial, value = found
            for _ in range(_LARGEST_POWER):
                multiple = {
                    m: (by, c) for m, c in expression.terms.items() if (by := divide_monomials(m, monomial)) is not None
                }
                for m, (by, c) in multiple.items():
                    expression = expression - Expression({m: c}) + Expression({by: c}) * value
        return expression


NO_EQUALITIES = Equalities()


class _Candidate(NamedTuple):
    """A variable that an equation defines."""

    equation: Expression
    name: str
    value: Expression
    remainder: Expression
    """What is 0 as well: of a division without remainder."""

    def score(self) -> tuple[bool, bool, bool, int, int]:
        """Returns how good it is to replace the variable, the best first: simple values, and positive ones."""
        return (
            bool(self.remainder.terms),
            has_operations(self.value),
            any(coefficient < 0 for coefficient in self.value.terms.values()),
            max(map(weighted_degree, self.value.terms), default=0),
            len(self.value.terms),
        )


class _Elimination:
    """Replaces variables that equations define, one after another, the simplest first."""

    def __init__(self, equations: Sequence[Expression], inequalities: Sequence[Expression], budget: Budget) -> None:
        self._facts = (*equations, *(-equation for equation in equations), *inequalities)
        self._budget = budget
        self.definitions: dict[str, Expression] = {}
        given = (without_common_factor(equation) for equation in equations)
        self.equations = [equation for equation in given if equation.terms]
        for _ in range(_MOST_DEFINITIONS):
            best = self._best()
            if best is None:
                break
            self._define(best)

    def without_defined(self, expression: Expression) -> Expression:
        """Returns an expression without the variables that were replaced."""
        if not self.definitions or not self.definitions.keys() & expression.variables():
            return expression
        size = max(value.size for value in self.definitions.values())
        self._budget.spend(_STEPS_OF_A_TERM * expression.size * size)
        return substituted(expression, self.definitions)

    def _best(self) -> _Candidate | None:
        """Returns the best candidate; of several alike the one whose variable comes first by the part that it plays."""
        candidates = [(one.score(), one) for equation in self.equations for one in _candidates(equation)]
        candidates = [(score, one) for score, one in candidates if self._is_small(one)]
        if not candidates:
            return None
        best = min(score for score, _ in candidates)
        alike = [one for score, one in candidates if score == best]
        if len(alike) == 1:
            return alike[0]
        return max(alike, key=lambda one: (self._parts[one.name], one.name))

    @cached_property
    def _parts(self) -> Mapping[str, int]:
        names = frozenset[str]().union(*(fact.variables() for fact in self._facts))
        self._budget.spend(_STEPS_OF_A_TERM * sum(fact.size for fact in self._facts) * len(names) * 6)
        return colours(ZERO, self._facts, names)

    def _is_small(self, candidate: _Candidate) -> bool:
        """Returns whether expressions stay small where the variable is replaced."""
        if candidate.value.size > _LARGEST_DEFINITION:
            return False
        if len(candidate.value.terms) <= 1:
            return True
        others = (*self._facts, *self.equations, *self.definitions.values())
        return all(_largest_power(other, candidate.name) <= _LARGEST_POWER for other in others)

    def _define(self, candidate: _Candidate) -> None:
        """Replaces the variable wherever it occurs."""
        value = {candidate.name: candidate.value}

        def replaced(expression: Expression) -> Expression:
            if candidate.name not in expression.variables():
                return expression
            self._budget.spend(_STEPS_OF_A_TERM * expression.size * candidate.value.size)
            return substituted(expression, value)

        remaining = [replaced(e) for e in self.equations if e is not candidate.equation] + [candidate.remainder]
        self.equations = list(dict.fromkeys(without_common_factor(e) for e in remaining if e.terms))
        self.definitions = {name: replaced(known) for name, known in self.definitions.items()} | value


def _candidates(equation: Expression) -> Iterator[_Candidate]:
    """Yields the variables that an equation defines."""
    coefficients = [c for m, c in equation.terms.items() if m != ONE]
    is_linear = all(weighted_degree(m) <= 1 for m in equation.terms)
    smallest = min(map(abs, coefficients), default=0)
    for monomial, coefficient in equation.terms.items():
        if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Variable):
            continue
        if abs(coefficient) != 1 and (not is_linear or abs(coefficient) != smallest):
            continue
        name = monomial[0][0].name
        rest = Expression({m: c for m, c in equation.terms.items() if m != monomial})
        if name in rest.variables():
            continue
        multiple = rest if coefficient < 0 else -rest
        by = integer(abs(coefficient))
        value = normal.floordiv(multiple, by)
        if _hides_signs(equation, value):
            continue
        yield _Candidate(equation, name, value, multiple - by * value)


def _hides_signs(equation: Expression, value: Expression) -> bool:
    """Returns whether a value is a difference of products, and the equality better a rule: `a*b` is `c + d`."""
    if has_operations(equation) or min(value.terms.values(), default=0) >= 0:
        return False
    highest = max(map(weighted_degree, equation.terms))
    leading = [coefficient for monomial, coefficient in equation.terms.items() if weighted_degree(monomial) == highest]
    return highest > 1 and len(leading) == 1 and abs(leading[0]) == 1


def _without_quotient(fact: Expression) -> Expression:
    """Returns a fact that says the same, for `e // k >= n` and `e // k <= n` one without the quotient."""
    others = [monomial for monomial in fact.terms if monomial != ONE]
    if len(others) != 1 or len(others[0]) != 1 or others[0][0][1] != 1:
        return fact
    (atom, _), factor = others[0][0], fact.terms[others[0]]
    if not isinstance(atom, Operation) or atom.name != FLOORDIV:
        return fact
    by = atom.operands[1].as_integer
    if by is None or by < 0:
        return fact
    if factor > 0:
        return atom.operands[0] - integer(by * -(fact.constant // factor))
    return integer(by * (fact.constant // -factor) + by - 1) - atom.operands[0]


def _is_evident(fact: Expression) -> bool:
    """Returns whether a sum of products of variables is at least 0 because each variable is at least 1."""
    if has_operations(fact):
        return False
    return all(c > 0 or m == ONE for m, c in fact.terms.items()) and sum(fact.terms.values()) >= 0


def _largest_power(expression: Expression, name: str) -> int:
    """Returns the largest exponent of a variable anywhere in an expression."""
    largest = 0
    for monomial in expression.terms:
        for atom, exponent in monomial:
            if isinstance(atom, Operation):
                inner = max(_largest_power(operand, name) for operand in atom.operands)
                largest = max(largest, inner * exponent)
            elif atom.name == name:
                largest = max(largest, exponent)
    return largest


def _leading_product(rule: Expression) -> tuple[Monomial, Expression] | None:
    """Returns the product of variables that a rule has with coefficient 1 or -1, the largest one, and its value."""
    products = [
        m for m, c in rule.terms.items() if m and abs(c) == 1 and all(isinstance(atom, Variable) for atom, _ in m)
    ]
    if not products:
        return None
    largest = max(products, key=lambda m: (weighted_degree(m), str(m)))
    rest = Expression({m: c for m, c in rule.terms.items() if m != largest})
    return largest, rest.scaled(-rule.terms[largest])


def _unit_operations(expression: Expression) -> Iterator[tuple[Operation, int]]:
    """Yields the operations that are terms with coefficient 1 or -1."""
    for monomial, coefficient in expression.terms.items():
        if len(monomial) == 1 and monomial[0][1] == 1 and abs(coefficient) == 1:
            atom = monomial[0][0]
            if isinstance(atom, Operation):
                yield atom, coefficient


def _replaced(expression: Expression, atom: Atom, value: Expression) -> Expression:
    """Returns an expression with a value for an atom in its terms, not inside of other atoms."""
    if not any(atom == other for other in expression.atoms()):
        return expression
    result = ZERO
    for monomial, coefficient in expression.terms.items():
        exponent = dict(monomial).get(atom, 0)
        rest = tuple(power for power in monomial if power[0] != atom)
        result = result + Expression({rest: coefficient}) * value.to_the_power(exponent)
    return result
