"""One trace of a TensorFlow function: what its results are, what it captures, and its HLO for a platform.

For symbolic shapes a trace is compiled at samples of them, and what its results are is found there.
Knows TensorFlow, avals and pytrees; nothing of primitives, lowering or differentiation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from jax.core import ShapedArray
from jax.tree_util import PyTreeDef

from jaxtf.calltf import _graph
from jaxtf.calltf._declared import Declared, known_sizes, shape_text
from jaxtf.calltf._errors import (
    LIMITATIONS,
    CompilationError,
    DeclarationError,
    DynamicShapeError,
    UnsupportedError,
)
from jaxtf.calltf._jax import custom_call_targets, result_types, short_text
from jaxtf.calltf._notes import without_libraries
from jaxtf.calltf._size_uses import LARGEST_THRESHOLD, refuse_what_has_no_formula
from jaxtf.calltf._sizes import Formula, Sample, ones, samples, symbolic_sizes
from jaxtf.calltf._tf import compiled_to_hlo, outside_of_graphs
from jaxtf.calltf._transfer import canonical_dtype, jax_dtype, tensorflow_dtype
from jaxtf.serialization.interop import CalledFunction

if TYPE_CHECKING:
    from jaxtf.calltf._function import Function

Signature = tuple[tuple[tuple[Any, ...], np.dtype[Any]], ...]
"""Shape and dtype of each argument; sizes may be symbolic."""

# Custom calls that are operations of XLA: its compilers for CPU, GPU and TPU know what they mean.
_OF_EVERY_COMPILER = ("Eigh", "ProductOfElementaryHouseholderReflectors", "Qr", "Sharding")


@dataclass(frozen=True, eq=False)
class Traced:
    """A function traced for one signature; equal only to itself.

    It can be called: JAX's caches, which hold parameters of primitives, hold weakly those that can (JAX 0.10.2 and
    0.12.0.1), so that the trace and what it captures go with the program.

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

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results of the trace, compiled by TensorFlow, for these arguments."""
        return list(self.concrete(*tensors))

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

    def captured_values(self) -> list[np.ndarray[Any, Any]]:
        """The values of the captures, now.

        Raises:
          CompilationError: A captured resource that is not a variable (a hash table, an iterator).
        """
        if any(value.dtype == tf.resource for value in self.captured):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name}: it captures a resource that is not a "
                "variable (a table, an iterator, ...)\n"
                "  remedy: call it outside of JAX staging contexts, or pass what it needs as arguments"
            )
        with outside_of_graphs():
            return [np.asarray(value.numpy()) for value in self.captured]

    def hlo(self, platform: str) -> bytes:
        """The serialized HLO module for a platform of TensorFlow: `CPU`, `GPU`, `TPU`.

        Its parameters are the arguments, then the captures. Compiled once per platform.

        Raises:
          CompilationError: TensorFlow cannot compile the function for the platform.
        """
        return self._hlo_of_each((self.specs,), platform)[0]

    def _hlo_of_each(self, signatures: Sequence[Sequence[Any]], platform: str) -> list[bytes]:
        if platform not in self._compiled:
            compile_for = self._compile if self._compiles_for(platform) else self._compile_for_any
            self._compiled[platform] = [compile_for(platform, specs) for specs in signatures]
        return self._compiled[platform]

    def _compiles_for(self, platform: str) -> bool:
        """Whether TensorFlow can compile for the platform in this process.

        For a TPU only where there is one, and what captures variables only where there is a device to put these on.
        """
        needs_device = platform == "TPU" or bool(self.concrete.graph.variables)
        return not needs_device or bool(tf.config.list_logical_devices(platform))

    def _compile_for_any(self, platform: str, specs: Sequence[Any]) -> bytes:
        """What TensorFlow compiles for a CPU: HLO means the same everywhere, but for calls of what a CPU alone has."""
        hlo = self._compile("CPU", specs)
        if calls := [target for target in custom_call_targets(hlo) if target not in _OF_EVERY_COMPILER]:
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name} for {platform}: TensorFlow does so only "
                f"where there is such a device, and what it compiles for a CPU calls {', '.join(calls)}, of the CPU "
                "alone\n  remedy: lower it on a machine with such a device and TensorFlow for it, or leave that "
                "operation to JAX"
            )
        return hlo

    def _compile(self, platform: str, specs: Sequence[Any]) -> bytes:
        with outside_of_graphs():
            try:
                return compiled_to_hlo(self.concrete, specs, platform)
            except Exception as error:  # TensorFlow raises ValueError, TypeError and its own OpErrors here
                raise CompilationError(
                    f"Error compiling TensorFlow function {self.function.name} for {platform} (see below for the "
                    "caught exception).\ncall_tf can be used in a staged context (under jax.jit, lax.scan, etc.) "
                    "only with compilable functions with static output shapes.\n"
                    "  remedy: call it outside of staged contexts, where it runs eagerly, or make "
                    f"tf.function(function, jit_compile=True) work; see {LIMITATIONS}\n\n"
                    f"Caught TensorFlow exception: {without_libraries(str(error))}"
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
        refuse_what_has_no_formula(concrete, function)
        sizes = symbolic_sizes([shape for shape, _ in signature])
        mentioned = _graph.largest_number(concrete)
        if mentioned > LARGEST_THRESHOLD:
            raise UnsupportedError(
                f"call_tf: {function} is called with symbolic sizes, and integers in its graph are so large that sizes "
                f"beyond their product, {mentioned}, cannot be tried\n"
                "  remedy: use constant shapes, or pass them as arguments"
            )
        chosen = tuple(samples(sizes, mentioned))
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
        traced = replace(traced, avals=tuple(avals))
        traced._check_at_ones()
        return traced

    def _check_at_ones(self) -> None:
        """Compares the shapes of the results where every variable is 1, which is not among the samples."""
        sample = ones(self.sizes)
        if sample is None:
            return
        shapes = result_types(self._compile("CPU", self._specs_at(sample)))
        for index, (aval, shape) in enumerate(zip(self.avals, shapes, strict=True)):
            expected = sample.shape(aval.shape)
            if shape != expected:
                raise DynamicShapeError(
                    "call_tf cannot call functions whose output has dynamic shape. "
                    f"result[{index}] of {self.function} has shape {shape_text(aval.shape)} for the samples, which is "
                    f"{list(expected)} for {sample}, and there it is {list(shape) if shape else 'unknown'}\n"
                    f"  remedy: use constant shapes, or constraints that leave small sizes out; see {LIMITATIONS}"
                )

    def hlo(self, platform: str) -> bytes:
        """The HLO module at the first sample."""
        return self.hlos(platform)[0]

    def hlos(self, platform: str) -> list[bytes]:
        """The HLO module at each sample."""
        return self._hlo_of_each([self._specs_at(sample) for sample in self.samples], platform)

    def _specs_at(self, sample: Sample) -> list[Any]:
        pairs = zip(self.signature, self.specs, strict=True)
        return [tf.TensorSpec(sample.shape(shape), spec.dtype) for (shape, _), spec in pairs]

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
                f"output_shape_dtype declares result[{index}] of {self.function} to be {short_text(aval)}, and no "
                f"argument of the call has the dimension variable {error}\n"
                "  remedy: declare sizes by those of the arguments, like x.shape[0]"
            ) from error
        if expected != tuple(shape):
            raise declared.mismatch(
                index, f"{aval.dtype.name}{shape_text(shape)} for {sample}, where {shape_text(expected)} was declared,"
            )
