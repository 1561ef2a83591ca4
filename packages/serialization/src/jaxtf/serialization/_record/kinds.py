"""The numbers that represent kinds and dtypes in an artifact, and their names.

Once written, a number keeps its meaning forever.
Source: the enumerations in the flatbuffer schema of jax.export, JAX 0.4.30 to 0.12.0.1.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "DICT_NAME",
    "DTYPES",
    "DTYPE_NUMBERS",
    "AbstractValueKind",
    "AxisType",
    "DisabledSafetyCheckKind",
    "MemorySpace",
    "PyTreeDefKind",
    "ShardingKind",
]


class PyTreeDefKind(IntEnum):
    """Kinds of pytree nodes."""

    LEAF = 0
    NONE = 1
    TUPLE = 2
    LIST = 3
    DICT = 4
    CUSTOM = 5


class AbstractValueKind(IntEnum):
    """Kinds of avals."""

    SHAPED_ARRAY = 0
    ABSTRACT_TOKEN = 1


class MemorySpace(IntEnum):
    """Where an array lives; MISSING in formats that did not say, where it is the device."""

    MISSING = 0
    DEVICE = 1
    HOST = 2
    ANY = 3


class AxisType(IntEnum):
    """How an axis of a mesh is partitioned."""

    MISSING = 0
    AUTO = 1
    EXPLICIT = 2
    MANUAL = 3


class ShardingKind(IntEnum):
    """Forms of a sharding."""

    UNSPECIFIED = 0
    HLO_SHARDING = 1
    NAMED_SHARDING = 2


class DisabledSafetyCheckKind(IntEnum):
    """Kinds of safety checks."""

    PLATFORM = 0
    CUSTOM_CALL = 1
    SHAPE_ASSERTIONS = 2


DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
    "uint4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float0",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "key<fry>",
    "key<rbg>",
    "key<urbg>",
)
"""The name of the dtype with each number: NumPy's, that of `ml_dtypes`, or JAX's for random keys and `float0`."""

DTYPE_NUMBERS = {name: number for number, name in enumerate(DTYPES)}

DICT_NAME = "jaxtf.dict"
"""What a dictionary is called whose keys are not all strings, which the flatbuffer's own kind must have."""
