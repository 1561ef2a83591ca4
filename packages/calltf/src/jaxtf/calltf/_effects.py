"""The effect of a staged call whose TensorFlow function does more than compute.

A call whose traced graph is stateless has no effect: JAX may drop it when nobody uses its
results, and a compiled program that contains it is dispatched as fast as any other. A call
whose graph holds a stateful op (a random number without a seed tensor, a print) has
`CallTfEffect` unless the user says `has_side_effects=False`: JAX then keeps it, once.

A call with `ordered=True` has `CallTfOrderedEffect`, whatever its function does.

An artifact has of an effect the name of its class alone; so effects of one class are equal.

Knows JAX's effect types; nothing of TensorFlow.
"""

from __future__ import annotations

from jax.extend.core import Effect

from jaxtf.calltf._jax import allow_effect


class _EqualByClass(Effect):
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class CallTfEffect(_EqualByClass):
    """Something observable besides the results, in no particular order."""

    def __repr__(self) -> str:
        return "CallTf"


class CallTfOrderedEffect(_EqualByClass):
    """The same, after all that came before it."""

    def __repr__(self) -> str:
        return "CallTfOrdered"


CALL_TF_EFFECT = CallTfEffect()
CALL_TF_ORDERED_EFFECT = CallTfOrderedEffect()

allow_effect(CallTfEffect)
allow_effect(CallTfOrderedEffect, ordered=True)
