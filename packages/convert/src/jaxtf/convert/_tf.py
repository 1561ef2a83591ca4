"""Compatibility with TensorFlow: the only module of this package that uses its private modules.

Each private name is listed once, with why it is needed and the versions it was seen in:

- `tensorflow.compiler.tf2xla.python.xla` (2.21): `call_module`, the op that holds a StableHLO
  module; `tf.raw_ops` does not export it. Its newest calling convention version.
- `tensorflow.compiler.mlir.stablehlo.stablehlo` (2.21): the StableHLO version that this
  TensorFlow reads.
- `autograph_artifact` of `tensorflow.python.autograph` (2.21): AutoGraph is to call a function as it is. The
  public `do_not_convert` does the same, but wraps the function, which costs an eager call 1 us.
- `TFE_Py_TapeSetIsEmpty`, `IsStopped`, `StopOnThread`, `RestartOnThread`, `RecordOperation` (2.21): whether any tape
  watches, so that an eager call without one need not record how to differentiate it; recording that without the detour
  of `tf.custom_gradient`, which costs more than the operation.
- `TFE_Py_PackJVPs` (2.19.1, 2.20.0, 2.21): whether a forward accumulator watches a tensor, of which nothing else tells.
- `invoking_op_callbacks` of `tensorflow.python.eager.context` (2.19.1, 2.20.0, 2.21):
  `tf.debugging.enable_check_numerics` and its like add operations of the host to each graph that is traced, also to
  one that is to be compiled.
- `tensorflow.python.saved_model.save_context` and the name `internal_grad_fn` (2.21): whether the gradient
  that a SavedModel will hold is being traced. `tf.saved_model.save` says nothing to the gradient function of
  `tf.custom_gradient`, and what that function calls cannot be differentiated after loading.
- `is_control_flow_graph` of a graph (2.21): whether it is of a loop or of a branch. In a SavedModel TensorFlow has no
  gradients there that use what is computed there. `outer_graph` (2.19.1, 2.20.0, 2.21): the graph in which that of a
  function is traced; constants that such gradients capture are lost if it is one of these.
- `tensorflow.python.compiler.xla.experimental.xla_sharding` and `tensorflow.compiler.xla.xla_data_pb2` (2.21): the
  XlaSharding op with the protocol buffer that it takes.
- `ConcreteFunction._inference_function` with its `name` and `function_type`, `function_call_options` of
  `tensorflow.python.eager.context`, and `tensorflow.python.eager.execute` (2.19.1, 2.20.0, 2.21): a concrete function
  run by its name, which takes 14 us where the shortest public call takes 60. The questions that a call asks about
  structure, gradients and captures are answered once; the options may change between two calls.
- `Graph._override_gradient_function`, and `ops.gradient_registry` with its `_registry` (2.21): an operation
  of a graph with a gradient that goes with the graph. `tf.custom_gradient` and `tf.RegisterGradient` hold their
  function, and so the graph, for as long as the process runs.
- `Graph._add_function_recursive` with `ConcreteFunction._inference_function` (2.21): makes a function that a module
  calls known to the graph, so that a SavedModel keeps it.
- `tensorflow.core.protobuf.saved_model_pb2` (2.21): the message of `saved_model.pb`, of which `tf.compat.v1` has the
  parts and not the whole. Loading a SavedModel to know the names of its files would load its functions and variables.
- `tensorflow.lite.python.convert_phase.ConverterError` (2.21): what TFLite's converter raises.
- `tensorflow.lite.python.schema_py_generated` (2.21): what the bytes of a TFLite model hold, to be read and written.
- `convert_variables_to_constants_v2` of `tensorflow.python.framework.convert_to_constants` (2.21): a graph with the
  functions that it calls written out, as TFLite's converter sees it.
- `GraphOrParentsInXlaContext` of `tensorflow.python.ops.control_flow_util` (2.19.1, 2.20.0, 2.21): whether the graph
  that is being traced is of `tf.function(jit_compile=True)`.
- `EagerTensor` and its `_shape_tuple` and `_datatype_enum` (2.21): shape and dtype as plain values,
  in a tenth of the time of `shape.as_list()` and `dtype`.
- `tensorflow.compiler.tf2xla.ops.gen_xla_ops` (2.21): `xla_variadic_sort`, `xla_rng_bit_generator`, `xla_scatter`,
  `xla_svd`, of which the error can be chosen.
  They have CPU kernels and run eagerly, in graphs and compiled; a SavedModel that has them loads with TensorFlow alone.
- `FuncGraph` and, of a graph, `_create_op_internal`, `_create_op_helper`, `_c_graph`, `_control_dependencies_stack`,
  `_default_original_op`, `_get_control_flow_context`; `Operation._from_c_op`, `Tensor._as_tf_output`; the C functions
  `TF_NewOperation`, `TF_AddInput`, `TF_SetAttrValueProto`, `TF_FinishOperation` and `TF_SetOpStackTrace` of
  `pywrap_tf_session`, with `tf_stack` (2.19.1, 2.20.0, 2.21): what `tf.Graph.create_op` does for a node of a function,
  without the protocol buffer of the node, which is made to be taken apart again. A node takes 26 us so, 62 us by
  `create_op`, 200 us by `tf.add` (2.21). The control flow context is also the branch or loop of a graph of
  `disable_control_flow_v2`, whose tensors are dead where it does not run.
- `Operation._set_attr` (2.19.1, 2.20.0, 2.21): sets an attribute of an operation that is there. Names that begin with
  `_` are for any operation; of `_grappler_do_not_remove` TensorFlow's graph optimizer leaves the operation alone. A
  loop or a branch of which `_lower_using_switch_merge` is false calls functions.
- `tensorflow.python.framework.kernels` (2.21): for which dtypes there are kernels of an operation. Nothing else tells
  before it runs.
- `try_evaluate_constant` of `tensorflow.python.framework.tensor_util` (2.19.1, 2.20.0, 2.21, 2.22.0rc0): a number that
  follows from sizes that a graph knows; `tf.get_static_value` computes no arithmetic.
- `pfor_converter` of an operation, and of `tensorflow.python.ops.parallel_for.pfor` `wrap`,
  `_pfor_converter_registry` and `ConversionNotImplementedError` (2.19.1, 2.21): how `tf.vectorized_map` and
  `tape.jacobian` compute an operation for all elements at once. TensorFlow's own way for its type is another value for
  some, and loses gradients of their own. They trace a function in the name scope `loop_body`.
- `experimental_acd_manager` of a graph, with its `ops_which_must_run` and `_independent_ops`,
  `tf.Operation._is_stateful` and `Graph._get_function` (2.19.1, 2.20.0, 2.21): `tf.function` runs all stateful
  operations that it traced, also those of the element 0 by which `tf.vectorized_map` learns what to compute.
- `Graph._name_stack` (2.19.1, 2.20.0, 2.21): where a graph keeps the name scope that it is in; entering one by
  `tf.name_scope` takes half the time of a node.
"""

from __future__ import annotations

import importlib
import inspect
import math
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Never, TypeVar

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.compiler.mlir.stablehlo import stablehlo
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.autograph.impl.api import autograph_artifact
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.compiler.xla.experimental import xla_sharding
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import convert_to_constants, kernels, ops, tensor_util
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import control_flow_util
from tensorflow.python.ops.parallel_for import pfor
from tensorflow.python.saved_model import save_context
from tensorflow.python.util import tf_stack

__all__ = [
    "ModuleCall",
    "NameScope",
    "TiledDevices",
    "annotate_tiles",
    "any_tape_watches",
    "asserted",
    "compiled_call",
    "compiled_in_graph",
    "compiled_svd",
    "current_place",
    "eager_layout",
    "eager_shapes",
    "ensured",
    "evaluated",
    "executing_eagerly",
    "flat_call",
    "graph_results",
    "has_kernel",
    "has_only_cpu",
    "has_tangents",
    "in_current_graph",
    "is_compiled_for_cpu",
    "is_in_control_flow",
    "left_alone_by_autograph",
    "new_node",
    "newest_calling_convention_version",
    "prevent_gradient",
    "record_gradient",
    "refusing_results",
    "rng_bit_generator",
    "run_as_function",
    "saved_model_message",
    "scatter_rows",
    "set_number",
    "stablehlo_version",
    "tflite_bytes",
    "tflite_converter_error",
    "tflite_model",
    "traces_compiled",
    "traces_control_flow",
    "traces_saved_gradient",
    "unrecorded",
    "variadic_sort",
    "vectorized_by",
    "vectorized_slice",
    "without_calls",
]


# Nodes with this attribute are left as they are.
_LEFT = "_grappler_do_not_remove"

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Call(ABC):
    """Operations that `tf.vectorized_map` computes for one element after the other, where no tape sees them."""

    @abstractmethod
    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Adds an operation to the graph, whose `pfor_converter` is `_vectorized`."""

    @property
    @abstractmethod
    def only_computes(self) -> bool:
        """Whether nothing is missing where the operation does not run because nobody reads its results."""

    def _vectorized(self, given: Any) -> list[Any]:
        """One element after the other, as TensorFlow does it, but so that no tape asks for a gradient of the op."""
        if _is_unchanged(given):
            return [pfor.wrap(result, False) for result in given.op.outputs]  # the same for all elements
        if self.only_computes:
            _without_element_0(given)
        values = [given.input(i) for i in range(given.num_inputs)]
        tensors, are_stacked = [value.t for value in values], [value.is_stacked for value in values]
        if not any(are_stacked):
            made = [pfor.wrap(result, False) for result in unrecorded(self, tensors)]
            return [pfor.wrap(_stacked(result, given.pfor.loop_len_vector), True) for result in made]
        of_one = [tf.TensorSpec(result.shape, result.dtype) for result in given.outputs]
        return [pfor.wrap(result, True) for result in unrecorded(_Loop(self, are_stacked, of_one), tensors)]


class ModuleCall(_Call):
    """One XlaCallModule op, ready to be applied to arguments any number of times.

    Args:
      module: The portable artifact.
      calling_convention_version: 9 or 10.
      result_dtypes: Of each result.
      result_shapes: Of each result; None for a size that is not known.
      platforms: Lowering platforms, as TensorFlow writes them (`CPU`, `CUDA`, ...).
      disabled_checks: Names of the run-time checks to skip.
      uses_shardy: Whether the module's shardings are for Shardy; an attribute from version 10 on.
      functions: TensorFlow's concrete functions that the module calls by their index.
      only_computes: Whether nothing is missing where the op does not run because nobody reads its results; asked when
        `tf.vectorized_map` computes the op.
    """

    def __init__(
        self,
        *,
        module: bytes,
        calling_convention_version: int,
        result_dtypes: Sequence[tf.DType],
        result_shapes: Sequence[Sequence[int | None]],
        platforms: Sequence[str],
        disabled_checks: Sequence[str],
        uses_shardy: bool,
        functions: Sequence[Any] = (),
        only_computes: Callable[[], bool] = lambda: False,
    ) -> None:
        self._functions = tuple(functions)
        self._answer = only_computes
        self._attributes: dict[str, Any] = {
            "version": calling_convention_version,
            "module": module,
            "Tout": [dtype.as_datatype_enum for dtype in result_dtypes],
            "Sout": result_shapes,
            "platforms": platforms,
            "disabled_checks": disabled_checks,
        }
        if functions:
            self._attributes["function_list"] = [function.name.decode() for function in functions]
        if calling_convention_version >= 10:
            self._attributes["use_shardy_partitioner"] = uses_shardy

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Adds the op to the graph, on the kept arguments of the module."""
        for function in self._functions:  # a SavedModel keeps what its graph knows
            tf.compat.v1.get_default_graph()._add_function_recursive(function._inference_function)
        results = list(xla.call_module(arguments, **self._attributes))
        if results and not tf.executing_eagerly():
            results[0].op.pfor_converter = self._vectorized
        return results

    @cached_property
    def only_computes(self) -> bool:
        """As above."""
        return self._answer()


class _Loop(_Call):
    """A call for one element after the other, as one operation, which `tf.vectorized_map` computes by `_Call` again.

    Of a loop it would make another one, and a tape asks for a gradient of what is in that.

    Args:
      call: For one element.
      are_stacked: Of each argument, whether it has the elements as a dimension in front, as one has at least.
      of_one: Shape and dtype of each result for one element.
    """

    def __init__(self, call: _Call, are_stacked: Sequence[bool], of_one: Sequence[tf.TensorSpec]) -> None:
        self._call, self._are_stacked, self._of_one = call, tuple(are_stacked), list(of_one)

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Adds the operation to the graph."""
        specifications = [tf.TensorSpec(argument.shape, argument.dtype) for argument in arguments]
        concrete = tf.function(self._map, autograph=False).get_concrete_function(*specifications)
        results = list(concrete(*arguments))
        results[0].op.pfor_converter = self._vectorized
        return results

    @property
    def only_computes(self) -> bool:
        """As of the call."""
        return self._call.only_computes

    def _map(self, *arguments: tf.Tensor) -> list[tf.Tensor]:
        def of_one(elements: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            left = iter(elements)
            pairs = zip(arguments, self._are_stacked, strict=True)
            return self._call([next(left) if is_stacked else argument for argument, is_stacked in pairs])

        stacked = [x for x, is_stacked in zip(arguments, self._are_stacked, strict=True) if is_stacked]
        has_shape = all(each.shape.is_fully_defined() for each in self._of_one) and not traces_compiled()
        if has_shape or stacked[0].shape.as_list()[0] or not self.only_computes:
            return list(tf.map_fn(of_one, stacked, fn_output_signature=self._of_one))
        results = tf.map_fn(of_one, list(map(_with_one, stacked)), fn_output_signature=self._of_one)
        return [result[: tf.shape(stacked[0])[0]] for result in results]


def _is_unchanged(given: Any) -> bool:
    """Whether `tf.vectorized_map` may keep an operation: its operands are as they were, and it is in scope.

    That of a function, a branch or a loop is not, also if it has no operands: they are written anew for all elements.
    """
    operands = enumerate(given.op.inputs)
    return given.op.graph is tf.compat.v1.get_default_graph() and all(given.input(i).t is each for i, each in operands)


def _with_one(stacked: tf.Tensor) -> tf.Tensor:
    """With a row of zeros where there is none: XLA compiles no loop over none, and its results have unknown sizes."""
    sizes = tf.shape(stacked)
    missing = tf.concat([1 - tf.minimum(sizes[:1], 1), sizes[1:]], 0)
    return tf.concat([stacked, tf.zeros(missing, stacked.dtype)], 0)


class _MustRun(set[tf.Operation]):
    """The operations that `tf.function` runs whether or not their results are read.

    Attributes:
      others: Those that it need not run.
    """

    def __init__(self, operations: Iterable[tf.Operation]) -> None:
        super().__init__(operations)
        self.others: set[tf.Operation] = set()

    def update(self, *operations: Iterable[tf.Operation]) -> None:
        super().update(*(set(each) - self.others for each in operations))


def _without_element_0(given: Any) -> None:
    """Has what `tf.vectorized_map` traced of an operation not run where nobody reads it: there may be no element 0."""
    index = given.pfor.loop_var
    manager = index.graph.experimental_acd_manager
    if manager is None:
        return
    found = [given.op]
    if given.op.graph is not index.graph:  # it is in a function, a branch or a loop
        scope = index.op.name.rpartition("/")[0] + "/"
        inside = (each for each in index.graph.get_operations() if each.name.startswith(scope))
        found = [each for each in inside if each._is_stateful and _only_computes(each)]
    if not isinstance(manager.ops_which_must_run, _MustRun):
        manager.ops_which_must_run = _MustRun(manager.ops_which_must_run)
    manager.ops_which_must_run.others.update(found)
    manager._independent_ops.extend(found)  # nor do other operations wait for them


def _only_computes(operation: tf.Operation) -> bool:
    """Whether all that is stateful of an operation is ours, and need not run."""
    convert = getattr(operation, "pfor_converter", None)
    if convert is _unless_the_same:
        return True
    call = getattr(convert, "__self__", None)
    if isinstance(call, _Call):
        return call.only_computes
    values = operation.node_def.attr.values()
    names = [function.name for value in values for function in (value.func, *value.list.func) if function.name]
    graphs: list[Any] = [getattr(operation.graph._get_function(name), "graph", None) for name in names]
    if not graphs or not all(isinstance(graph, FuncGraph) for graph in graphs):
        return False
    return all(_only_computes(each) for graph in graphs for each in graph.get_operations() if each._is_stateful)


def left_alone_by_autograph(function: _Function) -> _Function:
    """Marks a function as one that AutoGraph, which rewrites what `tf.function` traces, is to call as it is."""
    autograph_artifact(function)
    return function


def saved_model_message(data: bytes) -> Any:
    """The message that the bytes of a `saved_model.pb` hold; one without anything if they hold another thing."""
    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return saved_model_pb2.SavedModel()
    return message


def tflite_converter_error() -> type[Exception]:
    """The class of error of TFLite's converter."""
    error: type[Exception] = _of_tflite("convert_phase").ConverterError
    return error


def tflite_model(data: bytes) -> Any:
    """What the bytes of a TFLite model hold, a `ModelT`."""
    schema = _of_tflite("schema_py_generated")
    return schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(data, 0))


def tflite_bytes(model: Any) -> bytes:
    """The bytes of a TFLite model, in which the arrays begin where its schema has them: at a multiple of 16."""
    schema = _of_tflite("schema_py_generated")

    class Builder(schema.flatbuffers.Builder):  # type: ignore[name-defined, misc]  # the module has no types
        def StartVector(self, elemSize: int, numElems: int, alignment: int) -> Any:
            return super().StartVector(elemSize, numElems, 16 if elemSize == 1 else alignment)

    builder = Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _of_tflite(name: str) -> Any:
    """A module of TFLite. Imported at first use: TensorFlow loads TFLite when it is used."""
    return importlib.import_module(f"tensorflow.lite.python.{name}")


def without_calls(concrete: Any) -> Any:
    """The graph of a concrete function with those in place that it calls; not those of loops and branches."""
    frozen = convert_to_constants.convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    return frozen.graph.as_graph_def()


def newest_calling_convention_version() -> int:
    """The newest calling convention version that XlaCallModule runs in this process."""
    return int(xla.call_module_maximum_supported_version())


def stablehlo_version() -> str:
    """The newest StableHLO version that this TensorFlow reads."""
    return str(stablehlo.get_current_version())


def any_tape_watches() -> bool:
    """Whether a gradient tape or a forward accumulator may record what happens now."""
    return not pywrap_tfe.TFE_Py_TapeSetIsEmpty()


def has_tangents(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether a forward accumulator watches one of them."""
    return any_tape_watches() and any(pywrap_tfe.TFE_Py_PackJVPs(list(tensors))[0])


def unrecorded(
    function: Callable[[Sequence[tf.Tensor]], list[tf.Tensor]], arguments: Sequence[tf.Tensor]
) -> list[tf.Tensor]:
    """Applies a function where tapes do not see what happens."""
    if pywrap_tfe.TFE_Py_TapeSetIsStopped():
        return function(arguments)
    pywrap_tfe.TFE_Py_TapeSetStopOnThread()
    try:
        return function(arguments)
    finally:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()


def record_gradient(
    results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], gradient: Callable[..., Sequence[tf.Tensor | None]]
) -> None:
    """Tells the tapes that watch how to differentiate eager results with respect to their arguments."""
    pywrap_tfe.TFE_Py_TapeSetRecordOperation("JaxtfCall", results, arguments, gradient, None)


def in_current_graph(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Tensors of any graph, or of none, as those of the current one, which is not that of eager mode."""
    graph = tf.compat.v1.get_default_graph()
    return [graph.capture(tensor) for tensor in tensors] if isinstance(graph, FuncGraph) else list(tensors)


def graph_results(
    results: Sequence[tf.Tensor],
    arguments: Sequence[tf.Tensor],
    gradient: Callable[..., Sequence[tf.Tensor | None] | None],
    of_all: Callable[..., Callable[..., Sequence[tf.Tensor | None] | None]],
) -> list[tf.Tensor]:
    """Results in the current graph that tapes, `tf.gradients` and SavedModels differentiate by `gradient`.

    As of a function that `tf.custom_gradient` decorates, but `gradient` goes with the graph, and is kept by
    `tf.vectorized_map`. A gradient may be asked for in another graph than that of the results: it gets both there.

    Args:
      results: Tensors of the graph.
      arguments: What they are differentiated with respect to.
      gradient: From the results, the arguments and the cotangents of the results, one by one, to the cotangents of the
        arguments, None for those without. None instead of all leaves it to what the results were made by.
      of_all: From a gradient, and for each argument whether it varies, to the gradient for all elements of
        `tf.vectorized_map`.
    """
    count, graph = len(results), tf.compat.v1.get_default_graph()
    if is_vectorized():
        results = [prevent_gradient(result, _COPIED) for result in results]
    inputs = in_current_graph([*results, *arguments])

    # The name of what is traced when it is saved: see `traces_saved_gradient`.
    def internal_grad_fn(operation: tf.Operation | None, *cotangents: tf.Tensor | None) -> list[tf.Tensor | None]:
        # Results as they are differentiated: a gradient of a gradient may ask for that of all that one is made of.
        made, taken = (inputs, inputs) if operation is None else (operation.outputs, list(operation.inputs))
        pulled = gradient(made[:count], taken[count:], *cotangents[:count])
        if pulled is None:
            return [*cotangents[:count], *([None] * (len(inputs) - count))]
        return [*([None] * count), *pulled]

    def vectorized(given: Any) -> list[Any]:
        values = [given.input(i) for i in range(given.num_inputs)]
        all_results = [_stacked(value, given.pfor.loop_len_vector) for value in values[:count]]
        varies = [value.is_stacked for value in values[count:]]
        all_arguments = [value.t for value in values[count:]]
        made = graph_results(all_results, all_arguments, of_all(gradient, varies), of_all)
        return [*(pfor.wrap(result, True) for result in made), *values[count:]]

    name = _registered_weakly(internal_grad_fn)
    held = graph._override_gradient_function({"IdentityN": internal_grad_fn})
    with graph.gradient_override_map({"IdentityN": name}), held:
        outputs = unrecorded(lambda tensors: list(tf.identity_n(tensors)), inputs)
    outputs[0].op.pfor_converter = vectorized
    record_gradient(outputs, inputs, lambda *cotangents: internal_grad_fn(None, *cotangents))
    return outputs[:count]


def is_vectorized() -> bool:
    """Whether what runs now is of one element, and `tf.vectorized_map` computes it for all by what it makes."""
    return "loop_body" in tf.compat.v1.get_default_graph().get_name_scope()


def prevent_gradient(result: tf.Tensor, message: str) -> tf.Tensor:
    """PreventGradient, also in `tf.vectorized_map`."""
    prevented: tf.Tensor = tf.raw_ops.PreventGradient(input=result, message=message)
    if not tf.executing_eagerly():
        vectorized_by(prevented.op, lambda of_all: prevent_gradient(of_all, message))
    return prevented


def _stacked(value: Any, length: tf.Tensor) -> tf.Tensor:
    """What `tf.vectorized_map` computed, for all elements also where it is the same for them."""
    return value.t if value.is_stacked else tf.gather(value.t[None], tf.zeros(length, tf.int32))


def refusing_results(
    results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], refuse: Callable[..., Never], name: str
) -> list[tf.Tensor]:
    """Results in the current graph of which a gradient is refused; their operations are known to all consumers.

    A SavedModel does not hold `refuse`, but that there is a gradient of its own: to ask for one after loading is
    TensorFlow's LookupError, which has the name.

    Args:
      results: Tensors of the graph.
      arguments: What they would be differentiated with respect to.
      refuse: Raises LookupError.
      name: Of the operations.
    """
    graph = tf.compat.v1.get_default_graph()
    held = graph._override_gradient_function({"Identity": refuse})
    with graph.gradient_override_map({"Identity": f"Jaxtf_{name}"}), held:
        outputs = unrecorded(lambda tensors: [tf.identity(tensor, name) for tensor in tensors], results)
    for output in outputs:
        vectorized_by(output.op, lambda of_all: refusing_results([of_all], [of_all], refuse, name)[0])
    record_gradient(outputs, arguments, refuse)
    return outputs


def _registered_weakly(gradient: Callable[..., Any]) -> str:
    """The name that TensorFlow knows a function by, while the function lives, as the gradient of an operation.

    By it a graph is saved, or made again of its definition; in another process no function has it, which would be the
    gradient of a loaded operation there.
    """
    name, reference = f"JaxtfGradient-{uuid.uuid4().hex}", weakref.ref(gradient)

    def internal_grad_fn(operation: tf.Operation | None, *cotangents: tf.Tensor | None) -> Any:
        found = reference()
        if found is None:
            raise LookupError(f"the graph that the gradient of {operation} belongs to is no longer there")
        return found(operation, *cotangents)

    tf.RegisterGradient(name)(left_alone_by_autograph(internal_grad_fn))
    weakref.finalize(gradient, ops.gradient_registry._registry.pop, name, None).atexit = False
    return name


def traces_saved_gradient() -> bool:
    """Whether what runs now becomes part of the gradient of an op in a SavedModel."""
    name = getattr(tf.compat.v1.get_default_graph(), "name", "")
    return bool(save_context.in_save_context()) and name.startswith("internal_grad_fn")


def is_in_control_flow(tensor: tf.Tensor) -> bool:
    """Whether it is of the body of a loop or of a branch."""
    return bool(getattr(tensor.graph, "is_control_flow_graph", False))


def current_place() -> tuple[Any, Any]:
    """The graph, None in eager mode, and the branch or loop of TensorFlow 1 that operations become part of."""
    if executing_eagerly():
        return None, None
    graph: Any = tf.compat.v1.get_default_graph()
    return graph, graph._get_control_flow_context()


def traces_control_flow() -> bool:
    """Whether what runs now becomes part of the body of a loop or of a branch, or of a function traced in one."""
    graph: Any = tf.compat.v1.get_default_graph()
    while graph is not None and not getattr(graph, "is_control_flow_graph", False):
        graph = getattr(graph, "outer_graph", None)
    return graph is not None


def traces_compiled() -> bool:
    """Whether what runs now becomes part of a `tf.function(jit_compile=True)`, or of a function traced in one."""
    graph = tf.compat.v1.get_default_graph()
    return not executing_eagerly() and bool(control_flow_util.GraphOrParentsInXlaContext(graph))


def flat_call(concrete: Any) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
    """A concrete function for eager tensors of its signature; tapes do not see it."""
    if concrete.captured_inputs:
        return lambda arguments: unrecorded(lambda tensors: list(concrete(*tensors)), arguments)
    return _run_by_name(concrete, has_options=True)


def compiled_call(
    fun: Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]], specifications: Sequence[tf.TensorSpec], name: str
) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
    """A function of flat tensors, compiled for eager tensors of these specifications; tapes do not see it.

    Args:
      fun: It reads no variables.
      specifications: Of its arguments.
      name: What profilers and debuggers show.
    """

    with tf.init_scope(), _hidden_from_debuggers():
        return _run_by_name(_compiled(fun, specifications, name), has_options=False)


def compiled_in_graph(
    fun: Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]], arguments: Sequence[tf.Tensor], name: str
) -> list[tf.Tensor]:
    """Adds a call of a function that is compiled as one to the current graph."""
    specifications = [tf.TensorSpec(argument.shape, argument.dtype) for argument in arguments]
    with _hidden_from_debuggers():
        return list(_compiled(fun, specifications, name)(*arguments))


def _compiled(
    fun: Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]], specifications: Sequence[tf.TensorSpec], name: str
) -> Any:
    """The concrete function."""

    def run(*arguments: tf.Tensor) -> Sequence[tf.Tensor]:
        return fun(arguments)

    run.__name__ = name
    return tf.function(run, autograph=False, jit_compile=True).get_concrete_function(*specifications)


@contextmanager
def _hidden_from_debuggers() -> Iterator[None]:
    """Keeps operations that `tf.debugging` adds out of a graph, where they would not compile; they see the call."""
    state = context.context()
    was, state.invoking_op_callbacks = state.invoking_op_callbacks, True
    try:
        yield
    finally:
        state.invoking_op_callbacks = was


def _run_by_name(concrete: Any, *, has_options: bool) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
    """Runs a concrete function, with the options for graphs that hold at the time of a call, or with none."""
    function = concrete._inference_function
    name, results = function.name.decode(), len(function.function_type.flat_outputs)

    # Held, because TensorFlow forgets a function that nobody holds.
    def run(arguments: Sequence[tf.Tensor], *, _held: Any = concrete) -> list[tf.Tensor]:
        state = context.context()
        options = state.function_call_options.as_attrs() if has_options else {}
        attributes = tuple(item for option in options.items() for item in option)
        found: list[tf.Tensor] = execute.execute(name, results, list(arguments), attributes, state)
        return found

    return run


def executing_eagerly() -> bool:
    """As `tf.executing_eagerly`, in a third of its time."""
    is_eager: bool = context.context().executing_eagerly()
    return is_eager


def eager_layout(values: Sequence[Any]) -> list[Hashable] | None:
    """Shape and number of the dtype of each value, in turns; None if one of them is not an eager tensor."""
    layout: list[Hashable] = []
    for value in values:
        if type(value) is not EagerTensor:
            return None
        layout += (value._shape_tuple(), value._datatype_enum())
    return layout


def eager_shapes(tensors: Sequence[tf.Tensor]) -> list[tuple[int, ...]]:
    """The shapes of eager tensors."""
    return [tensor._shape_tuple() for tensor in tensors]


@dataclass(frozen=True)
class TiledDevices:
    """Which device holds which tile of an array: the numbers from 0, arranged.

    Attributes:
      tiles: How many there are along each axis; if `is_partial`, then how many devices hold each.
      mesh: Sizes that the numbers are reshaped to first.
      order: The axes of that, transposed; the result is reshaped to `tiles`.
      is_partial: Whether several devices hold the same tile.
    """

    tiles: tuple[int, ...]
    mesh: tuple[int, ...]
    order: tuple[int, ...]
    is_partial: bool = False

    @property
    def hold_all(self) -> bool:
        """Whether there is one tile, which every device holds."""
        return max(self.tiles[: len(self.tiles) - self.is_partial], default=1) == 1

    def numbers(self) -> list[int]:
        """The devices, in row-major order of the tiles."""
        numbers: list[int] = np.arange(math.prod(self.mesh)).reshape(self.mesh).transpose(self.order).flatten().tolist()
        return numbers


def annotate_tiles(tensor: tf.Tensor, devices: TiledDevices, uses_shardy: bool) -> tf.Tensor:
    """The tensor, of a graph, with an XlaSharding op that says which devices hold which of its tiles.

    Args:
      tensor: The tensor.
      devices: Likewise.
      uses_shardy: Whether that partitioner is to read it: it wants the arrangement, not the numbers.
    """
    if devices.hold_all:
        whole = xla_data_pb2.OpSharding(type=xla_data_pb2.OpSharding.REPLICATED)
        return xla_sharding.Sharding(proto=whole).apply_to_tensor(tensor, use_sharding_op=True)
    common = {
        "type": xla_data_pb2.OpSharding.OTHER,
        "tile_assignment_dimensions": devices.tiles,
        "replicate_on_last_tile_dim": devices.is_partial,
    }
    listed = xla_data_pb2.OpSharding(**common, tile_assignment_devices=devices.numbers())
    sharding = xla_sharding.Sharding(proto=listed)
    if not uses_shardy or newest_calling_convention_version() < 10:  # TensorFlow 2.19 knows the numbers only
        return sharding.apply_to_tensor(tensor, use_sharding_op=True)
    arranged = xla_data_pb2.OpSharding(**common, iota_reshape_dims=devices.mesh, iota_transpose_perm=devices.order)
    return sharding.apply_to_tensor(tensor, use_sharding_op=True, sharding_v2_proto=arranged)


# `tf.Graph.create_op` asks at each call for the names of its parameters, to warn of one that nobody passes here.
_create_op = inspect.unwrap(tf.Graph.create_op)


def is_compiled_for_cpu() -> bool:
    """Whether what runs now becomes part of a function with `jit_compile=True`, of a CPU.

    On a machine that has other devices it is not known where the function will run.
    """
    return traces_compiled() and has_only_cpu()


def has_only_cpu() -> bool:
    """Whether TensorFlow has no other devices."""
    return all(device.device_type == "CPU" for device in tf.config.list_logical_devices())


def variadic_sort(
    operands: Sequence[tf.Tensor], axis: int, comparator: Callable[..., Sequence[tf.Tensor]]
) -> list[tf.Tensor]:
    """Arrays sorted together by a comparator of scalars, equal elements in order."""
    scalars = [tf.TensorSpec([], x.dtype) for x in operands for _ in range(2)]

    def compared(*arguments: tf.Tensor) -> tf.Tensor:
        return comparator(*arguments)[0]

    function = tf.function(compared, autograph=False, input_signature=scalars).get_concrete_function()
    dimension = tf.constant(axis, tf.int32)
    return list(gen_xla_ops.xla_variadic_sort(operands, dimension, comparator=function, is_stable=True))


def compiled_svd(matrices: tf.Tensor, error: float) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Singular values, and the left and the right vectors, square matrices, up to a relative error, by XLA."""
    results = gen_xla_ops.xla_svd(matrices, max_iter=100, epsilon=error, precision_config="")
    *batch, rows, columns = matrices.shape.as_list()
    count = None if None in (rows, columns) else min(rows, columns)
    for result, last in zip(results, ([count], [rows, rows], [columns, columns]), strict=True):
        result.set_shape([*batch, *last])
    return tuple(results)


def scatter_rows(
    rows: tf.Tensor, place: tf.Tensor, changes: tf.Tensor, combine: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """The rows, each combined with the changes of it, by XLA's scatter, in an order that is not promised.

    Args:
      rows: Of one or more dimensions.
      place: Of each change the row, a column of integers.
      changes: As many, each as large as a row.
      combine: Of two scalars, what an element of a row and one of a change give; associative and commutative.
    """
    scalars = [tf.TensorSpec([], rows.dtype)] * 2
    function = tf.function(combine, autograph=False, input_signature=scalars).get_concrete_function()
    numbers = xla_data_pb2.ScatterDimensionNumbers(
        update_window_dims=range(1, rows.shape.rank),
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    made: tf.Tensor = gen_xla_ops.xla_scatter(rows, place, changes, function, numbers.SerializeToString(), False)
    return made


def rng_bit_generator(
    algorithm: int, state: tf.Tensor, shape: Sequence[int], dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """The next state and random bits, those of XLA."""
    key, bits = gen_xla_ops.xla_rng_bit_generator(algorithm, state, list(shape), dtype=dtype)
    return key, bits


def new_node(op_type: str, inputs: Sequence[tf.Tensor], attributes: Mapping[str, bytes]) -> tf.Tensor:
    """The first result of a new node of the current graph.

    Args:
      op_type: The type of the operation: one that takes tensors one by one, not in lists.
      inputs: Tensors, also of the graphs around.
      attributes: By name, each the bytes of an `AttrValue`; those that are absent have their defaults.

    Raises:
      ValueError: The operation does not take such inputs or attributes.
    """
    graph = tf.compat.v1.get_default_graph()
    if not _is_plain(graph):
        attrs = {name: tf.compat.v1.AttrValue.FromString(value) for name, value in attributes.items()}
        result: tf.Tensor = _create_op(graph, op_type, list(inputs), attrs=attrs).outputs[0]
        return result
    outputs = [graph.capture(tensor)._as_tf_output() for tensor in inputs]
    with graph._c_graph.get() as c_graph:
        description = pywrap_tf_session.TF_NewOperation(c_graph, op_type, graph.unique_name(op_type))
    for output in outputs:
        pywrap_tf_session.TF_AddInput(description, output)
    for name, value in attributes.items():
        pywrap_tf_session.TF_SetAttrValueProto(description, name, value)
    try:
        made = pywrap_tf_session.TF_FinishOperation(description)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(error.message) from error
    pywrap_tf_session.TF_SetOpStackTrace(made, tf_stack.extract_stack(stacklevel=2))
    operation = tf.Operation._from_c_op(made, graph)
    graph._create_op_helper(operation)
    result = operation.outputs[0]
    return result


def left_by_grappler(operation: tf.Operation) -> None:
    """Keeps TensorFlow's graph optimizer from replacing an operation, or what is computed from it."""
    operation._set_attr(_LEFT, tf.compat.v1.AttrValue(b=True))


def run_as_function(operation: tf.Operation) -> None:
    """Keeps a loop or a branch from being replaced by operations on each value that it takes."""
    operation._set_attr("_lower_using_switch_merge", tf.compat.v1.AttrValue(b=False))


def has_kernel(operation: tf.Operation) -> bool:
    """Whether a device of this process, or any CPU, has a kernel for the dtypes of an operation of a graph."""
    devices = {"CPU", "DEFAULT", *(device.device_type for device in tf.config.list_logical_devices())}
    found = kernels.get_registered_kernels_for_op(operation.type).kernel
    return not found or any(
        kernel.device_type in devices
        and all(_is_allowed(operation.get_attr(c.name), c.allowed_values.list.type) for c in kernel.constraint)
        for kernel in found
    )


def _is_allowed(attribute: Any, dtypes: Sequence[int]) -> bool:
    """Whether the value of an attribute is one of these dtypes; of one that is no dtype, there are none."""
    return not dtypes or not isinstance(attribute, tf.DType) or attribute.as_datatype_enum in dtypes


def set_number(operation: tf.Operation, number: int) -> None:
    """Keeps TensorFlow from taking an operation for another one of its type and operands that has another number."""
    operation._set_attr("_jaxtf_number", tf.compat.v1.AttrValue(i=number))


def is_left_by_grappler(operation: tf.Operation) -> bool:
    """Whether an operation is one that `left_by_grappler` keeps."""
    try:
        operation.get_attr(_LEFT)
    except ValueError:
        return False
    return True


# TensorFlow copies what is the same for all elements and comes after a stateful operation, without its gradient.
_COPIED = (
    "tf.vectorized_map has lost the gradient of a jaxtf-converted function of what is the same for all elements and "
    "comes from a stateful function. Compute that before tf.vectorized_map, or take the gradient outside of tf.function"
)


def vectorized_by(
    operation: tf.Operation, compute: Callable[..., tf.Tensor] | None, *, stacks_all: bool = False
) -> None:
    """Has `tf.vectorized_map` compute an operation for all elements at once by a function, not by what is for its type.

    Args:
      operation: Of a graph. What is read from a SavedModel, or is frozen, does not have the function.
      compute: From the first operand, with the elements as one more dimension in front, and the other operands, to the
        result, with that dimension. Where another operand is not the same for all elements, or the first is, and where
        it is None, TensorFlow computes the operation in a loop.
      stacks_all: Whether all operands have that dimension; what is the same for all elements is repeated.
    """

    def convert(given: Any) -> Any:
        if compute is None:
            raise pfor.ConversionNotImplementedError(f"jaxtf has {given.op_type} be computed in a loop")
        if stacks_all:
            given.stack_inputs()
            return pfor.wrap(compute(*(given.stacked_input(i) for i in range(given.num_inputs))), True)
        others = [given.unstacked_input(i) for i in range(1, given.num_inputs)]
        return pfor.wrap(compute(given.stacked_input(0), *others), True)

    operation.pfor_converter = convert


def evaluated(tensor: tf.Tensor) -> Any:
    """The value of a tensor of a graph that follows from constants and known sizes by any operations; else None."""
    return tensor_util.try_evaluate_constant(tensor)


def asserted(holds: tf.Tensor, data: Sequence[Any]) -> tf.Operation | None:
    """As `tf.debugging.Assert`; `tf.vectorized_map` leaves it as it is where it is the same for all elements.

    What is computed after it stays as it is too, with the gradient that a tape has of it.
    """
    made = tf.debugging.Assert(holds, data)
    if made is not None:
        for operation in (made, *(tensor.op for tensor in made.inputs)):
            if operation.type in pfor._pfor_converter_registry:
                operation.pfor_converter = _unless_the_same
    return made


def ensured(tensor: tf.Tensor, shape: tf.TensorShape, name: str) -> tf.Tensor:
    """As `tf.ensure_shape`, also where nothing reads the result but operations run after it.

    `tf.vectorized_map` leaves it as it is where the tensor is the same for all elements.
    """
    made: tf.Tensor = tf.ensure_shape(tensor, shape, name)
    left_by_grappler(made.op)

    def convert(given: Any) -> Any:
        value = given.input(0)
        if _is_unchanged(given):
            return pfor.wrap(given.op.outputs[0], False)
        stacked = tf.TensorShape([None]).concatenate(shape) if value.is_stacked else shape
        return pfor.wrap(ensured(value.t, stacked, name), value.is_stacked)

    made.op.pfor_converter = convert
    return made


def _unless_the_same(given: Any) -> Any:
    """An operation as it is where its operands are, and otherwise as TensorFlow computes it for all elements."""
    if _is_unchanged(given):
        return [pfor.wrap(tensor, False) for tensor in given.op.outputs] or given.op
    converted = pfor._pfor_converter_registry[given.op_type](given)
    if isinstance(converted, tf.Operation):  # the assertion, for all elements
        converted.pfor_converter = _unless_the_same
        _without_element_0(given)
    return converted


def vectorized_slice(operation: tf.Operation, size: Sequence[int]) -> None:
    """Has `tf.vectorized_map` take slices of this size, where each starts elsewhere, by a gather.

    As TensorFlow does, but also for no elements, as in a branch that none takes: it computes the size by the starts.
    """

    def convert(given: Any) -> Any:
        if not (given.input(0).is_stacked and given.input(1).is_stacked):
            return pfor._pfor_converter_registry["Slice"](given)
        starts = tf.cast(given.stacked_input(1), tf.int64)
        steps = tf.math.cumprod(tf.constant(size, tf.int64), exclusive=True, reverse=True)
        places = tf.range(tf.reduce_prod(tf.constant(size, tf.int64)))[:, None] // steps % size
        found = tf.gather_nd(given.stacked_input(0), starts[:, None] + places, batch_dims=1)
        return pfor.wrap(tf.reshape(found, tf.concat([given.pfor.loop_len_vector, size], 0)), True)

    operation.pfor_converter = convert


def _is_plain(graph: tf.Graph) -> bool:
    """Whether a graph is that of a function and does nothing of its own with a new node, nor what is around it."""
    return (
        isinstance(graph, FuncGraph)
        and type(graph)._create_op_internal is FuncGraph._create_op_internal
        and not graph._control_dependencies_stack
        and graph._default_original_op is None
        and graph._get_control_flow_context() is None
    )


class NameScope:
    """The name scope that `tf.name_scope` makes in a graph, as a context; nothing in eager mode.

    Args:
      name: Of letters, digits and `_.-`, in parts between slashes.
    """

    __slots__ = ("_graph", "_name", "_outer")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._graph: Any = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if self._graph is not None:
            self._outer = self._graph._name_stack
            self._graph._name_stack = self._graph.unique_name(self._name)

    def __exit__(self, *_: object) -> None:
        if self._graph is not None:
            self._graph._name_stack = self._outer
