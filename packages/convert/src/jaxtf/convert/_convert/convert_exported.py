"""`convert_exported`: an exported function, or its artifact, as a function of TensorFlow values.

What `convert` does after tracing, without anything that needs JAX: a process that has only NumPy,
TensorFlow and jaxtf-serialization runs an artifact, differentiates it as often as the artifact has
orders of VJP, and saves it. JAX is needed only where the module is newer than TensorFlow reads.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._convert.mode import DEFAULT_NATIVE_SERIALIZATION, NativeSerialization, is_native
from jaxtf.convert._convert.target import graph_function
from jaxtf.convert._errors import ArgumentTypeError, ConversionOptionError, TensorFlowTooOld
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._function.gradient import run_differentiable, run_without_gradient
from jaxtf.convert._native.consumer import installed_reads
from jaxtf.convert._native.custom_calls import checked_checks
from jaxtf.convert._native.native import NativeFunction
from jaxtf.convert._values.arguments import read, refuse_specification
from jaxtf.convert._values.dtypes import as_tensor, check_range, dtype_matches, tf_dtype
from jaxtf.convert._values.names import argument_names, in_graphs
from jaxtf.convert._values.structure import flat_arguments
from jaxtf.serialization import (
    ArgumentMismatch,
    DisabledSafetyCheck,
    Exported,
    ExportedModel,
    ModuleVersions,
    Readable,
    VersionError,
    negotiate,
)
from jaxtf.serialization.interop import plain_containers, read_artifact
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["ExportedConversion", "conversion_of", "convert_exported", "read_exported"]

Run: TypeAlias = Callable[[ExportedFunction, Sequence[tf.Tensor]], list[tf.Tensor]]
"""Applies a function to flat tensors."""


@_tf.left_alone_by_autograph
def convert_exported(
    exported: Exported | ExportedModel | Readable,
    *,
    with_gradient: bool = True,
    native_serialization: NativeSerialization = DEFAULT_NATIVE_SERIALIZATION,
    enable_xla: bool = True,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Any]:
    """A function for TensorFlow values that runs an exported JAX function; needs no JAX.

    Args:
      exported: What `jaxtf.serialization.export` returned, or an artifact: its bytes, a path or an open file,
        from a source you trust. It runs on the platforms that it was exported for. Of a program with its weights
        (`load`, or the file itself) the function takes the other arguments; the weights are variables, in its
        attributes `variables` and `trainable_variables`, made when it is first called.
      with_gradient: Whether TensorFlow can differentiate the result, as often as there are orders
        of VJP: any number for a fresh export, `vjp_order` for an artifact.
      native_serialization: As in `convert`; graph mode needs jaxlib to read the module.
      enable_xla: As in `convert`.
      disabled_checks: `DisabledSafetyCheck.custom_call(...)` for custom-call targets that the process which runs the
        function registers. Those that an artifact itself names are ignored.

    Returns:
      A function of the exported one's signature: arguments are tensors, variables, NumPy arrays and
      Python scalars in the structure that it was exported with, of its dtypes; results are tensors.
      It runs in eager mode, in `tf.function` (also with `jit_compile=True`) and in a SavedModel.

    Raises:
      ConversionOptionError: Not an exported function, or one over several devices.
      OSError: The file cannot be read.
      ArtifactError, VersionError: The bytes are not a readable artifact, or its module is not what its record
        describes.
      UnknownCustomCall: The module calls LAPACK (export it with `expand_linear_algebra=True`), or
        another target that TensorFlow does not have and `disabled_checks` does not name.
      NativeModeUnsupported: In native mode: sizes in it depend on values.
      TensorFlowTooOld: The module is newer than this TensorFlow reads, and JAX, which could rewrite it, is not
        installed.
      GraphModeUnsupported: In graph mode: an operation that has no translation.
      ArgumentMismatch: When called: another structure, rank or dtype than exported.
      tf.errors.InvalidArgumentError: When run: sizes that the symbolic shapes do not allow.

    >>> import jax, jax.numpy as jnp, tensorflow as tf
    >>> from jaxtf.serialization import export
    >>> from jaxtf.shapepoly import symbolic_shape
    >>> exported = export(lambda x: x.sum(axis=0))(jax.ShapeDtypeStruct(symbolic_shape("b, 2"), jnp.float32))
    >>> convert_exported(exported.serialize())(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([4., 6.], dtype=float32)
    """
    program = read_exported(exported, "convert_exported")
    conversion = conversion_of(
        program,
        native_serialization=native_serialization,
        enable_xla=enable_xla,
        disabled_checks=disabled_checks,
        run=run_differentiable if with_gradient else run_without_gradient,
    )

    return _callable(conversion)


def _callable(conversion: ExportedConversion) -> Callable[..., Any]:
    """The function that `convert_exported` returns."""

    def converted(*args: Any, **kwargs: Any) -> Any:
        return conversion.call(args, kwargs)

    name = conversion.function.exported.fun_name
    converted.__name__ = converted.__qualname__ = f"converted_{name}" if name.isidentifier() else "converted_fun"
    _tf.left_alone_by_autograph(converted)
    converted.__doc__ = f"{conversion.function.exported}, converted by jaxtf.convert."
    return converted if conversion.weights is None else _WithVariables(converted, conversion, conversion.weights)


class _WithVariables:
    """A converted function whose weights are variables."""

    def __init__(self, converted: Callable[..., Any], conversion: ExportedConversion, weights: Weights) -> None:
        functools.update_wrapper(self, converted)
        self._converted = converted
        self._conversion = conversion
        self._weights = weights

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Python copies no closure: the function would go on with the variables of this one.
        copied = _callable(replace(self._conversion, weights=copy.deepcopy(self._weights, memo)))
        for name, value in vars(self).items():
            if name not in vars(copied):
                setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._converted(*args, **kwargs)

    @property
    def variables(self) -> list[tf.Variable]:
        """The weights, each once."""
        return self._weights.distinct

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """Those that are floating or complex."""
        return [variable for variable in self.variables if variable.trainable]


def read_exported(source: Any, wanted: str) -> Exported | ExportedModel:
    """What was exported, from a record, a path, a file or bytes.

    Raises:
      ConversionOptionError: It is something else.
    """
    if isinstance(source, Exported | ExportedModel):
        return source
    if not isinstance(source, str | os.PathLike | bytes | bytearray | memoryview) and not hasattr(source, "read"):
        raise ConversionOptionError(
            f"{wanted} needs an Exported or the bytes of an artifact, found {type(source).__name__}: {source!r:.60}\n"
            "  remedy: for a JAX function, use convert"
        )
    return read_artifact(source)


def conversion_of(
    program: Exported | ExportedModel,
    *,
    native_serialization: NativeSerialization,
    enable_xla: bool,
    disabled_checks: Sequence[DisabledSafetyCheck],
    run: Run,
) -> ExportedConversion:
    """The conversion of an exported function; options as for `convert_exported`.

    Args:
      program: The function, with weights or without.
      native_serialization: As in `convert`.
      enable_xla: Likewise.
      disabled_checks: Likewise.
      run: How to apply the function on tensors, with a gradient or without.
    """
    weights = Weights(program) if isinstance(program, ExportedModel) else None
    exported = program.exported if isinstance(program, ExportedModel) else program
    function: ExportedFunction
    checks = checked_checks(disabled_checks)
    if is_native(native_serialization, enable_xla):
        function = NativeFunction(_readable(exported), disabled_checks=checks)
    else:
        function = graph_function(exported, allows_xla=enable_xla)
    return ExportedConversion(function, run, weights)


class Weights:
    """The weights of a program as variables, made when they are first needed.

    In a program of TensorFlow 1 a variable is of one graph: there each graph has its own.

    Args:
      model: The program with its weights.
    """

    def __init__(self, model: ExportedModel) -> None:
        self.model = model
        self._by_graph: dict[tf.Graph | None, _Variables] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Weights:
        copied = Weights(self.model)
        copied._by_graph = {graph: copy.deepcopy(made, memo) for graph, made in self._by_graph.items()}
        return copied

    @property
    def flat(self) -> list[tf.Variable]:
        """A variable for each flat value; what is shared is one variable."""
        return self._current().flat

    @property
    def distinct(self) -> list[tf.Variable]:
        """Each variable once."""
        return list({id(variable): variable for variable in self.flat}.values())

    def _current(self) -> _Variables:
        """The variables of the outermost graph, or those of eager mode."""
        if tf.executing_eagerly() and None in self._by_graph:
            return self._by_graph[None]
        with tf.init_scope():
            graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
            if graph not in self._by_graph:
                self._by_graph[graph] = self._made()
        return self._by_graph[graph]

    def _made(self) -> _Variables:
        made = {
            leaf.identity: tf.Variable(
                np.asarray(leaf.value, leaf.aval.dtype),
                trainable=_is_inexact(tf_dtype(leaf.aval.dtype)),
                name=argument_names((f"args[0]['{leaf.name}']",), ("params",))[0],
            )
            for leaf in {leaf.identity: leaf for leaf in self.model.leaves}.values()
        }
        flat = [made[leaf.identity] for leaf in self.model.leaves]
        arguments, remaining = self.model.exported.in_structure.children[0].children, iter(flat)
        nested = {
            position: arguments[position].unflatten([next(remaining) for _ in range(arguments[position].leaf_count)])
            for position in self.model.positions
        }
        return _Variables(flat, nested)

    def inserted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a call with the weights in their places."""
        remaining, bound = list(args), self._current().nested
        merged = []
        for position in range(len(args) + len(bound)):
            if position in bound:
                merged.append(bound[position])
            elif remaining:
                merged.append(remaining.pop(0))
        return (*merged, *remaining)


@dataclass(frozen=True)
class _Variables:
    """The variables of one graph, or of eager mode.

    Attributes:
      flat: One for each flat value.
      nested: By the position of the argument, in its structure.
    """

    flat: list[tf.Variable]
    nested: dict[int, Any]


def _is_inexact(dtype: tf.DType) -> bool:
    return bool(dtype.is_floating or dtype.is_complex)


def _remedy(value: Any) -> str:
    """What to do with an argument that is not of the dtype expected."""
    if hasattr(value, "dtype") or isinstance(value, int | float | complex):
        return "tf.cast it, if that is what you want"
    return "make it an array, with np.asarray" if isinstance(value, list | tuple) else "pass an array or a tensor"


def _readable(exported: Exported) -> Exported:
    """The exported function in a StableHLO version that this TensorFlow reads."""
    reads, own = installed_reads(), ModuleVersions(exported.calling_convention_version, exported.stablehlo_version)
    if negotiate(reads, own).stablehlo_version == own.stablehlo_version:
        return exported
    try:
        return exported.with_stablehlo_version(negotiate(reads).stablehlo_version)
    except ImportError as error:
        raise _too_new(exported, reads, "and JAX, which could rewrite it, is not installed") from error
    except VersionError as error:
        raise _too_new(exported, reads, "and the installed jaxlib is too old to rewrite it") from error


def _too_new(exported: Exported, reads: ModuleVersions, why: str) -> TensorFlowTooOld:
    return TensorFlowTooOld(
        f"the module of '{exported.fun_name}' is written for StableHLO {exported.stablehlo_version}; TensorFlow "
        f"{tf.__version__} reads up to {reads.stablehlo_version}, {why}\n"
        f"  remedy: export it with tensorflow_version={tf.__version__!r}, or rewrite the artifact where JAX is: "
        f"jaxtf-artifact upgrade FILE -o OUT --tensorflow-version {tf.__version__}"
    )


@dataclass(frozen=True)
class ExportedConversion:
    """One converted function.

    Attributes:
      function: Runs it on flat tensors.
      run: How it is applied: so that TensorFlow can differentiate it, or not.
      weights: Values of some of its arguments, which a call does not pass; None where there are none.
    """

    function: ExportedFunction
    run: Run
    weights: Weights | None = None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Applies the function to nested TensorFlow values."""
        exported = self.function.exported
        args = plain_containers(args) if self.weights is None else self.weights.inserted(plain_containers(args))
        flat = flat_arguments(exported, args, plain_containers(kwargs))
        tensors = [self._tensor(index, value) for index, value in enumerate(flat)]
        return exported.out_structure.unflatten(self.run(self.function, tensors))

    def _tensor(self, index: int, value: Any) -> tf.Tensor:
        """A flat argument as a tensor, of the dtype and rank that the function was exported for."""
        exported, dtype = self.function.exported, self.function.argument_dtypes[index]
        name, aval = exported.in_names[index], exported.in_avals[index]
        value = read(value, lambda: name)
        if not dtype_matches(value, dtype):
            found = getattr(value, "dtype", type(value).__name__)
            raise ArgumentTypeError(
                f"Dtype mismatch for {name} of the exported function '{exported.fun_name}': expected {dtype.name} and "
                f"called with {getattr(found, 'name', found)}\n  remedy: {_remedy(value)}"
            )
        refuse_specification(value, lambda: name)
        if type(value) is int:
            check_range(value, dtype, f"{name} of the exported function '{exported.fun_name}'")
        tensor = as_tensor(value, dtype)
        if tensor.shape.rank is not None and tensor.shape.rank != aval.ndim:
            raise ArgumentMismatch(
                f"Rank mismatch for {name} of the exported function '{exported.fun_name}': expected {aval.shape} and "
                f"called with {tensor.shape}"
            )
        if tensor.shape.rank is None:
            needed = tf.TensorShape([None if is_symbolic_dim(size) else size for size in aval.shape])
            return _tf.ensured(tensor, needed, f"shape_of_{in_graphs(name)}")
        self._check_constants(name, aval.shape, tensor.shape)
        return tensor

    def _check_constants(self, name: str, expected: Sequence[Any], found: tf.TensorShape) -> None:
        for axis, (size, actual) in enumerate(zip(expected, found, strict=True)):
            if not is_symbolic_dim(size) and actual is not None and actual != size:
                raise ArgumentMismatch(
                    f"Shape mismatch for {name}.shape[{axis}] (expected same constant) of the exported function "
                    f"'{self.function.exported.fun_name}': expected {tuple(expected)} and called with {found}"
                )
