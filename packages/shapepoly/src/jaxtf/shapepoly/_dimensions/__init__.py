"""`Dimension`: an expression in its scope, with the arithmetic and the comparisons of integers.

In: texts, constraints, dimensions. Out: dimensions, and answers that are proved.
May import: `_errors`, `_expressions`, `_decide`.
"""
