"""What the entrances and the methods of `Exported` do by JAX, in one place: each name is imported at first use.

So importing this module imports no JAX; before using one of its names, call `require_jax`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtf.serialization._lazy import lazy_names

if TYPE_CHECKING:
    from jaxtf.serialization._call.call import call_exported, differentiable_flat_call
    from jaxtf.serialization._call.cost import cost_of
    from jaxtf.serialization._call.placement import on_default_device
    from jaxtf.serialization._export.by_hand import both_sides, calling_convention, known_platforms, own_effects
    from jaxtf.serialization._export.export import exporter, exporter_with_weights
    from jaxtf.serialization._export.target import target_for_graph, target_of
    from jaxtf.serialization._jax_values.settings import default_export_platform, producer
    from jaxtf.serialization._jax_values.shardings import to_hlo, to_jax
    from jaxtf.serialization._lift.lift import lift, lift_exported
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
    "lift",
    "lift_exported",
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

# The module of each name; a test holds it against the imports above.
_MODULES = {
    "both_sides": "_export.by_hand",
    "call_exported": "_call.call",
    "calling_convention": "_export.by_hand",
    "cost_of": "_call.cost",
    "default_export_platform": "_jax_values.settings",
    "deserialize_module": "_program.portable_artifact",
    "differentiable_flat_call": "_call.call",
    "exporter": "_export.export",
    "exporter_with_weights": "_export.export",
    "known_platforms": "_export.by_hand",
    "lift": "_lift.lift",
    "lift_exported": "_lift.lift",
    "module_text": "_program.portable_artifact",
    "on_default_device": "_call.placement",
    "own_effects": "_export.by_hand",
    "producer": "_jax_values.settings",
    "retarget": "_program.module",
    "retarget_for_tensorflow": "_program.module",
    "target_for_graph": "_export.target",
    "target_of": "_export.target",
    "to_hlo": "_jax_values.shardings",
    "to_jax": "_jax_values.shardings",
    "written_here": "_program.portable_artifact",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES, prefix="jaxtf.serialization.")
