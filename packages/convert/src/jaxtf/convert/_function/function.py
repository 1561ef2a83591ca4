"""An exported function on flat tensors, whichever mode turns it into TensorFlow operations.

`NativeFunction` holds its module in one op, `GraphFunction` translates it. What gradients, SavedModels and caches need
to know is the same for both, and here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError, ResultTypeError
from jaxtf.convert._function.checked_sizes import mismatch
from jaxtf.convert._function.constants import Constant
from jaxtf.convert._values.dtypes import has_tf_dtype, is_float0, tf_dtype
from jaxtf.convert._values.sizes import result_shapes
from jaxtf.serialization import Exported, ExtendedDtype
from jaxtf.shapepoly import ShapeMismatch, is_symbolic_dim

__all__ = ["ExportedFunction"]


class ExportedFunction(ABC):
    """An exported function on flat tensors; needs no JAX.

    Args:
      exported: What it computes.
      constants: Large arrays that it takes as its last flat arguments; they have no gradient.
      make_vjp: Gives the VJP, in the same form; by default that of `exported`.

    Raises:
      ArgumentTypeError, ResultTypeError: An argument or result is a JAX random key.

    Attributes:
      exported: The same.
      constants: The same.
      argument_dtypes: Of each flat argument, without the constants; bool for `float0`.
      is_regular: Whether it becomes operations that other consumers than TensorFlow know.
    """

    is_regular: ClassVar[bool] = False

    def __init__(
        self,
        exported: Exported,
        constants: Sequence[Constant] = (),
        make_vjp: Callable[[], ExportedFunction] | None = None,
    ) -> None:
        _refuse_random_keys(exported)
        _refuse_dtypes(exported)
        self.exported = exported
        self.constants = tuple(constants)
        self._make_vjp = make_vjp
        self._argument_count = len(exported.in_avals) - len(self.constants)
        self.argument_dtypes = tuple(tf_dtype(aval.dtype) for aval in exported.in_avals[: self._argument_count])
        self._is_sharded = any((*exported.in_shardings, *exported.out_shardings))

    @abstractmethod
    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the function, unseen by tapes, or adds it to the graph.

        Args:
          arguments: One tensor for each of `exported.in_avals`, of its dtype: also the constants.

        Returns:
          One tensor for each of `exported.out_avals`.

        Raises:
          tf.errors.InvalidArgumentError: Sizes that the symbolic shapes do not allow: at once where
            TensorFlow knows them, else when it runs.
          ConversionStateError: In eager mode: arguments or results that are split over devices.
        """

    @cached_property
    def run_eagerly(self) -> Callable[[Sequence[tf.Tensor]], list[tf.Tensor]]:
        """Runs the function in eager mode: from arguments without the constants.

        Raises:
          tf.errors.InvalidArgumentError, ConversionStateError: As when it is called.
        """
        if not self.constants:
            return self
        return lambda arguments: self([*arguments, *(constant.tensor() for constant in self.constants)])

    def with_checked_sizes(self, arguments: Sequence[tf.Tensor], *, by_signature: bool) -> Sequence[tf.Tensor]:
        """Arguments in a graph whose constant sizes are those that the function needs, or become an error when it runs.

        Args:
          arguments: One tensor for each of `exported.in_avals`.
          by_signature: Whether the graph is of a signature, which TensorFlow calls with arrays of any shape.

        Raises:
          tf.errors.InvalidArgumentError: Sizes that are known, and others.
        """
        return arguments

    @abstractmethod
    def like(self, exported: Exported) -> ExportedFunction:
        """Another exported function in the same form."""

    def _result_shapes(self, arguments: Sequence[tf.Tensor]) -> list[list[int | None]]:
        """The shapes of the results as far as they are known.

        Raises:
          tf.errors.InvalidArgumentError: Sizes that the symbolic shapes do not allow.
        """
        exported, sizes = self.exported, []
        for argument, aval, name in zip(arguments, self.exported.in_avals, self.exported.in_names, strict=True):
            rank = argument.shape.rank
            if rank not in (None, aval.ndim):  # a cotangent
                raise mismatch(exported, name, aval.shape, argument.shape)
            sizes.append([None] * aval.ndim if rank is None else argument.shape.as_list())
        try:
            return result_shapes(exported, sizes)
        except ShapeMismatch as error:
            raise tf.errors.InvalidArgumentError(None, None, str(error)) from error

    def specifications(self) -> list[tf.TensorSpec]:
        """What the arguments and constants look like to TensorFlow: None for symbolic sizes."""
        return [
            tf.TensorSpec([None if is_symbolic_dim(size) else size for size in aval.shape], tf_dtype(aval.dtype))
            for aval in self.exported.in_avals
        ]

    def has_vjp(self) -> bool:
        """Whether `vjp` can answer."""
        return self._make_vjp is not None or self.exported.has_vjp()

    @cached_property
    def vjp(self) -> ExportedFunction:
        """The exported VJP in the same form, made when first requested; it has no cotangents of constants."""
        return self.like(self.exported.vjp()) if self._make_vjp is None else self._make_vjp()

    @cached_property
    def argument_has_gradient(self) -> tuple[bool, ...]:
        """For each flat argument, whether it has a cotangent: integers and booleans have none."""
        return tuple(not is_float0(aval.dtype) for aval in self.vjp.exported.out_avals)

    @cached_property
    def result_has_gradient(self) -> tuple[bool, ...]:
        """The same for each flat result."""
        end = self._argument_count + len(self.exported.out_avals)
        cotangents = self.vjp.exported.in_avals[self._argument_count : end]
        return tuple(not is_float0(aval.dtype) for aval in cotangents)

    @cached_property
    def pulls_back_plainly(self) -> bool:
        """Whether the VJP is all there is to a gradient: no constants, no complex numbers, none without a gradient."""
        avals = (*self.exported.in_avals, *self.exported.out_avals)
        return (
            not (self.constants or self.vjp.constants)
            and all((*self.argument_has_gradient, *self.result_has_gradient))
            and not any(tf_dtype(aval.dtype).is_complex for aval in avals)
        )


def _refuse_random_keys(exported: Exported) -> None:
    for name, aval in zip(exported.in_names, exported.in_avals, strict=True):
        if isinstance(aval.dtype, ExtendedDtype):
            raise ArgumentTypeError(
                f"{name} of '{exported.fun_name}' is a JAX random key, {aval}, for which TensorFlow has no dtype\n"
                "  remedy: let the function take the key's data, and make the key with jax.random.wrap_key_data"
            )
    for name, aval in zip(exported.out_names, exported.out_avals, strict=True):
        if isinstance(aval.dtype, ExtendedDtype):
            raise ResultTypeError(
                f"{name} of '{exported.fun_name}' is a JAX random key, {aval}, for which TensorFlow has no dtype\n"
                "  remedy: let the function return jax.random.key_data of it"
            )


def _refuse_dtypes(exported: Exported) -> None:
    arguments = zip(exported.in_names, exported.in_avals, strict=True)
    results = zip(exported.out_names, exported.out_avals, strict=True)
    for each, error in ((arguments, ArgumentTypeError), (results, ResultTypeError)):
        for name, aval in each:
            if not has_tf_dtype(aval.dtype):
                raise error(
                    f"{name} of '{exported.fun_name}' has dtype {aval.dtype.name}, which TensorFlow "
                    f"{tf.__version__} does not have\n"
                    "  remedy: let the function take and return a wider dtype, and narrow inside with astype"
                )
