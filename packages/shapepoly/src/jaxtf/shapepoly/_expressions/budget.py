"""How much work texts that nobody vouches for may take: counted in steps, so that it is the same on every machine.

A step is about a microsecond of work: a product of two terms, the evaluation of a term, the entry of a row in a
question to isl, weighed by what it was found to take. Who reads gives one `Budget` to all that it makes.
"""

from math import inf

from jaxtf.shapepoly._errors import ShapeSpecError

__all__ = ["UNBOUNDED", "Budget", "OutOfSteps"]


class OutOfSteps(ShapeSpecError):
    """The steps of a budget are used up."""


class Budget:
    """Steps that are left.

    Args:
      steps: The number to begin with.
      message: Of the error when they are used up.
    """

    def __init__(self, steps: float = inf, message: str = "") -> None:
        self._left = steps
        self._message = message

    def spend(self, steps: float) -> None:
        """Takes steps off; raises `OutOfSteps` if there are not as many."""
        self._left -= steps
        if self._left < 0:
            raise OutOfSteps(self._message)


UNBOUNDED = Budget()
"""For what users write: as many steps as it takes."""
