"""Operations along sizes that may be 0, or 1, in one program for all sizes: right there too, or refused in words."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape


def rest(x):
    """As many rows, less one."""
    return tf.shape(x)[0] - 1


def images(x):
    return tf.reshape(x[1:], [-1, 3, 1, 1])


def squares(x):
    return tf.matmul(x[1:], x[1:], transpose_b=True)


def scattered(name):
    return lambda x: getattr(tf, f"tensor_scatter_nd_{name}")(x[1:], tf.range(rest(x))[:, None], x[:-1])


# Computed by TensorFlow for any number of rows, and here.
COMPUTED = {
    "creation": {
        "fill": lambda x: tf.fill([rest(x), 2], 7.0),
        "range": lambda x: tf.range(1, tf.shape(x)[0]),
        "one hot": lambda x: tf.one_hot([0, 1], rest(x)),
        "one hot of nothing": lambda x: tf.one_hot(tf.range(rest(x)), 3),
    },
    "cumulative": {
        "sum": lambda x: tf.cumsum(x[1:], 0, exclusive=True),
        "product": lambda x: tf.math.cumprod(x[1:], 0, reverse=True),
        "log": lambda x: tf.math.cumulative_logsumexp(x[1:], 0),
    },
    "diagonals": {
        "made": lambda x: tf.linalg.diag(x[1:, 0]),
        "taken": lambda x: tf.linalg.diag_part(squares(x)),
        "set": lambda x: tf.linalg.set_diag(squares(x), x[1:, 0]),
    },
    "fourier": {
        "complex": lambda x: tf.abs(tf.signal.ifft(tf.signal.fft(tf.cast(x[1:], tf.complex64)))),
        "real": lambda x: tf.signal.irfft(tf.signal.rfft(x[1:]), [3]),
    },
    "images": {
        "pooled": lambda x: tf.nn.max_pool2d(images(x), 2, 1, "SAME") + tf.nn.avg_pool2d(images(x), 2, 1, "SAME"),
        "resized": lambda x: tf.image.resize(images(x), [2, 2]),
        "space": lambda x: tf.nn.space_to_depth(tf.nn.depth_to_space(tf.tile(images(x), [1, 1, 1, 4]), 2), 2),
    },
    "indexing": {
        "gathered": lambda x: tf.gather(x, tf.range(rest(x))),
        "gathered by several": lambda x: tf.gather_nd(x, tf.range(rest(x))[:, None]),
        "segments": lambda x: tf.math.unsorted_segment_sum(x[1:], tf.range(rest(x)), tf.shape(x)[0]),
        "no segments": lambda x: tf.math.unsorted_segment_max(x[1:], tf.range(rest(x)), rest(x)),
        "least segments": lambda x: tf.math.unsorted_segment_min(x[1:], tf.range(rest(x)), rest(x)),
        "product of segments": lambda x: tf.math.unsorted_segment_prod(x[1:], tf.range(rest(x)), rest(x)),
        "scattered": lambda x: tf.scatter_nd(tf.range(rest(x))[:, None], x[1:], [rest(x), 3]),
        **{f"tensor {name}": scattered(name) for name in ("update", "add", "sub", "max", "min")},
    },
    "joining": {
        "joined": lambda x: tf.concat([x[1:], x[:0], x[1:]], 0),
        "packed": lambda x: tf.stack([x[1:], x[:-1]], 1),
        "unpacked": lambda x: tf.unstack(x[1:], axis=1)[1],
        "halves": lambda x: tf.split(tf.concat([x[1:], x[1:]], 0), 2)[1],
        "parts": lambda x: tf.split(x, [1, rest(x)])[1],
    },
    "moves": {
        "reshaped": lambda x: tf.reshape(x[1:], [-1, 3, 1]),
        "squeezed": lambda x: tf.squeeze(tf.expand_dims(x[1:], 1), [1]),
        "transposed": lambda x: tf.transpose(x[1:]),
        "reversed": lambda x: tf.reverse(x[1:], [0]),
        "rolled": lambda x: tf.roll(x[1:], 5, 0),
        "rolled back": lambda x: tf.roll(x[1:], -7 * tf.shape(x)[0], 0),
        "tiled": lambda x: tf.tile(x, [rest(x), 1]),
        "broadcast": lambda x: tf.broadcast_to(x[:1], [rest(x), 3]),
        "padded": lambda x: tf.pad(x[1:], [[0, rest(x)], [0, 0]]),
        "padded by ones": lambda x: tf.pad(x[1:], [[0, rest(x)], [0, 0]], constant_values=1.0),
    },
    "products": {
        "product": lambda x: tf.matmul(x[1:], x[1:], transpose_a=True),
        "products": lambda x: tf.matmul(x[1:, None], x[1:, :, None]),
        "einsum": lambda x: tf.einsum("ij,kj->ik", x[1:], x),
        "biased": lambda x: tf.nn.bias_add(x[1:], [1.0, 2.0, 3.0]),
        "entropy": lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x[1:]), x[1:]),
        "entropy of places": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.zeros([rest(x)], tf.int32), x[1:]
        ),
        "band": lambda x: tf.linalg.band_part(squares(x), rest(x) - 1, 0),
    },
    "reductions": {
        "sum": lambda x: tf.reduce_sum(x[1:], 0),
        "mean": lambda x: tf.reduce_mean(x[1:], 0),
        "largest": lambda x: tf.reduce_max(x[1:], 0),
        "least": lambda x: tf.reduce_min(x[1:], 0),
        "product": lambda x: tf.reduce_prod(x[1:], 0),
        "all": lambda x: tf.reduce_all(x[1:] > 0, 0),
        "any": lambda x: tf.reduce_any(x[1:] > 0, 0),
        "loss": lambda x: tf.nn.l2_loss(x[1:]),
        "place": lambda x: tf.argmax(x[1:], 1) + tf.argmin(x[1:], 1),
        "sorted": lambda x: tf.math.top_k(tf.transpose(x[1:]), rest(x)).values,
    },
    "slices": {
        "from the end": lambda x: x[-2:-5:-1],
        "in steps": lambda x: x[5:1:-2],
        "every other": lambda x: x[1::2],
        "of both axes": lambda x: x[2::3, 2::-2],
        "of nothing": lambda x: x[1:][1::2, 3:],
        "slice": lambda x: tf.slice(x, [1, 0], [rest(x), 3]),
        "element": lambda x: x[1:][:, tf.argmax(x[0])],
    },
}
# Their gradients have no form for all sizes, or have operations that need a row.
IN_STEPS = {"from the end", "in steps", "every other", "of both axes", "of nothing"}
WITHOUT_GRADIENT = {*COMPUTED["indexing"], *IN_STEPS, "sorted"}
# Refused for no rows: by TensorFlow the first, by its compiler the loop.
REFUSED = {
    "ArgMax": lambda x: tf.argmax(x[1:], 0),
    "ArgMin": lambda x: tf.argmin(tf.transpose(x[1:]), 1),
    "GatherV2": lambda x: tf.gather(x[1:], tf.range(rest(x))),
    "GatherNd": lambda x: tf.gather_nd(x[1:], tf.range(rest(x))[:, None]),
    "TensorListGetItem": lambda x: tf.map_fn(lambda row: row * 2, x[1:]),
}


def rows(size):
    return np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)


def exported(function):
    return export(function)(jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32))


@pytest.mark.slow(1)
@pytest.mark.parametrize("family", COMPUTED)
def test_what_has_no_rows_is_as_in_tensorflow(family):
    gradients = {
        f"gradient of {name}": gradient(function)
        for name, function in COMPUTED[family].items()
        if name not in WITHOUT_GRADIENT
    }
    functions = COMPUTED[family] | gradients
    ours = exported(lambda x: {name: call_tf(function)(x) for name, function in functions.items()})
    for size in (1, 2, 4):
        found = ours.call(rows(size))
        for name, function in functions.items():
            due = function(tf.constant(rows(size)))
            assert found[name].shape == due.shape, (name, size)
            np.testing.assert_allclose(found[name], due, 1e-5, 1e-5, err_msg=f"{name} of {size}")


def gradient(function):
    """That of what it returns, weighted, as TensorFlow has it."""

    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = tf.cast(function(x), tf.float32)
            total = tf.reduce_sum(result * result)
        return tf.convert_to_tensor(tape.gradient(total, x, unconnected_gradients="zero"))

    return derivative


@pytest.mark.parametrize("operation", REFUSED)
def test_what_needs_a_row_is_refused_without(operation):
    function = REFUSED[operation]
    ours = exported(call_tf(function))
    for size in (2, 4):
        np.testing.assert_allclose(ours.call(rows(size)), function(tf.constant(rows(size))), 1e-5)
    with pytest.raises(
        ValueError, match=rf"call_tf: <lambda>, whose operation {operation} .*needs b - 1 >= 1, and has b = 1"
    ):
        ours.call(rows(1))


def parts(x):
    """Divisions by a number of rows that may be 0, which TensorFlow refuses, but not its compiler."""
    divisions = (tf.math.floormod, tf.math.floordiv, tf.truncatemod, tf.truncatediv)
    return [tf.cast(divide(7, rest(x)), tf.float32) * x[0, 0] for divide in divisions]


def test_a_division_by_no_rows_does_not_end_the_process():
    ours = exported(call_tf(parts))
    for size in (1, 3):
        due = tf.function(parts, jit_compile=True, autograph=False)(tf.constant(rows(size)))
        np.testing.assert_array_equal(ours.call(rows(size)), due)
        np.testing.assert_array_equal(jax.jit(call_tf(parts))(rows(size)), due)
