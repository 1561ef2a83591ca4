"""Dimension expressions: integer polynomials over dimension variables and two operations.

An `Expression` is a sum of monomials with integer coefficients; a monomial is a product of powers of
atoms; an atom is a variable, a `floordiv(e1, e2)` that does not simplify, or the maximum of 0 and some
expressions, `max(0, e1, e2, ...)`. Two operations are enough: `mod(e, n)` is `e - n*floordiv(e, n)`,
`max(x, y)` is `y + max(0, x - y)` and `min(x, y)` is `x - max(0, x - y)`. So `4*(a//4) + a%4` is `a` and
`max(a, b) + min(a, b)` is `a + b` with no rule that says so.

Values here are immutable, equality is equality of form (the order of terms does not matter), and
nothing is simplified beyond collecting terms: `normal` makes atoms in normal form, and `_dimensions.scope` knows
which values variables can take. Knows nothing of scopes, decisions, text or JAX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

FLOORDIV: Final = "floordiv"
MAXIMUM: Final = "maximum"
OperationName = Literal["floordiv", "maximum"]


class Variable:
    """A dimension variable: a name. Its value is an integer, at least 1."""

    __slots__ = ("_hash", "name", "sort_key")

    def __init__(self, name: str) -> None:
        self.name = name
        self.sort_key: tuple[int, str] = (0, name)
        self._hash = hash(("variable", name))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Variable) and self.name == other.name)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Variable({self.name!r})"


class Operation:
    """A floor division (two operands), or the maximum of 0 and one or more operands; in normal form."""

    __slots__ = ("_hash", "name", "operands", "size", "sort_key")

    def __init__(self, name: OperationName, operands: tuple[Expression, ...]) -> None:
        self.name = name
        self.operands = operands
        self.size: int = 1 + sum(operand.size for operand in operands)
        self.sort_key: tuple[int, str] = (1, f"{name}{operands}")
        self._hash = hash((name, operands))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Operation) or self._hash != other._hash:
            return False
        return self.name == other.name and self.operands == other.operands

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Operation({self.name!r}, {self.operands})"


Atom = Variable | Operation
Monomial = tuple[tuple[Atom, int], ...]
"""Pairs of an atom and its exponent, sorted by the atom's `sort_key`; `()` is the constant monomial 1."""

ONE: Final[Monomial] = ()


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """Returns the product of two monomials."""
    if not left:
        return right
    if not right:
        return left
    powers = dict(left)
    for atom, exponent in right:
        powers[atom] = powers.get(atom, 0) + exponent
    return tuple(sorted(powers.items(), key=lambda power: power[0].sort_key))


def divide_monomials(dividend: Monomial, divisor: Monomial) -> Monomial | None:
    """Returns the quotient of two monomials, or None where it is not a monomial."""
    powers = dict(dividend)
    for atom, exponent in divisor:
        left = powers.get(atom, 0) - exponent
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, exponent) for atom, exponent in powers.items() if exponent)


def degree(monomial: Monomial) -> int:
    """Returns the sum of the exponents."""
    return sum(exponent for _, exponent in monomial)


def monomial_order(monomial: Monomial) -> tuple[int, tuple[tuple[tuple[int, str], int], ...]]:
    """Sort key that puts higher degrees first, then names in alphabetical order, the constant last."""
    return (-degree(monomial), tuple((atom.sort_key, -exponent) for atom, exponent in monomial))


class Expression:
    """An integer polynomial over atoms, as a mapping from monomials to coefficients other than 0.

    Attributes:
      terms: The mapping.
      is_plain: Whether all atoms are known to be variables; sums and products of such expressions are such, too.
    """

    __slots__ = ("_hash", "is_plain", "terms")

    def __init__(self, terms: Mapping[Monomial, int], is_plain: bool = False) -> None:
        self.terms = terms
        self.is_plain = is_plain
        self._hash: int | None = None

    @property
    def as_integer(self) -> int | None:
        """The value of a constant expression; None for any other."""
        if not self.terms:
            return 0
        if len(self.terms) == 1:
            return self.terms.get(ONE)
        return None

    @property
    def size(self) -> int:
        """How many terms and operations there are, those inside operands included."""
        inner = sum(atom.size for atom in self.atoms() if isinstance(atom, Operation))
        return len(self.terms) + inner

    @property
    def constant(self) -> int:
        """The coefficient of the constant term."""
        return self.terms.get(ONE, 0)

    def __add__(self, other: Expression) -> Expression:
        return self.plus(other, 1)

    def __sub__(self, other: Expression) -> Expression:
        return self.plus(other, -1)

    def plus(self, other: Expression, factor: int) -> Expression:
        """Returns `self + factor * other`."""
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) + factor * coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Expression(terms, self.is_plain and other.is_plain)

    def __neg__(self) -> Expression:
        return self.scaled(-1)

    def scaled(self, factor: int) -> Expression:
        """Returns `factor * self`."""
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Expression(
            {monomial: factor * coefficient for monomial, coefficient in self.terms.items()}, self.is_plain
        )

    def __mul__(self, other: Expression) -> Expression:
        for one, another in ((self, other), (other, self)):
            factor = one.as_integer
            if factor is not None:
                return another.scaled(factor)
        terms: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            for other_monomial, other_coefficient in other.terms.items():
                product = multiply_monomials(monomial, other_monomial)
                terms[product] = terms.get(product, 0) + coefficient * other_coefficient
        return Expression(
            {monomial: coefficient for monomial, coefficient in terms.items() if coefficient},
            self.is_plain and other.is_plain,
        )

    def to_the_power(self, exponent: int) -> Expression:
        """Returns the power for an exponent of 0 or more."""
        if len(self.terms) == 1:
            ((monomial, coefficient),) = self.terms.items()
            power = tuple((atom, e * exponent) for atom, e in monomial if exponent)
            return Expression({power: coefficient**exponent}, self.is_plain)
        result = integer(1)
        for _ in range(exponent):
            result = result * self
        return result

    def sorted_terms(self) -> list[tuple[Monomial, int]]:
        """Returns the terms, highest degree first and the constant last."""
        return sorted(self.terms.items(), key=lambda term: monomial_order(term[0]))

    def atoms(self) -> Iterator[Atom]:
        """Yields the atoms of the monomials (with repetitions), not those inside their operands."""
        for monomial in self.terms:
            for atom, _ in monomial:
                yield atom

    def variables(self) -> frozenset[str]:
        """Returns the names of the dimension variables anywhere in the expression."""
        names: set[str] = set()
        for atom in self.atoms():
            if isinstance(atom, Variable):
                names.add(atom.name)
            else:
                for operand in atom.operands:
                    names |= operand.variables()
        return frozenset(names)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __repr__(self) -> str:
        def power(atom: Atom, exponent: int) -> str:
            text = atom.name if isinstance(atom, Variable) else f"{atom.name}{atom.operands}"
            return text if exponent == 1 else f"{text}^{exponent}"

        return (
            " + ".join(
                "*".join([str(coefficient), *(power(atom, exponent) for atom, exponent in monomial)])
                for monomial, coefficient in self.sorted_terms()
            )
            or "0"
        )


ZERO: Final = Expression({}, is_plain=True)


def has_operations(expression: Expression) -> bool:
    """Returns whether quotients or maxima are factors of terms."""
    if expression.is_plain:
        return False
    for monomial in expression.terms:
        for atom, _ in monomial:
            if isinstance(atom, Operation):
                return True
    return False


def integer(value: int) -> Expression:
    """Returns the constant expression `value`."""
    return Expression({ONE: value}, is_plain=True) if value else ZERO


def from_atom(atom: Atom) -> Expression:
    """Returns the expression that consists of one atom."""
    return Expression({((atom, 1),): 1})


def variable(name: str) -> Expression:
    """Returns the expression that consists of one dimension variable."""
    return Expression({((Variable(name), 1),): 1}, is_plain=True)
