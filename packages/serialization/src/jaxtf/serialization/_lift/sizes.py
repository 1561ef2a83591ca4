"""Arithmetic of sizes, in Python: what a module computes of the sizes of its arguments.

A module with open sizes computes with them: `get_dimension_size`, scalars of integers, vectors of those as shapes. JAX
needs shapes while it traces, so such values are evaluated here and not by JAX: they are `Known`. An element is an
integer, a truth value, a symbolic dimension (`jaxtf.shapepoly`, when the lifted function is traced with symbolic
sizes), or a `Term`: an operation whose value is not decided until more of it is seen.

StableHLO's integer division rounds towards zero, that of dimension expressions towards minus infinity. Modules write
the latter as the former with a correction, `select(signs differ and remainder != 0, quotient - 1, quotient)`, and the
remainder likewise: where signs are not decided, this is read back as `floordiv` and `mod`.

Source: StableHLO specification, the operation of each name; Python's `//` and `%`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxtf.shapepoly import InconclusiveDimensionOperation, max_dim, min_dim

__all__ = ["ELEMENTS", "Known", "Term", "compared", "known_array", "known_integers", "known_truth", "settled"]


@dataclass(frozen=True)
class Term:
    """An operation on elements that is not decided.

    Attributes:
      name: Of the operation, without its dialect; of a comparison, its direction.
      operands: Elements.
    """

    name: str
    operands: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """An array of integers or truth values whose elements are known while JAX traces.

    Attributes:
      dtype: Of the module's value.
      elements: As objects: integers, truth values, symbolic dimensions, terms.
    """

    dtype: np.dtype[Any]
    elements: np.ndarray[Any, Any]

    @property
    def is_constant(self) -> bool:
        """Whether every element is a number."""
        return all(isinstance(element, int) for element in self.elements.flat)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return tuple(self.elements.shape)


def known_array(dtype: np.dtype[Any], elements: Any, shape: Sequence[int]) -> Known:
    """A `Known` of a flat sequence of elements, those that are integers as values of the dtype."""
    array = np.empty(len(elements), object)
    array[:] = [_wrapped(dtype, element) for element in elements]
    return Known(dtype, array.reshape(tuple(shape)))


def known_integers(known: Known) -> list[Any]:
    """The elements in row-major order: integers and symbolic dimensions.

    Raises:
      InconclusiveDimensionOperation: One is a term that cannot be decided.
    """
    return [settled(element) for element in known.elements.flat]


def known_truth(known: Known) -> bool:
    """Whether a condition holds.

    Raises:
      InconclusiveDimensionOperation: That cannot be decided.
    """
    return bool(settled(known.elements.item()))


def _wrapped(dtype: np.dtype[Any], element: Any) -> Any:
    """An integer as a value of the dtype, modulo 2**bits."""
    if dtype == np.bool_ or not isinstance(element, int | np.integer | np.bool_):
        return bool(element) if isinstance(element, int | np.integer | np.bool_) else element
    limits = np.iinfo(dtype)
    return (int(element) - int(limits.min)) % (1 << limits.bits) + int(limits.min)


# --- operations on elements ---


def settled(element: Any) -> Any:
    """An element as an integer, a truth value or a symbolic dimension.

    Raises:
      InconclusiveDimensionOperation: It depends on a sign that cannot be decided.
    """
    if not isinstance(element, Term):
        return element
    operands = tuple(map(settled, element.operands))
    if element.name in _COMPARISONS:
        decided = _decided(element.name, *operands)
    elif element.name in ("divide", "remainder"):
        decided = _divided(element.name, *operands)
    else:
        decided = ELEMENTS[element.name](*operands)
    if decided is None or isinstance(decided, Term):
        raise InconclusiveDimensionOperation(
            f"cannot decide the {element.name} of {' and '.join(map(str, operands))} for every size\n"
            "  remedy: add a constraint to the scope from which it follows"
        )
    return decided


def _is_open(*elements: Any) -> bool:
    return any(isinstance(element, Term) for element in elements)


def _is_number(*elements: Any) -> bool:
    return all(isinstance(element, int) for element in elements)


def _holds(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool | None:
    """Whether an order between two sizes holds; None if it is not decided."""
    try:
        return bool(compare(left, right))
    except InconclusiveDimensionOperation:
        return None


def _decided(direction: str, left: Any, right: Any) -> bool | None:
    """A comparison of sizes or truth values; None if it is not decided."""
    if direction in ("EQ", "NE"):
        if left == right:
            same: bool | None = True
        elif _is_number(left, right):
            same = False
        else:
            apart = _holds(operator.gt, left, right), _holds(operator.lt, left, right)
            same = False if True in apart else None
        return same if same is None or direction == "EQ" else not same
    return _holds(_COMPARISONS[direction], left, right)


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _compared(direction: str, left: Any, right: Any) -> Any:
    if not _is_open(left, right):
        decided = _decided(direction, left, right)
        if decided is not None:
            return decided
    for one, other in ((left, right), (right, left)):
        if isinstance(other, bool) and direction in ("EQ", "NE"):  # of a truth value
            return one if other == (direction == "EQ") else _negated(one)
    return Term(direction, (left, right))


def _negated(truth: Any) -> Any:
    opposite = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
    if isinstance(truth, bool):
        return not truth
    if isinstance(truth, Term) and truth.name in opposite:
        return Term(opposite[truth.name], truth.operands)
    return Term("not", (truth,))


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divided(name: str, left: Any, right: Any) -> Any:
    """The quotient or the remainder of StableHLO, where signs are decided; None where they are not."""
    if _is_number(left, right):
        if not right:
            return None
        quotient = _quotient(left, right)
        return quotient if name == "divide" else left - quotient * right
    if _holds(operator.ge, left, 0) and _holds(operator.ge, right, 1):
        return left // right if name == "divide" else left % right
    return None


def _division(name: str) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if _is_number(left, right):
            decided = _divided(name, left, right)
            return Term(name, (left, right)) if decided is None else decided
        return Term(name, (left, right))  # `floordiv` may be made of it

    return apply


def _sign(element: Any) -> Any:
    if _is_number(element):
        return (element > 0) - (element < 0)
    if _is_open(element):
        return Term("sign", (element,))
    if _holds(operator.ge, element, 1):
        return 1
    return -1 if _holds(operator.le, element, -1) else Term("sign", (element,))


def _and(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            return other if one else False
    return left if left == right else Term("and", (left, right))


def _or(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            return True if one else other
    return left if left == right else Term("or", (left, right))


def _select(condition: Any, on_true: Any, on_false: Any) -> Any:
    if isinstance(condition, bool):
        return on_true if condition else on_false
    if on_true == on_false:
        return on_true
    rounded = _rounded_down(condition, on_true, on_false)
    return Term("select", (condition, on_true, on_false)) if rounded is None else rounded


def _rounded_down(condition: Any, corrected: Any, plain: Any) -> Any:
    """`floordiv` or `mod` where the operation is written as StableHLO's with a correction; None if it is not."""
    if not isinstance(plain, Term) or plain.name not in ("divide", "remainder"):
        return None
    left, right = plain.operands
    if not (_is_number(right) and right > 0) and not (not _is_open(right) and _holds(operator.ge, right, 1)):
        return None
    expected = (
        (Term("add", (plain, -1)), Term("subtract", (plain, 1)))
        if plain.name == "divide"
        else (Term("add", (plain, right)),)
    )
    if corrected not in expected or _is_open(left):
        return None
    remainder = Term("remainder", (left, right))
    inexact = Term("NE", (remainder, 0))
    negative = [
        Term("LT", (remainder, 0)),
        *(Term("NE", signs) for signs in ((Term("sign", (left,)), 1), (1, Term("sign", (left,))))),
        Term("LT", (left, 0)),
    ]
    parts = condition.operands if isinstance(condition, Term) and condition.name == "and" else (condition,)
    is_negative = condition == inexact and bool(_holds(operator.lt, left, 0))  # signs are known to differ
    is_correction = (
        is_negative
        or condition == negative[0]
        or (len(parts) == 2 and inexact in parts and any(part in negative for part in parts))
    )
    if not is_correction:
        return None
    return left // right if plain.name == "divide" else left % right


def _arithmetic(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of integers and dimensions; of terms, a term."""
    return lambda *operands: Term(name, operands) if _is_open(*operands) else function(*operands)


def _truth_or(name: str, function: Callable[[Any, Any], Any], of_truth: Callable[[Any, Any], Any]) -> Any:
    """Of truth values `of_truth`, of integers `function`."""

    def apply(left: Any, right: Any) -> Any:
        if _is_truth(left) or _is_truth(right):
            return of_truth(left, right)
        return function(left, right) if _is_number(left, right) else Term(name, (left, right))

    return apply


def _is_truth(element: Any) -> bool:
    named = (*_COMPARISONS, "and", "or", "not")
    return isinstance(element, bool) or (isinstance(element, Term) and element.name in named)


ELEMENTS: Mapping[str, Callable[..., Any]] = {
    "abs": _arithmetic("abs", lambda x: abs(x) if _is_number(x) else max_dim(x, -x)),
    "add": _arithmetic("add", operator.add),
    "and": _truth_or("and", operator.and_, _and),
    "divide": _division("divide"),
    "maximum": _arithmetic("maximum", max_dim),
    "minimum": _arithmetic("minimum", min_dim),
    "multiply": _arithmetic("multiply", operator.mul),
    "negate": _arithmetic("negate", operator.neg),
    "not": _negated,
    "or": _truth_or("or", operator.or_, _or),
    "remainder": _division("remainder"),
    "select": _select,
    "sign": _sign,
    "subtract": _arithmetic("subtract", operator.sub),
}
"""Operations on elements, by the name of StableHLO's operation; comparisons are `compared`."""


def compared(direction: str, left: Any, right: Any) -> Any:
    """A comparison of elements."""
    return _compared(direction, left, right)
