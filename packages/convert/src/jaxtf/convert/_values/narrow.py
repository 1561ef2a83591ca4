"""Dtypes narrower than a byte, where TensorFlow compiles.

TensorFlow holds each of their elements in a byte; XLA packs several into one. TensorFlow 2.21 passes the bytes of the
one for those of the other: arguments and results of what it compiles are wrong, in silence or up to reading beyond the
array. Within what is compiled they are right. So native mode passes int4 and uint4 as int8 and uint8 into the function
that is compiled with its op, and narrows there. What it cannot do so is refused: the other narrow dtypes, which
TensorFlow casts to nothing, and `tf.function(jit_compile=True)`, whose arguments and results are the user's.
`test_narrow.py` looks whether TensorFlow still has the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ArgumentTypeError, ResultTypeError
from jaxtf.convert._values.dtypes import tf_dtype

__all__ = ["check_boundary", "check_not_compiled", "check_passable", "has_narrow", "passed", "passed_as", "received"]

# TensorFlow casts the first two, and no others; it has the dtypes of 2 bits from 2.20 on.
_CARRIERS = {tf.as_dtype("int4"): tf.int8, tf.as_dtype("uint4"): tf.uint8}
_NARROW = frozenset(("int2", "int4", "uint2", "uint4", "float4_e2m1fn"))


def has_narrow(dtypes: Sequence[tf.DType]) -> bool:
    """Whether one of them is narrower than a byte."""
    return any(dtype.name in _NARROW for dtype in dtypes)


def passed_as(dtype: tf.DType) -> tf.DType:
    """The dtype in which elements of a dtype go into and out of what TensorFlow compiles."""
    return _CARRIERS.get(dtype, dtype)


def passed(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The tensors as they go into and out of what TensorFlow compiles."""
    return received(tensors, [passed_as(tensor.dtype) for tensor in tensors])


def received(tensors: Sequence[tf.Tensor], dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """The tensors that were passed so, in the dtypes that they had."""
    return [
        tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
        for tensor, dtype in zip(tensors, dtypes, strict=True)
    ]


def check_passable(exported: Any) -> None:
    """Refuses dtypes that cannot be passed to what TensorFlow compiles.

    Raises:
      ArgumentTypeError, ResultTypeError: An argument or result has one.
    """
    for name, dtype, error in _narrow_of(exported):
        if dtype not in _CARRIERS:
            raise error(
                f"{name} of '{exported.fun_name}' has dtype {dtype.name}, which TensorFlow {tf.__version__} neither "
                "compiles nor casts\n"
                "  remedy: let the function take and return int8 or float8, and narrow inside with astype"
            )


def check_not_compiled(exported: Any) -> None:
    """Refuses arguments and results narrower than a byte where a graph is being traced that is to be compiled.

    Raises:
      ArgumentTypeError, ResultTypeError: An argument or result has such a dtype.
    """
    if _tf.traces_compiled():
        for name, dtype, error in _narrow_of(exported):
            raise error(_not_compiled(f"{name} of '{exported.fun_name}'", dtype))


def check_boundary(name: str, arguments: Iterable[tf.DType], results: Iterable[tf.DType]) -> None:
    """The same for a function of flat arguments and results.

    Raises:
      ArgumentTypeError, ResultTypeError: As `check_not_compiled`.
    """
    if _tf.traces_compiled():
        for kind, dtypes, error in (("argument", arguments, ArgumentTypeError), ("result", results, ResultTypeError)):
            for index, dtype in enumerate(dtypes):
                if has_narrow([dtype]):
                    raise error(_not_compiled(f"{kind} {index} of '{name}'", dtype))


def _not_compiled(what: str, dtype: tf.DType) -> str:
    return (
        f"{what} has dtype {dtype.name}: TensorFlow {tf.__version__} passes elements narrower than a byte wrongly to "
        "and from tf.function(jit_compile=True)\n"
        "  remedy: let the function take and return int8, and narrow inside with astype; or leave out "
        "jit_compile=True: in native mode the converted function is compiled anyway"
    )


def _narrow_of(exported: Any) -> list[tuple[str, tf.DType, type[Exception]]]:
    """Name, dtype and class of error of the narrow arguments and results."""
    arguments = zip(exported.in_names, exported.in_avals, strict=True)
    results = zip(exported.out_names, exported.out_avals, strict=True)
    found = [
        *((name, tf_dtype(aval.dtype), ArgumentTypeError) for name, aval in arguments),
        *((name, tf_dtype(aval.dtype), ResultTypeError) for name, aval in results),
    ]
    return [narrow for narrow in found if has_narrow([narrow[1]])]
