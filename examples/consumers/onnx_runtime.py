"""ONNX Runtime: the six models, converted from their SavedModels by tf2onnx.

python onnx_runtime.py FOLDER
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import onnxruntime
import tensorflow as tf
import tf2onnx
from compare import Run, compare, median_seconds, saved_model, specs
from models import Arrays, Model

OPSET = 18


def run(model: Model, inputs: Sequence[Arrays], folder: Path) -> Run:
    loaded = tf.saved_model.load(saved_model(model, folder))

    # The signature itself would do, if tf2onnx took concrete functions; its results are named so here, too.
    @tf.function(autograph=False, input_signature=specs(model))
    def serve(*arguments):
        return loaded.signatures["serving_default"](**dict(zip(model.signature, arguments, strict=True)))

    path = folder / "model.onnx"
    tf2onnx.convert.from_function(serve, specs(model), opset=OPSET, output_path=str(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = [dict(zip(names, session.run(names, one), strict=True)) for one in inputs]
    return Run(results, path.stat().st_size, median_seconds(lambda: session.run(names, inputs[-1])))


if __name__ == "__main__":
    compare("ONNX Runtime", run, sys.argv[1])
