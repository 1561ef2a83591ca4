"""Run with TF_ENABLE_ONEDNN_OPTS=1: operations that Grappler leaves out do not hide what it then rewrites or fuses.

Each program has a place where Grappler would compute something else, and each step gives its operand as it is. Prints
what has not the values of JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert

F32 = np.float32
LARGE = F32(1e30)
CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")


def all_ones(x):
    return np.ones(x.shape, x.dtype)


def by_complex(x):
    return lax.real(lax.complex(x, jnp.zeros_like(x)))


def reversed_order(x):
    return tuple(range(x.ndim))[::-1]


STEPS = {
    "nothing": lambda x: x,
    "transposed twice": lambda x: lax.transpose(lax.transpose(x, reversed_order(x)), reversed_order(x)),
    "negated twice": lambda x: lax.neg(lax.neg(x)),
    "reversed twice": lambda x: lax.rev(lax.rev(x, (0,)), (0,)),
    "reversed, of size 1": lambda x: lax.rev(x[None], (0,))[0],
    "bits twice": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.int32), x.dtype),
    "slice": lambda x: lax.slice(x, (0,) * x.ndim, x.shape),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (0,) * x.ndim, x.shape),
    "pad of nothing": lambda x: lax.pad(x, F32(0), [(0, 0, 0)] * x.ndim),
    "concatenated": lambda x: lax.concatenate([x], 0),
    "stacked": lambda x: jnp.stack([x])[0],
    "tiled": lambda x: jnp.tile(x, 1),
    "reshaped": lambda x: x.reshape(-1).reshape(x.shape),
    "expanded": lambda x: lax.squeeze(lax.expand_dims(x, (0,)), (0,)),
    "gathered": lambda x: x[jnp.arange(x.shape[0])],
    "plus 0": lambda x: x + F32(0),
    "plus zeros": lambda x: lax.add(x, 0 * all_ones(x)),
    "less 0": lambda x: x - F32(0),
    "times 1": lambda x: x * F32(1),
    "times ones": lambda x: lax.mul(x, all_ones(x)),
    "over ones": lambda x: lax.div(x, all_ones(x)),
    "to the power of 1": lambda x: lax.pow(x, F32(1)),
    "selected": lambda x: lax.select(all_ones(x).astype(bool), x, jnp.zeros_like(x)),
    "where": lambda x: jnp.where(True, x, 0),
    "branch": lambda x: lax.cond(True, lambda x: x, lambda x: x * 2, x),
    "barrier": lax.optimization_barrier,
    "mean of one": lambda x: jnp.mean(x[None], 0),
    "greatest of one": lambda x: jnp.max(x[None], 0, keepdims=True)[0],
    "larger than -inf": lambda x: lax.max(x, F32(-np.inf) * all_ones(x)),
    "real part": by_complex,
    "times a greatest": lambda x: x * jnp.max(jnp.ones(3, x.dtype)),
    "plus a sum": lambda x: x + jnp.sum(jnp.zeros(3, x.dtype)),
    "to the power of a sum": lambda x: lax.pow(x, jnp.sum(jnp.ones(1, x.dtype))),
    "where any": lambda x: jnp.where(jnp.any(jnp.arange(3) > 1), x, 3),
    "branch if any": lambda x: lax.cond(jnp.any(jnp.arange(3) > 1), lambda x: x, lambda x: x * 2, x),
}


def steps_by(one, zero, yes):
    """Steps by what a program is called with."""
    return {
        "times an argument": lambda x: x * one,
        "plus an argument": lambda x: x + zero,
        "less an argument": lambda x: x - zero,
        "over an argument": lambda x: x / one,
        "to the power of an argument": lambda x: lax.pow(x, one),
        "where an argument": lambda x: jnp.where(yes, x, 7),
        "branch if an argument": lambda x: lax.cond(yes, lambda x: x, lambda x: x * 2, x),
    }


def convolution(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=CHANNELS_LAST)


def programs(same):
    """By name: a function that takes such a step, and its arguments."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.standard_normal(shape).astype(F32)

    nans = normal(4, 2)
    nans[0, 0] = np.nan
    square = np.ones((2, 2), F32)
    q, k, mask = normal(2, 3, 4, 5), normal(2, 3, 5, 4), normal(2, 1, 4, 4)
    return {
        "sum": (lambda a, b, c: a + same(b + c), (LARGE * square, -LARGE * square, square)),
        "sum of constants": (lambda x: LARGE + same(x - LARGE), (square,)),
        "product": (lambda x, s: same(x * s) * s, (square / LARGE, LARGE * square)),
        "product of constants": (lambda x: same(x * LARGE) * LARGE, (square / LARGE,)),
        "logarithm": (lambda x: jnp.log(same(1 + x)), (square * F32(1e-9),)),
        "power less one": (lambda x: same(jnp.exp(x)) - 1, (square * F32(1e-9),)),
        "logarithm of softmax": (lambda x: jnp.log(same(jax.nn.softmax(x, -1))), (F32([[0, -1000]]),)),
        "by its size": (lambda x: jnp.arccos(x / same(jnp.sqrt(x * x))), (np.arange(1, 401, dtype=F32)[None],)),
        "reciprocal": (lambda x: 1 / same(x), (F32(2.0 ** np.arange(-60, 60))[None],)),
        "largest root": (lambda x: jnp.max(same(jnp.sqrt(x)), 1), (F32([[1, -1, 2]]),)),
        "relu of a product": (lambda x, w, b: jax.nn.relu(same(same(x @ w) + b)), (nans, normal(2, 3), normal(3))),
        "relu of a convolution": (
            lambda x, w, b: jax.nn.relu(same(convolution(x, w) + b)),
            (np.full((1, 5, 5, 2), np.nan, F32), normal(3, 3, 2, 3), normal(3)),
        ),
        "maximum": (lambda x: jnp.maximum(x, same(2 * x)), (normal(3, 4),)),
        "maximum, the other": (lambda x: jnp.maximum(same(x), 2 * x), (normal(3, 4),)),
        "maximum of two results": (lambda x: larger_of(jnp.linalg.qr(x), same), (normal(4, 4),)),
        "scaled before": (lambda q, k, mask: same(q / LARGE) @ k + mask, (q * F32(1e25), k * F32(1e25), mask)),
        "mask of two results": (
            lambda q, k, mask: same(q @ k) * F32(0.25) + same(jnp.linalg.qr(mask)[1]),
            (q, k, mask),
        ),
        "kernel by a constant": (
            lambda x: convolution(same(x * LARGE), np.full((3, 3, 2, 2), LARGE)),
            (np.full((1, 4, 4, 2), 1 / LARGE),),
        ),
        "padded kernel": (
            lambda x, w: convolution(x, same(jnp.pad(w, ((1, 1), (1, 1), (0, 0), (0, 0))))),
            (normal(1, 5, 5, 2), normal(1, 1, 2, 3)),
        ),
        "padded batch": (
            lambda x, w: convolution(same(jnp.pad(x, ((1, 0), (1, 1), (1, 1), (0, 0)))), w),
            (normal(1, 5, 5, 2), normal(3, 3, 2, 3)),
        ),
    }


def larger_of(results, same):
    return jnp.maximum(results[0], same(same(results[1]) * F32(0.5)))


def agree(found, expected):
    """Up to rounding, of sums of numbers of about 1 too."""
    return found.shape == expected.shape and np.allclose(found, expected, rtol=3e-5, atol=1e-5, equal_nan=True)


# Of which the right result is so small that a tolerance would hide another.
EXACT = {"logarithm", "power less one"}


def report(name, step, found, function, arguments):
    """Prints a result that is not that of JAX, with or without `jit`."""
    alternatives = [np.asarray(f(*map(jnp.asarray, arguments))) for f in (function, jax.jit(function))]
    compare = np.array_equal if name in EXACT else agree
    if not any(compare(found, expected) for expected in alternatives):
        print("differs:", name, step, found.ravel()[:4], *(x.ravel()[:4] for x in alternatives))


def in_graph(function):
    return tf.function(convert(function, native_serialization=False, with_gradient=False), autograph=False)


for step, same in STEPS.items():
    for name, (function, arguments) in programs(same).items():
        report(name, step, in_graph(function)(*arguments).numpy(), function, arguments)

CONSTANTS = F32(1), F32(0), np.True_
for step in steps_by(*CONSTANTS):

    def all_programs(one, zero, yes, arguments, step=step):
        return {
            name: function(*arguments[name]) for name, (function, _) in programs(steps_by(one, zero, yes)[step]).items()
        }

    @jax.jit
    def large(one, zero, yes, arguments, all_programs=all_programs):
        """It becomes a function of the graph."""
        return all_programs(one, zero, yes, arguments)

    def calling(arguments, large=large):
        return large(*CONSTANTS, arguments), large(*CONSTANTS, {name: list(x)[:] for name, x in arguments.items()})

    given = {name: list(arguments) for name, (_, arguments) in programs(None).items()}
    called = in_graph(all_programs)
    from_outside = tf.function(lambda x, called=called: called(*map(tf.constant, CONSTANTS), x), autograph=False)
    for where, results in {"from outside": from_outside(given), "twice": in_graph(calling)(given)[0]}.items():
        for name, (function, arguments) in programs(steps_by(*CONSTANTS)[step]).items():
            report(name, f"{step}, called {where}", results[name].numpy(), function, arguments)
print("done")
