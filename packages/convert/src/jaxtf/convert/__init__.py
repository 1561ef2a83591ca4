"""JAX functions in TensorFlow: eager, `tf.function`, `jit_compile=True` and SavedModel.

`convert(fun)` gives a function of TensorFlow values, `convert_exported(artifact)` does where there
is no JAX, `save_model` writes a function with its parameters as a SavedModel. Needs TensorFlow; needs
JAX to convert a function, not to run what was exported or saved.
"""

from jaxtf.convert._convert import convert
from jaxtf.convert._convert_exported import convert_exported
from jaxtf.convert._dtypes import dtype_of_val
from jaxtf.convert._errors import (
    ArgumentTypeError,
    ConstantsTooLarge,
    ConversionOptionError,
    ConversionStateError,
    GradientNotSaved,
    TensorFlowTooOld,
    UnknownCustomCall,
)
from jaxtf.convert._eval_shape import eval_polymorphic_shape
from jaxtf.convert._partitioning import split_to_logical_devices
from jaxtf.convert._save_model import save_model
from jaxtf.convert._saved import Saved, SavedSignature
from jaxtf.serialization import DisabledSafetyCheck
from jaxtf.shapepoly import PolyShape

__all__ = [
    "ArgumentTypeError",
    "ConstantsTooLarge",
    "ConversionOptionError",
    "ConversionStateError",
    "DisabledSafetyCheck",
    "GradientNotSaved",
    "PolyShape",
    "Saved",
    "SavedSignature",
    "TensorFlowTooOld",
    "UnknownCustomCall",
    "convert",
    "convert_exported",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "save_model",
    "split_to_logical_devices",
]
