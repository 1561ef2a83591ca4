"""Operations that move elements, or say how many there are."""

import numpy as np
import tensorflow as tf
from hypothesis import reject

from .operation import Operation, of

ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


@of("Reshape")
def reshape(name, d):
    shape = d.shape()
    return Operation(name, [d.operand(shape), d.index(d.one_of([-1], [*shape, 1], [1, -1], shape[::-1]))])


@of("Fill")
def fill(name, d):
    return Operation(name, [d.index(d.shape(low=0)), d.operand(())])


@of("BroadcastTo")
def broadcast(name, d):
    shape = d.shape(0, 2)
    return Operation(name, [d.operand(shape), d.index([*d.shape(0, 2), *(d.size() if n == 1 else n for n in shape)])])


@of("ExpandDims")
def expand(name, d):
    shape = d.shape()
    return Operation(name, [d.operand(shape), d.index(d.size(-len(shape) - 1, len(shape)))])


@of("Squeeze")
def squeeze(name, d):
    shape = d.shape(1, 4, high=2)
    ones = d.some_of([axis for axis, n in enumerate(shape) if n == 1])
    return Operation(name, [d.operand(shape)], {"axis": [axis - len(shape) if d.chance() else axis for axis in ones]})


@of("ConjugateTranspose", "Transpose")
def transpose(name, d):
    """TensorFlow compiles a ConjugateTranspose of real numbers wrongly, batch or not; its own functions have none."""
    shape = d.shape(1, 4)
    dtype = "complex64" if name[0] == "C" else d.one_of("float32", "complex64")
    return Operation(name, [d.operand(shape, dtype), d.index(d.order(range(len(shape))))])


@of("Tile")
def tile(name, d):
    shape = d.shape(1)
    return Operation(name, [d.operand(shape), d.index([d.size(0, 3) for _ in shape])])


@of("Pack")
def pack(name, d):
    shape = d.shape()
    return Operation(name, [[d.operand(shape), d.operand(shape)]], {"axis": d.size(-len(shape) - 1, len(shape))})


@of("Unpack")
def unpack(name, d):
    shape = d.shape(1)
    axis = d.axis(shape)
    return Operation(name, [d.operand(shape)], {"num": shape[axis], "axis": axis})


@of("Pad", "PadV2")
def pad(name, d):
    shape, dtype = d.shape(1), d.one_of("float32", "int32")
    value = d.fixed(d.size(0, 5), dtype) if d.chance() else d.operand((), dtype)
    operands = [d.operand(shape, dtype), d.index([[d.size(0, 2), d.size(0, 2)] for _ in shape]), value]
    return Operation(name, operands if name == "PadV2" else operands[:2])


@of("Split")
def split(name, d):
    shape = d.shape(1)
    axis = d.axis(shape)
    return Operation(name, [d.fixed(axis), d.operand(shape)], {"num_split": d.one_of(1, shape[axis])})


@of("SplitV")
def split_by_sizes(name, d):
    shape = d.shape(1)
    axis = d.axis(shape)
    first = d.size(0, shape[axis])
    sizes = d.index([first, d.one_of(-1, shape[axis] - first)])
    return Operation(name, [d.operand(shape), sizes, d.fixed(axis)], {"num_split": 2})


@of("ReverseV2")
def reverse(name, d):
    shape = d.shape(1)
    return Operation(name, [d.operand(shape), d.index(d.axes(shape))])


@of("Roll")
def roll(name, d):
    shape = d.shape(1)
    axes = [d.axis(shape) for _ in range(d.size(1, 2))]
    if d.chance():
        return Operation(name, [d.operand(shape), d.operand((), "int32", -4, 4), d.index(axes[0])])
    return Operation(name, [d.operand(shape), d.operand((len(axes),), "int32", -4, 4), d.index(axes)])


@of("ConcatV2")
def concat(name, d):
    shape = d.shape(1)
    axis, other = d.axis(shape), list(shape)
    other[axis] = d.size(0, 3)
    return Operation(name, [[d.operand(shape), d.operand(tuple(other))], d.index(axis)])


@of("OneHot")
def one_hot(name, d):
    indices = d.operand(d.shape(0, 2), d.one_of("int32", "int64", "uint8"), -1, 3)
    axis = d.size(-1, indices.values.ndim - indices.batched)
    values = [d.fixed(d.size(0, 3), "float32") if d.chance() else d.operand(()) for _ in range(2)]
    return Operation(name, [indices, d.fixed(d.size(0, 3)), *values], {"axis": axis})


@of("Slice")
def slices(name, d):
    shape = d.shape(1)
    size = [d.size(0, n) for n in shape]

    def begin():
        return np.array([d.size(0, n - length) for n, length in zip(shape, size, strict=True)], "int32")

    if d.chance():
        return Operation(name, [d.operand(shape), d.made(begin), d.fixed(size)])
    return Operation(name, [d.operand(shape), d.fixed(begin()), d.fixed([-1 if d.chance(4) else n for n in size])])


@of("StridedSlice", "StridedSliceGrad")
def strided_slices(name, d):
    """TensorFlow compiles a gradient of nothing to another shape, or not at all, batch or not."""
    shape = d.shape(1)
    count = d.size(1, len(shape) + 1)
    masks = {
        "begin_mask": d.size(0, 2**count - 1),
        "end_mask": d.size(0, 2**count - 1),
        "ellipsis_mask": 2 ** d.size(0, count - 1) if d.chance(3) else 0,
        "new_axis_mask": d.size(0, 2**count - 1) if d.chance() else 0,
        "shrink_axis_mask": d.size(0, 2**count - 1) if d.chance() else 0,
    }
    ends = [d.fixed([d.size(-3, 3) for _ in range(count)]), d.fixed([d.size(-3, 4) for _ in range(count)])]
    strides = d.fixed([d.one_of(1, 1, 2, -1, -2) for _ in range(count)])
    forward = Operation("StridedSlice", [d.operand(shape), *ends, strides], masks)
    try:
        [result] = forward(tf.zeros(shape))
    except tf.errors.InvalidArgumentError:
        reject()
    if name == "StridedSlice":
        return forward
    if 0 in result.shape:
        reject()
    return Operation(name, [d.fixed(shape), *ends, strides, d.operand(tuple(result.shape))], masks)


@of("Gather")
def rows(name, d):
    shape = d.shape(1)
    return Operation(name, [d.operand(shape), d.operand(d.shape(0, 2), "int32", 0, shape[0] - 1)])


@of("GatherV2")
def gather(name, d):
    shape = d.shape(1)
    axis = d.axis(shape)
    batch_dims = d.size(0, axis % len(shape)) if d.chance() else 0
    indices = (*shape[:batch_dims], *d.shape(0, 2))
    if batch_dims < len(indices) and d.chance(4):
        batch_dims -= len(indices)
    operands = [d.operand(shape), d.operand(indices, "int32", 0, shape[axis] - 1), d.index(axis)]
    return Operation(name, operands, {"batch_dims": batch_dims})


@of("GatherNd")
def gather_by_vectors(name, d):
    shape, indices = d.shape(1), d.shape(0, 2)
    walked = shape[: d.size(0, len(shape))]

    def vectors():
        return np.stack([d.numbers(indices, "int32", 0, n - 1) for n in walked] or np.zeros((0, *indices), "int32"), -1)

    if not walked:
        reject()
    return Operation(name, [d.operand(shape), d.made(vectors)])


@of("TensorScatterUpdate")
def scatter(name, d):
    """No two of one place: which of them stays is not defined."""
    shape = d.shape(1)
    walked = shape[: d.size(1, len(shape))]
    count = d.size(1, int(np.prod(walked)))

    def vectors():
        places = d.order(range(int(np.prod(walked))))[:count]
        return np.stack(np.unravel_index(places, walked), -1).astype("int32")

    return Operation(name, [d.operand(shape), d.made(vectors), d.operand((count, *shape[len(walked) :]))])


@of("MatrixBandPart")
def band(name, d):
    sizes = [d.fixed(d.size(-1, 1), "int64"), d.fixed(d.size(-1, 1), "int64")]
    return Operation(name, [d.operand(d.shape(2, 4)), *sizes])


@of("Diag", "DiagPart", "MatrixDiag", "MatrixDiagPart")
def diagonals(name, d):
    shape = {"Diag": (1, 2), "DiagPart": (1, 2), "MatrixDiag": (1, 3), "MatrixDiagPart": (2, 4)}[name]
    return Operation(name, [d.operand(d.shape(*shape) * (2 if name == "DiagPart" else 1))])


@of("MatrixSetDiag")
def set_diagonal(name, d):
    shape = d.shape(2)
    return Operation(name, [d.operand(shape), d.operand((*shape[:-2], min(shape[-2:])))])


@of("MatrixDiagV2", "MatrixDiagV3")
def of_diagonals(name, d):
    low, more = d.size(-2, 2), d.size(0, 1)
    shape = (*d.shape(0, 1), *([more + 1] if more else []), d.size())
    operands = [
        d.operand(shape),
        d.fixed([low, low + more]),
        d.fixed(-1),
        d.fixed(-1),
        d.fixed(d.size(0, 7), "float32"),
    ]
    return Operation(name, operands, _alignment(name, d))


@of("MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixSetDiagV2", "MatrixSetDiagV3")
def several_diagonals(name, d):
    shape = d.shape(2)
    low = d.size(1 - shape[-2], shape[-1] - 1)
    high = d.size(low, shape[-1] - 1)
    bounds = d.fixed([low, high])
    if "Part" in name:
        operands = [d.operand(shape), bounds, d.fixed(d.size(0, 7), "float32")]
    else:
        length = min(shape[-2] + min(high, 0), shape[-1] - max(low, 0))
        diagonals = (*shape[:-2], *([] if low == high else [high - low + 1]), length)
        operands = [d.operand(shape), d.operand(diagonals), bounds]
    return Operation(name, operands, _alignment(name, d))


def _alignment(name, d):
    return {"align": d.one_of(*ALIGNMENTS)} if name.endswith("3") else {}


@of("Rank", "Shape", "Size")
def about_shapes(name, d):
    attributes = {} if name == "Rank" else {"out_type": d.one_of(tf.int32, tf.int64)}
    return Operation(name, [d.operand(d.shape())], attributes)


@of("EnsureShape")
def ensured(name, d):
    shape = d.shape()
    return Operation(name, [d.operand(shape)], {"shape": tf.TensorShape([None if d.chance() else n for n in shape])})


@of("DepthToSpace", "SpaceToDepth")
def depth(name, d):
    batch, height, width, features = d.size(), d.size(), d.size(), d.size(1, 2)
    if name == "DepthToSpace":
        features *= 4
    else:
        height, width = height * 2, width * 2
    return Operation(name, [d.operand((batch, height, width, features))], {"block_size": 2})


@of("BatchToSpaceND", "SpaceToBatchND")
def phases(name, d):
    blocks = [d.size(1, 2) for _ in range(d.size(1, 2))]
    batch, rest = d.size(1, 2), d.shape(0, 2)
    if name == "SpaceToBatchND":
        spatial = [block * d.size(1, 2) for block in blocks]
        edges = [[block * d.size(0, 1), block * d.size(0, 1)] for block in blocks]
    else:
        batch *= int(np.prod(blocks))
        spatial = [d.size(2, 3) for _ in blocks]
        edges = [[d.size(0, 1), d.size(0, 1)] for _ in blocks]
    return Operation(name, [d.operand((batch, *spatial, *rest)), d.index(blocks), d.index(edges)])
