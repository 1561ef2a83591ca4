"""Comparisons of expressions as Python booleans, and the error where no boolean is right.

The error tells what was asked, sizes for which it holds and fails, the constraint that would decide
it, and the line of the user's program that asked.
"""

import sys
from collections.abc import Sequence
from typing import Literal

from jaxtf.shapepoly._decide.advice import advice_on_nonzero
from jaxtf.shapepoly._decide.decision import Verdict
from jaxtf.shapepoly._decide.witnesses import sizes_text
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._errors import InconclusiveDimensionOperation, inconclusive
from jaxtf.shapepoly._expressions.expression import Expression, integer

# What stands between a user's line and a question: us, JAX, and what both call through, such as contextlib.
_NOT_THE_USERS = frozenset(("jaxtf", "jax", "jaxlib")) | sys.stdlib_module_names
_ONE = integer(1)


def at_least(scope: SymbolicScope, left: Expression, right: Expression) -> bool:
    """Returns whether `left >= right` for all sizes (True) or for none (False).

    Raises:
      InconclusiveDimensionOperation: It holds for some sizes and fails for others, or cannot be decided.
    """
    answers = scope.algebra.answers
    known = answers.get((left, right))
    return known if known is not None else answers.put((left, right), _decide(scope, left - right, left, ">=", right))


def greater(scope: SymbolicScope, left: Expression, right: Expression) -> bool:
    """Returns whether `left > right` for all sizes or for none; raises as `at_least` does."""
    answers = scope.algebra.answers
    known = answers.get((right, left))
    if known is not None:
        return not known
    return not answers.put((right, left), not _decide(scope, left - right - _ONE, left, ">", right))


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


def _decide(
    scope: SymbolicScope, difference: Expression, left: Expression, relation: Literal[">=", ">"], right: Expression
) -> bool:
    """Returns whether `difference >= 0`, which is the same as `left relation right`."""
    difference, text = scope.algebra.simplified(difference), scope.algebra.text
    verdict = scope.algebra.decider.verdict(difference)
    if verdict.always:
        return True
    if verdict.never:
        return False
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
        "  see docs/shapepoly.md, section 'When a comparison is inconclusive'",
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
    caller = _caller()
    if caller:
        lines.append(f"  asked at: {caller}")
    if scope.constraints:
        lines.append(f"  known:    {', '.join(c.text for c in scope.constraints)}")
    return lines


def _caller() -> str | None:
    """Returns file, line and function of the innermost frame that is the user's."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _NOT_THE_USERS:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
    return None
