"""Operations on batches of images: convolutions, pools, resizes, batch normalization."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import constant_size, require_same
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value

_NORMALIZATIONS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
# Which operands and which results have a leading axis that may be symbolic, and which operands must be constant when
# TensorFlow compiles; all other sizes are numbers.
_BATCHED: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv"), ((0,), (0,), ())),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "DepthToSpace", "SpaceToDepth"), ((0,), (0,), ())),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), ((2,), (0,), (0,))),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), ((0, 2), (), (1,))),
    "DepthwiseConv2dNativeBackpropInput": ((2,), (0,), (0,)),
    "DepthwiseConv2dNativeBackpropFilter": ((0, 2), (), (1,)),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), ((0, 1, 2), (0,), ())),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), ((1,), (0,), (0,))),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor"), ((0,), (0,), (1,))),
    "ResizeBilinearGrad": ((0, 1), (0,), ()),
    "ResizeNearestNeighborGrad": ((0,), (0,), (1,)),
    **dict.fromkeys(_NORMALIZATIONS, ((0,), (0,), ())),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), ((0, 1), (0,), ())),
}


@rule(*_BATCHED)
def batched(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The leading axis may be symbolic, all other sizes are numbers, and the kernel does not look at that axis."""
    operands, results, constants = _BATCHED[op.type]
    batch = inputs[operands[0]].shape[0]
    for index, value in enumerate(inputs):
        if index in operands:
            require_same(i, op, (batch,), value.shape[:1])
        for size in value.shape[1 if index in operands else 0 :]:
            constant_size(i, op, size)
    if op.type in _NORMALIZATIONS and op.get_attr("is_training") and is_symbolic(batch):
        raise i.refused(
            op,
            "is training, and compiled with the quotient of a size and another one for its variance,",
            "use tf.nn.moments and tf.nn.batch_normalization",
        )
    tensors = i.compiled(op, inputs, constants)
    if op.type == "FusedBatchNormV3":
        tensors[5] = tf.ensure_shape(tensors[5], [0])  # TensorFlow infers no rank for it, and computes nothing
    shapes = [x.shape.as_list() for x in tensors]
    return [
        i.value(x, (batch, *shape[1:]) if index in results else tuple(shape))
        for index, (x, shape) in enumerate(zip(tensors, shapes, strict=True))
    ]
