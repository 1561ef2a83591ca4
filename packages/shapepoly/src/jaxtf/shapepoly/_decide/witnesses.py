"""Sizes that show something: small ones, found by trying.

People read these, so small sizes are tried before those that a decision procedure finds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.evaluation import evaluate_integer
from jaxtf.shapepoly._expressions.expression import Expression

_MOST_TRIES = 4096
_STEPS_OF_A_TERM = 3


def small_sizes(variables: Sequence[str], tries: int = _MOST_TRIES) -> Iterator[dict[str, int]]:
    """Yields sizes of variables, the smaller ones first, at most `tries` of them.

    >>> [tuple(sizes.values()) for sizes in small_sizes("ab")][:4]
    [(1, 1), (1, 2), (2, 1), (2, 2)]
    """
    if len(variables) == 1:
        yield from ({variables[0]: size} for size in range(1, tries + 1))
        return
    tried = 0
    largest = 1
    while True:
        for sizes in product(range(1, largest + 1), repeat=len(variables)):
            if max(sizes, default=1) < largest:
                continue
            tried += 1
            if tried > tries:
                return
            yield dict(zip(variables, sizes, strict=True))
        if not variables:
            return
        largest += 1


def find_sizes(
    expressions: Sequence[Expression],
    facts: Sequence[Expression],
    wanted: Callable[[Sequence[int]], bool],
    tries: int = _MOST_TRIES,
    budget: Budget = UNBOUNDED,
) -> dict[str, int] | None:
    """Returns small sizes that satisfy the facts and give the expressions wanted values, if some are found.

    Args:
      expressions: The expressions whose values decide.
      facts: Expressions that are at least 0.
      wanted: Says whether the values of the expressions are wanted.
      tries: How many sizes to try at most.
      budget: Bound on the work.
    """

    def value(expression: Expression, sizes: Mapping[str, int]) -> int:
        budget.spend(_STEPS_OF_A_TERM * expression.size)
        return evaluate_integer(expression, sizes)

    names = sorted(frozenset[str]().union(*(e.variables() for e in (*expressions, *facts))))
    for sizes in small_sizes(names, tries):
        try:
            budget.spend(len(names))
            if all(value(fact, sizes) >= 0 for fact in facts) and wanted(
                [value(expression, sizes) for expression in expressions]
            ):
                return sizes
        except ZeroDivisionError:  # these sizes are outside of what the expressions are defined for
            continue
    return None


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Returns sizes as a text such as `a=1, b=2`."""
    return ", ".join(f"{name}={sizes[name]}" for name in sorted(sizes))
