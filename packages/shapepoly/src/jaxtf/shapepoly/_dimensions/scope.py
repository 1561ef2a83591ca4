"""Symbolic scopes: the constraints that a family of dimension expressions lives under.

A scope is immutable. Two scopes never mix, even when their constraints read the same: what was
decided in one was decided under its own constraints. A scope that is pickled keeps its origin: read
again, it is the scope of that origin and those constraints, in the process where it is alive the same one.
"""

import secrets
import threading
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakValueDictionary

from jaxtf.shapepoly._decide.decision import Decider
from jaxtf.shapepoly._decide.equalities import Equalities
from jaxtf.shapepoly._dimensions.algebra import Algebra
from jaxtf.shapepoly._errors import InconclusiveDimensionOperation, ScopeError
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.expression import MAXIMUM, Expression, Operation, has_operations, integer, variable
from jaxtf.shapepoly._expressions.parser import parse_constraint
from jaxtf.shapepoly._expressions.substitution import substituted
from jaxtf.shapepoly._expressions.text import to_text

_MOST_STEPS = 500_000
"""Products of terms in all constraints of a scope: half a second; what people write takes a few hundred."""

_TOO_MANY_PRODUCTS = "the constraints of the scope have too many products of terms"
_TOO_MANY_STEPS = "the constraints of the scope take too many steps to read"


class Constraint(NamedTuple):
    """A declared constraint: `difference relation 0`, and the text it was declared with.

    `relation` is `>=` or `==`; a constraint `e1 <= e2` is kept as `e2 - e1 >= 0`.
    """

    difference: Expression
    relation: Literal[">=", "=="]
    text: str
    depth: int = 0
    """0, or one more than that of the constraints without which a divisor in this one could be 0."""

    @property
    def difference_text(self) -> str:
        """The text of the difference, for messages."""
        return to_text(self.difference)

    def __str__(self) -> str:
        return self.text


class SymbolicScope:
    """The constraints that symbolic dimensions were made under.

    Args:
      constraints_str: Constraints of the form `e1 >= e2`, `e1 <= e2` or `e1 == e2`. They hold jointly,
        and jointly with every dimension variable being at least 1.
      most_steps: Bound on the work of reading them, about a microsecond each; for untrusted
        constraints. By default only the products of terms in them are bounded, not the work of finding whether they
        contradict each other.

    Attributes:
      constraints: The constraints, in the order they were given.
      algebra: For the modules of this package: the operations that know these constraints.

    Raises:
      ShapeSpecError: A constraint is not in the grammar, or all of them take more steps.
      InconclusiveDimensionOperation: A divisor in a constraint can be 0, all other constraints considered.
      ScopeError: No sizes satisfy all constraints; the message names those that contradict each other.

    >>> from jaxtf.shapepoly import SymbolicScope, symbolic_shape
    >>> scope = SymbolicScope(["a >= b", "b >= 16"])
    >>> a, b = symbolic_shape("a, b", scope=scope)
    >>> a + b >= 32
    True
    """

    def __init__(self, constraints_str: Sequence[str] = (), *, most_steps: int | None = None) -> None:
        if isinstance(constraints_str, str):
            constraints_str = (constraints_str,)
        budget = UNBOUNDED if most_steps is None or not constraints_str else Budget(most_steps, _TOO_MANY_STEPS)
        self.constraints = _read_all(constraints_str, budget)
        decider = decider_of(self.constraints, budget)
        if decider.is_contradictory():
            raise ScopeError(_contradiction(self.constraints, budget))
        self.algebra = Algebra(decider if budget is UNBOUNDED else decider_of(self.constraints))
        self._known_as((secrets.token_bytes(16), tuple(c.text for c in self.constraints)))

    def _known_as(self, key: "_Key") -> None:
        self._key = key
        _SCOPES[key] = self

    def __str__(self) -> str:
        if not self.constraints:
            return "symbolic scope without constraints"
        return "symbolic scope with constraints:\n" + "\n".join(f"  {c}" for c in self.constraints)

    def __repr__(self) -> str:
        return f"SymbolicScope({[c.text for c in self.constraints]!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> "tuple[Any, tuple[type[Self], _Key]]":
        return (_of_origin, (type(self), self._key))


_Key = tuple[bytes, tuple[str, ...]]
"""What makes a scope that is read the same as another: its origin and its constraints."""

# Those alive in this process. Not counted up but drawn: processes that are forked count alike.
_SCOPES: "WeakValueDictionary[_Key, SymbolicScope]" = WeakValueDictionary()
_SCOPES_LOCK = threading.Lock()


def _of_origin(kind: type[SymbolicScope], key: _Key) -> SymbolicScope:
    """The scope that was pickled: the one alive here, or a new one that is of that origin from now on."""
    with _SCOPES_LOCK:
        found = _SCOPES.get(key)
        if found is None:
            found = kind(key[1])
            found._known_as(key)
        return found


def _read_all(texts: Sequence[str], budget: Budget) -> tuple[Constraint, ...]:
    """Reads constraints; a divisor may owe it to other constraints, whatever their order, that it is not 0."""
    found: dict[int, Constraint] = {}
    depth = 0
    of_texts = Budget(_MOST_STEPS, _TOO_MANY_PRODUCTS) if budget is UNBOUNDED else budget
    while len(found) < len(texts):
        known = [found[position] for position in sorted(found)]
        decider = decider_of(known, budget)
        if decider.is_contradictory():
            raise ScopeError(_contradiction(known, budget))
        algebra = Algebra(decider)
        refusal: InconclusiveDimensionOperation | None = None
        for position, text in enumerate(texts):
            if position in found:
                continue
            try:
                found[position] = _read(text, algebra, depth, of_texts)
            except InconclusiveDimensionOperation as error:
                refusal = refusal or error
        if refusal is not None and len(found) == len(known):
            raise refusal
        depth += 1
    return tuple(found[position] for position in range(len(texts)))


def _read(text: str, algebra: Algebra, depth: int, budget: Budget) -> Constraint:
    """Reads one constraint."""
    if not isinstance(text, str):
        raise TypeError(f"a constraint is a text such as 'a >= b'; found {text!r} of type {type(text).__name__}")
    parsed = parse_constraint(text, algebra, budget)
    match parsed.relation:
        case "<=":
            return Constraint(parsed.right - parsed.left, ">=", text, depth)
        case relation:
            return Constraint(parsed.left - parsed.right, relation, text, depth)


def decider_of(constraints: Sequence[Constraint], budget: Budget = UNBOUNDED) -> Decider:
    """Returns a decider that knows the constraints."""
    equations = [constraint.difference for constraint in constraints if constraint.relation == "=="]
    inequalities = [constraint.difference for constraint in constraints if constraint.relation == ">="]
    if not equations:
        return Decider(inequalities, budget)
    equalities = Equalities(equations, inequalities, budget)
    found = equalities.equations
    if any(_has_hard_operations(equation) or (inequalities and has_operations(equation)) for equation in found):
        # With all constraints known, a maximum may be one of its operands, and a quotient an integer.
        algebra = Algebra(Decider(equalities.facts, budget))
        simpler = [_evaluated(equation, algebra) for equation in found]
        if simpler != found:
            equalities = Equalities((*simpler, *equations), inequalities, budget)
    decider = Decider(equalities.facts, budget, equalities)
    fixed = _fixed(decider)
    if not fixed:
        return decider
    equalities = Equalities((*fixed, *equalities.equations, *equations), inequalities, budget)
    return Decider(equalities.facts, budget, equalities)


def _fixed(decider: Decider) -> list[Expression]:
    """Returns the equations of variables that can only be one integer by more than an equality alone."""
    names = sorted(decider.tied_variables)
    sizes = [variable(name) for name in names]
    sizes += [value for value in decider.equalities.definitions.values() if decider.may_be_one_integer(value)]
    found = [(size, decider.only_value(size)) for size in sizes if size.as_integer is None]
    return [size - integer(value) for size, value in found if value is not None]


def _has_hard_operations(expression: Expression) -> bool:
    """Returns whether maxima, or quotients by other than integers, occur anywhere in an expression."""
    for atom in expression.atoms():
        if isinstance(atom, Operation):
            is_hard = atom.name == MAXIMUM or atom.operands[1].as_integer is None
            if is_hard or any(map(_has_hard_operations, atom.operands)):
                return True
    return False


def _evaluated(expression: Expression, algebra: Algebra) -> Expression:
    """Returns an expression whose operations an algebra made; the same where it refuses a division."""
    try:
        return substituted(expression, {}, algebra)
    except (InconclusiveDimensionOperation, ZeroDivisionError):
        return expression


def _contradiction(constraints: Sequence[Constraint], budget: Budget) -> str:
    """Returns the text of the error for constraints that no sizes satisfy, with those that are needed for it."""
    culprits = list(constraints)
    for constraint in constraints:
        others = [c for c in culprits if c is not constraint]
        if decider_of(others, budget).is_contradictory():
            culprits = others
    if len(culprits) == 1:
        return f"no sizes satisfy the symbolic constraint '{culprits[0]}' (dimension variables are at least 1)"
    listed = "\n".join(f"  {culprit}" for culprit in culprits)
    return f"these symbolic constraints contradict each other (dimension variables are at least 1):\n{listed}"
