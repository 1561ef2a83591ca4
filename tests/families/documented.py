"""What is known to differ from JAX, or to be refused, and why: the rows that docs/graph_limitations.md lists."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .case import Case
from .trial import Trial

__all__ = ["DOCUMENTED", "Documented", "is_documented"]


@dataclass(frozen=True)
class Documented:
    """A difference or a refusal that is known.

    Attributes:
      family: Of which family.
      error: A pattern in the text of the error, with the name of its class in front.
      reason: For the page on limitations.
      tags: All of these the case has.
      backends: A pattern of the whole name of the backend.
    """

    family: str
    error: str
    reason: str
    tags: frozenset[str] = frozenset()
    backends: str = ".*"


DOCUMENTED: tuple[Documented, ...] = ()


def is_documented(family: str, case: Case, trial: Trial, error: Exception) -> bool:
    """Whether what happened is in the table."""
    text = f"{type(error).__name__}: {error}"
    return any(
        re.fullmatch(known.family, family)
        and known.tags <= case.tags
        and re.fullmatch(known.backends, trial.backend)
        and re.search(known.error, text)
        for known in DOCUMENTED
    )
