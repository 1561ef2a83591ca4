"""JAX functions in TensorFlow: eager, `tf.function`, `jit_compile=True` and SavedModel.

`convert(fun)` gives a function of TensorFlow values, `convert_exported(artifact)` does where there
is no JAX, `save_model` writes a function with its parameters as a SavedModel. Needs TensorFlow; needs
JAX to convert a function, not to run what was exported or saved.

A name is imported at first use, and TensorFlow with the first one that needs it: a program that may
convert something later does not wait for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxtf.serialization.interop import lazy_names, require_jax

if TYPE_CHECKING:
    from jaxtf.convert._as_jax2tf.install import install_as_jax2tf
    from jaxtf.convert._convert.containers import register_tensorflow_containers
    from jaxtf.convert._convert.convert import convert
    from jaxtf.convert._convert.convert_exported import convert_exported
    from jaxtf.convert._convert.convert_stablehlo import convert_stablehlo
    from jaxtf.convert._convert.eval_shape import eval_polymorphic_shape
    from jaxtf.convert._convert.mode import DEFAULT_NATIVE_SERIALIZATION
    from jaxtf.convert._errors import (
        ArgumentTypeError,
        CalltfRequiredError,
        ConstantsTooLarge,
        ConversionOptionError,
        ConversionStateError,
        FunctionTypeError,
        GradientNotSaved,
        GraphModeUnsupported,
        NativeModeUnsupported,
        ParameterError,
        ResultTypeError,
        TensorFlowTooOld,
        TFLiteUnsupported,
        UnknownCustomCall,
    )
    from jaxtf.convert._function.partitioning import split_to_logical_devices
    from jaxtf.convert._saved_model.save_exported import save_exported
    from jaxtf.convert._saved_model.save_model import save_model
    from jaxtf.convert._saved_model.saved import Saved, SavedSignature
    from jaxtf.convert._tflite.to_tflite import to_tflite
    from jaxtf.convert._values.dtypes import dtype_of_val
    from jaxtf.convert._verify.explain import explain
    from jaxtf.convert._verify.explanation import Explanation
    from jaxtf.convert._verify.report import Report
    from jaxtf.convert._verify.verify import verify
    from jaxtf.convert._version import __version__ as __version__
    from jaxtf.serialization import DisabledSafetyCheck
    from jaxtf.shapepoly import JaxRequiredError, PolyShape

__all__ = [
    "DEFAULT_NATIVE_SERIALIZATION",
    "ArgumentTypeError",
    "CalltfRequiredError",
    "ConstantsTooLarge",
    "ConversionOptionError",
    "ConversionStateError",
    "DisabledSafetyCheck",
    "Explanation",
    "FunctionTypeError",
    "GradientNotSaved",
    "GraphModeUnsupported",
    "JaxRequiredError",
    "NativeModeUnsupported",
    "ParameterError",
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
    "explain",
    "install_as_jax2tf",
    "register_tensorflow_containers",
    "save_exported",
    "save_model",
    "split_to_logical_devices",
    "to_tflite",
    "verify",
]

# The module of each name; a test holds it against the imports above.
_MODULES = {
    "install_as_jax2tf": "jaxtf.convert._as_jax2tf.install",
    "register_tensorflow_containers": "jaxtf.convert._convert.containers",
    "convert": "jaxtf.convert._convert.convert",
    "convert_exported": "jaxtf.convert._convert.convert_exported",
    "convert_stablehlo": "jaxtf.convert._convert.convert_stablehlo",
    "dtype_of_val": "jaxtf.convert._values.dtypes",
    "ArgumentTypeError": "jaxtf.convert._errors",
    "CalltfRequiredError": "jaxtf.convert._errors",
    "ConstantsTooLarge": "jaxtf.convert._errors",
    "ConversionOptionError": "jaxtf.convert._errors",
    "ConversionStateError": "jaxtf.convert._errors",
    "FunctionTypeError": "jaxtf.convert._errors",
    "GradientNotSaved": "jaxtf.convert._errors",
    "GraphModeUnsupported": "jaxtf.convert._errors",
    "NativeModeUnsupported": "jaxtf.convert._errors",
    "ParameterError": "jaxtf.convert._errors",
    "ResultTypeError": "jaxtf.convert._errors",
    "TensorFlowTooOld": "jaxtf.convert._errors",
    "TFLiteUnsupported": "jaxtf.convert._errors",
    "UnknownCustomCall": "jaxtf.convert._errors",
    "eval_polymorphic_shape": "jaxtf.convert._convert.eval_shape",
    "DEFAULT_NATIVE_SERIALIZATION": "jaxtf.convert._convert.mode",
    "split_to_logical_devices": "jaxtf.convert._function.partitioning",
    "save_exported": "jaxtf.convert._saved_model.save_exported",
    "save_model": "jaxtf.convert._saved_model.save_model",
    "Saved": "jaxtf.convert._saved_model.saved",
    "SavedSignature": "jaxtf.convert._saved_model.saved",
    "to_tflite": "jaxtf.convert._tflite.to_tflite",
    "Explanation": "jaxtf.convert._verify.explanation",
    "explain": "jaxtf.convert._verify.explain",
    "Report": "jaxtf.convert._verify.report",
    "verify": "jaxtf.convert._verify.verify",
    "DisabledSafetyCheck": "jaxtf.serialization",
    "JaxRequiredError": "jaxtf.shapepoly",
    "PolyShape": "jaxtf.shapepoly",
    "__version__": "jaxtf.convert._version",
}


# What works with JAX functions only: its modules import JAX.
_NEED_JAX = {"convert", "eval_polymorphic_shape", "explain", "register_tensorflow_containers", "save_model", "verify"}


def _refusing(wanted: str, error: ImportError) -> Callable[..., Any]:
    """What takes the place of a function that cannot be imported here: called, it says what is missing."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if wanted in _NEED_JAX:
            require_jax(wanted, "jaxtf-convert")
        raise error

    return refuse


__getattr__, __dir__ = lazy_names(globals(), _MODULES, absent=_refusing)
