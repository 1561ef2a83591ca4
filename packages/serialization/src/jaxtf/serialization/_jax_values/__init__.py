"""What JAX has and the record holds in a form of its own: avals, effects, shardings, symbolic sizes.

In: a value of JAX or of the record. Out: the other one.
May import: `_errors`, `_jax`, `_record`. Imports JAX.
"""
