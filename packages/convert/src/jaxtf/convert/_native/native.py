"""Native mode: an exported function as one XlaCallModule op.

Takes an `Exported` and flat tensors, gives flat tensors; needs no JAX. The op compiles the
module for the sizes that its arguments have when it runs, checks them, and runs it; eagerly it runs in a
compiled function of its own. Large arrays that the function closes over are further tensors of it, after the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import TensorFlowTooOld
from jaxtf.convert._function.cache import Cache
from jaxtf.convert._function.checked_sizes import checked_before, checks_of, with_checked_sizes
from jaxtf.convert._function.constants import Constant
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._function.partitioning import annotate_shardings
from jaxtf.convert._function.record import record_module
from jaxtf.convert._native.computed import as_computed
from jaxtf.convert._native.custom_calls import check_custom_calls, only_computes
from jaxtf.convert._native.sizes import check_sizes, compiled_if_sizes_are_constants
from jaxtf.convert._values.dtypes import tf_dtype
from jaxtf.convert._values.narrow import check_not_compiled, check_passable, has_narrow, passed, passed_as, received
from jaxtf.serialization import DisabledSafetyCheck, Exported
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["NativeFunction"]

_Run: TypeAlias = Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]


class NativeFunction(ExportedFunction):
    """An exported function as one op; what the op needs to know is worked out once.

    Args:
      exported: Written for a StableHLO version that this TensorFlow reads.
      constants: As for `ExportedFunction`.
      make_vjp: As for `ExportedFunction`.
      disabled_checks: Of the caller: custom-call targets that the process registers.

    Raises:
      ArtifactError: The module is not the one that its record describes.
      TensorFlowTooOld: This TensorFlow knows no calling convention as new as the module's.
      UnknownCustomCall: The module calls LAPACK, or what else TensorFlow does not have.
      NativeModeUnsupported: It has arrays whose sizes depend on values, or computes by the devices of a mesh.
      ArgumentTypeError, ResultTypeError: A dtype of 2 bits, or a float of 4.
    """

    def __init__(
        self,
        exported: Exported,
        constants: Sequence[Constant] = (),
        make_vjp: Callable[[], ExportedFunction] | None = None,
        disabled_checks: Sequence[DisabledSafetyCheck] = (),
    ) -> None:
        exported.check_module()
        newest, version = _tf.newest_calling_convention_version(), exported.calling_convention_version
        if version == 10 and exported.nr_devices == 1:
            version = min(version, newest)  # what version 10 adds to 9 concerns shardings
        if version > newest:
            raise TensorFlowTooOld(
                f"XlaCallModule from your TensorFlow installation ({tf.__version__}) supports up to calling "
                f"convention version {newest} but '{exported.fun_name}' needs version {version}\n"
                f"  remedy: export with tensorflow_version={tf.__version__!r}, or upgrade TensorFlow"
            )
        check_custom_calls(exported, disabled_checks)
        check_sizes(exported)
        exported = as_computed(exported)
        self._disabled_checks = tuple(disabled_checks)
        record_module(exported)
        super().__init__(exported, constants, make_vjp)
        self._dropped = sorted(set(range(len(exported.in_avals))) - set(exported.module_kept_var_idx))
        self._result_dtypes = [tf_dtype(aval.dtype) for aval in exported.out_avals]
        kept_dtypes = [tf_dtype(exported.in_avals[index].dtype) for index in exported.module_kept_var_idx]
        self._kept_dtypes = kept_dtypes
        self._is_narrow = has_narrow([*kept_dtypes, *self._result_dtypes])
        if self._is_narrow:
            check_passable(exported)
        shapes = [[None if is_symbolic_dim(size) else size for size in aval.shape] for aval in exported.out_avals]
        self._module = _tf.ModuleCall(
            module=exported.mlir_module_serialized,
            calling_convention_version=version,
            result_dtypes=self._result_dtypes,
            result_shapes=shapes,
            platforms=[name.upper() for name in exported.platforms],
            disabled_checks=[str(check) for check in exported.disabled_safety_checks],
            uses_shardy=exported.uses_shardy,
            functions=[called.value for called in exported.called_functions],
            only_computes=lambda: only_computes(exported),
        )
        self._cache: Cache[None, _Run] = Cache(1)

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the function compiled, or adds the op to the graph.

        Raises:
          tf.errors.InvalidArgumentError, ConversionStateError: As `ExportedFunction` says.
          tf.errors.NotFoundError: When run: a platform that the module was not lowered for.
        """
        exported = self.exported
        kept = [arguments[index] for index in exported.module_kept_var_idx]
        if self._is_sharded:
            shardings = [exported.in_shardings[index] for index in exported.module_kept_var_idx]
            kept = annotate_shardings(kept, shardings, exported.uses_shardy)
        if tf.executing_eagerly():
            results = self._run_checked(self._compiled, arguments, kept)
        else:
            # The op compares the sizes of what it takes.
            checks = checks_of(arguments[index] for index in self._dropped)
            results = checked_before(checks, self._in_graph(arguments, kept))
        if self._is_sharded:
            results = annotate_shardings(results, exported.out_shardings, exported.uses_shardy)
        return results

    def with_checked_sizes(self, arguments: Sequence[tf.Tensor], *, by_signature: bool) -> Sequence[tf.Tensor]:
        """As `ExportedFunction` says, of arguments of which the module takes nothing; the op compares the others."""
        if not self._dropped:
            return arguments
        scope = f"jaxtf_{self._name}"
        return with_checked_sizes(self.exported, arguments, self._dropped, by_signature=by_signature, scope=scope)

    @cached_property
    def run_eagerly(self) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
        """As `ExportedFunction` describes; by the fast path where the module takes the arguments unchanged."""
        takes_all = list(self.exported.module_kept_var_idx) == list(range(len(self.argument_dtypes)))
        if self.constants or self._is_sharded or self._is_narrow or not takes_all:
            return super().run_eagerly
        compiled = self._compiled
        if self.exported.solution.variables:
            return lambda arguments: self._run_checked(compiled, arguments, arguments)
        return compiled

    @property
    def _compiled(self) -> _Run:
        return self._cache(None, self._compile)

    def _run_checked(
        self,
        compiled: _Run,
        arguments: Sequence[tf.Tensor],
        kept: Sequence[tf.Tensor],
    ) -> list[tf.Tensor]:
        """Runs the compiled op; sizes that do not fit may break an operation of the function before it checks them."""
        try:
            return received(compiled(passed(kept)), self._result_dtypes) if self._is_narrow else compiled(kept)
        except tf.errors.InvalidArgumentError:
            if self.exported.solution.variables:
                self._result_shapes(arguments)
            raise

    def _compile(self) -> _Run:
        """The op for eager calls, of the kept arguments: in a compiled function, which holds the module.

        By itself the op takes 44 us in eager mode and 0.3 ms more for each MB of the module, which it copies; so it
        takes 14 us whatever its size (the sine of f32[16], TensorFlow 2.21).
        """
        every = self.specifications()
        kept = [every[index] for index in self.exported.module_kept_var_idx]
        if self._is_narrow:
            kept = [tf.TensorSpec(each.shape, passed_as(each.dtype)) for each in kept]
        return _tf.compiled_call(self._narrowing if self._is_narrow else self._module, kept, self._name)

    @property
    def _name(self) -> str:
        return re.sub(r"\W", "_", self.exported.fun_name)

    def _narrowing(self, carried: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The op, from arguments to results as they are passed; part of a function that is compiled as one."""
        return passed(self._module(received(carried, self._kept_dtypes)))

    def _in_graph(self, arguments: Sequence[tf.Tensor], kept: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The op in the current graph; its results have the shapes that follow from those of the arguments."""
        shapes = self._result_shapes(arguments) if self.exported.solution.variables else None
        if self._is_narrow:
            check_not_compiled(self.exported)
            results = _tf.compiled_in_graph(self._narrowing, passed(kept), self._name)
            results = received(results, self._result_dtypes)
        else:
            with tf.control_dependencies(compiled_if_sizes_are_constants(kept, f"jaxtf_{self._name}")):
                results = self._module(kept)
        if shapes is not None:
            for result, shape in zip(results, shapes, strict=True):
                result.set_shape(shape)
        return results

    def like(self, exported: Exported) -> NativeFunction:
        """Another exported function as one op."""
        return NativeFunction(exported, disabled_checks=self._disabled_checks)
