"""`Exported`: the immutable record of one exported function.

The waist of jaxtf: everything on the JAX side makes one, everything that consumes a function
(JAX, a TensorFlow op, a SavedModel, a tf.Graph) needs nothing else. Holding, comparing, writing
and reading one needs no JAX; calling it and reading its module text do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, overload

from jaxtf.serialization import _with_jax
from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._errors import SerializationError, VjpUnavailable
from jaxtf.serialization._record.agreement import check_agreement, check_vjp_agreement
from jaxtf.serialization._record.avals import Aval
from jaxtf.serialization._record.called import CalledFunction
from jaxtf.serialization._record.checks import DisabledSafetyCheck, checks_of
from jaxtf.serialization._record.cost import Cost
from jaxtf.serialization._record.effects import Effect
from jaxtf.serialization._record.producer import Producer
from jaxtf.serialization._record.shape_check import Shapes, check_shapes
from jaxtf.serialization._record.shardings import NamedSharding
from jaxtf.serialization._record.shown import html_table, signature_line
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._requires import require_jax
from jaxtf.shapepoly import Dimension, Solution, SymbolicScope, solve_dimension_variables

__all__ = ["EndlessVjp", "Exported"]


class EndlessVjp:
    """Makes the VJP of a function that was traced in this process, once: it has one in turn, and so on.

    Args:
      make: Exports it.
    """

    def __init__(self, make: Callable[[], Exported]) -> None:
        self._make = functools.cache(make)

    def __call__(self) -> Exported:
        """The VJP."""
        return self._make()


@dataclass(frozen=True, eq=False, repr=False)
class Exported:
    """A JAX function lowered to StableHLO, with everything needed to call it.

    Attributes:
      fun_name: Name of the exported function, for messages.
      in_structure: The pytree structure of `(args, kwargs)`.
      in_avals: Shape and dtype of each flat argument, in the order of `in_structure`; sizes may be
        dimension expressions.
      in_names: Path of each flat argument, as its caller writes it: `args[0]['w']`.
      in_shardings: How each flat argument is split over devices; None where that is not recorded.
      out_structure: The pytree structure of the result.
      out_avals: Shape and dtype of each flat result; its dimension variables are among those
        of `in_avals`.
      out_names: Path of each flat result: `result['loss']`.
      out_shardings: How each flat result is split over devices; None where that is not recorded.
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
      producer: The releases that exported it; ignored by equality.
      called_functions: Functions that the module calls by name, in the order of their `called_index`: they
        live in this process, so that such a function can be converted, but neither serialized nor called.

    The names are those of `jax.export.Exported`, as far as it has them. Two are equal if all of
    these are, shapes and constraints by their text: the scopes of two exports are never the same.
    A deserialized record is pickled with its VJPs; one that was exported in this process with the first
    order, where JAX can differentiate it. Its symbolic scope is restored together with its sizes.
    Methods that need JAX raise `JaxRequiredError` where it is not installed.
    """

    fun_name: str
    in_structure: Tree
    in_avals: tuple[Aval, ...]
    in_names: tuple[str, ...]
    in_shardings: tuple[NamedSharding | None, ...]
    out_structure: Tree
    out_avals: tuple[Aval, ...]
    out_names: tuple[str, ...]
    out_shardings: tuple[NamedSharding | None, ...]
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    nr_devices: int
    mlir_module_serialized: bytes = field(repr=False)
    stablehlo_version: str
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    uses_shardy: bool
    producer: Producer = field(default_factory=Producer)
    called_functions: tuple[CalledFunction, ...] = ()
    # Makes the VJP when first asked; it remembers what it made.
    _make_vjp: Callable[[], Exported] | None = field(default=None, repr=False)
    # Whether it was read from bytes: then nothing vouches for the record and its module being of each other.
    _is_read: bool = field(default=False, repr=False)

    @staticmethod
    def from_parts(
        *,
        fun_name: str,
        in_tree: Any,
        in_avals: Sequence[Any],
        out_tree: Any,
        out_avals: Sequence[Any],
        mlir_module_serialized: bytes,
        platforms: Sequence[str],
        calling_convention_version: int | None = None,
        in_shardings: Sequence[Any] | None = None,
        out_shardings: Sequence[Any] | None = None,
        nr_devices: int = 1,
        ordered_effects: Sequence[Any] = (),
        unordered_effects: Sequence[Any] = (),
        disabled_safety_checks: Sequence[Any] = (),
        module_kept_var_idx: Sequence[int] | None = None,
        uses_global_constants: bool | None = None,
        uses_shardy: bool | None = None,
        vjp: Exported | None = None,
    ) -> Exported:
        """A record made by hand: of a module that was rewritten, or made otherwise than by `export`; needs JAX.

        Names are those of `jax.export.Exported`. The module is checked against the record when it is first used, as
        that of an artifact is.

        Args:
          fun_name: Of the function, for messages.
          in_tree: JAX's treedef of `(args, kwargs)`.
          in_avals: Anything with shape and dtype for each flat argument: avals of JAX or of another record,
            `jax.ShapeDtypeStruct`s. Sizes may be symbolic, also those of `jax.export`, in one scope.
          out_tree: JAX's treedef of the result.
          out_avals: Likewise for each flat result.
          mlir_module_serialized: The module as a portable artifact.
          platforms: Lowering platforms, in the order of the platform index.
          calling_convention_version: 9 or 10; by default what `export` would take.
          in_shardings: A `jax.sharding.NamedSharding`, one of ours or None for each flat argument; by default None.
          out_shardings: Likewise for each flat result.
          nr_devices: Number of devices that the module is lowered for.
          ordered_effects: JAX's objects or ours, in the order of the module's tokens.
          unordered_effects: JAX's objects or ours.
          disabled_safety_checks: Checks of ours or of `jax.export`.
          module_kept_var_idx: Positions of the flat arguments that the module takes; by default all.
          uses_global_constants: Whether dimension variables or the platform index must be filled in before compiling;
            by default, if sizes are symbolic or there are several platforms.
          uses_shardy: Whether shardings are for the Shardy partitioner; by default, if the module mentions it.
          vjp: The exported VJP, if there is one.

        Raises:
          SerializationError: Trees, avals and shardings of different numbers, an `in_tree` of something else, or a
            sharding that a record does not hold.
          ArtifactError: The module is not a portable artifact.
          PlatformError, CallingConventionError, DisabledCheckError: As for `export`.
          ScopeError: Sizes of several scopes.

        >>> import jax, jax.numpy as jnp
        >>> from jaxtf.serialization import Exported, export
        >>> made = export(jnp.sin)(jax.ShapeDtypeStruct((2,), jnp.float32))
        >>> by_hand = Exported.from_parts(
        ...     fun_name="sine", in_tree=made.in_tree, in_avals=made.in_avals, out_tree=made.out_tree,
        ...     out_avals=made.out_avals, mlir_module_serialized=made.mlir_module_serialized, platforms=("cpu",))
        >>> by_hand.call(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
        """
        require_jax("Exported.from_parts")
        arguments, results = _with_jax.both_sides(
            (in_tree, in_avals, in_shardings), (out_tree, out_avals, out_shardings)
        )
        names = _with_jax.known_platforms(platforms)
        is_symbolic = arguments.has_symbolic_sizes or results.has_symbolic_sizes
        module = bytes(mlir_module_serialized)
        facts = stablehlo_facts(module)
        return Exported(
            fun_name=fun_name,
            in_structure=arguments.structure,
            in_avals=arguments.avals,
            in_names=arguments.names,
            in_shardings=arguments.shardings,
            out_structure=results.structure,
            out_avals=results.avals,
            out_names=results.names,
            out_shardings=results.shardings,
            platforms=names,
            ordered_effects=_with_jax.own_effects(ordered_effects),
            unordered_effects=_with_jax.own_effects(unordered_effects),
            disabled_safety_checks=checks_of(disabled_safety_checks),
            nr_devices=nr_devices,
            mlir_module_serialized=module,
            stablehlo_version=facts.stablehlo_version,
            calling_convention_version=_with_jax.calling_convention(calling_convention_version),
            module_kept_var_idx=tuple(range(len(in_avals)) if module_kept_var_idx is None else module_kept_var_idx),
            uses_global_constants=(
                len(names) > 1 or is_symbolic if uses_global_constants is None else uses_global_constants
            ),
            uses_shardy=facts.uses_shardy if uses_shardy is None else uses_shardy,
            producer=_with_jax.producer(),
            _make_vjp=None if vjp is None else functools.partial(_identity, vjp),
            _is_read=True,  # nothing vouches for the record and the module being of each other
        )

    @cached_property
    def _compared(self) -> tuple[Any, ...]:
        """What makes this function the same as another, in the order of the attributes."""
        constraints = () if self.scope is None else self.scope.constraints
        return (
            self.fun_name,
            self.in_structure,
            tuple(map(_compared_aval, self.in_avals)),
            self.in_names,
            self.in_shardings,
            self.out_structure,
            tuple(map(_compared_aval, self.out_avals)),
            self.out_names,
            self.out_shardings,
            self.platforms,
            self.ordered_effects,
            self.unordered_effects,
            frozenset(self.disabled_safety_checks),
            self.nr_devices,
            self.stablehlo_version,
            self.calling_convention_version,
            self.module_kept_var_idx,
            self.uses_global_constants,
            self.uses_shardy,
            frozenset((constraint.difference_text, constraint.relation) for constraint in constraints),
            self.mlir_module_serialized,
            self.called_functions,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Exported):
            return NotImplemented
        return self.has_same_function(other) and _have_same_vjps(self, other)

    def has_same_function(self, other: Exported) -> bool:
        """Whether all attributes are equal, whatever the VJPs: for `==` they are the same too.

        A record that `export` made has its VJPs on request; for `==` it is the same as itself only.

        Args:
          other: Another record, exported here or read from bytes.
        """
        return self._compared == other._compared

    def __hash__(self) -> int:
        # Cheap: JAX hashes it for every call.
        return hash((self.fun_name, len(self.in_avals), len(self.mlir_module_serialized)))

    @property
    def in_tree(self) -> Any:
        """JAX's treedef of `(args, kwargs)`; needs JAX, and the custom types among its nodes to be registered."""
        require_jax("Exported.in_tree")
        return self.in_structure.treedef

    @property
    def out_tree(self) -> Any:
        """JAX's treedef of the result; likewise."""
        require_jax("Exported.out_tree")
        return self.out_structure.treedef

    @cached_property
    def scope(self) -> SymbolicScope | None:
        """The symbolic scope of the shapes, with its constraints; None where no size is symbolic."""
        for aval in (*self.in_avals, *self.out_avals):
            for size in aval.shape:
                if isinstance(size, Dimension):
                    return size.scope
        return None

    def in_shardings_jax(self, mesh: Any = None) -> tuple[Any, ...]:
        """JAX's sharding of each flat argument, None where none is recorded: what to place arguments by.

        Args:
          mesh: A mesh of devices, of the axes that the function was exported over; by default a mesh
            without devices.

        Raises:
          ValueError: The axes of `mesh` are others.
        """
        require_jax("Exported.in_shardings_jax")
        return tuple(_with_jax.to_jax(sharding, mesh) for sharding in self.in_shardings)

    def out_shardings_jax(self, mesh: Any = None) -> tuple[Any, ...]:
        """JAX's sharding of each flat result, likewise."""
        require_jax("Exported.out_shardings_jax")
        return tuple(_with_jax.to_jax(sharding, mesh) for sharding in self.out_shardings)

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding of each flat argument, an `HloSharding` of jaxlib; None where none is recorded.

        For programs that read it; where JAX needs a sharding, `in_shardings_jax` has it. `jax.export` of today has None
        for each.
        """
        return self._shardings_hlo("in_shardings_hlo", self.in_shardings, self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding of each flat result, likewise."""
        return self._shardings_hlo("out_shardings_hlo", self.out_shardings, self.out_avals)

    def _shardings_hlo(
        self, wanted: str, shardings: Sequence[NamedSharding | None], avals: Sequence[Aval]
    ) -> tuple[Any, ...]:
        require_jax(f"Exported.{wanted}")
        return tuple(_with_jax.to_hlo(sharding, aval.ndim) for sharding, aval in zip(shardings, avals, strict=True))

    def has_vjp(self) -> bool:
        """Whether `vjp` can answer."""
        return self._make_vjp is not None

    @property
    def has_endless_vjps(self) -> bool:
        """Whether it was exported in this process, so that its VJPs are made on request."""
        return isinstance(self._make_vjp, EndlessVjp)

    def vjp(self) -> Exported:
        """The exported VJP: from flat arguments and result cotangents to argument cotangents.

        Its arguments are those of this function, flat, then a cotangent for each flat result;
        its results a cotangent for each flat argument. Integer and boolean values have
        cotangents of dtype `float0`. Platforms, symbolic scope with its constraints, disabled
        checks and versions are those of this function. It is made once, at the first call.

        Raises:
          VjpUnavailable: This function was loaded from somewhere that kept no VJP.
          ArtifactError: It was loaded with a VJP that is not that of this function.
        """
        if self._make_vjp is None:
            raise VjpUnavailable(
                f"No VJP is available for '{self.fun_name}': it was loaded from bytes that carry none\n"
                "  remedy: export it again where the JAX function is available, with the orders of VJP that you need"
            )
        return self._checked_vjp

    @cached_property
    def _checked_vjp(self) -> Exported:
        assert self._make_vjp is not None
        vjp = self._make_vjp()
        if self._is_read:
            check_vjp_agreement(self, vjp)
        return vjp

    @property
    def is_read(self) -> bool:
        """Whether it was read from bytes, so that its disabled checks are those of its writer."""
        return self._is_read

    def check_module(self) -> None:
        """Refuses a module that is not the one that this record describes; needs no JAX.

        For what was read from bytes, once; whatever calls, converts or rewrites the function asks first. Of what was
        exported in this process nothing needs to be checked. The VJPs are checked in turn, when they are used.

        Raises:
          ArtifactError: The module has no public function `main`, functions of several blocks or in a circle of
            calls, or `main` takes or gives other numbers, dtypes, ranks or static sizes than recorded; or it calls
            back into a Python process. The message says which.
          VersionError: The module's bytecode is of a later version than this release knows.
        """
        if self._is_read:
            self._agreement  # noqa: B018  it is remembered when it holds

    @cached_property
    def _agreement(self) -> None:
        check_agreement(self)

    @cached_property
    def solution(self) -> Solution:
        """How the dimension variables follow from the shapes of the flat arguments, with the checks that they entail.

        The same computation that the module does when it runs; `Solution.run` does it in a caller's
        operations. It is made once.
        """
        return solve_dimension_variables(
            [(name, aval.shape) for name, aval in zip(self.in_names, self.in_avals, strict=True)]
        )

    def check_shapes(self, *shapes: Sequence[int]) -> Shapes:
        """Checks the shapes of flat arguments, and says what they make of dimension variables and results.

        Needs no JAX. `in_names` gives the argument of each shape.

        Raises:
          ArgumentMismatch: The number of shapes, a rank or a size does not fit; the message says
            what the module would, or `export` and `call`.
        """
        return check_shapes(self.in_names, self.in_avals, self.out_avals, self.solution, shapes)

    def cost(self, /, **sizes: int) -> Cost:
        """What a call costs, as the compiler says: operations, bytes, memory, code; needs JAX.

        It is compiled for JAX's default backend, which must be among its platforms; nothing is run. Of a function over
        several devices, call it where there are so many.

        Args:
          **sizes: The value of each dimension variable.

        Raises:
          ArgumentMismatch: Not a value for each of them, or values that the constraints do not allow.
          PlatformError: The function was not lowered for the default backend.

        >>> import jax, jax.numpy as jnp
        >>> from jaxtf.serialization import export
        >>> from jaxtf.shapepoly import symbolic_shape
        >>> spec = jax.ShapeDtypeStruct(symbolic_shape("b, 64"), jnp.float32)
        >>> exported = export(lambda x: x @ x.T)(spec)
        >>> exported.cost(b=8).argument_bytes, exported.cost(b=16).argument_bytes
        (2048, 4096)
        """
        require_jax("Exported.cost")
        return _with_jax.cost_of(self, sizes)

    def with_stablehlo_version(self, stablehlo_version: str) -> Exported:
        """The same function with its module written for another StableHLO version; needs JAX.

        Raises:
          StablehloVersionError: The installed jaxlib does not write this version, or the module
            uses something that this version does not have.
        """
        require_jax("Exported.with_stablehlo_version")
        return _with_jax.retarget(self, stablehlo_version)

    def with_tensorflow_version(self, tensorflow_version: str) -> Exported:
        """The same function with its module written for a TensorFlow of this version and newer ones; needs JAX.

        The StableHLO version becomes the newest that this TensorFlow reads and the installed jaxlib writes.

        Raises:
          TensorFlowVersionError: Not the version of a TensorFlow that modules can be written for.
          CallingConventionError: The function is for several devices, in a calling convention that this TensorFlow does
            not read; only a new export changes that.
          StablehloVersionError: As `with_stablehlo_version` says.
        """
        require_jax("Exported.with_tensorflow_version")
        return _with_jax.retarget_for_tensorflow(self, tensorflow_version)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the exported function from JAX, also inside `jit`, `grad` and other exports.

        The module is one operation. `jax.vmap` of it is a loop over the batch, and it is differentiated by the VJPs
        that it carries; `lift` gives a function that JAX vectorizes and differentiates.

        Args:
          *args: Arrays in the pytree structure of `in_tree`, of shapes that `in_avals` allow.
          **kwargs: Likewise.

        Returns:
          Arrays in the structure of `out_tree`.

        Raises:
          ArgumentMismatch: The structure, a rank, dtype or size differs; the message names the
            argument and gives expected and found.
          PlatformError: The function was not lowered for the platform it is to run on.
          CalledFunctionsRefused: It calls functions by name.
        """
        require_jax("Exported.call")
        return _with_jax.call_exported(self, self.flat_call, args, kwargs)

    def lift(self, platform: str | None = None) -> Callable[..., Any]:
        """The exported function as a JAX function again: its module evaluated with `jax.lax` while JAX traces.

        `call` runs the module as one opaque operation; what this returns is differentiated in both modes to any order
        with nothing stored, vectorized, sharded, and exported again for other platforms and sizes, as any function is.
        The derivatives are those of what the module computes: a module does not have the rules that a function had
        (`jax.custom_vjp`, `jax.custom_jvp`, `jax.lax.stop_gradient`). Read the module once: `f = exported.lift()`.

        Args:
          platform: Of a module for several platforms, the one whose branches are evaluated; by default that of JAX's
            default backend. The result runs on any.

        Returns:
          A function of the pytrees that `call` takes.

        Raises:
          LiftUnsupported: An operation that no function of JAX does, or effects; before anything is evaluated. In a
            call: a use of one.
          ArtifactError: The module is not the one that the record describes.
          PlatformError: The function was not lowered for `platform`.
        """
        require_jax("Exported.lift")
        return _with_jax.lift_exported(self, platform)

    @cached_property
    def flat_call(self) -> Callable[..., Sequence[Any]]:
        """`call` without the pytrees: from flat arrays to flat arrays, in the order of the avals."""
        require_jax("Exported.flat_call")
        return _with_jax.differentiable_flat_call(self)

    def serialize(self, vjp_order: int = 0, *, format_version: int | None = None) -> bytearray:
        """The bytes of the artifact, which `deserialize` reads, and `jax.export.deserialize` too.

        Needs no JAX, unless VJPs are to be exported first.

        Args:
          vjp_order: How many orders of VJP to write: 1 to differentiate in reverse mode once, 2 for
            forward mode or to differentiate twice.
          format_version: The format of the flatbuffer that the oldest consumer reads, from 2 (JAX
            0.4.30) on; by default the newest.

        Raises:
          SerializationError: The function has something that the format has no form for.
          VjpUnavailable: It was read from an artifact with fewer orders of VJP.
          VersionError: A format outside the range that is written.
        """
        from jaxtf.serialization._artifact.serialize import serialize

        return serialize(self, vjp_order, format_version)

    @overload
    def mlir_module(self, serialized: Literal[True] = True) -> str: ...

    @overload
    def mlir_module(self, serialized: bool) -> Any: ...

    def mlir_module(self, serialized: bool = True) -> Any:
        """The StableHLO module as text, with source locations.

        Args:
          serialized: False for the module itself, an object of JAX's MLIR bindings, in a context of its own.

        Raises:
          ArtifactError: It was read, and is not the module that the record describes.
        """
        require_jax("Exported.mlir_module")
        self.check_module()
        module = _with_jax.deserialize_module(self.mlir_module_serialized)
        return _with_jax.module_text(module) if serialized else module

    # Copies are the same object: everything is immutable

    def __copy__(self) -> Exported:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Exported:
        return self

    def __reduce__(self) -> tuple[Callable[..., Exported], tuple[Any, ...]]:
        return _with_vjps, tuple(_state(record) for record in _pickled_orders(self))

    def __repr__(self) -> str:
        return f"Exported({signature_line(self.fun_name, self.in_avals, self.out_avals, self.platforms)})"

    def _repr_html_(self) -> str:
        """For notebooks: arguments, results, constraints and platforms as a table."""
        constraints = () if self.scope is None else self.scope.constraints
        return html_table(
            self.fun_name,
            [
                *zip(self.in_names, map(str, self.in_avals), strict=True),
                *zip(self.out_names, map(str, self.out_avals), strict=True),
            ],
            constraints=", ".join(constraint.text for constraint in constraints),
            platforms=", ".join(self.platforms),
        )


def _have_same_vjps(one: Exported, other: Exported) -> bool:
    """Whether two carry the same VJPs, to the last order; those that are made on request are of one record only."""
    while one._make_vjp is not other._make_vjp:
        if one.has_endless_vjps or other.has_endless_vjps or one.has_vjp() != other.has_vjp():
            return False
        try:
            one, other = one.vjp(), other.vjp()
        except (TypeError, ValueError):  # one is damaged, as its `vjp` says
            return False
        if not one.has_same_function(other):
            return False
    return True


def _compared_aval(aval: Aval) -> tuple[Any, ...]:
    return tuple(map(str, aval.shape)), aval.dtype, aval.weak_type, aval.memory_space


def _pickled_orders(exported: Exported) -> list[Exported]:
    """The function and the orders of its VJP that a pickle holds."""
    orders = [exported]
    if exported.has_endless_vjps:
        try:
            return [exported, exported.vjp()]
        except Exception:  # JAX cannot differentiate it, as the copy will say when it is asked
            return orders
    while orders[-1].has_vjp():
        orders.append(orders[-1].vjp())
    return orders


def _state(exported: Exported) -> dict[str, Any]:
    """The attributes, by name.

    Raises:
      SerializationError: It calls functions that live in this process.
    """
    if exported.called_functions:
        names = ", ".join(function.name for function in exported.called_functions)
        raise SerializationError(
            f"'{exported.fun_name}' cannot be pickled: it calls {names}, which only this process has\n"
            "  remedy: convert it to TensorFlow here, and save that"
        )
    kept = [each.name for each in fields(exported) if each.name != "_make_vjp"]
    return {name: getattr(exported, name) for name in kept}


def _with_vjps(*states: dict[str, Any]) -> Exported:
    """A function from its attributes, with its VJPs from theirs."""
    *outer, last = states
    exported = Exported(**last)
    for state in reversed(outer):
        exported = Exported(**state, _make_vjp=functools.partial(_identity, exported))
    return exported


def _identity(exported: Exported) -> Exported:
    return exported
