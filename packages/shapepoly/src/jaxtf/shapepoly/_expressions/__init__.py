"""Dimension expressions: integer polynomials with floordiv, mod and max, in normal form; their texts.

In: a text, or two expressions. Out: an expression, a text, a value for known sizes.
May import: `_errors`. Knows no constraints and no scopes.
"""
