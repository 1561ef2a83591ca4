"""OpenVINO: the six models from their SavedModels; what has operations on bits, through a TFLite model.

python openvino_run.py FOLDER
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino
from compare import Limit, Run, compare, median_seconds, must_fail, saved_model, tflite_model
from models import Arrays, Model

# `compress_to_fp16=False` and f32: OpenVINO would otherwise halve the precision of weights, and on some CPUs of sums.
PRECISION = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

BITS = Limit("No conversion rule found for operations: Bitcast", "random bits, although they are constants: no Bitcast")
THROUGH_TFLITE = {"vae": BITS, "diffusion": BITS}


def run(model: Model, batch: int | None, inputs: Sequence[Arrays], folder: Path) -> Run:
    path = saved_model(model, batch, folder)
    limit = THROUGH_TFLITE.get(model.name)
    if limit is not None:
        must_fail(limit, model, lambda: run_converted(path, inputs, folder), inputs)
        path = str(folder / "model.tflite")
        Path(path).write_bytes(tflite_model(model, batch))
    made = run_converted(path, inputs, folder)
    if limit is not None:  # results have lost their names, not their order, which is that of the names
        results = [dict(zip(sorted(model.expected(inputs[0])), one.values(), strict=True)) for one in made.results]
        made = Run(results, made.size, made.seconds)
    return made


def run_converted(path: str, inputs: Sequence[Arrays], folder: Path) -> Run:
    converted = openvino.convert_model(path)
    openvino.save_model(converted, folder / "model.xml", compress_to_fp16=False)
    size = sum((folder / name).stat().st_size for name in ("model.xml", "model.bin"))
    compiled = openvino.Core().compile_model(converted, "CPU", PRECISION)
    named = all(input.any_name in inputs[0] for input in compiled.inputs)

    def call(values: Arrays) -> Arrays:
        found = compiled(values if named else list(values.values()))
        return {name: np.array(found[name]) for name in sorted(output.any_name for output in compiled.outputs)}

    results = [call(one) for one in inputs]
    return Run(results, size, median_seconds(lambda: call(inputs[-1])))


if __name__ == "__main__":
    compare("OpenVINO", run, sys.argv[1])
