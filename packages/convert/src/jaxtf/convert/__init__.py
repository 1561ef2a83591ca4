"""JAX functions in TensorFlow: eager, `tf.function`, `jit_compile=True` and SavedModel.

`convert(fun)` gives a function of TensorFlow values, `convert_exported(artifact)` does where there
is no JAX, `save_model` writes a function with its parameters as a SavedModel. Needs TensorFlow; needs
JAX to convert a function, not to run what was exported or saved.
"""

from jaxtf.convert._convert import convert
from jaxtf.convert._convert_exported import convert_exported
from jaxtf.convert._convert_stablehlo import convert_stablehlo
from jaxtf.convert._dtypes import dtype_of_val
from jaxtf.convert._errors import (
    ArgumentTypeError,
    ConstantsTooLarge,
    ConversionOptionError,
    ConversionStateError,
    GradientNotSaved,
    GraphModeUnsupported,
    ResultTypeError,
    TensorFlowTooOld,
    TFLiteUnsupported,
    UnknownCustomCall,
)
from jaxtf.convert._eval_shape import eval_polymorphic_shape
from jaxtf.convert._mode import DEFAULT_NATIVE_SERIALIZATION
from jaxtf.convert._partitioning import split_to_logical_devices
from jaxtf.convert._save_model import save_model
from jaxtf.convert._saved import Saved, SavedSignature
from jaxtf.convert._tflite import to_tflite
from jaxtf.convert._verify.report import Report
from jaxtf.convert._verify.verify import verify
from jaxtf.serialization import DisabledSafetyCheck
from jaxtf.shapepoly import JaxRequiredError, PolyShape

__all__ = [
    "DEFAULT_NATIVE_SERIALIZATION",
    "ArgumentTypeError",
    "ConstantsTooLarge",
    "ConversionOptionError",
    "ConversionStateError",
    "DisabledSafetyCheck",
    "GradientNotSaved",
    "GraphModeUnsupported",
    "JaxRequiredError",
    "PolyShape",
    "Report",
    "ResultTypeError",
    "Saved",
    "SavedSignature",
    "TFLiteUnsupported",
    "TensorFlowTooOld",
    "UnknownCustomCall",
    "convert",
    "convert_exported",
    "convert_stablehlo",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "save_model",
    "split_to_logical_devices",
    "to_tflite",
    "verify",
]
