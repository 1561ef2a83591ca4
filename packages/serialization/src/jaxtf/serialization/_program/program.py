"""A StableHLO module as plain data: what `read_program` gives, and what graph mode and `lift` translate.

Nothing here refers to MLIR, JAX or TensorFlow. Names of operations, attributes and fields are those of the StableHLO
specification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Block",
    "Function",
    "Operation",
    "Program",
    "TensorType",
    "TokenType",
    "TupleType",
    "Value",
    "operations_of",
    "read_in",
    "uses_in",
]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of an array.

    Attributes:
      dtype: Of its elements: a NumPy dtype, or what whoever had the module read has for it.
      shape: Its sizes; None for one that is known only at run time.
      bounds: Of sizes that depend on values, the largest that each can be; None for any other size. Empty if there are
        none.
    """

    dtype: Any
    shape: tuple[int | None, ...]
    bounds: tuple[int | None, ...] = field(default=(), compare=False)

    @property
    def rank(self) -> int:
        """How many sizes there are."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return None not in self.shape


@dataclass(frozen=True, slots=True)
class TokenType:
    """The type of a token, which orders effects and holds nothing."""


@dataclass(frozen=True, slots=True)
class TupleType:
    """The type of a tuple; at run time a tuple of the tensors."""

    types: tuple[TensorType | TokenType | TupleType, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A result of an operation or an argument of a block; compared by identity."""

    type: TensorType | TokenType | TupleType


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation.

    Attributes:
      name: With its dialect, such as `stablehlo.add`; of a custom call, its target: `custom_call.cu_threefry2x32`.
      operands: What it takes.
      results: What it gives.
      attributes: By name, decoded: int, float, bool, str (also for the enumerations of StableHLO, such as `"LT"`, and
        for names of functions), a tuple of those, a NumPy array for dense elements, a mapping for dictionaries and for
        structures such as `scatter_dimension_numbers`. Those that are absent are not there.
      regions: Each of one block.
      location: The user's code that it comes from, shortened for people: a name such as `model/dense/dot_general`.
      source: A line of the user's program, such as `model.py:41`; empty if none is known.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[Block, ...] = ()
    location: str = ""
    source: str = ""

    def of_one_tuple(self, results: list[Any]) -> list[Any]:
        """Several results as the one tuple that a call of a library has for them, as other producers write it."""
        types = [value.type for value in self.results]
        if len(types) != 1 or not isinstance(types[0], TupleType) or isinstance(results[0], tuple):
            return results
        return [tuple(results)]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Arguments, operations in order, and the values that the terminator returns."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]
    returned: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the module.

    Attributes:
      name: Its symbol.
      body: What it computes.
      is_public: Whether it can be called from outside.
      argument_attributes: For each argument, such as `mhlo.sharding` and `jax.global_constant`.
    """

    name: str
    body: Block
    is_public: bool
    argument_attributes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A module: its functions by name, the one named `main` first, and the module's own attributes."""

    functions: Mapping[str, Function]
    attributes: Mapping[str, Any]


def operations_of(block: Block) -> Iterator[Operation]:
    """The operations of a block and of the regions in it."""
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            yield from operations_of(region)


def read_in(block: Block) -> Iterator[Value]:
    """The values that a block uses, from within or from outside."""
    yield from block.returned
    for operation in block.operations:
        yield from operation.operands
        for region in operation.regions:
            yield from read_in(region)


def uses_in(block: Block) -> Counter[Value]:
    """How often each value is read by what is used itself."""
    uses = Counter(block.returned)
    for operation in reversed(block.operations):
        if not operation.results or operation.regions or any(uses[result] for result in operation.results):
            uses.update(operation.operands)
            for region in operation.regions:
                uses.update(read_in(region))
    return uses
