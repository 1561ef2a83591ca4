"""Prints the digests of the functions of complex numbers, as the JAX that is installed writes them out.

Run it with each release of JAX, and add the lines that are new to `_program/complex_functions.py`.
"""

import jax
import numpy as np
from jax import lax

from jaxtf.serialization import export
from jaxtf.serialization._lift.reading import READING
from jaxtf.serialization._program.complex_functions import candidates, digest
from jaxtf.serialization._program.module import load_module
from jaxtf.serialization._program.parse import read_program

NAMES = """
    acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p logistic rsqrt sign sin sinh sqrt square tan tanh
"""
DTYPES = ("complex64", "complex128")


def exported(name, dtype, shape=(3,)):
    """A function of JAX, exported."""
    with jax.enable_x64(True):
        return export(jax.jit(getattr(lax, name)))(jax.ShapeDtypeStruct(shape, np.dtype(dtype)))


def found(name, dtype):
    """The digest of a function; None where it is not written out, or consists of one that is."""
    program = read_program(load_module(exported(name, dtype), is_read=True), READING)
    body = list(program.functions.values())[-1].body  # of a composite, its decomposition
    sources = {result: operation for operation in body.operations for result in operation.results}
    last, argument = sources[body.returned[0]], body.arguments[0]
    return digest(last, argument, sources) if argument in candidates(last, sources) else None


if __name__ == "__main__":
    for name in NAMES.split():
        for each in filter(None, (found(name, dtype) for dtype in DTYPES)):
            print(f'    "{each}": "{name}",')
