"""Prints where the time went: `python report.py OUTPUT_FOLDER ["what else took time=SECONDS" ...]`."""

import sys

from clock import Part, output_folder, recorded
from rich.console import Console
from rich.table import Table


def summed(parts: list[Part]) -> list[Part]:
    """Parts of the same name in the same step added up, in order of first appearance."""
    seconds: dict[tuple[str, str], float] = {}
    for part in parts:
        seconds[part.step, part.name] = seconds.get((part.step, part.name), 0.0) + part.seconds
    return [Part(*names, total) for names, total in seconds.items()]


def main() -> None:
    """Prints one row per part, and the sum."""
    out = output_folder()
    others = [argument.rpartition("=") for argument in sys.argv[2:]]
    parts = [Part("environment", name, float(seconds)) for name, _, seconds in others] + summed(recorded(out))
    table = Table(title="where the time went", show_footer=True)
    table.add_column("step", "total")
    table.add_column("part")
    table.add_column("seconds", f"{sum(part.seconds for part in parts):.1f}", justify="right")
    previous = None
    for part in parts:
        table.add_section() if previous not in (None, part.step) else None
        table.add_row(part.step if part.step != previous else "", part.name, f"{part.seconds:.2f}")
        previous = part.step
    Console().print(table)


if __name__ == "__main__":
    main()
