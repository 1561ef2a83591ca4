"""A program with its weights, in one file; no JAX, unless it is called.

In: an `Exported` and pytrees of arrays, or a file that holds both. Out: the other one; an `ExportedModel`.
May import: all that needs no JAX; what a call does by JAX is imported at first use.
"""
