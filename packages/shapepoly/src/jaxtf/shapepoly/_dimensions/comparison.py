"""Comparisons of expressions as Python booleans, and the error where no boolean is right.

The error gives the comparison, sizes for which it holds and fails, the constraint that would decide
it, and the line of the user's program that asked.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Literal

from jaxtf.shapepoly._decide.advice import advice_on_nonzero
from jaxtf.shapepoly._decide.decision import Verdict
from jaxtf.shapepoly._decide.witnesses import sizes_text
from jaxtf.shapepoly._dimensions.log import caller, log_answer
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._errors import InconclusiveDimensionOperation
from jaxtf.shapepoly._expressions.expression import Expression, integer
from jaxtf.shapepoly._inconclusive import inconclusive

_ONE = integer(1)


def at_least(scope: SymbolicScope, left: Expression, right: Expression) -> bool:
    """Returns whether `left >= right` for all sizes (True) or for none (False).

    Raises:
      InconclusiveDimensionOperation: It holds for some sizes and fails for others, or cannot be decided.
    """
    known = scope.algebra.answers.get((left, right))
    return known if known is not None else _decide(scope, left - right, left, ">=", right)


def greater(scope: SymbolicScope, left: Expression, right: Expression) -> bool:
    """Returns whether `left > right` for all sizes or for none; raises as `at_least` does."""
    known = scope.algebra.answers.get((right, left))
    return not known if known is not None else _decide(scope, left - right - _ONE, left, ">", right)


def nonzero(scope: SymbolicScope, expression: Expression) -> bool:
    """Returns whether an expression is other than 0 for all sizes or for none; raises as `at_least` does."""
    decider = scope.algebra.decider
    if decider.is_never_zero(expression):
        return True
    if scope.algebra.is_zero(expression):
        return False
    text = scope.algebra.text(expression)
    advice = advice_on_nonzero(decider, expression, f"'{text}'")
    raise _error(scope, f"'{text}' != 0", decider.witnesses_of_nonzero(expression), advice)


def unequal(scope: SymbolicScope, left: Expression, right: Expression, what: str) -> None:
    """Returns where two expressions are equal for no sizes.

    Args:
      what: Which values depend on it, as a line of the error.

    Raises:
      InconclusiveDimensionOperation: They are equal for some sizes, or that there are none cannot be decided.
    """
    decider, difference = scope.algebra.decider, left - right
    if decider.is_never_zero(difference):
        return
    texts = tuple(map(scope.algebra.text, (left, right)))
    advice = [
        f"  {what}",
        *advice_on_nonzero(decider, difference, f"'{scope.algebra.text(difference)}'"),
        f'  if they are always equal for you, add the constraint "{" == ".join(texts)}"',
    ]
    comparison = " != ".join(f"'{text}'" for text in texts)
    raise _error(scope, comparison, decider.witnesses_of_nonzero(difference), advice)


def _decide(
    scope: SymbolicScope, difference: Expression, left: Expression, relation: Literal[">=", ">"], right: Expression
) -> bool:
    """Returns whether `difference >= 0`, which is the same as `left relation right`, and remembers it."""
    algebra, text = scope.algebra, scope.algebra.text
    start = perf_counter() if algebra.logger else 0.0
    difference = algebra.simplified(difference)
    verdict = algebra.decider.verdict(difference)
    decided = verdict.always or verdict.never
    if algebra.logger:
        answer = verdict.always if decided else None
        log_answer(algebra.logger, f"{text(left)} {relation} {text(right)}", answer, verdict.by, start)
        if decided:
            return verdict.always
    if decided:
        key, known = ((left, right), verdict.always) if relation == ">=" else ((right, left), verdict.never)
        algebra.answers.put(key, known)
        return verdict.always
    constraint = f"{text(left)} >= {text(right if relation == '>=' else right + _ONE)}"
    advice = [f'  if it always holds for you, add the constraint "{constraint}"']
    comparison = f"'{text(left)}' {relation} '{text(right)}'"
    raise _error(scope, comparison, scope.algebra.decider.witnesses(difference), advice)


def _error(
    scope: SymbolicScope, comparison: str, witnesses: Verdict, advice: Sequence[str]
) -> InconclusiveDimensionOperation:
    """Returns the error for a comparison without an answer."""
    plain = comparison.replace("'", "")
    lines = [
        f"Symbolic dimension comparison {comparison} is inconclusive: cannot decide {plain} for every size",
        f"  {_witnesses_text(witnesses)}",
        *advice,
        *_context(scope),
        "  see jaxtf's page 'Symbolic dimensions', section 'When a comparison is inconclusive'",
    ]
    return inconclusive("\n".join(lines))


def _witnesses_text(witnesses: Verdict) -> str:
    """Describes sizes for which a comparison holds and fails, as far as some were found."""
    holds, fails = witnesses.holds_for, witnesses.fails_for
    if holds is not None and fails is not None:
        return f"it holds for {sizes_text(holds)} and fails for {sizes_text(fails)}"
    if fails is not None:
        return f"it fails for {sizes_text(fails)}; no size was found for which it holds, nor a proof that there is none"
    if holds is not None:
        return f"it holds for {sizes_text(holds)}; no size was found for which it fails, nor a proof that there is none"
    return "no size was found for which it holds, nor one for which it fails"


def _context(scope: SymbolicScope) -> Sequence[str]:
    """Describes where the question was asked, and under which constraints."""
    lines = []
    asked_at = caller()
    if asked_at:
        lines.append(f"  asked at: {asked_at}")
    if scope.constraints:
        lines.append(f"  known:    {', '.join(c.text for c in scope.constraints)}")
    return lines
