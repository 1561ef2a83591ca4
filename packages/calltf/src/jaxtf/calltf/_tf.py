"""The door to TensorFlow's private names: each stands here once, under a name of ours.

Knows TensorFlow; nothing of JAX.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

# Leaves any graph that is being built, as `tf.init_scope` does; but that one also stops
# every gradient tape inside it, so that a gradient traced in it is zero. Seen in TensorFlow 2.21.
from tensorflow.python.eager.context import eager_mode as _eager_mode

# What an op declares about itself, by type name: the nodes of a function library carry
# only the name. Seen in TensorFlow 2.21.
from tensorflow.python.framework import op_def_registry as _op_def_registry


def outside_of_graphs() -> AbstractContextManager[None]:
    """A context in which TensorFlow is eager, whatever graph is being built around it."""
    context: AbstractContextManager[None] = _eager_mode()
    return context


def is_stateful(op_type: str) -> bool:
    """Whether ops of this type may do more than compute their results from their operands."""
    definition = _op_def_registry.get(op_type)
    return definition is None or bool(definition.is_stateful)
