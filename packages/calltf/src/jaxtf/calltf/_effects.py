"""The effect of a staged call whose TensorFlow function does more than compute.

A call whose traced graph is stateless has no effect: JAX may drop it when nobody uses its
results, and a compiled program that contains it is dispatched as fast as any other. A call
whose graph holds a stateful op (a random number without a seed tensor, a print) has
`CallTfEffect` unless the user says `has_side_effects=False`: JAX then keeps it, once.

Knows JAX's effect types; nothing of TensorFlow.
"""

from __future__ import annotations

from jax.extend.core import Effect

from jaxtf.calltf._jax import allow_effect


class CallTfEffect(Effect):
    """Something observable besides the results, in no particular order."""

    def __repr__(self) -> str:
        return "CallTf"


CALL_TF_EFFECT = CallTfEffect()

allow_effect(CallTfEffect)
