"""Programs under random equalities of sizes, exported and run: whatever `jax.export` takes, with the right values.

`BESIDE_JAX_EXPORT` sets how many are drawn: a fixed sample without it, thousands with the session `beside_jax_export`.
"""

import importlib.util
import os
import random
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export as jax_export

from jaxtf.serialization import export
from jaxtf.shapepoly import SymbolicScope, symbolic_shape

CASES = int(os.environ.get("BESIDE_JAX_EXPORT", "40"))


def load(path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


equalities = load(Path(__file__).parent.parent / "packages/shapepoly/tests/with_jax/random_equalities.py")


def runnable(text, functions):
    """The program as a function of two matrices, whose values depend on theirs."""

    def run(x, y):
        sizes = dict(zip("abcd", (*x.shape, *y.shape), strict=True))
        return equalities.value(text, {**sizes, "x": x, "y": y}, functions) + x.sum() - y[0, 0]

    return jax.jit(run)


def operands(sizes):
    return [
        np.arange(n * m, dtype=np.float32).reshape(n, m) % 5 - 2
        for n, m in ((sizes["a"], sizes["b"]), (sizes["c"], sizes["d"]))
    ]


def specs(shape):
    return [jax.ShapeDtypeStruct(part, "float32") for part in (shape[:2], shape[2:])]


@pytest.mark.parametrize("seed", range(CASES))
def test_what_jax_export_exports_is_exported_and_gives_the_same(seed):
    draw = random.Random(f"export {seed}")
    texts, sides, allowed = equalities.declared(draw)
    text = equalities.program(draw, *sides)
    names = ", ".join(equalities.NAMES)
    ours = equalities.outcome(
        lambda: export(runnable(text, equalities.OURS))(*specs(symbolic_shape(names, scope=SymbolicScope(texts))))
    )
    theirs = equalities.outcome(
        lambda: jax_export.export(runnable(text, equalities.THEIRS))(
            *specs(jax_export.symbolic_shape(names, constraints=texts))
        ),
        crashes=KeyError,  # where it has simplified a dimension variable away that it then solves for
    )
    for sizes in draw.sample(allowed, min(3, len(allowed))):
        values = operands(sizes)
        expected = equalities.outcome(lambda values=values: runnable(text, equalities.PYTHON)(*values))
        if expected is None:
            continue
        if ours is not None:
            np.testing.assert_array_equal(ours.call(*values), expected, err_msg=f"{texts} {text} {sizes}")
        elif theirs is not None:
            found = equalities.outcome(lambda values=values: theirs.call(*values))
            assert found is None or not np.array_equal(found, expected), (texts, text, sizes)
