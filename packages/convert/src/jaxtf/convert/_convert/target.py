"""What a function is exported for, and what becomes of that: one op (native mode) or many (graph mode)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jaxtf.convert._convert.mode import NativeSerialization, is_native
from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._native.consumer import versions_to_write
from jaxtf.convert._native.custom_calls import checked_checks
from jaxtf.convert._native.native import NativeFunction
from jaxtf.serialization import BUILT_IN_PLATFORMS, DisabledSafetyCheck, Exported, export
from jaxtf.serialization.interop import export_for_graph

__all__ = ["Target", "target_of"]


@dataclass(frozen=True)
class Target:
    """What a function is exported for.

    Attributes:
      export: From a function to the one that exports it for specifications.
      make: From an `Exported`, the constants and the maker of its VJP to the function on tensors.
    """

    export: Callable[[Any], Callable[..., Exported]]
    make: Callable[..., ExportedFunction]


def target_of(
    *,
    native_serialization: NativeSerialization,
    platforms: Sequence[str] | None,
    disabled_checks: Sequence[DisabledSafetyCheck],
    tensorflow_version: str | None,
    enable_xla: bool,
    avoids: frozenset[str] = frozenset(),
) -> Target:
    """The target that options of `convert` ask for; they have their names there, without `native_serialization_`.

    No platforms are those of the default, as in jax2tf. `avoids` is as in `GraphFunction`.

    Raises:
      ConversionOptionError: Platforms that do not exist, a version of TensorFlow in graph mode, native mode without
        XLA, or disabled checks that are none.
    """
    disabled_checks = checked_checks(disabled_checks)
    platforms = None if platforms in ((), []) else platforms
    platforms = _checked_platforms(platforms)
    if is_native(native_serialization, enable_xla):
        exporter = functools.partial(
            export,
            platforms=platforms,
            disabled_checks=disabled_checks,
            expand_linear_algebra=True,  # TensorFlow has no LAPACK that XLA calls
            **asdict(versions_to_write(tensorflow_version)),
        )
        return Target(exporter, NativeFunction)
    if platforms is not None:
        warnings.warn(
            "native_serialization_platforms says for which platforms native mode lowers; it is ignored in graph mode, "
            f"whose TensorFlow operations run wherever TensorFlow has kernels. Got: {platforms!r}",
            stacklevel=3,
        )
    if tensorflow_version is not None:
        raise ConversionOptionError(
            "tensorflow_version says for which TensorFlow native mode writes its module; graph mode "
            "(native_serialization=False) gives the operations of the installed TensorFlow. "
            f"Got: {tensorflow_version!r}\n  remedy: leave it out, or convert with that TensorFlow installed"
        )
    exporter = functools.partial(export_for_graph, disabled_checks=disabled_checks)
    return Target(exporter, functools.partial(graph_function, allows_xla=enable_xla, avoids=avoids))


def graph_function(exported: Exported, *given: Any, **options: Any) -> ExportedFunction:
    """An exported function in graph mode, which needs jaxlib; native mode does without.

    Args:
      exported: The function.
      *given: What `GraphFunction` takes besides it: constants, and how to make the VJP.
      **options: Those of `GraphFunction`.

    Raises:
      ImportError: jaxlib is not installed.
    """
    from jaxtf.convert._graph.function import GraphFunction

    return GraphFunction(exported, *given, **options)


def _checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...] | None:
    """The platforms that a user names for XlaCallModule, which knows four."""
    if platforms is None:
        return None
    if not isinstance(platforms, list | tuple) or any(name not in BUILT_IN_PLATFORMS for name in platforms):
        raise ConversionOptionError(
            "native_serialization_platforms must be a sequence containing a subset of "
            f"{{'cpu', 'cuda', 'rocm', 'tpu'}}. Got: {platforms!r}"
            + (f"\n  remedy: write it as ({platforms!r},)" if platforms in BUILT_IN_PLATFORMS else "")
        )
    return tuple(platforms)
