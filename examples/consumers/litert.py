"""ai-edge-litert: the six models as TFLite models, and the digits model with 8-bit integers.

python litert.py FOLDER
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from compare import Run, compare, median_seconds, tflite_model
from models import MODELS, Arrays, Model

IMAGES = 500


def run(model: Model, inputs: Sequence[Arrays], folder: Path) -> Run:
    content = tflite_model(model)
    (folder / "model.tflite").write_bytes(content)
    runner = Interpreter(model_content=content, num_threads=1).get_signature_runner()
    results = [runner(**one) for one in inputs]
    return Run(results, len(content), median_seconds(lambda: runner(**inputs[-1])))


def quantized() -> None:
    """The digits model with weights and activations of 8 bits names the same digit nearly always."""
    model = MODELS[0]
    typical = [list(model.inputs(1 + seed % 3).values()) for seed in range(100)]
    small, large = tflite_model(model, typical), tflite_model(model)
    images = np.random.default_rng(0).normal(size=(IMAGES, 8, 8)).astype(np.float32)
    runner = Interpreter(model_content=small, num_threads=1).get_signature_runner()
    found = runner(images=images)["scores"].argmax(axis=1)
    same = float((found == model.expected({"images": images})["scores"].argmax(axis=1)).mean())
    assert len(small) < 0.6 * len(large), (len(small), len(large))
    assert same >= 0.9, same
    print(f"LiteRT int8      digits       {len(small):8d} bytes instead of {len(large)}; the same digit for {same:.1%}")


if __name__ == "__main__":
    compare("LiteRT", run, sys.argv[1])
    quantized()
