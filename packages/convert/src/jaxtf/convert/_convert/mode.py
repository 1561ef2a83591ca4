"""Native mode or graph mode: which of them `native_serialization` asks for.

Left out, it is graph mode where `enable_xla` is False, which native mode cannot heed. Else it is what JAX's flag
`--jax2tf_default_native_serialization` or the environment variable `JAX2TF_DEFAULT_NATIVE_SERIALIZATION` says, as in
upstream; native mode, if neither does.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import Literal

from jaxtf.convert._errors import ConversionOptionError

__all__ = ["DEFAULT_NATIVE_SERIALIZATION", "VARIABLE", "NativeSerialization", "is_native"]

VARIABLE = "JAX2TF_DEFAULT_NATIVE_SERIALIZATION"

_TEXTS = {
    **dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "f", "false", "off", "0"), False),
}


class _Default(Enum):
    """Represents an option that was not given."""

    DEFAULT = "DEFAULT_NATIVE_SERIALIZATION"

    def __repr__(self) -> str:
        return self.value


DEFAULT_NATIVE_SERIALIZATION = _Default.DEFAULT

NativeSerialization = bool | Literal["default"] | _Default


def is_native(native_serialization: NativeSerialization, enable_xla: bool) -> bool:
    """Whether native mode is requested.

    Raises:
      ConversionOptionError: Native mode without XLA, or the environment variable is neither true nor false.
    """
    is_given = native_serialization not in (DEFAULT_NATIVE_SERIALIZATION, "default")
    if is_given and native_serialization and not enable_xla:
        raise ConversionOptionError(
            "native_serialization=True and enable_xla=False exclude each other: in native mode XLA runs the function\n"
            "  remedy: leave one of them out; enable_xla=False alone is graph mode"
        )
    if is_given:
        return bool(native_serialization)
    if not enable_xla:
        return False
    try:
        import jax
    except ImportError:
        flag = None
    else:
        flag = getattr(jax.config, VARIABLE.lower(), None)  # it reads the environment variable too
    if flag is not None:
        return bool(flag)
    text = os.environ.get(VARIABLE, "true")
    if text.lower() not in _TEXTS:
        raise ConversionOptionError(f"the environment variable {VARIABLE} must be true or false. Got: {text!r}")
    return _TEXTS[text.lower()]
