"""TFLite models whose operations run in another one, before its own: what they find nobody reads, but they may fail.

TFLite's interpreter runs all operations of a model in their order, also those whose results nobody reads, which its
converter leaves out. So what is to run first is converted by itself, and its operations put before the others here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtf.convert import _tf

__all__ = ["operations_of", "run_first"]

# As the schema has it: of an operation that has no operand there.
_ABSENT = -1


def run_first(first: bytes, model: bytes) -> bytes:
    """A model that gives the results of another one if the first one can be run on its inputs, by their names."""
    target = _tf.tflite_model(model)
    [signature] = target.signatureDefs
    main = target.subgraphs[signature.subgraphIndex]
    inputs = {one.name: one.tensorIndex for one in signature.inputs}
    main.operators = [*operations_of(first, target, main, inputs), *(main.operators or [])]
    return _tf.tflite_bytes(target)


def operations_of(first: bytes, target: Any, graph: Any, inputs: Mapping[bytes, int]) -> list[Any]:
    """The operations of a model for a graph of another one, which gets what they take and give.

    Args:
      first: The model.
      target: The other one.
      graph: One of its graphs.
      inputs: The tensors of that by the names of the inputs of the model.
    """
    source = _tf.tflite_model(first)
    [own], [signature] = source.subgraphs, source.signatureDefs
    places = {one.tensorIndex: inputs[one.name] for one in signature.inputs}
    for index, tensor in enumerate(own.tensors):
        if index not in places:
            target.buffers.append(source.buffers[tensor.buffer])
            tensor.buffer = len(target.buffers) - 1
            tensor.name = b"jaxtf_sizes/" + tensor.name
            places[index] = len(graph.tensors)
            graph.tensors.append(tensor)
    codes = [_code(target, code) for code in source.operatorCodes]
    for operator in own.operators:
        operator.opcodeIndex = codes[operator.opcodeIndex]
        operator.inputs = [places.get(index, _ABSENT) for index in operator.inputs]
        operator.outputs = [places[index] for index in operator.outputs]
    operations: list[Any] = own.operators
    return operations


def _code(model: Any, code: Any) -> int:
    """The place of a kind of operation among those of a model; it is added if it is not there."""
    for index, other in enumerate(model.operatorCodes or []):
        if (other.builtinCode, other.version, other.customCode) == (code.builtinCode, code.version, code.customCode):
            return index
    model.operatorCodes = [*(model.operatorCodes or []), code]
    return len(model.operatorCodes) - 1
