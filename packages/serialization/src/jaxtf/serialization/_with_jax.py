"""What the entrances and the methods of `Exported` do by JAX, in one place: they import it when they are first called.

Imports JAX.
"""

from __future__ import annotations

from jaxtf.serialization._call.call import call_exported, differentiable_flat_call
from jaxtf.serialization._call.cost import cost_of
from jaxtf.serialization._call.placement import on_default_device
from jaxtf.serialization._export.by_hand import both_sides, calling_convention, known_platforms, own_effects
from jaxtf.serialization._export.export import exporter, exporter_with_weights
from jaxtf.serialization._export.target import target_for_graph, target_of
from jaxtf.serialization._jax_values.settings import default_export_platform, producer
from jaxtf.serialization._jax_values.shardings import to_hlo, to_jax
from jaxtf.serialization._program.module import retarget, retarget_for_tensorflow
from jaxtf.serialization._program.portable_artifact import deserialize_module, module_text, written_here

__all__ = [
    "both_sides",
    "call_exported",
    "calling_convention",
    "cost_of",
    "default_export_platform",
    "deserialize_module",
    "differentiable_flat_call",
    "exporter",
    "exporter_with_weights",
    "known_platforms",
    "module_text",
    "on_default_device",
    "own_effects",
    "producer",
    "retarget",
    "retarget_for_tensorflow",
    "target_for_graph",
    "target_of",
    "to_hlo",
    "to_jax",
    "written_here",
]
