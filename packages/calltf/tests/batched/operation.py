"""An operation of TensorFlow as drawn: its attributes, its operands, and which of these have a batch axis.

Makers, in the modules beside this one, are registered by `of`. They draw every attribute, axes that are counted from
the end among them, and constants or operands of the batch where TensorFlow takes either.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import reject
from hypothesis import strategies as st

__all__ = ["FLOATS", "MAKERS", "NUMBERS", "Drawn", "Operand", "Operation", "of", "operations"]

FLOATS = ("float32", "float32", "float64", "float16")
NUMBERS = (*FLOATS, "int32", "int64")

Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """One operand.

    Attributes:
      values: The array; with a batch axis in front where `batched`.
      batched: Whether each element of the batch has its own.
      constant: Whether it is a constant of the function, as an axis is.
    """

    values: np.ndarray
    batched: bool = False
    constant: bool = False


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation, as a function of its arguments.

    Attributes:
      name: Its type.
      operands: In the order of `tf.raw_ops`; a list where it takes several tensors in one.
      attributes: By name.
      compared: The indices of the results that are defined; all of them if empty.
    """

    name: str
    operands: Sequence[Operand | list[Operand]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    compared: tuple[int, ...] = ()

    def arguments(self) -> list[Operand]:
        """The operands that are no constants, in order."""
        flat = [x for operand in self.operands for x in (operand if isinstance(operand, list) else [operand])]
        return [x for x in flat if not x.constant]

    def __call__(self, *arguments: Any) -> list[tf.Tensor]:
        """The results for arguments, of one element of the batch."""
        rest = iter(arguments)

        def taken(operand: Operand | list[Operand]) -> Any:
            if isinstance(operand, list):
                return [taken(x) for x in operand]
            return tf.constant(operand.values) if operand.constant else next(rest)

        function = getattr(tf.raw_ops, self.name)
        names = list(inspect.signature(function).parameters)
        values = {name: taken(operand) for name, operand in zip(names, self.operands, strict=False)}
        results = tf.nest.flatten(function(**values, **self.attributes))
        return [results[i] for i in self.compared] if self.compared else results


class Drawn:
    """Draws the parts of an operation.

    Args:
      draw: Of hypothesis.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._random = np.random.default_rng(draw(st.integers(0, 999)))
        self.batch = draw(st.integers(1, 3))

    def one_of(self, *values: Any) -> Any:
        """One of these."""
        return self._draw(st.sampled_from(values))

    def some_of(self, values: Sequence[Any]) -> list[Any]:
        """Some of these, in order."""
        return [value for value in values if self.chance()]

    def order(self, values: Sequence[Any]) -> list[Any]:
        """These in any order."""
        return list(self._draw(st.permutations(values)))

    def size(self, low: int = 1, high: int = 3) -> int:
        """A number from one to another."""
        return self._draw(st.integers(low, high))

    def chance(self, one_in: int = 2) -> bool:
        """Whether something is, once in so many times."""
        return self.size(1, one_in) == one_in

    def shape(self, lowest: int = 0, highest: int = 3, low: int = 1, high: int = 3) -> Shape:
        """Sizes of an array whose rank is between the first two."""
        return tuple(self.size(low, high) for _ in range(self.size(lowest, highest)))

    def broadcast(self, count: int) -> list[Shape]:
        """Shapes that broadcast to one of them."""
        whole = self.shape()
        others = [
            tuple(1 if self.chance(4) else n for n in whole)[self.size(0, len(whole)) :] for _ in range(count - 1)
        ]
        return self.order([whole, *others])

    def axis(self, shape: Shape) -> int:
        """An axis, counted from either end."""
        return self.size(-len(shape), len(shape) - 1)

    def axes(self, shape: Shape) -> list[int]:
        """Some of the axes, each counted from either end."""
        return [axis - len(shape) if self.chance() else axis for axis in self.some_of(range(len(shape)))]

    def numbers(self, shape: Shape, dtype: str = "float32", low: float = -3, high: float = 3) -> np.ndarray:
        """An array of numbers between two; half of the arrays have integers alone, so that there are zeros and ties."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self._random.integers(0, 2, shape).astype(bool)
        if kind == "c":
            return (self._random.uniform(low, high, shape) + 1j * self._random.uniform(low, high, shape)).astype(dtype)
        if kind in "iu" or self.chance():
            least = max(low, 0) if kind == "u" else low
            return self._random.integers(int(np.ceil(least)), int(high), shape, endpoint=True).astype(dtype)
        return self._random.uniform(low, high, shape).astype(dtype)

    def operand(self, shape: Shape, dtype: str = "float32", low: float = -3, high: float = 3) -> Operand:
        """An operand of such numbers."""
        return self.made(lambda: self.numbers(shape, dtype, low, high))

    def made(self, array: Callable[[], np.ndarray]) -> Operand:
        """An operand, of the batch or not, of an array that is made for each element."""
        is_batched = not self.chance(4)
        return Operand(np.stack([array() for _ in range(self.batch)]) if is_batched else array(), is_batched)

    def fixed(self, value: Any, dtype: str = "int32") -> Operand:
        """A constant."""
        return Operand(np.asarray(value, dtype), constant=True)

    def index(self, value: Any) -> Operand:
        """A constant of integers of 32 or 64 bits."""
        return self.fixed(value, self.one_of("int32", "int32", "int64"))


Maker = Callable[[str, Drawn], Operation]

# Makers by the type of operation; one that is drawn is of any of them.
MAKERS: dict[str, list[Maker]] = {}


def of(*names: str) -> Callable[[Maker], Maker]:
    """Registers a maker for types of operations."""

    def registered(maker: Maker) -> Maker:
        for name in names:
            MAKERS.setdefault(name, []).append(maker)
        return maker

    return registered


@st.composite
def operations(draw: Draw, name: str) -> Operation:
    """Operations of one type, of which an operand has the batch axis."""
    operation = draw(st.sampled_from(MAKERS[name]))(name, Drawn(draw))
    if not any(x.batched for x in operation.arguments()):
        reject()
    return operation
