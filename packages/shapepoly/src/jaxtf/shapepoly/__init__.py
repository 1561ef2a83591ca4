"""Symbolic dimensions for array programs: expressions, scopes, constraints, exact decisions."""
