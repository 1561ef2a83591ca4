"""Decides what holds for all sizes that a scope allows.

A `Decider` answers three questions about an expression `e` under constraints: is `e >= 0` for all
sizes, for none, or for some (then with two witnesses); what are its bounds; is it always 0. Answers
are memoised, in tables of bounded size.

Method: intervals and linear bounds first (`_decide.intervals`, `_decide.linear_bounds`); then integer sets
(`_decide.presburger`), which decide every expression that is linear in its variables with `floordiv` and `mod` by
integers, `max` and `min`. For products of variables the answer is sound, and may be missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import inf
from typing import NamedTuple

from jaxtf.shapepoly._decide.equalities import NO_EQUALITIES, Equalities
from jaxtf.shapepoly._decide.facts import Facts, FreeSizes, spread_size
from jaxtf.shapepoly._decide.intervals import Bound, Enclosure, Interval
from jaxtf.shapepoly._decide.linear_bounds import linear_bounds
from jaxtf.shapepoly._decide.presburger import Problem, Question, satisfies
from jaxtf.shapepoly._decide.products import lower_bound
from jaxtf.shapepoly._decide.ties import tied_variables
from jaxtf.shapepoly._decide.witnesses import find_sizes
from jaxtf.shapepoly._expressions.anonymous import anonymous, is_linear
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.evaluation import evaluate_integer
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    ZERO,
    Expression,
    Monomial,
    Variable,
    has_operations,
    integer,
    variable,
)
from jaxtf.shapepoly._expressions.memo import Memo
from jaxtf.shapepoly._isl import TooHard

Sizes = Mapping[str, int]
"""A size for each dimension variable."""


class Verdict(NamedTuple):
    """Whether `expression >= 0` holds for the sizes of a scope.

    `always` and `never` are both False where it holds for some sizes and fails for others, or where
    that is not known; then `holds_for` and `fails_for` are sizes that show it, as far as some were found.
    `by` says what found it, for people.
    """

    always: bool = False
    never: bool = False
    holds_for: Sizes | None = None
    fails_for: Sizes | None = None
    by: str = "sizes for which it holds and fails"


class Zero(NamedTuple):
    """Whether an expression is known to be 0 for all sizes, and by what, for people."""

    holds: bool
    by: str


_SAMPLES = 3
_MORE_SAMPLES = 8
_FEW_TRIES = 32
_MOST_TRIES = 4096
_MOST_POINTS = 8
_STEPS_OF_A_QUESTION = 20

ALWAYS, NEVER = Verdict(always=True, by="intervals"), Verdict(never=True, by="intervals")
ALWAYS_BY_FACTORS, ALWAYS_BY_SETS = (Verdict(always=True, by=by) for by in ("signs of factors", "integer sets"))
NEVER_BY_FACTORS, NEVER_BY_SETS = (Verdict(never=True, by=by) for by in ("signs of factors", "integer sets"))


class Decider:
    """Answers questions about expressions under facts.

    Args:
      facts: Expressions that are at least 0 for all sizes of the scope. That variables are at least
        1 is always known.
      budget: Bound on the work of all questions.
      equalities: Of the scope; their facts are among the facts. Questions must be without the variables that they
        define.

    Each method raises `OutOfSteps` where the budget is used up.

    Attributes:
      budget: The same.
      equalities: The same.
    """

    def __init__(
        self, facts: Sequence[Expression] = (), budget: Budget = UNBOUNDED, equalities: Equalities = NO_EQUALITIES
    ) -> None:
        self.budget = budget
        self.equalities = equalities
        self._facts = Facts(facts)
        self._enclosure = Enclosure(self._facts.interval)
        self._tight_enclosure = Enclosure(self._exact_interval)
        self._verdicts: Memo[Expression, Verdict] = Memo(4096)
        self._problems: Memo[frozenset[Monomial], Problem] = Memo(64)
        self._intervals: Memo[str, Interval] = Memo(1024)

    @property
    def names(self) -> frozenset[str]:
        """The variables that the facts mention, or equalities define."""
        return self._facts.names | self.equalities.names

    def under(self, facts: Sequence[Expression]) -> "Decider":
        """Returns a decider that knows further facts, without the variables that are defined here."""
        return Decider((*self._facts.all, *facts), self.budget, self.equalities)

    def is_contradictory(self) -> bool:
        """Returns whether it is known that no sizes satisfy the facts."""
        if self._facts.are_contradictory or self._facts.all_unary:
            return self._facts.are_contradictory
        try:
            if self._points:
                return False
            question = anonymous(ZERO, self._facts.all, self._facts.names, self.budget)
            original = {name: given for given, name in question.names.items()}
            enclosure = Enclosure(lambda name: self._facts.interval(original[name]))
            problem = Problem(_monomials(question.facts), question.facts, enclosure, self.budget)
            return not problem.can_be_at_least_zero(ZERO)
        except TooHard:
            return False

    def verdict(self, expression: Expression) -> Verdict:
        """Decides whether `expression >= 0`."""
        known = self._verdicts.get(expression)
        return known if known is not None else self._verdicts.put(expression, self._decide(expression))

    def witnesses(self, expression: Expression) -> Verdict:
        """Returns an undecided verdict with small sizes in place of any, as far as some are found."""
        verdict = self.verdict(expression)
        return Verdict(
            holds_for=self._small_sizes(expression, _is_at_least_zero) or verdict.holds_for,
            fails_for=self._small_sizes(expression, _is_negative) or verdict.fails_for,
        )

    def witnesses_of_nonzero(self, expression: Expression) -> Verdict:
        """Returns small sizes for which an expression is other than 0, and for which it is 0, if some are found."""
        return Verdict(holds_for=self._small_sizes(expression, bool), fails_for=self._small_sizes(expression, _is_zero))

    def bounds(self, expression: Expression) -> Interval:
        """Returns the smallest interval known to contain the expression."""
        enclosing = linear_bounds(expression, self._enclosure)
        if enclosing.lower == enclosing.upper:
            return enclosing
        lower = max(enclosing.lower, self._product_bound(expression))
        upper = min(enclosing.upper, -self._product_bound(-expression))
        try:
            exact = self._question(expression).bounds()
        except TooHard:
            return Interval(lower, upper)
        return Interval(max(lower, exact.lower), min(upper, exact.upper))

    def is_never_zero(self, expression: Expression) -> bool:
        """Returns whether the expression is known to be other than 0 for all sizes."""
        lower, upper = linear_bounds(expression, self._enclosure)
        if lower > 0 or upper < 0:
            return True
        if self._product_bound(expression) > 0 or self._product_bound(-expression) > 0:
            return True
        if any(evaluate_integer(expression, sizes) == 0 for sizes in self._points):
            return False
        try:
            return not self._question(expression).can_be_zero()
        except TooHard:
            return False

    def is_zero(self, expression: Expression) -> bool:
        """Returns whether the expression is known to be 0 for all sizes."""
        return self.zero(expression).holds

    def zero(self, expression: Expression) -> Zero:
        """Returns whether the expression is known to be 0 for all sizes, and by what."""
        if not expression.terms:
            return Zero(True, "normal form")
        if any(evaluate_integer(expression, sizes) for sizes in self._points):
            return Zero(False, "sizes for which it fails")
        verdict = self.verdict(expression)
        if verdict.always:
            verdict = self.verdict(-expression)
        return Zero(verdict.always, verdict.by)

    @cached_property
    def is_unbounded(self) -> bool:
        """Whether each variable is unbounded, whatever the others are: then a polynomial is one integer by its form."""
        return self._facts.all_unary and all(self._facts.interval(name).upper == inf for name in self._facts.names)

    @cached_property
    def tied_variables(self) -> frozenset[str]:
        """The variables of which a sum of variables consists if it is one integer by the facts, and perhaps more."""
        if self._facts.all_unary:
            intervals = {name: self._facts.interval(name) for name in self._facts.names}
            return frozenset(name for name, (lower, upper) in intervals.items() if lower == upper)
        return tied_variables(self._facts.all, self._known_sizes())

    def may_be_one_integer(self, expression: Expression) -> bool:
        """Returns whether an expression may have one value only; False is certain where decisions are exact."""
        if self.is_unbounded:
            return not expression.is_plain and _may_be_constant(expression)
        # A sum with a free variable is not constant if it is linear in it, or grows with all variables.
        tied, is_free, is_linear, grows = self.tied_variables, False, True, True
        for monomial, coefficient in expression.terms.items():
            grows = grows and (coefficient > 0 or not monomial)
            is_linear = is_linear and (not monomial or (len(monomial) == 1 and monomial[0][1] == 1))
            for atom, _ in monomial:
                if not isinstance(atom, Variable):
                    return True
                is_free = is_free or atom.name not in tied
        return not (is_free and (is_linear or grows))

    def only_value(self, expression: Expression) -> int | None:
        """Returns the only value that the expression has, if it is known to have only one."""
        sample = self._sample_sizes
        if not sample:
            lower, upper = self.bounds(expression)
            return int(lower) if lower == upper else None
        value = evaluate_integer(expression, sample[0])
        for sizes in sample[1:]:
            if evaluate_integer(expression, sizes) != value:
                return None
        if any(evaluate_integer(expression, sizes) != value for sizes in self._more_sizes):
            return None
        return value if self.is_zero(expression - integer(value)) else None

    def sample(self, expression: Expression) -> tuple[int, ...]:
        """Returns the values of the expression for a few sizes that the facts allow, always the same ones."""
        return tuple(evaluate_integer(expression, sizes) for sizes in self._sample_sizes)

    def _decide(self, expression: Expression) -> Verdict:
        self.budget.spend(_STEPS_OF_A_QUESTION + 4 * (expression.size + len(self._facts.all)))
        lower, upper = linear_bounds(expression, self._enclosure)
        if lower >= 0:
            return ALWAYS
        if upper < 0:
            return NEVER
        holds = self._sampled(expression, _is_at_least_zero)
        fails = self._sampled(expression, _is_negative)
        if holds is not None and fails is not None:
            return Verdict(holds_for=holds, fails_for=fails)
        if fails is None and self._product_bound(expression) >= 0:
            return ALWAYS_BY_FACTORS
        if holds is None and self._product_bound(-expression) > 0:
            return NEVER_BY_FACTORS
        by = "integer sets"
        try:
            question = self._question(expression)
            if fails is None and not question.can_be_negative():
                return ALWAYS_BY_SETS
            if holds is None and not question.can_be_at_least_zero():
                return NEVER_BY_SETS
            holds = holds or self._found(question.sizes(negative=False), expression, _is_at_least_zero)
            fails = fails or self._found(question.sizes(negative=True), expression, _is_negative)
        except TooHard:
            by = "the bound on the work of integer sets"  # what was found until then is still true
        return Verdict(holds_for=holds, fails_for=fails, by=by)

    def _product_bound(self, expression: Expression) -> Bound:
        """Returns a lower bound of an expression that has products, from the factors that its form hides."""
        return -inf if is_linear(expression) else lower_bound(expression, self._simple_bound, self.equalities.positive)

    def _simple_bound(self, expression: Expression) -> Bound:
        """Returns a lower bound of an expression; where it has no products, at least 0 if it is never negative."""
        lower = linear_bounds(expression, self._enclosure).lower
        return 0 if lower < 0 and is_linear(expression) and self.verdict(expression).always else lower

    def _sampled(self, expression: Expression, wanted: Callable[[int], bool]) -> Sizes | None:
        """Returns the first sample sizes that give the expression a wanted value."""
        for sizes in self._points:
            if wanted(evaluate_integer(expression, sizes)):
                return self._confirmed(sizes, expression, wanted)
        return None

    def _small_sizes(self, expression: Expression, wanted: Callable[[int], bool]) -> Sizes | None:
        """Returns small sizes that give the expression a wanted value, if some are found."""
        facts, _ = self._facts.about(expression.variables())
        relations = sum(len(fact.terms) > 2 for fact in facts)
        tries = _MOST_TRIES // (1 + relations)
        return find_sizes((expression,), facts, lambda values: wanted(values[0]), tries, self.budget)

    def _confirmed(self, sizes: Sizes | None, expression: Expression, wanted: Callable[[int], bool]) -> Sizes | None:
        """Returns the sizes of the variables that matter, if they satisfy the facts and show what is wanted."""
        if sizes is None:
            return None
        facts, names = self._facts.about(expression.variables())
        needed = {name: sizes[name] for name in sorted(names)}
        return needed if satisfies(facts, needed) and wanted(evaluate_integer(expression, needed)) else None

    def _found(self, sizes: Sizes | None, expression: Expression, wanted: Callable[[int], bool]) -> Sizes | None:
        """Confirms sizes that integer sets found, and keeps them for the questions that follow."""
        confirmed = self._confirmed(sizes, expression, wanted)
        if confirmed is not None and len(self._points) < _MOST_POINTS:
            everything = {**self._points[0], **confirmed} if self._points else confirmed
            if self._facts.names <= everything.keys() and satisfies(self._facts.all, everything):
                self._points.append(FreeSizes(len(self._points), everything))
        return confirmed

    def _question(self, expression: Expression) -> Question:
        """Returns the question about an expression, without its names where the answer could depend on them."""
        facts, names = self._facts.about(expression.variables())
        if is_linear(expression) and self._facts.are_linear:
            return Question(self._linear_problem(expression, facts, names), expression)
        question = anonymous(expression, facts, names, self.budget)
        original = {name: given for given, name in question.names.items()}
        enclosure = Enclosure(lambda name: self._exact_interval(original[name]))
        monomials = _monomials((question.expression, *question.facts))
        return Question(Problem(monomials, question.facts, enclosure, self.budget), question.expression, original)

    def _linear_problem(self, expression: Expression, facts: tuple[Expression, ...], names: frozenset[str]) -> Problem:
        """Returns the problem whose columns include the monomials of the expression."""
        monomials = {m for m in expression.terms if m != ONE}
        monomials |= {((Variable(name), 1),) for name in names}
        key = frozenset(monomials)
        known = self._problems.get(key)
        if known is not None:
            return known
        ordered = sorted(monomials, key=lambda m: [(atom.sort_key, exponent) for atom, exponent in m])
        return self._problems.put(key, Problem(ordered, facts, self._tight_enclosure, self.budget))

    def _exact_interval(self, name: str) -> Interval:
        """Returns the interval of a variable under all facts that bear on it."""
        enclosing = self._facts.interval(name)
        facts, _ = self._facts.about(frozenset({name}))
        if self._facts.all_unary or not facts:
            return enclosing
        known = self._intervals.get(name)
        if known is not None:
            return known
        try:
            question = anonymous(variable(name), facts, self._facts.about(frozenset({name}))[1], self.budget)
            original = {new: given for given, new in question.names.items()}
            enclosure = Enclosure(lambda new: self._facts.interval(original[new]))
            monomials = _monomials((question.expression, *question.facts))
            exact = Problem(monomials, question.facts, enclosure, self.budget).bounds(question.expression)
        except TooHard:
            exact = enclosing
        return self._intervals.put(name, exact if exact.lower <= exact.upper else enclosing)

    @cached_property
    def _sample_sizes(self) -> tuple[Sizes, ...]:
        """A few sizes that the facts allow: the same for all expressions, in all processes."""
        if self._facts.all_unary:
            return tuple(self._facts.unary_sizes(seed) for seed in range(_SAMPLES))
        found: list[Sizes | None] = []
        with suppress(TooHard):  # those that were found until then will do
            for seed in range(_SAMPLES):
                found.append(self._facts_problem.sizes(self._spread(seed)))
        known = [sizes for sizes in found if sizes is not None] or self._points
        return tuple(FreeSizes(seed, sizes) for seed, sizes in enumerate(known))

    def _known_sizes(self) -> Iterator[Sizes]:
        """Yields sizes that the facts allow, those first that are known already."""
        yield from list(self._points)
        yield from self._sample_sizes

    @cached_property
    def _more_sizes(self) -> tuple[Sizes, ...]:
        """More sizes that the facts allow, where they are found without integer sets."""
        if not self._facts.all_unary:
            return ()
        return tuple(self._facts.unary_sizes(seed) for seed in range(_SAMPLES, _SAMPLES + _MORE_SAMPLES))

    @cached_property
    def _points(self) -> list[Sizes]:
        """Sizes that the facts allow, which refute what is not always so; grows by those that were found since."""
        if self._facts.all_unary:
            return list(self._sample_sizes)
        facts = self._facts.all
        found = find_sizes((), facts, lambda _: True, _FEW_TRIES, self.budget)
        if found is None:
            try:
                found = self._facts_problem.sizes()
            except TooHard:
                found = None
        found = found or find_sizes((), facts, lambda _: True, budget=self.budget)
        return [] if found is None else [FreeSizes(0, found)]

    @cached_property
    def _facts_problem(self) -> Problem:
        """The problem of all facts; making it raises `TooHard`."""
        return Problem(_monomials(self._facts.all), self._facts.all, self._enclosure, self.budget)

    def _spread(self, seed: int) -> list[Expression]:
        """Returns wishes for sizes, one for each variable of the facts: to be at least a number that varies."""
        return [variable(name) - integer(1 + spread_size(seed, name, 61)) for name in sorted(self._facts.names)]


def _may_be_constant(expression: Expression) -> bool:
    """Returns whether an expression of unbounded variables may have one value only.

    A polynomial has not, nor has its sum with one quotient of polynomials by an integer or one maximum of them: in
    normal form these are not polynomials. Nor has a multiple of a quotient that grows with a variable without bound.
    """
    operations = 0
    for monomial in expression.terms:
        for atom, exponent in monomial:
            if isinstance(atom, Variable):
                continue
            operations += 1
            if operations > 1 or exponent > 1 or len(monomial) > 1 or any(map(has_operations, atom.operands)):
                return True
            by_expression = atom.name == FLOORDIV and atom.operands[1].as_integer is None
            if by_expression and (len(expression.terms) > 1 or not _grows(*atom.operands)):
                return True
    return False


def _grows(dividend: Expression, divisor: Expression) -> bool:
    """Returns whether a quotient grows, or falls, without bound with a variable that its divisor does not have."""
    fixed = set(divisor.atoms())
    return any(
        atom not in fixed
        and len({c > 0 for m, c in dividend.terms.items() if any(atom == factor for factor, _ in m)}) == 1
        for atom in dividend.atoms()
    )


def _monomials(expressions: Sequence[Expression]) -> list[Monomial]:
    """Returns the monomials of expressions, and those of all their variables."""
    monomials = {m: None for expression in expressions for m in expression.terms if m != ONE}
    names = sorted(frozenset[str]().union(*(expression.variables() for expression in expressions)))
    return list(monomials | {((Variable(name), 1),): None for name in names})


def _is_at_least_zero(value: int) -> bool:
    return value >= 0


def _is_negative(value: int) -> bool:
    return value < 0


def _is_zero(value: int) -> bool:
    return value == 0
