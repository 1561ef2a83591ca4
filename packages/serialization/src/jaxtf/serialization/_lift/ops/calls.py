"""Calls of functions of the module, composites, regions applied elementwise, tuples, and assertions about sizes."""

from __future__ import annotations

import math
import re
from typing import Any

import jax
from jax import lax

from jaxtf.serialization._errors import ArgumentMismatch
from jaxtf.serialization._lift.arrays import of_arrays
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_integers, known_truth
from jaxtf.serialization._record.avals import DOES_NOT_FIT
from jaxtf.shapepoly import InconclusiveDimensionOperation

_PLACEHOLDER = re.compile(r"\{(\d+)\}")


@lifts("func.call", takes_sizes=True)
def call(bound: Bound, *operands: Any) -> list[Any]:
    """What a function of the module gives."""
    return bound.call(bound["callee"], operands)


@lifts("stablehlo.composite", takes_sizes=True)
def composite(bound: Bound, *operands: Any) -> list[Any]:
    """What the decomposition of an operation gives that has a name but no entry here.

    Source: StableHLO specification, `composite`.
    """
    return bound.call(bound["decomposition"], operands)


@lifts("stablehlo.map")
def map_(bound: Bound, *operands: Any) -> list[Any]:
    """The region applied elementwise.

    Source: StableHLO specification, `map`.
    """
    shape = operands[0].shape
    flat = [lax.reshape(x, (math.prod(shape),)) for x in operands]
    made = jax.vmap(of_arrays(bound.regions[0]))(*flat)
    return [lax.reshape(x, shape) for x in made]


@lifts("stablehlo.optimization_barrier")
def optimization_barrier(bound: Bound, *operands: Any) -> list[Any]:
    """The operands, all there before any of them is used.

    Source: StableHLO specification, `optimization_barrier`.
    """
    return list(lax.optimization_barrier(tuple(operands))) if operands else []


@lifts("stablehlo.tuple")
def tuple_(bound: Bound, *operands: Any) -> list[Any]:
    """The operands as one value.

    Source: StableHLO specification, `tuple`.
    """
    return [tuple(operands)]


@lifts("stablehlo.get_tuple_element")
def get_tuple_element(bound: Bound, operand: tuple[Any, ...]) -> list[Any]:
    """One of the values in a tuple.

    Source: StableHLO specification, `get_tuple_element`.
    """
    return [operand[bound["index"]]]


@lifts("custom_call.shape_assertion", takes_sizes=True)
def shape_assertion(bound: Bound, holds: Any, *sizes: Any) -> list[Any]:
    """An assertion about sizes, decided while JAX traces, with the message that the module has for it.

    That a symbolic size fits is asserted by what it is exported in.
    """
    if not bound.checks_shapes:
        return []
    if not isinstance(holds, Known):
        raise unsupported(bound.operation, "what it asserts does not follow from sizes alone")
    try:
        if known_truth(holds):
            return []
    except InconclusiveDimensionOperation:
        if DOES_NOT_FIT in bound["error_message"]:
            return []
        raise

    def value(place: re.Match[str]) -> str:
        size = sizes[int(place[1])]
        return str(known_integers(size)[0]) if isinstance(size, Known) else "?"

    message = _PLACEHOLDER.sub(value, bound["error_message"]).replace("{{", "{").replace("}}", "}")
    raise ArgumentMismatch(message)
