"""Variables that facts may tie to others or to integers, which tells what may be one integer only.

A variable is free if some sizes satisfy the facts with two sizes of this variable and the same of all others: a sum
in which it is a term has two values then. All others are taken for tied.

Method: from sizes that are known, one variable at a time is moved a little, and from there the next.
In: facts, and sizes that satisfy them. Out: names.
"""

from collections.abc import Iterable, Mapping, Sequence

from jaxtf.shapepoly._decide.presburger import satisfies
from jaxtf.shapepoly._expressions.expression import Expression

_MOST_STARTS = 12


def tied_variables(facts: Sequence[Expression], points: Iterable[Mapping[str, int]]) -> frozenset[str]:
    """Returns the variables of the facts that were not seen to be free.

    Args:
      facts: Expressions that are at least 0.
      points: Sizes that satisfy the facts; the later ones are asked for only where they are needed.
    """
    names = sorted(frozenset[str]().union(*(fact.variables() for fact in facts)))
    about = {name: [fact for fact in facts if name in fact.variables()] for name in names}
    tied = set(names)
    starts: list[dict[str, int]] = []
    for point in points:
        starts.append({name: point[name] for name in names})
        next_start = len(starts) - 1
        while tied and next_start < min(len(starts), _MOST_STARTS):
            start = starts[next_start]
            for name in sorted(tied):
                moved = _moved(about[name], start, name, [other[name] for other in starts])
                if moved is not None:
                    tied.discard(name)
                    starts.append(moved)
            next_start += 1
        if not tied:
            break
    return frozenset(tied)


def _moved(
    facts: Sequence[Expression], start: Mapping[str, int], name: str, others: Sequence[int]
) -> dict[str, int] | None:
    """Returns sizes that differ in one variable and satisfy its facts, if some are found."""
    size = start[name]
    for other in dict.fromkeys((size + 1, 2 * size, size - 1, *others)):
        if other >= 1 and other != size and satisfies(facts, moved := {**start, name: other}):
            return moved
    return None
