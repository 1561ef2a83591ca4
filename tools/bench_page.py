"""Runs the benchmarks and writes docs/benchmarks.md: what they print, and a plot of those that compare calls.

    python tools/bench_page.py

Needs what the benchmarks need, and matplotlib.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"

# Script, heading, and what a reader is to know before the numbers.
SCRIPTS = (
    ("bench_eager_call.py", "An eager call, beside the bare op", "The way from a TensorFlow value to the op."),
    (
        "bench_convert.py",
        "Converted functions",
        "Eager calls and gradients, the first trace, memory, and 200 MB of constants.",
    ),
    (
        "bench_calltf.py",
        "TensorFlow in JAX",
        "`call_tf`, beside TensorFlow and JAX alone. A row that fails names what upstream says.",
    ),
    (
        "bench_dropped.py",
        "What is dropped",
        "Functions that are made, called once and dropped: the memory that stays, beside the same loop by JAX and "
        "TensorFlow alone. What TensorFlow compiles, with `jit_compile=True`, for an eager call or for `jax.jit` of "
        "`call_tf`, it keeps: that is in both columns.",
    ),
    ("bench_graph.py", "Graph mode", "Compiled graph mode beside `jax.jit`, sizes of graphs, and conversion."),
    ("bench_export.py", "Exports and artifacts", "A transformer of 12 layers, beside `jax.export`."),
    ("bench_shapepoly.py", "Symbolic dimensions", "Questions to dimensions, beside those of `jax.export`."),
)
ROW = re.compile(r"^\s*(?P<subject>\S.*?)(?:: |, )(?P<who>[^:,]+?)\s{2,}(?P<time>\d[\d.]*) us$")
COLORS = {"jaxtf": "#0b7a75", "upstream": "#b23a48"}


def main() -> None:
    """Writes the page and its plots."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    page = [
        "# Benchmarks",
        "",
        f"What `python3 run.py bench -- --page` printed on {today}, on {os.cpu_count()} cores of a virtual "
        f"{platform.machine()} machine. Rows of one group were measured in one run; what carries over to other "
        "machines are ratios.",
    ]
    for script, heading, about in SCRIPTS:
        print(script, flush=True)
        command = [sys.executable, str(ROOT / "benchmarks" / script)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800).stdout
        page += ["", f"## {heading}", "", f"{about} `benchmarks/{script}`.", ""]
        groups = rows_of(printed)
        if groups:
            name = f"{Path(script).stem}.svg"
            plot(groups, IMAGES / name)
            page += [f"![Bars of the times below, on a logarithmic scale](images/{name})", ""]
        page += ["```text", *(line.rstrip() for line in printed.strip().splitlines()), "```"]
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")


def rows_of(printed: str) -> dict[str, dict[str, float]]:
    """The times of one call, in microseconds: by subject, then by who does it; subjects of one row are left out."""
    groups: dict[str, dict[str, float]] = {}
    for line in printed.splitlines():
        row = ROW.match(line)
        if row:
            groups.setdefault(row["subject"], {})[row["who"]] = float(row["time"])
    return {subject: rows for subject, rows in groups.items() if len(rows) > 1}


def plot(groups: dict[str, dict[str, float]], file: Path) -> None:
    """A panel of bars for each subject, all on one logarithmic axis."""
    file.parent.mkdir(exist_ok=True)
    counts = [len(rows) for rows in groups.values()]
    plt.rcParams["svg.hashsalt"] = "jaxtf"  # the same file for the same numbers
    figure, panels = plt.subplots(
        len(groups),
        figsize=(7, 0.28 * sum(counts) + 0.5 * len(groups)),
        sharex=True,
        height_ratios=counts,
        squeeze=False,
    )
    for panel, (subject, rows) in zip(panels[:, 0], groups.items(), strict=True):
        names = list(rows)[::-1]
        colors = [next((c for start, c in COLORS.items() if name.startswith(start)), "#8a8f98") for name in names]
        bars = panel.barh(names, [rows[name] for name in names], color=colors)
        panel.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)
        panel.set_title(subject, loc="left", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.set_xscale("log")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1, 0].set_xlabel("microseconds of one call", fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
