"""`Exported`: the immutable record of one exported function.

The waist of jaxtf: everything on the JAX side makes one, everything that consumes a function
(JAX, a TensorFlow op, a SavedModel, a tf.Graph) needs nothing else. Holding and comparing one
needs no JAX; calling it and reading its module text do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jaxtf.serialization._avals import Aval
from jaxtf.serialization._checks import DisabledSafetyCheck
from jaxtf.serialization._errors import VjpUnavailable
from jaxtf.serialization._paths import argument_paths
from jaxtf.shapepoly import Solution, solve_dimension_variables

__all__ = ["Exported"]


@dataclass(frozen=True)
class Exported:
    """A JAX function lowered to StableHLO, with everything needed to call it.

    Attributes:
      fun_name: Name of the exported function, for messages.
      in_tree: The JAX treedef of `(args, kwargs)`.
      in_avals: Shape and dtype of each flat argument, in the order of `in_tree`; sizes may be
        dimension expressions.
      out_tree: The JAX treedef of the result.
      out_avals: Shape and dtype of each flat result; its dimension variables are among those
        of `in_avals`.
      platforms: Lowering platforms, in the order of the platform index.
      ordered_effects: Ordered effects; `main` takes and returns one token each, in this order.
      unordered_effects: Effects without a token.
      disabled_safety_checks: Safety checks that the exporter disabled.
      nr_devices: Number of devices that the module is lowered for.
      mlir_module_serialized: The module as a portable artifact.
      stablehlo_version: The StableHLO version that the portable artifact is written for.
      calling_convention_version: Order and meaning of `main`'s arguments, 9 or 10.
      module_kept_var_idx: Positions of the flat arguments that the module takes; the others are unused.
      uses_global_constants: Whether dimension variables or the platform index must be filled in
        before the module can be compiled.
      uses_shardy: Whether the module's shardings are for the Shardy partitioner.

    The names are those of `jax.export.Exported`. Two are equal if all of these are.
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[Aval, ...]
    out_tree: Any
    out_avals: tuple[Aval, ...]
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    nr_devices: int
    mlir_module_serialized: bytes = field(repr=False)
    stablehlo_version: str
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    uses_shardy: bool
    # Makes the VJP when first asked; it remembers what it made.
    _make_vjp: Callable[[], Exported] | None = field(default=None, compare=False, repr=False)

    def has_vjp(self) -> bool:
        """Whether `vjp` can answer."""
        return self._make_vjp is not None

    def vjp(self) -> Exported:
        """The exported VJP: from flat arguments and result cotangents to argument cotangents.

        Its arguments are those of this function, flat, then a cotangent for each flat result;
        its results a cotangent for each flat argument. Integer and boolean values have
        cotangents of dtype `float0`. Platforms, symbolic scope with its constraints, disabled
        checks and versions are those of this function. It is made once, at the first call.

        Raises:
          VjpUnavailable: This function was loaded from somewhere that kept no VJP.
        """
        if self._make_vjp is None:
            raise VjpUnavailable(
                f"No VJP is available for '{self.fun_name}': it was loaded from bytes that carry none\n"
                "  remedy: export it again where the JAX function is at hand, with the orders of VJP that you need"
            )
        return self._make_vjp()

    @cached_property
    def solution(self) -> Solution:
        """How the dimension variables follow from the shapes of the flat arguments, with the checks that they entail.

        The same computation that the module does when it runs; `Solution.run` does it in a caller's
        operations. It is made once.
        """
        paths = argument_paths(self.in_tree)
        return solve_dimension_variables([(p, aval.shape) for p, aval in zip(paths, self.in_avals, strict=True)])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the exported function from JAX, also inside `jit`, `grad` and other exports.

        Args:
          *args: Arrays in the pytree structure of `in_tree`, of shapes that `in_avals` allow.
          **kwargs: Likewise.

        Returns:
          Arrays in the structure of `out_tree`.

        Raises:
          ArgumentMismatch: The structure, a rank, dtype or size differs; the message names the
            argument and gives expected and found.
          PlatformError: The function was not lowered for the platform it is to run on.
        """
        from jaxtf.serialization._call import call_exported

        return call_exported(self, self.flat_call, args, kwargs)

    @cached_property
    def flat_call(self) -> Callable[..., Sequence[Any]]:
        """`call` without the pytrees: from flat arrays to flat arrays, in the order of the avals."""
        from jaxtf.serialization._call import differentiable_flat_call

        return differentiable_flat_call(self)

    def mlir_module(self) -> str:
        """The StableHLO module as text, with source locations."""
        from jaxtf.serialization import _jax

        return _jax.module_text(_jax.deserialize_module(self.mlir_module_serialized))

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.in_avals))
        results = ", ".join(map(str, self.out_avals))
        return f"Exported({self.fun_name}: ({arguments}) -> ({results}) for {', '.join(self.platforms)})"
