"""One XlaCallModule op with nothing of ours around it: what a converted function cannot be faster than."""

from collections.abc import Callable
from typing import Any

import jax
import tensorflow as tf
from jaxlib.mlir.dialects import stablehlo as dialect
from tensorflow.compiler.mlir.stablehlo import stablehlo
from tensorflow.compiler.tf2xla.python import xla

__all__ = ["bare_op"]


def bare_op(fun: Callable[..., Any], *specifications: Any) -> Callable[..., tf.Tensor]:
    """TensorFlow's own wrapper of the op, over a module that JAX lowered once, in the version that it reads.

    Args:
      fun: A function of arrays with one array for its result.
      specifications: Of its arguments, flat.
    """
    lowered = jax.jit(fun).lower(*specifications)
    module = dialect.serialize_portable_artifact_str(str(lowered.compiler_ir()), stablehlo.get_current_version())
    [result] = jax.tree.leaves(lowered.out_info)
    options = {"Tout": [tf.as_dtype(result.dtype.name)], "Sout": [result.shape], "platforms": ["CPU"]}
    return lambda *arguments: xla.call_module(list(arguments), version=9, module=module, **options)[0]
