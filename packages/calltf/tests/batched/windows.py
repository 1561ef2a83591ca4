"""Convolutions, pools, normalizations, images."""

import numpy as np
import tensorflow as tf

from .operation import Operand, Operation, of

RAW = tf.raw_ops
# Before 2.21 a gradient of a gradient takes the first of equal maxima, or in JAX's XLA another one of them.
IS_OLDER = tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 21)


@of("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")
def convolution(name, d):
    groups, kernel = d.one_of(1, 1, 2), (d.size(1, 2), d.size(1, 2), d.size(1, 2))
    stride, dilation = (d.size(1, 2), 1) if d.chance() else (1, d.size(1, 2))
    attributes = {"strides": [1, stride, stride, 1], "dilations": [1, dilation, dilation, 1]}
    attributes["padding"] = d.one_of("SAME", "VALID", "EXPLICIT")
    if attributes["padding"] == "EXPLICIT":
        attributes["explicit_paddings"] = [0, 0, d.size(1, 2), 1, 1, d.size(1, 2), 0, 0]
    operand = (d.size(1, 2), d.size(3, 5), d.size(3, 5), groups * kernel[2])
    kernel = (*kernel, groups * d.size(1, 2))
    return _of_kernel(name, d, (operand, kernel), RAW.Conv2D, attributes)


@of("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput")
def depthwise(name, d):
    stride, channels = d.size(1, 2), d.size()
    attributes = {"strides": [1, stride, stride, 1], "padding": d.one_of("SAME", "VALID")}
    operand = (d.size(1, 2), d.size(2, 5), d.size(2, 5), channels)
    kernel = (d.size(1, 2), d.size(1, 2), channels, d.size(1, 2))
    return _of_kernel(name, d, (operand, kernel), RAW.DepthwiseConv2dNative, attributes)


def _of_kernel(name, d, shapes, forward, attributes):
    operand, kernel = shapes
    result = forward(input=tf.zeros(operand), filter=tf.zeros(kernel), **attributes)
    if name.endswith("Input"):
        operands = [d.fixed(operand), d.operand(kernel), d.operand(tuple(result.shape))]
    elif name.endswith("Filter"):
        operands = [d.operand(operand), d.fixed(kernel), d.operand(tuple(result.shape))]
    else:
        operands = [d.operand(operand), d.operand(kernel)]
    return Operation(name, operands, attributes)


def _pool(name, d):
    """The shape of an operand, and attributes."""
    count = 3 if "3D" in name else 2
    window, stride = d.size(1, 2), d.size(1, 2)
    attributes = {"ksize": [1, *[window] * count, 1], "strides": [1, *[stride] * count, 1]}
    shape = (d.size(1, 2), *(d.size(2, 4) for _ in range(count)), d.size(1, 2))
    return shape, attributes | {"padding": d.one_of("SAME", "VALID")}


def _pooled(operand, attributes):
    """Maxima and averages."""
    if operand.ndim == 5:
        return RAW.MaxPool3D(input=operand, **attributes), RAW.AvgPool3D(input=operand, **attributes)
    return RAW.MaxPool(input=operand, **attributes), RAW.AvgPool(value=operand, **attributes)


@of("AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D")
def pool(name, d):
    shape, attributes = _pool(name, d)
    return Operation(name, [d.operand(shape)], attributes)


@of("MaxPoolV2")
def pool_by_operands(name, d):
    shape, attributes = _pool(name, d)
    sizes = [d.fixed(attributes.pop("ksize")), d.fixed(attributes.pop("strides"))]
    return Operation(name, [d.operand(shape), *sizes], attributes)


@of("AvgPool3DGrad", "AvgPoolGrad")
def average_gradient(name, d):
    shape, attributes = _pool(name, d)
    result = _pooled(tf.zeros(shape), attributes)[1]
    return Operation(name, [d.fixed(shape), d.operand(tuple(result.shape))], attributes)


@of("MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradV2")
def maximum_gradient(name, d):
    shape, attributes = _pool(name, d)
    operand = d.made(lambda: _distinct(d, shape)) if "GradGrad" in name and IS_OLDER else d.operand(shape)
    elements = operand.values if operand.batched else operand.values[None]
    maxima = tf.stack([_pooled(tf.constant(element), attributes)[0] for element in elements]).numpy()
    inner = shape if "GradGrad" in name else maxima.shape[1:]
    operands = [operand, Operand(maxima if operand.batched else maxima[0], operand.batched), d.operand(inner)]
    if name.endswith("V2"):
        operands += [d.fixed(attributes.pop("ksize")), d.fixed(attributes.pop("strides"))]
    return Operation(name, operands, attributes)


def _distinct(d, shape):
    count = int(np.prod(shape))
    return np.asarray(d.order(range(count)), np.float32).reshape(shape) - count // 2


@of("FusedBatchNormGradV3", "FusedBatchNormV3")
def batch_norm(name, d):
    shape = d.shape(4, 4)
    vector = shape[-1:]
    attributes = {"epsilon": 0.1, "is_training": d.chance()}
    vectors = [d.operand(vector), d.operand(vector), d.operand(vector, low=1)]
    if name == "FusedBatchNormV3":
        attributes["exponential_avg_factor"] = d.one_of(1.0, 0.25)
        return Operation(name, [d.operand(shape), d.operand(vector), *vectors], attributes, (0, 1, 2))
    operands = [d.operand(shape), d.operand(shape), *vectors, d.fixed([], "float32")]
    return Operation(name, operands, attributes, (0, 1, 2))


@of("SoftmaxCrossEntropyWithLogits")
def cross_entropy(name, d):
    count, classes = d.size(), d.size()
    return Operation(name, [d.operand((count, classes)), d.operand((d.one_of(1, count), classes), low=0)])


@of("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(name, d):
    count, classes = d.size(), d.size()
    labels = d.operand((count,), d.one_of("int32", "int64"), 0, classes - 1)
    return Operation(name, [d.operand((count, classes)), labels])


@of("AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def images(name, d):
    return Operation(
        name, [d.operand((*d.shape(0, 1), 2, 3, 3), low=0, high=1), d.fixed(d.one_of(0.3, 0.5), "float32")]
    )
