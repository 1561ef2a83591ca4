"""Texts of shapes and constraints, read into expressions.

    shape       dimension ("," dimension)* [","], in parentheses or not; "..." may come last
    dimension   "_" or expression
    constraint  expression (">=" | "<=" | "==") expression
    expression  term (("+" | "-") term)*
    term        factor (("*" | "//" | "%") factor)*
    factor      ("+" | "-") factor, or atom [("^" | "**") integer]
    atom        integer, name, "(" expression ")", or operation "(" expression "," expression ")";
                for "max" and "min" also more than two expressions
    operation   "floordiv" | "mod" | "max" | "min"

Names are those of Python: letters of any script, digits and underscores; `_` alone is the placeholder, and `None` is a
name, as in JAX. A mistake raises `ShapeSpecError` with a caret under it. What an operation yields is decided by the
`Algebra` passed in; this module knows the grammar only.

Method: recursive descent over a list of tokens.
"""

import re
from collections.abc import Callable
from operator import add, mul, sub
from typing import Literal, NamedTuple, NoReturn, Protocol

from jaxtf.shapepoly._errors import ShapeSpecError
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget, OutOfSteps
from jaxtf.shapepoly._expressions.expression import Expression, degree, integer
from jaxtf.shapepoly._expressions.text import LARGEST_EXPONENT, to_text

Relation = Literal[">=", "<=", "=="]

RESERVED_NAMES = frozenset({"_platform_index"})
"""Names that JAX gives to integers of its own in a lowered module."""

_NO_NAMES = frozenset({"True", "False"})
# Texts that are not relations here: the relation to write for it, and what to add to the right side.
_OTHER_RELATIONS = {
    ">": ((">=", 1),),
    "<": (("<=", -1),),
    "=": (("==", 0),),
    "=>": ((">=", 0),),
    "=<": (("<=", 0),),
    "≥": ((">=", 0),),
    "≤": (("<=", 0),),
    **dict.fromkeys(("!=", "<>", "≠"), ((">=", 1), ("<=", -1))),
}

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([^\W\d]\w*)|(\.\.\.|//|\*\*|[<>=!]=|=[<>]|<>|[-+*%^(),<>=≥≤≠])|(\S))")
_SHAPE = "symbolic shape"
_SHOWN = 200  # characters of a text, in a message
_DEEPEST_NESTING = 64
_MOST_DIGITS = 4000  # Python prints and reads integers up to 4,300 digits
_MOST_BITS = 13_288  # of an integer with as many digits
_LARGEST_DEGREE = 4096
_LARGEST_EXPRESSION = 5000
_SUMS = {"+": add, "-": sub}


class Algebra(Protocol):
    """Makes the expressions that a text denotes."""

    def variable(self, name: str) -> Expression:
        """Returns the dimension variable of a name."""

    def floordiv(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns the floor quotient."""

    def mod(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns the remainder of the floor quotient."""

    def maximum(self, left: Expression, right: Expression) -> Expression:
        """Returns the larger one."""

    def minimum(self, left: Expression, right: Expression) -> Expression:
        """Returns the smaller one."""


class ParsedDimension(NamedTuple):
    """A dimension of a shape text: its expression (None for the placeholder `_`), and its position."""

    value: Expression | None
    position: int


class ParsedShape(NamedTuple):
    """A shape text: its dimensions, the position of `...`, if any, and the variables that the text names."""

    dimensions: tuple[ParsedDimension, ...]
    ellipsis: int | None
    names: frozenset[str]


class ParsedConstraint(NamedTuple):
    """A constraint text: `left relation right`."""

    left: Expression
    relation: Relation
    right: Expression


def parse_shape(text: str, algebra: Algebra, budget: Budget = UNBOUNDED) -> ParsedShape:
    """Reads the text of a shape.

    Raises:
      ShapeSpecError: The text is not in the grammar, or takes more steps than the budget has; the message has a caret.
    """
    return _Parser(text, _SHAPE, algebra, budget).shape()


def parse_constraint(text: str, algebra: Algebra, budget: Budget = UNBOUNDED) -> ParsedConstraint:
    """Reads the text of a constraint.

    Raises:
      ShapeSpecError: The text is not in the grammar, or takes more steps than the budget has; the message has a caret.
    """
    return _Parser(text, "constraint", algebra, budget).constraint()


def error_at(text: str, heading: str, position: int, problem: str) -> ShapeSpecError:
    """Returns the error for a problem at a position of a text; the heading says what is wrong with what."""
    text, position = _near(text, position)
    line = " ".join(text.split("\n"))
    return ShapeSpecError(f"{heading} {text!r}: {problem}\n  {line}\n  {' ' * position}^")


def _near(text: str, position: int) -> tuple[str, int]:
    """What a message shows of a text, with a position in it: of a long one what is near the position."""
    start = max(0, min(position - _SHOWN // 2, len(text) - _SHOWN))
    before = "..." if start else ""
    after = "..." if start + _SHOWN < len(text) else ""
    return f"{before}{text[start : start + _SHOWN]}{after}", position - start + len(before)


class _Token(NamedTuple):
    kind: str  # "integer", "name", "symbol" or "end"
    text: str
    position: int

    @property
    def described(self) -> str:
        return "the end of the text" if self.kind == "end" else f"'{_near(self.text, 0)[0]}'"


class _Parser:
    """Recursive descent; the methods are the rules of the grammar."""

    def __init__(self, text: str, kind: str, algebra: Algebra, budget: Budget) -> None:
        self._budget = budget
        self._text = text
        self._heading = f"syntax error in {kind}"
        self._is_shape = kind == _SHAPE
        self._algebra = algebra
        self._operations: dict[str, Callable[[Expression, Expression], Expression]] = {
            "floordiv": algebra.floordiv,
            "max": algebra.maximum,
            "min": algebra.minimum,
            "mod": algebra.mod,
        }
        self._tokens = self._tokenize()
        self._next = 0
        self._depth = 0
        self._names: set[str] = set()

    def shape(self) -> ParsedShape:
        closing = self._parenthesis_around_all()
        if closing is not None:
            del self._tokens[closing], self._tokens[0]
        dimensions: list[ParsedDimension] = []
        ellipsis: int | None = None
        while self._peek.kind != "end":
            if self._peek.text == "...":
                ellipsis = self._take().position
                self._accept(",")
                if self._peek.kind != "end":
                    self._fail(self._peek, "'...' can only be at the end of a shape")
                break
            dimensions.append(self._dimension())
            if not self._accept(",") and self._peek.kind != "end":
                self._fail(self._peek, f"expected an operator, ',' or the end, found {self._peek.described}")
        return ParsedShape(tuple(dimensions), ellipsis, frozenset(self._names))

    def constraint(self) -> ParsedConstraint:
        left = self._expression()
        relation = self._take()
        match relation.text:
            case ">=" | "<=" | "==" as symbol:
                right = self._expression()
            case other if other in _OTHER_RELATIONS:
                self._fail_with_other_relation(left, relation)
            case _:
                self._fail(relation, f"expected an operator or one of '>=', '<=', '==', found {relation.described}")
        if self._peek.kind != "end":
            self._fail(self._peek, f"expected an operator or the end, found {self._peek.described}")
        return ParsedConstraint(left, symbol, right)

    def _fail_with_other_relation(self, left: Expression, relation: _Token) -> NoReturn:
        """Raises for an unknown relation, with the one to write: sizes are integers."""
        right = self._expression()
        constraints = [
            f"'{to_text(left)} {symbol} {to_text(right + integer(more))}'"
            for symbol, more in _OTHER_RELATIONS[relation.text]
        ]
        self._fail(
            relation,
            f"there is no relation '{relation.text}', only '>=', '<=' and '=='; write {' or '.join(constraints)}"
            + (", whichever holds" if len(constraints) > 1 else ""),
        )

    def _dimension(self) -> ParsedDimension:
        token = self._peek
        if token.text == "_":
            self._take()
            return ParsedDimension(None, token.position)
        return ParsedDimension(self._expression(), token.position)

    def _expression(self) -> Expression:
        result = self._term()
        while self._peek.text in ("+", "-"):
            operator = self._take()
            result = self._apply(operator, _SUMS[operator.text], result, self._term(), result.size)
        return result

    def _term(self) -> Expression:
        result = self._factor()
        while self._peek.text in ("*", "//", "%"):
            operator = self._take()
            factor = self._factor()
            match operator.text:
                case "*":
                    result = self._apply(operator, mul, result, factor)
                case "//":
                    result = self._apply(operator, self._algebra.floordiv, result, factor)
                case _:
                    result = self._apply(operator, self._algebra.mod, result, factor)
        return result

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST_NESTING:
            self._fail(self._peek, f"more than {_DEEPEST_NESTING} levels of nesting")
        if self._accept("-"):
            result = -self._factor()
        elif self._accept("+"):
            result = self._factor()
        else:
            result = self._power()
        self._depth -= 1
        return result

    def _power(self) -> Expression:
        base = self._atom()
        if not (self._accept("^") or self._accept("**")):
            return base
        token = self._take()
        if token.kind != "integer" or len(token.text) > _MOST_DIGITS or int(token.text) > LARGEST_EXPONENT:
            self._fail(token, f"expected an integer exponent up to {LARGEST_EXPONENT}, found {token.described}")
        result = integer(1)
        for _ in range(int(token.text)):
            result = self._apply(token, mul, result, base)
        return result

    def _atom(self) -> Expression:
        token = self._take()
        if token.kind == "integer":
            if len(token.text) > _MOST_DIGITS:
                self._fail(token, f"more than {_MOST_DIGITS} digits")
            return integer(int(token.text))
        if token.kind == "name":
            return self._call(token) if self._peek.text == "(" else self._variable(token)
        if token.text != "(":
            self._fail(token, f"expected an integer, a name or '(', found {token.described}")
        result = self._expression()
        self._expect(")")
        return result

    def _variable(self, token: _Token) -> Expression:
        if token.text in self._operations:
            self._fail(token, f"'{token.text}' is an operation; write {token.text}(e1, e2)")
        if token.text == "_":
            self._fail(token, "the placeholder '_' must be alone in its dimension")
        if token.text in _NO_NAMES:
            placeholder = ", or '_' for the size that the argument has" if self._is_shape else ""
            self._fail(
                token, f"'{token.text}' names no size; write a letter, such as 'b', for a size that varies{placeholder}"
            )
        if token.text in RESERVED_NAMES:
            self._fail(token, f"the name '{token.text}' is reserved by JAX; choose another one")
        self._names.add(token.text)
        return self._algebra.variable(token.text)

    def _call(self, name: _Token) -> Expression:
        operation = self._operations.get(name.text)
        if operation is None:
            known = ", ".join(self._operations)
            self._fail(name, f"unknown operation '{name.text}'; the known operations are {known}")
        self._expect("(")
        left = self._expression()
        self._expect(",")
        result = self._apply(name, operation, left, self._expression())
        while name.text in ("max", "min") and self._accept(","):
            result = self._apply(name, operation, result, self._expression())
        self._expect(")")
        return result

    def _apply(
        self,
        token: _Token,
        operation: Callable[[Expression, Expression], Expression],
        left: Expression,
        right: Expression,
        steps: int | None = None,
    ) -> Expression:
        """Returns the result of an operation; its steps are the products of terms if they are not given."""
        try:
            self._budget.spend(left.size * right.size if steps is None else steps)
            result = operation(left, right)
        except OutOfSteps as error:
            raise error_at(self._text, self._heading, token.position, str(error)) from error
        except ZeroDivisionError as error:
            raise error_at(self._text, self._heading, token.position, "division by zero") from error
        if result.size > _LARGEST_EXPRESSION:
            self._fail(token, f"the expression has more than {_LARGEST_EXPRESSION} terms")
        if any(coefficient.bit_length() > _MOST_BITS for coefficient in result.terms.values()):
            self._fail(token, f"the expression has integers of more than {_MOST_DIGITS} digits")
        if any(degree(monomial) > _LARGEST_DEGREE for monomial in result.terms):
            self._fail(token, f"the expression has products of more than {_LARGEST_DEGREE} factors")
        return result

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._peek.text != text:
            return False
        self._take()
        return True

    def _expect(self, text: str) -> None:
        token = self._peek
        if not self._accept(text):
            self._fail(token, f"expected '{text}', found {token.described}")

    def _fail(self, token: _Token, problem: str) -> NoReturn:
        raise error_at(self._text, self._heading, token.position, problem)

    def _parenthesis_around_all(self) -> int | None:
        """Returns the index of the ')' that closes a '(' at the start, where it ends the text."""
        opened: list[int] = []
        closing: int | None = None
        for index, token in enumerate(self._tokens):
            if token.text == "(":
                opened.append(index)
            elif token.text == ")" and opened and opened.pop() == 0:
                closing = index
        if opened:
            self._fail(self._tokens[opened[-1]], "this '(' is never closed")
        return closing if closing is not None and self._tokens[closing + 1].kind == "end" else None

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while (match := _TOKEN.match(self._text, position)) is not None:
            position = match.end()
            digits, name, symbol, stray = match.groups()
            if stray is not None:
                raise self._unexpected(match.start(4))
            if name is not None and not name.isidentifier():
                length = next(end for end in range(1, len(name) + 1) if not name[:end].isidentifier())
                raise self._unexpected(match.start(2) + length - 1)
            if digits is not None:
                tokens.append(_Token("integer", digits, match.start(1)))
            elif name is not None:
                tokens.append(_Token("name", name, match.start(2)))
            else:
                tokens.append(_Token("symbol", symbol, match.start(3)))
        tokens.append(_Token("end", "", len(self._text.rstrip())))
        return tokens

    def _unexpected(self, position: int) -> ShapeSpecError:
        return error_at(self._text, self._heading, position, f"unexpected character {self._text[position]!r}")
