"""One trace of a TensorFlow function: what its results are, what it captures, and its HLO for a platform.

Knows TensorFlow, avals and pytrees; nothing of primitives, lowering or differentiation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from jax.core import ShapedArray
from jax.tree_util import PyTreeDef

from jaxtf.calltf import _graph
from jaxtf.calltf._captures import Captures, captures_text
from jaxtf.calltf._compared import compared
from jaxtf.calltf._dynamic_sizes import unsafe_operations
from jaxtf.calltf._errors import (
    LIMITATIONS,
    CompilationError,
    UnsupportedError,
)
from jaxtf.calltf._jax import custom_call_targets, has_dynamic_sizes, has_stablehlo
from jaxtf.calltf._notes import without_libraries
from jaxtf.calltf._opened import opened
from jaxtf.calltf._tf import compiled_to_hlo, outside_of_graphs
from jaxtf.calltf._whole_bytes import in_whole_bytes
from jaxtf.serialization.interop import CalledFunction

if TYPE_CHECKING:
    from jaxtf.calltf._function import Function

Signature = tuple[tuple[tuple[Any, ...], np.dtype[Any]], ...]
"""Shape and dtype of each argument; sizes may be symbolic."""

# Custom calls that are operations of XLA: its compilers for CPU, GPU and TPU know what they mean.
_OF_EVERY_COMPILER = ("Eigh", "ProductOfElementaryHouseholderReflectors", "Qr", "Sharding")


def _has_open_sizes(concrete: Any) -> bool:
    return not all(output.shape.is_fully_defined() for output in concrete.outputs)


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
      element: What is run for each element of a batch, in a loop; None where there is no such loop.
      unreplaced: The trace with the operations that were replaced as TensorFlow compiles them wrongly: of these are
        the derivatives.
      programs: What JAX makes of it to run it outside of other programs: one, once there is one.
      capture_shapes: The shapes that captured variables of open shape had when it was traced, which `avals` are for.
    """

    function: Function
    concrete: Any
    specs: tuple[Any, ...]
    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    element: Traced | None = None
    unreplaced: Any = None
    programs: list[Any] = field(default_factory=list)
    capture_shapes: tuple[Any, ...] = ()
    _compiled: dict[str, list[bytes]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.function.name

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results of the trace, run by TensorFlow, for these arguments.

        Raises:
          CompilationError: TensorFlow cannot compile the function.
        """
        self.refuse_lost_sizes()
        try:
            return list(self.called_function.value(*tensors))
        except tf.errors.OpError:
            self.hlo("CPU")  # raises if it is for this that it failed
            raise

    @functools.cached_property
    def stateful_ops(self) -> frozenset[str]:
        """Types of the ops in the graph, and in the functions it calls, that do more than compute."""
        return _graph.stateful_ops(self.concrete)

    @property
    def has_effect(self) -> bool:
        """Whether a call must neither be dropped nor repeated."""
        staging = self.function.staging
        is_checked = staging.by_name and (self._is_compared or _graph.has_assertions(self.concrete))
        return staging.has_side_effects and (bool(self.stateful_ops) or is_checked)

    @property
    def _is_compared(self) -> bool:
        """Whether results have declared sizes that are compared when it has run."""
        return self.function.declared is not None and _has_open_sizes(self.concrete)

    @functools.cached_property
    def called_function(self) -> CalledFunction:
        """For the exporter: what a call by name calls, with the arguments and, unless it captures these, captures."""
        name = f"call_tf_{self.function.symbol}"
        if self.function.staging.by_name:
            called = compared(name, self.concrete, self.specs, self.result_sizes) if self.is_open else self.concrete
        else:
            called = opened(name, self.concrete, self.captured, self.specs) if self.captured else self.concrete
            called = in_whole_bytes(name, str(self.function), called)
        return CalledFunction(called.name.decode(), called)

    @property
    def is_open(self) -> bool:
        """Whether results have sizes that TensorFlow does not know, and that follow from the arguments as declared."""
        return _has_open_sizes(self.concrete)

    def result_sizes(self, tensors: Sequence[Any]) -> list[Any]:
        """The shape that each result is to have, where these are the arguments in a graph."""
        return [aval.shape for aval in self.avals]

    @functools.cached_property
    def captured(self) -> list[Any]:
        """The variables and tensors that the graph captures, in the order of HLO's parameters."""
        variables = {id(variable.handle): variable for variable in self.concrete.graph.variables}
        return [variables.get(id(captured), captured) for captured in self.concrete.captured_inputs]

    def captured_values(self, captures: Captures | None) -> list[np.ndarray[Any, Any]]:
        """The values of the captures in a program; None for those that they have now.

        Raises:
          CompilationError: A captured resource that is not a variable (a hash table, an iterator).
          UnsupportedError: A value of another shape than it was traced for.
        """
        self._require_values()
        with outside_of_graphs():
            values = [np.asarray(value.numpy()) for value in (captures or Captures())(self.captured)]
        self._refuse_other_shapes(values)
        return values

    def _refuse_other_shapes(self, values: Sequence[np.ndarray[Any, Any]]) -> None:
        shapes = {id(x): shape for x, shape in zip(self._open, self.capture_shapes, strict=True)}
        for value, captured in zip(values, self.captured, strict=True):
            if value.shape != shapes.get(id(captured), value.shape):
                raise UnsupportedError(
                    f"call_tf: {self.function.name} captures {captures_text([captured])}, which had shape "
                    f"{list(value.shape)} when the program was traced, and had shape {list(shapes[id(captured)])} when "
                    "its derivative or batch was\n"
                    "  remedy: pass the value as an argument, or trace again what is differentiated"
                )

    def _require_values(self) -> None:
        if any(value.dtype == tf.resource for value in self.captured):
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name}: it captures a resource that is not a "
                "variable (a table, an iterator, ...)\n"
                "  remedy: call it outside of JAX staging contexts, or pass what it needs as arguments"
            )

    def hlo(self, platform: str) -> bytes:
        """The serialized HLO module for a platform of TensorFlow: `CPU`, `GPU`, `TPU`.

        Its parameters are the arguments, then the captures, of the shapes that these had when it was traced. Compiled
        once per platform.

        Raises:
          CompilationError: TensorFlow cannot compile the function for the platform.
        """
        return self._hlo_of_each((self.specs,), platform)[0]

    def _hlo_of_each(self, signatures: Sequence[Sequence[Any]], platform: str) -> list[bytes]:
        if platform not in self._compiled:
            compile_for = self._compile if self._compiles_for(platform) else self._compile_for_any
            self._compiled[platform] = [compile_for(platform, specs) for specs in signatures]
        return self._compiled[platform]

    @functools.cached_property
    def _open(self) -> list[Any]:
        """The captured variables that may get a value of another shape."""
        return [x for x in self.captured if isinstance(x, tf.Variable) and not x.shape.is_fully_defined()]

    def shapes_now(self) -> tuple[Any, ...]:
        """The shapes that captured variables have now, of those that may get another one."""
        if not self._open:
            return ()
        with outside_of_graphs():
            return tuple(tuple(value.read_value().shape.as_list()) for value in self._open)

    def _as_traced(self) -> Any:
        """What is compiled: the trace, with its captures as arguments if they have got other shapes since."""
        if self.shapes_now() == self.capture_shapes:
            return self.concrete
        shapes = {id(x): shape for x, shape in zip(self._open, self.capture_shapes, strict=True)}
        own = [tf.TensorSpec(shapes.get(id(x), x.shape), x.dtype) for x in self.captured]
        return opened(f"call_tf_{self.function.symbol}", self.concrete, own, self.specs)

    def _compiles_for(self, platform: str) -> bool:
        """Whether TensorFlow can compile for the platform in this process.

        For a TPU only where there is one, and what captures variables only where there is a device to put these on.
        """
        needs_device = platform == "TPU" or bool(self.concrete.graph.variables)
        return not needs_device or bool(tf.config.list_logical_devices(platform))

    def _compile_for_any(self, platform: str, specs: Sequence[Any]) -> bytes:
        """What TensorFlow compiles for a CPU: HLO means the same everywhere, except for CPU-only calls."""
        hlo = self._compile("CPU", specs)
        if calls := [target for target in custom_call_targets(hlo) if target not in _OF_EVERY_COMPILER]:
            raise CompilationError(
                f"Error compiling TensorFlow function {self.function.name} for {platform}: TensorFlow does so only "
                f"where such a device is present, and its program for a CPU calls {', '.join(calls)}, of a CPU alone\n"
                "  remedy: lower it on a machine with such a device and TensorFlow for it, or write that operation in "
                "JAX"
            )
        return hlo

    def refuse_lost_sizes(self) -> None:
        """Refuses what TensorFlow compiles to a program that may lose a size; of arguments of constant sizes.

        Raises:
          CompilationError: It does, or does not compile it.
        """
        if self._unsafe_if_dynamic:
            self.hlo("CPU")

    def refuse_if_not_compiled(self) -> None:
        """Refuses a function with operations that TensorFlow's compiler does not have, unless it leaves them out.

        Raises:
          CompilationError: TensorFlow does not compile it.
        """
        if _graph.ops_without_compiler(self.concrete):
            try:
                self.hlo("CPU")
            except CompilationError as error:
                error.add_note("or, to have TensorFlow run it in graph mode without compiling it: call_tf_graph=True")
                raise

    def _compile(self, platform: str, specs: Sequence[Any]) -> bytes:
        hlo = self._compiled_to_hlo(platform, specs)
        if has_dynamic_sizes(hlo):
            if self._unsafe_if_dynamic:
                operations = ", ".join(self._unsafe_if_dynamic)
                raise self._dynamic_sizes(platform, f"XLA is not known to keep the size through {operations}")
            if not has_stablehlo(hlo):
                raise self._dynamic_sizes(platform, "one of them has two such sizes, which StableHLO does not support")
        return hlo

    def _dynamic_sizes(self, platform: str, fault: str) -> CompilationError:
        return CompilationError(
            f"Error compiling TensorFlow function {self.function.name} for {platform}: it has arrays whose sizes "
            f"depend on values (of tf.boolean_mask, tf.unique, x[:n], tf.cond, ...), and {fault}\n"
            "  remedy: keep sizes constant (weights of 0 and 1 for tf.boolean_mask, tf.where(condition, x, y)), or "
            f"call it outside of staged contexts and jax.vmap, where it runs eagerly; see {LIMITATIONS}"
        )

    @functools.cached_property
    def _unsafe_if_dynamic(self) -> list[str]:
        return unsafe_operations(self.concrete) if self.element is None else self.element._unsafe_if_dynamic

    def _compiled_to_hlo(self, platform: str, specs: Sequence[Any]) -> bytes:
        with outside_of_graphs():
            try:
                concrete = self._as_traced()
                captured = [] if concrete is self.concrete else concrete.structured_input_signature[0][len(specs) :]
                return compiled_to_hlo(concrete, [*specs, *captured], platform)
            except Exception as error:  # TensorFlow raises ValueError, TypeError and its own OpErrors here
                raise CompilationError(
                    f"Error compiling TensorFlow function {self.function.name} for {platform} (see below for the "
                    "caught exception).\ncall_tf can be used in a staged context (under jax.jit, lax.scan, etc.) "
                    "only with compilable functions with static output shapes.\n"
                    "  remedy: call it outside of staged contexts and jax.vmap, where it runs eagerly, or make "
                    f"tf.function(function, jit_compile=True) work; see {LIMITATIONS}\n\n"
                    f"Caught TensorFlow exception: {without_libraries(str(error))}"
                ) from error
