"""`call_tf`: a TensorFlow function as a JAX function.

The wrapper flattens the arguments, makes arrays of them, and hands them to `invoke`, which
runs TensorFlow now or stages the call. It keeps one `Function` for each structure of the
arguments, and with it all traces, for as long as the wrapper lives. That one is found by equality, and runs no call
itself: each has containers with its own metadata.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, overload

import jax
from jax.tree_util import PyTreeDef

from jaxtf.calltf import _batching, _gradient, _loops, _lowering  # noqa: F401  # the rules of the primitives
from jaxtf.calltf._configuration import Configuration
from jaxtf.calltf._declared import Declared
from jaxtf.calltf._eager import plain_array, plain_tensors
from jaxtf.calltf._errors import ArgumentTypeError, FunctionTypeError, UnsupportedError
from jaxtf.calltf._function import Staging, UserFunction
from jaxtf.calltf._jax import evaluating, outside_of_traces
from jaxtf.calltf._notes import note_causes
from jaxtf.calltf._primitive import invoke
from jaxtf.calltf._transfer import as_array, to_array
from jaxtf.serialization.interop import plain_containers, unwrapped

_STRUCTURES_KEPT = 64
_OF_JAX = (type(jax.jit(abs)), jax.custom_jvp, jax.custom_vjp)
_SIGNATURE = inspect.signature(lambda *args, **kwargs: None)


class _Unspecified:
    """The default of `output_shape_dtype`: None is a result structure, an empty one."""

    def __repr__(self) -> str:
        return "<unspecified>"


UNSPECIFIED: Final = _Unspecified()


# What a call gives is known to type checkers where it is declared.
@overload
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    *,
    output_shape_dtype: jax.ShapeDtypeStruct,
    call_tf_graph: bool = False,
) -> Callable[..., jax.Array]: ...
@overload
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    *,
    output_shape_dtype: list[jax.ShapeDtypeStruct],
    call_tf_graph: bool = False,
) -> Callable[..., list[jax.Array]]: ...
@overload
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    *,
    output_shape_dtype: tuple[jax.ShapeDtypeStruct, ...],
    call_tf_graph: bool = False,
) -> Callable[..., tuple[jax.Array, ...]]: ...
@overload
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    *,
    output_shape_dtype: dict[str, jax.ShapeDtypeStruct],
    call_tf_graph: bool = False,
) -> Callable[..., dict[str, jax.Array]]: ...
@overload
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = UNSPECIFIED,
    call_tf_graph: bool = False,
) -> Callable[..., Any]: ...
def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = UNSPECIFIED,
    call_tf_graph: bool = False,
) -> Callable[..., Any]:
    """Makes a JAX function of a TensorFlow function: eager, under `jax.jit`, differentiable.

    Outside of JAX's staging contexts, also under `jax.grad`, the function runs in TensorFlow's
    eager mode and may do all that is possible there. Inside of them (`jax.jit`,
    `jax.lax.scan`, `cond`, `while_loop`, ...) it is traced once for each signature, compiled by
    TensorFlow, and embedded in JAX's program; there it must be compilable
    (`tf.function(callable_tf, jit_compile=True)`), with static output shapes, and must not write
    to variables; the same holds under `jax.vmap`. Forward and reverse derivatives are TensorFlow's,
    custom gradients included.

    With JAX's 64-bit types off, 64-bit arguments and results become 32-bit ones.

    Args:
      callable_tf: Takes tensors, or pytrees of them, and returns a pytree of results. Under
        `jit` it is traced as `tf.function(callable_tf, autograph=False)`; decorate it by
        `tf.function` to use Python's `if` and `while` on tensors.
      has_side_effects: Whether a staged call of a function whose traced graph holds a stateful
        op (like `tf.random.uniform`) is kept by JAX though nobody uses its results. A call of
        a stateless function never has an effect, nor its cost.
      ordered: Whether staged calls keep their order; needs `call_tf_graph` there.
      output_shape_dtype: The results, declared: a pytree of objects with `.shape` and `.dtype`,
        like `jax.ShapeDtypeStruct` and `tf.TensorSpec`. Needed in staged contexts when TensorFlow cannot infer
        the shapes; checked wherever it is given. Sizes may be symbolic, of the arguments' variables.
      call_tf_graph: Whether a staged call stays a call of a TensorFlow function, by name, in a program that
        `jaxtf.convert` makes a TensorFlow function of; JAX itself cannot run it.

    Returns:
      A function of arrays, numbers or tensors, or pytrees of them, that returns JAX arrays in
      the structure of `callable_tf`'s results.

    Raises:
      FunctionTypeError: Not callable, or a function of JAX.
      TypeError: An `output_shape_dtype` without shapes and dtypes.
      DeclarationError: One with a size that is negative or not known.

    The function returned raises:
      TypeError: An argument is not an array.
      ValueError: A result is not convertible to JAX, or differs from the declared one. In a
        staged context also: not compilable, dynamic output shapes, variables written.
      NotImplementedError: Symbolic shapes that the compiled function has no common form for; `jax.vmap` with
        `spmd_axis_name`; `ordered` or `call_tf_graph` where they cannot be.

    >>> import jax, tensorflow as tf
    >>> from jaxtf.calltf import call_tf
    >>> jax.jit(jax.value_and_grad(call_tf(lambda x: x**3)))(2.0)
    (Array(8., dtype=float32), Array(12., dtype=float32))
    """
    _refuse_what_is_not_of_tensorflow(callable_tf)
    declared = None if output_shape_dtype is UNSPECIFIED else Declared.of(output_shape_dtype)
    staging = Staging(has_side_effects, ordered, by_name=call_tf_graph)

    @functools.lru_cache(_STRUCTURES_KEPT)
    def kept_for(in_tree: PyTreeDef, configuration: Configuration) -> UserFunction:
        return UserFunction(callable_tf, in_tree, staging, declared, configuration)

    def function_for(in_tree: PyTreeDef) -> UserFunction:
        return UserFunction(callable_tf, in_tree, staging, declared, Configuration.now(), kept_for=kept_for)

    @functools.wraps(callable_tf, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if ordered and not call_tf_graph and not evaluating():
            raise UnsupportedError(
                "call_tf: ordered=True in a JAX staging context (jax.jit, lax.scan, ...) needs call_tf_graph=True: a "
                "function compiled into the program has no effects to keep in order\n"
                "  remedy: add call_tf_graph=True and convert the function, leave ordered=True out, or call it outside "
                "of staged contexts"
            )
        tensors = None if kwargs else plain_tensors(args)
        if tensors is not None:
            try:
                with outside_of_traces():
                    value = callable_tf(*tensors)
            except Exception as error:
                note_causes(error)  # no argument was made narrower
                raise
            array = plain_array(value) if declared is None else None
            if array is not None:
                return array
            results = function_for(jax.tree.structure((args, kwargs))).checked(value)
            return jax.tree.unflatten(results.tree, map(to_array, results.leaves))
        leaves, in_tree = unwrapped(*jax.tree.flatten((args, kwargs)))
        try:
            arrays = [as_array(leaf, "an argument") for leaf in leaves]
        except ArgumentTypeError:
            _refuse_by_address(args, kwargs)
            raise
        try:
            results = invoke(function_for(in_tree), arrays)
        except Exception as error:
            note_causes(error, _addressed(args, kwargs))
            raise
        return jax.tree.unflatten(results.tree, results.leaves)

    # Not the signature of callable_tf: its defaults (name=None, mode="fast") are not arrays, and
    # jax.custom_vjp would fill them in. Given, because JAX asks for it whenever it differentiates.
    del call.__wrapped__
    call.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
    return call


def _refuse_what_is_not_of_tensorflow(callable_tf: Any) -> None:
    """Raises an error for what is not callable, or a function of JAX: the result of `jax.jit`, one of `jax.numpy`."""
    if not callable(callable_tf):
        raise FunctionTypeError(f"call_tf: callable_tf must be callable, found {callable_tf!r}")
    if isinstance(callable_tf, _OF_JAX) or str(getattr(callable_tf, "__module__", "")).partition(".")[0] == "jax":
        name = getattr(callable_tf, "__name__", type(callable_tf).__name__)
        raise FunctionTypeError(
            f"call_tf needs a TensorFlow function, found the JAX function '{name}'\n"
            "  remedy: JAX calls it as it is; to call it from TensorFlow, use jaxtf.convert.convert"
        )


def _refuse_by_address(args: Any, kwargs: Any) -> None:
    """Raises the error of the first bad argument under its address, like args[0]['x']."""
    for address, leaf in _addressed(args, kwargs):
        as_array(leaf, address)


def _addressed(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of the arguments, each with its address."""
    for prefix, values in (("args", args), ("kwargs", kwargs)):
        for path, leaf in jax.tree_util.tree_leaves_with_path(plain_containers(values)):
            yield prefix + jax.tree_util.keystr(path), leaf
