"""Sizes of arguments to the values of dimension variables.

In: shapes with dimensions, and what sizes there are. Out: how each variable is computed, and what is to be checked.
May import: `_errors`, `_expressions`, `_decide`, `_dimensions`, `_polyshape`; `arguments` imports JAX.
"""
