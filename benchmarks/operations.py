"""Functions of JAX of one operation, or of few that occur together, each with arguments of about a million numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = ["Case", "operations"]

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def operations() -> Mapping[str, Case]:
    """By name."""
    groups = elementwise, integers, conversions, complexes, reductions, orders, places, shapes, products, windows, steps
    return {name: case for group in groups for name, case in group(Arrays()).items()}


class Arrays:
    """The arguments; each has the same numbers whenever it is asked for.

    Attributes:
      x, y: Numbers between 1 and 2.
      n: Numbers of both signs.
      i, j: Integers of both signs, and between 1 and 100.
      u: Bytes.
      c, d: Complex numbers.
      b: Truth values.
      images: Eight of 56 x 56 x 64.
      places: 500 indices of rows, with repetitions.
      rows: As many.
    """

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        shape = (1000, 1000)
        self.x, self.y, self.n = self.near_one(*shape), self.near_one(*shape), self.normal(*shape)
        self.i = self.random.integers(-1000, 1000, shape).astype(np.int32)
        self.j = self.random.integers(1, 100, shape).astype(np.int32)
        self.u = self.random.integers(0, 255, shape).astype(np.uint8)
        self.c, self.d = self.n + 1j * self.x, self.x + 1j * self.n
        self.b = self.n > 0
        self.images = self.near_one(8, 56, 56, 64)
        self.places, self.rows = self.random.integers(0, 1000, 500).astype(np.int32), self.near_one(500, 1000)

    def near_one(self, *shape: int) -> np.ndarray:
        return 1 + self.random.random(shape, np.float32)

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def kernel(self, *shape: int) -> np.ndarray:
        return self.near_one(*shape) / np.float32(100)


def elementwise(a: Arrays) -> Mapping[str, Case]:
    of_positive = (
        jnp.exp,
        jnp.log,
        jnp.sqrt,
        jnp.log1p,
        jnp.floor,
        jnp.ceil,
        jnp.round,
        lax.rsqrt,
        lax.cbrt,
        lax.lgamma,
    )
    of_any = (jnp.tanh, jnp.abs, jnp.sign, jnp.expm1, jnp.sin, jnp.tan, jnp.isnan, jnp.nan_to_num, lax.erf)
    activations = "relu", "relu6", "leaky_relu", "elu", "silu", "sigmoid", "softplus", "gelu"
    of_two = (jnp.maximum, jnp.minimum, jnp.arctan2, lax.rem)
    return {
        **{f.__name__: (f, (a.x,)) for f in of_positive},
        **{f.__name__: (f, (a.n,)) for f in of_any},
        **{name: (getattr(jax.nn, name), (a.n,)) for name in activations},
        **{f.__name__: (f, (a.n, a.y)) for f in of_two},
        "gelu, exact": (lambda x: jax.nn.gelu(x, approximate=False), (a.n,)),
        "x + y": (lambda x, y: x + y, (a.x, a.y)),
        "x - y": (lambda x, y: x - y, (a.x, a.y)),
        "x * y": (lambda x, y: x * y, (a.x, a.y)),
        "x / y": (lambda x, y: x / y, (a.x, a.y)),
        "x % y": (lambda x, y: x % y, (a.n, a.y)),
        "x // y": (lambda x, y: x // y, (a.n, a.y)),
        "x ** y": (lambda x, y: x**y, (a.x, a.y)),
        "x ** 2": (lambda x: x**2, (a.n,)),
        "x ** 3": (lambda x: x**3, (a.n,)),
        "x ** 0.5": (lambda x: x**0.5, (a.x,)),
        "x ** -0.5": (lambda x: x**-0.5, (a.x,)),
        "1 / x": (lambda x: 1 / x, (a.x,)),
        "x * 2": (lambda x: x * 2, (a.n,)),
        "-x": (lambda x: -x, (a.n,)),
        "x / 255 * 2 - 1": (lambda x: x / 255 * 2 - 1, (a.x,)),
        "log(1 + x)": (lambda x: jnp.log(1 + x), (a.x,)),
        "(x - y) ** 2": (lambda x, y: (x - y) ** 2, (a.x, a.y)),
        "x + y + z": (lambda x, y, z: x + y + z, (a.x, a.y, a.n)),
        "x + y + z + x": (lambda x, y, z: x + y + z + x, (a.x, a.y, a.n)),
        "(x + y) + (z + x)": (lambda x, y, z: (x + y) + (z + x), (a.x, a.y, a.n)),
        "x * s * t of scalars": (lambda x, s, t: x * s * t, (a.x, a.near_one(), a.near_one())),
        "x + s + t of scalars": (lambda x, s, t: x + s + t, (a.x, a.near_one(), a.near_one())),
        "clip": (lambda x: jnp.clip(x, -1, 1), (a.n,)),
        "clip, gradient": (jax.grad(lambda x: jnp.clip(x, -1, 1).sum()), (a.n,)),
        "where": (jnp.where, (a.b, a.x, a.y)),
        "x < y": (lambda x, y: x < y, (a.x, a.y)),
        "x == y": (lambda x, y: x == y, (a.x, a.y)),
        "not x < y": (lambda x, y: ~(x < y), (a.x, a.y)),
        "not b": (lambda b: ~b, (a.b,)),
        "x > 0 and y > 1.5": (lambda x, y: (x > 0) & (y > 1.5), (a.n, a.x)),
        "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), (a.n,)),
        "scale and shift by channel": (
            lambda x, s, t: (x - t) * lax.rsqrt(s + 1e-3) * s + t,
            (a.images, a.near_one(64), a.near_one(64)),
        ),
        "rotary embedding": (rotated, (a.n, a.n[0, :500])),
        "gated linear unit": (lambda x: x[:, :500] * jax.nn.sigmoid(x[:, 500:]), (a.n,)),
        "interp": (lambda x: jnp.interp(x, jnp.linspace(-3, 3, 64), jnp.linspace(0, 1, 64)), (a.n[:200],)),
    }


def rotated(x: jax.Array, angles: jax.Array) -> jax.Array:
    left, right = x[:, :500], x[:, 500:]
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    return jnp.concatenate([left * cosine - right * sine, left * sine + right * cosine], 1)


def integers(a: Arrays) -> Mapping[str, Case]:
    return {
        "i + j": (lambda i, j: i + j, (a.i, a.j)),
        "i * j": (lambda i, j: i * j, (a.i, a.j)),
        "i // j": (lambda i, j: i // j, (a.i, a.j)),
        "i % j": (lambda i, j: i % j, (a.i, a.j)),
        "i & j": (lambda i, j: i & j, (a.i, a.j)),
        "i >> 2": (lambda i: i >> 2, (a.i,)),
        "j ** 3": (lambda j: j**3, (a.j,)),
        "div of integers": (lax.div, (a.i, a.j)),
        "abs of integers": (jnp.abs, (a.i,)),
        "maximum of integers": (jnp.maximum, (a.i, a.j)),
        "population_count": (lax.population_count, (a.i,)),
        "clz": (lax.clz, (a.i,)),
        "u + u": (lambda u: u + u, (a.u,)),
        "maximum of bytes": (lambda u: jnp.maximum(u, 3), (a.u,)),
    }


def conversions(a: Arrays) -> Mapping[str, Case]:
    from_and_to = (
        ("int32", a.n),
        ("bfloat16", a.n),
        ("bool", a.n),
        ("uint8", a.x),
        ("float32", a.i),
        ("float32", a.u),
    )
    return {
        **{f"{x.dtype} to {dtype}": (lambda x, d=dtype: x.astype(d), (x,)) for dtype, x in from_and_to},
        "float32 to int32, bits": (lambda x: lax.bitcast_convert_type(x, jnp.int32), (a.n,)),
    }


def complexes(a: Arrays) -> Mapping[str, Case]:
    of_one = jnp.abs, jnp.exp, jnp.sqrt, jnp.log, jnp.conj, jnp.real, jnp.fft.fft, jnp.fft.irfft
    return {
        **{f"{f.__name__} of complex": (f, (a.c,)) for f in of_one},
        "c * d": (lambda c, d: c * d, (a.c, a.d)),
        "c / d": (lambda c, d: c / d, (a.c, a.d)),
        "rfft": (jnp.fft.rfft, (a.n,)),
        "fft2": (jnp.fft.fft2, (a.c[:512, :512],)),
    }


def reductions(a: Arrays) -> Mapping[str, Case]:
    kinds = jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.mean, jnp.argmax
    along = {"all": None, "columns": 0, "rows": 1}
    reduced = {
        f"{f.__name__} of {what}": (lambda x, f=f, axis=axis: f(x, axis=axis), (a.n,))
        for what, axis in along.items()
        for f in kinds
    }
    return {
        **reduced,
        "any": (lambda b: jnp.any(b, 1), (a.b,)),
        "all": (lambda b: jnp.all(b, 0), (a.b,)),
        "sum of integers": (jnp.sum, (a.i,)),
        "max of bytes": (lambda u: u.max(1), (a.u,)),
        "var": (lambda x: jnp.var(x, 1), (a.n,)),
        "norm": (lambda x: jnp.linalg.norm(x, axis=1), (a.n,)),
        "softmax": (jax.nn.softmax, (a.n,)),
        "log_softmax": (jax.nn.log_softmax, (a.n,)),
        "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), (a.n,)),
        "mean squared error": (lambda x, y: jnp.mean((x - y) ** 2), (a.x, a.y)),
        "layer norm": (normalized, (a.n,)),
        "RMS norm": (lambda x, g: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g, (a.n, a.n[0])),
        "x / norm(x), rows": (lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), (a.x,)),
        "max of images": (lambda x: x.max((1, 2)), (a.images,)),
        "mean of images": (lambda x: x.mean((1, 2)), (a.images,)),
        **{
            f"{f.__name__} of rows": (lambda x, f=f: f(x, axis=1), (a.n,))
            for f in (jnp.cumsum, lax.cummax, lax.cumlogsumexp)
        },
        "cumprod of rows": (lambda x: jnp.cumprod(x, 1), (a.x,)),
        "cumsum of integers, columns": (lambda i: jnp.cumsum(i, 0), (a.i,)),
    }


def normalized(x: jax.Array) -> jax.Array:
    return (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5)


def orders(a: Arrays) -> Mapping[str, Case]:
    return {
        "sort": (lambda x: jnp.sort(x, 1), (a.n,)),
        "argsort": (lambda x: jnp.argsort(x, 1), (a.n,)),
        "sort of integers": (lambda i: jnp.sort(i, 1), (a.i,)),
        "top 10": (lambda x: lax.top_k(x, 10), (a.n,)),
        "top 10 of integers": (lambda i: lax.top_k(i, 10), (a.i,)),
        "searchsorted": (lambda x: jnp.searchsorted(jnp.linspace(-3, 3, 64), x), (a.n[:200],)),
        "nonzero": (lambda b: jnp.nonzero(b, size=1000)[0], (a.b[:100],)),
    }


def places(a: Arrays) -> Mapping[str, Case]:
    def changed(kind: str) -> Case:
        return lambda x, i, r: getattr(x.at[i], kind)(r), (a.x, a.places, a.rows)

    return {
        **{f"scatter {kind}": changed(kind) for kind in ("add", "subtract", "multiply", "divide", "min", "max", "set")},
        "scatter add of integers": (lambda x, i, r: x.at[i].add(r), (a.i, a.places, a.i[:500])),
        "scatter apply": (lambda x, i: x.at[i].apply(jnp.sin), (a.x, a.places)),
        "segment_sum": (lambda r, i: jax.ops.segment_sum(r, i, 1000), (a.rows, a.places)),
        "segment_max": (lambda r, i: jax.ops.segment_max(r, i, 1000), (a.rows, a.places)),
        "bincount": (lambda i: jnp.bincount(i, length=1000), (a.places,)),
        "gather of rows": (lambda x, i: x[i], (a.n, a.places)),
        "gather of columns": (lambda x, i: x[:, i], (a.n, a.places)),
        "take_along_axis": (lambda x, j: jnp.take_along_axis(x, j, 1), (a.n, a.j)),
        "one_hot": (lambda i: jax.nn.one_hot(i, 1000), (a.places,)),
        "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (500, 500)), (a.n, a.places)),
        "dynamic_update_slice": (
            lambda x, i, y: lax.dynamic_update_slice(x, y, (i[0], i[1])),
            (a.n, a.places, a.n[:100, :100]),
        ),
    }


def shapes(a: Arrays) -> Mapping[str, Case]:
    return {
        "pad": (lambda x: jnp.pad(x, 1), (a.n,)),
        "pad between": (lambda x: lax.pad(x, 0.0, ((1, 1, 1), (0, 0, 0))), (a.n,)),
        "concatenate": (lambda x, y: jnp.concatenate([x, y]), (a.x, a.y)),
        "transpose": (lambda x: x.T, (a.n,)),
        "reverse": (lambda x: x[::-1], (a.n,)),
        "strided slice": (lambda x: x[::2, ::2], (a.n,)),
        "roll": (lambda x: jnp.roll(x, 3, 1), (a.n,)),
        "tile": (lambda x: jnp.tile(x, (2, 1)), (a.n,)),
        "repeat": (lambda x: jnp.repeat(x, 2, 0), (a.n,)),
        "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (1000, 3, 1000)), (a.n,)),
        "tril": (jnp.tril, (a.n,)),
        "diagonal": (jnp.diagonal, (a.n,)),
        "x + arange": (lambda x: x + jnp.arange(1000.0), (a.n,)),
        "resize": (lambda x: jax.image.resize(x, (8, 112, 112, 16), "bilinear"), (a.images[..., :16],)),
    }


def products(a: Arrays) -> Mapping[str, Case]:
    m, narrow = a.n[:512, :512], (a.i[:256, :256], a.j[:256, :256])
    heads = tuple(a.near_one(8, 8, 128, 64) for _ in range(3))
    half = jnp.bfloat16
    return {
        "x @ y": (lambda x, y: x @ y, (m, m)),
        "x.T @ y": (lambda x, y: x.T @ y, (m, m)),
        "einsum ki,jk->ij": (lambda x, y: jnp.einsum("ki,jk->ij", x, y), (m, m)),
        "einsum bij,bjk->bik": (
            lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
            (a.near_one(16, 128, 128), a.near_one(16, 128, 128)),
        ),
        "matrix by vector": (lambda x, y: x @ y, (a.n, a.n[0])),
        "outer": (jnp.outer, (a.n[0], a.n[1])),
        "x @ y of integers": (lambda x, y: x @ y, narrow),
        "x @ y of bfloat16": (lambda x, y: (x.astype(half) @ y.astype(half)).astype(jnp.float32), (m, m)),
        "x @ y of complex": (lambda x, y: x @ y, (a.c[:256, :256], a.d[:256, :256])),
        "dense, relu": (lambda x, w, z: jax.nn.relu(x @ w + z), (m, m, m[0])),
        "dense, gelu": (lambda x, w, z: jax.nn.gelu(x @ w + z), (m, m, m[0])),
        "dense, gradient": (jax.grad(lambda w, x: jnp.square(jax.nn.relu(x @ w) @ w).sum()), (m / 30, m)),
        "attention": (lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) * 0.125) @ v, heads),
        "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 1000 * jnp.eye(256)), (a.n[:256, :256],)),
        "triangular_solve": (
            lambda x, y: lax.linalg.triangular_solve(x + 100 * jnp.eye(256), y, left_side=True, lower=True),
            (a.n[:256, :256], a.n[256:512, :256]),
        ),
        "qr": (lambda x: jnp.linalg.qr(x)[1], (a.n[:128, :128],)),
    }


def convolution(stride: int = 1, **keywords: Any) -> Callable[..., Any]:
    numbers = ("NHWC", "HWIO", "NHWC")
    padding = [(1, 1)] * 2 if "lhs_dilation" in keywords else "SAME"  # of dilated images JAX takes no name
    return lambda x, k: lax.conv_general_dilated(x, k, (stride,) * 2, padding, dimension_numbers=numbers, **keywords)


def pool(combine: Callable[..., Any], initial: float, size: int, stride: int, padding: str) -> Callable[..., Any]:
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lambda x: lax.reduce_window(x, initial, combine, window, strides, padding)


def windows(a: Arrays) -> Mapping[str, Case]:
    plain, half, channels = convolution(), jnp.bfloat16, a.near_one(2, 64)
    numbers = ("NDHWC", "DHWIO", "NDHWC")
    volumes, of_volumes = a.near_one(2, 16, 16, 16, 16), a.kernel(3, 3, 3, 16, 16)
    kernel, depthwise = a.kernel(3, 3, 64, 64), a.kernel(3, 3, 1, 64)
    largest = pool(lax.max, -np.inf, 2, 2, "VALID")
    return {
        "convolution": (plain, (a.images, kernel)),
        "convolution 1x1": (plain, (a.images, kernel[:1, :1])),
        "convolution, stride 2": (convolution(2), (a.images, kernel)),
        "convolution, dilated kernel": (convolution(rhs_dilation=(2, 2)), (a.images, kernel)),
        "convolution, dilated images": (convolution(lhs_dilation=(2, 2)), (a.images, kernel)),
        "convolution, 4 groups": (convolution(feature_group_count=4), (a.images, kernel[:, :, :16])),
        "convolution, depthwise": (convolution(feature_group_count=64), (a.images, depthwise)),
        "convolution, depthwise, dilated kernel": (
            convolution(feature_group_count=64, rhs_dilation=(2, 2)),
            (a.images, depthwise),
        ),
        "convolution, depthwise, stride 2": (convolution(2, feature_group_count=64), (a.images, depthwise)),
        "convolution, 1 dimension": (
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
            (a.near_one(8, 512, 64), kernel[0]),
        ),
        "convolution, 3 dimensions": (
            lambda x, k: lax.conv_general_dilated(x, k, (1,) * 3, "SAME", dimension_numbers=numbers),
            (volumes, of_volumes),
        ),
        "convolution, 3 dimensions, dilated kernel": (
            lambda x, k: lax.conv_general_dilated(
                x, k, (1,) * 3, "SAME", rhs_dilation=(2,) * 3, dimension_numbers=numbers
            ),
            (volumes, of_volumes),
        ),
        "convolution, 3 dimensions, stride 2, gradient of the kernel": (
            jax.grad(
                lambda k, x: lax.conv_general_dilated(x, k, (2,) * 3, "VALID", dimension_numbers=numbers).sum(),
            ),
            (of_volumes, volumes),
        ),
        "convolution, channels first": (
            lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"),
            (a.near_one(8, 64, 56, 56), a.kernel(64, 64, 3, 3)),
        ),
        "convolution of integers": (plain, (a.images[:1].astype(np.int32), (100 * kernel).astype(np.int32))),
        "convolution of bfloat16": (
            lambda x, k: plain(x.astype(half), k.astype(half)).astype(jnp.float32),
            (a.images[:2], kernel),
        ),
        "convolution of float16, depthwise": (
            lambda x, k: convolution(feature_group_count=64)(x.astype(jnp.float16), k.astype(jnp.float16)),
            (a.images[:2], depthwise),
        ),
        "convolution, bias, relu": (lambda x, k, z: jax.nn.relu(plain(x, k) + z), (a.images, kernel, channels[0])),
        "convolution, scale, bias, relu": (
            lambda x, k, s, z: jax.nn.relu(plain(x, k) * s + z),
            (a.images, kernel, *channels),
        ),
        "convolution, gradients": (jax.grad(lambda x, k: plain(x, k).sum(), argnums=(0, 1)), (a.images, kernel)),
        "convolution, depthwise, gradients": (
            jax.grad(lambda x, k: convolution(feature_group_count=64)(x, k).sum(), argnums=(0, 1)),
            (a.images[:2], depthwise),
        ),
        "max pool 2x2": (largest, (a.images,)),
        "max pool 2x2 of larger images": (largest, (a.near_one(8, 112, 112, 64),)),
        "max pool 2x2, gradient": (jax.grad(lambda x: largest(x).sum()), (a.images,)),
        "max pool 3x3, stride 2": (pool(lax.max, -np.inf, 3, 2, "SAME"), (a.images,)),
        "max pool, 1 dimension": (
            lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), "VALID"),
            (a.images[0],),
        ),
        "min pool 2x2": (pool(lax.min, np.inf, 2, 2, "VALID"), (a.images,)),
        "sum pool 2x2": (pool(lax.add, 0.0, 2, 2, "VALID"), (a.images,)),
        "sum pool 3x3, stride 1": (pool(lax.add, 0.0, 3, 1, "SAME"), (a.images,)),
        "product pool 2x2": (pool(lax.mul, 1.0, 2, 2, "VALID"), (a.images,)),
    }


def steps(a: Arrays) -> Mapping[str, Case]:
    def random(draw: Callable[..., Any]) -> Case:
        return lambda k: draw(jax.random.wrap_key_data(k, impl="threefry2x32"), (300, 300)), (
            np.array([1, 2], "uint32"),
        )

    return {
        "scan": (lambda x: lax.scan(lambda s, row: (s * 0.9 + row, s), x[0], x)[1], (a.n[:50],)),
        "fori_loop": (lambda x: lax.fori_loop(0, 20, lambda _, s: s * 0.9 + 1, x), (a.n[:100],)),
        "while_loop": (
            lambda x: lax.while_loop(lambda s: s[0] < 20, lambda s: (s[0] + 1, jnp.tanh(s[1])), (0, x))[1],
            (a.n[:100],),
        ),
        "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y + 1, x), (a.n,)),
        "map": (lambda x: lax.map(lambda row: jnp.sin(row).sum(), x), (a.n[:50],)),
        "random.uniform": random(jax.random.uniform),
        "random.normal": random(jax.random.normal),
    }
