"""Symbolic dimensions: entries of a shape that are not integers.

A `Dimension` is an expression in a scope. It behaves as an integer as far as one answer is right for
all sizes: arithmetic gives dimensions (or integers, where the result is constant), comparisons give
booleans or raise, and with floats or arrays it turns into a JAX array. JAX traces with dimensions by
the attributes at the end of the class; it needs no call of registration, because looking up
`dimension_as_value`, the first thing JAX does, makes sure that JAX knows the class.

Equality is total: True where both denote the same value for all sizes, otherwise False, also where
they are equal for some sizes; a few functions of JAX, whose values would be wrong there, get an error
(`branches`). What can only be one integer is that integer, and no dimension equals an integer. Equal
dimensions hash equal, because the hash is taken from the values at a few fixed sizes.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol, Self, cast, overload

from jaxtf.shapepoly._dimensions import comparison
from jaxtf.shapepoly._dimensions.branches import DECIDED_BY_EQUALITY, decided_by
from jaxtf.shapepoly._dimensions.operands import as_integer, is_array
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._errors import JaxRequiredError, ScopeError
from jaxtf.shapepoly._expressions.evaluation import evaluate_expression, evaluate_integer
from jaxtf.shapepoly._expressions.expression import Expression, integer
from jaxtf.shapepoly._expressions.parser import parse_shape
from jaxtf.shapepoly._inconclusive import inconclusive
from jaxtf.shapepoly._loaded import jax_is_loaded

Binary = Callable[[Any, Any], Any]
Method = Callable[["Dimension", Any], Any]


class _Arithmetic(Protocol):
    """An operator for type checkers: of integers and dimensions a size, of anything else what JAX makes of it."""

    @overload
    def __call__(self, other: int | Dimension, /) -> int | Dimension: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class _Division(Protocol):
    """The same of `divmod`."""

    @overload
    def __call__(self, other: int | Dimension, /) -> tuple[int | Dimension, int | Dimension]: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class _Power(Protocol):
    """The same of `**`: what a dimension is the exponent of is an array."""

    @overload
    def __call__(self, other: int, /) -> int | Dimension: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class _Comparison(Protocol):
    """The same of `>=` and its like."""

    @overload
    def __call__(self, other: int | Dimension, /) -> bool: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


def _arithmetic(method: Method) -> _Arithmetic:
    return cast(_Arithmetic, method)


def _division(method: Method) -> _Division:
    return cast(_Division, method)


def _power(method: Method) -> _Power:
    return cast(_Power, method)


def _comparison(method: Method) -> _Comparison:
    return cast(_Comparison, method)


class Dimension:
    """A size known by an expression of dimension variables, such as `b`, `2*d` or `max(a, b)`.

    Made by `symbolic_shape` and by arithmetic, immutable.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> a, b = symbolic_shape("a, b")
    >>> (a + b) * 2 - b, a % 1, a + 1 > 0
    (2*a + b, 0, True)
    """

    __slots__ = ("_expression", "_hash", "_scope", "_text")

    __array_priority__ = 1000.0
    """NumPy's scalars and arrays leave binary operations with a dimension to the dimension."""

    def __init__(self, expression: Expression, scope: SymbolicScope) -> None:
        self._expression = expression
        self._scope = scope
        self._hash: int | None = None
        self._text: str | None = None
        if jax_is_loaded() and "jaxtf.shapepoly._jax" not in sys.modules:
            compatibility_module()

    @property
    def scope(self) -> SymbolicScope:
        """The scope that the dimension belongs to."""
        return self._scope

    @property
    def expression(self) -> Expression:
        """The expression; for the packages of jaxtf."""
        return self._expression

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._scope.algebra.text(self._expression)
        return self._text

    def __repr__(self) -> str:
        return str(self)

    # Integers

    @_arithmetic
    def __add__(self, other: Any) -> Any:
        operand = self._operand(other, "+")
        if operand is None:
            return self._with_array(other, operator.add)
        return self._make(self._expression + operand, other)

    @_arithmetic
    def __radd__(self, other: Any) -> Any:
        operand = self._operand(other, "+")
        if operand is None:
            return self._with_array(other, operator.add, reflected=True)
        return self._make(operand + self._expression, other)

    @_arithmetic
    def __sub__(self, other: Any) -> Any:
        operand = self._operand(other, "-")
        if operand is None:
            return self._with_array(other, operator.sub)
        return self._make(self._expression - operand, other)

    @_arithmetic
    def __rsub__(self, other: Any) -> Any:
        operand = self._operand(other, "-")
        if operand is None:
            return self._with_array(other, operator.sub, reflected=True)
        return self._make(operand - self._expression, other)

    @_arithmetic
    def __mul__(self, other: Any) -> Any:
        operand = self._operand(other, "*")
        if operand is None:
            return self._with_array(other, operator.mul)
        return self._make(self._expression * operand, other)

    @_arithmetic
    def __rmul__(self, other: Any) -> Any:
        operand = self._operand(other, "*")
        if operand is None:
            return self._with_array(other, operator.mul, reflected=True)
        return self._make(operand * self._expression, other)

    @_arithmetic
    def __floordiv__(self, other: Any) -> Any:
        operand = self._operand(other, "//")
        if operand is None:
            return self._with_array(other, operator.floordiv)
        return self._wrap(self._scope.algebra.floordiv(self._expression, operand))

    @_arithmetic
    def __rfloordiv__(self, other: Any) -> Any:
        operand = self._operand(other, "//")
        if operand is None:
            return self._with_array(other, operator.floordiv, reflected=True)
        return self._wrap(self._scope.algebra.floordiv(operand, self._expression))

    @_arithmetic
    def __mod__(self, other: Any) -> Any:
        operand = self._operand(other, "%")
        if operand is None:
            return self._with_array(other, operator.mod)
        return self._wrap(self._scope.algebra.mod(self._expression, operand))

    @_arithmetic
    def __rmod__(self, other: Any) -> Any:
        operand = self._operand(other, "%")
        if operand is None:
            return self._with_array(other, operator.mod, reflected=True)
        return self._wrap(self._scope.algebra.mod(operand, self._expression))

    @_division
    def __divmod__(self, other: Any) -> Any:
        operand = self._operand(other, "divmod")
        if operand is None:
            return self._with_array(other, divmod)
        return self // other, self % other

    @_division
    def __rdivmod__(self, other: Any) -> Any:
        operand = self._operand(other, "divmod")
        if operand is None:
            return self._with_array(other, divmod, reflected=True)
        return other // self, other % self

    @_power
    def __pow__(self, other: Any) -> Any:
        operand = self._operand(other, "**")
        if operand is None:
            return self._with_array(other, operator.pow)
        exponent = operand.as_integer
        if exponent is None:
            return self._with_array(other, operator.pow)
        if exponent < 0:
            raise ValueError(
                f"'{self}' to the power of {exponent}: a size has no negative powers\n"
                f"  for the power as a float write jnp.float32(d) ** {exponent}"
            )
        return self._make(self._expression.to_the_power(exponent), None)

    def __rpow__(self, other: Any) -> Any:
        return self._with_array(other, operator.pow, reflected=True)

    def __neg__(self) -> Dimension:
        return Dimension(-self._expression, self._scope)

    def __pos__(self) -> Dimension:
        return self

    def __abs__(self) -> int | Dimension:
        return self.max(-self)

    def __truediv__(self, other: Any) -> Any:
        return self._with_array(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with_array(other, operator.truediv, reflected=True)

    def __bool__(self) -> bool:
        return comparison.nonzero(self._scope, self._expression)

    def __int__(self) -> int:
        raise inconclusive(
            f"{_no_constant(self)}. Instead of int(d) write d: it adds, multiplies and\n"
            f"  divides as an integer does, and can be used in shapes; jnp.array(d) is its value as an array"
        )

    def __index__(self) -> int:
        # JAX asks every size, to see by the TypeError that it is not an integer.
        raise TypeError(
            f"{_no_constant(self)}; range(d), NumPy's shapes and the indices of\n"
            f"  sequences need it now. Instead write jax.lax.fori_loop(0, d, ...), jnp.zeros((d,)), jnp.arange(d);\n"
            f"  jnp.array(d) is its value as an array"
        )

    # Comparisons

    def __eq__(self, other: object) -> Any:
        return True if self is other else self._equals(other, sys._getframe(1))

    def __ne__(self, other: object) -> Any:
        equal = True if self is other else self._equals(other, sys._getframe(1))
        if isinstance(equal, bool):
            return not equal
        return equal if equal is NotImplemented else ~equal

    def _equals(self, other: object, asking: FrameType) -> Any:
        if isinstance(other, Dimension):
            if self._scope is not other._scope:
                return False
            equal = self._scope.algebra.equal(self._expression, other._expression)
            if not equal and asking.f_code.co_name in DECIDED_BY_EQUALITY:
                self._check_unequal(other._expression, asking)
            return equal
        if (value := as_integer(other)) is not None:
            if self._scope.algebra.logger is not None:
                self._scope.algebra.log_integer(self._expression, other)
            if asking.f_code.co_name in DECIDED_BY_EQUALITY:
                self._check_unequal(integer(value), asking)
            return False  # what can only be one integer is that integer, and no dimension
        return self._with_array(other, operator.eq) if is_array(other) else NotImplemented

    def _check_unequal(self, other: Expression, asking: FrameType) -> None:
        """Raises where values depend on whether the two are equal, in the function that asks, and they may be."""
        if (what := decided_by(asking)) is not None:
            comparison.unequal(self._scope, self._expression, other, what)

    def __hash__(self) -> int:
        if self._hash is None:
            sample = self._scope.algebra.decider.sample(self._expression)
            if not sample:
                lower, upper = self._scope.algebra.decider.bounds(self._expression)
                sample = (int(lower),) if lower == upper else ()
            # Never that of an integer, which no dimension equals: JAX keeps one aval of those that are equal
            # and hash equal, for the whole process.
            self._hash = hash((id(self._scope), sample))
        return self._hash

    @_comparison
    def __ge__(self, other: Any) -> Any:
        operand = self._operand(other, ">=")
        if operand is None:
            return self._with_array(other, operator.ge)
        return comparison.at_least(self._scope, self._expression, operand)

    @_comparison
    def __le__(self, other: Any) -> Any:
        operand = self._operand(other, "<=")
        if operand is None:
            return self._with_array(other, operator.le)
        return comparison.at_least(self._scope, operand, self._expression)

    @_comparison
    def __gt__(self, other: Any) -> Any:
        operand = self._operand(other, ">")
        if operand is None:
            return self._with_array(other, operator.gt)
        return comparison.greater(self._scope, self._expression, operand)

    @_comparison
    def __lt__(self, other: Any) -> Any:
        operand = self._operand(other, "<")
        if operand is None:
            return self._with_array(other, operator.lt)
        return comparison.greater(self._scope, operand, self._expression)

    # Copies share the scope: everything is immutable

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[str, SymbolicScope], Dimension], tuple[str, SymbolicScope]]:
        return (_from_text, (str(self), self._scope))

    # What JAX looks for

    def max(self, other: int | Dimension) -> int | Dimension:
        """Returns the larger one, as a dimension; never raises for want of a decision."""
        return self._wrap(self._scope.algebra.maximum(self._expression, self._required(other, "max")))

    def min(self, other: int | Dimension) -> int | Dimension:
        """Returns the smaller one, as a dimension; never raises for want of a decision."""
        return self._wrap(self._scope.algebra.minimum(self._expression, self._required(other, "min")))

    def rmax(self, other: int | Dimension) -> int | Dimension:
        """Returns the larger one, with the operands the other way round."""
        return self.max(other)

    def rmin(self, other: int | Dimension) -> int | Dimension:
        """Returns the smaller one, with the operands the other way round."""
        return self.min(other)

    def _get_vars(self) -> set[str]:
        """Returns the names of the variables; JAX collects them from the argument shapes."""
        return set(self._scope.algebra.variables(self._expression))

    def _evaluate(self, env: Mapping[str, Any]) -> Any:
        """Returns the value, given the values of variables by name: integers, or JAX values."""
        missing = self._expression.variables() - env.keys()
        if missing:
            names = ", ".join(f"'{name}'" for name in sorted(missing))
            raise ValueError(f"the value of '{self}' needs {names}, which no shape of the arguments determines")
        integers = {name: value for name, size in env.items() if (value := as_integer(size)) is not None}
        if len(integers) == len(env):
            return evaluate_integer(self._expression, integers)
        return evaluate_expression(self._expression, env, compatibility_module().JaxOperations())

    @property
    def dimension_as_value(self) -> Callable[[], Any]:
        """A function of no arguments that returns the value as a JAX scalar.

        JAX takes an object for a symbolic dimension if it has this attribute.
        """
        if jax_is_loaded():
            compatibility_module()
        return self._as_jax_value

    @property
    def __jax_array__(self) -> Callable[[], Any]:
        return self.dimension_as_value

    def _as_jax_value(self) -> Any:
        return compatibility_module(f"the value of '{self}' as an array").dimension_value(self)

    # Operands

    def _make(self, expression: Expression, other: object) -> int | Dimension:
        """Returns what an operand makes of this dimension, as an integer where it can only be one."""
        algebra = self._scope.algebra
        if not (algebra.is_free and expression.is_plain):  # adding an integer, or a multiple, fixes no size
            expression = algebra.simplified(expression) if type(other) is int else algebra.settled(expression)
        constant = expression.as_integer
        return Dimension(expression, self._scope) if constant is None else constant

    def _wrap(self, expression: Expression) -> int | Dimension:
        """Returns an expression of the algebra as a dimension of this scope, or as an integer where it is constant."""
        constant = expression.as_integer
        return Dimension(expression, self._scope) if constant is None else constant

    def _operand(self, other: Any, operation: str) -> Expression | None:
        """Returns the expression of an integer or a dimension; None for anything else."""
        if type(other) is int:
            return integer(other)
        if isinstance(other, Dimension):
            self._check_scope(other, operation)
            return other._expression
        value = as_integer(other)
        return None if value is None else integer(value)

    def _required(self, other: Any, operation: str) -> Expression:
        """Returns the expression of an integer or a dimension; raises for anything else."""
        operand = self._operand(other, operation)
        if operand is None:
            raise TypeError(f"{operation} of the symbolic dimension '{self}' and {other!r}, which is not an integer")
        return operand

    def _check_scope(self, other: Dimension, operation: str) -> None:
        """Raises where the other dimension lives in another scope."""
        if self._scope is not other._scope:
            raise ScopeError(
                f"Invalid mixing of symbolic scopes for '{self}' {operation} '{other}'.\n"
                f"  '{self}' belongs to a {self._scope}\n"
                f"  '{other}' belongs to a {other._scope}\n"
                f"  make them in one call of symbolic_shape, or pass scope={self}.scope to the second call\n"
                "  if you made only one of them, the other was kept from an earlier trace, as by a library that caches "
                "what it computes from sizes: empty that cache before each trace, or fill it with constant sizes first"
            )

    def _with_array(self, other: Any, operation: Binary, *, reflected: bool = False) -> Any:
        """Applies an operation to the JAX value of this dimension and a float or an array."""
        if isinstance(other, Dimension):
            self._check_scope(other, operation.__name__)
        elif not (isinstance(other, int | float | complex) or is_array(other)):
            return NotImplemented
        value = self.dimension_as_value()
        operand = other.dimension_as_value() if isinstance(other, Dimension) else other
        return operation(operand, value) if reflected else operation(value, operand)


def _no_constant(dimension: Dimension) -> str:
    """Returns the beginning of the error for a dimension used in place of an integer."""
    return (
        f"Symbolic dimension '{dimension}' used in a context that requires a constant.\n"
        f"  its value is known only when the program runs"
    )


def _from_text(text: str, scope: SymbolicScope) -> Dimension:
    """Returns the dimension that prints as a text."""
    (parsed,) = parse_shape(text, scope.algebra).dimensions
    assert parsed.value is not None, "a dimension does not print as a placeholder"
    return Dimension(parsed.value, scope)


def compatibility_module(wanted: str = "tracing with symbolic dimensions") -> Any:
    """Returns the module that knows JAX; importing it makes JAX know our class."""
    if not jax_is_loaded():
        try:
            import jax  # noqa: F401
        except ImportError as error:
            raise JaxRequiredError(f"{wanted} needs JAX; install jaxtf-shapepoly[jax]") from error
    from jaxtf.shapepoly import _jax

    return _jax
