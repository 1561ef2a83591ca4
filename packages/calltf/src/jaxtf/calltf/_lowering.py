"""Staged calls become StableHLO: TensorFlow compiles the trace to HLO, which is embedded.

For each lowering platform TensorFlow compiles the trace for its own platform of that kind
to unoptimized HLO (no device is needed), jaxlib converts it to StableHLO, and the module
being lowered gets it as one function, shared by all calls of the same trace. What remains is
pure StableHLO: no custom call back into TensorFlow.

The values that captured variables and tensors had when the call was traced become constants of the
program, with a `CaptureWarning`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
from jax.interpreters import mlir

from jaxtf.calltf._captures import Captures, warn_of_captures
from jaxtf.calltf._common_form import CommonForm, NoCommonForm
from jaxtf.calltf._divisions import guard_divisions
from jaxtf.calltf._effects import CALL_TF_ORDERED_EFFECT
from jaxtf.calltf._errors import LIMITATIONS, CallByNameError, CompilationError, UnsupportedError
from jaxtf.calltf._guards import Guards
from jaxtf.calltf._jax import dimension_values, hlo_to_stablehlo, ir_types, is_for_export, token_type
from jaxtf.calltf._primitive import call_tf_compiled_p, call_tf_p, refuse_variable_writes
from jaxtf.calltf._symbolic_traced import SymbolicTraced
from jaxtf.calltf._traced import Traced
from jaxtf.serialization.interop import add_function, lowering_platforms, rewrite_for_xla, set_tokens, token_of

TENSORFLOW_PLATFORMS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


def lower_call(
    ctx: mlir.LoweringRuleContext,
    *args: ir.Value,
    traced: Traced,
    captures: Captures | None,
    tensorflow_platform: str,
) -> Sequence[ir.Value]:
    """The results of a call: of the function that TensorFlow compiled for the platform."""
    if traced.function.staging.by_name:
        return _lower_by_name(ctx, args, traced)
    refuse_variable_writes(traced)
    operands = _with_captures(args, traced, captures)
    if isinstance(traced, SymbolicTraced):
        return _lower_symbolic(ctx, operands, traced, tensorflow_platform)
    return _lower_compiled(ctx, operands, traced, tensorflow_platform)


def _with_captures(args: Sequence[ir.Value], traced: Traced, captures: Captures | None) -> list[ir.Value]:
    """The arguments, and the values of captures as constants."""
    warn_of_captures(traced.function.name, traced.captured)
    return [*args, *(mlir.ir_constant(value) for value in traced.captured_values(captures))]


def _lower_program(
    ctx: mlir.LoweringRuleContext, *operands: ir.Value, reference: Callable[[], Traced], tensorflow_platform: str
) -> Sequence[ir.Value]:
    """A call of a trace that lives on, of arguments and the values of captures."""
    return _lower_compiled(ctx, operands, reference(), tensorflow_platform)


def _lower_compiled(
    ctx: mlir.LoweringRuleContext, operands: Sequence[ir.Value], traced: Traced, tensorflow_platform: str
) -> Sequence[ir.Value]:
    """The results of a call, of arguments and the values of captures."""
    compiled = _stablehlo(traced.hlo(tensorflow_platform))
    name, main = add_function(ctx, f"call_tf_{traced.function.symbol}", compiled)
    found = main.type.results
    call = func.CallOp(found, ir.FlatSymbolRefAttr.get(name), operands)
    expected = ir_types(ctx, traced.avals)
    check_result_types(traced, found, expected)
    # A few kernels of tf2xla have float32 results where the op's are float64 (the gradient
    # of a bilinear resize, TensorFlow 2.21).
    return [
        result if result.type == type_expected else stablehlo.convert(type_expected, result)
        for result, type_expected in zip(call.results, expected, strict=True)
    ]


def _lower_by_name(ctx: mlir.LoweringRuleContext, args: Sequence[ir.Value], traced: Traced) -> Sequence[ir.Value]:
    """A call that TensorFlow resolves: the exporter replaces the name by an index into the functions it gives along."""
    if not is_for_export(ctx):
        raise CallByNameError(
            f"call_tf: {traced.function} has call_tf_graph=True: call_tf_graph=True only supports exporting, by "
            "jaxtf.convert; JAX cannot run a call of a TensorFlow function by name\n"
            "  remedy: convert the function that contains it, or leave call_tf_graph=True out"
        )
    if traced.captured:
        raise _refused_captures(traced)
    if not isinstance(traced, SymbolicTraced):
        traced.refuse_lost_sizes()
    elif traced.unfound_size is not None:
        raise UnsupportedError(
            f"call_tf: {traced.function} has call_tf_graph=True, and output_shape_dtype declares a size "
            f"{traced.unfound_size}, which native mode does not compare with what the function returns\n"
            "  remedy: declare sizes that are sums and products of sizes of the arguments, leave output_shape_dtype "
            "out, or convert in graph mode (native_serialization=False)"
        )
    return _call_by_name(ctx, args, traced)


def _refused_captures(traced: Traced) -> UnsupportedError:
    return UnsupportedError(
        f"call_tf: {traced.function} has call_tf_graph=True and captures variables or tensors, which a call by "
        "name does not pass\n  remedy: pass them as arguments"
    )


def _call_by_name(ctx: mlir.LoweringRuleContext, args: Sequence[ir.Value], traced: Traced) -> Sequence[ir.Value]:
    """The custom call that names the function."""
    ordered = traced.function.staging.ordered
    types = ir_types(ctx, traced.avals)
    shapes: list[ir.Value] = []
    if isinstance(traced, SymbolicTraced):
        if ordered:
            raise UnsupportedError(
                f"call_tf: {traced.function} has ordered=True and symbolic shapes, which is not supported\n"
                "  remedy: use constant shapes, or leave ordered=True out"
            )
        if traced.scope is not None:  # compiled, the function may do something else where a size does not fit
            Guards(ctx, traced.function, traced.scope, traced.sizes, {})
        shapes = [_shape_vector(dimension_values(ctx, aval.shape)) for aval in traced.avals]
    name = ir.StringAttr.get(traced.called_function.name)
    config = {"called_name": name, "has_token_input_output": ir.BoolAttr.get(ordered)}
    call = stablehlo.CustomCallOp(
        [token_type(), *types] if ordered else types,
        [token_of(ctx, CALL_TF_ORDERED_EFFECT), *args] if ordered else [*args, *shapes],
        call_target_name=ir.StringAttr.get("tf.call_tf_function"),
        has_side_effect=ir.BoolAttr.get(ordered or traced.has_effect),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
        called_computations=ir.ArrayAttr.get([]),
        backend_config=ir.StringAttr.get(""),
    )
    call.attributes["tf.backend_config"] = ir.DictAttr.get(config)
    if shapes:  # shape refinement reads the sizes of the results there, and drops these operands
        places = np.arange(len(args), len(args) + len(shapes), dtype=np.int64)
        call.attributes["indices_of_shape_operands"] = ir.DenseElementsAttr.get(places)
    results = list(call.results)
    if ordered:
        set_tokens(ctx, {CALL_TF_ORDERED_EFFECT: results.pop(0)})
    return results


def _stablehlo(hlo: bytes) -> ir.Module:
    """The StableHLO module of a serialized HLO module, without HLO's copies, for which StableHLO has no operation."""
    module = ir.Module.parse(hlo_to_stablehlo(hlo))
    copies: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.operation.name == "mhlo.copy":
            copies.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for copy in copies:
        copy.result.replace_all_uses_with(copy.operands[0])
        copy.erase()
    rewrite_for_xla(module)
    guard_divisions(module)
    return module


def _shape_vector(sizes: Sequence[int | ir.Value]) -> ir.Value:
    one = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32))
    scalars = [mlir.ir_constant(np.int32(size)) if isinstance(size, int) else size for size in sizes]
    if not scalars:
        return mlir.ir_constant(np.zeros(0, np.int32))
    scalar = ir.RankedTensorType.get([], one.element_type)
    return stablehlo.concatenate(
        [stablehlo.reshape(one, s if s.type == scalar else stablehlo.convert(scalar, s)) for s in scalars], 0
    )


def _lower_symbolic(
    ctx: mlir.LoweringRuleContext, args: Sequence[ir.Value], traced: SymbolicTraced, tensorflow_platform: str
) -> Sequence[ir.Value]:
    assert traced.scope is not None
    modules = [_stablehlo(hlo) for hlo in traced.hlos(tensorflow_platform)]
    guards = Guards(ctx, traced.function, traced.scope, traced.sizes, traced.samples[0].variables)

    def value(size: Any) -> ir.Value:
        [scalar] = dimension_values(guards.ctx, (size,))
        return scalar

    arguments = guards.enter(args, traced.given_shapes, traced.argument_shapes)
    try:
        results = CommonForm(traced.samples, modules, traced.numbers, value).emit(arguments)
    except NoCommonForm as error:
        raise UnsupportedError(
            f"call_tf: {traced.function}, compiled by TensorFlow for constant sizes, has no common form for all "
            f"sizes {', '.join(map(str, traced.sizes))}: {error}\n"
            "  remedy: use constant shapes for the arguments of this function, or split it, and write in JAX the part "
            f"that depends on sizes in this way; see {LIMITATIONS}"
        ) from error
    results = guards.leave(results, traced.result_shapes, [tuple(aval.shape) for aval in traced.avals])
    expected = ir_types(ctx, traced.avals)
    return [
        result if result.type == type_expected else stablehlo.convert(type_expected, result)
        for result, type_expected in zip(results, expected, strict=True)
    ]


def check_result_types(traced: Traced, found: Sequence[ir.Type], expected: Sequence[ir.Type]) -> None:
    """Refuses a compiled function with other result shapes than those that JAX was given.

    Raises:
      CompilationError: A dynamic shape, or another one than TensorFlow infers.
      DeclarationError: Another shape than declared.
    """
    assert len(found) == len(expected), f"{traced.function} compiled to {len(found)} results, not {len(expected)}"
    for index, (type_found, type_expected) in enumerate(zip(found, expected, strict=True)):
        if not type_found.has_static_shape or type_found.encoding is not None:
            raise CompilationError(
                f"Compiled TensorFlow function {traced.function} has dynamic output shape {type_found}. call_tf can "
                "be used in a staged context (under jax.jit, lax.scan, etc.) only with compilable functions with "
                f"static output shapes.\n  remedy: pad the result to a fixed size; see {LIMITATIONS}"
            )
        if type_found.shape != type_expected.shape:
            if traced.function.declared is not None:
                raise traced.function.declared.mismatch(index, str(type_found))
            raise CompilationError(
                f"Error compiling TensorFlow function {traced.function}: result[{index}], of its operation "
                f"{_origin(traced.concrete.outputs[index])}, is {type_found} compiled, and {type_expected} as "
                "TensorFlow infers it: its compiler has another form of that operation\n"
                "  remedy: write it with others, or call the function outside of staged contexts and jax.vmap, where "
                f"it runs eagerly; see {LIMITATIONS}"
            )


def _origin(tensor: Any) -> str:
    """The type of the operation that makes a tensor."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return str(tensor.op.type)


# The platform that jaxtf.serialization lowers for where jaxtf.convert translates a module to TensorFlow operations:
# there the function is called as it is.
_GRAPH_MODE = ("tf",)


def _lower_elsewhere(
    ctx: mlir.LoweringRuleContext, *args: ir.Value, traced: Traced, captures: Captures | None
) -> Sequence[ir.Value]:
    if lowering_platforms(ctx) == _GRAPH_MODE:
        if traced.function.staging.by_name:  # with tables, queues, ..., and tensors, which have one value for ever
            if any(isinstance(each, tf.Variable) for each in traced.captured):
                raise _refused_captures(traced)
            warn_of_captures(traced.function.name, [each for each in traced.captured if each.dtype != tf.resource])
            return _call_by_name(ctx, args, traced)
        traced.refuse_if_not_compiled()  # TensorFlow compiles it when it runs
        if not isinstance(traced, SymbolicTraced):
            traced.refuse_lost_sizes()
        return _call_by_name(ctx, _with_captures(args, traced, captures), traced)
    raise UnsupportedError(
        f"call_tf: {traced.function} cannot be lowered for {lowering_platforms(ctx)}: TensorFlow compiles for "
        f"{', '.join(TENSORFLOW_PLATFORMS)}\n  remedy: call it outside of staged contexts"
    )


mlir.register_lowering(call_tf_p, _lower_elsewhere)
for _platform, _tensorflow_platform in TENSORFLOW_PLATFORMS.items():
    for _primitive, _lower in ((call_tf_p, lower_call), (call_tf_compiled_p, _lower_program)):
        mlir.register_lowering(
            _primitive, functools.partial(_lower, tensorflow_platform=_tensorflow_platform), platform=_platform
        )
