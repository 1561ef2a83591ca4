"""JAX functions in TensorFlow: eager, `tf.function`, `jit_compile=True` and SavedModel.

`convert(fun)` gives a function of TensorFlow values, `convert_exported(artifact)` does where there
is no JAX. Needs TensorFlow; needs JAX to convert a function, not to run what was exported or saved.
"""

from jaxtf.convert._convert import convert
from jaxtf.convert._convert_exported import convert_exported
from jaxtf.convert._errors import (
    ArgumentTypeError,
    ConversionOptionError,
    ConversionStateError,
    TensorFlowTooOld,
)
from jaxtf.serialization import DisabledSafetyCheck

__all__ = [
    "ArgumentTypeError",
    "ConversionOptionError",
    "ConversionStateError",
    "DisabledSafetyCheck",
    "TensorFlowTooOld",
    "convert",
    "convert_exported",
]
