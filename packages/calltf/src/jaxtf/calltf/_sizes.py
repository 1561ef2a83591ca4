"""Samples of the symbolic sizes of a call, and which size a number of a program compiled at them is.

A program is compiled for constant sizes. Each number in it that differs between samples is one of the sizes that the
operations of the trace have, which are known exactly (`_interpreter`); `Numbers.find` looks it up. The samples are
chosen so that two sizes that may differ do differ at one of them, and with them what is constant from what is not:
thresholds in the sizes (`min(b, 10)`) have samples on both sides.

Knows integers and symbolic sizes, by duck typing: jaxtf's or JAX's; nothing of arrays or TensorFlow.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxtf.calltf._jax import dimension_variables, evaluated_dimension, is_symbolic
from jaxtf.calltf._scope import CallScope
from jaxtf.calltf._symbolic_values import same

_TRIES = 2000
_CANDIDATES = 120
_FIRST = (23, 29, 31, 37, 41, 43, 47)
_SMALL = (2, 3, 5, 7, 8, 11, 1, 4)


@dataclass(frozen=True)
class Sample:
    """One choice of the dimension variables."""

    variables: Mapping[str, int]

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """A symbolic shape, here.

        Raises:
          KeyError: A variable that the call does not have.
        """
        return tuple(evaluated_dimension(size, self.variables) if is_symbolic(size) else int(size) for size in shape)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in sorted(self.variables.items()))


class Numbers:
    """The sizes that numbers of programs compiled at samples may be.

    Args:
      samples: Where the programs are compiled.
      expressions: Sizes that differ at one of the samples, or are equal for all sizes.
    """

    def __init__(self, samples: Sequence[Sample], expressions: Iterable[Any]):
        self._found: dict[tuple[int, ...], Any] = {}
        for size in sorted(expressions, key=lambda size: len(str(size))):
            self._found.setdefault(tuple(sample.shape((size,))[0] for sample in samples), size)

    def find(self, column: Sequence[int]) -> Any:
        """The size with these values at the samples, or the number; None if it is none that is known."""
        return column[0] if len(set(column)) == 1 else self._found.get(tuple(column))


def symbolic_sizes(shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """The distinct symbolic sizes in the shapes, simple ones first."""
    found = dict.fromkeys(size for shape in shapes for size in shape if is_symbolic(size))
    return tuple(sorted(found, key=lambda size: len(str(size))))


def first_sample(scope: CallScope) -> Sample | None:
    """Sizes that the scope allows, larger than 1 where possible; None if none are found."""
    return next(_allowed(scope, scope.numbers), None)


def samples(scope: CallScope, expressions: Sequence[Any]) -> tuple[list[Sample], tuple[Any, Any] | None]:
    """Samples at which sizes differ that may differ, the first one among them.

    Returns:
      The samples, and two sizes for which there are none, if there are such.
    """
    numbers = {int(text) for size in expressions for text in re.findall(r"\d+", str(size))}
    candidates, rows = [], []
    for sample in itertools.islice(_allowed(scope, sorted(numbers.union(scope.numbers))), _CANDIDATES):
        # JAX computes its sizes in 32 bits.
        with contextlib.suppress(OverflowError, FloatingPointError), np.errstate(over="raise"):
            row = sample.shape(expressions)
            if max(map(abs, row), default=0) < 1 << 31:
                rows.append(row)
                candidates.append(sample)
    columns = dict(zip(expressions, zip(*rows, strict=True), strict=True))
    first: dict[Any, Any] = {}
    for size, column in columns.items():
        other = column[0] if len(set(column)) == 1 else first.setdefault(column, size)
        if other is not size and not same(other, size):
            return candidates, (other, size)
    distinct = {column for column in columns.values() if len(set(column)) > 1}
    chosen = [0]
    while _separated(distinct, chosen) < len(distinct):
        rest = [place for place in range(len(candidates)) if place not in chosen]
        smallest = [min((column[place] for column in distinct), default=2) > 1 for place in range(len(candidates))]
        chosen.append(max(rest, key=lambda place: (_separated(distinct, [*chosen, place]), smallest[place], -place)))
    if len(chosen) == 1 and len(candidates) > 1:
        chosen.append(1)
    return [candidates[place] for place in chosen], None


def _separated(columns: Iterable[tuple[int, ...]], places: Sequence[int]) -> int:
    """How many of the columns differ from each other, and from a number, at the places."""
    parts = {tuple(column[place] for place in places) for column in columns}
    return sum(len(set(part)) > 1 for part in parts)


def _allowed(scope: CallScope, numbers: Sequence[int]) -> Iterator[Sample]:
    """What the scope allows, for values of the variables that others follow from."""
    free = sorted(set[str]().union(*map(dimension_variables, filter(is_symbolic, scope.variables.values()))))
    met = set()
    for chosen in itertools.islice(_assignments(free, numbers), _TRIES):
        values = Sample(chosen).shape(tuple(scope.variables.values()))
        variables = dict(zip(scope.variables, values, strict=True))
        if values not in met and scope.allows(variables):
            met.add(values)
            yield Sample(variables)


def _assignments(names: Sequence[str], numbers: Sequence[int]) -> Iterator[dict[str, int]]:
    """Values of the variables: different ones, on both sides of the numbers, of products and quotients of them."""
    draw = random.Random(0)
    for start in range(2):
        yield {name: _FIRST[(start + 2 * i) % len(_FIRST)] for i, name in enumerate(names)}
    near = set(numbers) | {x * y for x in numbers for y in numbers if x * y < 1 << 26}
    near |= {x // y for x in numbers for y in numbers if y}
    pool = sorted({value + change for value in near for change in (-1, 0, 1) if value + change > 0}) or [2]
    for values in (_SMALL, pool[-40:], [2 * value + 3 for value in pool[-40:]]):
        for start in range(len(values)):
            yield {name: values[(start + 3 * i) % len(values)] for i, name in enumerate(names)}
            yield {name: draw.choice(values) for name in names}
    top = 12
    while True:  # wider and wider, for constraints; a multiple, for divisibility
        top = min(top + 1, 512)
        factor = draw.choice((1, 1, 2, 3, 4, 8, 16))
        drawn = [factor * draw.randint(1, top) for _ in names]
        order = draw.choice((sorted(drawn), sorted(drawn, reverse=True), drawn))
        yield dict(zip(names, order, strict=True))
