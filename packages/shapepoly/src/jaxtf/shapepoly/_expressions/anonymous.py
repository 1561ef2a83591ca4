"""Questions without the names that users gave: variables renamed by the part they play.

Where variables are multiplied, a decision procedure may find an answer or miss it, and what it finds may
depend on the order in which it meets variables and facts. `anonymous` gives the same question for whatever names
and order, so that the answer is the same.

Method: colour refinement. A variable's colour is what the expressions evaluate to when it has a size of its
own and all others have the sizes of their colours, a few times over. Values do not depend on the form of an
expression, which names may have shaped. Variables of one colour are almost always interchangeable; then any
order of them gives the same question. Source: Weisfeiler and Leman, 1968.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxtf.shapepoly._expressions import normal
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.evaluation import evaluate_integer
from jaxtf.shapepoly._expressions.expression import FLOORDIV, ZERO, Atom, Expression, Variable, integer, variable
from jaxtf.shapepoly._expressions.maximum import maximum

_SIZES = (12, 5, 31, 8, 67, 3, 101, 19, 44, 2)
_OWN_SIZES = (1, 97, 29)
_ROUNDS = 2
_STEPS_OF_A_TERM = 3


class Anonymous(NamedTuple):
    """A question: an expression and facts, and the name that replaces each of the variables."""

    expression: Expression
    facts: tuple[Expression, ...]
    names: Mapping[str, str]


def is_linear(expression: Expression) -> bool:
    """Returns whether an expression is linear in its variables, with division by integers, and maxima."""
    for monomial in expression.terms:
        if len(monomial) > 1 or any(exponent > 1 for _, exponent in monomial):
            return False
        for atom, _ in monomial:
            if isinstance(atom, Variable):
                continue
            operands = atom.operands
            if atom.name == FLOORDIV and operands[1].as_integer is None:
                return False
            if not all(map(is_linear, operands)):
                return False
    return True


def anonymous(
    expression: Expression, facts: Sequence[Expression], variables: frozenset[str], budget: Budget = UNBOUNDED
) -> Anonymous:
    """Returns the question whether `expression >= 0` under facts, in names of its own."""
    terms = expression.size + sum(fact.size for fact in facts)
    budget.spend(_STEPS_OF_A_TERM * terms * (len(variables) * len(_OWN_SIZES) * _ROUNDS + 10))
    ranked = sorted(colours(expression, facts, variables).items(), key=lambda item: (item[1], item[0]))
    names = {name: f"v{position:03}" for position, (name, _) in enumerate(ranked)}
    renamed = sorted((_renamed(fact, names) for fact in facts), key=repr)
    return Anonymous(_renamed(expression, names), tuple(renamed), names)


def colours(expression: Expression, facts: Sequence[Expression], variables: frozenset[str]) -> dict[str, int]:
    """Returns a number for each variable: the same for those that play the same part."""
    colours = dict.fromkeys(variables, 0)
    for _ in range(_ROUNDS):
        sizes = {name: _SIZES[colour % len(_SIZES)] + colour for name, colour in colours.items()}
        parts = {
            name: (
                colours[name],
                [_part(expression, facts, {**sizes, name: size + colours[name]}) for size in _OWN_SIZES],
            )
            for name in variables
        }
        distinct = sorted(map(repr, parts.values()))
        colours = {name: distinct.index(repr(part)) for name, part in parts.items()}
        if len(set(colours.values())) == len(colours):
            break
    return colours


def _part(expression: Expression, facts: Sequence[Expression], sizes: Mapping[str, int]) -> tuple[str, list[str]]:
    """Returns what the expressions evaluate to, the facts in no particular order."""
    return _value(expression, sizes), sorted(_value(fact, sizes) for fact in facts)


def _value(expression: Expression, sizes: Mapping[str, int]) -> str:
    try:
        return str(evaluate_integer(expression, sizes))
    except ZeroDivisionError:
        return "undefined"


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Returns the expression with other names, in the normal form and the order of terms of these."""
    total = ZERO
    for monomial, coefficient in expression.terms.items():
        product = integer(coefficient)
        for atom, exponent in monomial:
            factor = _renamed_atom(atom, names)
            for _ in range(exponent):
                product = product * factor
        total = total + product
    return Expression(dict(total.sorted_terms()))


def _renamed_atom(atom: Atom, names: Mapping[str, str]) -> Expression:
    if isinstance(atom, Variable):
        return variable(names[atom.name])
    operands = [_renamed(operand, names) for operand in atom.operands]
    if atom.name == FLOORDIV:
        return normal.floordiv(operands[0], operands[1])
    largest = ZERO
    for operand in operands:
        largest = maximum(largest, operand, _is_natural_number)
    return largest


def _is_natural_number(expression: Expression) -> bool:
    value = expression.as_integer
    return value is not None and value >= 0
