"""Run with TF_ENABLE_ONEDNN_OPTS=1: what Grappler fuses for oneDNN has the values of JAX. Prints what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert

X = np.float32([-3, -1, -0.0, 0, 0.5, 2, np.nan, np.inf, -np.inf] * 8)
ONES = np.linspace(0, 3, len(X), dtype=np.float32)


@jax.jit
def twice(x):
    return x * 2


@jax.jit
def larger(x, y):
    """So large that it becomes a function of the graph, which is put where it is called later."""
    z = jnp.sin(x) + jnp.cos(x) * jnp.tanh(x) + jnp.exp(-abs(x))
    return jnp.where(z > 1e9, z, jnp.maximum(x, y))


@jax.jit
def factors(x):
    """So large too; it has two results."""
    for _ in range(12):
        x = jnp.where(x > 1e9, jnp.sin(x), x) + 0.01 * jnp.cos(x) * jnp.tanh(x)
    return jnp.linalg.qr(x)


# Grappler makes a leaky relu of `max(x, c * x)`.
MAXIMA = {
    "2 * x": lambda x: jnp.maximum(x, 2 * x),
    "x + x": lambda x: jnp.maximum(x, x + x),
    "x - -x": lambda x: jnp.maximum(x, x - (-x)),
    "x / 0.5": lambda x: jnp.maximum(x / 0.5, x),
    "x * 0.5 * 6": lambda x: jnp.maximum(x, x * 6 * 0.5),
    "0 * x": lambda x: jnp.maximum(x, 0 * x),
    "inf * x": lambda x: jnp.maximum(np.inf * x, x),
    "0.5 * x": lambda x: jnp.maximum(x, 0.5 * x),
    "x by many": lambda x: jnp.maximum(x, x * ONES),
    "by a function": lambda x: jnp.maximum(x, twice(x)),
    "by functions": lambda x: jnp.maximum(x, twice(x)) + jnp.maximum(twice(jnp.sin(x)), jnp.sin(x)),
    "in a function": lambda x: larger(x, 2 * x) + larger(jnp.tanh(x), 2 * jnp.tanh(x)),
    "of equal expressions": lambda x: jnp.maximum(jnp.tanh(x), 2 * jnp.tanh(x)),
    "reshaped": lambda x: jnp.maximum(x, (x.reshape(8, 9) * 2).reshape(-1)),
    "behind a barrier": lambda x: jnp.maximum(x, jax.lax.optimization_barrier(x) * 2),
    "leaky relu": lambda x: jax.nn.leaky_relu(x, 2.0),
    "clamp": lambda x: jax.lax.clamp(2 * x, x, x + 5),
}
# It fuses products of matrices, a scale and a sum, in four dimensions, and takes numbers near those of GELU for them.
LARGE = np.float32(1e30)
FUSED = {
    "scale before": lambda q, k, mask: (q * (1 / LARGE)) @ k + mask,
    "quotient before": lambda q, k, mask: (q / LARGE) @ k + mask,
    "scale after": lambda q, k, mask: (q @ k) * (1 / LARGE) + mask,
    "results of functions": lambda q, k, mask: (
        (q * (1 / LARGE)) @ k * 0.1 + factors(mask)[1] + ((q * (2 / LARGE)) @ k * 0.2 + factors(2 * mask)[1])
    ),
    "results of qr": lambda q, k, mask: (q * (1 / LARGE)) @ k * 0.1 + jnp.linalg.qr(mask)[1],
}
# It makes one operation of a pad and a convolution, also where the pad is of the kernel, or of more than the image.
PADS = {
    "image": (((0, 0), (1, 2), (0, 1), (0, 0)), None),
    "batch": (((1, 0), (1, 1), (1, 1), (0, 0)), None),
    "features": (((0, 0), (1, 1), (1, 1), (1, 0)), None),
    "kernel": (None, ((1, 1), (0, 2), (0, 0), (0, 0))),
    "kernel's features": (None, ((0, 0), (0, 0), (1, 0), (0, 3))),
    "image and kernel": (((0, 0), (1, 1), (1, 1), (0, 0)), ((1, 1), (1, 1), (0, 0), (0, 0))),
}


def padded_convolution(of_image, of_kernel, padding, rank):
    """A convolution of three features, with a bias, whose operands are padded."""

    def function(x, kernel, b):
        if of_image is not None:
            x = jnp.pad(x, (*of_image[:3], *((1, 0),) * (rank - 2), of_image[3]))
        if of_kernel is not None:
            none = ((0, 0),) * (rank - 2)
            kernel = jnp.pad(kernel[..., of_kernel[2][0] :, :], (*of_kernel[:2], *none, *of_kernel[2:]))
        names = tuple(name.replace("-", "HWD"[:rank]) for name in ("N-C", "-IO", "N-C"))
        return jax.lax.conv_general_dilated(x, kernel, (1,) * rank, padding, dimension_numbers=names) + b

    return function


OF_TWO_RESULTS = {
    "mask": lambda q, k, masks, scales: ((q @ k) * np.float32(0.25) + masks[1],),
    "mask, the other side": lambda q, k, masks, scales: (masks[1] + np.float32(0.25) * (q @ k),),
    "scale": lambda q, k, masks, scales: ((q @ k) * scales[1] + masks[0],),
    "scale of an operand": lambda q, k, masks, scales: ((q * scales[1]) @ k + masks[1],),
    "operand": lambda q, k, masks, scales: ((masks[1] * np.float32(0.25)) @ masks[0] + masks[0],),
    "maximum": lambda q, k, masks, scales: (jnp.maximum(masks[0], masks[1] * np.float32(0.5)),),
    "product with a sigmoid": lambda q, k, masks, scales: (masks[0] * jax.nn.sigmoid(masks[1]),),
    "two sums": lambda q, k, masks, scales: ((q @ k) * scales[0] + masks[0], (q @ k) * scales[1] + masks[1]),
}


def like_gelu(inner, half, one, cubed=None):
    """GELU with other numbers."""
    inner, half, one = np.float32([inner, half, one])

    def by_erf(x):
        return (jax.lax.erf(x * inner) + one) * half * x

    def by_tanh(x):
        return (jnp.tanh((x + np.float32(cubed) * x * jnp.square(x)) * inner) + one) * half * x

    return by_erf if cubed is None else by_tanh


NEAR_GELU = {
    "erf": like_gelu(0.70710678, 0.5, 1),
    "erf 0.7": like_gelu(0.7, 0.5, 1),
    "erf, half": like_gelu(0.70710678, 0.495, 1),
    "erf, one": like_gelu(0.70710678, 0.5, 1.008),
    "tanh": like_gelu(0.79788456, 0.5, 1, 0.044715),
    "tanh 0.8": like_gelu(0.8, 0.5, 1, 0.044715),
    "tanh, cubed": like_gelu(0.79788456, 0.5, 1, 0.04),
    "tanh, one": like_gelu(0.79788456, 0.5, 1.008, 0.044715),
}


def normalized(axes, epsilon, mean_first):
    """A row or an image less its mean, by its deviation, scaled and shifted: for oneDNN epsilon is 0.001."""
    gamma, beta = np.float32([0.5, 2, 1]), np.float32([1, 0, -1])

    def function(x):
        mean = jnp.mean(x, axes, keepdims=True)
        variance = jnp.mean(jnp.square(x - mean), axes, keepdims=True)
        scale = jax.lax.rsqrt(variance + np.float32(epsilon)) * gamma
        return x * scale + (beta - (mean * scale if mean_first else scale * mean))

    return function


SHAPES = ((3,), (1, 3), (4, 3), (4, 1), (1, 1, 3), (5, 1, 3), (1, 4, 3), ())
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "leaky relu": lambda x: jnp.maximum(x, 0.1 * x),
    "maximum with zeros": lambda x: jnp.maximum(x, jnp.sin(jnp.zeros(3))),
}


def differs(name, function, *arguments):
    """Prints the name of a function of which graph mode has other values."""
    converted = convert(function, native_serialization=False, with_gradient=False)
    found, expected = converted(*map(tf.constant, arguments)).numpy(), np.asarray(jax.jit(function)(*arguments))
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True):
        print("differs:", name, found.ravel()[:9], expected.ravel()[:9])


def differs_of_two_results(name, function, *arguments):
    """The same for a function that takes two results of one operation, called as it is and by a `tf.function`."""
    q, k, masks, scales = arguments
    expected = jax.jit(function)(q, k, np.split(masks, 2, 1), scales)
    converted = convert(function, native_serialization=False, with_gradient=False)
    for called in (converted, tf.function(converted, autograph=False)):

        def of_whole(q, k, masks, scales, called=called):
            return called(q, k, tf.split(masks, 2, 1), tf.unstack(scales))

        found = tf.function(of_whole, autograph=False)(q, k, masks, scales)
        for ours, result in zip(found, expected, strict=True):
            if not np.allclose(ours, result, rtol=1e-5, atol=1e-5):
                print("differs:", name, np.ravel(ours)[:9], np.ravel(result)[:9])


# A difference from what is negated is a sum by then.
DIFFERENCES = {
    "a difference": lambda x, w, b: x @ w - (-b),
    "a difference from a product": lambda x, w, b: b - (-(x @ w)),
}


for name, function in MAXIMA.items():
    differs(name, function, X)
random = np.random.default_rng(0)
for shape in SHAPES:
    x, w, b = (random.normal(size=size).astype(np.float32) for size in ((4, 2), (2, 3), shape))
    for name, function in DIFFERENCES.items():
        differs(f"{name} and {shape}", function, x, w, b)
        differs(f"{name} and {shape}, one row", function, x[:1], w, b)
    for name, activation in ACTIVATIONS.items():
        differs(f"{name}, bias of {shape}", lambda x, w, b, f=activation: f(x @ w + b), x, w, b)
    for name, activation in NEAR_GELU.items():
        differs(f"GELU, {name}, bias of {shape}", lambda x, w, b, f=activation: f(x @ w + b), x, w, b)
for name, activation in ACTIVATIONS.items():
    # With NaN and infinities in what is summed.
    x, w, b = (random.normal(size=size).astype(np.float32) for size in ((4, 2), (2, 3), (3,)))
    x[0, 0], x[1, 1], w[1, 2] = np.nan, np.inf, -np.inf
    differs(f"{name} of a product", lambda x, w, b, f=activation: f(x @ w + b), x, w, b)
    for rank, groups in ((1, 1), (2, 1), (2, 3), (3, 1)):
        images = random.normal(size=(2, *(5,) * rank, 3)).astype(np.float32)
        kernel = random.normal(size=(*(3,) * rank, 3 // groups, 3)).astype(np.float32)
        images[0, 0] = np.nan

        def convolved(x, kernel, b, activation=activation, groups=groups):
            rank = x.ndim - 2
            names = tuple(name.replace("-", "HWD"[:rank]) for name in ("N-C", "-IO", "N-C"))
            made = jax.lax.conv_general_dilated(
                x, kernel, (1,) * rank, "SAME", dimension_numbers=names, feature_group_count=groups
            )
            return activation(made + b)

        differs(f"{name} of a convolution of {rank} dimensions, {groups} groups", convolved, images, kernel, b)
shapes = (2, 3, 4, 5), (2, 3, 5, 4), (2, 1, 4, 4)
q, k, mask = (random.normal(size=shape).astype(np.float32) for shape in shapes)
for name, function in FUSED.items():
    if name.startswith("results"):
        differs(name, function, q * LARGE, k, mask)
    else:
        differs(name, function, q * np.float32(1e25), k * np.float32(1e25), mask)
for name, function in OF_TWO_RESULTS.items():
    differs_of_two_results(name, function, q, k, np.concatenate([mask, 2 - mask], 1), np.float32([0.25, 3]))
for name, (of_image, of_kernel) in PADS.items():
    for rank in (2, 3):
        for padding in ("VALID", "SAME"):
            size = 2 if name == "features" else 3
            image = random.normal(size=(2, *(5,) * rank, size)).astype(np.float32)
            kernel = random.normal(size=(*(2,) * rank, 3, 4)).astype(np.float32)
            function = padded_convolution(of_image, of_kernel, padding, rank)
            differs(f"padded {name}, {rank} dimensions, {padding}", function, image, kernel, np.float32(1))
for epsilon in (1e-6, 1e-3):
    for mean_first in (False, True):
        for axes, shape in ((1, (4, 3)), (2, (2, 4, 3)), ((1, 2), (2, 4, 4, 3))):
            small = random.normal(scale=1e-3, size=shape).astype(np.float32)
            differs(f"normalized {axes}, {epsilon}", normalized(axes, epsilon, mean_first), small)
print("done")
