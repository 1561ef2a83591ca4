"""What a verification found: a row for each backend, sizes and question, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jaxtf.convert._verify.locate import Place

__all__ = ["Report", "Row"]


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
      backend: How the function was run.
      sizes: The values of its dimension variables.
      question: `values` or `gradients`.
      outcome: `same` within the tolerance, `differs`, `refused`: this backend does not run the function, or
        `not compared`: JAX does not run it here.
      error: The largest error, relative to eps * max abs value; infinite where nothing matches.
      where: Which result or argument differs most, or why it was refused.
      place: Where it begins to differ, or why that is not known, if it was to be located; None otherwise.
      numbers: The kind of numbers that it was run with: `regular`, `ties` or `special`.
      allowed: The largest error at which it is the same; None where no numbers were compared.
    """

    backend: str
    sizes: Mapping[str, int]
    question: Literal["values", "gradients"]
    outcome: Literal["same", "differs", "refused", "not compared"]
    error: float
    where: str
    numbers: str = "regular"
    place: Place | str | None = None
    allowed: float | None = None


@dataclass(frozen=True)
class Report:
    """What `verify` found.

    Attributes:
      name: Of the function.
      tolerance: The largest error, relative to eps * max abs value, at which results count as the same.
      rows: The comparisons, in the order they were made.
    """

    name: str
    tolerance: float
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether all were compared and none differs; a backend that refuses the function does not run it wrongly."""
        return not any(row.outcome in ("differs", "not compared") for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The same as data that JSON holds."""
        rows = [asdict(row) | {"sizes": dict(row.sizes)} for row in self.rows]
        return {"name": self.name, "ok": self.ok, "tolerance": self.tolerance, "rows": rows}

    def __str__(self) -> str:
        sizes = list(dict.fromkeys(_sizes(row) for row in self.rows if row.sizes))
        lines: list[tuple[str, ...]] = [("", *_QUESTIONS)]
        for backend in dict.fromkeys(row.backend for row in self.rows):
            lines.append((backend, *(self._summary(backend, question) for question in _QUESTIONS)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        about = "; ".join(sizes) or "its only sizes"
        least = min((row.allowed for row in self.rows if row.allowed is not None), default=self.tolerance)
        narrow = f", {least:g} for floats of fewer bits" if least < self.tolerance else ""
        unit = f"(errors / (eps * max abs value); up to {self.tolerance:g} is the same{narrow})"
        head = f"{self.name}, compared with JAX at {about} {unit}"
        return "\n".join([head, *table, *self._remarks()])

    def _summary(self, backend: str, question: str) -> str:
        """The worst outcome of a backend, over all sizes."""
        rows = [row for row in self.rows if (row.backend, row.question) == (backend, question)]
        if not rows:
            return "-"
        worst = max(rows, key=lambda row: (_SEVERITY[row.outcome], row.error))
        return worst.outcome if worst.error == float("inf") else f"{worst.outcome} {worst.error:.1f}"

    def _remarks(self) -> list[str]:
        """Remarks on the rows that are not the same, each once."""
        remarks = (
            f"{row.backend}, {row.question}{', ' if row.sizes else ''}{_sizes(row)}{_numbers(row)}: "
            f"{row.outcome}: {row.where}{'' if row.place is None else f'{_NEXT}{row.place}'}"
            for row in self.rows
            if row.outcome != "same"
        )
        return list(dict.fromkeys(remarks))


# Before the place.
_NEXT = "\n  "

_QUESTIONS = ("values", "gradients")
_SEVERITY = {"same": 0, "refused": 1, "not compared": 2, "differs": 3}


def _numbers(row: Row) -> str:
    return "" if row.numbers == "regular" else f", {row.numbers} numbers"


def _sizes(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in row.sizes.items())
