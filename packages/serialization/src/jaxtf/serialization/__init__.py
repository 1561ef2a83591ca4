"""JAX functions exported to StableHLO with symbolic shapes.

`export(fun)(*specs)` gives an `Exported`: the function lowered for one or several platforms,
with its calling convention, that JAX, TensorFlow and other consumers run.

Importing this package imports neither JAX nor TensorFlow; `export` and `Exported.call` import JAX.
"""

from jaxtf.serialization._avals import Aval
from jaxtf.serialization._checks import DisabledSafetyCheck
from jaxtf.serialization._errors import (
    ArgumentMismatch,
    CallingConventionError,
    HostCallbackError,
    PlatformError,
    StablehloVersionError,
    UnstableCustomCall,
    VjpUnavailable,
)
from jaxtf.serialization._export import default_export_platform, export
from jaxtf.serialization._exported import Exported
from jaxtf.serialization._paths import argument_paths
from jaxtf.serialization._platforms import BUILT_IN_PLATFORMS
from jaxtf.serialization._versions import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)

__all__ = [
    "BUILT_IN_PLATFORMS",
    "ArgumentMismatch",
    "Aval",
    "CallingConventionError",
    "DisabledSafetyCheck",
    "Exported",
    "HostCallbackError",
    "PlatformError",
    "StablehloVersionError",
    "UnstableCustomCall",
    "VjpUnavailable",
    "argument_paths",
    "default_export_platform",
    "export",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]
