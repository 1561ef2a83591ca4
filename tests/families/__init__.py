"""Random cases of each family of operations, all attributes drawn; `FAMILIES` names the strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from . import arithmetic, broadcasts, chains, contractions, control, elementwise, indexing, sums, windows
from .case import Case

__all__ = ["FAMILIES"]

FAMILIES: Mapping[str, Callable[[], st.SearchStrategy[Case]]] = {
    "dot_general": contractions.dot_general,
    "convolution": contractions.convolution,
    "fused": contractions.fused,
    "gather": indexing.gather,
    "scatter": indexing.scatter,
    "slices": indexing.slices,
    "pad": indexing.pad,
    "layout": indexing.layout,
    "reduce": windows.reduce,
    "reduce_window": windows.reduce_window,
    "pool": windows.pool,
    "select_and_scatter": windows.select_and_scatter,
    "cumulative": windows.cumulative,
    "sums": sums.sums,
    "sort": elementwise.sort,
    "top_k": elementwise.top_k,
    "floats": elementwise.floats,
    "arithmetic": arithmetic.arithmetic,
    "broadcasts": broadcasts.broadcasts,
    "composed": elementwise.composed,
    "complexes": elementwise.complexes,
    "integers": elementwise.integers,
    "conversions": elementwise.conversions,
    "control_flow": control.control_flow,
    "random_numbers": control.random_numbers,
    "fourier": control.fourier,
    "linear_algebra": control.linear_algebra,
    "chained": chains.chained,
}
