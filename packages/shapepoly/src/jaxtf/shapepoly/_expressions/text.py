"""Dimension expressions as text that the parser reads back to the same expression.

`mod`, `max` and `min` are not atoms of an expression (see `_expressions.expression`); they are found again here, so
that users read what they wrote: `e - n*floordiv(e, n)` prints as `mod(e, n)` and
`b + max(0, a - b)` as `max(a, b)`, also where both are multiplied by variables. Highest degrees come
first, then names in alphabetical order, then the constant.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    MAXIMUM,
    ONE,
    ZERO,
    Atom,
    Expression,
    Monomial,
    Operation,
    Variable,
    divide_monomials,
    from_atom,
    monomial_order,
    multiply_monomials,
)

LARGEST_EXPONENT = 64
"""The largest exponent of a text; a larger power is written as a product."""

_LONGEST_CHAIN = 8


class _Piece(NamedTuple):
    """A summand of the text: its position, its integer factor, and the text of the rest of it."""

    position: Monomial
    factor: int
    text: str


def to_text(expression: Expression) -> str:
    """Returns the text of an expression.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> str(symbolic_shape("3 + b*a, mod(4*a, 6), min(b, a)"))
    '(a*b + 3, 2*mod(2*a, 3), min(a, b))'
    """
    pieces: list[_Piece] = []
    rest = expression
    for operation in _operations(expression):
        found = _as_mod(operation, rest) if operation.name == FLOORDIV else _as_max_or_min(operation, rest)
        if found is not None:
            piece, rest = found
            pieces.append(piece)
        for by in _multipliers(operation, rest):
            split = _as_multiple(operation, by, rest)
            if split is not None:
                piece, rest = split
                pieces.append(piece)
    for monomial, coefficient in rest.terms.items():
        pieces.append(_Piece(monomial, coefficient, "*".join(_power(*power) for power in monomial)))
    pieces.sort(key=lambda piece: monomial_order(piece.position))
    return _sum(pieces)


def _sum(pieces: list[_Piece]) -> str:
    """Joins summands with their signs."""
    text = ""
    for piece in pieces:
        size = abs(piece.factor)
        term = piece.text if size == 1 and piece.text else f"{size}*{piece.text}" if piece.text else str(size)
        if not text:
            text = term if piece.factor > 0 else f"-{term}"
        else:
            text += f" + {term}" if piece.factor > 0 else f" - {term}"
    return text or "0"


def _power(atom: Atom, exponent: int) -> str:
    """Returns the text of a power of an atom."""
    text = atom.name if isinstance(atom, Variable) else _call(atom)
    times, rest = divmod(exponent, LARGEST_EXPONENT)
    powers = [f"{text}^{LARGEST_EXPONENT}"] * times + ([text] if rest == 1 else [f"{text}^{rest}"] if rest else [])
    return "*".join(powers)


def _call(operation: Operation) -> str:
    """Returns the text of an operation as a call."""
    if operation.name == MAXIMUM:
        return _nested("max", [*operation.operands, ZERO])
    dividend, divisor = operation.operands
    return f"floordiv({to_text(dividend)}, {to_text(divisor)})"


def _operations(expression: Expression) -> list[Operation]:
    """Returns the distinct operations among the atoms, the largest first: they take the smaller ones along."""
    found: dict[Operation, None] = {}
    for monomial, _ in expression.sorted_terms():
        for atom, _ in monomial:
            if isinstance(atom, Operation):
                found[atom] = None
    return sorted(found, key=lambda operation: -operation.size)


def _as_mod(operation: Operation, expression: Expression) -> tuple[_Piece, Expression] | None:
    """Splits `m * mod(e, n)` off an expression that contains `m*e - m*n*floordiv(e, n)`."""
    dividend, divisor = operation.operands
    product = divisor * from_atom(operation)
    monomial, coefficient = product.sorted_terms()[0]
    multiple, remainder = divmod(-expression.terms.get(monomial, 0), coefficient)
    remaining = expression.plus(dividend - product, -multiple)
    shorter = len(remaining.terms) + 1 < len(expression.terms)
    if not multiple or remainder or not shorter or any(m in remaining.terms for m in product.terms):
        return None
    text = f"mod({to_text(dividend)}, {to_text(divisor)})"
    return _Piece(((operation, 1),), multiple, text), remaining


def _as_max_or_min(operation: Operation, expression: Expression) -> tuple[_Piece, Expression] | None:
    """Splits `c * max(x, y, ...)` or `c * min(x, y, ...)` off an expression that contains `max(0, x - y, ...)`."""
    monomial = ((operation, 1),)
    coefficient = expression.terms.get(monomial, 0)
    if not coefficient:
        return None
    shared = {
        m: -coefficient * c
        for m, c in _usual_terms(operation.operands).items()
        if expression.terms.get(m) == -coefficient * c
    }
    if not shared or (coefficient < 0 and set(shared) == {ONE}):
        return None
    size = abs(coefficient)
    kept = Expression({m: c // size for m, c in shared.items()})
    others = (kept.plus(operand, 1 if coefficient > 0 else -1) for operand in operation.operands)
    text = _nested("max" if coefficient > 0 else "min", [*others, kept])
    remaining = expression - Expression({**shared, monomial: coefficient})
    return _Piece(monomial, size, text), remaining


def _multipliers(operation: Operation, expression: Expression) -> list[Monomial]:
    """Returns what an operation is multiplied by in the terms of an expression, integers aside."""
    found = []
    for monomial, _ in expression.sorted_terms():
        by = divide_monomials(monomial, ((operation, 1),))
        if by and all(atom != operation for atom, _ in by):
            found.append(by)
    return found


def _as_multiple(operation: Operation, by: Monomial, expression: Expression) -> tuple[_Piece, Expression] | None:
    """Splits `c * m * mod(e, n)`, or a multiple of a minimum or maximum, off an expression that contains its terms."""
    multiples = {m: c for m, c in expression.terms.items() if divide_monomials(m, by) is not None}
    divided = Expression({q: c for m, c in multiples.items() if (q := divide_monomials(m, by)) is not None})
    found = _as_mod(operation, divided) if operation.name == FLOORDIV else _as_max_or_min(operation, divided)
    if found is None:
        return None
    piece, remaining = found
    left = Expression({multiply_monomials(m, by): c for m, c in remaining.terms.items()})
    rest = expression - Expression(multiples) + left
    text = "*".join([*(_power(*power) for power in by), piece.text])
    return _Piece(multiply_monomials(piece.position, by), piece.factor, text), rest


def _usual_terms(operands: Sequence[Expression]) -> dict[Monomial, int]:
    """Returns the terms that most of the operands and 0 have; of two coefficients as frequent, the first operand's."""
    usual = {}
    for monomial in {m: None for operand in operands for m in operand.terms}:
        coefficients = [*(operand.terms.get(monomial, 0) for operand in operands), 0]
        most = max(coefficients, key=lambda c: (coefficients.count(c), c != 0))
        if most:
            usual[monomial] = most
    return usual


def _nested(name: str, operands: Sequence[Expression]) -> str:
    """Returns the text of a maximum or minimum of many: calls with two operands, which every reader knows."""
    ordered = sorted((operand.as_integer is not None, to_text(operand)) for operand in operands)
    return _balanced(name, [text for _, text in ordered])


def _balanced(name: str, texts: Sequence[str]) -> str:
    """Returns nested calls: for a few operands one in the other, for many in halves, so that nesting stays low."""
    if len(texts) == 1:
        return texts[0]
    middle = 1 if len(texts) <= _LONGEST_CHAIN else len(texts) // 2
    return f"{name}({_balanced(name, texts[:middle])}, {_balanced(name, texts[middle:])})"
