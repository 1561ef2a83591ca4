"""A TensorFlow function of flat tensors, its traces, and the functions derived from it.

`Function` is what the primitives carry: something that takes a sequence of tensors and gives
`Results`, tensors and the pytree they are the leaves of. It runs at once (`run`), or is traced
(`trace`): once per signature, in a bounded cache that lives as long as the function, which
lives as long as the `call_tf` wrapper or a program that contains it. Functions derived from
it (its vector-Jacobian products, its vectorized forms) are kept the same way (`derived`).

`Traced` is one trace: the avals and the tree of its results, the stateful ops found in its
graph, the values it captures, and its HLO for a platform.

Knows TensorFlow, avals and pytrees; nothing of primitives, lowering or differentiation.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import tensorflow as tf
from jax.core import ShapedArray
from jax.tree_util import PyTreeDef

from jaxtf.calltf import _graph
from jaxtf.calltf._declared import Declared, known_sizes, shape_text
from jaxtf.calltf._errors import CompilationError, DeclarationError, DynamicShapeError, UnsupportedError
from jaxtf.calltf._jax import result_types
from jaxtf.calltf._sizes import Formula, Sample, samples, symbolic_sizes
from jaxtf.calltf._tf import compiled_to_hlo, outside_of_graphs, with_captures_as_constants
from jaxtf.calltf._transfer import as_tensor, canonical_dtype, jax_dtype, tensorflow_dtype
from jaxtf.serialization import CalledFunction

_SIGNATURES_KEPT = 128
_FUNCTIONS_KEPT = 64

LIMITATIONS = "jaxtf-calltf guide, docs/calltf.md, section 'Limitations'"

_Derived = TypeVar("_Derived", bound="Function")
Signature = tuple[tuple[tuple[Any, ...], np.dtype[Any]], ...]


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
      declared: The declared results, or None.
    """

    def __init__(self, name: str, staging: Staging, declared: Declared | None = None):
        self.name = name
        self.staging = staging
        self.declared = declared
        self._trace = functools.lru_cache(_SIGNATURES_KEPT)(self._trace_signature)
        self._derive = functools.lru_cache(_FUNCTIONS_KEPT)(self._derive_function)

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

        Raises:
          DynamicShapeError: The shape of a result is not known, nor declared.
          UnsupportedError, CompilationError: Symbolic shapes, and no compiled form for them.
        """
        signature = tuple((tuple(aval.shape), np.dtype(aval.dtype)) for aval in avals)
        # Canonical dtypes of results, and nothing else in a trace, depend on the flag.
        return self._trace(signature, bool(jax.config.jax_enable_x64))

    def derived(self, kind: Callable[..., _Derived], *details: Hashable) -> _Derived:
        """The function `kind(self, *details)`; made once."""
        function: _Derived = self._derive(kind, *details)
        return function

    def _trace_signature(self, signature: Signature, x64: bool) -> Traced:
        return self._trace_run(self.run, signature)

    def _trace_run(self, run: Callable[[Sequence[Any]], Results], signature: Signature) -> Traced:
        """The trace of `run`, one way to compute this function."""
        specs = tuple(tf.TensorSpec(known_sizes(shape), tensorflow_dtype(dtype)) for shape, dtype in signature)
        body = _Body(f"call_tf_{self.symbol}", run)
        # Above any graph being built: a trace inside somebody's tf.function stands for itself.
        with outside_of_graphs():
            compiled = tf.function(body, autograph=False, jit_compile=True)
            try:
                concrete = compiled.get_concrete_function(*specs)
            except Exception as error:
                error.add_note(
                    f"while call_tf traced {self.name} to a TensorFlow graph, because it is called in a JAX "
                    "staging context (jax.jit, lax.scan, ...) or under jax.vmap; there it meets symbolic tensors"
                )
                raise
        assert body.tree is not None, "TensorFlow traced the function without calling it"
        if symbolic_sizes([shape for shape, _ in signature]):
            return SymbolicTraced.of(self, concrete, signature, body.tree)
        traced = Traced(self, concrete, specs, body.tree, ())
        return replace(traced, avals=self._result_avals(traced))

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


class UserFunction(Function):
    """The callable that the user gave to `call_tf`, for arguments of one structure."""

    def __init__(
        self, callable_tf: Callable[..., Any], in_tree: PyTreeDef, staging: Staging, declared: Declared | None
    ):
        super().__init__(getattr(callable_tf, "__name__", type(callable_tf).__name__), staging, declared)
        self._callable = callable_tf
        self._in_tree = in_tree

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
    return Results(*jax.tree.flatten(value))


class _Body:
    """The body of one tf.function: remembers the structure of what it returned when traced."""

    def __init__(self, name: str, run: Callable[[Sequence[Any]], Results]):
        self._run = run
        self.tree: PyTreeDef | None = None
        self.__name__ = name

    def __call__(self, *tensors: Any) -> list[Any]:
        leaves, self.tree = self._run(tensors)
        return leaves


@dataclass(frozen=True, eq=False)
class Traced:
    """A function traced for one signature; equal only to itself.

    Attributes:
      function: What was traced.
      concrete: The trace: TensorFlow's concrete function.
      specs: The shapes and dtypes of the arguments.
      tree: The pytree of the results.
      avals: The shapes and dtypes of the results, known or declared.
    """

    function: Function
    concrete: Any
    specs: tuple[Any, ...]
    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    _compiled: dict[str, list[bytes]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.function.name

    @functools.cached_property
    def stateful_ops(self) -> frozenset[str]:
        """Types of the ops in the graph, and in the functions it calls, that do more than compute."""
        return _graph.stateful_ops(self.concrete)

    @property
    def has_effect(self) -> bool:
        """Whether a call must neither be dropped nor repeated."""
        return self.function.staging.has_side_effects and bool(self.stateful_ops)

    @functools.cached_property
    def called_function(self) -> CalledFunction:
        """For the exporter: the function that a call by name calls."""
        return CalledFunction(self.concrete.name.decode(), self.concrete)

    @functools.cached_property
    def captured(self) -> list[Any]:
        """The variables and tensors that the graph captures, in the order of HLO's parameters."""
        variables = {id(variable.handle): variable for variable in self.concrete.graph.variables}
        return [variables.get(id(captured), captured) for captured in self.concrete.captured_inputs]

    def captures_within(self, platform: str) -> bool:
        """Whether the captures are constants of the HLO for this platform, and not parameters.

        TensorFlow compiles a variable only where it has a device to put it on.
        """
        return bool(self.concrete.graph.variables) and not tf.config.list_logical_devices(platform)

    def captured_values(self, platform: str) -> list[np.ndarray[Any, Any]]:
        """The values now of the captures that are parameters of the HLO for this platform.

        Raises:
          CompilationError: A captured resource that is not a variable (a hash table, an iterator).
        """
        if any(value.dtype == tf.resource for value in self.captured):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name}: it captures a resource that is not a "
                "variable (a table, an iterator, ...)\n"
                "  remedy: call it outside of JAX staging contexts, or pass what it needs as arguments"
            )
        if self.captures_within(platform):
            return []
        with outside_of_graphs():
            return [np.asarray(value.numpy()) for value in self.captured]

    def hlo(self, platform: str) -> bytes:
        """The serialized HLO module for a platform of TensorFlow: `CPU`, `GPU`, `TPU`.

        Its parameters are the arguments, then the captures, unless these are within. Compiled once per platform, or
        each time if they are: the values are those of now.

        Raises:
          CompilationError: TensorFlow cannot compile the function for the platform.
        """
        return self._hlo_of_each((self.specs,), platform)[0]

    def _hlo_of_each(self, signatures: Sequence[Sequence[Any]], platform: str) -> list[bytes]:
        if platform in self._compiled:
            return self._compiled[platform]
        concrete, within = self.concrete, self.captures_within(platform)
        if within:
            with outside_of_graphs():
                concrete = with_captures_as_constants(concrete)
        compiled = [self._compile(concrete, platform, specs) for specs in signatures]
        if not within:
            self._compiled[platform] = compiled
        return compiled

    def _compile(self, concrete: Any, platform: str, specs: Sequence[Any]) -> bytes:
        with outside_of_graphs():
            try:
                return compiled_to_hlo(concrete, specs, platform)
            except Exception as error:  # TensorFlow raises ValueError, TypeError and its own OpErrors here
                raise CompilationError(
                    f"Error compiling TensorFlow function {self.function.name} for {platform} (see below for the "
                    "caught exception).\ncall_tf can be used in a staged context (under jax.jit, lax.scan, etc.) "
                    "only with compilable functions with static output shapes.\n"
                    "  remedy: call it outside of staged contexts, where it runs eagerly, or make "
                    f"tf.function(function, jit_compile=True) work; see {LIMITATIONS}\n\n"
                    f"Caught TensorFlow exception: {error}"
                ) from error


@dataclass(frozen=True, eq=False)
class SymbolicTraced(Traced):
    """A function traced for symbolic shapes: compiled at samples of them.

    Attributes:
      sizes: The symbolic sizes that the others are formulas of.
      samples: Where the function is compiled.
      signature: Of the arguments, symbolic.
    """

    sizes: tuple[Any, ...] = ()
    samples: tuple[Sample, ...] = ()
    signature: Signature = ()

    @classmethod
    def of(cls, function: Function, concrete: Any, signature: Signature, tree: PyTreeDef) -> SymbolicTraced:
        """The trace, with the shapes of its results as declared, or else as found at the samples.

        Raises:
          DeclarationError: A result has another size than declared.
          DynamicShapeError: A size of a result is no formula of the symbolic sizes.
          UnsupportedError: The constraints allow too few sizes.
          CompilationError: At one of the samples.
        """
        sizes = symbolic_sizes([shape for shape, _ in signature])
        chosen = tuple(samples(sizes, _graph.largest_number(concrete)))
        shapes = tuple(shape for shape, _ in signature)
        if not chosen:
            raise UnsupportedError(
                f"call_tf: {function} is called with shapes {', '.join(map(str, shapes))}, and their constraints allow "
                "too few sizes to find out how its results depend on them\n  remedy: use constant shapes"
            )
        specs = tuple(tf.TensorSpec(known_sizes(shape), tensorflow_dtype(dtype)) for shape, dtype in signature)
        traced = cls(function, concrete, specs, tree, (), sizes=sizes, samples=chosen, signature=signature)
        found = [result_types(hlo) for hlo in traced.hlos("CPU")]
        avals = [traced._result_aval(index, [shapes[index] for shapes in found]) for index in range(len(found[0]))]
        return replace(traced, avals=tuple(avals))

    def hlo(self, platform: str) -> bytes:
        """The HLO module at the first sample."""
        return self.hlos(platform)[0]

    def hlos(self, platform: str) -> list[bytes]:
        """The HLO module at each sample."""
        pairs = list(zip(self.signature, self.specs, strict=True))
        signatures = [
            [tf.TensorSpec(sample.shape(shape), spec.dtype) for (shape, _), spec in pairs] for sample in self.samples
        ]
        return self._hlo_of_each(signatures, platform)

    def _result_aval(self, index: int, found: Sequence[Sequence[int] | None]) -> ShapedArray:
        dtype = canonical_dtype(jax_dtype(self.concrete.outputs[index].dtype))
        declared = self.function.declared
        shapes = [shape for shape in found if shape is not None]
        formulas: list[Formula | None] = [None]
        if len(shapes) == len(found) and len(set(map(len, shapes))) == 1:
            if declared is not None:
                for sample, shape in zip(self.samples, shapes, strict=True):
                    self._check(declared, index, sample, shape)
                return declared.avals[index]
            formulas = [Formula.fitted(column, self.samples) for column in zip(*shapes, strict=True)]
        if None in formulas:
            seen = [f"{list(s) if s else 'unknown'} for {at}" for s, at in zip(found, self.samples, strict=True)]
            raise DynamicShapeError(
                f"call_tf cannot call functions whose output has dynamic shape. result[{index}] of "
                f"{self.function} is no formula of the symbolic sizes {', '.join(map(str, self.sizes))} that call_tf "
                f"knows: {', '.join(seen[:3])}. Consider using the `output_shape_dtype` argument to call_tf.\n"
                f"  remedy: use constant shapes, or have results whose sizes are polynomials; see {LIMITATIONS}"
            )
        return ShapedArray(tuple(formula.of(self.sizes) for formula in formulas if formula), dtype)

    def _check(self, declared: Declared, index: int, sample: Sample, shape: Sequence[int]) -> None:
        aval = declared.avals[index]
        try:
            expected = sample.shape(aval.shape)
        except KeyError as error:
            raise DeclarationError(
                f"output_shape_dtype declares result[{index}] of {self.function} to be {aval.str_short()}, and no "
                f"argument of the call has the dimension variable {error}\n"
                "  remedy: declare sizes by those of the arguments, like x.shape[0]"
            ) from error
        if expected != tuple(shape):
            raise declared.mismatch(
                index, f"{aval.dtype.name}{shape_text(shape)} for {sample}, where {shape_text(expected)} was declared,"
            )
