"""What shapes of arguments mean for an exported function: its dimension variables, and the shapes of its results.

In pure Python, on integers: no JAX, no module. The error of a check that fails has the text of the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from jaxtf.serialization._errors import ArgumentMismatch
from jaxtf.serialization._record.avals import Aval
from jaxtf.shapepoly import IntegerOperations, ShapeMismatch, Solution, evaluate, is_symbolic_dim

__all__ = ["Shapes", "check_shapes"]


@dataclass(frozen=True)
class Shapes:
    """The sizes of one call.

    Attributes:
      variables: The value of each dimension variable.
      results: The shape of each flat result.
    """

    variables: dict[str, int]
    results: tuple[tuple[int, ...], ...]


def check_shapes(
    names: Sequence[str],
    arguments: Sequence[Aval],
    results: Sequence[Aval],
    solution: Solution,
    shapes: Sequence[Sequence[int]],
) -> Shapes:
    """Solves and checks the shapes of flat arguments; see `Exported.check_shapes`."""
    if len(shapes) != len(arguments):
        raise ArgumentMismatch(
            f"{len(arguments)} shapes expected, one for each of {', '.join(names) or 'no arguments'}; "
            f"found {len(shapes)}"
        )
    found_shapes: list[tuple[int, ...]] = []
    for name, aval, shape in zip(names, arguments, shapes, strict=True):
        if (sizes := _integers(shape)) is None:
            kind = f"an array: pass its shape, {shape.shape}" if hasattr(shape, "shape") else f"{shape!r:.60}"
            raise ArgumentMismatch(f"a shape expected for {name}, a sequence of integers such as (3, 4); found {kind}")
        found_shapes.append(sizes)
        if len(sizes) != aval.ndim:
            raise ArgumentMismatch(f"Rank mismatch for {name}: expected {aval.shape} and found {sizes}")
        for axis, (expected, found) in enumerate(zip(aval.shape, sizes, strict=True)):
            if not is_symbolic_dim(expected) and expected != found:
                raise ArgumentMismatch(
                    f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected {aval.shape} and "
                    f"found {sizes}"
                )
    operations = IntegerOperations(found_shapes)
    try:
        values = solution.run(operations)
    except ShapeMismatch as error:
        raise ArgumentMismatch(str(error)) from error
    return Shapes(values, tuple(tuple(evaluate(size, values, operations) for size in aval.shape) for aval in results))


def _integers(shape: object) -> tuple[int, ...] | None:
    """A shape in Python's integers; None where it is not a sequence of integers."""
    if not isinstance(shape, Sequence):
        return None
    try:
        return tuple(map(index, shape))
    except TypeError:
        return None
