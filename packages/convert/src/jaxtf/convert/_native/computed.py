"""What TensorFlow does not compute as a module says: written otherwise where that can be, else refused.

TensorFlow compiles an XlaCallModule op for one device. In a module for several, XLA takes a collective of one device
for what it is given (a sum over two devices is half of it), runs none of others, or ends the process. What is for one
device is written without, and so are operations that its release of XLA misreads: by the exporter, and for artifacts of
others, or of earlier releases, here.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._errors import NativeModeUnsupported
from jaxtf.serialization import Exported, VersionError
from jaxtf.serialization.interop import computes_by_devices, misread_by_xla

__all__ = ["as_computed"]

# On one device TensorFlow computes them as they say.
_AS_SAID = frozenset(
    (
        *("stablehlo.all_reduce", "stablehlo.all_to_all", "stablehlo.partition_id", "stablehlo.replica_id"),
        *("SPMDFullToShardShape", "SPMDShardToFullShape"),
    )
)

_TPU = ("tpu",)


def as_computed(exported: Exported) -> Exported:
    """The function with a module that TensorFlow computes as it says.

    Modules for several devices that are for TPU alone are left as they are: there TensorFlow partitions programs.

    Raises:
      NativeModeUnsupported: It computes by the devices of a mesh; or it is to be rewritten, and JAX is not here.
    """
    module = exported.mlir_module_serialized
    by_devices = computes_by_devices(module)
    if exported.nr_devices > 1:
        if by_devices and exported.platforms != _TPU:
            raise _for_several(exported, by_devices)
        by_devices = ()
    if not by_devices and not misread_by_xla(module):
        return exported
    remedy = "compute it differently, or use graph mode (native_serialization=False)"
    try:
        written = exported.with_stablehlo_version(exported.stablehlo_version)
    except (ImportError, VersionError):
        written, remedy = exported, f"rewrite the artifact where JAX is: {_upgrade()}"
    module = written.mlir_module_serialized
    left = [*sorted(set(by_devices and computes_by_devices(module)) - _AS_SAID), *misread_by_xla(module)]
    if left:
        raise NativeModeUnsupported(
            f"'{exported.fun_name}' has operations that TensorFlow {tf.__version__} does not compute as they say\n"
            f"  found:  {', '.join(left)}\n"
            f"  remedy: {remedy}"
        )
    return written


def _for_several(exported: Exported, found: tuple[str, ...]) -> NativeModeUnsupported:
    return NativeModeUnsupported(
        f"'{exported.fun_name}' computes by the devices of a mesh, {exported.nr_devices} of them; a TensorFlow graph "
        "runs on one\n"
        f"  found:  {', '.join(found)}, as jax.shard_map and jax.pmap have them\n"
        "  remedy: convert the function for a mesh of one device; for TPUs, where TensorFlow partitions the program, "
        "export it for them alone: native_serialization_platforms=['tpu']"
    )


def _upgrade() -> str:
    """The command that rewrites an artifact for this TensorFlow."""
    return f"jaxtf-artifact upgrade FILE -o OUT --tensorflow-version {tf.__version__}"
