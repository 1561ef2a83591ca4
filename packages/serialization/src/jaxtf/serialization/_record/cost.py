"""What a call costs, as the compiler says, and how that grows with a size; no JAX.

Growth is the exponent p of a quantity that grows as size**p between two sizes: 1 where it is proportional, 0 where it
does not depend on the size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

__all__ = ["QUANTITIES", "Cost", "growth"]


@dataclass(frozen=True)
class Cost:
    """What one call costs at given sizes; None where the compiler does not report it.

    Attributes:
      sizes: The value of each dimension variable.
      platform: What it was compiled for.
      flops: Floating-point operations, as XLA counts them after its optimizations; loops count once.
      bytes_accessed: Bytes read and written by its operations; those that are fused count once.
      temporary_bytes: The most memory that intermediate values take at a time.
      argument_bytes: Memory of the arguments.
      result_bytes: Memory of the results.
      code_bytes: Of the machine code; 0 where the platform does not count it.
    """

    sizes: Mapping[str, int]
    platform: str
    flops: int | None
    bytes_accessed: int | None
    temporary_bytes: int | None
    argument_bytes: int | None
    result_bytes: int | None
    code_bytes: int | None


QUANTITIES = tuple(field.name for field in fields(Cost) if field.name not in ("sizes", "platform"))
"""What is measured."""


def growth(costs: Sequence[Cost]) -> dict[str, dict[str, float | None]]:
    """For each dimension variable that has several values, how each quantity grows with it.

    Between the two greatest values of the variable, all other sizes being those of the first cost; None where a
    quantity is zero or not known.

    >>> at = lambda b: Cost({"b": b}, "cpu", 10 * b, 5, None, 0, 4 * b**2, 0)
    >>> growth([at(2), at(4), at(8)])["b"]["flops"], growth([at(2), at(8)])["b"]["result_bytes"]
    (1.0, 2.0)
    """
    found = {}
    for name in costs[0].sizes if costs else ():
        alike = [cost for cost in costs if _others(cost, name) == _others(costs[0], name)]
        by_size = {cost.sizes[name]: cost for cost in alike}
        if len(by_size) > 1:
            less, more = (by_size[size] for size in sorted(by_size)[-2:])
            found[name] = {quantity: _exponent(quantity, less, more, name) for quantity in QUANTITIES}
    return found


def _others(cost: Cost, name: str) -> dict[str, int]:
    return {other: size for other, size in cost.sizes.items() if other != name}


def _exponent(quantity: str, less: Cost, more: Cost, name: str) -> float | None:
    before, after = getattr(less, quantity), getattr(more, quantity)
    if not before or not after:
        return None
    return round(math.log(after / before) / math.log(more.sizes[name] / less.sizes[name]), 2)
