"""Random equalities of sizes, and questions and programs that depend on them, as texts.

Names are sizes; the functions that a text calls are those of Python, of `jaxtf.shapepoly` or of JAX.
"""

import itertools

import jax
import jax.numpy as jnp

from jaxtf.shapepoly import max_dim, min_dim

NAMES = "abcd"
PYTHON = {"floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "max": max, "min": min}
OURS = {**PYTHON, "max": max_dim, "min": min_dim}
THEIRS = {**PYTHON, "max": jax.core.max_dim, "min": jax.core.min_dim}
SIZES = [dict(zip(NAMES, sizes, strict=True)) for sizes in itertools.product((1, 2, 3, 4, 6, 8, 12), repeat=4)]


def value(text, sizes, functions=PYTHON):
    return eval(text, {"__builtins__": {}, "jnp": jnp, **functions}, dict(sizes))


def equality(draw):
    """An equality in the form that `jax.export` takes: one term on the left."""
    x, y, z, w = draw.sample(NAMES, 4)
    k, j = draw.choice((2, 3, 4)), draw.choice((1, 2, 3))
    return draw.choice(
        [
            *[(x, f"{k}*{y}"), (x, y), (x, f"{y}*{z}"), (x, f"{y} + {z}"), (x, f"{y} + {j}"), (f"mod({x}, {k})", "0")],
            *[
                (f"mod({x}, {k})", "1"),
                (f"floordiv({x}, {k})", y),
                (x, f"floordiv({y}, {k})"),
                (f"{x}*{y}", f"{z}*{w}"),
            ],
            *[(f"{k}*{x}", f"{j}*{y}"), (f"max({x}, {y})", z), (f"min({x}, {y})", f"{j}"), (f"{x}*{y}", f"{k}*{z}")],
            *[(f"mod({x}*{y}, {k})", "0"), (f"mod({x}, {y})", "0"), (f"{x}*{x}", f"{y}*{z}"), (x, f"{y}*{y}")],
            *[(x, f"{y}*{z} + {w}"), (x, f"{k}*floordiv({y}, {k})"), (f"{x}*{y}", f"{z} + {w}")],
        ]
    )


def expression(draw, depth=2):
    """The text of an expression with products, quotients and remainders by integers, minima and maxima."""
    if depth == 0 or draw.random() < 0.25:
        return draw.choice([*NAMES, *NAMES, str(draw.randint(1, 4))])
    x, y = expression(draw, depth - 1), expression(draw, depth - 1)
    k = draw.choice((2, 3, 4, 5))
    return draw.choice(
        [
            *[f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} * {y})", f"({k} * {x})"],
            *[f"floordiv({x}, {k})", f"mod({x}, {k})", f"min({x}, {y})", f"max({x}, {y})"],
        ]
    )


def program(draw, left, right):
    """The text of a program on `x` of shape (a, b) and `y` of shape (c, d), which uses what the equality says."""
    f, g = draw.sample(NAMES, 2)
    v, k = draw.choice(NAMES), draw.choice((2, 3, 4))
    e, h = expression(draw, 1), expression(draw, 1)
    left, right = (f"({side})" for side in draw.sample((left, right), 2))
    return draw.choice(
        [
            f"jnp.ones({left}*{f}*{g}) + jnp.ones({right}*{f}*{g})",
            f"jnp.ones(({left}, {f}, {g})).reshape({right}*{f}, -1)",
            f"jnp.ones(({left}*{f}, {g})).reshape(-1) + jnp.ones({f}*{g}*{right})",
            f"jnp.ones({left}*{f}).reshape(-1, {f}) + jnp.ones(({right}, {f}))",
            f"jnp.ones(({left}, {e} + 1)).reshape(-1) + jnp.ones(({right}*({e} + 1)))",
            f"jnp.concatenate([jnp.ones({left}*{f}), jnp.ones({e} + 1)]) + jnp.ones({right}*{f} + {e} + 1)",
            f"x.reshape({v}, -1)",
            f"x.reshape(-1, {v})",
            f"x.reshape({k}, -1)",
            f"x.reshape(floordiv({v}, {k}), {k}, -1)",
            f"x.reshape({k}, floordiv({v}, {k}), -1).reshape({v}, -1)",
            "x.reshape(-1) + y.reshape(-1)",
            "x.reshape(y.shape) + y",
            f"jnp.ones({v}*{f})[: {v}] * jnp.ones({v})",
            f"jnp.broadcast_to(jnp.ones({left}), ({e} + 1, {right}))",
            f"jnp.ones(max({e}, {h})).reshape({k}, -1)",
        ]
    )


def outcome(call, crashes=()):
    """The result, or None where it is refused.

    Refusals only: what else goes wrong is a failure of the test. `jax.export` has AttributeErrors of its own.

    Args:
      call: What is called.
      crashes: Errors besides that count as refusals: those that are a fault of `jax.export`.
    """
    try:
        return call()
    except Exception as error:
        if isinstance(error, AssertionError | KeyError | IndexError) and not isinstance(error, crashes):
            raise
        return None


def declared(draw):
    """Constraints, the sides of the first, and the sizes that satisfy them all."""
    while True:
        found = [equality(draw) for _ in range(draw.choice((1, 1, 1, 2)))]
        texts = [f"{left} == {right}" for left, right in found]
        allowed = [sizes for sizes in SIZES if all(value(text, sizes) for text in texts)]
        if len(allowed) > 1 and len({left for left, _ in found}) == len(found):
            return texts, found[0], allowed
