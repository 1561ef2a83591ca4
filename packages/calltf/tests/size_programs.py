"""TensorFlow functions of a size, drawn at random, and what `call_tf` makes of them, exported with that size symbolic.

A function has one argument, `x` of shape `(b, 2)`. It computes an integer from `b` (arithmetic, casts, bits, roots,
thresholds that are literal or computed) and uses it: as a value, a bound, a length, a depth, a condition, a shift, the
turns of a loop. It is compared with TensorFlow at sizes on both sides of each threshold. `python size_programs.py 1000`
draws so many, and prints each that is neither right nor refused, then the counts; a second number is the first seed.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from typing import Any, NamedTuple

import jax
import numpy as np
import tensorflow as tf
from jax import export

from jaxtf.calltf import call_tf

THRESHOLDS = (1, 2, 3, 4, 7, 8, 10, 12, 16, 50, 100, 127, 128, 255, 1000, 4096, 10_000, 32_768, 65_536, 300_000, 10**6)
MOST_ROWS = 1_100_000  # of a result
TENSORFLOW_FAILS = (tf.errors.OpError, ValueError, TypeError)


class Program(NamedTuple):
    """A function of `x`, as Python, and sizes to try it at."""

    source: str
    sizes: tuple[int, ...]

    def function(self) -> Any:
        return eval(f"lambda x: {self.source}", {"tf": tf, **HELPERS})


def rows(x):
    return tf.shape(x)[0]


def loop(count, x):
    """`x + 1 + ... ` in at most 50 turns, counted by a value that depends on the size."""
    turns = tf.minimum(count, 50)
    return tf.while_loop(lambda i, _: i < turns, lambda i, y: (i + 1, y * 0.5 + 1.0), (0, x))[1]


def doubled(limit):
    """The smallest power of two that is not below the limit, by a loop over integers alone."""
    return tf.while_loop(lambda i: i < limit, lambda i: (i * 2,), (tf.constant(1),))[0]


def bounded(number):
    """For lengths: at most `MOST_ROWS`, by the remainder, which is exact whatever the number."""
    return tf.math.floormod(tf.cast(number, tf.int32), MOST_ROWS)


HELPERS = {"rows": rows, "loop": loop, "doubled": doubled, "bounded": bounded}

BINARY = ("{a} + {k}", "{a} - {k}", "{k} - {a}", "{a} * {s}", "{a} // {k}", "{a} % {k}", "-{a} // {k}")
CHOICES = ("tf.minimum({a}, {k})", "tf.maximum({a}, {k})", "tf.abs({a} - {k})", "tf.where({a} > {k}, {a}, {k})")
BITS = ("tf.bitwise.bitwise_and({a}, {k})", "tf.bitwise.right_shift({a}, {s})", "tf.bitwise.bitwise_xor({a}, {k})")
CASTS = (
    "tf.cast(tf.cast({a}, tf.{narrow}), tf.int32)",
    "tf.cast(tf.cast(tf.clip_by_value({a}, -60000, 60000), tf.float16), tf.int32)",  # infinity has no integer
    "tf.cast(tf.cast({a}, tf.float32) * 0.99, tf.int32)",
    "tf.cast(tf.sqrt(tf.cast(tf.abs({a}), tf.float32)), tf.int32)",
    "tf.cast(tf.math.ceil(tf.cast({a}, tf.float32) / tf.cast({k}, tf.float32)), tf.int32)",
    "tf.cast(tf.cast({a}, tf.int64) * tf.cast({a}, tf.int64) // tf.cast({k}, tf.int64), tf.int32)",
    "tf.cast(tf.math.log(tf.cast(tf.abs({a}) + 1, tf.float64)), tf.int32)",
)
OTHERS = (
    "tf.cond({a} > {k}, lambda: {a}, lambda: {k})",
    "doubled({a})",
    "{a} * {a}",
    "tf.size(x)",
    "tf.sign({a} - {k})",
)
COMPUTED = (
    str,
    (lambda k: f"tf.constant({k})"),
    (lambda k: f"(tf.constant({k - 1}) + 1)"),
    (lambda k: f"tf.reduce_sum([{k // 2}, {k - k // 2}])"),
    (lambda k: f"tf.cast(tf.constant({k}.0), tf.int32)"),
    (lambda k: f"tf.reduce_prod([{k}, 1])"),
)
USES = (
    "x + tf.cast({e}, tf.float32)",
    "x * tf.cast({e}, tf.float32) + 1.0",
    "x[:{e}]",
    "x[{e}:]",
    "x[-{e}:]",
    "x[:{k}]",
    "x[{s}:]",
    "x[{s}:-{s}]",
    "x[::{s}]",
    "x[::-{s}]",
    "x[{e}:{e} + {s}]",
    "tf.slice(x, [0, 0], [tf.clip_by_value({e}, 0, rows(x)), 2])",
    "tf.cond({e} > {k}, lambda: x, lambda: 2 * x)",
    "tf.cond({e} == {k}, lambda: x, lambda: 2 * x)",
    "tf.cond(tf.logical_and({e} > {s}, {e} <= {k}), lambda: tf.sin(x), lambda: 2 * x)",
    "tf.where({e} > {k}, x, 2 * x)",
    "tf.switch_case(tf.clip_by_value({e}, 0, 2), [lambda: x, lambda: 2 * x, lambda: 3 * x])",
    "tf.range(bounded({e}))",
    "tf.range(rows(x)) + {e}",
    "tf.range(rows(x)) // {k}",
    "tf.range(0, rows(x), {s})",
    "tf.pad(x, [[0, bounded({e})], [0, 0]])",
    "tf.pad(x, [[tf.maximum({k} - rows(x), 0), 0], [0, 0]])",
    "tf.one_hot([0, 3], bounded({e}))",
    "tf.one_hot(tf.minimum(tf.range(rows(x)), 5), 4)",
    "tf.fill([bounded({e}), 2], 1.5)",
    "tf.zeros([rows(x), 2]) + tf.cast({e}, tf.float32)",
    "tf.roll(x, {e}, 0)",
    "tf.gather(x, tf.clip_by_value({e}, 0, rows(x) - 1))",
    "tf.gather(x, tf.range(rows(x)) % tf.minimum({k}, rows(x)))",
    "tf.sequence_mask(tf.clip_by_value({e}, 0, 50), 60)",
    "tf.sequence_mask({k}, rows(x))",
    "tf.repeat(x[:1], tf.clip_by_value({e}, 0, 40), axis=0)",
    "tf.tile(x[:1], [bounded({e}), 1])",
    "tf.broadcast_to(x[:1], [tf.maximum(bounded({e}), 1), 2])",
    "tf.reshape(x, [-1])[:{e}]",
    "tf.reshape(x, [2, rows(x)])[:, :{k}]",
    "tf.concat([x, x[:{k}]], 0)",
    "tf.reduce_sum(x[{s}:], 0)",
    "tf.reduce_mean(x[:{k}], 0)",
    "tf.reverse(x, [0])[:{k}]",
    "tf.transpose(x)[:, :{e}]",
    "loop({e}, x)",
    "x + tf.reduce_sum(tf.cast(tf.range(tf.clip_by_value({e}, 0, 60)), tf.float32))",
    "tf.cumsum(x, 0)[{s}:]",
    "tf.split(x, 1)[0][:{k}]",
    "tf.stack([x, x])[:, {s}:]",
    "tf.eye(tf.clip_by_value({e}, 1, 30))",
    "tf.linspace(0.0, 1.0, tf.clip_by_value({e}, 2, 30))",
    "x if False else tf.ensure_shape(x, [None, 2]) + tf.cast(tf.rank(x) * {e}, tf.float32)",
)


def program(seed: int) -> Program:
    """The function of a seed."""
    draw = random.Random(seed)
    mentioned: set[int] = set()

    def threshold(most: int = 10**6) -> str:
        number = draw.choice([k for k in THRESHOLDS if k <= most])
        mentioned.add(number)
        return draw.choice(COMPUTED)(number) if draw.random() < 0.4 else str(number)

    def step() -> str:
        return str(draw.choice((1, 2, 3, 4)))

    def expression(depth: int) -> str:
        if depth == 0:
            return "rows(x)"
        form = draw.choice(draw.choice((BINARY, BINARY, CHOICES, BITS, CASTS, OTHERS)))
        narrow = draw.choice(("int8", "int16", "uint8", "int64", "float32"))
        return "(" + form.format(a=expression(depth - 1), k=threshold(), s=step(), narrow=narrow) + ")"

    source = draw.choice(USES).format(e=expression(draw.choice((0, 1, 1, 2))), k=threshold(), s=step())
    sizes = {1, 2, 3, 5, draw.randint(6, 300), draw.randint(300, 5000)}
    for number in mentioned:
        sizes |= {number - 1, number, number + 1, 2 * number + 1}
    return Program(source, tuple(sorted(size for size in sizes if 1 <= size <= MOST_ROWS)))


def verdict(drawn: Program) -> str:
    """`right`, `refused: ...` by name when exported, or what is wrong."""
    function = drawn.function()
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 2"), np.float32)
    try:
        exported = export.export(jax.jit(call_tf(function)))(spec)
    except Exception as error:
        own = type(error).__module__.startswith("jaxtf.")
        return f"refused: {error}" if own else f"not our error: {type(error).__name__}: {error}"
    for size in drawn.sizes:
        x = (np.arange(2 * size, dtype=np.float32) % 7 / 4).reshape(size, 2)  # sums of these are exact
        try:
            expected = function(tf.constant(x)).numpy()
        except TENSORFLOW_FAILS:
            continue
        try:
            found = np.asarray(exported.call(x))
        except Exception as error:
            return f"fails for {size}: {type(error).__name__}: {str(error)[:300]}"
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return f"wrong for {size}: {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
        if not np.allclose(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
            return f"wrong for {size}: {found.ravel()[:3]}, not {expected.ravel()[:3]}"
    return "right"


def main(count: int, first: int = 0) -> None:
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        drawn = program(seed)
        answer = verdict(drawn)
        counts[answer.partition(":")[0].partition(" for ")[0]] += 1
        if not answer.startswith(("right", "refused")) or "-v" in sys.argv:
            print(seed, drawn.source, answer.partition("\n")[0][:300], sep="\n  ", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:] if word != "-v"))
