"""Random StableHLO modules of what JAX never writes: `modules` draws those of one of `FAMILIES`.

A family writes a module by a `Text`, whose draws are those of hypothesis, so that what fails is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from . import contractions, control, dynamic, elementwise, floats, indexing, layout, linear_algebra, reductions, sorting
from .text import Module, Text

__all__ = ["FAMILIES", "modules"]

FAMILIES: Mapping[str, Callable[[Text], Module]] = {
    "broadcast": elementwise.broadcast,
    "map": elementwise.mapped,
    "integers": elementwise.integers,
    "conversions": elementwise.conversions,
    "bits": elementwise.bits,
    "batch_norm": elementwise.batch_norm,
    "gather": indexing.gather,
    "scatter": indexing.scatter,
    "torch_index_select": indexing.torch_index_select,
    "reduce": reductions.reduce,
    "reduce_window": reductions.reduce_window,
    "search": reductions.search,
    "select_and_scatter": reductions.select_and_scatter,
    "sort": sorting.sort,
    "dynamic": dynamic.dynamic,
    "control": control.control,
    "layout": layout.layout,
    "top_k": layout.top_k,
    "floats": floats.floats,
    "chlo": floats.chlo,
    "complexes": floats.complexes,
    "random_bits": floats.random_bits,
    "convolution": contractions.convolution,
    "dot_general": contractions.dot_general,
    "triangular_solve": linear_algebra.triangular_solve,
    "cholesky": linear_algebra.cholesky,
    "fourier": linear_algebra.fourier,
}


def modules(family: str) -> st.SearchStrategy[Module]:
    """Modules of a family."""
    return st.builds(lambda random: FAMILIES[family](Text(random)), st.randoms(use_true_random=False))
