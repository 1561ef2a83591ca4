"""Compatibility with TensorFlow: each of its private names is here once, under a name of ours.

Knows TensorFlow; nothing of JAX.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import tensorflow as tf

# `tf.compat.v1.GraphDef`, by the module that makes it.
from tensorflow.core.framework.graph_pb2 import GraphDef as _GraphDef

# A tensor over the memory of a DLPack capsule: `tf.experimental.dlpack.from_dlpack` without its two
# layers of Python, half of its cost. Seen in TensorFlow 2.21.
from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.eager import context as _context

# Runs an operation of a graph eagerly, given by type, operands and attributes: `tf.raw_ops` has other names for some of
# the operands. It is replaced by one that shows what it runs to whoever observes. Seen in TensorFlow 2.21.
from tensorflow.python.eager import execute as _execute

# Leaves any graph that is being built, as `tf.init_scope` does; but that one also stops
# every gradient tape inside it, so that a gradient traced in it is zero. Seen in TensorFlow 2.21.
from tensorflow.python.eager.context import eager_mode as _eager_mode

# HLO of a trace for other shapes than it was traced for: None replaced by sizes. `tf.function`'s public method
# compiles for the traced shapes only. Seen in TensorFlow 2.21.
from tensorflow.python.eager.polymorphic_function import compiler_ir as _compiler_ir

# The body of a function of a graph's library as a graph that can be walked. Seen in TensorFlow 2.21.
from tensorflow.python.framework import function_def_to_graph as _function_def_to_graph

# Which devices have a kernel for an op, by type name; its compiler is one. Seen in TensorFlow 2.21.
from tensorflow.python.framework import kernels as _kernels

# What an op declares about itself, by type name: the nodes of a function library carry
# only the name. Seen in TensorFlow 2.21.
from tensorflow.python.framework import op_def_registry as _op_def_registry

# The class of every eager tensor, and the number of its type: a look at them is cheaper than `isinstance` and `dtype`.
# Seen in TensorFlow 2.21.
from tensorflow.python.framework.ops import EagerTensor as _EagerTensor

# What TensorFlow has for the gradient of an operation, by type name: None if it is declared to have none. Those of
# `tf.custom_gradient` close over `tape_grad_fn`, and that over `grad_fn`. Seen in TensorFlow 2.21.
from tensorflow.python.framework.ops import gradient_registry as _gradient_registry

# What tf.function raises where the first value of a new variable depends on an argument. Seen in TensorFlow 2.21.
from tensorflow.python.ops.op_selector import UnliftableError as _UnliftableError

__all__ = [
    "Tape",
    "compiled_to_hlo",
    "context_handle",
    "eager_device",
    "eager_elements",
    "eager_identity",
    "eager_shape",
    "eager_type",
    "executed",
    "executing_eagerly",
    "from_dlpack",
    "function_graph",
    "hidden_from_debuggers",
    "is_compilable",
    "is_declared_not_differentiable",
    "is_function",
    "is_of_new_variables",
    "is_recomputed",
    "is_stateful",
    "is_unrecorded",
    "library_of",
    "observed",
    "operation_definition",
    "outside_of_graphs",
]

# What records the ops and walks back through them inside of `tf.GradientTape`, whose methods cost as much again
# (nests, composite tensors, checks of dtypes). Seen in TensorFlow 2.19.1, 2.20.0 and 2.21.
_tape_new, _tape_removed = _pywrap_tfe.TFE_Py_TapeSetNew, _pywrap_tfe.TFE_Py_TapeSetRemove
_tape_watch, _tape_gradient = _pywrap_tfe.TFE_Py_TapeWatch, _pywrap_tfe.TFE_Py_TapeGradient

# Whether no tape of this thread records what runs: within what is to have a gradient of its own.
is_unrecorded = _pywrap_tfe.TFE_Py_TapeSetIsStopped


def is_of_new_variables(error: Exception) -> bool:
    """Whether tf.function refused a function because it creates variables."""
    return isinstance(error, _UnliftableError) or "only supports singleton tf.Variables" in str(error)


def eager_type(value: Any) -> int | None:
    """The number of the type of an eager tensor; None for any other value."""
    return value._datatype_enum() if type(value) is _EagerTensor else None


def eager_elements(value: Any) -> Any:
    """As `numpy.asarray` of an eager tensor, 3 us sooner: an array over its memory, or a scalar; else None."""
    return value._numpy() if type(value) is _EagerTensor else None


def eager_identity(value: Any) -> int:
    """The number of an eager tensor, which no other one of the process has, also later."""
    identity: int = value._id
    return identity


def eager_shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an eager tensor; None for any other value."""
    return value._shape_tuple() if type(value) is _EagerTensor else None


def eager_device(value: Any) -> str | None:
    """The name of the device that holds the elements of an eager tensor; None for any other value."""
    return value.backing_device if type(value) is _EagerTensor else None


class Tape:
    """A `tf.GradientTape` of dense tensors alone, without its variables: it records while it is entered, once.

    Args:
      watched: The tensors to be differentiated with respect to.
      persistent: Whether `gradients` may be asked for more than once.
    """

    def __init__(self, watched: Sequence[Any], persistent: bool = False):
        self._watched = watched
        self._persistent = persistent

    def __enter__(self) -> Tape:
        self._tape = _tape_new(self._persistent, False)
        for tensor in self._watched:
            _tape_watch(self._tape, tensor)
        return self

    def __exit__(self, *_: object) -> None:
        _tape_removed(self._tape)

    def gradients(self, targets: Sequence[Any], sources: Sequence[Any], upstream: Sequence[Any]) -> list[Any]:
        """As `tf.GradientTape.gradient`: a tensor or `tf.IndexedSlices` for each source, None if unconnected."""
        sources = list(sources)
        found: list[Any] = _tape_gradient(self._tape, list(targets), sources, list(upstream), sources, "none")
        return found


def executing_eagerly() -> bool:
    """As `tf.executing_eagerly`, in a third of its time."""
    is_eager: bool = _context.context().executing_eagerly()
    return is_eager


@contextmanager
def hidden_from_debuggers() -> Iterator[None]:
    """Keeps what `tf.debugging` does to operations, as `enable_check_numerics`, from those that run or are built in it.

    Stands for what the context of this thread calls after each operation; seen in TensorFlow 2.21.
    """
    state = _context.context()._thread_local_data
    was, state.op_callbacks = state.op_callbacks, []
    try:
        yield
    finally:
        state.op_callbacks = was


def outside_of_graphs() -> AbstractContextManager[None]:
    """A context in which TensorFlow is eager, whatever graph is being built around it."""
    if _context.context().executing_eagerly():  # saves 3 us
        return nullcontext()
    context: AbstractContextManager[None] = _eager_mode()
    return context


# The eager tensor over the memory of a DLPack capsule; its second argument is `context_handle()`.
from_dlpack = _pywrap_tfe.TFE_FromDlpackCapsule


@functools.cache
def context_handle() -> Any:
    """What the eager tensors of this process belong to."""
    _context.context().ensure_initialized()
    return _context.context()._handle


def compiled_to_hlo(concrete: Any, specs: Sequence[Any], platform: str) -> bytes:
    """The serialized HLO module of a concrete function for arguments of these shapes."""
    hlo: bytes = _compiler_ir.from_concrete_function(concrete, list(specs))(
        stage="hlo_serialized", platform_name=platform
    )
    return hlo


@functools.cache
def is_compilable(op_type: str) -> bool:
    """Whether TensorFlow's compiler for a CPU has a kernel for ops of this type, for some operands."""
    _register_compiler()
    return _of_compiler(op_type)


def _of_compiler(op_type: str) -> bool:
    found = _kernels.get_registered_kernels_for_op(op_type).kernel
    return any(kernel.device_type == "XLA_CPU_JIT" for kernel in found)


def _register_compiler() -> None:
    """Has the kernels of the compiler registered, which TensorFlow does when it compiles first."""
    if not _of_compiler("Identity"):
        with outside_of_graphs(), hidden_from_debuggers():
            concrete = tf.function(tf.identity, autograph=False, jit_compile=True).get_concrete_function(
                tf.TensorSpec([])
            )
            compiled_to_hlo(concrete, [tf.TensorSpec([])], "CPU")


def is_stateful(op_type: str) -> bool:
    """Whether ops of this type may do more than compute their results from their operands."""
    definition = _op_def_registry.get(op_type)
    return definition is None or bool(definition.is_stateful)


@functools.cache
def is_declared_not_differentiable(op_type: str) -> bool:
    """Whether TensorFlow declares that ops of this type have no gradient, which its tape takes for zero."""
    try:
        return _gradient_registry.lookup(op_type) is None
    except LookupError:  # nothing is declared: the tape raises an error
        return False


def is_recomputed(gradient_name: str) -> bool:
    """Whether the gradient of this name is by `tf.recompute_grad`, which computes the function again for a tape."""
    try:
        function = _gradient_registry.lookup(gradient_name)
    except LookupError:  # of a SavedModel
        return False
    for name in ("tape_grad_fn", "grad_fn"):
        function = inspect.unwrap(function)
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        if name not in names:
            return False
        function = function.__closure__[names.index(name)].cell_contents
    is_of_tensorflow = getattr(function, "__module__", "") == tf.recompute_grad.__module__
    return bool(is_of_tensorflow and function.__qualname__.startswith("recompute_grad."))


def operation_definition(op_type: str) -> Any:
    """What ops of this type declare; None if it is the name of a function."""
    return _op_def_registry.get(op_type)


def is_function(name: str) -> bool:
    """Whether it names a function that can be called eagerly."""
    found: bool = _context.context().has_function(name)
    return found


def library_of(name: str) -> Any:
    """A function that was called eagerly, and all that it calls, as the library of a graph."""
    library, waiting = _GraphDef().library, [name]
    found = set(waiting)
    while waiting:
        definition = _context.context().get_function_def(waiting.pop())
        library.function.add().CopyFrom(definition)
        attrs = [attr for node in definition.node_def for attr in node.attr.values()]
        names = {node.op for node in definition.node_def if operation_definition(node.op) is None}
        names |= {f.name for attr in attrs for f in (attr.func, *attr.list.func) if f.name} - found
        waiting += names - found
        found |= names
    return library


@contextmanager
def observed(observer: Callable[..., None]) -> Iterator[None]:
    """While entered, what this thread runs eagerly, and builds into graphs, is shown to an observer.

    Args:
      observer: Is given the type of an operation, its operands, attributes (names and values in turn) and results, and
        by name the graph, if it is built into one.
    """
    context = _context.context()
    context.ensure_initialized()
    # As `op_callbacks.add_op_callback` has it; its counterpart puts back the one that shows nothing for all threads.
    _execute.execute = _execute.execute_with_callbacks
    context.add_op_callback(observer)
    try:
        yield
    finally:
        context.remove_op_callback(observer)


def function_graph(definition: Any) -> Any:
    """The body of a function of a graph's library, as a graph with inputs and outputs."""
    return _function_def_to_graph.function_def_to_graph(definition)


def executed(op: Any, tensors: Sequence[Any]) -> Sequence[Any]:
    """The results of an operation of a graph for eager tensors."""
    attrs: list[Any] = []
    for name in op.node_def.attr:
        if not name.startswith("_"):
            attrs += [name, _attr(op.get_attr(name))]
    context = _context.context()
    context.ensure_initialized()
    results: Sequence[Any] = _execute.execute(
        op.type.encode(), len(op.outputs), inputs=list(tensors), attrs=tuple(attrs), ctx=context
    )
    return results


def _attr(value: Any) -> Any:
    if isinstance(value, list):
        return [_attr(element) for element in value]
    return getattr(value, "as_datatype_enum", value)
