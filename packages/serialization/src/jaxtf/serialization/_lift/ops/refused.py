"""Operations that have no function of JAX, with the reason for each."""

from __future__ import annotations

from jaxtf.serialization._lift.registry import refuses
from jaxtf.serialization._program.bound import COLLECTIVES, EFFECTS, PYTHON_CALLBACKS

refuses(
    *COLLECTIVES,
    "custom_call.SPMDFullToShardShape",
    "custom_call.SPMDShardToFullShape",
    reason="it computes with the devices of a mesh that the module has and a JAX function does not",
)
refuses(
    "stablehlo.partition_id",
    "stablehlo.replica_id",
    reason="it asks which of several devices runs it, by numbers of the module",
)
refuses(
    *EFFECTS,
    reason="it orders effects, such as input and output while it runs",
)
refuses(
    "stablehlo.async_start", "stablehlo.async_done", reason="it runs concurrently with others, as a compiler decides"
)
refuses(
    *PYTHON_CALLBACKS,
    reason="it calls back into the Python process that traced it",
)
refuses("custom_call.tf.call_tf_function", reason="it calls a TensorFlow function by name, which JAX does not have")
refuses("stablehlo.rng", reason="its numbers depend on the state of the device; use jax.random")
refuses("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize", reason="JAX has no arrays of quantized numbers")
refuses("stablehlo.einsum", "stablehlo.unary_einsum", reason="no producer writes it any more; use dot_general")
refuses("chlo.ragged_dot", reason="JAX's function for it chooses other modes by itself; export it decomposed")
refuses("chlo.scan", reason="an experimental operation without a specification")
refuses("chlo._asin_acos_kernel", reason="an internal step of the decomposition of chlo.asin and chlo.acos")
refuses("custom_call.AllocateBuffer", reason="its elements are not defined")
refuses(
    "custom_call.tpu_custom_call",
    "custom_call.mosaic_gpu_v2",
    reason="it is a kernel for one kind of device, for which JAX has no function",
)
