"""The notes of an artifact: what its flatbuffer has no field for.

They are JSON in the trailer: the symbolic constraints, the releases that wrote the artifact,
and for the function and each order of its VJP the StableHLO version, the partitioner, the paths
of arguments and results, weak types, static fields of dataclasses, and checks that the flatbuffer cannot name.

`parse` takes JSON of unknown origin apart and checks every value; unknown keys are ignored, so
that later releases can add some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jaxtf.serialization._artifact.static_fields import Written
from jaxtf.serialization._errors import ArtifactError

__all__ = ["FunctionNotes", "Notes"]

T = TypeVar("T")


@dataclass(frozen=True)
class FunctionNotes:
    """What is noted of the function, or of one order of its VJP.

    Attributes:
      stablehlo_version: The StableHLO version that the module is written for.
      uses_shardy: Whether its shardings are for the Shardy partitioner.
      arguments: Path of each flat argument.
      results: Path of each flat result.
      weak_arguments: Positions of the flat arguments of weak type.
      weak_results: Positions of the flat results of weak type.
      disabled_checks: Names of the disabled safety checks that the flatbuffer cannot name.
      static_fields: Name and text of each static field, for each pytree node of a custom type of the arguments, then of
        the results; empty where none has any.
    """

    stablehlo_version: str
    uses_shardy: bool
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    weak_arguments: tuple[int, ...] = ()
    weak_results: tuple[int, ...] = ()
    disabled_checks: tuple[str, ...] = ()
    static_fields: Written = ()


@dataclass(frozen=True)
class Notes:
    """The notes of an artifact.

    Attributes:
      constraints: The symbolic constraints of the scope, as they were declared.
      producer: Name and release of each package that wrote it.
      functions: Of the function and each order of its VJP.
    """

    constraints: tuple[str, ...]
    producer: Mapping[str, str]
    functions: tuple[FunctionNotes, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values; empty tuples and False are left out of the functions."""
        return {
            "constraints": list(self.constraints),
            "producer": dict(self.producer),
            "functions": [_without_defaults(function) for function in self.functions],
        }

    @staticmethod
    def parse(notes: Mapping[str, Any]) -> Notes:
        """Reads the JSON values.

        Raises:
          ArtifactError: A value is missing or of the wrong kind; the message says which.
        """
        nobody: Mapping[str, str] = {}
        functions = _get(notes, "notes", "functions", _list_of(_mapping), None)
        return Notes(
            constraints=_get(notes, "notes", "constraints", _list_of(_text), ()),
            producer=_get(notes, "notes", "producer", _texts_by_name, nobody),
            functions=tuple(_function(function, f"functions[{order}]") for order, function in enumerate(functions)),
        )


def _without_defaults(function: FunctionNotes) -> dict[str, Any]:
    values = {name: getattr(function, name) for name in function.__dataclass_fields__}
    return {name: _as_lists(value) for name, value in values.items() if value not in ((), False)}


def _as_lists(value: Any) -> Any:
    return list(map(_as_lists, value)) if isinstance(value, tuple) else value


def _function(values: Mapping[str, Any], where: str) -> FunctionNotes:
    return FunctionNotes(
        stablehlo_version=_get(values, where, "stablehlo_version", _text, None),
        uses_shardy=_get(values, where, "uses_shardy", _boolean, default=False),
        arguments=_get(values, where, "arguments", _list_of(_text), ()),
        results=_get(values, where, "results", _list_of(_text), ()),
        weak_arguments=_get(values, where, "weak_arguments", _list_of(_position), ()),
        weak_results=_get(values, where, "weak_results", _list_of(_position), ()),
        disabled_checks=_get(values, where, "disabled_checks", _list_of(_text), ()),
        static_fields=_get(values, where, "static_fields", _list_of(_list_of(_field)), ()),
    )


def _get(values: Mapping[str, Any], where: str, name: str, read: Callable[[Any], T], default: T | None) -> T:
    """The value of a name, or the default; a name without default must be there."""
    if name not in values:
        if default is None:
            raise ArtifactError(f"the notes of the artifact lack {where}[{name!r}]")
        return default
    try:
        return read(values[name])
    except TypeError as error:
        raise ArtifactError(f"the notes of the artifact have a wrong {where}[{name!r}]: {error}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {_short(value)}")
    return value


def _field(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"expected a name and a text, found {_short(value)}")
    return _text(value[0]), _text(value[1])


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {_short(value)}")
    return value


def _position(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"expected a position, found {_short(value)}")
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {_short(value)}")
    return value


def _texts_by_name(value: Any) -> Mapping[str, str]:
    return {name: _text(text) for name, text in _mapping(value).items()}


def _list_of(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    def read_list(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, found {_short(value)}")
        return tuple(map(read, value))

    return read_list


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
