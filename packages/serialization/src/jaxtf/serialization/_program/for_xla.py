"""Operations written otherwise where a release of XLA does not compute what they say, and does not say so.

`rewrite_for_xla(module)` does that in place: of a module that is exported, that is read to be called or lifted, and
that TensorFlow compiled. What the module computes stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax.extend.mlir import ir

from jaxtf.serialization._program.cropped_convolutions import crop_before, takes_and_adds
from jaxtf.serialization._program.indexed_scatters import give_an_index, has_no_index

__all__ = ["rewrite_for_xla"]

# Of each operation, which are written otherwise, and by what.
_REWRITTEN: dict[str, tuple[Callable[[Any], bool], Callable[[Any], None]]] = {
    "stablehlo.convolution": (takes_and_adds, crop_before),
    "stablehlo.scatter": (has_no_index, give_an_index),
}


def rewrite_for_xla(module: ir.Module) -> None:
    """Has XLA compute what the module says; a module that needs nothing is left as it is."""
    found: list[tuple[Any, Callable[[Any], None]]] = []

    def visit(operation: Any) -> Any:
        op = operation.operation
        if op.name in _REWRITTEN:
            needs, rewrite = _REWRITTEN[op.name]
            if needs(op):
                found.append((op, rewrite))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    with module.context:
        for op, rewrite in found:
            rewrite(op)
