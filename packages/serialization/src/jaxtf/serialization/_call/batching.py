"""`jax.vmap` of a call: a loop over the batch, one call of the record for each element.

Right for every function, and an artifact needs nothing for it; what a loop costs is not hidden: a
function that is to be fast over batches is lifted (`Exported.lift`), or exported with a batch dimension of its own. A
call does not lift by itself: what is not lifted runs in a loop too, and gives the numbers of the call. Folding
the batch into a symbolic leading dimension is never tried: that the sizes fit says nothing of
whether the function treats the elements of that dimension apart.

The batch size may be symbolic or 0. Ordered effects are refused: the elements of a batch have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import batching

from jaxtf.serialization._call.derivatives import call_exported_linear_p
from jaxtf.serialization._call.primitive import Callee, call_exported_p
from jaxtf.serialization._errors import EffectsRefused
from jaxtf.serialization._record.exported import Exported

__all__ = ["register"]


def _batched(primitive: Any) -> Callable[..., tuple[Sequence[Any], Sequence[int]]]:
    def rule(
        operands: Sequence[Any], axes: Sequence[Any], *, callee: Callee, **params: Any
    ) -> tuple[Sequence[Any], Sequence[int]]:
        _refuse_ordered_effects(callee.record)
        mapped = [index for index, axis in enumerate(axes) if isinstance(axis, int)]

        def one(elements: Sequence[Any]) -> Sequence[Any]:
            whole = list(operands)
            for index, element in zip(mapped, elements, strict=True):
                whole[index] = element
            return primitive.bind(*whole, callee=callee, **params)  # type: ignore[no-any-return]

        results = jax.lax.map(one, [jax.numpy.moveaxis(operands[index], axes[index], 0) for index in mapped])
        return results, [0] * len(results)

    return rule


def _refuse_ordered_effects(exported: Exported) -> None:
    if exported.ordered_effects:
        raise EffectsRefused(
            f"jax.vmap of '{exported.fun_name}', which has the ordered effects "
            f"{', '.join(map(str, exported.ordered_effects))}: the elements of a batch have no order\n"
            "  remedy: call it in a Python loop or in jax.lax.scan"
        )


def register() -> None:
    """Registers the batching rule of the call primitive and of its linear form."""
    for primitive in (call_exported_p, call_exported_linear_p):
        batching.primitive_batchers[primitive] = _batched(primitive)
