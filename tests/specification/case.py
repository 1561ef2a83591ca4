"""A module of one operation, its operands and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

ELEMENT = {
    "bool": "i1",
    "bfloat16": "bf16",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
BACKENDS = ("lift", "eager", "compiled", "xla")


def i8(*values: object) -> np.ndarray:
    """An array of int8; one value alone may be nested lists."""
    return _array(np.int8, values)


def i32(*values: object) -> np.ndarray:
    """An array of int32."""
    return _array(np.int32, values)


def u8(*values: object) -> np.ndarray:
    """An array of uint8."""
    return _array(np.uint8, values)


def u32(*values: object) -> np.ndarray:
    """An array of uint32."""
    return _array(np.uint32, values)


def f16(*values: object) -> np.ndarray:
    """An array of float16."""
    return _array(np.float16, values)


def bf16(*values: object) -> np.ndarray:
    """An array of bfloat16."""
    return _array(ml_dtypes.bfloat16, values)


def f32(*values: object) -> np.ndarray:
    """An array of float32."""
    return _array(np.float32, values)


def f64(*values: object) -> np.ndarray:
    """An array of float64."""
    return _array(np.float64, values)


def c64(*values: object) -> np.ndarray:
    """An array of complex64."""
    return _array(np.complex64, values)


def i1(*values: object) -> np.ndarray:
    """An array of booleans."""
    return _array(np.bool_, values)


def _array(dtype: type, values: tuple[object, ...]) -> np.ndarray:
    if len(values) == 1 and isinstance(values[0], (list, np.ndarray)):
        return np.array(values[0], dtype)
    return np.array(values, dtype)


def scalar(array: np.ndarray) -> np.ndarray:
    """The one number of an array, of rank 0."""
    return array.reshape(())


def type_of(array: np.ndarray) -> str:
    """Its type in a module."""
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{sizes}{ELEMENT[array.dtype.name]}>"


@dataclass(frozen=True)
class Case:
    """A module of one operation, or of a few around it.

    Attributes:
      operation: Such as "stablehlo.add".
      text: The module.
      arguments: Of its main function.
      expected: Its results.
      rtol: How far results may be from those, relative to each; 0 for equal bits, but for the bits of NaN.
      differs: By backend, why it does not give those results. A backend that does after all fails.
    """

    operation: str
    text: str
    arguments: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    rtol: float = 0.0
    differs: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For people: the operation and its operands."""
        return f"{self.operation} of {', '.join(map(type_of, self.arguments)) or 'nothing'}"


def case(
    operation: str,
    operands: Sequence[np.ndarray],
    *expected: np.ndarray,
    attributes: str = "",
    regions: Sequence[str] = (),
    constants: Sequence[int] = (),
    open_types: Mapping[int, str] | None = None,
    results: Sequence[str] | None = None,
    rtol: float = 0.0,
    differs: Mapping[str, str] | None = None,
) -> Case:
    """A module of one operation whose operands are its arguments.

    Args:
      operation: Its name.
      operands: Its operands.
      *expected: Its results.
      attributes: As `name = value, ...`.
      regions: The blocks of each.
      constants: Which operands are constants in the module.
      open_types: Types of arguments that are not those of the arrays.
      results: Types of results, where they are not those of the arrays.
      rtol: As in `Case`.
      differs: As in `Case`.
    """
    types = [(open_types or {}).get(number, type_of(operand)) for number, operand in enumerate(operands)]
    given = list(results or map(type_of, expected))
    free = [number for number in range(len(operands)) if number not in constants]
    lines = [f"%a{n} = stablehlo.constant dense<{operands[n].tolist()}> : {types[n]}".lower() for n in constants]
    names = ", ".join(f"%a{number}" for number in range(len(operands)))
    inner = f" ({', '.join(f'{{{region}}}' for region in regions)})" if regions else ""
    stated = f" <{{{attributes}}}>" if attributes else ""
    count = f":{len(expected)}" if len(expected) > 1 else ""
    lines.append(f'%r{count} = "{operation}"({names}){stated}{inner} : ({", ".join(types)}) -> ({", ".join(given)})')
    returned = ", ".join(f"%r#{number}" for number in range(len(expected))) if count else "%r"
    body = "\n  ".join([*lines, f"return {returned} : {', '.join(given)}"])
    arguments = ", ".join(f"%a{number}: {types[number]}" for number in free)
    text = f"func.func @main({arguments}) -> ({', '.join(given)}) {{\n  {body}\n}}"
    return Case(operation, text, [operands[number] for number in free], expected, rtol, differs or {})


def module(
    operation: str,
    body: str,
    arguments: Sequence[np.ndarray],
    *expected: np.ndarray,
    more: str = "",
    rtol: float = 0.0,
    differs: Mapping[str, str] | None = None,
) -> Case:
    """A module whose main function has such a body; `%a0`, `%a1`, ... are its arguments.

    Args:
      operation: The one that it is a case of.
      body: Its lines, the last a return.
      arguments: Its arguments.
      *expected: Its results.
      more: Other functions.
      rtol: As in `Case`.
      differs: As in `Case`.
    """
    taken = ", ".join(f"%a{number}: {type_of(argument)}" for number, argument in enumerate(arguments))
    given = ", ".join(map(type_of, expected))
    text = f"func.func @main({taken}) -> ({given}) {{\n{body}\n}}\n{more}"
    return Case(operation, text, arguments, expected, rtol, differs or {})


def of_two(operation: str, type_: str = "tensor<f32>") -> str:
    """A block that combines two numbers by an operation."""
    lines = f'%c = "{operation}"(%x, %y) : ({type_}, {type_}) -> {type_}\n"stablehlo.return"(%c) : ({type_}) -> ()'
    return f"^bb0(%x: {type_}, %y: {type_}):\n{lines}"
