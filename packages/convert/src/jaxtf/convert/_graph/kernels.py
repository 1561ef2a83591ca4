"""Dtypes that few kernels of TensorFlow take: what none takes is refused when it is emitted, not when it runs.

A loop or a branch with such a value runs as a function: TensorFlow makes of others operations that have no kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import MOVED, UNCAST
from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._tf import has_kernel, run_as_function
from jaxtf.serialization.interop import Operation, TensorType

__all__ = ["FEW_KERNELS", "check_computes", "check_kernels", "takes_few_kernels", "without_switches"]

FEW_KERNELS = frozenset((*MOVED, *UNCAST))
# They compute nothing with the elements that they take. TensorFlow has no others of what it does not cast.
_NAMES = """
    bitcast_convert broadcast broadcast_in_dim case composite concatenate convert dynamic_broadcast_in_dim
    dynamic_gather dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather get_dimension_size
    get_tuple_element if iota optimization_barrier pad real_dynamic_slice reshape reverse select set_dimension_size
    slice torch_index_select transpose tuple while
"""
_MOVE_ELEMENTS = frozenset(f"stablehlo.{name}" for name in _NAMES.split()) | {
    *("func.call", "custom_call.Sharding", "custom_call.xla.sdy.FuncResultSharding"),
    *("custom_call.annotate_device_placement", "custom_call.tf.call_tf_function"),
}
_BRANCHES = frozenset(("If", "StatelessIf", "While", "StatelessWhile"))


def takes_few_kernels(operation: Operation) -> bool:
    """Whether an operand or a result is of such a dtype."""
    return any(dtype in FEW_KERNELS for dtype in _dtypes(operation))


def _dtypes(operation: Operation) -> Iterator[tf.DType]:
    types = (value.type for value in (*operation.operands, *operation.results))
    return (type_.dtype for type_ in types if isinstance(type_, TensorType))


def check_computes(operation: Operation) -> None:
    """Refuses an operation of the program that computes with what TensorFlow does not cast.

    Raises:
      GraphModeUnsupported: It is one.
    """
    if operation.name in _MOVE_ELEMENTS or not operation.name.startswith(("stablehlo.", "chlo.", "custom_call.")):
        return
    uncast = next((dtype for dtype in _dtypes(operation) if dtype in UNCAST), None)
    if uncast is not None:
        raise unsupported(operation, f"TensorFlow computes nothing with {uncast.name}")


def check_kernels(operation: Operation, made: Sequence[tf.Operation]) -> None:
    """Refuses an operation of the program if an operation of TensorFlow that was made of it runs nowhere.

    Raises:
      GraphModeUnsupported: There is no kernel for the dtypes.
    """
    for node in made:
        few = [x.dtype.base_dtype for x in (*node.inputs, *node.outputs) if x.dtype.base_dtype in FEW_KERNELS]
        if few and not has_kernel(node):
            raise unsupported(operation, f"TensorFlow has no {node.type} of {few[0].name}")


def without_switches(results: Sequence[tf.Tensor]) -> None:
    """Has a loop or a branch that takes or gives such dtypes run as a function; given its results."""
    if tf.executing_eagerly() or not results:
        return
    node = results[0].op
    while node.type == "Identity":
        node = node.inputs[0].op
    if node.type in _BRANCHES and any(x.dtype.base_dtype in FEW_KERNELS for x in (*node.inputs, *node.outputs)):
        run_as_function(node)
