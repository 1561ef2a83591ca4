"""What `save_model` wrote, for people and programs to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

__all__ = ["METADATA_FILE", "Saved", "SavedSignature"]

METADATA_FILE = Path("assets.extra", "metadata.json")


@dataclass(frozen=True)
class SavedSignature:
    """One signature of a SavedModel.

    Attributes:
      inputs: Name, shape and dtype of each input; None is a size left open.
      outputs: The same of each result.
    """

    inputs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, tf.TensorSpec]

    def __str__(self) -> str:
        return f"({_texts(self.inputs)}) -> {_texts(self.outputs)}"


@dataclass(frozen=True)
class Saved:
    """What `save_model` wrote.

    Attributes:
      path: The folder.
      signatures: By name.
      gradient_order: How often the loaded function can be differentiated.
      parameter_bytes: Size of the parameters.
      constant_bytes: Size of the large arrays that the function closed over, saved as variables too.
      graph_bytes: Size of `saved_model.pb`: modules, graphs, small constants.
    """

    path: str
    signatures: Mapping[str, SavedSignature]
    gradient_order: int
    parameter_bytes: int
    constant_bytes: int
    graph_bytes: int

    def __str__(self) -> str:
        sizes = (
            f"{self.parameter_bytes:,} bytes of parameters, {self.constant_bytes:,} of constants, "
            f"{self.graph_bytes:,} of graph"
        )
        lines = [f"  {name}{signature}" for name, signature in self.signatures.items()]
        return "\n".join([f"{self.path}: {sizes}; {self.gradient_order} orders of gradient", *lines])


def _texts(specs: Mapping[str, tf.TensorSpec]) -> str:
    return ", ".join(f"{name}: {_text(spec)}" for name, spec in specs.items())


def _text(spec: tf.TensorSpec) -> str:
    sizes = ",".join("?" if size is None else str(size) for size in spec.shape)
    return f"{spec.dtype.name}[{sizes}]"
