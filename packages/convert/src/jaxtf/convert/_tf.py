"""The door to TensorFlow: the only module here that uses its private modules.

Each private name stands once, with why it is needed and the versions it was seen in:

- `tensorflow.compiler.tf2xla.python.xla` (2.21): `call_module`, the op that holds a StableHLO
  module; `tf.raw_ops` does not export it. Its newest calling convention version.
- `tensorflow.compiler.mlir.stablehlo.stablehlo` (2.21): the StableHLO version that this
  TensorFlow reads.
- `tensorflow.python.eager.record` (2.21): whether any tape watches, so that an eager call
  without one need not record how to differentiate it; recording that without the detour of
  `tf.custom_gradient`, which costs more than the operation.
- `TFE_Py_FastPathExecute` with `tensorflow.python.eager.context` and `core` (2.21): how generated ops
  run eagerly. Called directly it takes only those attributes that are not the op's defaults, which
  saves a third of the time of an eager call.
- `tensorflow.python.saved_model.save_context` and the name `internal_grad_fn` (2.21): whether the gradient
  that a SavedModel will hold is being traced. `tf.saved_model.save` says nothing to the gradient function of
  `tf.custom_gradient`, and what that function calls cannot be differentiated after loading.
- `tensorflow.python.compiler.xla.experimental.xla_sharding` (2.21): the XlaSharding op with the
  protocol buffer that it takes.
- `EagerTensor` and its `_shape_tuple` and `_datatype_enum` (2.21): shape and dtype as plain values,
  in a tenth of the time of `shape.as_list()` and `dtype`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python import pywrap_tfe
from tensorflow.python.compiler.xla.experimental import xla_sharding
from tensorflow.python.eager import context, core, record
from tensorflow.python.framework.ops import EagerTensor, raise_from_not_ok_status
from tensorflow.python.saved_model import save_context

__all__ = [
    "ModuleCall",
    "annotate_tiles",
    "any_tape_watches",
    "eager_layout",
    "newest_calling_convention_version",
    "record_gradient",
    "stablehlo_version",
    "traces_saved_gradient",
    "without_recording",
]


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
            "Tout": [dtype.as_datatype_enum for dtype in result_dtypes],
            "Sout": result_shapes,
            "platforms": platforms,
            "disabled_checks": disabled_checks,
        }
        if calling_convention_version >= 10:
            self._attributes["use_shardy_partitioner"] = uses_shardy
        self._eager_attributes = tuple(
            item
            for name, value in self._attributes.items()
            if value or name in ("Tout", "Sout")
            for item in (name, value)
        )

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the op on the kept arguments of the module, or adds it to the graph."""
        current = context.context()
        if current.executing_eagerly():
            try:
                results: list[tf.Tensor] = pywrap_tfe.TFE_Py_FastPathExecute(
                    current, "XlaCallModule", None, arguments, *self._eager_attributes
                )
                return results
            except core._NotOkStatusException as error:
                raise_from_not_ok_status(error, None)
            except core._FallbackException:
                pass  # a tensor of a kind that only the long way takes
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


def without_recording() -> Any:
    """A context in which tapes do not see what happens."""
    return record.stop_recording()


def record_gradient(
    results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], gradient: Callable[..., Sequence[tf.Tensor | None]]
) -> None:
    """Tells the tapes that watch how to differentiate eager results with respect to their arguments."""
    record.record_operation("JaxtfCall", results, arguments, gradient)


def traces_saved_gradient() -> bool:
    """Whether what runs now becomes part of the gradient of an op in a SavedModel."""
    name = getattr(tf.compat.v1.get_default_graph(), "name", "")
    return bool(save_context.in_save_context()) and name.startswith("internal_grad_fn")


def eager_layout(values: Sequence[Any]) -> list[tuple[tuple[int, ...], int]] | None:
    """Shape and number of the dtype of each value; None if one of them is no eager tensor."""
    layout = []
    for value in values:
        if type(value) is not EagerTensor:
            return None
        layout.append((value._shape_tuple(), value._datatype_enum()))
    return layout


def annotate_tiles(tensor: tf.Tensor, devices: Any) -> tf.Tensor:
    """The tensor with an XlaSharding op that gives each of an array of devices its tile."""
    return xla_sharding.tile(tensor, devices, use_sharding_op=True)
