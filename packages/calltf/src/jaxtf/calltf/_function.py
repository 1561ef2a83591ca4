"""A TensorFlow function of flat tensors, its traces, and the functions derived from it.

`Function` is what the primitives carry: something that takes a sequence of tensors and gives
`Results`, tensors and the pytree they are the leaves of. It runs at once (`run`), or is traced
(`trace`): once per signature, in a bounded cache that lives as long as the function, which
lives as long as the `call_tf` wrapper or a program that contains it. Functions derived from
it (its vector-Jacobian products, its vectorized forms) are kept the same way (`derived`).

A function belongs to one configuration of JAX, by which it and all that is derived from it are traced. So what it keeps
is right whatever the configuration is when it is asked for.

A call has the containers of its own arguments, and may share traces and derived functions with one whose containers are
equal to these (`kept`), as `jax.jit` has it.

Knows TensorFlow, avals and pytrees; nothing of primitives, lowering or differentiation.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import jax
import numpy as np
import tensorflow as tf
from jax.core import ShapedArray
from jax.tree_util import PyTreeDef

from jaxtf.calltf import _graph
from jaxtf.calltf._captures import captures_text
from jaxtf.calltf._configuration import Configuration
from jaxtf.calltf._conjugates import with_conjugates
from jaxtf.calltf._declared import Declared, known_sizes
from jaxtf.calltf._errors import (
    LIMITATIONS,
    CompilationError,
    DynamicShapeError,
    UnsupportedError,
    VariableWriteError,
)
from jaxtf.calltf._jax import result_types
from jaxtf.calltf._lists import misread_lists
from jaxtf.calltf._replacements import with_replacements
from jaxtf.calltf._sizes import symbolic_sizes
from jaxtf.calltf._symbolic_traced import SymbolicTraced
from jaxtf.calltf._tf import hidden_from_debuggers, is_of_new_variables, outside_of_graphs
from jaxtf.calltf._traced import Signature, Traced
from jaxtf.calltf._transfer import as_tensor, canonical_dtype, jax_dtype, tensorflow_dtype
from jaxtf.serialization.interop import unwrapped

SIGNATURES_KEPT = 128
_FUNCTIONS_KEPT = 64

_Derived = TypeVar("_Derived", bound="Derived")


class Results(NamedTuple):
    """What a TensorFlow function returned: the leaves, and the pytree they belong to."""

    leaves: list[Any]
    tree: PyTreeDef


@dataclass(frozen=True)
class Staging:
    """How a staged call of a function is made; functions derived from it are called in the same way.

    Attributes:
      has_side_effects: Whether a stateful op in its graph is an effect of the call.
      ordered: Whether the call is an effect that keeps its place among others.
      by_name: Whether it stays a call of a TensorFlow function, made by name, and is not compiled here.
    """

    has_side_effects: bool = True
    ordered: bool = False
    by_name: bool = False


class Function:
    """A TensorFlow function of flat tensors; equal only to itself.

    Attributes:
      name: For messages and for printed programs.
      staging: How a staged call is made.
      configuration: The one of JAX that it is traced under.
      declared: The declared results, or None.
      is_compiled: Whether what runs is always the compiled trace.
    """

    is_compiled = False

    def __init__(self, name: str, staging: Staging, configuration: Configuration, declared: Declared | None = None):
        self.name = name
        self.staging = staging
        self.configuration = configuration
        self.declared = declared

    @functools.cached_property  # few functions are traced
    def _trace(self) -> Callable[[Signature, Hashable], Traced]:
        # Keyed also by the shapes of captures, which are known once there is a trace.
        return functools.lru_cache(SIGNATURES_KEPT)(lambda signature, _: self._trace_signature(signature))

    @functools.cached_property
    def _derive(self) -> Callable[..., Derived]:
        return functools.lru_cache(_FUNCTIONS_KEPT)(self._derive_function)

    @property
    def kept(self) -> Function:
        """The function that is traced for this one: itself, or one of an equal call."""
        return self

    def __repr__(self) -> str:
        return self.name

    @property
    def symbol(self) -> str:
        """The name, as part of an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_")

    def call(self, tensors: Sequence[Any]) -> Results:
        """Calls the TensorFlow function, eagerly or while TensorFlow traces."""
        raise NotImplementedError

    def run(self, tensors: Sequence[Any]) -> Results:
        """Calls the function; every result is a dense tensor of canonical dtype, as declared."""
        return self._checked(self.call(tensors))

    def _checked(self, results: Results) -> Results:
        """The results as dense tensors of canonical dtype, as declared."""
        if self.declared is not None:
            self.declared.check_tree(results.tree)
        leaves = [as_tensor(leaf, f"result[{i}]", self.name) for i, leaf in enumerate(results.leaves)]
        if self.declared is not None:
            for index, leaf in enumerate(leaves):
                self.declared.check_leaf(index, leaf)
        return Results(leaves, results.tree)

    def trace(self, avals: Sequence[Any]) -> Traced:
        """The trace for arguments of these shapes and dtypes; made once per signature.

        So for each of the shapes that captured variables of open shape have had.

        Raises:
          DynamicShapeError: The shape of a result is not known, nor declared.
          UnsupportedError, CompilationError: Symbolic shapes, and no compiled form for them.
        """
        signature = tuple((tuple(aval.shape), np.dtype(aval.dtype)) for aval in avals)
        with self.configuration.entered():
            traced = self.kept._trace(signature, None)
            shapes = traced.shapes_now()
            return traced if shapes == traced.capture_shapes else self.kept._trace(signature, shapes)

    def known_results(self, signature: Signature) -> Sequence[ShapedArray] | None:
        """The results for arguments of these shapes and dtypes, where they are known before it is traced."""
        return self.declared.avals if self.declared is not None else None

    def derived(self, kind: Callable[..., _Derived], *details: Hashable) -> _Derived:
        """The function `kind(self, *details)`; made once, and traced once for equal calls."""
        kept = self.kept
        function: Any = kept._derive(kind, *details)
        found: _Derived = function if kept is self else function.of(self)
        return found

    def _trace_signature(self, signature: Signature) -> Traced:
        return self._trace_run(self.run, signature)

    @property
    def is_graph(self) -> bool:
        """Whether to trace it runs none of the user's Python that a call has not run."""
        return False

    def graph(self, signature: Signature) -> Any:
        """A trace as TensorFlow has it, whatever it returns."""
        return self._concrete(_Body(f"call_tf_{self.symbol}", self.run), _specs(signature))

    def _trace_run(
        self, run: Callable[[Sequence[Any]], Results], signature: Signature, element: Traced | None = None
    ) -> Traced:
        """The trace of `run`, one way to compute this function; `element` is what it runs in a loop."""
        specs = _specs(signature)
        body = _Body(f"call_tf_{self.symbol}", run)
        concrete = self._concrete(body, specs)
        if _graph.has_growing_lists(concrete):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.name}: it writes to a TensorArray with dynamic_size=True, "
                "as tf.vectorized_map and tape.jacobian make of loops, and TensorFlow's compiler silently drops "
                "elements written beyond its initial size\n"
                "  remedy: create the TensorArray with the size that it needs, without dynamic_size, use tf.map_fn, or "
                f"call the function outside of staged contexts; see {LIMITATIONS}"
            )
        if misread := misread_lists(concrete):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.name}: {', '.join(misread)} would have other elements of a "
                "list of tensors than when it is not compiled, because TensorFlow's compiler keeps as many as there is "
                "room for\n"
                "  remedy: use a tf.TensorArray of the size that it needs, or call the function outside of staged "
                f"contexts; see {LIMITATIONS}"
            )
        found, rewritten = concrete, None if self.staging.by_name else with_replacements(concrete)
        if rewritten is not None:
            concrete = self._written(body, specs, rewritten)
        assert body.tree is not None, "TensorFlow traced the function without calling it"
        if symbolic_sizes([shape for shape, _ in signature]):
            return replace(SymbolicTraced.of(self, concrete, signature, body.tree), unreplaced=found)
        traced = Traced(self, concrete, specs, body.tree, (), element, unreplaced=found)
        traced = replace(traced, capture_shapes=traced.shapes_now())
        return replace(traced, avals=self._result_avals(traced))

    def _concrete(self, body: _Body, specs: Sequence[Any]) -> Any:
        concrete = self._concrete_as_is(body, specs)
        run = with_conjugates(concrete)
        if run is not None and not (self.staging.by_name and _graph.stateful_ops(concrete)):  # stays whatever it does
            concrete = self._written(body, specs, run)
        return concrete

    def _written(self, body: _Body, specs: Sequence[Any], run: Callable[[Sequence[Any]], list[Any]]) -> Any:
        with hidden_from_debuggers():  # they have added to the trace that is written again
            return self._concrete_as_is(_Body(body.__name__, lambda tensors: Results(run(tensors), body.tree)), specs)

    def _concrete_as_is(self, body: _Body, specs: Sequence[Any]) -> Any:
        # Above any graph being built: a trace inside somebody's tf.function is its own.
        with outside_of_graphs():
            # What stays a call by name is whatever it is: the program around it may compile it or not.
            compiled = tf.function(body, autograph=False, jit_compile=None if self.staging.by_name else True)
            try:
                concrete = compiled.get_concrete_function(*specs)
            except Exception as error:
                if is_of_new_variables(error):
                    raise VariableWriteError(
                        f"call_tf: {self.name} creates a tf.Variable, which is not possible in a JAX staging context "
                        "(jax.jit, lax.scan, ...) or under jax.vmap\n"
                        "  remedy: create variables, and layers, which have some, before the call, take tensors for "
                        "what is an intermediate value (tf.convert_to_tensor), or call the function outside of staged "
                        f"contexts; see {LIMITATIONS}"
                    ) from error
                error.add_note(
                    f"while call_tf traced {self.name} to a TensorFlow graph, because it is called in a JAX "
                    "staging context (jax.jit, lax.scan, ...) or under jax.vmap; there it meets symbolic tensors"
                )
                raise
        if strangers := [each for each in concrete.captured_inputs if tf.is_symbolic_tensor(each)]:
            raise UnsupportedError(
                f"call_tf: {self.name} captures {captures_text(strangers)} of a TensorFlow graph that is being built "
                "around it (of a tf.function), and a program of JAX has no values of that\n"
                "  remedy: pass it as an argument"
            )
        if concrete.graph.deferred_external_captures:
            raise UnsupportedError(
                f"call_tf: {self.name} captures by capture_call_time_value what TensorFlow asks for at each call, and "
                "a program of JAX would have one value of it for ever\n"
                "  remedy: pass it as an argument, or call the function outside of staged contexts and jax.vmap"
            )
        return concrete

    def _result_avals(self, traced: Traced) -> tuple[ShapedArray, ...]:
        if self.declared is not None:
            for index, aval in enumerate(self.declared.avals):
                if None in known_sizes(aval.shape):
                    raise self.declared.mismatch(index, "of constant shape, as the arguments are,")
            return self.declared.avals
        outputs = traced.concrete.outputs
        inferred = [tensor.shape for tensor in outputs]
        shapes = [tuple(shape) if shape.is_fully_defined() else None for shape in inferred]
        if None in shapes:  # the compiler infers more than TensorFlow: a SavedModel's function, a converted one
            with contextlib.suppress(CompilationError):
                shapes = result_types(traced.hlo("CPU"))
        if None in shapes:
            raise DynamicShapeError(
                "call_tf cannot call functions whose output has dynamic shape. "
                f"Found output shapes: {[str(shape) for shape in inferred]} of {self.name}. "
                "Consider using the `output_shape_dtype` argument to call_tf.\n"
                f"  why: in a JAX staging context (jax.jit, lax.scan, ...) shapes are static; see {LIMITATIONS}"
            )
        dtypes = [canonical_dtype(jax_dtype(tensor.dtype)) for tensor in outputs]
        return tuple(
            ShapedArray(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True) if shape is not None
        )

    def _derive_function(self, kind: Callable[..., _Derived], *details: Hashable) -> _Derived:
        return kind(self, *details)


class Derived(Function):
    """A function derived from another one, which it calls."""

    _kept: Function | None = None

    def __init__(self, name: str, function: Function):
        super().__init__(name, function.staging, function.configuration)
        self._function = function

    @property
    def kept(self) -> Function:
        """The function that is traced for this one."""
        return self._kept or self

    def of(self, function: Function) -> Self:
        """This function, calling another one of an equal call."""
        found = copy.copy(self)
        found._function, found._kept = function, self
        return found


def _specs(signature: Signature) -> tuple[Any, ...]:
    return tuple(tf.TensorSpec(known_sizes(shape), tensorflow_dtype(dtype)) for shape, dtype in signature)


class UserFunction(Function):
    """The callable that the user gave to `call_tf`, for arguments of one structure.

    Args:
      callable_tf: The callable.
      in_tree: The structure, with the metadata of these arguments.
      staging: How a staged call is made.
      declared: The declared results, or None.
      configuration: That of JAX.
      kept_for: What gives the function that is traced for a structure and a configuration; None for one of itself.
    """

    def __init__(
        self,
        callable_tf: Callable[..., Any],
        in_tree: PyTreeDef,
        staging: Staging,
        declared: Declared | None,
        configuration: Configuration,
        *,
        kept_for: Callable[[PyTreeDef, Configuration], UserFunction] | None = None,
    ):
        super().__init__(getattr(callable_tf, "__name__", type(callable_tf).__name__), staging, configuration, declared)
        self._callable = callable_tf
        self._in_tree = in_tree
        self._kept_for = kept_for

    @property
    def kept(self) -> Function:
        """The function that is traced for this one: of the first call with arguments of an equal structure.

        Metadata that cannot be hashed or compared, as arrays, are of this call alone.
        """
        if self._kept_for is None:
            return self
        try:
            return self._kept_for(self._in_tree, self.configuration)
        except (TypeError, ValueError):
            return self

    @property
    def is_graph(self) -> bool:
        """Whether it is a `tf.function`, or of a SavedModel, and does not run as Python (`tf.config`)."""
        types = tf.types.experimental
        is_one = isinstance(self._callable, types.GenericFunction | types.ConcreteFunction)
        return is_one and not tf.config.functions_run_eagerly()

    def call(self, tensors: Sequence[Any]) -> Results:
        """Calls it with tensors in the structure of the arguments."""
        args, kwargs = self._in_tree.unflatten(tensors)
        return _flat(self._callable(*args, **kwargs))

    def checked(self, value: Any) -> Results:
        """What the callable returned, as `run` gives it."""
        return self._checked(_flat(value))


def _flat(value: Any) -> Results:
    if isinstance(value, tf.Operation):  # what a graph function without results returns
        value = ()
    return Results(*unwrapped(*jax.tree.flatten(value)))


class _Body:
    """The body of one tf.function: remembers the structure of what it returned when traced."""

    def __init__(self, name: str, run: Callable[[Sequence[Any]], Results]):
        self._run = run
        self.tree: PyTreeDef | None = None
        self.__name__ = name

    def __call__(self, *tensors: Any) -> list[Any]:
        leaves, self.tree = self._run(tensors)
        return leaves
