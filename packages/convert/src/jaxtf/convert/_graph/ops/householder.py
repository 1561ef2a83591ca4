"""QR factorization by Householder reflections: the custom calls that XLA's own expander leaves in a module.

A reflection is I - tau v v^H; v is 1 at its own row and zero above. Packed, the factor R lies on and above the diagonal
and the v, without their ones, below. Source: LAPACK Users' Guide, routines xGEQRF and xORGQR.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import as_shape, sizes, typed, widening
from jaxtf.convert._graph.ops.scales import scaled
from jaxtf.convert._graph.registry import Bound, translates

IN_32_BITS = widening(float32=("bfloat16", "float16"))


@translates("custom_call.Qr", computed_in=IN_32_BITS)
def factorize(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The packed reflections and R of a matrix, and the factors tau.

    Source: XLA, `QrExpander`; LAPACK, `xGEQRF`.
    """
    matrices = scaled(operand, by_column=True)  # sums of squares are neither 0 nor infinite
    *batch, rows, columns = sizes(operand)
    count = min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else tf.minimum(rows, columns)
    dtype = operand.dtype
    row = tf.range(rows)

    def step(j: tf.Tensor, packed: tf.Tensor, taus: tf.Tensor) -> tuple[tf.Tensor, ...]:
        column = tf.gather(packed, j, axis=-1)
        below = row > j
        vector, tau, beta = _reflection(tf.gather(column, j, axis=-1), tf.where(below, column, tf.zeros([], dtype)))
        vector = tf.where(tf.equal(row, j), tf.ones([], dtype), vector)
        reflected = packed - tf.math.conj(tau)[..., tf.newaxis, tf.newaxis] * _outer(vector, packed)
        stored = tf.where(below, vector, tf.where(tf.equal(row, j), beta[..., tf.newaxis], column))
        later = tf.range(columns) > j
        packed = tf.where(later, reflected, packed)
        packed = tf.where(tf.equal(tf.range(columns), j), stored[..., tf.newaxis], packed)
        return j + 1, packed, tf.where(tf.equal(tf.range(count), j), tau[..., tf.newaxis], taus)

    taus = tf.zeros(as_shape([*batch, count]), dtype)
    shapes = (tf.TensorShape([]), operand.shape, taus.shape)
    _, packed, taus = tf.while_loop(
        lambda j, *_: j < count, step, (typed(0, tf.int32), matrices.matrices, taus), shape_invariants=shapes
    )
    below_diagonal = row[:, tf.newaxis] > tf.range(columns)
    return tf.where(below_diagonal, packed, matrices.restored(packed)), taus


def _reflection(first: tf.Tensor, rest: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """v, tau and beta that take a vector to beta in its first place; no reflection where the rest is zero already."""
    dtype = first.dtype
    real, imaginary = tf.math.real(first), tf.math.imag(first) if dtype.is_complex else tf.zeros_like(first)
    tail = tf.reduce_sum(tf.math.real(rest * tf.math.conj(rest)), -1)
    nothing = tf.logical_and(tf.equal(tail, 0), tf.equal(imaginary, 0))
    norm = tf.sqrt(real * real + imaginary * imaginary + tail)
    beta = tf.where(real >= 0, -norm, norm)
    safe = tf.where(nothing, tf.ones_like(beta), beta)
    tau = (safe - real) / safe
    tau = tf.complex(tau, -imaginary / safe) if dtype.is_complex else tau
    tau = tf.where(nothing, tf.zeros([], dtype), tau)
    beta_ = tf.where(nothing, first, tf.cast(beta, dtype))
    divisor = tf.where(nothing, tf.ones([], dtype), first - tf.cast(beta, dtype))
    return rest / divisor[..., tf.newaxis], tau, beta_


def _outer(vector: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """v v^H M."""
    return vector[..., tf.newaxis] * tf.matmul(vector[..., tf.newaxis], matrix, adjoint_a=True)


@translates(
    "custom_call.ProductOfElementaryHouseholderReflectors",
    computed_in=IN_32_BITS,
)
def product(bound: Bound, packed: tf.Tensor, taus: tf.Tensor) -> tf.Tensor:
    """The first columns of the product of the packed reflections.

    Source: LAPACK, `xORGQR`.
    """
    *batch, rows, columns = sizes(packed)
    count = sizes(taus)[-1]
    dtype = packed.dtype
    row = tf.range(rows)

    def step(j: tf.Tensor, result: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        column = tf.gather(packed, j, axis=-1)
        vector = tf.where(row > j, column, tf.where(tf.equal(row, j), tf.ones([], dtype), tf.zeros([], dtype)))
        tau = tf.gather(taus, j, axis=-1)
        return j - 1, result - tau[..., tf.newaxis, tf.newaxis] * _outer(vector, result)

    start = tf.broadcast_to(tf.eye(rows, columns, dtype=dtype), as_shape([*batch, rows, columns]))
    _, result = tf.while_loop(lambda j, _: j >= 0, step, (typed(count - 1, tf.int32), start))
    return result
