"""What an artifact says about itself, as a record, as text and as JSON values.

Made by `describe` (`describe.py`). Everything is a text or a number: dtypes by name, sizes as
they were written. Imports neither JAX nor NumPy, so that describing an artifact stays quick.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ArrayDescription",
    "CustomCallDescription",
    "Description",
    "FunctionDescription",
    "WeightDescription",
    "WeightsDescription",
]

_SHOWN = 40
"""How many arguments or results the text shows."""


@dataclass(frozen=True)
class ArrayDescription:
    """One flat argument or result.

    Attributes:
      path: As its caller would write it: `args[0]['w']`.
      dtype: The name of its dtype.
      shape: Its sizes: integers, and texts for dimension expressions.
      kept: Whether the module takes it; True for results.
      weak_type: Whether its type is weak; False where the artifact does not say.
      memory_space: `device`, `host` or `any`.
      sharding: How it is split over devices; None where it is not.
    """

    path: str
    dtype: str
    shape: tuple[int | str, ...]
    kept: bool = True
    weak_type: bool = False
    memory_space: str = "device"
    sharding: str | None = None

    def __str__(self) -> str:
        remarks = [
            *(() if self.kept else ("unused",)),
            *(("weakly typed",) if self.weak_type else ()),
            *(() if self.memory_space == "device" else (f"in {self.memory_space} memory",)),
            *(() if self.sharding is None else (self.sharding,)),
        ]
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]" + "".join(f"  {remark}" for remark in remarks)


@dataclass(frozen=True)
class CustomCallDescription:
    """A custom-call target of a module.

    Attributes:
      target: Its name.
      stable: Whether its meaning is known to last.
      allowed: Whether the exporter disabled the check for it.
    """

    target: str
    stable: bool
    allowed: bool

    def __str__(self) -> str:
        if self.stable:
            return self.target
        return f"{self.target} (not known to be stable{'; the exporter vouched for it' if self.allowed else ''})"


@dataclass(frozen=True)
class FunctionDescription:
    """The function, or one order of its VJP.

    Attributes:
      name: Of the function.
      arguments: Its flat arguments.
      results: Its flat results.
      platforms: The lowering platforms.
      calling_convention_version: Order and meaning of the main function's arguments.
      stablehlo_version: What its module is written for.
      module_size: Of the module, in bytes.
      device_count: How many devices it runs on.
      custom_calls: The targets that its module calls.
      ordered_effects: Names of the effects that keep their order.
      unordered_effects: Names of the others.
      disabled_checks: Names of the safety checks that the exporter disabled.
      uses_shardy: Whether its module holds shardings for the Shardy partitioner; a module without shardings has none.
      uses_global_constants: Whether it has the platform index or dimension variables.
    """

    name: str
    arguments: tuple[ArrayDescription, ...]
    results: tuple[ArrayDescription, ...]
    platforms: tuple[str, ...]
    calling_convention_version: int
    stablehlo_version: str
    module_size: int
    device_count: int
    custom_calls: tuple[CustomCallDescription, ...]
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[str, ...]
    uses_shardy: bool
    uses_global_constants: bool


@dataclass(frozen=True)
class WeightDescription:
    """One array of the weights of a program.

    Attributes:
      name: Its name in the file.
      dtype: The name of its dtype.
      shape: Its sizes.
      size: In bytes.
      sha256: The digest of its bytes that the file gives; not verified.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class WeightsDescription:
    """The weights of a program.

    Attributes:
      arrays: Each once, also where it is shared.
      arguments: Positions of the arguments that they are for.
      sha256: Of the manifest, which has the digests of all parts: it identifies the whole file. Verified.
      metadata: What the user wrote with them.
      producer: Name and release of each package that wrote them.
    """

    arrays: tuple[WeightDescription, ...]
    arguments: tuple[int, ...]
    sha256: str
    metadata: dict[str, Any]
    producer: dict[str, str]

    @property
    def size(self) -> int:
        """Of all arrays, in bytes."""
        return sum(array.size for array in self.arrays)

    @property
    def parameters(self) -> int:
        """The number of values in all arrays."""
        return sum(math.prod(array.shape) for array in self.arrays)


@dataclass(frozen=True)
class Description:
    """The description of an artifact; `str` of it is for people, `to_json()` for programs.

    Attributes:
      functions: The function, then each order of its VJP that was written.
      constraints: The symbolic constraints; empty in artifacts that are not ours, which lose them.
      stored_format: The number in its first field, which older releases of JAX did not always raise.
      formats: The lowest and the highest format that it may be of, judged by its fields.
      size: Of the artifact, in bytes.
      payload_size: Of the bytes before the trailer.
      trailer_format: Of its trailer; None in artifacts that are not ours.
      digest: `verified`, or `none` where there is none. A wrong one is an error.
      sha256: The digest, in hexadecimal; None where there is none.
      producer: Name and release of each package that wrote it, as far as it says.
      weights: The weights in the same file; None where there are none.
    """

    functions: tuple[FunctionDescription, ...]
    constraints: tuple[str, ...]
    stored_format: int
    formats: tuple[int, int]
    size: int
    payload_size: int
    trailer_format: int | None
    digest: str
    sha256: str | None
    producer: dict[str, str]
    weights: WeightsDescription | None = None

    @property
    def function(self) -> FunctionDescription:
        """The function itself."""
        return self.functions[0]

    @property
    def vjp_orders(self) -> int:
        """How many orders of the VJP were written."""
        return len(self.functions) - 1

    def to_json(self) -> dict[str, Any]:
        """As JSON values: objects for records, arrays for tuples, the attributes' names as keys."""
        values: dict[str, Any] = _as_json({**dataclasses.asdict(self), "vjp_orders": self.vjp_orders})
        if self.weights is not None:
            values["weights"] |= {"size": self.weights.size, "parameters": self.weights.parameters}
        return values

    def __str__(self) -> str:
        function = self.function
        low, high = self.formats
        rows = [
            ("function", function.name),
            *_arrays("arguments", function.arguments),
            *_arrays("results", function.results),
            *_list("constraints", self.constraints),
            ("platforms", ", ".join(function.platforms)),
            *((("devices", str(function.device_count)),) if function.device_count > 1 else ()),
            *((("partitioner", "Shardy"),) if function.uses_shardy else ()),
            *_list("ordered effects", function.ordered_effects),
            *_list("unordered effects", function.unordered_effects),
            *_list("custom calls", function.custom_calls),
            *_list("disabled checks", function.disabled_checks),
            ("VJP orders", str(self.vjp_orders)),
            ("calling convention", f"version {function.calling_convention_version}"),
            ("StableHLO", f"version {function.stablehlo_version}"),
            ("format", str(low) if low == high else f"{low} to {high} (says {self.stored_format})"),
            ("written by", ", ".join(f"{name} {release}" for name, release in self.producer.items()) or "unknown"),
            ("digest", f"{self.digest}: sha256 {self.sha256}" if self.sha256 else "none (not written by jaxtf)"),
            *(() if self.weights is None else _weights(self.weights)),
            ("size", f"{self.size:,} bytes"),
            *_list("modules", map(_module, range(len(self.functions)), self.functions)),
        ]
        width = max(len(label) for label, _ in rows) + 2
        return "\n".join(f"{label:{width}}{text}" for label, text in rows)


def _weights(weights: WeightsDescription) -> Iterator[tuple[str, str]]:
    yield from _arrays("weights", weights.arrays)
    yield "", f"{weights.parameters:,} parameters, {weights.size:,} bytes, for arguments {weights.arguments}"
    yield "file digest", f"sha256 {weights.sha256}; that of the weights is verified by load and check"
    if weights.metadata:
        yield "metadata", json.dumps(weights.metadata, ensure_ascii=False, sort_keys=True)


def _module(order: int, function: FunctionDescription) -> str:
    return f"{'VJP of order ' + str(order) if order else 'function'}: {function.module_size:,} bytes"


def _arrays(
    label: str, arrays: tuple[ArrayDescription, ...] | tuple[WeightDescription, ...]
) -> Iterator[tuple[str, str]]:
    names = [array.name if isinstance(array, WeightDescription) else array.path for array in arrays[:_SHOWN]]
    width = max(map(len, names), default=0) + 2
    yield from _list(label, (f"{name:{width}}{array}" for name, array in zip(names, arrays, strict=False)))
    if not arrays:
        yield label, "none"
    if len(arrays) > _SHOWN:
        yield "", f"and {len(arrays) - _SHOWN} more"


def _list(label: str, values: Iterable[object]) -> Iterator[tuple[str, str]]:
    """A row for each value, the first with the label."""
    for number, value in enumerate(values):
        yield "" if number else label, str(value)


def _as_json(value: Any) -> Any:
    """Nested dictionaries and tuples as objects and arrays."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return [_as_json(item) for item in value] if isinstance(value, tuple | list) else value
