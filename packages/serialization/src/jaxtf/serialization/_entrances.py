"""The public functions that need JAX: each refuses where it is not installed, and imports what needs it when called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxtf.serialization import _with_jax
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.negotiation import ModuleVersions, lower_of
from jaxtf.serialization._requires import require_jax

__all__ = ["default_export_platform", "export", "export_for_graph", "lift", "negotiate"]


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: list[str] | tuple[str, ...] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    calling_convention_version: int | None = None,
    stablehlo_version: str | None = None,
    tensorflow_version: str | None = None,
    expand_linear_algebra: bool = False,
) -> Callable[..., Exported]:
    """A function from argument specifications to the exported `fun_jit`.

    Args:
      fun_jit: A JAX function or another callable: a method, a `functools.partial`, an instance with
        `__call__`, hashable or not. `jax.jit` is applied unless it is already the result of it.
      platforms: Lowering platforms, such as `("cpu", "cuda", "tpu")`; by default that of JAX's
        default backend. None of them needs to be present.
      disabled_checks: Safety checks to skip; those of `jax.export` too.
      calling_convention_version: 9 or 10; by default what
        `--jax_export_calling_convention_version` says.
      stablehlo_version: The StableHLO version that the consumer reads, such as `"1.13.7"`; by
        default one that consumers built in the last month read.
      tensorflow_version: Of the oldest TensorFlow that is to run the module, such as `"2.21"`: the calling
        convention and the StableHLO version that it reads, as far as they are written here, become the defaults of
        the two arguments above.
      expand_linear_algebra: Whether linear algebra for CPU is to be written out in operations that need no
        LAPACK in the process that runs them, such as one of TensorFlow; by default it calls
        jaxlib's. Holds for the VJP too. Other platforms keep JAX's form.

    Returns:
      A function that takes `fun_jit`'s arguments with arrays replaced by anything that has a shape,
      possibly symbolic, and a dtype (such as `jax.ShapeDtypeStruct`), and returns `Exported`.

    Raises:
      JaxRequiredError: JAX is not installed.
      PlatformError: A platform that does not exist.
      DisabledCheckError: Something among `disabled_checks` that is not a check.
      CallingConventionError: A calling convention version that is not written, or that this TensorFlow does not read.
      StablehloVersionError: A StableHLO version that the installed jaxlib does not write, or that this TensorFlow does
        not read.
      TensorFlowVersionError: A malformed `tensorflow_version`, or one older than all that modules are written for.
      ScopeError: Dimension variables of two scopes among the arguments (when called).
      UnsolvableDimensionVariables: The argument shapes do not determine a dimension variable
        (when called).
      UnstableCustomCall: The module calls a target not known to be stable (when called).
      HostCallbackError: The function calls back into Python (when called).
      LapackNeeded: `expand_linear_algebra`, and there is a call of LAPACK that cannot be expanded (when called).

    >>> import jax, jax.numpy as jnp
    >>> from jaxtf.shapepoly import symbolic_shape
    >>> exported = export(jnp.sin)(jax.ShapeDtypeStruct(symbolic_shape("b, 4"), jnp.float32))
    >>> print(exported)
    Exported(sin: (float32[b,4]) -> (float32[b,4]) for cpu)
    >>> exported.call(jnp.zeros((2, 4))).shape
    (2, 4)
    """
    require_jax("export")
    target = _with_jax.target_of(
        platforms=platforms,
        disabled_checks=disabled_checks,
        calling_convention_version=calling_convention_version,
        stablehlo_version=stablehlo_version,
        tensorflow_version=tensorflow_version,
        expand_linear_algebra=expand_linear_algebra,
    )
    return _with_jax.exporter(fun_jit, target)


def export_for_graph(
    fun: Callable[..., Any], *, disabled_checks: Sequence[DisabledSafetyCheck] = ()
) -> Callable[..., Exported]:
    """As `export`, for those who translate the module, operation by operation, instead of compiling it.

    The module has the high-level operations that JAX lowers to where it knows nothing of the platform, linear algebra
    is called by name (`_export.named_operations` has the contract), and the StableHLO version is the newest that the
    installed jaxlib writes. No check of custom calls: it is the translator who knows them. Such an export is no
    artifact: no platform runs it.
    """
    require_jax("export_for_graph")
    return _with_jax.exporter(fun, _with_jax.target_for_graph(disabled_checks))


def default_export_platform() -> str:
    """The lowering platform of JAX's default backend: `cpu`, `cuda`, `rocm`, `tpu` or a plugin's."""
    require_jax("default_export_platform")
    return _with_jax.default_export_platform()


def lift(source: Any, *, names: list[str] | tuple[str, ...] | None = None, platform: str | None = None) -> Any:
    """A StableHLO module of any producer, as a JAX function: differentiable, vectorizable, to be exported again.

    Args:
      source: An `Exported` of this package or of `jax.export`, the bytes of an artifact of either, a module as text, as
        bytecode or as a portable artifact, the `pathlib.Path` of a file with one of these, what `jax.jit(f).lower(...)`
        gives, or anything that prints as the text, such as a module of MLIR's bindings.
      names: Names of functions of the module to lift, instead of its main function.
      platform: As for `Exported.lift`.

    Returns:
      Of an exported function, a function of its pytrees; see `Exported.lift`. Of a module, a function of the arguments
      of its function `main` (of the only public one, if none has the name), in order, which returns one array, or a
      tuple of arrays where `main` has another number of results. With `names`, a dict of such functions.

    Raises:
      LiftUnsupported: An operation without a JAX function, or effects.
      ArtifactError: It is not a module, or one that its record does not describe.
      PlatformError: The function was not lowered for `platform`.
      TypeError: `names` is one text.
      JaxRequiredError: JAX is not installed.

    >>> import jax
    >>> square = lift('''
    ... func.func @main(%x: tensor<f32>) -> tensor<f32> {
    ...   %0 = stablehlo.multiply %x, %x : tensor<f32>
    ...   return %0 : tensor<f32>
    ... }''')
    >>> float(jax.grad(square)(3.0))
    6.0
    """
    require_jax("lift")
    return _with_jax.lift(source, names, platform)


def negotiate(reads: ModuleVersions, writes: ModuleVersions | None = None) -> ModuleVersions:
    """The versions to write a module in: of each number the lower of the version read and the version written.

    Only newest versions are compared. If what the consumer reads is older than anything that can be written, the result
    is what it reads, which `export` then refuses.

    Args:
      reads: The newest that the consumer reads.
      writes: The newest that the producer writes; by default this process, which needs JAX.

    Raises:
      CallingConventionError: `writes` is not given, and JAX's flag has a version that is not written.
      JaxRequiredError: `writes` is not given, and JAX is not installed.
      StablehloVersionError: Malformed.

    >>> negotiate(ModuleVersions(10, "1.20.0"), ModuleVersions(10, "1.17.0"))
    ModuleVersions(calling_convention_version=10, stablehlo_version='1.17.0')
    >>> negotiate(ModuleVersions(9, "1.9.1"), ModuleVersions(10, "1.17.0"))
    ModuleVersions(calling_convention_version=9, stablehlo_version='1.9.1')
    """
    if writes is None:
        require_jax("negotiate")
        writes = _with_jax.written_here()
    return lower_of(reads, writes)
