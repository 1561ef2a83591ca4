"""An operation where it is translated: its attributes and the types of its results at hand; names of kinds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["COLLECTIVES", "EFFECTS", "PYTHON_CALLBACKS", "BoundOperation"]

COLLECTIVES = (
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.cross-replica-sum",
    "stablehlo.reduce_scatter",
    "sdy.manual_computation",
)
"""Operations that move data between devices which run the same program."""

EFFECTS = (
    "stablehlo.after_all",
    "stablehlo.create_token",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.send",
    "stablehlo.recv",
)
"""Operations that order effects, such as input and output while a program runs."""

PYTHON_CALLBACKS = (
    "custom_call.xla_python_cpu_callback",
    "custom_call.xla_python_gpu_callback",
    "custom_call.xla_ffi_python_cpu_callback",
    "custom_call.xla_ffi_python_gpu_callback",
    "custom_call.xla_ffi_partitioned_python_cpu_callback",
)
"""Custom calls that call back into the Python process that traced the function."""


@dataclass(frozen=True)
class BoundOperation:
    """An operation as a translator's entry gets it, with what that entry may use in subclasses.

    Attributes:
      operation: As parsed.
    """

    operation: Operation

    def __getitem__(self, name: str) -> Any:
        """An attribute that must be there."""
        return self.operation.attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute that need not be there."""
        return self.operation.attributes.get(name, default)

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        """The types of the results."""
        return tuple(value.type for value in self.operation.results)  # type: ignore[misc]

    @property
    def result_type(self) -> TensorType:
        """The type of the only result."""
        (only,) = self.result_types
        return only

    @property
    def broadcast_places(self) -> list[Sequence[int]] | None:
        """The dimensions of the result at which those of each operand are, of an operation that broadcasts (CHLO).

        The last ones, as in NumPy, unless the operation says otherwise of an operand of lower rank. None where what
        it says cannot be: other than so many different dimensions of the result, in order.
        """
        ranks = [value.type.rank if isinstance(value.type, TensorType) else 0 for value in self.operation.operands]
        largest = max(ranks)
        stated = self.get("broadcast_dimensions")
        if stated is None:
            return [range(largest - rank, largest) for rank in ranks]
        dimensions = list(stated)
        if len(dimensions) != min(ranks) or dimensions != sorted(set(dimensions) & set(range(largest))):
            return None
        return [range(largest) if rank == largest else dimensions for rank in ranks]
