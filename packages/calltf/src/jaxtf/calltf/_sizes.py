"""Symbolic sizes of a call: where to look at it, and what is found there, as formulas of the sizes.

A call with symbolic shapes is looked at with concrete ones, at a number of *samples*: values of its distinct
symbolic sizes that the constraints allow, small and large ones, and larger than any number that the TensorFlow function
itself mentions, because a threshold (`x[:100]`) is such a number. `Formula.fitted` finds the formula that a
number follows at every sample, with more samples than it has unknowns, or none.

Knows integers and symbolic sizes, by duck typing: jaxtf's or JAX's; nothing of arrays or TensorFlow.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxtf.calltf._jax import constraints_hold, dimension_variables, evaluated_dimension, is_symbolic

_MORE_THAN_UNKNOWNS = 5
_TRIES = 2000
_DIVISORS = (1, 2, 3, 4, 8)
_SMALL = (2, 3, 4, 5, 7, 8, 11)


@dataclass(frozen=True)
class Sample:
    """One choice of sizes.

    Attributes:
      variables: Of each dimension variable.
      sizes: Of each of the call's `symbolic_sizes`.
    """

    variables: Mapping[str, int]
    sizes: tuple[int, ...]

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """A symbolic shape, here.

        Raises:
          KeyError: A variable that the call does not have.
        """
        return tuple(evaluated_dimension(size, self.variables) if is_symbolic(size) else int(size) for size in shape)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in sorted(self.variables.items()))


def symbolic_sizes(shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """The distinct symbolic sizes in the shapes without those that are linear in others, simple ones first."""
    found = dict.fromkeys(size for shape in shapes for size in shape if is_symbolic(size))
    names = sorted(set[str]().union(*map(dimension_variables, found)))
    places = list(itertools.islice(_assignments(names, 0), 3 * len(found) + 3)) if found else []
    kept: list[Any] = []
    columns = [[1] * len(places)]
    for size in sorted(found, key=lambda size: len(str(size))):
        column = [evaluated_dimension(size, variables) for variables in places]
        if np.linalg.matrix_rank([*columns, column]) > len(columns):
            kept.append(size)
            columns.append(column)
    return tuple(kept)


def samples(sizes: Sequence[Any], mentioned: int) -> list[Sample]:
    """Where to look at a call with these symbolic sizes; none where the constraints allow too few.

    Args:
      sizes: The `symbolic_sizes` of the call.
      mentioned: A number above the thresholds that the function may have.
    """
    wanted = len(_monomials(len(sizes))) + _MORE_THAN_UNKNOWNS
    found: dict[tuple[int, ...], Sample] = {}
    names = sorted(set[str]().union(*map(dimension_variables, sizes)))
    for variables in itertools.islice(_assignments(names, mentioned), _TRIES):
        if constraints_hold(sizes, variables):
            values = tuple(evaluated_dimension(size, variables) for size in sizes)
            if min(values) > 1:  # a size of 1 is broadcast, and is compiled in a form of its own
                found.setdefault(values, Sample(variables, values))
        if len(found) == wanted:
            break
    return list(found.values()) if len(found) == wanted else []


def ones(sizes: Sequence[Any]) -> Sample | None:
    """The sample of variables that are all 1, whose program may have a form of its own; None if it is not allowed."""
    variables = dict.fromkeys(set[str]().union(*map(dimension_variables, sizes)), 1)
    if not constraints_hold(sizes, variables):
        return None
    return Sample(variables, tuple(evaluated_dimension(size, variables) for size in sizes))


def _assignments(names: Sequence[str], mentioned: int) -> Iterator[dict[str, int]]:
    """Values of the variables: different from each other and from call to call, each twice beyond what is mentioned."""
    draw = random.Random(0)
    for index, name in enumerate(names):
        others = {other: _SMALL[(index + i) % len(_SMALL)] for i, other in enumerate(names) if other != name}
        yield others | {name: 2 * mentioned + 21}
        yield others | {name: 4 * mentioned + 47}
    for start in range(len(_SMALL)):
        yield {name: _SMALL[(start + 2 * i) % len(_SMALL)] for i, name in enumerate(names)}
    top = 12
    while True:  # wider and wider, for constraints; a multiple, for divisibility
        top = min(top + 1, 512)
        factor = draw.choice((1, 1, 2, 3, 4, 8, 16))
        values = [factor * draw.randint(1, top) for _ in names]
        order = draw.choice((sorted(values), sorted(values, reverse=True), values))
        yield dict(zip(names, order, strict=True))


@dataclass(frozen=True)
class Formula:
    """(sum of coefficients times products of sizes) // divisor.

    Attributes:
      terms: Coefficient and the indices of the sizes multiplied.
      divisor: Of the sum.
    """

    terms: tuple[tuple[int, tuple[int, ...]], ...]
    divisor: int = 1

    @classmethod
    def fitted(cls, values: Sequence[int], samples: Sequence[Sample]) -> Formula | None:
        """The formula with these values at the samples; None if there is none."""
        points = [sample.sizes for sample in samples]
        for degree in (0, 1, 2):
            monomials = _monomials(len(points[0]), degree)
            if len(monomials) + 2 > len(points) and degree:
                return None
            matrix = np.array([[np.prod([point[i] for i in m], initial=1) for m in monomials] for point in points])
            solution = np.linalg.lstsq(matrix.astype(np.float64), np.array(values, np.float64), rcond=None)[0]
            for divisor in _DIVISORS if degree == 1 else (1,):
                rounded = [int(c) for c in np.rint(solution * divisor)]
                terms = tuple((c, m) for c, m in zip(rounded, monomials, strict=True) if c and m)
                # Of a sum that is divided the least-squares line does not tell the constant.
                for constant in rounded[:1] if divisor == 1 else range(-divisor, 2 * divisor):
                    formula = cls((((constant, ()),) if constant else ()) + terms, divisor)
                    if all(formula.of(p) == value for p, value in zip(points, values, strict=True)):
                        return formula
        return None

    def of(self, sizes: Sequence[Any]) -> Any:
        """Its value for sizes that are integers, or symbolic."""
        total: Any = 0
        for coefficient, indices in self.terms:
            product: Any = coefficient
            for index in indices:
                product = sizes[index] * product
            total = product + total
        return total // self.divisor if self.divisor > 1 else total

    def computed(
        self, constant: Callable[[int], Any], binary: Mapping[str, Callable[[Any, Any], Any]], sizes: Any
    ) -> Any:
        """Its value by operations of somebody else's.

        Args:
          constant: Makes a value of an integer.
          binary: The operations `add`, `multiply` and `divide`.
          sizes: The values of the sizes.
        """
        total = None
        for coefficient, indices in self.terms:
            product = constant(coefficient) if coefficient != 1 or not indices else None
            for index in indices:
                product = sizes[index] if product is None else binary["multiply"](product, sizes[index])
            total = product if total is None else binary["add"](total, product)
        total = constant(0) if total is None else total
        return total if self.divisor == 1 else binary["divide"](total, constant(self.divisor))


def _monomials(count: int, degree: int = 2) -> list[tuple[int, ...]]:
    """Products of up to `degree` of `count` sizes, the empty one first."""
    return [m for d in range(degree + 1) for m in itertools.combinations_with_replacement(range(count), d)]
