"""JAX functions exported to StableHLO with symbolic shapes.

`export(fun)(*specs)` gives an `Exported`: the function lowered for one or several platforms,
with its calling convention, that JAX, TensorFlow and other consumers run.

Importing this package imports neither JAX nor TensorFlow; `export` and `Exported.call` import JAX.
"""

from jaxtf.serialization._avals import Aval, ExtendedDtype
from jaxtf.serialization._checks import DisabledSafetyCheck
from jaxtf.serialization._effects import Effect
from jaxtf.serialization._errors import (
    ArgumentMismatch,
    ArtifactError,
    CallingConventionError,
    HostCallbackError,
    PlatformError,
    SerializationError,
    StablehloVersionError,
    UnstableCustomCall,
    VersionError,
    VjpUnavailable,
)
from jaxtf.serialization._export import default_export_platform, export
from jaxtf.serialization._exported import Exported, Producer
from jaxtf.serialization._paths import argument_paths
from jaxtf.serialization._platforms import BUILT_IN_PLATFORMS
from jaxtf.serialization._registration import register_namedtuple_serialization, register_pytree_node_serialization
from jaxtf.serialization._shardings import AbstractDevice, AbstractMesh, HloSharding, NamedSharding
from jaxtf.serialization._tree import Tree
from jaxtf.serialization._versions import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)

__all__ = [
    "BUILT_IN_PLATFORMS",
    "AbstractDevice",
    "AbstractMesh",
    "ArgumentMismatch",
    "ArtifactError",
    "Aval",
    "CallingConventionError",
    "DisabledSafetyCheck",
    "Effect",
    "Exported",
    "ExtendedDtype",
    "HloSharding",
    "HostCallbackError",
    "NamedSharding",
    "PlatformError",
    "Producer",
    "SerializationError",
    "StablehloVersionError",
    "Tree",
    "UnstableCustomCall",
    "VersionError",
    "VjpUnavailable",
    "argument_paths",
    "default_export_platform",
    "export",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
]
