"""Graph mode: an exported function as the TensorFlow operations that its module is translated to.

In a graph the operations are part of it, as if the user had written them. In eager mode they run as one concrete
function, made once for all sizes. Needs jaxlib, to read the module, and no JAX.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._function.cache import Cache
from jaxtf.convert._function.checked_sizes import checked_before, checks_of, with_checked_sizes
from jaxtf.convert._function.constants import Constant
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._function.partitioning import annotate_shardings
from jaxtf.convert._function.record import record_module
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.errors import REMEDY
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import check, plan
from jaxtf.convert._values.names import in_graphs
from jaxtf.convert._values.narrow import check_not_compiled
from jaxtf.serialization import DisabledSafetyCheck, Exported
from jaxtf.serialization.interop import for_platform

__all__ = ["GraphFunction"]


class GraphFunction(ExportedFunction):
    """An exported function as TensorFlow operations; its module is read and checked once.

    Args:
      exported: For any platform; one that `export_for_graph` made has the operations with the best translations.
      constants: As for `ExportedFunction`.
      make_vjp: As for `ExportedFunction`.
      allows_xla: Whether TensorFlow's XLA operations may be used.
      avoids: Names of composites, such as `chlo.erf`, to be decomposed although TensorFlow has an operation.

    Raises:
      ArtifactError: The module is not the one that its record describes.
      GraphModeUnsupported: An operation of the module that is not translated.
    """

    is_regular = True

    def __init__(
        self,
        exported: Exported,
        constants: Sequence[Constant] = (),
        make_vjp: Callable[[], ExportedFunction] | None = None,
        *,
        allows_xla: bool,
        avoids: frozenset[str] = frozenset(),
    ) -> None:
        exported.check_module()
        super().__init__(exported, constants, make_vjp)
        if exported.ordered_effects:
            effects = ", ".join(map(str, exported.ordered_effects))
            raise GraphModeUnsupported(
                f"'{exported.fun_name}' has ordered effects, which graph mode does not translate: {effects}\n"
                f"  remedy: {REMEDY}"
            )
        record_module(exported)
        self._allows_xla = allows_xla
        self._avoids = avoids
        program = for_platform(parse(exported.mlir_module_serialized), self._platform())
        self._program = plan(program, allows_xla, exported=exported)
        check(self._program)
        self._asserts = DisabledSafetyCheck.shape_assertions() not in exported.disabled_safety_checks
        self._concrete: Cache[bool, Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]] = Cache(2)
        # With a prefix of our own, so that no name of a result is taken.
        self._scope = "jaxtf_" + (in_graphs(exported.fun_name).strip("_.-") or "function")

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Adds the operations to the graph, or runs them.

        Raises:
          tf.errors.InvalidArgumentError, ConversionStateError: As `ExportedFunction` says.
          GraphModeUnsupported: A use of an operation that is not translated.
        """
        if not tf.executing_eagerly():
            return self._in_graph(arguments)
        if self._is_sharded:
            annotate_shardings(arguments, self.exported.in_shardings, self.exported.uses_shardy)  # refuses parts
        try:
            return self._concrete(_scans(), self._make_concrete)(arguments)
        except tf.errors.InvalidArgumentError:
            self._result_shapes(arguments)  # raises native mode's messages
            raise

    def with_checked_sizes(self, arguments: Sequence[tf.Tensor], *, by_signature: bool) -> list[tf.Tensor]:
        """As `ExportedFunction` says."""
        every = range(len(arguments))
        return with_checked_sizes(self.exported, arguments, every, by_signature=by_signature, scope=self._scope)

    def like(self, exported: Exported) -> GraphFunction:
        """Another exported function in graph mode."""
        return GraphFunction(exported, allows_xla=self._allows_xla, avoids=self._avoids)

    def _in_graph(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The operations in the current graph; of sizes that are known there only assertions that they do not fulfil.

        Those about the arguments' sizes raise at once. A module may have more, of what it calls.
        """
        exported = self.exported
        check_not_compiled(exported)
        shapes = self._result_shapes(arguments) if exported.solution.variables else None
        called = [function.value for function in exported.called_functions]
        emitter = Emitter(self._program, self._allows_xla, self._asserts, self._avoids, called, scans=_scans())
        with tf.name_scope(self._scope):
            if self._is_sharded:
                arguments = annotate_shardings(arguments, exported.in_shardings, exported.uses_shardy)
            kept = [arguments[index] for index in exported.module_kept_var_idx]
            # The gradient is JAX's: tapes need not see the operations, but the variables that are read inside.
            emitted = [*self._platform_index(), *kept]
            results = emitter.main(emitted) if called else _tf.unrecorded(emitter.main, emitted)
            if self._is_sharded:
                results = annotate_shardings(results, exported.out_shardings, exported.uses_shardy)
            # Perhaps of an argument of which the function needs nothing but the shape.
            results = checked_before(checks_of(arguments), results)
        if shapes is not None:
            for result, shape in zip(results, shapes, strict=True):
                result.set_shape(shape)
        return results

    def _platform_index(self) -> list[tf.Tensor]:
        """The first argument of a module for several platforms."""
        return [tf.constant(self._platform(), tf.int32)] if len(self.exported.platforms) > 1 else []

    def _platform(self) -> int:
        """The index of the platform that is translated: that of CPU, where operations are most general."""
        return self.exported.platforms.index("cpu") if "cpu" in self.exported.platforms else 0

    def _make_concrete(self) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
        """The operations as a function for eager calls, for all sizes; one for each value of `_scans`."""

        def run(*arguments: tf.Tensor) -> list[tf.Tensor]:
            return self._in_graph(arguments)

        run.__name__ = re.sub(r"\W", "_", self._scope)
        with tf.init_scope():
            graph = tf.function(run, autograph=False)
            return _tf.flat_call(graph.get_concrete_function(*self.specifications()))


def _scans() -> bool:
    """Whether JAX's flag `--jax2tf_associative_scan_reductions` is on."""
    jax = sys.modules.get("jax")
    return jax is not None and bool(jax.config.jax2tf_associative_scan_reductions)
