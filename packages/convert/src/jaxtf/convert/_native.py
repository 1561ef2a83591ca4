"""Native mode: an exported function as one XlaCallModule op.

Takes an `Exported` and flat tensors, gives flat tensors; needs no JAX. The op compiles the
module for the sizes that its arguments have when it runs, checks them, and runs it.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._dtypes import tf_dtype
from jaxtf.convert._errors import TensorFlowTooOld
from jaxtf.serialization import Exported
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["run_exported"]


def run_exported(exported: Exported, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the exported function to its flat arguments.

    Args:
      exported: Written for a StableHLO version that this TensorFlow reads.
      arguments: One tensor for each of `exported.in_avals`, of its dtype (bool for `float0`).

    Returns:
      One tensor for each of `exported.out_avals`.

    Raises:
      TensorFlowTooOld: This TensorFlow knows no calling convention as new as the module's.
      tf.errors.InvalidArgumentError: When run: sizes that the symbolic shapes do not allow, or a
        platform that the module was not lowered for.
    """
    newest = _tf.newest_calling_convention_version()
    if exported.calling_convention_version > newest:
        raise TensorFlowTooOld(
            f"XlaCallModule from your TensorFlow installation ({tf.__version__}) supports up to calling convention "
            f"version {newest} but '{exported.fun_name}' needs version {exported.calling_convention_version}\n"
            f"  remedy: export with calling_convention_version={newest}, or upgrade TensorFlow"
        )
    return _tf.call_module(
        [arguments[index] for index in exported.module_kept_var_idx],
        module=exported.mlir_module_serialized,
        calling_convention_version=exported.calling_convention_version,
        result_dtypes=[tf_dtype(aval.dtype) for aval in exported.out_avals],
        result_shapes=[[None if is_symbolic_dim(size) else size for size in aval.shape] for aval in exported.out_avals],
        platforms=[name.upper() for name in exported.platforms],
        disabled_checks=[str(check) for check in exported.disabled_safety_checks],
        uses_shardy=exported.uses_shardy,
    )
