"""The record of one exported function, and the parts that it is made of; no JAX.

In: what an export found out, or what an artifact holds. Out: `Exported`, with avals, trees, shardings, effects,
platforms, checks and versions, each frozen and compared by value.
May import: `_errors`, `_bytecode`. What `Exported` does with JAX is imported at first use.
"""
