"""The facts of a scope: expressions that are at least 0, arranged for the questions about them.

Facts about one variable are kept as its interval. It is never empty: where they leave no size, the facts are known to
be contradictory, and any interval encloses the sizes. Of the others, those are found that bear on some variables:
because they mention them, or mention variables that others mention with them.
"""

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf

from jaxtf.shapepoly._decide.intervals import Interval
from jaxtf.shapepoly._expressions.anonymous import is_linear
from jaxtf.shapepoly._expressions.expression import ONE, Expression, Variable
from jaxtf.shapepoly._expressions.memo import Memo


class Facts:
    """Facts, together with every variable being at least 1.

    Args:
      facts: Expressions that are at least 0.

    Attributes:
      all: The facts.
      names: All variables that they mention.
      all_unary: Whether each fact is linear in a single variable.
      are_linear: Whether each fact is linear, with division by integers, and maxima.
      are_contradictory: Whether those that are linear in a single variable, or integers, leave no sizes.
    """

    def __init__(self, facts: Sequence[Expression]) -> None:
        self.all = tuple(facts)
        self.names = frozenset[str]().union(*(fact.variables() for fact in facts))
        self.are_contradictory = False
        self._intervals: dict[str, Interval] = {}
        unary = [self._note_if_unary(fact) for fact in facts]
        self.all_unary = all(unary)
        self.are_linear = all(map(is_linear, facts))
        self._variables = [fact.variables() for fact in facts]
        self._about: Memo[frozenset[str], tuple[tuple[Expression, ...], frozenset[str]]] = Memo(256)

    def interval(self, name: str) -> Interval:
        """Returns the interval of a variable by the facts about it alone, never an empty one."""
        return self._intervals.get(name, Interval(1, inf))

    def about(self, names: frozenset[str]) -> tuple[tuple[Expression, ...], frozenset[str]]:
        """Returns the facts that bear on some variables, and all variables that they and `names` mention."""
        known = self._about.get(names)
        if known is not None:
            return known
        reached = names
        while True:
            related = tuple(fact for fact, of in zip(self.all, self._variables, strict=True) if of & reached)
            wider = reached.union(*(of for of in self._variables if of & reached))
            if wider == reached:
                return self._about.put(names, (related, reached))
            reached = wider

    def unary_sizes(self, seed: int) -> Mapping[str, int]:
        """Returns sizes within the intervals, spread by the seed."""
        sizes: dict[str, int] = {}
        for name, (lower, upper) in self._intervals.items():
            assert isinstance(lower, int), "variables are bounded below"
            width = 1_000_003 if upper == inf else int(upper) - lower + 1
            sizes[name] = lower + spread_size(seed, name, width)
        return FreeSizes(seed, sizes)

    def _note_if_unary(self, fact: Expression) -> bool:
        """Narrows the interval of a variable if the fact is linear in it alone, and returns whether it is."""
        terms = [(monomial, factor) for monomial, factor in fact.terms.items() if monomial != ONE]
        if not terms:
            self.are_contradictory |= fact.constant < 0
            return True
        if len(terms) != 1 or len(terms[0][0]) != 1:
            return False
        ((atom, exponent),), factor = terms[0]
        if exponent != 1 or not isinstance(atom, Variable):
            return False
        lower, upper = self.interval(atom.name)
        if factor > 0:
            lower = max(lower, -(fact.constant // factor))
        else:
            upper = min(upper, fact.constant // -factor)
        if lower > upper:
            self.are_contradictory = True
            lower, upper = 1, inf
        self._intervals[atom.name] = Interval(lower, upper)
        return True


@lru_cache(4096)  # the same few names in every scope
def spread_size(seed: int, name: str, width: int) -> int:
    """Returns a number below `width` that depends on seed and name only; the same in every process. Of no width, any.

    Of two names, the one with the larger number under seed 0 has the smaller one under seed 1; under seed 2
    all have 0. So two sizes are seen to differ in both directions.
    """
    match seed:
        case 1:
            return width - 1 - spread_size(0, name, width)
        case 2:
            return 0
    return zlib.crc32(f"{seed}:{name}".encode()) % max(width, 1)


class FreeSizes(dict[str, int]):
    """Sizes of some variables, which gives each other variable a size that depends on its name only."""

    def __init__(self, seed: int, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)
        self._seed = seed

    def __missing__(self, name: str) -> int:
        size = 1 + spread_size(self._seed, name, 1_000_003)
        self[name] = size
        return size
