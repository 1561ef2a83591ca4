"""The table of operations: the results of each for operands of symbolic sizes; importing this fills it.

`RULES` has a function by the type of an operation. It gives the shapes of the results, exactly, for all sizes that
the constraints allow, or refuses; it writes the operation with the operands that must be constant as numbers at the
sample; and by being in the table it says that TensorFlow compiles the operation to a program that is right for all
sizes, if its numbers that are sizes are replaced by the sizes: no kernel here computes differently beyond some size,
but for operands that the rule has made explicit (the bounds of a slice).

Where the kernel is not of that kind for all operands, the rule writes other operations (a cumulative sum along a
symbolic axis), or says for which operands it is: a convolution with symbolic batch alone.
"""

from jaxtf.calltf._operations import (
    creation,
    cumulative,
    diagonals,
    elementwise,
    fourier,
    images,
    indexing,
    joining,
    lists,
    modules,
    moves,
    products,
    reductions,
    shapes,
    slices,
)
from jaxtf.calltf._operations.table import RULES

__all__ = [
    "RULES",
    "creation",
    "cumulative",
    "diagonals",
    "elementwise",
    "fourier",
    "images",
    "indexing",
    "joining",
    "lists",
    "modules",
    "moves",
    "products",
    "reductions",
    "shapes",
    "slices",
]
