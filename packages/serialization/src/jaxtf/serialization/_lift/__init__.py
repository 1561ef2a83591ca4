"""From a StableHLO module to a JAX function: a `Program` evaluated with `jax.lax` while JAX traces.

In: an `Exported`, or a module of anyone. Out: a function that JAX differentiates, vectorizes, lowers like any other.
May import: `_errors`, `_jax`, `_jaxlib`, `_record`, `_jax_values`, `_program`, `_call`. Imports JAX.
"""
