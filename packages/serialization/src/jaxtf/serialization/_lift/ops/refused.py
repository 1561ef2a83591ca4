"""Operations that have no function of JAX, with the reason for each."""

from __future__ import annotations

from jaxtf.serialization._lift.registry import refuses

refuses(
    *(
        f"stablehlo.{name}"
        for name in (
            "all_gather",
            "all_reduce",
            "all_to_all",
            "collective_broadcast",
            "collective_permute",
            "collective_reduce",
            "cross-replica-sum",
            "reduce_scatter",
        )
    ),
    "sdy.manual_computation",
    "custom_call.SPMDFullToShardShape",
    "custom_call.SPMDShardToFullShape",
    reason="it computes with the devices of a mesh that the module has and a JAX function has not",
)
refuses(
    "stablehlo.partition_id",
    "stablehlo.replica_id",
    reason="it asks which of several devices runs it, by numbers of the module",
)
refuses(
    *(f"stablehlo.{name}" for name in ("after_all", "create_token", "infeed", "outfeed", "send", "recv")),
    reason="it orders effects, such as input and output while it runs",
)
refuses("stablehlo.async_start", "stablehlo.async_done", reason="it runs beside others, which a compiler decides")
refuses(
    *(
        f"custom_call.{name}"
        for name in (
            "xla_python_cpu_callback",
            "xla_python_gpu_callback",
            "xla_ffi_python_cpu_callback",
            "xla_ffi_python_gpu_callback",
            "xla_ffi_partitioned_python_cpu_callback",
        )
    ),
    reason="it calls back into the Python process that traced it",
)
refuses("custom_call.tf.call_tf_function", reason="it calls a TensorFlow function by name, which JAX does not have")
refuses("stablehlo.rng", reason="its numbers depend on the state of the device; use jax.random")
refuses("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize", reason="JAX has no arrays of quantized numbers")
refuses("stablehlo.einsum", "stablehlo.unary_einsum", reason="no producer writes it any more; use dot_general")
refuses("chlo.ragged_dot", reason="the function of JAX for it takes other modes by itself; export it decomposed")
refuses("chlo.scan", reason="an experimental operation without a specification")
refuses("chlo._asin_acos_kernel", reason="an internal step of the decomposition of chlo.asin and chlo.acos")
refuses("custom_call.AllocateBuffer", reason="its elements are not defined")
refuses(
    "custom_call.tpu_custom_call",
    "custom_call.mosaic_gpu_v2",
    reason="it is a kernel for one kind of device, of which JAX knows no function",
)
