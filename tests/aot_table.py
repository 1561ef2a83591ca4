"""Writes docs/ahead_of_time.md: what of the batteries compiles for which accelerator, none of which is there.

    python -m tests.aot_table FOLDER [--one-in 1] [--processes 2] [--page PAGE]

Each function of `tests/battery` is exported once, for all platforms, with symbolic sizes, into a file in FOLDER; what
is read from that file is compiled for each target of `aot_targets.py` and for this CPU, its VJP too. The TensorFlow
functions of `call_tf`'s battery likewise.

The environment must have libtpu and JAX's plugin for CUDA, and the variables of the session `aot`. Exit status 1 if a
compiler refuses what `aot_targets.py` does not list, or takes what it lists.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from .ahead_of_time import OVER_FOUR_DEVICES, PLATFORMS, Program, program, program_of
from .aot_targets import TARGETS
from .battery import BATTERY

ROOT = Path(__file__).resolve().parents[1]
CPU = "this CPU"
CALL_TF = "call_tf"
FOUR_DEVICES = "over four devices"


@dataclass(frozen=True)
class Row:
    """One program, compiled for one target.

    Attributes:
      battery: `battery`, `call_tf` or `over four devices`.
      program: Its name there.
      target: A name of `TARGETS`, or this CPU.
      parts: What was compiled: `function`, `vjp`.
      refused: The compiler's error for each part that it did not compile.
      seconds: Wall time of lowering and compiling.
      from_file: Whether what was compiled had been read from the file.
    """

    battery: str
    program: str
    target: str
    parts: tuple[str, ...]
    refused: dict[str, str]
    seconds: float
    from_file: bool = True


@functools.cache
def devices(target: str) -> Sequence[Any]:
    """Devices of a target, made once in a process."""
    return jax.devices("cpu") if target == CPU else TARGETS[target].devices()


@functools.cache
def call_tf_battery() -> Any:
    """The module with the TensorFlow functions of `call_tf`'s battery."""
    sys.path.insert(0, str(ROOT / "packages" / "calltf" / "tests"))
    import test_battery

    return test_battery


def call_tf_names() -> list[str]:
    """Those of them that are compiled."""
    return call_tf_battery().works("jit", differentiable=False)


def call_tf_program(name: str, file: Path) -> Program:
    """A TensorFlow function of `call_tf`'s battery as a JAX function, exported for all platforms."""
    from jaxtf.calltf import CaptureWarning, call_tf

    battery = call_tf_battery()
    case = battery.CASES[name]
    arguments = battery.arguments(case, "float32")
    call_tf(case.function)(*arguments)  # makes the layers and SavedModels that are made once
    specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arguments]
    function = jax.jit(call_tf(case.function))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)  # variables are constants of the program, as is wanted here
        return program(function, specs, arguments, file, PLATFORMS, differentiable=name in battery.works("grad"))


def compiled(task: tuple[str, str], folder: Path) -> list[Row]:
    """A program, compiled for each target."""
    battery, name = task
    if battery == FOUR_DEVICES:
        return [compiled_over_four_devices(name, target) for target in TARGETS]
    file = folder / f"{battery} {name}.jaxtf".replace("/", "-")
    try:
        made = call_tf_program(name, file) if battery == CALL_TF else program_of(BATTERY[name], file)
    except Exception as error:  # the others are compiled all the same, and the page is not written
        return [Row(battery, name, CPU, ("export",), {"export": f"{type(error).__name__}: {error}"}, 0.0, False)]
    rows = []
    for target in (CPU, *TARGETS):
        start = time.perf_counter()
        refused = made.refusals(devices(target)[0])
        rows.append(Row(battery, name, target, tuple(made.parts), refused, time.perf_counter() - start, made.from_file))
    return rows


def compiled_over_four_devices(name: str, target: str) -> Row:
    """A sharded program, compiled for four devices of a target."""
    start = time.perf_counter()
    try:
        OVER_FOUR_DEVICES[name](devices(target))
        refused = {}
    except jax.errors.JaxRuntimeError as error:
        refused = {"function": str(error)}
    return Row(FOUR_DEVICES, name, target, ("function",), refused, time.perf_counter() - start)


def unexpected(rows: Sequence[Row]) -> Iterator[str]:
    """What `aot_targets.py` does not say of the rows, or says wrongly."""
    for row in rows:
        listed = TARGETS[row.target].refused.get(row.program) if row.target in TARGETS else None
        if listed is None:
            yield from (f"{row.program}, {part}, {row.target}: {message}" for part, message in row.refused.items())
        elif row.battery == "battery" and listed not in "".join(row.refused.values()):
            yield f"{row.program}, {row.target}: compiles, or is refused for another reason than: {listed}"


HEAD = """# Compiled for accelerators that are not present

Made on {date} by `python3 run.py aot` in {minutes:.0f} minutes; do not edit. {versions}.

{files} artifacts, one file each, for `cpu`, `cuda` and `tpu` at once: those of the [battery](coverage.md) with symbolic
sizes, and those of the TensorFlow functions of [`call_tf`'s](calltf_coverage.md). Each file is read back, and its
function and VJP are compiled for every target by that target's own compiler: XLA for TPU from libtpu,
XLA for GPU with ptxas.{in_memory}
Over four devices: `shard_map`, a sharding constraint, symbolic sizes.

A program that compiles was lowered, refined and sharded correctly for that target. This does not show that its numbers
are right there: nothing is run.

| target | functions | VJPs | over four devices | `call_tf` functions | their VJPs | seconds for one, median |
| --- | --- | --- | --- | --- | --- | --- |
"""
DISTRIBUTIONS = {
    "JAX": "jax",
    "libtpu": "libtpu",
    "jax-cuda12-plugin": "jax-cuda12-plugin",
    "CUDA's compiler": "nvidia-cuda-nvcc-cu12",
    "TensorFlow": "tensorflow",
}


def page(rows: Sequence[Row], minutes: float) -> str:
    """The page."""
    files = {(row.battery, row.program) for row in rows if row.from_file and row.battery != FOUR_DEVICES}
    unnamed = sorted({f"`{row.program}`" for row in rows if not row.from_file})
    in_memory = (
        f"\nCompiled from memory, because a pytree type of theirs has no name in artifacts: {', '.join(unnamed)}."
    )
    head = HEAD.format(
        date=time.strftime("%-d %B %Y", time.gmtime()),
        minutes=minutes,
        versions=", ".join(f"{label} {version(name)}" for label, name in DISTRIBUTIONS.items()),
        files=len(files),
        in_memory=in_memory if unnamed else "",
    )
    compiled_for = {row.target for row in rows}
    lines = [line(rows, target) for target in (CPU, *TARGETS) if target in compiled_for]
    return head + "\n".join([*lines, "", "## What the compilers refuse", "", *refusals(rows), ""])


def line(rows: Sequence[Row], target: str) -> str:
    """A target's line of the table."""
    own = [row for row in rows if row.target == target]

    def share(battery: str, part: str) -> str:
        tried = [row for row in own if row.battery == battery and part in row.parts]
        taken = sum(part not in row.refused for row in tried)
        return f"{taken} of {len(tried)}" if tried else "-"

    shares = [share("battery", "function"), share("battery", "vjp"), share(FOUR_DEVICES, "function")]
    shares += [share(CALL_TF, "function"), share(CALL_TF, "vjp")]
    return f"| {target} | {' | '.join(shares)} | {statistics.median(row.seconds for row in own):.2f} |"


def refusals(rows: Sequence[Row]) -> list[str]:
    """A table of what is refused, or a sentence."""
    by_reason: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for part, message in row.refused.items():
            by_reason.setdefault((row.program, part, first_words(message)), []).append(row.target)
    if not by_reason:
        return ["Nothing."]
    rows = (
        f"| {name} | {part} | {', '.join(where)} | `{message}` |" for (name, part, message), where in by_reason.items()
    )
    return ["| program | part | targets | the compiler says |", "| --- | --- | --- | --- |", *rows]


def first_words(message: str) -> str:
    """The first sentence of a compiler's message, for a cell of a table."""
    return re.split(r"\. |, which", message.splitlines()[0])[0].replace("|", "/").replace("`", "'")[:200]


def main() -> int:
    """Compiles, writes the page; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the artifacts")
    parser.add_argument("--one-in", type=int, default=1, help="compile every n-th program only; writes no page")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "ahead_of_time.md")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    tasks = [
        *((FOUR_DEVICES, name) for name in OVER_FOUR_DEVICES),
        *(("battery", name) for name, entry in BATTERY.items() if entry.refusal is None),
        *((CALL_TF, name) for name in call_tf_names()),
    ][:: given.one_in]
    rows: list[Row] = []
    # Spawned: a forked process would share the threads' locks of the compilers. Programs of TensorFlow are kept until
    # their process ends.
    with multiprocessing.get_context("spawn").Pool(given.processes, maxtasksperchild=100) as pool:
        for number, found in enumerate(pool.imap(functools.partial(compiled, folder=given.folder), tasks), 1):
            rows += found
            if number % 20 == 0:
                print(f"{number} of {len(tasks)} programs, {time.monotonic() - start:.0f} s", flush=True)
    wrong = list(unexpected(rows))
    print("\n".join(wrong) or f"{len(rows)} compilations, all as expected")
    if given.one_in == 1 and not any("export" in row.refused for row in rows):
        given.page.write_text(page(rows, (time.monotonic() - start) / 60), encoding="utf-8")
        print(f"wrote {given.page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
