"""Native mode: a function as one XlaCallModule op.

In: an `Exported` for the TensorFlow that is to run it. Out: the op.
May import: `_errors`, `_tf`, `_values`, `_function`.
"""
