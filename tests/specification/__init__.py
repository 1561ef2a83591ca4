"""A case with numbers, or several, of each operation of StableHLO and CHLO that anything here evaluates.

What is expected is what the specification says, worked out by hand, in Python's integers and `math`, or by SciPy; never
by JAX, TensorFlow or XLA.
"""

from . import (
    arithmetic,
    broadcasting,
    contractions,
    control,
    dynamic,
    functions,
    indexing,
    reductions,
    shapes,
)

CASES = [
    *arithmetic.CASES,
    *broadcasting.CASES,
    *contractions.CASES,
    *control.CASES,
    *dynamic.CASES,
    *functions.CASES,
    *indexing.CASES,
    *reductions.CASES,
    *shapes.CASES,
]
