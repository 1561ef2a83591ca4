"""Constraints that no check could reach, because they mention variables that arguments do not determine.

A variable is determined if it occurs in the shapes, or if equality constraints tie it to those that do.
A name that is misspelt in a constraint is neither, and the constraint would say nothing.
"""

from difflib import get_close_matches

from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._errors import ShapeSpecError


def refuse_unchecked(scope: SymbolicScope, variables: frozenset[str]) -> None:
    """Raises where a constraint mentions a variable that nothing determines.

    Args:
      scope: Has the constraints.
      variables: The names of the variables that occur in the shapes.

    Raises:
      ShapeSpecError: Names the constraint, the variable, and the variables that occur.
    """
    determined = _determined(scope, variables)
    for constraint in scope.constraints:
        for name in sorted(constraint.difference.variables() - determined):
            raise ShapeSpecError(
                f"the constraint '{constraint}' mentions '{name}', which occurs in no shape of the arguments: "
                f"nothing would check it\n  {_remedy(name, variables)}"
            )


def _determined(scope: SymbolicScope, variables: frozenset[str]) -> frozenset[str]:
    """Returns the variables of the shapes, and those that equality constraints tie to them."""
    reached = variables
    while True:
        tied = (c.difference.variables() for c in scope.constraints if c.relation == "==")
        wider = reached.union(*(names for names in tied if names & reached))
        if wider == reached:
            return reached
        reached = wider


def _remedy(name: str, variables: frozenset[str]) -> str:
    """Returns what to do about a variable that occurs in no shape."""
    if not variables:
        return (
            'the shapes have no dimension variables; write them as texts such as "(b, _)", or leave the constraint out'
        )
    listed = ", ".join(f"'{variable}'" for variable in sorted(variables))
    close = get_close_matches(name, sorted(variables), n=1)
    question = f"; did you mean '{close[0]}'?" if close else ""
    return f"in the shapes there {'is' if len(variables) == 1 else 'are'} {listed}{question}"
