"""The functions that convert: of JAX, of an artifact, of a module.

In: a function, its options, and at each call its arguments. Out: tensors in the structure of the results.
May import: `_errors`, `_jax`, `_tf`, `_values`, `_function`, `_native`, `_graph`.
"""
