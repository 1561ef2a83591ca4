"""What `explain` found: for each mode its refusals and its size, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from jaxtf.shapepoly import SuggestedConstraints

if TYPE_CHECKING:
    from jaxtf.convert._graph.survey import Refusal

__all__ = ["Explanation", "Mode"]

_MODES = {
    "native": "native mode",
    "graph": "graph mode (native_serialization=False)",
    "graph_without_xla": "graph mode without XLA operations (enable_xla=False)",
    "tflite": "TFLite (to_tflite)",
}

# A line that makes more of the operations than this share, and more than this many, is shown.
_SHARE, _LEAST, _SHOWN = 0.1, 50, 5


@dataclass(frozen=True)
class Mode:
    """What a mode would make of a function.

    Attributes:
      name: `native`, `graph`, `graph_without_xla` or `tflite`.
      refusals: Every operation that is refused.
      nodes: How many operations the graph has; 0 where there is none.
      size: Bytes of the module (native mode) or of the graph.
      nodes_of_lines: How many operations come from each line of the user's program, the most first.
      error: Why there is nothing to look at; empty if there is.
    """

    name: str
    refusals: tuple[Refusal, ...] = ()
    nodes: int = 0
    size: int = 0
    nodes_of_lines: Mapping[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the mode takes the function."""
        return not self.refusals and not self.error

    def __str__(self) -> str:
        head = f"{_MODES[self.name]}: "
        if self.error:
            return head + f"refused: {self.error}".replace("\n", "\n  ")
        count = sum(refusal.count for refusal in self.refusals)
        lines = [head + (f"refused: {count} operation{'s' if count > 1 else ''}" if count else self._how_large())]
        for refusal in self.refusals:
            times = f", {refusal.count} times" if refusal.count > 1 else ""
            lines.append(f"  {refusal.operation}{times}{f', at {refusal.line}' if refusal.line else ''}")
            lines.append(f"    {refusal.reason}")
            lines.append(f"    remedy: {refusal.remedy}")
        most = [
            (line, nodes) for line, nodes in self.nodes_of_lines.items() if nodes > max(_LEAST, _SHARE * self.nodes)
        ]
        lines += [f"  {nodes:,} of the operations are of {line or 'no known line'}" for line, nodes in most[:_SHOWN]]
        return "\n".join(lines)

    def _how_large(self) -> str:
        if self.name == "native":
            return f"one operation, a module of {self.size:,} bytes"
        return f"{self.nodes:,} operations, {self.size:,} bytes"


@dataclass(frozen=True)
class Explanation:
    """What `explain` found.

    Attributes:
      name: Of the function.
      modes: One for each mode.
      constraints: What its symbolic sizes need; None if it has none, or is an artifact.
    """

    name: str
    modes: tuple[Mode, ...]
    constraints: SuggestedConstraints | None = None

    @property
    def ok(self) -> bool:
        """Whether every mode takes the function."""
        return all(mode.ok for mode in self.modes)

    def __getitem__(self, name: str) -> Mode:
        """The mode of a name.

        Raises:
          KeyError: There is none of this name.
        """
        modes = {mode.name: mode for mode in self.modes}
        if name not in modes:
            raise KeyError(f"no mode {name!r} was explained; there are {', '.join(modes)}")
        return modes[name]

    def to_json(self) -> dict[str, Any]:
        """The same as data that JSON holds."""
        modes = {mode.name: asdict(mode) | {"ok": mode.ok} for mode in self.modes}
        constraints = asdict(self.constraints) if self.constraints is not None else None
        return {"name": self.name, "ok": self.ok, "modes": modes, "constraints": constraints}

    def __str__(self) -> str:
        lines = [self.name]
        if self.constraints is not None and (self.constraints.constraints or self.constraints.error):
            lines.append(f"its sizes need constraints: {self.constraints}")
        return "\n".join([*lines, *map(str, self.modes)])
