"""Functions of JAX that give other values where two sizes are equal, by a Python branch on `==`.

Equality is False where sizes are equal for some values only, and nearly all that JAX does then is right for these too:
it raises an error, or goes a general way to the same values. The functions of the table do not, so that equality
raises an error where they ask and the answer depends on the values of the dimension variables.

`tests/test_branches_on_sizes.py` finds who asks, by tracing what JAX has; who is new there is added here, or to its
list of those whose values do not depend on the answer.
"""

from __future__ import annotations

from types import FrameType

__all__ = ["DECIDED_BY_EQUALITY", "decided_by"]

# The name of the function in JAX -> the public function, and what it gives where the answer is False.
DECIDED_BY_EQUALITY = {
    "_cofactor_solve": "the derivative of jax.numpy.linalg.det has a form of its own for matrices of one element",
    "_triage_segments": "the window of jax.scipy.signal has a form of its own for segments of one element",
    "array_equal": "jax.numpy.array_equal is False for arrays of other shapes, without a look at their elements",
    "rfftfreq": "jax.numpy.fft.rfftfreq takes a size that is not known to be even for an odd one",
}


def decided_by(frame: FrameType) -> str | None:
    """What depends on whether sizes are equal in the function of a frame; None for all but a few functions."""
    what = DECIDED_BY_EQUALITY.get(frame.f_code.co_name)
    return what if what is not None and str(frame.f_globals.get("__name__")).startswith("jax.") else None
