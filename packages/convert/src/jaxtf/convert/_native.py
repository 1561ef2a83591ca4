"""Native mode: an exported function as one XlaCallModule op.

Takes an `Exported` and flat tensors, gives flat tensors; needs no JAX. The op compiles the
module for the sizes that its arguments have when it runs, checks them, and runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._dtypes import is_float0, tf_dtype
from jaxtf.convert._errors import TensorFlowTooOld
from jaxtf.convert._sizes import result_shapes
from jaxtf.serialization import Exported
from jaxtf.shapepoly import ShapeMismatch, is_symbolic_dim

__all__ = ["NativeFunction"]


class NativeFunction:
    """An exported function on flat tensors; what the op needs to know is worked out once.

    Args:
      exported: Written for a StableHLO version that this TensorFlow reads.

    Attributes:
      exported: The same.
      argument_dtypes: Of each flat argument; bool for `float0`.

    Raises:
      TensorFlowTooOld: This TensorFlow knows no calling convention as new as the module's.
    """

    def __init__(self, exported: Exported) -> None:
        newest = _tf.newest_calling_convention_version()
        if exported.calling_convention_version > newest:
            raise TensorFlowTooOld(
                f"XlaCallModule from your TensorFlow installation ({tf.__version__}) supports up to calling "
                f"convention version {newest} but '{exported.fun_name}' needs version "
                f"{exported.calling_convention_version}\n"
                f"  remedy: export with calling_convention_version={newest}, or upgrade TensorFlow"
            )
        self.exported = exported
        self.argument_dtypes = tuple(tf_dtype(aval.dtype) for aval in exported.in_avals)
        shapes = [[None if is_symbolic_dim(size) else size for size in aval.shape] for aval in exported.out_avals]
        self._module = _tf.ModuleCall(
            module=exported.mlir_module_serialized,
            calling_convention_version=exported.calling_convention_version,
            result_dtypes=[tf_dtype(aval.dtype) for aval in exported.out_avals],
            result_shapes=shapes,
            platforms=[name.upper() for name in exported.platforms],
            disabled_checks=[str(check) for check in exported.disabled_safety_checks],
            uses_shardy=exported.uses_shardy,
        )

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the op, or adds it to the graph.

        Args:
          arguments: One tensor for each of `exported.in_avals`, of its dtype.

        Returns:
          One tensor for each of `exported.out_avals`.

        Raises:
          tf.errors.InvalidArgumentError: Sizes that the symbolic shapes do not allow: at once where
            TensorFlow knows them, else when the op runs.
          tf.errors.NotFoundError: When run: a platform that the module was not lowered for.
        """
        kept = [arguments[index] for index in self.exported.module_kept_var_idx]
        if not self.exported.solution.variables:
            return self._module(kept)
        if not tf.executing_eagerly():
            shapes = self._result_shapes(arguments)
            results = self._module(kept)
            for result, shape in zip(results, shapes, strict=True):
                result.set_shape(shape)
            return results
        try:
            return self._module(kept)
        except tf.errors.InvalidArgumentError:
            # Sizes that do not fit may have broken an operation of the function before they were checked.
            self._result_shapes(arguments)
            raise

    def _result_shapes(self, arguments: Sequence[tf.Tensor]) -> list[list[int | None]]:
        """The shapes of the results as far as they are known.

        Raises:
          tf.errors.InvalidArgumentError: Sizes that the symbolic shapes do not allow.
        """
        try:
            return result_shapes(self.exported, [argument.shape.as_list() for argument in arguments])
        except ShapeMismatch as error:
            raise tf.errors.InvalidArgumentError(None, None, str(error)) from error

    @cached_property
    def vjp(self) -> NativeFunction:
        """The exported VJP in the same form, made when first asked for."""
        return NativeFunction(self.exported.vjp())

    @cached_property
    def argument_has_gradient(self) -> tuple[bool, ...]:
        """For each flat argument, whether it has a cotangent: integers and booleans have none."""
        return tuple(not is_float0(aval.dtype) for aval in self.vjp.exported.out_avals)

    @cached_property
    def result_has_gradient(self) -> tuple[bool, ...]:
        """The same for each flat result."""
        cotangents = self.vjp.exported.in_avals[len(self.exported.in_avals) :]
        return tuple(not is_float0(aval.dtype) for aval in cotangents)
