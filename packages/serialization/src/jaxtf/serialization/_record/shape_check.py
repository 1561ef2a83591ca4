"""What shapes of arguments mean for an exported function: its dimension variables, and the shapes of its results.

In pure Python, on integers: no JAX, no module. The error of a check that fails has the text of the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    for name, aval, shape in zip(names, arguments, shapes, strict=True):
        if not (isinstance(shape, Sequence) and all(hasattr(size, "__index__") for size in shape)):
            kind = f"an array: pass its shape, {shape.shape}" if hasattr(shape, "shape") else f"{shape!r:.60}"
            raise ArgumentMismatch(f"a shape expected for {name}, a sequence of integers such as (3, 4); found {kind}")
        if len(shape) != aval.ndim:
            raise ArgumentMismatch(f"Rank mismatch for {name}: expected {aval.shape} and found {tuple(shape)}")
        for axis, (expected, found) in enumerate(zip(aval.shape, shape, strict=True)):
            if not is_symbolic_dim(expected) and expected != found:
                raise ArgumentMismatch(
                    f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected {aval.shape} and "
                    f"found {tuple(shape)}"
                )
    operations = IntegerOperations(shapes)
    try:
        values = solution.run(operations)
    except ShapeMismatch as error:
        raise ArgumentMismatch(str(error)) from error
    return Shapes(values, tuple(tuple(evaluate(size, values, operations) for size in aval.shape) for aval in results))
