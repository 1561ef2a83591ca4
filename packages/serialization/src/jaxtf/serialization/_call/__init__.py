"""From a record to JAX: the primitive that calls it, its derivatives, batches and devices.

In: an `Exported` and arguments. Out: results, traced or computed.
May import: `_errors`, `_jax`, `_record`, `_jax_values`, `_program`. Imports JAX.
"""
