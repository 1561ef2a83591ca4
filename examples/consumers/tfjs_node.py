"""TF.js in Node, with the backends cpu and wasm: the six models, converted from their SavedModels by tensorflowjs.

    JAXTF_TFJS_PYTHON=.../bin/python python tfjs_node.py FOLDER

tensorflowjs needs an environment of its own, whose interpreter is JAXTF_TFJS_PYTHON (see noxfile.py); Node and npm are
the system's, and what npm installs goes into FOLDER.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from compare import Consumer, Run, compare, folder_size, made_folder, saved_model
from models import MODELS, Arrays, Model

PROGRAMS = Path(__file__).parent / "tfjs"


def converted(folder: Path) -> None:
    """Writes the graph models, FOLDER/graph/NAME, in one process."""
    pairs = []
    for model in MODELS:
        pairs += [saved_model(model, made_folder(folder, model.name)), str(folder / "graph" / model.name)]
    subprocess.run([os.environ["JAXTF_TFJS_PYTHON"], "-W", "ignore", str(PROGRAMS / "convert.py"), *pairs], check=True)


def consumer(backend: str, root: Path) -> Consumer:
    def run(model: Model, inputs: Sequence[Arrays], folder: Path) -> Run:
        graph = root / "graph" / model.name
        calls = [{name: as_json(value) for name, value in one.items()} for one in inputs]
        (folder / "jobs.json").write_text(json.dumps([{"folder": str(graph), "calls": calls}]))
        results = root / "results.json"  # next to node_modules
        subprocess.run(
            ["node", str(PROGRAMS / "run.mjs"), backend, str(folder / "jobs.json"), str(results)], check=True
        )
        [found] = json.loads(results.read_text())
        if "error" in found:
            raise RuntimeError(found["error"])
        names = sorted(model.expected(inputs[0]))
        arrays = [{original(name, names): of_json(value) for name, value in one.items()} for one in found["results"]]
        return Run(arrays, folder_size(graph), found["milliseconds"] / 1e3)

    return run


def original(name: str, names: list[str]) -> str:
    """The name of a result: the converter loses it where two have one shape; `Identity_1:0` is then the second."""
    lost = re.fullmatch(r"Identity(?:_(\d+))?:0", name)
    return names[int(lost[1] or 0)] if lost else name


def as_json(value: np.ndarray) -> dict:
    return {"shape": list(value.shape), "dtype": str(value.dtype), "data": value.ravel().tolist()}


def of_json(value: dict) -> np.ndarray:
    return np.array(value["data"], value["dtype"]).reshape(value["shape"])


def main(folder: str) -> None:
    root = made_folder(folder).resolve()
    shutil.copy(PROGRAMS / "package.json", root)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], check=True, cwd=root)
    converted(root)
    for backend in ("cpu", "wasm"):
        compare(f"TF.js {backend}", consumer(backend, root), root)


if __name__ == "__main__":
    main(sys.argv[1])
