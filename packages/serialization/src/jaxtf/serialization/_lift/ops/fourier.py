"""Fourier transforms."""

from __future__ import annotations

from typing import Any

from jax import lax

from jaxtf.serialization._lift.registry import Bound, lifts


@lifts("stablehlo.fft")
def fft(bound: Bound, operand: Any) -> Any:
    """The transform over the last dimensions.

    Source: StableHLO specification, `fft`.
    """
    return lax.fft(operand, getattr(lax.FftType, bound["fft_type"]), tuple(int(n) for n in bound["fft_length"]))
