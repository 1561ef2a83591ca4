"""A StableHLO module as MLIR has it: parsed, looked through, changed, written for a version.

In: a module, or its bytes. Out: the same, what it calls, or a module for another version.
May import: `_errors`, `_jax`, `_jaxlib`, `_bytecode`, `_record`, `_jax_values`. Imports jaxlib; its files `module`,
`operations`, `portable_artifact` and `replaced_calls` import JAX too.
"""
