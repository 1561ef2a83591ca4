"""Where the time went: each part of each step adds one line to `times.jsonl` in the output folder."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """Something that was timed: "serve", "load the SavedModel", 1.2."""

    step: str
    name: str
    seconds: float


class Clock:
    """Times the parts of one step: `clock = Clock("train", out)`, then `with clock("compile"): ...`."""

    def __init__(self, step: str, out: Path):
        self._step = step
        self._file = out / "times.jsonl"

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Times the block and records it under the name, unless the block raises."""
        start = time.perf_counter()
        yield
        part = Part(self._step, name, time.perf_counter() - start)
        with self._file.open("a") as lines:
            lines.write(json.dumps(part._asdict()) + "\n")


def recorded(out: Path) -> list[Part]:
    """All parts recorded in the folder, in the order in which they ended."""
    return [Part(**json.loads(line)) for line in (out / "times.jsonl").read_text().splitlines()]


def output_folder() -> Path:
    """The folder named on the command line, made if need be."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: python {sys.argv[0]} OUTPUT_FOLDER")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    return out
