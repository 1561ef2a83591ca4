"""Values between TensorFlow, JAX and NumPy: dtypes, structures, names, containers, sizes.

In: what a caller gave. Out: tensors, their dtypes and paths.
May import: `_errors`, `_tf`. Imports TensorFlow, no JAX.
"""
