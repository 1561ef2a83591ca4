"""What graph mode costs beside what it cost at an earlier commit: models, and single operations of every kind.

    python benchmarks/against_commit.py COMMIT                    all, not compiled and compiled, in about 15 minutes
    python benchmarks/against_commit.py COMMIT scatter "max of"   those whose names have one of these words
    ROUNDS=15 python benchmarks/against_commit.py COMMIT ...      with more than 9 rounds

Each commit writes SavedModels in a process of its own. They are loaded in one and called in turns, those of the earlier
commit twice: the ratio of the two tells what the machine adds. A line has the median times, the median of the ratios of
neighbours, of wall time and of CPU time, and that of the earlier one to itself; last come the geometric mean of the
ratios and those above 1.1.

The packages are found by PYTHONPATH: of the working tree, and of the commit in a temporary folder.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from bench_graph import subjects
from operations import Case, operations
from timing import mean_of_calls

from jaxtf.convert import convert

ROOT = Path(__file__).parents[1]
ROUNDS = int(os.environ.get("ROUNDS", "9"))
SECONDS_PER_ROUND = 0.03
SLOWER = 1.1
COMPILED = {"not compiled": None, "compiled": True}


def cases(words: Sequence[str]) -> Mapping[str, Case]:
    """The models of `bench_graph` and the operations, or those with one of the words in their names."""
    every = {**subjects(), **operations()}
    return {name: case for name, case in every.items() if not words or any(word in name for word in words)}


def write(folder: Path, words: Sequence[str]) -> None:
    """Writes a SavedModel of each case, not compiled and compiled, and their names."""
    for number, (function, arguments) in enumerate(cases(words).values()):
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(np.shape(x), np.asarray(x).dtype), arguments)
        converted = convert(function, native_serialization=False, with_gradient=False)
        for how, is_compiled in COMPILED.items():
            module = tf.Module()
            module.f = tf.function(converted, autograph=False, jit_compile=is_compiled, input_signature=specs)
            tf.saved_model.save(module, folder / how / str(number))
    (folder / "names.json").write_text(json.dumps(list(cases(words))), encoding="utf-8")


def written(tree: Path, folder: Path, words: Sequence[str]) -> None:
    """Has the packages of a tree write their SavedModels, in a process of its own."""
    sources = os.pathsep.join(map(str, sorted(tree.glob("packages/*/src"))))
    environment = {**os.environ, "PYTHONPATH": sources, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, __file__, "--write", str(folder), *words]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tree}: no SavedModels\n{done.stdout}{done.stderr}")


def compare(name: str, arguments: Any, earlier: Path, now: Path) -> float:
    """Prints a line; the ratio."""
    tensors = tf.nest.map_structure(tf.constant, arguments)
    loaded = [tf.saved_model.load(folder).f for folder in (earlier, now, earlier)]
    calls: list[Callable[[], object]] = [lambda f=f: f(*tensors) for f in loaded]
    for call in calls:
        call()
    spent: list[list[Any]] = [[], [], []]
    for number in range(ROUNDS):
        for i in (0, 1, 2) if number % 2 else (2, 1, 0):
            spent[i].append(mean_of_calls(calls[i], SECONDS_PER_ROUND))
    ratios = []
    for kind in ("wall", "cpu"):
        first, ours, last = ([getattr(one, kind) for one in column] for column in spent)
        ratios.append(statistics.median(o / (f + e) * 2 for f, o, e in zip(first, ours, last, strict=True)))
    itself = statistics.median(e.wall / f.wall for f, e in zip(spent[0], spent[2], strict=True))
    times = [1e3 * statistics.median(one.wall for one in column) for column in spent]
    print(
        f"  {name:42} {times[0]:8.3f} ms, now {times[1]:8.3f} ms: x {ratios[0]:5.2f}, CPU x {ratios[1]:5.2f} "
        f"(the earlier to itself x {itself:5.2f})",
        flush=True,
    )
    return ratios[0]


def against(commit: str, words: Sequence[str]) -> None:
    """Prints the lines of all cases, and which are slower."""
    chosen = cases(words)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "tree").mkdir()
        archive = subprocess.run(["git", "archive", commit, "packages"], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            sys.exit(f"no packages of the commit {commit!r}: {archive.stderr.decode()}")
        subprocess.run(["tar", "-x", "-C", str(place / "tree")], input=archive.stdout, check=True)
        for tree, who in ((place / "tree", "earlier"), (ROOT, "now")):
            written(tree, place / who, words)
            assert json.loads((place / who / "names.json").read_text(encoding="utf-8")) == list(chosen)
        for how in COMPILED:
            print(how)
            ratios = {
                name: compare(name, arguments, place / "earlier" / how / str(i), place / "now" / how / str(i))
                for i, (name, (_, arguments)) in enumerate(chosen.items())
            }
            slower = [f"{name} x {ratio:.2f}" for name, ratio in ratios.items() if ratio > SLOWER]
            mean = statistics.geometric_mean(ratios.values())
            print(f"{how}: {len(ratios)}, geometric mean x {mean:.2f}; above x {SLOWER}: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--write", folder, *words]:
            write(Path(folder), words)
        case [commit, *words]:
            against(commit, words)
        case _:
            sys.exit(__doc__)
