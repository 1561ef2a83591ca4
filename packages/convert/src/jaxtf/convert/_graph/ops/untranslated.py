"""Operations that have no translation, with the reason for each."""

from __future__ import annotations

from jaxtf.convert._graph.registry import refuses

refuses("stablehlo.einsum", "stablehlo.unary_einsum", reason="no producer writes it any more; use dot_general")
refuses("chlo.ragged_dot", reason="export with the neutral lowering, which decomposes it")
refuses("chlo.scan", reason="an experimental operation without a specification")
refuses("chlo._asin_acos_kernel", reason="an internal step of the decomposition of chlo.asin and chlo.acos")
