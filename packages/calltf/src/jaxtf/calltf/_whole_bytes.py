"""Dtypes narrower than a byte, at the boundary of a function that TensorFlow compiles within a graph.

TensorFlow holds each of their elements in a byte; XLA packs several into one. TensorFlow 2.21 passes the bytes of the
one for those of the other into and out of what it compiles; within that they are right. So int4 and uint4 pass as int8
and uint8 here, and are narrowed inside. It casts no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._tf import hidden_from_debuggers, outside_of_graphs

__all__ = ["in_whole_bytes"]

_CARRIERS = {tf.as_dtype("int4"): tf.int8, tf.as_dtype("uint4"): tf.uint8}
_OTHERS = ("int2", "uint2", "float4_e2m1fn")


def in_whole_bytes(name: str, function: str, concrete: Any) -> Any:
    """A concrete function that TensorFlow compiles, or one that has its results and is compiled but for its boundary.

    Args:
      name: Of what is made.
      function: What the user calls it.
      concrete: One that captures nothing and is compiled.

    Raises:
      UnsupportedError: An argument or result is of a narrow dtype that TensorFlow does not cast.
    """
    dtypes, wanted = ([tensor.dtype for tensor in tensors] for tensors in (concrete.inputs, concrete.outputs))
    if others := [dtype.name for dtype in (*dtypes, *wanted) if dtype.name in _OTHERS]:
        raise UnsupportedError(
            f"call_tf: {function} has an argument or result of dtype {others[0]}, which TensorFlow {tf.__version__} "
            "passes wrongly to and from what it compiles in a graph\n"
            "  remedy: let the function take and return int8 or float8, and narrow inside"
        )
    if _CARRIERS.keys().isdisjoint((*dtypes, *wanted)):
        return concrete

    def narrowed(*tensors: Any) -> list[Any]:
        return _as([*map(_carrier, wanted)], concrete(*_as(dtypes, tensors)))

    def whole(*tensors: Any) -> list[Any]:
        return _as(wanted, compiled(*_as([*map(_carrier, dtypes)], tensors)))

    whole.__name__ = name
    shapes = [tensor.shape for tensor in concrete.inputs]
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    carried = [tf.TensorSpec(shape, _carrier(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    with outside_of_graphs(), hidden_from_debuggers():
        compiled = _traced(narrowed, carried, compile_it=True)
        return _traced(whole, specs, compile_it=None)


def _traced(body: Callable[..., Any], specs: Sequence[Any], *, compile_it: bool | None) -> Any:
    return tf.function(body, autograph=False, jit_compile=compile_it).get_concrete_function(*specs)


def _carrier(dtype: Any) -> Any:
    return _CARRIERS.get(dtype, dtype)


def _as(dtypes: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    return [x if x.dtype == dtype else tf.cast(x, dtype) for dtype, x in zip(dtypes, tensors, strict=True)]
