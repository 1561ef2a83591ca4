"""Shapes and dtypes from the tables of an artifact; symbolic sizes are in one scope."""

from __future__ import annotations

from typing import Any

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.fields import dtype_name, kind_of, memory_space, selected
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.avals import Aval, dtype_from_name
from jaxtf.serialization._record.kinds import AbstractValueKind
from jaxtf.shapepoly import InconclusiveDimensionOperation, SizeReader, SymbolicScope

__all__ = ["AvalReader", "scope"]

# Bounds on the work for all constraints of an artifact, and for all sizes of a function: about a second each. Of what
# people write, six variables and ten constraints, they take a thousandth.
_STEPS_OF_CONSTRAINTS = _STEPS_OF_SIZES = 1_000_000


def scope(constraints: tuple[str, ...]) -> SymbolicScope:
    """A new scope with the constraints of an artifact.

    Raises:
      ArtifactError: A constraint cannot be read.
    """
    try:
        return SymbolicScope(constraints, most_steps=_STEPS_OF_CONSTRAINTS)
    except (ValueError, InconclusiveDimensionOperation, ArithmeticError, RecursionError) as error:
        raise ArtifactError(f"the artifact has constraints that cannot be read: {error}") from error


class AvalReader:
    """Reads the avals of one function of an artifact."""

    def __init__(self, table: schema.ExportedTable, scope: SymbolicScope) -> None:
        self._table = table
        self._reader = SizeReader(scope, _STEPS_OF_SIZES)
        self._sizes: dict[str, Any] = {}

    def avals(
        self,
        positions: tuple[int, ...] | None,
        each: tuple[schema.AbstractValueTable, ...] | None,
        weak: tuple[int, ...],
    ) -> tuple[Aval, ...]:
        """The avals of the arguments or of the results.

        Args:
          positions: Where each is among the distinct ones; None or empty in formats without these.
          each: Each of them, in those formats.
          weak: Positions of those that are weakly typed.

        Raises:
          ArtifactError: The fields do not fit together, or a size cannot be read.
          VersionError: A dtype or memory space of a later format.
        """
        avals = selected(self._aval, positions, self._table.unique_avals, each, "avals")
        if not weak:
            return avals
        if max(weak) >= len(avals):
            raise ArtifactError(f"the notes of the artifact refer to value number {max(weak)} of {len(avals)}")
        weak_positions = frozenset(weak)
        return tuple(
            Aval(aval.shape, aval.dtype, position in weak_positions, aval.memory_space)
            for position, aval in enumerate(avals)
        )

    def _aval(self, table: schema.AbstractValueTable) -> Aval:
        if kind_of(AbstractValueKind, table.kind, "an aval") is not AbstractValueKind.SHAPED_ARRAY:
            raise ArtifactError("the artifact has an argument or result that is a token, no array")
        space = memory_space(table.memory_space)
        if space == "any":  # JAX has it within kernels alone
            raise ArtifactError("the artifact has an argument or result in any memory, which is none")
        return Aval(
            tuple(map(self._size, table.shape or ())), dtype_from_name(dtype_name(table.dtype)), memory_space=space
        )

    def _size(self, text: str) -> Any:
        if text.isascii() and text.isdigit() and len(text) < 19:
            return int(text)
        if text not in self._sizes:
            self._sizes[text] = self._parsed(text)
        return self._sizes[text]

    def _parsed(self, text: str) -> Any:
        try:
            return self._reader.size(text)
        except (ValueError, InconclusiveDimensionOperation, ArithmeticError, RecursionError) as error:
            raise ArtifactError(f"the artifact has a size that cannot be read: {error}") from error
