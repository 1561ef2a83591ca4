"""OpenVINO: the six models from their SavedModels; float32.

python openvino_run.py FOLDER
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino
from compare import Run, compare, median_seconds, saved_model
from models import Arrays, Model

# `compress_to_fp16=False` and f32: OpenVINO would otherwise halve the precision of weights, and on some CPUs of sums.
PRECISION = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}


def run(model: Model, inputs: Sequence[Arrays], folder: Path) -> Run:
    converted = openvino.convert_model(saved_model(model, folder))
    openvino.save_model(converted, folder / "model.xml", compress_to_fp16=False)
    size = sum((folder / name).stat().st_size for name in ("model.xml", "model.bin"))
    compiled = openvino.Core().compile_model(converted, "CPU", PRECISION)

    def call(values: Arrays) -> Arrays:
        found = compiled(values)
        return {name: np.array(found[name]) for name in sorted(output.any_name for output in compiled.outputs)}

    results = [call(one) for one in inputs]
    return Run(results, size, median_seconds(lambda: call(inputs[-1])))


if __name__ == "__main__":
    compare("OpenVINO", run, sys.argv[1])
