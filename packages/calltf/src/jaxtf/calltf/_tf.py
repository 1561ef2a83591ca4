"""The door to TensorFlow's private names: each stands here once, under a name of ours.

Knows TensorFlow; nothing of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

# A tensor over the memory of a DLPack capsule: `tf.experimental.dlpack.from_dlpack` without its two
# layers of Python, half of its cost. Seen in TensorFlow 2.21.
from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.eager import context as _context

# Leaves any graph that is being built, as `tf.init_scope` does; but that one also stops
# every gradient tape inside it, so that a gradient traced in it is zero. Seen in TensorFlow 2.21.
from tensorflow.python.eager.context import eager_mode as _eager_mode

# HLO of a trace for other shapes than it was traced for: None replaced by sizes. `tf.function`'s public method
# compiles for the traced shapes only. Seen in TensorFlow 2.21.
from tensorflow.python.eager.polymorphic_function import compiler_ir as _compiler_ir

# What an op declares about itself, by type name: the nodes of a function library carry
# only the name. Seen in TensorFlow 2.21.
from tensorflow.python.framework import op_def_registry as _op_def_registry

# The class of every eager tensor, and the number of its type: a look at them is cheaper than `isinstance` and `dtype`.
# Seen in TensorFlow 2.21.
from tensorflow.python.framework.ops import EagerTensor as _EagerTensor

__all__ = [
    "compiled_to_hlo",
    "eager_type",
    "executing_eagerly",
    "from_dlpack",
    "is_stateful",
    "outside_of_graphs",
]


def eager_type(value: Any) -> int | None:
    """The number of the type of an eager tensor; None for any other value."""
    return value._datatype_enum() if type(value) is _EagerTensor else None


def executing_eagerly() -> bool:
    """As `tf.executing_eagerly`, in a third of its time."""
    is_eager: bool = _context.context().executing_eagerly()
    return is_eager


def outside_of_graphs() -> AbstractContextManager[None]:
    """A context in which TensorFlow is eager, whatever graph is being built around it."""
    context: AbstractContextManager[None] = _eager_mode()
    return context


def from_dlpack(capsule: Any) -> Any:
    """The eager tensor over the memory of a DLPack capsule."""
    return _pywrap_tfe.TFE_FromDlpackCapsule(capsule, _context_handle())


@functools.cache
def _context_handle() -> Any:
    _context.context().ensure_initialized()
    return _context.context()._handle


def compiled_to_hlo(concrete: Any, specs: Sequence[Any], platform: str) -> bytes:
    """The serialized HLO module of a concrete function for arguments of these shapes."""
    hlo: bytes = _compiler_ir.from_concrete_function(concrete, list(specs))(
        stage="hlo_serialized", platform_name=platform
    )
    return hlo


def is_stateful(op_type: str) -> bool:
    """Whether ops of this type may do more than compute their results from their operands."""
    definition = _op_def_registry.get(op_type)
    return definition is None or bool(definition.is_stateful)
