"""Native mode: an exported function as one XlaCallModule op.

Takes an `Exported` and flat tensors, gives flat tensors; needs no JAX. The op compiles the
module for the sizes that its arguments have when it runs, checks them, and runs it. Large arrays
that the function closes over are further tensors of it, after the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._constants import Constant
from jaxtf.convert._custom_calls import check_custom_calls
from jaxtf.convert._dtypes import tf_dtype
from jaxtf.convert._errors import TensorFlowTooOld
from jaxtf.convert._function import ExportedFunction
from jaxtf.convert._partitioning import annotate_shardings
from jaxtf.convert._record import record_module
from jaxtf.serialization import Exported
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["NativeFunction"]

# In eager mode the module is copied for every call, 0.3 ms for each MB; a concrete function holds it, and costs
# 140 us more. From here on that is less (TensorFlow 2.21: 57 us for a tiny module, 173 for 400 kB, 294 for 800 kB
# against 200 for a concrete function of any size).
_HELD_BYTES = 500_000


class NativeFunction(ExportedFunction):
    """An exported function as one op; what the op needs to know is worked out once.

    Args:
      exported: Written for a StableHLO version that this TensorFlow reads.
      constants: As for `ExportedFunction`.
      make_vjp: As for `ExportedFunction`.

    Raises:
      TensorFlowTooOld: This TensorFlow knows no calling convention as new as the module's.
      UnknownCustomCall: The module calls LAPACK.
    """

    def __init__(
        self,
        exported: Exported,
        constants: Sequence[Constant] = (),
        make_vjp: Callable[[], ExportedFunction] | None = None,
    ) -> None:
        newest, version = _tf.newest_calling_convention_version(), exported.calling_convention_version
        if version == 10 and exported.nr_devices == 1:
            version = min(version, newest)  # what version 10 adds to 9 is said of shardings
        if version > newest:
            raise TensorFlowTooOld(
                f"XlaCallModule from your TensorFlow installation ({tf.__version__}) supports up to calling "
                f"convention version {newest} but '{exported.fun_name}' needs version {version}\n"
                f"  remedy: export with calling_convention_version={newest}, or upgrade TensorFlow"
            )
        check_custom_calls(exported)
        record_module(exported)
        super().__init__(exported, constants, make_vjp)
        shapes = [[None if is_symbolic_dim(size) else size for size in aval.shape] for aval in exported.out_avals]
        self._module = _tf.ModuleCall(
            module=exported.mlir_module_serialized,
            calling_convention_version=version,
            result_dtypes=[tf_dtype(aval.dtype) for aval in exported.out_avals],
            result_shapes=shapes,
            platforms=[name.upper() for name in exported.platforms],
            disabled_checks=[str(check) for check in exported.disabled_safety_checks],
            uses_shardy=exported.uses_shardy,
            functions=[called.value for called in exported.called_functions],
        )
        self._is_held = len(exported.mlir_module_serialized) >= _HELD_BYTES

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the op, or adds it to the graph.

        Raises:
          tf.errors.InvalidArgumentError, ConversionStateError: As `ExportedFunction` says.
          tf.errors.NotFoundError: When run: a platform that the module was not lowered for.
        """
        kept = [arguments[index] for index in self.exported.module_kept_var_idx]
        if self._is_sharded:
            return self._call_sharded(arguments, kept)
        run = self._held_module if self._is_held and tf.executing_eagerly() else self._module
        if not self.exported.solution.variables:
            return run(kept)
        if not tf.executing_eagerly():
            shapes = self._result_shapes(arguments)
            results = self._module(kept)
            for result, shape in zip(results, shapes, strict=True):
                result.set_shape(shape)
            return results
        try:
            return run(kept)
        except tf.errors.InvalidArgumentError:
            # Sizes that do not fit may have broken an operation of the function before they were checked.
            self._result_shapes(arguments)
            raise

    @cached_property
    def unwatched(self) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
        """As `ExportedFunction` says; by the shortest way where the op takes the arguments as they are."""
        takes_all = list(self.exported.module_kept_var_idx) == list(range(len(self.argument_dtypes)))
        if self.constants or self._is_sharded or self._is_held or not takes_all:
            return super().unwatched
        run = self._module.run
        if not self.exported.solution.variables:
            return run

        def run_checked(arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            try:
                return run(arguments)
            except tf.errors.InvalidArgumentError:
                self._result_shapes(arguments)
                raise

        return run_checked

    def _call_sharded(self, arguments: Sequence[tf.Tensor], kept: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The same where arguments or results are split over devices: only in graphs."""
        shardings = [self.exported.in_shardings[index] for index in self.exported.module_kept_var_idx]
        uses_shardy = self.exported.uses_shardy
        kept = annotate_shardings(kept, shardings, uses_shardy)
        results = annotate_shardings(self._module(kept), self.exported.out_shardings, uses_shardy)
        if self.exported.solution.variables:
            for result, shape in zip(results, self._result_shapes(arguments), strict=True):
                result.set_shape(shape)
        return results

    def like(self, exported: Exported) -> NativeFunction:
        """Another exported function as one op."""
        return NativeFunction(exported)

    @cached_property
    def _held_module(self) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
        """The op in a concrete function, which holds its module: for eager calls of a large one."""
        specs = self.specifications()
        with tf.init_scope():
            graph = tf.function(lambda *kept: self._module(kept), autograph=False)
            concrete = graph.get_concrete_function(*(specs[index] for index in self.exported.module_kept_var_idx))
        return lambda kept: list(concrete(*kept))
