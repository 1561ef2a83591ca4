"""Linear algebra by name, for a translator of modules that has its own: custom calls instead of loops. Imports JAX.

Graph mode of jaxtf.convert lowers for no platform (`export_for_graph`). There JAX has no rule for the primitives below,
or writes them out in loops; TensorFlow has operations for most. Each becomes one custom call, and this is the
whole contract with those who translate it:

- Its target is `jaxtf.` and the name of the primitive: `jaxtf.eigh`, `jaxtf.svd`, `jaxtf.eig`, `jaxtf.qr`,
  `jaxtf.schur`, `jaxtf.hessenberg`, `jaxtf.tridiagonal`, `jaxtf.geqp3`.
- Operands and results are those of the primitive in JAX, in its order; all dimensions but the last two of a matrix, or
  the last of a vector, are batch dimensions. Sizes may be symbolic. So `eigh` gives (vectors, values), `svd`
  (s, u, vh) or (s,), `eig` (values, left vectors if asked for, right vectors if asked for), `qr` (q, r), with
  `pivoting` (q, r, pivots), `schur` (T, vectors if asked for), `hessenberg` (a, taus), `tridiagonal` (a, d, e, taus).
- `backend_config` is a dictionary of the primitive's parameters under their names in JAX: booleans as booleans,
  integers as 64-bit integers, texts as strings, pairs of integers (`subset_by_index`) as arrays of 64-bit integers;
  those of NumPy as those of Python.
  A parameter that is None, or of another kind (an algorithm or an implementation to choose), is not there.
- `api_version` is 4, and there are no side effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization import _jax

__all__ = ["PREFIX", "call_by_name"]

PREFIX = "jaxtf."


def call_by_name(name: str, ctx: Any, *operands: Any, **params: Any) -> Any:
    """The lowering rule that calls a primitive by its name."""
    call = stablehlo.CustomCallOp(
        _jax.result_types(ctx),
        list(operands),
        PREFIX + name,
        has_side_effect=False,
        backend_config=ir.DictAttr.get(_attributes(params)),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
    )
    return call.results


def _attributes(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the contract names, as attributes."""
    encoded = {name: _attribute(value) for name, value in params.items()}
    return {name: attribute for name, attribute in encoded.items() if attribute is not None}


def _attribute(value: Any) -> Any:
    """A parameter as an attribute; None for one that is left out."""
    if isinstance(value, bool | np.bool_):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, int | np.integer):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(value))
    if type(value) is str:
        return ir.StringAttr.get(value)
    if isinstance(value, tuple) and all(isinstance(item, int | np.integer) for item in value):
        return ir.DenseI64ArrayAttr.get(list(map(int, value)))
    return None
