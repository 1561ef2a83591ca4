"""Derivatives: a call's tangents are a linear call, and its transpose runs TensorFlow's gradient.

    results          = call_tf(args)
    result tangents  = call_tf_linear(args, tangents of some args)     J(args) @ tangents
    cotangents       = transpose of call_tf_linear                     J(args)^T @ cotangents

The transpose calls another TensorFlow function, `VectorJacobian`: the original one under a
`tf.GradientTape`. So gradients are TensorFlow's, custom gradients are respected, and
gradients of gradients are calls like any other. Only arguments and results with floating
point or complex elements, and of them only those JAX asks for, take part; JAX itself
supplies `float0` for the others.

TensorFlow's gradient of a complex function is the complex conjugate of JAX's, in each
cotangent (JAX transposes, TensorFlow takes the adjoint); both are conjugated on the way.

Evaluating `call_tf_linear` itself is forward mode, which is refused.

Source: JAX, "How JAX primitives work" (JVP and transposition rules); TensorFlow, "Advanced
automatic differentiation" (output_gradients, unconnected_gradients).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import tensorflow as tf
from jax.core import ShapedArray
from jax.interpreters import ad, mlir

from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._function import Function, Results, Traced
from jaxtf.calltf._primitive import call_tf_evaluated_p, call_tf_linear_p, call_tf_p, invoke
from jaxtf.calltf._transfer import is_differentiable


class VectorJacobian(Function):
    """(args, cotangents of some results) -> cotangents of some args.

    Args:
      function: The function to differentiate.
      arguments: Indices of the arguments to differentiate with respect to.
      results: Indices of the results that have cotangents.
    """

    def __init__(self, function: Function, arguments: tuple[int, ...], results: tuple[int, ...]):
        super().__init__(f"vjp_{function.name}", function.has_side_effects)
        self._function = function
        self._arguments = arguments
        self._results = results

    def call(self, tensors: Sequence[Any]) -> Results:
        """Runs the function under a tape, and the tape backwards."""
        num_args = len(tensors) - len(self._results)
        args, cotangents = tensors[:num_args], tensors[num_args:]
        sources = [args[i] for i in self._arguments]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = self._function.run(args).leaves
        gradients = tape.gradient(
            [results[i] for i in self._results],
            sources,
            output_gradients=[_conjugate(cotangent) for cotangent in cotangents],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # A gradient may be sparse (tf.IndexedSlices, of a gather) or of a shape not inferred.
        dense = [
            tf.ensure_shape(_conjugate(tf.convert_to_tensor(gradient)), source.shape)
            for gradient, source in zip(gradients, sources, strict=True)
        ]
        return Results(*jax.tree.flatten(dense))


def _conjugate(tensor: Any) -> Any:
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor


def _tangents(function: Function, args: Sequence[Any], tangents: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The tangents of the results: one linear call for those that have any."""
    arguments = tuple(i for i, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero))
    avals = [jax.typeof(result) for result in results]
    wanted = tuple(i for i, aval in enumerate(avals) if is_differentiable(aval.dtype))
    found: list[Any] = [ad.Zero(aval.to_tangent_aval()) for aval in avals]
    if arguments and wanted:
        computed = call_tf_linear_p.bind(
            *args,
            *(tangents[i] for i in arguments),
            function=function,
            arguments=arguments,
            results=wanted,
            avals=tuple(avals[i] for i in wanted),
        )
        for index, tangent in zip(wanted, computed, strict=True):
            found[index] = tangent
    return found


def _call_jvp(args: Sequence[Any], tangents: Sequence[Any], *, traced: Traced) -> tuple[list[Any], list[Any]]:
    results = call_tf_p.bind(*args, traced=traced)
    return results, _tangents(traced.function, args, tangents, results)


def _evaluated_jvp(
    args_and_results: Sequence[Any], tangents: Sequence[Any], *, function: Function, num_args: int
) -> tuple[list[Any], list[Any]]:
    results = call_tf_evaluated_p.bind(*args_and_results, function=function, num_args=num_args)
    return results, _tangents(function, args_and_results[:num_args], tangents[:num_args], results)


def _linear_abstract(*operands: Any, avals: tuple[ShapedArray, ...], **_: Any) -> list[ShapedArray]:
    return [ShapedArray(aval.shape, aval.dtype) for aval in avals]


def _linear_transpose(
    cotangents: Sequence[Any],
    *operands: Any,
    function: Function,
    arguments: tuple[int, ...],
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
) -> list[Any]:
    num_args = len(operands) - len(arguments)
    args, tangents = operands[:num_args], operands[num_args:]
    # Not every tangent need be an unknown of the linear function being transposed.
    unknown = [i for i, tangent in enumerate(tangents) if ad.is_undefined_primal(tangent)]
    given = [i for i, cotangent in enumerate(cotangents) if not isinstance(cotangent, ad.Zero)]
    computed: list[Any] = [None] * len(tangents)
    if given:
        vjp = function.derived(VectorJacobian, tuple(arguments[i] for i in unknown), tuple(results[i] for i in given))
        found = invoke(vjp, [*args, *(cotangents[i] for i in given)]).leaves
        for index, cotangent in zip(unknown, found, strict=True):
            computed[index] = cotangent
    return [None] * num_args + computed


def _refuse_forward_mode(*_: Any, function: Function, **__: Any) -> NoReturn:
    raise UnsupportedError(
        f"call_tf: forward-mode differentiation (jax.jvp, jax.jacfwd, jax.hessian) of {function} is not supported yet\n"
        "  remedy: use reverse mode: jax.grad or jax.vjp"
    )


def _linear_lowering(_: Any, *operands: Any, **params: Any) -> NoReturn:
    _refuse_forward_mode(*operands, **params)


def _linear_jvp(_: Any, __: Any, **params: Any) -> NoReturn:
    _refuse_forward_mode(**params)


call_tf_linear_p.def_impl(_refuse_forward_mode)
call_tf_linear_p.def_abstract_eval(_linear_abstract)
mlir.register_lowering(call_tf_linear_p, _linear_lowering)
ad.primitive_jvps[call_tf_p] = _call_jvp
ad.primitive_jvps[call_tf_evaluated_p] = _evaluated_jvp
ad.primitive_jvps[call_tf_linear_p] = _linear_jvp
ad.primitive_transposes[call_tf_linear_p] = _linear_transpose
