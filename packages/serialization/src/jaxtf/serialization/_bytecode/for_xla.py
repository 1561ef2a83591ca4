"""What XLA does not compute as a portable artifact says, found without jaxlib.

Whoever gives a module to TensorFlow as it is asks these two; `_program.for_xla` and `_program.one_device` write such
modules otherwise, with jaxlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from jaxtf.serialization._bytecode.operations import PROPERTIES_SINCE, Operation, Operations, operation_names
from jaxtf.serialization._bytecode.portable import Frame, Reader, custom_call_targets

__all__ = ["computes_by_devices", "misread_by_xla"]

_BY_DEVICES = (
    *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "collective_reduce"),
    *("cross-replica-sum", "partition_id", "reduce_scatter", "replica_id"),
)
_CALLS_BY_DEVICES = (
    *("SPMDFullToShardShape", "SPMDShardToFullShape"),
    *("xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"),
)
_BY_DEVICES_OF_SHARDY = ("sdy", "manual_computation")

# The attributes that are read, and which they are among all of an operation in the order of their names.
_CONVOLUTION = {"lhs_dilation": 8, "padding": 12}
_SCATTER = {"scatter_dims_to_operand_dims": 3}
_SCATTER_IN_BATCHES = {"input_batching_dims": 2, "scatter_dims_to_operand_dims": 4}
_READ = {"convolution_v1": _CONVOLUTION, "scatter_v1": _SCATTER, "scatter_v2": _SCATTER_IN_BATCHES}
_COUNTS = {17: _CONVOLUTION, 6: _SCATTER, 8: _SCATTER_IN_BATCHES}

_Lists: TypeAlias = Mapping[str, list[int] | None]
"""Those attributes of an operation, by name."""


def computes_by_devices(module: bytes | memoryview) -> tuple[str, ...]:
    """What in a module moves data between devices, or asks which of them runs: names of StableHLO, sorted.

    Raises:
      ArtifactError: It is not a portable artifact, or a damaged one; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    found = set()
    for dialect, versioned in operation_names(Frame(module)):
        name = versioned.rpartition("_v")[0] if dialect == "vhlo" else versioned
        if (dialect == "vhlo" and name in _BY_DEVICES) or (dialect, name) == _BY_DEVICES_OF_SHARDY:
            found.add(f"{'stablehlo' if dialect == 'vhlo' else dialect}.{name}")
    if any(target.encode() in bytes(module) for target in _CALLS_BY_DEVICES):  # reading all targets takes longer
        found.update(set(custom_call_targets(module)).intersection(_CALLS_BY_DEVICES))
    return tuple(sorted(found))


def misread_by_xla(module: bytes | memoryview) -> tuple[str, ...]:
    """Operations that XLA, as TensorFlow 2.21 and jaxlib 0.10 have it, computes otherwise: names of StableHLO, sorted.

    Convolutions whose padding takes elements away before an array and adds some after it, and scatters of several
    updates without an index.

    Raises:
      ArtifactError: It is not a portable artifact, or a damaged one; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    names = {name for dialect, name in operation_names(Frame(module)) if dialect == "vhlo"}
    if names.isdisjoint(_READ):
        return ()
    return _Search(module).found()


class _Search:
    """Looks at the convolutions and scatters of a module."""

    def __init__(self, module: bytes | memoryview) -> None:
        self._operations = Operations(module)
        self._found: set[str] = set()

    def found(self) -> tuple[str, ...]:
        """Names of StableHLO of those that are misread."""
        operations = self._operations
        if operations.version < PROPERTIES_SINCE or any(map(self._may_be, operations.properties)):
            operations.every(self._see)
        return tuple(sorted(self._found))

    def _may_be(self, properties: Reader) -> bool:
        """Whether properties could be those of such an operation."""
        numbers: list[int] = []
        reader = properties.again()
        while reader.left and len(numbers) <= max(_COUNTS):
            numbers.append(reader.number())
        places = _COUNTS.get(len(numbers), {})
        lists = {name: self._operations.attributes.integers(numbers[place]) for name, place in places.items()}
        return _takes_and_adds(lists) or _has_no_index(lists)

    def _see(self, operation: Operation, reader: Reader, types: list[int]) -> None:
        dialect, name = operation.name
        if dialect != "vhlo" or name not in _READ:
            return
        lists = self._lists(operation, reader)
        if name == "convolution_v1":
            if _takes_and_adds(lists):
                self._found.add("stablehlo.convolution")
        elif _has_no_index(lists) and self._combines_several(operation, lists, reader, types):
            self._found.add("stablehlo.scatter")

    def _lists(self, operation: Operation, reader: Reader) -> _Lists:
        attributes, places = self._operations.attributes, _READ[operation.name[1]]
        if operation.properties is not None:
            properties = self._operations.properties_of(operation, reader)
            numbers = [properties.number() for _ in range(1 + max(places.values()))]
            return {name: attributes.integers(numbers[place]) for name, place in places.items()}
        entries = {} if operation.dictionary is None else dict(attributes.entries(operation.dictionary))
        return {name: attributes.integers(entries[name]) for name in places if name in entries}

    def _combines_several(self, operation: Operation, lists: _Lists, reader: Reader, types: list[int]) -> bool:
        """Whether a scatter has several updates, or an unknown number, and its arrays a dimension for an index."""
        array, indices = (self._sizes(operation, place, reader, types) for place in (0, len(operation.operands) // 2))
        in_batches = lists.get("input_batching_dims") or ()
        # The dimension of the index vectors has size 0; the others say how many there are.
        return len(in_batches) < len(array) and any(size not in (0, 1) for size in indices)

    def _sizes(self, operation: Operation, place: int, reader: Reader, types: list[int]) -> list[int]:
        """The sizes of an operand, negative where unknown."""
        if place >= len(operation.operands) or not 0 <= operation.operands[place] < len(types):
            raise reader.fail(f"{'.'.join(operation.name)} takes a value that there is not")
        return self._operations.attributes.sizes(types[operation.operands[place]])


def _takes_and_adds(lists: _Lists) -> bool:
    """Whether a padding takes away before and adds after, of an operand without holes."""
    padding = lists.get("padding") or []
    pairs = zip(padding[::2], padding[1::2], strict=False)
    return any(low < 0 < high for low, high in pairs) and set(lists.get("lhs_dilation") or (1,)) == {1}


def _has_no_index(lists: _Lists) -> bool:
    return lists.get("scatter_dims_to_operand_dims") == []
