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

__all__ = ["candidates", "digest", "is_known", "operations_of_complex_function"]

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
_PARTS = ("stablehlo.real", "stablehlo.imag")
_LAST = ("stablehlo.complex", "stablehlo.select")
_ATTRIBUTES = ("comparison_direction", "compare_type", "result_accuracy")
# By the digest of what JAX 0.10.2 and 0.12.0.1 write; tests/_lift/complex_functions_table.py prints it.
_NAMES = {
    "112724ec3e728e11a15faf38": "chlo.acos",
    "3af9569171935f23b02a792e": "chlo.acos",
    "9e350d016742f921066c23e1": "chlo.acosh",
    "f13e734278f80434b0c93f19": "chlo.acosh",
    "f3382c5ac420a58542f3c233": "chlo.asin",
    "abf9724d7088b49c2aba7b00": "chlo.asin",
    "33a48f5c78f116f414ff6590": "chlo.asinh",
    "e4173b9ed9aaf463e43b90d1": "chlo.asinh",
    "50ea0233743c53eacb64e042": "chlo.atanh",
    "f5868a50d21f1c5898b70b9d": "chlo.atanh",
    "5430ad92017ad9731e21302f": "stablehlo.cosine",
    "ecd71e68657f99c2ed8a388a": "stablehlo.cosine",
    "c6f8389eee6f8e0b3264d22d": "stablehlo.exponential",
    "7ca28370d3b47515b6fa1531": "stablehlo.exponential",
    "d734161a3b09a3582bc5c981": "stablehlo.log",
    "5f3fabd6bc719a77af262434": "stablehlo.log",
    "4e1d80da4ceedaa6d6a83378": "stablehlo.log_plus_one",
    "625fe091bf1b743bd27e3061": "stablehlo.log_plus_one",
    "d6868dba80b941db77ef9949": "stablehlo.sine",
    "f4ebcf487a47197f92fe1755": "stablehlo.sine",
    "edc7fef96688a8b748cdd371": "stablehlo.sqrt",
    "e638acec3d31c27ce71500c4": "stablehlo.sqrt",
    "b8d41d6309525fbd5e30549a": "chlo.square",
    "f424a479f3ce9067126a2251": "chlo.square",
}
# More operations than any of them is written out as.
_MOST = 400
# The one of the function; and the one that it is computed by, put together: `asin` ends with signs that are its own.
_MOST_ARGUMENTS = 2
# All that they consist of; each has one result, and is a function of each element but for broadcasts.
_OPERATIONS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs",
        "add",
        "and",
        "atan2",
        "broadcast_in_dim",
        "compare",
        "complex",
        "constant",
        "cosine",
        "divide",
        "dynamic_broadcast_in_dim",
        "exponential",
        "exponential_minus_one",
        "imag",
        "is_finite",
        "log",
        "log_plus_one",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "real",
        "select",
        "sine",
        "sqrt",
        "subtract",
    )
)


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
    for argument in candidates(last, sources):
        name = _NAMES.get(digest(last, argument, sources) or "")
        ordered = () if name is None else _ordered(last, sources, argument)
        if name is not None and all(each in within or each.name == "stablehlo.constant" for each in ordered):
            return argument, tuple(ordered), name
    return None


def is_known(found: str) -> bool:
    """Whether a digest is that of a function with a name."""
    return found in _NAMES


def candidates(last: Operation, sources: Mapping[Value, Operation]) -> tuple[Value, ...]:
    """The complex numbers whose parts the operations up to a last one take; none if they are too many."""
    parts = [each for each in _ordered(last, sources) if each.name in _PARTS]
    arguments = tuple(dict.fromkeys(each.operands[0] for each in parts))
    return arguments if len(arguments) <= _MOST_ARGUMENTS else ()


def digest(last: Operation, argument: Value, sources: Mapping[Value, Operation]) -> str | None:
    """What the operations from parts to a result are alike by, whatever their shapes; None where more is used.

    Only what is the same in each element may be broadcast: parts that are, are parts of other numbers.
    """
    numbers: dict[str, int] = {}
    known: dict[Value, int] = {argument: -1}
    uniform: set[Value] = set()
    ordered = _ordered(last, sources, argument)
    if not any(operation.name in _PARTS for operation in ordered):
        return None
    for operation in ordered:
        read = _read(operation)
        if not all(value in known for value in read):
            return None
        [result] = operation.results
        given = tuple(known[value] for value in read)
        if uniform.issuperset(read):
            uniform.add(result)
        if operation.name in _BROADCASTS:
            if result not in uniform:
                return None
            known[result] = given[0]
            continue
        described = [operation.name, *(str(operation.attributes.get(name, "")) for name in _ATTRIBUTES), str(given)]
        if operation.name == "stablehlo.constant":
            value = np.asarray(operation.attributes["value"])
            if not value.size or value.tobytes() != value.reshape(-1)[:1].tobytes() * value.size:
                return None
            described += [value.dtype.name, value.reshape(-1)[:1].tobytes().hex()]
        known[result] = numbers.setdefault("|".join(described), len(numbers))
    return blake2b("\n".join(numbers).encode(), digest_size=12).hexdigest()


def _ordered(
    last: Operation, sources: Mapping[Value, Operation], argument: Value | None = None
) -> tuple[Operation, ...]:
    """The operations that a result is computed by, from the parts of complex numbers on, each after its operands.

    From those of the argument on, if one is given: in between, numbers may be put together and taken apart again.
    Empty where there are others than such functions consist of, or too many.
    """
    ordered: dict[Operation, None] = {}
    entered: set[Operation] = set()
    waiting = [(last, False)]
    while waiting:
        operation, is_done = waiting.pop()
        if is_done:
            ordered[operation] = None
            continue
        if operation in entered:
            continue
        entered.add(operation)
        if operation.name not in _OPERATIONS or len(entered) > _MOST:
            return ()
        waiting.append((operation, True))
        if operation.name not in _PARTS or (argument is not None and operation.operands[0] is not argument):
            waiting += [(sources[value], False) for value in reversed(_read(operation)) if value in sources]
    return tuple(ordered)


def _read(operation: Operation) -> tuple[Value, ...]:
    """The operands but for the sizes of a broadcast."""
    return operation.operands[:1] if operation.name in _BROADCASTS else operation.operands


def _is_complex(value: Value) -> bool:
    return isinstance(value.type, TensorType) and str(value.type.dtype.name).startswith("complex")
