"""JAX functions exported to StableHLO with symbolic shapes.

`export(fun)(*specs)` gives an `Exported`: the function lowered for one or several platforms,
with its calling convention, that JAX, TensorFlow and other consumers run.

Importing this package imports neither JAX nor TensorFlow; `export` and `Exported.call` import JAX.

A name is imported at first use: a cold process describes an artifact in 0.1 s, and importing all of
them at once, with symbolic dimensions and NumPy, would take longer than that.
"""

from typing import TYPE_CHECKING

from jaxtf.serialization._lazy import lazy_names

if TYPE_CHECKING:
    from jaxtf.serialization._artifact.describe import describe
    from jaxtf.serialization._artifact.description import Description
    from jaxtf.serialization._artifact.deserialize import deserialize
    from jaxtf.serialization._container.source import Readable
    from jaxtf.serialization._entrances import default_export_platform, export, lift, negotiate
    from jaxtf.serialization._errors import (
        ArgumentMismatch,
        ArtifactError,
        CalledFunctionsRefused,
        CallingConventionError,
        DeviceCountError,
        DictionaryKeyError,
        DisabledCheckError,
        EffectsRefused,
        HostCallbackError,
        LapackNeeded,
        LiftUnsupported,
        LoweringRuleMissing,
        PartitionerError,
        PlatformError,
        ReferenceRefused,
        SerializationError,
        StablehloVersionError,
        TensorFlowVersionError,
        UnstableCustomCall,
        UnstableDialect,
        VersionError,
        VjpUnavailable,
    )
    from jaxtf.serialization._record.avals import Aval, ExtendedDtype
    from jaxtf.serialization._record.checks import DisabledSafetyCheck
    from jaxtf.serialization._record.cost import Cost
    from jaxtf.serialization._record.effects import Effect
    from jaxtf.serialization._record.exported import Exported
    from jaxtf.serialization._record.negotiation import ModuleVersions
    from jaxtf.serialization._record.opaque import OpaqueNode
    from jaxtf.serialization._record.platforms import BUILT_IN_PLATFORMS
    from jaxtf.serialization._record.producer import Producer
    from jaxtf.serialization._record.registration import (
        register_library,
        register_namedtuple_serialization,
        register_pytree_node_serialization,
    )
    from jaxtf.serialization._record.shardings import AbstractDevice, AbstractMesh, NamedSharding
    from jaxtf.serialization._record.tensorflow import tensorflow_reads
    from jaxtf.serialization._record.tree import Tree
    from jaxtf.serialization._record.versions import (
        maximum_supported_calling_convention_version,
        minimum_supported_calling_convention_version,
    )
    from jaxtf.serialization._requires import JaxRequiredError
    from jaxtf.serialization._version import __version__ as __version__
    from jaxtf.serialization._weights.model import ExportedModel, export_model, load, save

__all__ = [
    "BUILT_IN_PLATFORMS",
    "AbstractDevice",
    "AbstractMesh",
    "ArgumentMismatch",
    "ArtifactError",
    "Aval",
    "CalledFunctionsRefused",
    "CallingConventionError",
    "Cost",
    "Description",
    "DeviceCountError",
    "DictionaryKeyError",
    "DisabledCheckError",
    "DisabledSafetyCheck",
    "Effect",
    "EffectsRefused",
    "Exported",
    "ExportedModel",
    "ExtendedDtype",
    "HostCallbackError",
    "JaxRequiredError",
    "LapackNeeded",
    "LiftUnsupported",
    "LoweringRuleMissing",
    "ModuleVersions",
    "NamedSharding",
    "OpaqueNode",
    "PartitionerError",
    "PlatformError",
    "Producer",
    "Readable",
    "ReferenceRefused",
    "SerializationError",
    "StablehloVersionError",
    "TensorFlowVersionError",
    "Tree",
    "UnstableCustomCall",
    "UnstableDialect",
    "VersionError",
    "VjpUnavailable",
    "default_export_platform",
    "describe",
    "deserialize",
    "export",
    "export_model",
    "lift",
    "load",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "negotiate",
    "register_library",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "save",
    "tensorflow_reads",
]

# The module of each name; a test holds it against the imports above.
_MODULES = {
    "Aval": "_record.avals",
    "ExtendedDtype": "_record.avals",
    "DisabledSafetyCheck": "_record.checks",
    "deserialize": "_artifact.deserialize",
    "describe": "_artifact.describe",
    "Description": "_artifact.description",
    "Cost": "_record.cost",
    "Effect": "_record.effects",
    "Readable": "_container.source",
    "ArgumentMismatch": "_errors",
    "ArtifactError": "_errors",
    "CallingConventionError": "_errors",
    "DeviceCountError": "_errors",
    "DictionaryKeyError": "_errors",
    "DisabledCheckError": "_errors",
    "CalledFunctionsRefused": "_errors",
    "EffectsRefused": "_errors",
    "HostCallbackError": "_errors",
    "LapackNeeded": "_errors",
    "LiftUnsupported": "_errors",
    "LoweringRuleMissing": "_errors",
    "PartitionerError": "_errors",
    "PlatformError": "_errors",
    "ReferenceRefused": "_errors",
    "SerializationError": "_errors",
    "StablehloVersionError": "_errors",
    "TensorFlowVersionError": "_errors",
    "UnstableCustomCall": "_errors",
    "UnstableDialect": "_errors",
    "VersionError": "_errors",
    "VjpUnavailable": "_errors",
    "default_export_platform": "_entrances",
    "export": "_entrances",
    "lift": "_entrances",
    "Exported": "_record.exported",
    "Producer": "_record.producer",
    "ModuleVersions": "_record.negotiation",
    "negotiate": "_entrances",
    "BUILT_IN_PLATFORMS": "_record.platforms",
    "OpaqueNode": "_record.opaque",
    "register_library": "_record.registration",
    "register_namedtuple_serialization": "_record.registration",
    "register_pytree_node_serialization": "_record.registration",
    "JaxRequiredError": "_requires",
    "AbstractDevice": "_record.shardings",
    "AbstractMesh": "_record.shardings",
    "NamedSharding": "_record.shardings",
    "tensorflow_reads": "_record.tensorflow",
    "Tree": "_record.tree",
    "maximum_supported_calling_convention_version": "_record.versions",
    "minimum_supported_calling_convention_version": "_record.versions",
    "__version__": "_version",
    "ExportedModel": "_weights.model",
    "export_model": "_weights.model",
    "load": "_weights.model",
    "save": "_weights.model",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES, prefix=f"{__name__}.")
