"""The door to TensorFlow: the only module here that uses its private modules.

Each private name stands once, with why it is needed and the versions it was seen in:

- `tensorflow.compiler.tf2xla.python.xla` (2.21): `call_module`, the op that holds a StableHLO
  module; `tf.raw_ops` does not export it. Its newest calling convention version.
- `tensorflow.compiler.mlir.stablehlo.stablehlo` (2.21): the StableHLO version that this
  TensorFlow reads.
- `tensorflow.python.eager.record` (2.21): whether any tape watches, so that an eager call
  without one need not record how to differentiate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.eager import record

__all__ = ["ModuleCall", "any_tape_watches", "newest_calling_convention_version", "stablehlo_version"]


class ModuleCall:
    """One XlaCallModule op, ready to be applied to arguments any number of times.

    Args:
      module: The portable artifact.
      calling_convention_version: 9 or 10.
      result_dtypes: Of each result.
      result_shapes: Of each result; None for a size that is not known.
      platforms: Lowering platforms, as TensorFlow writes them (`CPU`, `CUDA`, ...).
      disabled_checks: Names of the run-time checks to skip.
      uses_shardy: Whether the module's shardings are for Shardy; said from version 10 on.
    """

    def __init__(
        self,
        *,
        module: bytes,
        calling_convention_version: int,
        result_dtypes: Sequence[tf.DType],
        result_shapes: Sequence[Sequence[int | None]],
        platforms: Sequence[str],
        disabled_checks: Sequence[str],
        uses_shardy: bool,
    ) -> None:
        self._attributes: dict[str, Any] = {
            "version": calling_convention_version,
            "module": module,
            "Tout": result_dtypes,
            "Sout": result_shapes,
            "platforms": platforms,
            "function_list": (),
            # Read only by calling conventions before 9.
            "has_token_input_output": False,
            "disabled_checks": disabled_checks,
        }
        if calling_convention_version >= 10:
            self._attributes["use_shardy_partitioner"] = uses_shardy

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the op on the kept arguments of the module, or adds it to the graph."""
        return list(xla.call_module(arguments, **self._attributes))


def newest_calling_convention_version() -> int:
    """The newest calling convention version that XlaCallModule runs in this process."""
    return int(xla.call_module_maximum_supported_version())


def stablehlo_version() -> str:
    """The newest StableHLO version that this TensorFlow reads."""
    return str(stablehlo.get_current_version())


def any_tape_watches() -> bool:
    """Whether a gradient tape or a forward accumulator may record what happens now."""
    return bool(record.could_possibly_record())
