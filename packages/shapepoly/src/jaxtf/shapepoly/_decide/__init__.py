"""What holds for all sizes that constraints allow.

In: expressions and constraints. Out: bounds, a decision, a witness, advice.
May import: `_errors`, `_isl`, `_expressions`.
"""
