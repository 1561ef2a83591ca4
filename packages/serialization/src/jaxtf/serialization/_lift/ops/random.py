"""Random bits, those that the module gives: of XLA's generators and of Threefry."""

from __future__ import annotations

from typing import Any

import jax.extend.random
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.dynamic import sizes_of
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._program.program import TensorType

ALGORITHMS = {
    "DEFAULT": lax.RandomAlgorithm.RNG_DEFAULT,
    "THREE_FRY": lax.RandomAlgorithm.RNG_THREE_FRY,
    "PHILOX": lax.RandomAlgorithm.RNG_PHILOX,
}

# The states that JAX has, by dtype.
_STATES = {"uint32": ((4,),), "uint64": ((2,),)}


@lifts("stablehlo.rng_bit_generator")
def rng_bit_generator(bound: Bound, state: Any) -> list[Any]:
    """The next state, and random bits in a shape.

    Source: StableHLO specification, `rng_bit_generator`.
    """
    type_ = bound.result_types[1]
    if None in type_.shape:
        raise unsupported(bound.operation, "the type of its result leaves a size open, and no operand gives it")
    return _bits(bound, state, tuple(size for size in type_.shape if size is not None), type_)


@lifts("custom_call.stablehlo.dynamic_rng_bit_generator", takes_sizes=True)
def dynamic_rng_bit_generator(bound: Bound, state: Any, shape: Any) -> list[Any]:
    """As `rng_bit_generator`, in a shape that is an operand.

    Source: StableHLO, experimental operations, `dynamic_rng_bit_generator`.
    """
    return _bits(bound, as_array(state), tuple(sizes_of(bound, shape)), bound.result_types[1])


def _bits(bound: Bound, state: Any, shape: tuple[Any, ...], type_: TensorType) -> list[Any]:
    algorithm = ALGORITHMS[str(bound["rng_algorithm"])]
    if type_.dtype.kind != "u":
        raise unsupported(bound.operation, f"bits as {type_.dtype.name}: JAX has them as unsigned integers")
    if state.shape not in _STATES.get(state.dtype.name, ()):
        raise unsupported(bound.operation, f"a state of {state.dtype.name}{list(state.shape)}: JAX has other ones")
    return list(lax.rng_bit_generator(state, shape, dtype=type_.dtype, algorithm=algorithm))


@lifts(
    "custom_call.cu_threefry2x32_ffi",
    "custom_call.hip_threefry2x32_ffi",
)
def threefry(bound: Bound, *operands: Any) -> list[Any]:
    """Two arrays of random bits of two words of a key and two of counters.

    Source: `jax.extend.random.threefry2x32_p`.
    """
    return list(jax.extend.random.threefry2x32_p.bind(*operands[:4]))
