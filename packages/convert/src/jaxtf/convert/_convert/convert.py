"""`convert`: a JAX function as a function of TensorFlow values.

A call of the converted function finds the signature of its arguments,
the exported function for it (made once), and runs that with a gradient. What happens in eager
mode, inside `tf.function` and in a SavedModel is the same code: it runs ops or records them.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

import jax
import tensorflow as tf

from jaxtf.convert import _jax, _tf
from jaxtf.convert._convert.callables import check_function
from jaxtf.convert._convert.former import refuse_former
from jaxtf.convert._convert.jitted import StaticParameters, without_marks
from jaxtf.convert._convert.lift import export_lifted
from jaxtf.convert._convert.mistakes import explained
from jaxtf.convert._convert.mode import DEFAULT_NATIVE_SERIALIZATION, NativeSerialization
from jaxtf.convert._convert.signature import Signature, Signatures
from jaxtf.convert._convert.target import Target, target_of
from jaxtf.convert._errors import ConversionOptionError, ConversionStateError
from jaxtf.convert._function.cache import Cache
from jaxtf.convert._function.constants import Constants
from jaxtf.convert._function.eager import EagerCalls
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._function.gradient import run_differentiable, run_without_gradient
from jaxtf.convert._values.dtypes import as_tensor
from jaxtf.convert._values.names import call_signature, result_names
from jaxtf.convert._values.progress import Progress
from jaxtf.serialization import DisabledSafetyCheck
from jaxtf.serialization.interop import as_jitted

__all__ = ["Conversion", "convert", "convert_for", "make_conversion"]

# More signatures than this of one function are exported again when they come back.
_SIGNATURES_KEPT = 256


@_tf.left_alone_by_autograph
def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: list[str] | tuple[str, ...] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    native_serialization: NativeSerialization = DEFAULT_NATIVE_SERIALIZATION,
    native_serialization_platforms: list[str] | tuple[str, ...] | None = None,
    native_serialization_disabled_checks: Sequence[DisabledSafetyCheck] = (),
    tensorflow_version: str | None = None,
    **former: Never,
) -> Callable[..., Any]:
    """A function like `fun_jax` for TensorFlow values: eager, in `tf.function`, in a SavedModel.

    Args:
      fun_jax: A JAX function or another callable: the result of `jax.jit`, with its static arguments,
        a method, a `functools.partial`, an instance with `__call__` (a module of Equinox or Flax), hashable or not.
      polymorphic_shapes: None, or a pytree prefix of the positional arguments with shape texts
        such as `"(b, _, 2*d)"`: letters name sizes that the one conversion leaves open, `_` and
        a final `...` take the sizes of the actual argument. None: all sizes of the argument.
      polymorphic_constraints: Texts such as `"a >= b"` that hold between those names.
      with_gradient: Whether TensorFlow can differentiate the result, by JAX's VJP. If not,
        a gradient raises an error.
      enable_xla: Whether graph mode may use TensorFlow's XLA operations where no regular ones do. False alone, without
        `native_serialization`, is graph mode.
      native_serialization: Whether the function is one op that holds its module (native mode), or is translated to
        regular TensorFlow operations (graph mode, False). By default what `--jax2tf_default_native_serialization` or
        the environment variable `JAX2TF_DEFAULT_NATIVE_SERIALIZATION` says, native mode if neither does.
      native_serialization_platforms: Lowering platforms, such as `("cpu", "cuda", "tpu")`; by
        default, or if there are none, that of JAX's default backend. Ignored, with a warning, in graph mode.
      native_serialization_disabled_checks: Safety checks to skip.
      tensorflow_version: Of the oldest TensorFlow that is to run a SavedModel of it, such as `"2.20"`; by default
        the installed one.
      former: Parameters of earlier releases of jax2tf: refused; the error gives the current name.

    Returns:
      A function of the same signature: arguments are tensors, variables, NumPy arrays, Python
      scalars, nested as JAX pytrees; results are tensors. 64-bit values become 32-bit ones
      unless JAX's x64 is on. `fun_jax` is traced once for each signature.

    Raises:
      FunctionTypeError: `fun_jax` is not callable, or is or calls (when called) a function of TensorFlow.
      ConversionOptionError: A platform that does not exist, an unknown version of TensorFlow, or
        `native_serialization=True` with `enable_xla=False`.
      GraphModeUnsupported: When called, in graph mode: an operation that has no translation.
      NativeModeUnsupported: When called, in native mode: sizes within `call_tf` depend on values.
      ParameterError: A parameter that does not exist, or no longer does.
      JaxRequiredError: JAX is not installed; `convert_exported` needs none.
      ArgumentTypeError: When called: an argument that is not numeric, or a static one that is not hashable.
      ResultTypeError: When called: a result is a JAX random key.
      ConversionStateError: When called: inside a JAX transformation.
      tf.errors.InvalidArgumentError: When run: sizes that `polymorphic_shapes` does not allow.

    >>> import jax.numpy as jnp, tensorflow as tf
    >>> from jaxtf.convert import convert
    >>> mean = convert(lambda x: jnp.mean(x, axis=0), polymorphic_shapes=["(b, _)"])
    >>> mean(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([2., 3.], dtype=float32)
    """
    refuse_former(former)
    check_function(fun_jax, "convert")
    target = target_of(
        native_serialization=native_serialization,
        platforms=native_serialization_platforms,
        disabled_checks=native_serialization_disabled_checks,
        tensorflow_version=tensorflow_version,
        enable_xla=enable_xla,
    )
    return convert_for(fun_jax, target, polymorphic_shapes, polymorphic_constraints, with_gradient)


def convert_for(
    fun_jax: Callable[..., Any],
    target: Target,
    polymorphic_shapes: Any,
    polymorphic_constraints: Sequence[str],
    with_gradient: bool,
) -> Callable[..., Any]:
    """What `convert` returns, for a target; the arguments are as there."""
    static = StaticParameters.of(fun_jax)
    conversion = make_conversion(
        fun_jax,
        polymorphic_shapes=polymorphic_shapes,
        polymorphic_constraints=polymorphic_constraints,
        target=target,
        run=run_differentiable if with_gradient else run_without_gradient,
        constants=Constants(),
    )

    def converted(*args: Any, **kwargs: Any) -> Any:
        if static is not None:
            args, kwargs = static.marked(args, kwargs)
        return conversion.call(args, kwargs)

    name = _name_of(fun_jax)
    converted.__name__ = converted.__qualname__ = f"converted_{name}" if name.isidentifier() else "converted_fun"
    _tf.left_alone_by_autograph(converted)
    converted.__doc__ = _documentation(fun_jax, name)
    # tf.function names the inputs of a graph by it.
    converted.__signature__ = call_signature(fun_jax)  # type: ignore[attr-defined]
    return converted


def _name_of(fun_jax: Callable[..., Any]) -> str:
    return getattr(fun_jax, "__name__", "fun_jax")


def _documentation(fun_jax: Callable[..., Any], name: str) -> str:
    """What `help` says: the signature with its defaults, which are not in that for TensorFlow, and the docstring."""
    try:
        signature = str(inspect.signature(fun_jax))
    except (TypeError, ValueError):
        signature = "(...)"
    docstring = getattr(fun_jax, "__doc__", None) if isinstance(getattr(fun_jax, "__name__", None), str) else None
    first = f"{name}{signature}, converted from JAX by jaxtf.convert."
    return first if not docstring else f"{first}\n\n{inspect.cleandoc(docstring)}"


@dataclass(frozen=True)
class Conversion:
    """One converted function.

    Attributes:
      signatures: What calls look like under the polymorphic shapes.
      function_for: The function exported for a signature, remembered.
      run: How to apply it to flat tensors.
      eager_calls: The eager calls seen before.
    """

    signatures: Signatures
    function_for: Callable[[Signature], ExportedFunction]
    run: Callable[[ExportedFunction, Sequence[tf.Tensor]], list[tf.Tensor]]
    eager_calls: EagerCalls

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Applies the function to pytrees of TensorFlow values."""
        kind = self.eager_calls.kind(args, kwargs)
        if kind is None:
            _refuse_in_transformation(args, kwargs)
            return self._call_unseen(None, args, kwargs)
        key, flat = kind
        seen = self.eager_calls.get(key)
        return self._call_unseen(key, args, kwargs) if seen is None else seen(flat)

    def _call_unseen(self, key: Hashable | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same for whatever it is called with."""
        flat, tree = jax.tree.flatten((args, kwargs))
        signature, flat = self.signatures.of_call(tree, flat)
        function = self.function_for(signature)
        tensors = list(map(as_tensor, flat, function.argument_dtypes))
        if key is not None and all(map(operator.is_, tensors, flat)):
            self.eager_calls.put(key, function)
        results = self.run(function, tensors)
        if not tf.executing_eagerly():
            names = result_names(function.exported.out_names)
            results = [tf.identity(result, name) for result, name in zip(results, names, strict=True)]
        return jax.tree.unflatten(function.exported.out_tree, results)


def _refuse_in_transformation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises an error for a call that is made while JAX traces; not for one by TensorFlow, which passes tensors."""
    if not (tf.executing_eagerly() and _jax.is_transforming()):
        return
    if any(isinstance(leaf, tf.Tensor | tf.Variable) for leaf in jax.tree.leaves((args, kwargs))):
        return
    raise ConversionStateError(
        "convert must be used outside all JAX transformations: a converted function is called while JAX traces "
        "(in jax.jit, jax.vmap, jax.grad, ...)\n"
        "  remedy: call the JAX function itself there; convert what jit, grad or vmap returns"
    )


def make_conversion(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any,
    polymorphic_constraints: Sequence[str],
    target: Target,
    run: Callable[[ExportedFunction, Sequence[tf.Tensor]], list[tf.Tensor]],
    constants: Constants,
) -> Conversion:
    """A conversion.

    Args:
      fun_jax: As in `convert`, like the next two.
      polymorphic_shapes: Likewise.
      polymorphic_constraints: Likewise.
      target: What it is exported for.
      run: How to apply an exported function to flat tensors.
      constants: Where the large arrays go that `fun_jax` closes over.
    """
    if isinstance(polymorphic_constraints, str) or not isinstance(polymorphic_constraints, Iterable):
        raise ConversionOptionError(
            f"polymorphic_constraints must be a list of texts, such as ['a >= b']. Got: {polymorphic_constraints!r:.60}"
        )
    signatures = Signatures(polymorphic_shapes, tuple(polymorphic_constraints))
    jitted = as_jitted(fun_jax)

    def exported_for(signature: Signature) -> ExportedFunction:
        args, kwargs = without_marks(*signatures.specifications(signature.tree, signature.leaves))
        with explained(fun_jax, polymorphic_shapes, args), Progress(f"convert {_name_of(fun_jax)}: export"):
            return export_lifted(jitted, target, constants, args, kwargs)

    eager_calls = EagerCalls(run)
    functions: Cache[Signature, ExportedFunction] = Cache(_SIGNATURES_KEPT, dropped=eager_calls.clear)

    def function_for(signature: Signature) -> ExportedFunction:
        return functions(signature, partial(exported_for, signature))

    return Conversion(signatures, function_for, run, eager_calls)
