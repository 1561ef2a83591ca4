"""The effect of a staged call whose TensorFlow function does more than compute.

A call whose traced graph is stateless has no effect: JAX may drop it when nobody uses its
results, and a compiled program that contains it is dispatched as fast as any other. A call
whose graph holds a stateful op (a random number without a seed tensor, a print) has
`CallTfEffect` unless the user says `has_side_effects=False`: JAX then keeps it, once.

A call with `ordered=True` has `CallTfOrderedEffect`, whatever its function does.

Knows JAX's effect types; nothing of TensorFlow.
"""

from __future__ import annotations

from jax.extend.core import Effect

from jaxtf.calltf._jax import allow_effect


class CallTfEffect(Effect):
    """Something observable besides the results, in no particular order."""

    def __repr__(self) -> str:
        return "CallTf"


class CallTfOrderedEffect(Effect):
    """The same, after all that came before it."""

    def __repr__(self) -> str:
        return "CallTfOrdered"


CALL_TF_EFFECT = CallTfEffect()
CALL_TF_ORDERED_EFFECT = CallTfOrderedEffect()

allow_effect(CallTfEffect)
allow_effect(CallTfOrderedEffect, ordered=True)
