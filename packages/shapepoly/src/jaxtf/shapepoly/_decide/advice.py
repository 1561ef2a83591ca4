"""What to write where it is not known that an expression is other than 0.

A constraint is advised only if some sizes satisfy it, together with those that a decider knows, and if it
decides the question. What is advised is a text that the parser reads. Knows expressions and decisions;
nothing of scopes or JAX.

JAX divides by a negated product to find the size that -1 means in a reshape. A divisor that can
only be 0 or negative is taken for such a one, and shown without the sign.
"""

from math import gcd
from typing import NamedTuple

from jaxtf.shapepoly._decide.decision import Decider
from jaxtf.shapepoly._decide.witnesses import sizes_text
from jaxtf.shapepoly._expressions import normal
from jaxtf.shapepoly._expressions.expression import FLOORDIV, ONE, Expression, Operation, Variable, integer, variable
from jaxtf.shapepoly._expressions.substitution import substituted
from jaxtf.shapepoly._expressions.text import to_text

_ONE = integer(1)


def refused_division(decider: Decider, dividend: Expression, divisor: Expression) -> str:
    """Returns the text of the error for a divisor that is 0 for some sizes, or not known to be other than 0."""
    is_reshape = not _is_possible(decider, divisor) and _is_possible(decider, -divisor)
    shown = -divisor if is_reshape else divisor
    lines = [
        f"Cannot divide '{to_text(dividend)}' by '{to_text(shown)}': whether the divisor is nonzero is inconclusive.",
        *_zero_for(decider, divisor),
        *_advice_on_division(decider, dividend, divisor, is_reshape),
        "  see jaxtf's page 'Symbolic dimensions', section 'Division'",
    ]
    return "\n".join(lines)


def advice_on_nonzero(decider: Decider, expression: Expression, subject: str) -> list[str]:
    """Returns lines with the constraints under which an expression is other than 0.

    Args:
      decider: Knows what holds already.
      expression: The expression.
      subject: How the lines call it.
    """
    lines: list[str] = []
    for sign, signed in (("positive", expression), ("negative", -expression)):
        if _is_possible(decider, signed):
            subject_is = "it is" if lines else f"{subject} is"
            lines.append(f'  if {subject_is} always {sign} for you, add the constraint "{at_least_one(signed)}"')
    return lines


def at_least_one(expression: Expression) -> str:
    """Returns the constraint that an expression is 1 or more, as one would write it: `b >= 2` for `b - 1`."""
    factor = gcd(*(coefficient for monomial, coefficient in expression.terms.items() if monomial != ONE))
    terms = Expression({m: c // factor for m, c in expression.terms.items() if m != ONE})
    least = -((expression.constant - 1) // factor)
    positive = Expression({m: c for m, c in terms.terms.items() if c > 0})
    if positive.terms and all(isinstance(atom, Variable) for atom in terms.atoms()):
        return f"{to_text(positive)} >= {to_text(positive - terms + integer(least))}"
    text, negated = to_text(terms), to_text(-terms)
    return f"{negated} <= {-least}" if text.startswith("-") or len(negated) < len(text) else f"{text} >= {least}"


class _Quotient(NamedTuple):
    """A quotient by an integer within a divisor."""

    dividend: Expression
    by: int

    @property
    def variable(self) -> str | None:
        """The variable that is divided; None where it is another expression."""
        name = to_text(self.dividend)
        return name if name in self.dividend.variables() else None

    def facts(self) -> tuple[Expression, Expression]:
        """Returns what is at least 0 where the quotient leaves no remainder."""
        remainder = normal.mod(self.dividend, integer(self.by))
        return remainder, -remainder

    def advice(self, *, in_shapes: bool, as_constraint: bool) -> str:
        """Returns how to say that the quotient leaves no remainder."""
        size = to_text(self.dividend)
        remedies = [f"write {self.by}*{size} for {size} in the shapes"] * in_shapes
        remedies += [f'add the constraint "mod({size}, {self.by}) == 0"'] * as_constraint
        return f"if {size} is always a multiple of {self.by} for you, {', or '.join(remedies)}"


class _Outcome(NamedTuple):
    """The effect of a remedy on a division: whether the divisor is then nonzero, and whether no remainder is left."""

    helps: bool
    suffices: bool


def _advice_on_division(decider: Decider, dividend: Expression, divisor: Expression, is_reshape: bool) -> list[str]:
    """Returns lines with the constraints under which a divisor is other than 0."""
    quotients = _quotients(divisor)
    in_shapes = _in_shapes(decider, dividend, divisor, quotients)
    as_constraint = _under(decider, [fact for q in quotients for fact in q.facts()], dividend, divisor)
    suffices = is_reshape and (in_shapes.suffices or as_constraint.suffices)
    remedies = {
        "in_shapes": in_shapes.suffices if suffices else in_shapes.helps,
        "as_constraint": as_constraint.suffices if suffices else as_constraint.helps,
    }
    lines: list[str] = []
    if not (is_reshape and any(remedies.values())):
        lines += advice_on_nonzero(decider, -divisor if is_reshape else divisor, "the divisor")
        suffices = _under(decider, [-divisor - _ONE], dividend, divisor).suffices
    if any(remedies.values()):
        lines += [f"  {'and ' if number else ''}{q.advice(**remedies)}" for number, q in enumerate(quotients)]
    if is_reshape and not suffices:
        lines.append("  a reshape also needs a division without remainder, and this one is not known to have none")
    return lines


def _under(decider: Decider, facts: list[Expression], dividend: Expression, divisor: Expression) -> _Outcome:
    """Returns what becomes of a division under further facts."""
    known = decider.under(facts)
    helps = bool(facts) and not known.is_contradictory() and known.is_never_zero(divisor)
    return _Outcome(helps, helps and known.is_zero(normal.mod(dividend, divisor)))


def _in_shapes(decider: Decider, dividend: Expression, divisor: Expression, quotients: list[_Quotient]) -> _Outcome:
    """Returns what becomes of a division where the shapes have multiples of the variables that are divided."""
    multiples = {q.variable: variable(q.variable).scaled(q.by) for q in quotients if q.variable is not None}
    # Not where constraints mention the variables: they would mean other sizes then.
    if not quotients or len(multiples) < len(quotients) or decider.names & multiples.keys():
        return _Outcome(helps=False, suffices=False)
    dividend, divisor = substituted(dividend, multiples), substituted(divisor, multiples)
    helps = decider.is_never_zero(divisor)
    return _Outcome(helps, helps and decider.is_zero(normal.mod(dividend, divisor)))


def _quotients(divisor: Expression) -> list[_Quotient]:
    """Returns the quotients by integers that the terms of a divisor have as factors, each once."""
    found: dict[_Quotient, None] = {}
    for monomial, _ in divisor.sorted_terms():
        for atom, _ in monomial:
            if isinstance(atom, Operation) and atom.name == FLOORDIV:
                by = atom.operands[1].as_integer
                if by is not None:
                    found[_Quotient(atom.operands[0], by)] = None
    return list(found)


def _is_possible(decider: Decider, expression: Expression) -> bool:
    """Returns whether sizes are known for which an expression is at least 1."""
    return decider.witnesses(expression - _ONE).holds_for is not None


def _zero_for(decider: Decider, divisor: Expression) -> list[str]:
    """Returns a line with sizes for which a divisor is 0, if some are found."""
    sizes = decider.witnesses_of_nonzero(divisor).fails_for
    return [] if sizes is None else [f"  it is 0 for {sizes_text(sizes)}"]
