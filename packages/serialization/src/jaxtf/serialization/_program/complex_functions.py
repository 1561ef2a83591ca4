"""Functions of complex numbers that a module has written out for the two parts of each number.

JAX writes out what StableHLO has no operation for, or its compiler computes badly: `square`, `sqrt`, `sin`. What is
written out selects where the parts are equal, or one is 0: a constant there, which has no derivative. So such functions
are known by what they are written out as, whatever the shape: a digest of the operations from the result to the parts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from hashlib import blake2b

import numpy as np

from jaxtf.serialization._program.program import Operation, TensorType, Value

__all__ = ["digest", "is_known", "operations_of_complex_function"]

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
_PARTS = ("stablehlo.real", "stablehlo.imag")
_LAST = ("stablehlo.complex", "stablehlo.select")
_ATTRIBUTES = ("comparison_direction", "compare_type", "result_accuracy")
# By the digest of what JAX 0.10.2 and 0.12.0.1 write; tests/_lift/complex_functions_table.py prints it.
_NAMES = {
    "50ea0233743c53eacb64e042": "chlo.atanh",
    "f5868a50d21f1c5898b70b9d": "chlo.atanh",
    "1d22206ba6a7910aa06de8ea": "stablehlo.cosine",
    "4658e9e1cad59d9e421c0d8e": "stablehlo.cosine",
    "c6f8389eee6f8e0b3264d22d": "stablehlo.exponential",
    "7ca28370d3b47515b6fa1531": "stablehlo.exponential",
    "d734161a3b09a3582bc5c981": "stablehlo.log",
    "5f3fabd6bc719a77af262434": "stablehlo.log",
    "4e1d80da4ceedaa6d6a83378": "stablehlo.log_plus_one",
    "625fe091bf1b743bd27e3061": "stablehlo.log_plus_one",
    "b03946e97e0c705956837b43": "stablehlo.sine",
    "2c1cdea37487486931415053": "stablehlo.sine",
    "edc7fef96688a8b748cdd371": "stablehlo.sqrt",
    "e638acec3d31c27ce71500c4": "stablehlo.sqrt",
    "b8d41d6309525fbd5e30549a": "chlo.square",
    "f424a479f3ce9067126a2251": "chlo.square",
}
# More operations than any of them is written out as.
_MOST = 400


def operations_of_complex_function(
    last: Operation, sources: Mapping[Value, Operation], within: Container[Operation]
) -> tuple[Value, tuple[Operation, ...], str] | None:
    """The argument of a function of complex numbers that ends with an operation, its operations, and its name.

    Args:
      last: Any operation.
      sources: The operation that each value is a result of.
      within: Where all but constants have to be.

    Returns:
      The array, the operations in order, and the operation of StableHLO or CHLO that they are written for; None where
      that is not known.
    """
    if last.name not in _LAST or not _is_complex(last.results[0]):
        return None
    ordered = _ordered(last, sources)
    arguments = {each.operands[0] for each in ordered if each.name in _PARTS}
    if len(arguments) != 1 or not all(each in within or each.name == "stablehlo.constant" for each in ordered):
        return None
    [argument] = arguments
    name = _NAMES.get(digest(last, argument, sources) or "")
    return None if name is None else (argument, tuple(ordered), name)


def is_known(found: str) -> bool:
    """Whether a digest is that of a function with a name."""
    return found in _NAMES


def digest(last: Operation, argument: Value, sources: Mapping[Value, Operation]) -> str | None:
    """What the operations from parts to a result are alike by, whatever their shapes; None where more is used."""
    numbers: dict[str, int] = {}
    known: dict[Value, int] = {argument: -1}
    ordered = _ordered(last, sources)
    if not any(operation.name in _PARTS for operation in ordered):
        return None
    for operation in ordered:
        if not all(value in known for value in _read(operation)):
            return None
        given = tuple(known[value] for value in _read(operation))
        if operation.name in _BROADCASTS:
            known[operation.results[0]] = given[0]
            continue
        if operation.regions or len(operation.results) != 1:
            return None
        described = [operation.name, *(str(operation.attributes.get(name, "")) for name in _ATTRIBUTES), str(given)]
        if operation.name == "stablehlo.constant":
            value = np.asarray(operation.attributes["value"])
            if not value.size or value.tobytes() != value.reshape(-1)[:1].tobytes() * value.size:
                return None
            described += [value.dtype.name, value.reshape(-1)[:1].tobytes().hex()]
        known[operation.results[0]] = numbers.setdefault("|".join(described), len(numbers))
    return blake2b("\n".join(numbers).encode(), digest_size=12).hexdigest()


def _ordered(last: Operation, sources: Mapping[Value, Operation]) -> list[Operation]:
    """The operations that a result is computed by, from the parts of complex numbers on, each after its operands."""
    ordered: dict[Operation, None] = {}
    waiting = [(last, False)]
    while waiting and len(ordered) <= _MOST:
        operation, is_done = waiting.pop()
        if operation in ordered:
            continue
        if is_done:
            ordered[operation] = None
            continue
        waiting.append((operation, True))
        if operation.name not in _PARTS:
            waiting += [(sources[value], False) for value in reversed(_read(operation)) if value in sources]
    return list(ordered)


def _read(operation: Operation) -> tuple[Value, ...]:
    """The operands but for the sizes of a broadcast."""
    return operation.operands[:1] if operation.name in _BROADCASTS else operation.operands


def _is_complex(value: Value) -> bool:
    return isinstance(value.type, TensorType) and str(value.type.dtype.name).startswith("complex")
