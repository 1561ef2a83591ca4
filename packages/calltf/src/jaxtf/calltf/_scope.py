"""The sizes of a call, in a scope of their own: that of the caller, with what operations require besides.

An operation may need a relation of sizes that does not hold for all that the caller's constraints allow: `top_k` of 2
needs 2 rows. TensorFlow refuses to run it otherwise, and so does the program: it looks at the sizes when it runs
(`_guards`). While the trace is interpreted such a `Requirement` is a constraint like the caller's.

The caller's sizes are jaxtf's or JAX's; those in here are always jaxtf's. Knows sizes; nothing of arrays or TensorFlow.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtf.calltf._jax import (
    constraint_texts,
    dimension_variable,
    dimension_variables,
    is_symbolic,
)
from jaxtf.calltf._symbolic_values import Shape, larger, smaller
from jaxtf.shapepoly import SymbolicScope, symbolic_shape

RELATIONS = {">=": operator.ge, "==": operator.eq}
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": larger, "min": smaller}


@dataclass(frozen=True)
class Requirement:
    """A relation of sizes, without which TensorFlow refuses an operation.

    Attributes:
      left: A size.
      relation: `>=` or `==`.
      right: Another one.
      operation: The operation, and what it does.
    """

    left: Any
    relation: str
    right: Any
    operation: str

    @property
    def text(self) -> str:
        """The relation, as a constraint."""
        return f"{self.left} {self.relation} {self.right}"


class Required(Exception):
    """A requirement that was not known when the interpretation began, which begins again with it."""

    def __init__(self, requirement: Requirement):
        self.requirement = requirement


class CallScope:
    """The scope of a call.

    Args:
      sizes: The symbolic sizes of the arguments, as the caller has them; one at least.
      requirements: What operations require besides the caller's constraints.

    Attributes:
      requirements: These.
      variables: The dimension variables by name: each as a size in here, which is an integer or an expression of others
        where an equality says so.

    Raises:
      ScopeError: There are no such sizes.
      InconclusiveDimensionOperation: A requirement has a divisor that may be 0.
    """

    def __init__(self, sizes: Sequence[Any], requirements: Sequence[Requirement] = ()):
        self._given = sizes[0]
        self.requirements = tuple(requirements)
        texts = [*constraint_texts(sizes[0]), *(requirement.text for requirement in requirements)]
        self._scope = SymbolicScope(texts)
        names = sorted(set[str]().union(*map(dimension_variables, sizes)))
        self.variables = {name: symbolic_shape(name, scope=self._scope)[0] for name in names}
        self.numbers = sorted({int(number) for text in texts for number in re.findall(r"\d+", text)})

    def own(self, shape: Sequence[Any]) -> Shape:
        """A shape of the caller, in here."""
        return tuple(
            symbolic_shape(str(size), scope=self._scope)[0] if is_symbolic(size) else int(size) for size in shape
        )

    def given(self, shape: Sequence[Any]) -> Shape:
        """A shape, as the caller has it; what is not negative because of a requirement is not negative there either."""
        return tuple(self._as_given(size) if is_symbolic(size) else int(size) for size in shape)

    def _as_given(self, size: Any) -> Any:
        variables = {name: dimension_variable(name, self._given) for name in dimension_variables(size)}
        value = evaluated_text(str(size), variables)
        return larger(value, 0) if self.requirements else value

    def allows(self, variables: Mapping[str, int]) -> bool:
        """Whether all constraints and requirements hold, as far as these values tell."""
        if min(variables.values(), default=1) < 1:
            return False
        for constraint in self._scope.constraints:
            text = constraint.difference_text
            if names_in(text) <= variables.keys():
                try:
                    value = evaluated_text(text, variables)
                except ZeroDivisionError:
                    return False
                if value < 0 or (constraint.relation == "==" and value):
                    return False
        return True


@functools.lru_cache(1024)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.replace("^", "**"), mode="eval").body


def names_in(text: str) -> set[str]:
    """The dimension variables in the text of a size."""
    return {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)} - _FUNCTIONS.keys()


def evaluated_text(text: str, variables: Mapping[str, Any]) -> Any:
    """The value of the text of a size for integers, or for sizes of any kind.

    >>> evaluated_text("min(b^2, 10) - floordiv(b, 2)", {"b": 3})
    8
    """
    return _evaluated(_parsed(text), variables)


def _evaluated(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return variables[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_evaluated(operand, variables)
        case ast.BinOp(left, operation, right):
            return _OPERATORS[type(operation)](_evaluated(left, variables), _evaluated(right, variables))
        case ast.Call(ast.Name("floordiv" | "mod" as function), [dividend, ast.Constant(int(by))]) if by > 1:
            return _divided(function, _evaluated_terms(dividend, variables), by)
        case ast.Call(ast.Name(function), operands):
            return functools.reduce(_FUNCTIONS[function], [_evaluated(operand, variables) for operand in operands])
    raise AssertionError(f"not the text of a size: {ast.dump(node)}")


def _evaluated_terms(node: ast.expr, variables: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """The terms of a sum, each an integer and what it multiplies."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return [*_evaluated_terms(left, variables), *_evaluated_terms(right, variables)]
        case ast.BinOp(left, ast.Sub(), right):
            negated = [(-factor, value) for factor, value in _evaluated_terms(right, variables)]
            return [*_evaluated_terms(left, variables), *negated]
        case ast.BinOp(ast.Constant(int(factor)), ast.Mult(), right):
            return [(factor, _evaluated(right, variables))]
    return [(1, _evaluated(node, variables))]


def _divided(function: str, terms: Sequence[tuple[int, Any]], by: int) -> Any:
    """A quotient or remainder of a sum by an integer.

    A size is written `mod(1099999*q + 1, 1100000)` for `mod(1 - q, 1100000)`. In a module numbers have 32 bits, which
    the former leaves soon: factors of more than half the divisor are taken as negative ones.
    """
    large = [2 * factor > by for factor, _ in terms]
    dividend = sum((factor - by * is_large) * value for (factor, value), is_large in zip(terms, large, strict=True))
    value = _FUNCTIONS[function](dividend, by)
    if function == "mod":
        return value
    return sum((value for (_, value), is_large in zip(terms, large, strict=True) if is_large), start=value)
