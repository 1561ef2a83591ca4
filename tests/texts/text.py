"""The text of a StableHLO module, written operation by operation, with arguments; nothing of what operations mean.

A `Text` writes two modules at once: the one that is tried, and the one that XLA is asked, which differs where XLA does
not take an operation, or is at fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..families.case import Argument  # noqa: TID252

__all__ = ["COMPLEX", "FLOATS", "INTEGERS", "NARROW", "Module", "Text", "Value", "dtype_of", "list_of"]

INTEGERS = [f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NARROW = ["i4", "ui4"]  # of 4 bits: arguments and results are of 8
FLOATS = ["f32", "f64", "f16", "bf16"]
COMPLEX = ["complex<f32>", "complex<f64>"]
DTYPES = {
    **{name: name.replace("i", "int") for name in (*INTEGERS, *NARROW)},
    **{"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "complex<f32>": "complex64", "complex<f64>": "complex128"},
}


def dtype_of(element: str) -> np.dtype[Any]:
    """NumPy's dtype of an element type."""
    return np.dtype(getattr(ml_dtypes, DTYPES[element], DTYPES[element]))


def list_of(numbers: Sequence[int]) -> str:
    """An attribute of integers."""
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


@dataclass(frozen=True)
class Value:
    """An array: its name, sizes and element type; a tuple has no sizes, and its type as element type."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        sizes = "".join(f"{size}x" for size in self.shape)
        return self.element if self.element.startswith("tuple") else f"tensor<{sizes}{self.element}>"


@dataclass(frozen=True)
class Module:
    """A module to try, and what XLA is asked in its place, of the same arguments.

    Floating-point results may have an error, relative to eps * max abs value. `lift` is not tried where XLA, by which
    JAX computes, is at fault.
    """

    text: str
    asked: str
    arguments: tuple[np.ndarray, ...]
    max_error_in_eps: float = 0
    is_lifted: bool = True


class Text:
    """Writes a module; `random` makes the draws."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self._numbers = np.random.default_rng(random.randint(0, 99))
        self._arguments: list[tuple[Value, np.ndarray]] = []
        self._lines: tuple[list[str], list[str]] = ([], [])  # of the two modules
        self._functions: tuple[list[str], list[str]] = ([], [])
        self._count = 0

    def shape(self, lowest: int = 0, highest: int = 3, size: int = 4) -> tuple[int, ...]:
        """Some sizes, seldom 0."""
        rank = self.random.randint(lowest, highest)
        return tuple(self.random.choice([*range(1, size + 1)] * 4 + [0]) for _ in range(rank))

    def array(self, shape: Sequence[int], element: str, values: Any = "special") -> np.ndarray:
        """Numbers as of `families.case.Argument`; special integers are the least, the greatest and some small ones."""
        if values == "special" and element in (*INTEGERS, *NARROW):
            limits = ml_dtypes.iinfo(DTYPES[element])
            low, high = int(limits.min), int(limits.max)
            numbers = [low, low + 1, high - 1, high, 0, 1, 2, 3, 5, max(low, -1), max(low, -4)]
            return self._numbers.choice(np.array(numbers, limits.dtype), tuple(shape))
        with np.errstate(over="ignore"):
            return Argument(tuple(shape), DTYPES[element], values).array({}, self._numbers)

    def argument(self, shape: Sequence[int], element: str, values: Any = "special") -> Value:
        """An argument of drawn numbers."""
        return self.given(self.array(shape, element, values), element)

    def given(self, numbers: Any, element: str) -> Value:
        """An argument of these numbers."""
        if element in NARROW:
            return self.operation(
                "convert", [self.given(numbers, element.replace("4", "8"))], (np.shape(numbers), element)
            )
        array = np.asarray(numbers).astype(dtype_of(element))
        value = Value(f"%a{len(self._arguments)}", array.shape, element)
        self._arguments.append((value, array))
        return value

    def constant(self, numbers: Any, element: str) -> Value:
        """Integers, also of a type of floats, or the bits of a float, as they are in the text."""
        array = np.asarray(numbers, np.float64 if element in FLOATS and not isinstance(numbers, str) else None)
        written, value = str(array.tolist()).lower() if array.size else "", Value("", array.shape, element)
        return self.operation("constant", [], (array.shape, element), f"value = dense<{written}> : {value.type}")

    def scalar(self, element: str) -> Value:
        """A small number, as an argument or in the text."""
        return self.random.choice((self.given, self.constant))(self.array((), element, "small"), element)

    def operation(
        self, name: str, operands: Sequence[Value], *given: Any, regions: Sequence[str] = (), asked: Any = None
    ) -> Any:
        """The results of an operation.

        Args:
          name: With its dialect, but for StableHLO's.
          operands: What it takes.
          given: For each result its shape and element type, and last the attributes, if any.
          regions: As `region` writes them.
          asked: Name, operands and attributes of the operation that XLA is asked in its place, and its regions if
            they are others.
        """
        attributes = given[-1] if isinstance(given[-1], str) else ""
        results = self._named([one for one in given if not isinstance(one, str)])
        self._lines[0].append(_line(results, name, operands, attributes, regions))
        other = (*asked, regions)[:4] if asked else (name, operands, attributes, regions)
        self._lines[1].append(_line(results, *other))
        return results[0] if len(results) == 1 else results

    def asks(self, name: str, operands: Sequence[Value], result: Any, attributes: str = "") -> Value:
        """The result of an operation that only the module for XLA has."""
        results = self._named([result])
        self._lines[1].append(_line(results, name, operands, attributes, ()))
        return results[0]

    def region(self, taken: Sequence[Any], write: Callable[..., Sequence[Value]]) -> str:
        """A region that takes values of these shapes and element types: `write` writes it and gives its results."""
        kept, self._lines = self._lines, ([], [])
        values = [self._named([one])[0] for one in taken]
        last = _returned("stablehlo.return", write(*values))
        head = f"^bb0({_typed(values)}):" if values else ""
        lines, self._lines = [head, *self._lines[0], last], kept
        return "{ " + "\n".join(lines) + " }"

    def function(self, taken: Sequence[Any], write: Callable[..., Sequence[Value]]) -> str:
        """The name of a private function that takes values of these shapes and element types, as of a region."""
        kept, self._lines = self._lines, ([], [])
        values = [self._named([one])[0] for one in taken]
        results = write(*values)
        name = f"f{len(self._functions[0])}"
        head = f"func.func private @{name}({_typed(values)}) -> ({_listed(results, 'type')}) {{"
        for lines, functions in zip(self._lines, self._functions, strict=True):
            functions.append("\n".join([head, *lines, _returned("return", results), "}"]))
        self._lines = kept
        return name

    def module(self, *results: Value, max_error_in_eps: float = 0, is_lifted: bool = True) -> Module:
        """The module with these results."""
        wide = [
            self.operation("convert", [one], (one.shape, one.element.replace("4", "8")))
            if one.element in NARROW
            else one
            for one in results
        ]
        head = f"func.func @main({_typed([value for value, _ in self._arguments])}) -> ({_listed(wide, 'type')}) {{"
        texts = [
            "\n".join([head, *lines, _returned("return", wide), "}", *functions])
            for lines, functions in zip(self._lines, self._functions, strict=True)
        ]
        return Module(*texts, tuple(array for _, array in self._arguments), max_error_in_eps, is_lifted)

    def _named(self, given: Sequence[Any]) -> list[Value]:
        self._count += 1
        places = [f"#{i}" for i in range(len(given))] if len(given) > 1 else [""]
        return [Value(f"%v{self._count}{p}", tuple(s), e) for p, (s, e) in zip(places, given, strict=True)]


def _line(
    results: Sequence[Value], name: str, operands: Sequence[Value], attributes: str, regions: Sequence[str]
) -> str:
    left = results[0].name.partition("#")[0] + (f":{len(results)}" if len(results) > 1 else "")
    inside = f" ({', '.join(regions)})" if regions else ""
    types = f"({_listed(operands, 'type')}) -> ({_listed(results, 'type')})"
    name = name if "." in name else f"stablehlo.{name}"
    return f'{left} = "{name}"({_listed(operands, "name")}){inside} {{{attributes}}} : {types}'


def _returned(name: str, values: Sequence[Value]) -> str:
    return f"{name} {_listed(values, 'name')} : {_listed(values, 'type')}"


def _typed(values: Sequence[Value]) -> str:
    return ", ".join(f"{value.name}: {value.type}" for value in values)


def _listed(values: Sequence[Value], what: str) -> str:
    return ", ".join(getattr(value, what) for value in values)
