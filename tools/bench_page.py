"""Runs the benchmarks, keeps what they print, and writes docs/benchmarks.md and its pictures from that.

    python tools/bench_page.py              runs them all, which takes an hour, then writes
    python tools/bench_page.py --kept       writes from what was kept in benchmarks/results

Tables of ratios come first, by question, and all that was printed is folded below. Page and pictures are made from the
same files, which a test compares. Needs what the benchmarks need, and matplotlib; with `--kept` matplotlib alone.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"

# Script, heading, and what a reader is to know before the numbers.
SCRIPTS = (
    ("bench_eager_call.py", "An eager call and the bare op", "From a TensorFlow value to the op."),
    (
        "bench_convert.py",
        "Converted functions",
        "Eager calls and gradients, the first trace, memory, and 200 MB of constants.",
    ),
    (
        "bench_calltf.py",
        "TensorFlow in JAX",
        "`call_tf`, compared with TensorFlow and JAX alone. A row that fails gives upstream's error.",
    ),
    (
        "bench_dropped.py",
        "What is dropped",
        "Functions that are made, called once and dropped: the memory that stays, compared with the same loop in JAX "
        "and TensorFlow alone. What TensorFlow compiles, with `jit_compile=True`, for an eager call or for `jax.jit` "
        "of `call_tf`, it keeps: that is in both columns.",
    ),
    ("bench_graph.py", "Graph mode", "Compiled graph mode compared with `jax.jit`, sizes of graphs, and conversion."),
    ("bench_export.py", "Exports and artifacts", "A transformer of 12 layers, compared with `jax.export`."),
    ("bench_shapepoly.py", "Symbolic dimensions", "Questions to dimensions, compared with those of `jax.export`."),
)


class Row(NamedTuple):
    """A time that a benchmark printed: of what, by whom, how long, in which unit, and its ratio if it printed one.

    Where wall time and CPU time are both printed, one is the time, and `other` has the other one, or its ratio.
    """

    subject: str
    who: str
    time: float
    unit: str
    ratio: float | None = None
    other: float | None = None


TIMED = re.compile(
    r"^\s*(?P<subject>\S.*?)(?:: |, )(?P<who>[^:]+?)\s{2,}(?P<time>\d[\d.]*) (?P<unit>us|ms)"
    r"(?:, wall\s+(?P<wall>[\d.]+) us|\s+x\s+(?P<ratio>[\d.]+) \(.*?\)(?:, CPU x\s+(?P<cpu>[\d.]+))?)?$"
)
PAIR = re.compile(
    r"^(?P<subject>\S.*? \((?P<unit>ms|bytes)\))\s+ours\s+(?P<ours>[\d.]+)\s+theirs\s+(?P<theirs>[\d.]+)$"
)
QUESTION = re.compile(r"^  (?P<subject>\S.*?)\s+(?P<ours>\d[\d.]*)\s+(?P<theirs>\d[\d.]*)\s+(?P<ratio>[\d.]+)$")
COLORS = {"jaxtf": "#0b7a75", "upstream": "#b23a48"}


def main(arguments: list[str]) -> None:
    """Runs the benchmarks if they are to be run, and writes the page and its pictures."""
    if "--kept" not in arguments:
        run()
    IMAGES.mkdir(exist_ok=True)
    for name, groups in pictures().items():
        plot(groups, IMAGES / name)
    PAGE.write_text(page(), encoding="utf-8")


def run() -> None:
    """Runs every benchmark, and keeps what it prints."""
    RESULTS.mkdir(exist_ok=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = f"on {today}, on {os.cpu_count()} cores of a virtual {platform.machine()} machine"
    (RESULTS / "machine.txt").write_text(f"{about}\n", encoding="utf-8")
    for script, _, _ in SCRIPTS:
        print(script, flush=True)
        command = [sys.executable, str(ROOT / "benchmarks" / script)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800).stdout
        lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
        (RESULTS / script).with_suffix(".txt").write_text(f"{lines}\n", encoding="utf-8")


def kept(script: str) -> str:
    """What a script printed."""
    return (RESULTS / script).with_suffix(".txt").read_text(encoding="utf-8").rstrip()


def rows(script: str) -> dict[str, list[Row]]:
    """The times that a script printed, by subject; subjects of one row are left out."""
    groups: dict[str, list[Row]] = {}
    for line in kept(script).splitlines():
        if found := TIMED.match(line):
            ratio, other = (text and float(text) for text in (found["ratio"], found["wall"] or found["cpu"]))
            row = Row(found["subject"], found["who"], float(found["time"]), found["unit"], ratio, other)
            groups.setdefault(row.subject, []).append(row)
    return {subject: group for subject, group in groups.items() if len(group) > 1}


# --- the page ---


def page() -> str:
    """The text of the page."""
    machine = (RESULTS / "machine.txt").read_text(encoding="utf-8").strip()
    parts = [
        "# Benchmarks",
        f"What the benchmarks printed {machine}. `python3 run.py bench -- --page` runs them and writes this page. "
        "Ratios are to the first column, and below 1 is faster; they carry over to other machines, and times do not. "
        "CPU time is that of all threads, wall time what a caller waits: where the two differ, threads work or wait. "
        "Everything that was printed is [below](#what-was-printed).",
        *calls("How fast is a call?", lambda subject: "grad" not in subject and "first" not in subject),
        *calls("How fast is a gradient?", lambda subject: "grad" in subject),
        "## How long does a conversion take?",
        "The first trace in `tf.function` of a transformer, compared with its export to StableHLO alone.",
        table(graph_rows(re.compile(r"\d+ layers")), ["export", "native mode", "graph mode", "written in TensorFlow"]),
        "## How fast is compiled code?",
        "`tf.function(jit_compile=True)` of a converted function, compared with `jax.jit` of the function itself: wall "
        "time, and CPU time in parentheses.",
        table(
            graph_rows(re.compile(r"(?!\d+ layers)")), ["jax.jit", "native mode", "graph mode", "written in TensorFlow"]
        ),
        "## What does an artifact cost?",
        "Exporting a transformer of 12 layers, writing and reading it, compared with `jax.export`.",
        pairs(PAIR, "bench_export.py"),
        "## What do symbolic dimensions cost?",
        "Microseconds of a question, compared with `jax.export`.",
        pairs(QUESTION, "bench_shapepoly.py"),
        "## What was printed",
        *(part for script in SCRIPTS for part in folded(*script)),
    ]
    return "\n\n".join(parts) + "\n"


def calls(heading: str, wanted) -> Iterable[str]:
    """A section on calls between the frameworks, from the scripts that measure them."""
    yield f"## {heading}"
    yield "CPU time of one call, and wall time in parentheses."
    for script, title, beside in (
        ("bench_convert.py", "A JAX function in TensorFlow, in eager mode", ("TensorFlow", "bare op")),
        ("bench_calltf.py", "A TensorFlow function in JAX", ("TensorFlow alone", "TensorFlow's tape", "jnp")),
    ):
        groups = {subject: group for subject, group in rows(script).items() if wanted(subject)}
        lines = [f"| {title} | alone | jaxtf | jax2tf |", "| --- | --- | --- | --- |"]
        for subject, group in groups.items():
            by = {row.who: row for row in group}
            base = next((by[who] for who in beside if who in by), None)
            if base is not None and "jaxtf" in by:
                cells = [f"{base.time:,.0f} {base.unit} ({base.who})"]
                cells += [ratio_of(by[who], base) if who in by else "fails" for who in ("jaxtf", "upstream")]
                lines.append(f"| {subject} | {' | '.join(cells)} |")
        yield "\n".join(lines)
    if heading == "How fast is a call?":
        yield from (f"![{alt}](images/{name})" for name, alt in PICTURES.values())


def graph_rows(wanted: re.Pattern[str]) -> dict[str, list[Row]]:
    """The rows of graph mode whose subjects match from their beginning."""
    return {subject: group for subject, group in rows("bench_graph.py").items() if wanted.match(subject)}


def table(groups: dict[str, list[Row]], columns: list[str]) -> str:
    """A table of ratios to the first column, which has the time."""
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for subject, group in groups.items():
        by = {row.who: row for row in group}
        if columns[0] in by:
            base = by[columns[0]]
            cells = [f"{base.time:,.1f} {base.unit}", *(ratio_of(by.get(who), base) for who in columns[1:])]
            lines.append(f"| {subject} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ratio_of(row: Row | None, base: Row) -> str:
    """The ratio that was printed, else that of the times; with that of the other clock in parentheses."""
    if row is None:
        return ""
    if row.ratio is not None:
        return times(row.ratio) + (f" (CPU {times(row.other)})" if row.other else "")
    ratio = times(row.time / base.time)
    return ratio + (f" (wall {times(row.other / base.other)})" if row.other and base.other else "")


def times(ratio: float) -> str:
    """A factor."""
    return f"x {ratio:.2f}" if ratio < 10 else f"x {ratio:,.0f}"


def pairs(pattern: re.Pattern[str], script: str) -> str:
    """A table of what a script printed of this project and of `jax.export`, side by side."""
    lines = ["| | `jax.export` | jaxtf |", "| --- | --- | --- |"]
    for line in kept(script).splitlines():
        if found := pattern.match(line):
            ratio = float(found["ours"]) / float(found["theirs"])
            lines.append(f"| `{found['subject']}` | {float(found['theirs']):,} | x {ratio:.2f} |")
    return "\n".join(lines)


def folded(script: str, heading: str, about: str) -> Iterable[str]:
    """All that a script printed, folded away."""
    yield f"### {heading}"
    yield f"{about} `benchmarks/{script}`."
    yield f'<details markdown="1"><summary>What it printed</summary>\n\n```text\n{kept(script)}\n```\n\n</details>'


# --- its pictures ---

# Script, file, and the text for those who do not see it.
PICTURES = {
    "bench_convert.py": ("bench_convert.svg", "Bars of the times of converted functions, on a logarithmic scale"),
    "bench_calltf.py": ("bench_calltf.svg", "Bars of the times of TensorFlow functions in JAX, on a logarithmic scale"),
}


def pictures() -> dict[str, dict[str, dict[str, float]]]:
    """What each picture shows: by its file, subject and who, the microseconds."""
    return {
        name: {
            subject: {row.who: row.time * (1 if row.unit == "us" else 1000) for row in group}
            for subject, group in rows(script).items()
        }
        for script, (name, _) in PICTURES.items()
    }


def plot(groups: dict[str, dict[str, float]], file: Path) -> None:
    """A panel of bars for each subject, all on one logarithmic axis; the numbers are in the file as text."""
    import matplotlib.pyplot as plt

    counts = [len(times) for times in groups.values()]
    plt.rcParams["svg.hashsalt"] = "jaxtf"  # the same file for the same numbers
    plt.rcParams["svg.fonttype"] = "none"
    figure, panels = plt.subplots(
        len(groups),
        figsize=(7, 0.28 * sum(counts) + 0.5 * len(groups)),
        sharex=True,
        height_ratios=counts,
        squeeze=False,
    )
    for panel, (subject, times) in zip(panels[:, 0], groups.items(), strict=True):
        names = list(times)[::-1]
        colors = [next((c for start, c in COLORS.items() if name.startswith(start)), "#8a8f98") for name in names]
        bars = panel.barh(names, [times[name] for name in names], color=colors)
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
    main(sys.argv[1:])
