"""One trace of a TensorFlow function: what its results are, what it captures, and its HLO for a platform.

For symbolic shapes a trace is interpreted with them (`_interpreter`), and compiled at samples of them.
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
from jaxtf.calltf._declared import known_sizes
from jaxtf.calltf._errors import (
    LIMITATIONS,
    CompilationError,
    DeclarationError,
    UnsupportedError,
)
from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import custom_call_targets, dimension_variables, is_symbolic, short_text
from jaxtf.calltf._notes import without_libraries
from jaxtf.calltf._operations import RULES
from jaxtf.calltf._sizes import Numbers, Sample, first_sample, samples, symbolic_sizes
from jaxtf.calltf._symbolic_values import same_shape
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
        self._require_values()
        with outside_of_graphs():
            return [np.asarray(value.numpy()) for value in self.captured]

    def _require_values(self) -> None:
        if any(value.dtype == tf.resource for value in self.captured):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name}: it captures a resource that is not a "
                "variable (a table, an iterator, ...)\n"
                "  remedy: call it outside of JAX staging contexts, or pass what it needs as arguments"
            )

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
    """A function traced for symbolic shapes: interpreted with them, and compiled at samples.

    Attributes:
      sizes: The symbolic sizes of the arguments.
      samples: Where the function is compiled.
      numbers: What the numbers of the compiled programs may be.
      written: The trace, as the interpreter has written it for each sample, with the captures as arguments.
    """

    sizes: tuple[Any, ...] = ()
    samples: tuple[Sample, ...] = ()
    numbers: Numbers = field(default_factory=lambda: Numbers((), ()))
    written: tuple[Any, ...] = ()

    @classmethod
    def of(cls, function: Function, concrete: Any, signature: Signature, tree: PyTreeDef) -> SymbolicTraced:
        """The trace, with the shapes of its results as declared, or else as inferred.

        Raises:
          DeclarationError: A result has another size than declared.
          UnsupportedError: An operation that has no form for all sizes.
        """
        specs = tuple(tf.TensorSpec(known_sizes(shape), tensorflow_dtype(dtype)) for shape, dtype in signature)
        sizes = symbolic_sizes([shape for shape, _ in signature])
        traced = cls(function, concrete, specs, tree, (), sizes=sizes)
        if function.staging.by_name and function.declared is not None:  # nothing is compiled here
            avals = tuple(traced._result_aval(i, tuple(aval.shape)) for i, aval in enumerate(function.declared.avals))
            return replace(traced, avals=avals)
        traced._require_values()
        shapes = [*(shape for shape, _ in signature), *(tuple(value.shape) for value in traced.captured)]
        dtypes = [*(spec.dtype for spec in specs), *(value.dtype for value in traced.captured)]
        first = first_sample(sizes)
        if first is None:
            raise UnsupportedError(
                f"call_tf: {function} is called with shapes {', '.join(map(str, shapes))}, and no sizes were found "
                "that their constraints allow\n  remedy: use constant shapes"
            )
        result_shapes, expressions, written = _written(traced, first, shapes, dtypes)
        expressions = tuple(dict.fromkeys([*sizes, *expressions]))
        chosen, unknown = samples(sizes, expressions)
        if unknown is not None:
            raise UnsupportedError(
                f"call_tf: {function} has sizes {unknown[0]} and {unknown[1]}, which are equal wherever they were "
                "tried and not known to be equal for all sizes\n"
                "  remedy: add a constraint that says so, or use constant shapes"
            )
        all_written = [written if sample == first else _written(traced, sample, shapes, dtypes)[2] for sample in chosen]
        traced = replace(
            traced, samples=tuple(chosen), numbers=Numbers(chosen, expressions), written=tuple(all_written)
        )
        return replace(traced, avals=tuple(traced._result_aval(i, shape) for i, shape in enumerate(result_shapes)))

    def hlo(self, platform: str) -> bytes:
        """The HLO module at the first sample."""
        return self.hlos(platform)[0]

    def hlos(self, platform: str) -> list[bytes]:
        """The HLO module at each sample; its parameters are the arguments, then the captures."""
        if platform not in self._compiled:
            self._compiled[platform] = [
                replace(self, concrete=concrete, _compiled={})._hlo_of_each(
                    (concrete.structured_input_signature[0],), platform
                )[0]
                for concrete in self.written
            ]
        return self._compiled[platform]

    def _result_aval(self, index: int, shape: tuple[Any, ...]) -> ShapedArray:
        declared = self.function.declared
        if declared is None:
            return ShapedArray(shape, canonical_dtype(jax_dtype(self.concrete.outputs[index].dtype)))
        aval = declared.avals[index]
        of_call = set[str]().union(*map(dimension_variables, self.sizes))
        for size in aval.shape:
            if is_symbolic(size) and (strangers := sorted(dimension_variables(size) - of_call)):
                raise DeclarationError(
                    f"output_shape_dtype declares result[{index}] of {self.function} to be {short_text(aval)}, and no "
                    f"argument of the call has the dimension variable {strangers[0]!r}\n"
                    "  remedy: declare sizes by those of the arguments, like x.shape[0]"
                )
        if not same_shape(shape, tuple(aval.shape)):
            raise declared.mismatch(index, f"{aval.dtype.name}[{', '.join(map(str, shape))}]")
        return aval


def _written(
    traced: SymbolicTraced, sample: Sample, shapes: Sequence[Any], dtypes: Sequence[Any]
) -> tuple[list[tuple[Any, ...]], tuple[Any, ...], Any]:
    """The shapes of the results, the sizes that were met, and the trace as it is written for a sample."""
    interpreter = Interpreter(traced.function, traced.concrete, sample, RULES)
    results: list[Any] = []

    def body(*tensors: Any) -> list[Any]:
        results[:] = interpreter.run(tensors, shapes)
        return [tf.identity(value.tensor) for value in results]

    specs = [tf.TensorSpec(sample.shape(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    with outside_of_graphs():
        concrete = tf.function(body, autograph=False, jit_compile=True).get_concrete_function(*specs)
    return [value.shape for value in results], tuple(interpreter.expressions), concrete
