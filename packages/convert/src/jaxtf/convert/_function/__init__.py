"""An exported function on flat tensors: constants, gradients, eager calls.

In: an `Exported` of serialization and tensors. Out: tensors; TensorFlow finds the VJP.
May import: `_errors`, `_tf`, `_values`. Imports TensorFlow; `eager` imports JAX.
"""
