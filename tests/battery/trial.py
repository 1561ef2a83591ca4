"""One entry against plain JAX: exported once with symbolic shapes, then called at its sizes.

The exporter is an argument, so that `tests/test_battery.py` and `tools/coverage.py` ask the same questions of
`jaxtf.serialization` and of `jax.export`. JAX itself, on the sizes at hand, is the authority.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .entry import Entry, tolerance


@dataclass(frozen=True)
class Exporter:
    """A way to export: the functions `export` and `symbolic_args_specs` of `jaxtf` or of `jax.export`."""

    export: Callable[..., Callable[..., Any]]
    symbolic_args_specs: Callable[..., Any]

    def exported(self, entry: Entry, *, wide: bool = False) -> Any:
        """The entry's function, exported for symbolic shapes."""
        examples = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in entry.arguments(0, wide=wide)]
        specs = self.symbolic_args_specs(examples, list(entry.shapes), constraints=entry.constraints)
        return self.export(jax.jit(entry.function))(*specs)


def assert_values(exported: Any, entry: Entry, run: int, *, wide: bool = False) -> None:
    """The call gives what plain JAX gives: structure, shapes and dtypes the same, integers exactly."""
    arguments = entry.arguments(run, wide=wide)
    assert_same(exported.call(*arguments), jax.jit(entry.function)(*arguments), entry)


def assert_gradients(exported: Any, entry: Entry, run: int, *, wide: bool = False) -> None:
    """Reverse mode through the call gives what it gives through the function: results and gradient."""
    arguments = entry.arguments(run, wide=wide)
    found, expected = (
        jax.jit(jax.value_and_grad(loss(function), entry.differentiated(), has_aux=True))(*arguments)
        for function in (exported.call, entry.function)
    )
    assert_same(found[0][1], expected[0][1], entry)
    assert_same(found[1], expected[1], entry)


def loss(function: Callable[..., Any]) -> Callable[..., tuple[jax.Array, Any]]:
    """A number that every floating result enters, each with another cotangent; and the results."""

    def scalar(*arguments: Any) -> tuple[jax.Array, Any]:
        results = function(*arguments)
        leaves = [leaf for leaf in jax.tree.leaves(results) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
        return sum((jnp.abs(leaf) ** 2).sum().astype(float) for leaf in leaves), results

    return scalar


def assert_same(found: Any, expected: Any, entry: Entry) -> None:
    """Equal trees; floats as near as `tolerance` derives, relative to the largest number of each leaf."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        left, right = np.asarray(a), np.asarray(b)
        if not jnp.issubdtype(b.dtype, jnp.inexact):
            np.testing.assert_array_equal(left, right)
            continue
        wide = np.complex128 if jnp.issubdtype(b.dtype, jnp.complexfloating) else np.float64
        bound = tolerance(entry, b.dtype)
        scale = np.abs(right[np.isfinite(right)].astype(wide)).max(initial=0.0)
        np.testing.assert_allclose(left.astype(wide), right.astype(wide), rtol=bound, atol=bound * scale)
