"""The names of the backends and what they are, for what must not wait for TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BACKEND_NAMES"]

BACKEND_NAMES: Mapping[str, str] = {
    "exported": "export(fun)(*specs).call in JAX",
    "artifact": "the same, written and read again",
    "eager": "convert(fun) in TensorFlow's eager mode",
    "graph": "convert(fun) in tf.function",
    "compiled": "convert(fun) in tf.function(jit_compile=True)",
    "saved_model": "convert(fun) in a SavedModel, written and loaded again",
    "graph_mode": "convert(fun, native_serialization=False) in tf.function",
    "graph_mode_saved_model": "the same in a SavedModel",
}
