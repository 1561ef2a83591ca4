"""From a JAX function to a record.

In: a function, specifications of its arguments, and for whom it is exported. Out: an `Exported`.
May import: `_errors`, `_jax`, `_record`, `_jax_values`, `_program`. Imports JAX, except for the entrance.
"""
