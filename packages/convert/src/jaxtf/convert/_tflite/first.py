"""One TFLite model run before another one, of the same inputs: of the first, which may fail, nobody reads the results.

TFLite's interpreter runs all operations of a model in their order, also those whose results nobody reads, which its
converter leaves out. So what is to run first is converted by itself, and its operations put before the others here.
"""

from __future__ import annotations

from typing import Any

from jaxtf.convert import _tf

__all__ = ["run_first"]

# As the schema has it: of an operation that has no operand there.
_ABSENT = -1


def run_first(first: bytes, model: bytes) -> bytes:
    """A model that gives the results of another one if the first one can be run on its inputs, by their names."""
    source, target = _tf.tflite_model(first), _tf.tflite_model(model)
    [graph] = source.subgraphs
    main = target.subgraphs[target.signatureDefs[0].subgraphIndex]
    inputs = {one.name: one.tensorIndex for one in target.signatureDefs[0].inputs}
    places = {one.tensorIndex: inputs[one.name] for one in source.signatureDefs[0].inputs}
    buffers: dict[int, int] = {}
    for index, tensor in enumerate(graph.tensors):
        if index in places:
            continue
        if tensor.buffer not in buffers:
            buffers[tensor.buffer] = len(target.buffers)
            target.buffers.append(source.buffers[tensor.buffer])
        tensor.buffer = buffers[tensor.buffer]
        tensor.name = b"jaxtf_sizes/" + tensor.name
        places[index] = len(main.tensors)
        main.tensors.append(tensor)
    codes = [_code(target, code) for code in source.operatorCodes]
    for operator in graph.operators:
        operator.opcodeIndex = codes[operator.opcodeIndex]
        operator.inputs = [places.get(index, _ABSENT) for index in operator.inputs]
        operator.outputs = [places[index] for index in operator.outputs]
    main.operators = [*graph.operators, *(main.operators or [])]
    return _tf.tflite_bytes(target)


def _code(model: Any, code: Any) -> int:
    """The place of a kind of operation among those of a model; it is added if it is not there."""
    for index, other in enumerate(model.operatorCodes or []):
        if (other.builtinCode, other.version, other.customCode) == (code.builtinCode, code.version, code.customCode):
            return index
    model.operatorCodes = [*(model.operatorCodes or []), code]
    return len(model.operatorCodes) - 1
