"""Runs notebooks, and compares what their cells print with what was saved.

    python tools/run_notebook.py [--write] NOTEBOOK.ipynb ...

Each runs in a folder of its own, in a Jupyter kernel of this interpreter. An error in a cell, or another output than
the saved one (up to runs of spaces and newlines), is a fault; exit status 1 if there is one. With `--write`, what is
printed is saved instead. Needs nbclient and ipykernel.
"""

from __future__ import annotations

import doctest
import sys
import tempfile
from pathlib import Path
from typing import Any

from notebook_pages import text_of


def differences(saved: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """One text for each cell whose output is not the saved one."""
    checker, found = doctest.OutputChecker(), []
    for number, (before, after) in enumerate(zip(saved["cells"], run["cells"], strict=True), start=1):
        if after["cell_type"] != "code":
            continue
        shown, got = text_of(before), text_of(after)
        if not checker.check_output(shown, got, doctest.NORMALIZE_WHITESPACE):
            difference = checker.output_difference(doctest.Example("", shown), got, 0)
            found.append(f"cell {number}: {''.join(after['source']).splitlines()[0]} ...\n{difference}")
    return found


def main(arguments: list[str]) -> int:
    """Runs the notebooks; the exit status."""
    import nbformat
    from nbclient import NotebookClient

    faults = 0
    for path in (Path(argument) for argument in arguments if not argument.startswith("--")):
        saved, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(notebook, kernel_name="python3", record_timing=False)
            client.execute(cwd=folder)
        if "--write" in arguments:
            nbformat.write(without_noise(notebook), path)
            continue
        found = differences(saved, notebook)
        faults += len(found)
        print(*found, f"{path}: {len(notebook['cells'])} cells, {len(found)} with another output", sep="\n", flush=True)
    return 1 if faults else 0


def without_noise(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without what differs from machine to machine: standard error, and the versions of its kernel."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
