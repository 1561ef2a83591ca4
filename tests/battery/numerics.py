"""Reductions, cumulative operations, activations, statistics, random numbers, transforms and dtypes."""

import jax
import jax.numpy as jnp
from jax import lax

from .entry import (
    NEEDS_CONSTANT,
    NO_ASSOCIATIVE_SCAN,
    NO_FFT,
    NO_INDEX,
    Entry,
    gradient_refused,
    polymorphic,
    ramp,
    refused,
)


def layer_norm(x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def key(seed=0):
    return jax.random.key(seed)


def resized(shape, method, antialias=True):
    return lambda x: jax.image.resize(x, shape(x), method, antialias=antialias)


ENTRIES: dict[str, Entry] = {
    # reductions
    "sum over a symbolic axis": polymorphic(lambda x: x.sum(0), "b, d"),
    "sum of all": polymorphic(jnp.sum, "b, d, 2"),
    "sum keeping dimensions": polymorphic(lambda x: x / x.sum(1, keepdims=True), "b, d"),
    "prod": gradient_refused(NEEDS_CONSTANT, polymorphic(lambda x: jnp.prod(x, axis=0), "b, d")),
    "max and min": polymorphic(lambda x: (x.max(0), x.min(1, keepdims=True)), "b, d"),
    "max of all": polymorphic(lambda x: jnp.max(x) - jnp.min(x), "b, d"),
    "any and all": polymorphic(lambda x: (x.any(0), x.all(1)), "b, d", dtypes="bool"),
    "count_nonzero": polymorphic(lambda x: jnp.count_nonzero(x, axis=0), "b, d", dtypes="int32"),
    "mean": polymorphic(lambda x: (x.mean(0), x.mean()), "b, d"),
    "var and std": polymorphic(lambda x: (x.var(0), x.std(1)), "n, m"),
    "var with a degree of freedom less": polymorphic(lambda x: jnp.var(x, axis=0, ddof=1), "n, 2"),
    "average with weights": polymorphic(lambda x, w: jnp.average(x, axis=0, weights=w), "b, d", "b"),
    "median": polymorphic(lambda x: jnp.median(x, axis=1), "b, 5"),
    "median over a symbolic axis": polymorphic(lambda x: jnp.median(x, axis=0), "b, 2"),
    "percentile over a symbolic axis": polymorphic(lambda x: jnp.percentile(x, 30.0, axis=0), "b, 2"),
    "quantiles": polymorphic(lambda x: jnp.quantile(x, jnp.array([0.25, 0.5]), axis=1), "b, 7"),
    "nanmean and nansum": polymorphic(
        lambda x: (jnp.nanmean(jnp.where(x > 2.3, jnp.nan, x), axis=0), jnp.nansum(x)), "b, d"
    ),
    "ptp": polymorphic(lambda x: jnp.ptp(x, axis=0), "b, d"),
    "reduce with a monoid": gradient_refused(
        NEEDS_CONSTANT, polymorphic(lambda x: lax.reduce(x, 1.0, lax.mul, (0,)), "b, d")
    ),
    "reduce of integers": polymorphic(
        lambda x: (x.sum(0), x.max(1), jnp.bitwise_xor.reduce(x)), "b, d", dtypes="int32"
    ),
    "logsumexp": polymorphic(lambda x: jax.nn.logsumexp(x, axis=0), "b, d"),
    "logsumexp with weights": polymorphic(lambda x, w: jax.nn.logsumexp(x, axis=1, b=w), "b, d", "b, d"),
    # cumulative
    "cumsum": polymorphic(lambda x: jnp.cumsum(x, axis=0), "b, d"),
    "cumsum backwards": polymorphic(lambda x: lax.cumsum(x, axis=1, reverse=True), "b, d"),
    "cumsum of all": polymorphic(jnp.cumsum, "b, d"),
    "cumprod": gradient_refused(NO_ASSOCIATIVE_SCAN, polymorphic(lambda x: jnp.cumprod(x, axis=0), "b, d")),
    "cummax and cummin": gradient_refused(
        NO_ASSOCIATIVE_SCAN, polymorphic(lambda x: (lax.cummax(x, axis=0), lax.cummin(x, axis=1)), "b, d")
    ),
    "cumlogsumexp": gradient_refused(NO_ASSOCIATIVE_SCAN, polymorphic(lambda x: lax.cumlogsumexp(x, axis=0), "b, d")),
    "cumsum of integers": polymorphic(lambda x: jnp.cumsum(x, axis=0), "b, d", dtypes="int32"),
    "ufunc accumulate": polymorphic(lambda x: jnp.add.accumulate(x, axis=0), "b, d"),
    # activations and losses
    "softmax": polymorphic(jax.nn.softmax, "b, d"),
    "log_softmax over a symbolic axis": polymorphic(lambda x: jax.nn.log_softmax(x, axis=0), "b, d"),
    "masked softmax": polymorphic(
        lambda x, m: jax.nn.softmax(x, where=m | (jnp.arange(m.shape[1]) == 0)), "b, d", "b, d", dtypes="float32 bool"
    ),
    "layer_norm": polymorphic(layer_norm, "n, 2*d"),
    "batch norm": polymorphic(lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3), "b, d"),
    "standardize": polymorphic(lambda x: jax.nn.standardize(x, axis=0), "n, 3", conditioning=4),
    "cross entropy": polymorphic(
        lambda x, i: -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None] % x.shape[1], axis=1).mean(),
        "b, d",
        "b",
        dtypes="float32 int32",
    ),
    "activations": polymorphic(
        lambda x: (jax.nn.gelu(x), jax.nn.relu(x - 1.5), jax.nn.silu(x), jax.nn.elu(x), jax.nn.glu(x)), "b, 2*d"
    ),
    "special functions": polymorphic(
        lambda x: (lax.erf(x), lax.lgamma(x), lax.digamma(x), lax.erf_inv(x * 0.3), jnp.arccosh(x + 1)),
        "b, d",
        conditioning=4,
    ),
    "trigonometry": polymorphic(lambda x: (jnp.sin(x), jnp.arctan2(x, x + 1), jnp.sinh(x), jnp.tan(x * 0.3)), "b, d"),
    "bessel and zeta": polymorphic(
        lambda x: (jax.scipy.special.i0e(x), lax.zeta(x + 2, x)), "b, d", differentiable=False, conditioning=4
    ),
    "polynomials": polymorphic(lambda x: jnp.polyval(ramp(4, dtype=x.dtype), x), "b, d"),
    "squared distances": polymorphic(lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), "b, 3", "n, 3"),
    # random
    "random bits": polymorphic(lambda x: jax.random.bits(key(), x.shape), "b, d", differentiable=False),
    "random uniform": polymorphic(lambda x: x * jax.random.uniform(key(), x.shape, x.dtype), "b, d"),
    "random normal": polymorphic(lambda x: x + jax.random.normal(key(), (x.shape[0], 3), x.dtype), "b, 3"),
    "random bernoulli": polymorphic(lambda x: jnp.where(jax.random.bernoulli(key(), 0.4, x.shape), x, 0), "b, d"),
    "random integers": polymorphic(lambda x: jax.random.randint(key(), x.shape, 0, 10), "b, d", differentiable=False),
    "random integers below a size": polymorphic(lambda x: x[jax.random.randint(key(), (5,), 0, x.shape[0])], "b, 2"),
    "random split in a symbolic number": polymorphic(
        lambda x: jax.vmap(lambda k, r: r * jax.random.uniform(k, (3,), x.dtype))(
            jax.random.split(key(), x.shape[0]), x
        ),
        "b, 3",
    ),
    "random from a key argument": polymorphic(
        lambda k, x: x + jax.random.uniform(jax.random.wrap_key_data(k), x.shape, x.dtype),
        "2",
        "b, d",
        dtypes="uint32 float32",
    ),
    "random categorical": polymorphic(lambda x: jax.random.categorical(key(), x), "b, d", differentiable=False),
    "random permutation of a symbolic axis": refused(
        "shape polymorphism for `permutation` or `shuffle` for arrays of non-constant size",
        polymorphic(lambda x: jax.random.permutation(key(), x), "b, 2"),
    ),
    "random permutation of a known axis": polymorphic(lambda x: jax.random.permutation(key(), x, axis=1), "b, 4"),
    "random choice": polymorphic(lambda x: jax.random.choice(key(), x, (4,)), "b, 2"),
    "random gamma": polymorphic(lambda x: jax.random.gamma(key(), x), "b, 2", differentiable=False, conditioning=16),
    "random truncated normal": polymorphic(
        lambda x: x * jax.random.truncated_normal(key(), -1.0, 1.0, x.shape, x.dtype), "b, 2"
    ),
    "random exponential and gumbel": polymorphic(
        lambda x: x * jax.random.exponential(key(), x.shape, x.dtype) + jax.random.gumbel(key(1), x.shape, x.dtype),
        "b, 2",
    ),
    "dropout": polymorphic(lambda x: jnp.where(jax.random.bernoulli(key(3), 0.8, x.shape), x / 0.8, 0.0), "b, n, 2"),
    # transforms
    "fft of known length": polymorphic(lambda x: jnp.abs(jnp.fft.fft(x)), "b, 8"),
    "fft over a symbolic axis": refused(NO_FFT, polymorphic(lambda x: jnp.abs(jnp.fft.fft(x, axis=0)), "b, 4")),
    "fft and back": refused(NO_FFT, polymorphic(lambda x: jnp.fft.ifft(jnp.fft.fft(x)).real, "b, n")),
    "rfft of a symbolic batch": polymorphic(lambda x: jnp.abs(jnp.fft.rfft(x)), "b, 8"),
    "rfft over a symbolic axis": refused(NO_FFT, polymorphic(lambda x: jnp.abs(jnp.fft.rfft(x)), "b, n")),
    "irfft to a symbolic length": refused(
        NO_INDEX, polymorphic(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, n=x.shape[1]), "b, n")
    ),
    "fft2": refused(NO_FFT, polymorphic(lambda x: jnp.fft.fft2(x).real, "b, h, w")),
    "fftfreq and fftshift": polymorphic(lambda x: jnp.fft.fftshift(x * jnp.fft.fftfreq(x.shape[0])), "n"),
    "resize nearest": polymorphic(resized(lambda x: (x.shape[0], 5, 7, 1), "nearest"), "b, h, w, 1"),
    "resize bilinear": polymorphic(resized(lambda x: (x.shape[0], 4, 6, 1), "bilinear"), "b, 8, 8, 1"),
    "resize symbolic sizes to known ones": polymorphic(resized(lambda x: (5, 7), "linear"), "h, w"),
    "resize symbolic sizes to twice": polymorphic(resized(lambda x: (2 * x.shape[0], 2 * x.shape[1]), "cubic"), "h, w"),
    "resize by lanczos without antialias": polymorphic(
        resized(lambda x: (x.shape[0], 2 * x.shape[1]), "lanczos3", antialias=False), "b, n"
    ),
    "map_coordinates": polymorphic(
        lambda x: jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.5, 1.2]), jnp.array([1.5, 0.1])], order=1), "h, w"
    ),
    "frames of a signal": polymorphic(
        lambda x: x[jnp.arange(x.shape[0] - 2)[:, None] + jnp.arange(3)[None, :]] * ramp(3, dtype=x.dtype), "n"
    ),
    # dtypes
    "bfloat16": polymorphic(lambda x: x * 2 + x.shape[0], "b, d", dtypes="bfloat16"),
    "bfloat16 to float32": polymorphic(lambda x: x.astype(jnp.float32).sum(0), "b, d", dtypes="bfloat16"),
    "float16": polymorphic(lambda x: jnp.maximum(x, 1.5) - x, "b, d", dtypes="float16"),
    "int8": polymorphic(lambda x: x * jnp.int8(3) + jnp.arange(x.shape[1], dtype=jnp.int8), "b, d", dtypes="int8"),
    "uint8 image": polymorphic(lambda x: x.astype(jnp.float32) / 255 - 0.5, "b, h, w", dtypes="uint8"),
    "bool": polymorphic(lambda x: (~x & jnp.logical_xor(x, x[:, :1])).sum(), "b, d", dtypes="bool"),
    "integer division": polymorphic(lambda x: (x // 3, x % 4, divmod(x, 5)), "b, d", dtypes="int32"),
    "bits": polymorphic(lambda x: (x << 2, x >> 1, lax.population_count(x), lax.clz(x)), "b, d", dtypes="uint32"),
    "bitcast": polymorphic(lambda x: lax.bitcast_convert_type(x, jnp.int32), "b, d", dtypes="int32"),
    "complex": polymorphic(lambda x: jnp.exp(1j * x), "b, d"),
    "a size in the dtype of an array": polymorphic(lambda x: x + jnp.array(x.shape[0], x.dtype), "b, d", dtypes="int8"),
}
