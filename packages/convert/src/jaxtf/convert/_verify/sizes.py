"""Sizes to verify a function at: several values of each dimension variable, as its constraints allow."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._values.sizes import result_shapes
from jaxtf.serialization import Exported
from jaxtf.shapepoly import IntegerOperations, ShapeMismatch, evaluate

__all__ = ["admissible_sizes", "argument_shapes", "given_sizes"]

_VALUES = (1, 2, 3, 5, 8, 4, 6, 7, 9, 10, 12, 16)
_TRIES = 5_000


def argument_shapes(exported: Exported, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shape of each flat argument where the dimension variables have these values."""
    operations = IntegerOperations()
    return [tuple(evaluate(size, sizes, operations) for size in aval.shape) for aval in exported.in_avals]


def admissible_sizes(exported: Exported, count: int) -> list[dict[str, int]]:
    """Up to `count` different values of the dimension variables that the function takes; one, empty, if it has none.

    The first has the smallest values; the others differ from those before in as many variables as possible.

    Raises:
      ConversionOptionError: None of those tried is allowed.
    """
    names = tuple(exported.solution.variables)
    if not names:
        return [{}]
    allowed = [sizes for sizes in _candidates(names) if _is_allowed(exported, sizes)]
    if not allowed:
        raise ConversionOptionError(
            f"verify found no values of {', '.join(names)} that the constraints of '{exported.fun_name}' allow, among "
            f"those up to {max(_VALUES)}\n  remedy: give them: sizes=[{{{names[0]!r}: ...}}], --size {names[0]}=..."
        )
    chosen = [allowed[0]]
    while len(chosen) < min(count, len(allowed)):
        rest = [sizes for sizes in allowed if sizes not in chosen]
        chosen.append(max(rest, key=lambda sizes: _differences(sizes, chosen)))
    return chosen


def given_sizes(exported: Exported, sizes: Any) -> list[dict[str, int]]:
    """The values of the dimension variables that a caller gave: for each run all of them, by name.

    Raises:
      ConversionOptionError: Not a list of dictionaries, or an empty one, or one has other names than the variables, or
        values that are not integers.
    """
    names = tuple(exported.solution.variables)
    known = f"'{exported.fun_name}' has {_listed(names)}"
    if not isinstance(sizes, list | tuple) or not sizes or not all(isinstance(case, Mapping) for case in sizes):
        example = dict.fromkeys(names, 2)
        raise ConversionOptionError(
            f"sizes must be a list of dicts, one for each run. Got: {sizes!r:.60}; {known}\n  remedy: sizes=[{example}]"
        )
    for case in sizes:
        if unknown := [name for name in case if name not in names]:
            raise ConversionOptionError(f"there is no dimension variable {unknown[0]!r}: {known}")
        if missing := [name for name in names if name not in case]:
            raise ConversionOptionError(f"the sizes {dict(case)} do not include {_listed(missing)}: {known}")
        if wrong := [name for name in names if not isinstance(case[name], int | np.integer)]:
            raise ConversionOptionError(f"the size of {wrong[0]!r} must be an integer. Got: {case[wrong[0]]!r:.60}")
    return [{name: int(case[name]) for name in names} for case in sizes]


def _listed(names: Sequence[str]) -> str:
    """Dimension variables, as part of a sentence."""
    if not names:
        return "no dimension variables"
    return f"the dimension variable{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _candidates(names: Sequence[str]) -> Iterator[dict[str, int]]:
    if len(_VALUES) ** len(names) <= _TRIES:
        for values in sorted(itertools.product(_VALUES, repeat=len(names)), key=sum):
            yield dict(zip(names, values, strict=True))
        return
    random_values = random.Random(0)
    for _ in range(_TRIES):
        yield {name: random_values.choice(_VALUES) for name in names}


def _is_allowed(exported: Exported, sizes: Mapping[str, int]) -> bool:
    shapes = argument_shapes(exported, sizes)
    if any(size < 0 for shape in shapes for size in shape):
        return False
    try:
        result_shapes(exported, shapes)
    except ShapeMismatch:
        return False
    return True


def _differences(sizes: Mapping[str, int], chosen: Sequence[Mapping[str, int]]) -> tuple[int, int]:
    """In how many variables the values are new; small ones before large ones."""
    new = sum(all(other[name] != value for other in chosen) for name, value in sizes.items())
    return new, -sum(sizes.values())
