"""Fourier transforms, along axes of constant size."""

from __future__ import annotations

from typing import Any

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import constant_size
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value


@rule("FFT", "IFFT")
def fft(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis whose size is a number."""
    constant_size(i, op, inputs[0].shape[-1])
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("RFFT", "IRFFT")
def rfft(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis whose size is a number, to a length that is one."""
    constant_size(i, op, inputs[0].shape[-1])
    [length] = i.integers(op, inputs, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, (*inputs[0].shape[:-1], length // 2 + 1 if op.type == "RFFT" else length))]
