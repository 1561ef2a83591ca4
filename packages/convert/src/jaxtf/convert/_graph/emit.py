"""A `Program` as TensorFlow operations: in the current graph, or run at once in eager mode.

Each operation is looked up in the table (`registry`) and emitted under a name scope of the user's own. Functions that
are called more than once become one `tf.function` each, so that a graph grows with the program, not with its calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError
from jaxtf.convert._function.checked_sizes import checked_before
from jaxtf.convert._graph import nodes
from jaxtf.convert._graph._support import typed
from jaxtf.convert._graph.agreement import at_broadcast_places, of_own_sizes, with_required_sizes
from jaxtf.convert._graph.broadcasts import EXPAND, is_left_a_broadcast
from jaxtf.convert._graph.calls import functions_kept
from jaxtf.convert._graph.elementwise import check_elementwise
from jaxtf.convert._graph.errors import is_of_tensorflow, unsupported
from jaxtf.convert._graph.grappler import between_functions
from jaxtf.convert._graph.kernels import FEW_KERNELS, check_computes, check_kernels, takes_few_kernels
from jaxtf.convert._graph.late_constants import LateConstants
from jaxtf.convert._graph.optimizer import MOST_ELEMENTS_LOOKED_AT, computed_before_xla, uniform_of
from jaxtf.convert._graph.registry import Bound, Entry
from jaxtf.convert._graph.reshapes import RESHAPE
from jaxtf.convert._graph.table import entries, entry_of
from jaxtf.convert._tf import NameScope, current_place, traces_compiled
from jaxtf.serialization.interop import Block, Operation, Program, TensorType, Value, of_chlo, operations_of

__all__ = ["Emitter"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")

# Constants up to this size are looked up among those that are there; the larger of them by a digest.
_SHARED_BYTES = 1 << 20
_DIGESTED_BYTES = 256

# Of scalars, they give what they take.
_CHANGE_NO_SCALAR = frozenset((RESHAPE, "stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose"))


class Emitter:
    """Emits one program, any number of times; functions that it has made are used again.

    Args:
      program: The module.
      allows_xla: Whether TensorFlow's XLA operations may be used where no plain ones do.
      checks_shapes: Whether assertions about sizes are emitted.
      avoids: Names of composites, such as `chlo.erf`, of which the decompositions are emitted and not the entries.
      called: The TensorFlow functions that the program calls by their index.
      keeps_functions: Whether functions that are called more than once become functions of TensorFlow.
      scans: Whether cumulative sums and products are emitted as associative scans.
      checks_operands: Whether sizes that StableHLO requires are compared where they are not known.
      is_differentiated: Whether tapes see the operations.
    """

    def __init__(
        self,
        program: Program,
        allows_xla: bool = True,
        checks_shapes: bool = True,
        avoids: frozenset[str] = frozenset(),
        called: Sequence[Any] = (),
        *,
        keeps_functions: bool = True,
        scans: bool = False,
        checks_operands: bool = False,
        is_differentiated: bool = False,
    ) -> None:
        self._program = program
        self._checks_operands = checks_operands
        self._is_differentiated = is_differentiated
        self._allows_xla = allows_xla
        self._checks_shapes = checks_shapes
        self._scans = scans
        self._named = entries().keys() - avoids
        self._called = called
        self._functions: dict[str, Any] = {}
        blocks = [function.body for function in program.functions.values()]
        operations = [operation for block in blocks for operation in operations_of(block)]
        self._constants = {
            operation.results[0]: operation for operation in operations if operation.name == "stablehlo.constant"
        }
        self._takes_few_kernels = any(map(takes_few_kernels, operations))
        self._kept = functions_kept(program) if keeps_functions else frozenset()

    def main(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results of the main function; its assertions run before any of them is there.

        Args:
          arguments: One tensor for each argument, of its dtype.

        Raises:
          GraphModeUnsupported: An operation, or a use of one, that is not translated.
        """
        body = next(iter(self._program.functions.values())).body
        scope = _Scope(body, arguments, None)
        scope.late_constants.add_arguments(arguments)
        return checked_before(scope.effects, self._block(body, scope))

    def call(self, name: str, arguments: Sequence[tf.Tensor], outer: _Scope | None = None) -> list[tf.Tensor]:
        """Emits a call of a function of the module."""
        body = self._program.functions[name].body
        inner = _Scope(body, arguments, None, outer)
        if inner.is_lifted or name not in self._kept or any(map(_is_rewritten_by, arguments)):
            results = self._block(body, inner)
            if outer is not None:
                outer.effects += inner.effects
            return results
        if name not in self._functions:
            self._functions[name] = self._as_function(name, body)
        return list(self._functions[name](*arguments))

    def at_once(self, operation: Operation, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results of one operation of the program, in eager mode."""
        return self._operation(operation, operands, _Scope(Block(operation.operands, (), ()), operands, None))

    def _as_function(self, name: str, body: Block) -> Any:
        """A function of the module as one of TensorFlow."""

        def run(*arguments: tf.Tensor) -> list[tf.Tensor]:
            scope = _Scope(body, arguments, None)
            scope.runs_always = False  # where it is called is not known here
            scope.late_constants.add_arguments(arguments)
            return between_functions(self._block(body, scope))

        run.__name__ = _NOT_IN_NAMES.sub("_", name).strip("_") or "function"
        types = [argument.type for argument in body.arguments]
        specifications = [tf.TensorSpec(type_.shape, type_.dtype) for type_ in types if isinstance(type_, TensorType)]
        assert len(specifications) == len(types), f"{name} takes only arrays"
        return tf.function(run, input_signature=specifications, autograph=False)

    def _block(self, block: Block, scope: _Scope) -> list[tf.Tensor]:
        """Emits a block and gives what it returns."""
        for operation in block.operations:
            if operation.name == "stablehlo.constant":
                continue  # where it is used
            if operation.name == EXPAND and not operation.attributes["axes"]:
                scope.values[operation.results[0]] = self._read(operation.operands[0], scope)
                continue
            operands = [self._read(value, scope) for value in operation.operands]
            with _named(operation):
                results = self._operation(operation, scope.late_constants.operands(operation.name, operands), scope)
            scope.late_constants.add_results(operation.name, operands, results)
            scope.values.update(zip(operation.results, results, strict=True))
        return [self._read(value, scope) for value in block.returned]

    def _region(
        self, block: Block, outer: _Scope, wider: Mapping[tf.DType, tf.DType], *arguments: tf.Tensor
    ) -> list[tf.Tensor]:
        """Emits a region of an operation, perhaps in another graph, for an entry that computes in wider dtypes."""
        narrow = [_cast(tensor, value.type) for tensor, value in zip(arguments, block.arguments, strict=True)]
        scope = _Scope(block, narrow, outer)
        results = self._block(block, scope)
        if scope.place == outer.place:
            outer.effects += scope.effects
        elif scope.effects:
            outer.has_effects_within = True
            with tf.control_dependencies(scope.effects):  # which in TensorFlow 1 nothing else runs
                results = [tf.identity(result) for result in results]
        return [_widened(result, wider) for result in results]

    def _read(self, value: Value, scope: _Scope) -> tf.Tensor:
        """The tensor of a value; a constant is one of the current graph."""
        found = scope.find(value, value in self._constants)
        if found is None:
            operation = self._constants[value]
            with NameScope(operation.location or "constant"):
                try:
                    found = scope.values[value] = scope.constant(operation.attributes["value"])
                except TypeError as error:  # for some floats of 8 bits
                    if not is_of_tensorflow(error):
                        raise
                    reason = f"TensorFlow's graphs have no constants of {operation.attributes['value'].dtype.name}"
                    raise unsupported(operation, reason) from error
        return found

    def _operation(self, operation: Operation, operands: Sequence[tf.Tensor], scope: _Scope) -> list[tf.Tensor]:
        """Emits one operation."""
        if scope.is_lifted:
            check_elementwise(operation)
            if operation.name in _CHANGE_NO_SCALAR:
                return list(operands)
        if operation.name == "custom_call.shape_assertion" and not self._checks_shapes:
            return []
        operation, entry = self._looked_up(operation)
        checks = self._checks_operands and not (scope.is_lifted or tf.executing_eagerly())
        if checks and not is_left_a_broadcast(operation):
            operands = with_required_sizes(operation, operands, runs_always=scope.runs_always)
        bound = Bound(
            operation,
            tuple(partial(self._region, block, scope, entry.computed_in) for block in operation.regions),
            self._allows_xla,
            partial(self.call, outer=scope),
            scope.constant,
            self._called,
            self._scans,
            self._is_differentiated,
            self._constants,
            scope.effects,
        )
        assert entry.emit is not None, f"{operation.name} is refused, or has an entry"
        if operation.name.startswith("chlo.broadcast_"):
            operands = at_broadcast_places(bound, operands)
        is_looked_at = self._takes_few_kernels and takes_few_kernels(operation) and not traces_compiled()
        if is_looked_at:
            check_computes(operation)
        before = len(scope.graph.get_operations()) if is_looked_at and scope.graph is not None else 0
        try:
            made = entry.emit(bound, *(_widened(operand, entry.computed_in) for operand in operands))
        except (TypeError, ValueError) as error:
            if not is_of_tensorflow(error):
                raise
            # Dtypes, ranks or sizes that an operation of TensorFlow is not defined for.
            first = str(error).strip().partition("\n")[0]
            raise unsupported(operation, f"TensorFlow does not take it: {first}") from error
        except KeyError as error:  # of a table of dtypes: what is compiled is not looked at before
            few = next((key for key in error.args if isinstance(key, tf.DType) and key in FEW_KERNELS), None)
            if few is None:
                raise
            raise unsupported(operation, f"TensorFlow computes nothing with {few.name}") from error
        if is_looked_at and scope.graph is not None:
            check_kernels(operation, scope.graph.get_operations()[before:])
        results: list[Any] = list(made) if isinstance(made, list | tuple) else [made]
        if not operation.results:
            scope.effects += results if not tf.executing_eagerly() else []
            return []
        scope.add_effects_within(results)
        results = operation.of_one_tuple(results)
        return [
            result if isinstance(result, tuple) else _settled(result, value, scope, operation if checks else None)
            for result, value in zip(results, operation.results, strict=True)
        ]

    def _looked_up(self, operation: Operation) -> tuple[Operation, Entry]:
        """The entry of an operation, and the operation as the entry takes it: one of CHLO for its composite."""
        of_name = of_chlo(operation)
        if of_name is not None and of_name.name in self._named:
            operation = of_name
        return operation, entry_of(operation)


class _Scope:
    """The values of one block, in the graph in which it is emitted.

    Args:
      block: The block.
      arguments: What it is applied to. Where those of a block of scalars are larger, it is applied elementwise.
      outer: The scope around a region.
      caller: The scope in which a function is called; constants are shared with it where the graph is the same.

    Attributes:
      values: The tensors so far.
      place: Where they are: the graph, and in one of TensorFlow 1 the branch or loop, of which other parts use none.
      graph: The graph of that; None in eager mode.
      effects: Operations without results that are to run before the results are there.
      has_effects_within: Whether a region of the operation that is being emitted has some in another graph.
      late_constants: The tensors of the graph that may be found to be constants.
      is_lifted: Whether the block is applied to arrays elementwise.
      runs_always: Whether it runs whenever the program does, as a branch and the body of a loop do not.
    """

    def __init__(
        self,
        block: Block,
        arguments: Sequence[tf.Tensor],
        outer: _Scope | None,
        caller: _Scope | None = None,
    ) -> None:
        self.values: dict[Value, Any] = dict(zip(block.arguments, arguments, strict=True))
        self.place = current_place()
        self.graph = self.place[0]
        self.effects: list[Any] = []
        self.has_effects_within = False
        self._outer = outer
        shared = caller if caller is not None and caller.place == self.place else None
        self._constants: dict[Any, tf.Tensor] = {} if shared is None else shared._constants
        around = outer if shared is None else shared
        self.late_constants: LateConstants = (
            around.late_constants
            if around is not None and around.place == self.place
            else LateConstants(None if around is None else around.late_constants)
        )
        self.runs_always: bool = around is None or (around.runs_always and around.place == self.place)
        self.is_lifted: bool = (outer is not None and outer.is_lifted) or any(
            map(_is_larger, arguments, block.arguments)
        )

    def add_effects_within(self, results: Sequence[Any]) -> None:
        """After an operation with regions: TensorFlow 1 runs no branch or loop of which nobody uses the results."""
        if self.has_effects_within:
            self.effects += [result.op for result in results if tf.is_symbolic_tensor(result)]
            self.has_effects_within = False

    def constant(self, value: Any) -> tf.Tensor:
        """A constant of the current graph; small ones that are equal are one. Python numbers are int32 or int64."""
        array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else _integers(value)
        if self.graph is None or array.nbytes > _SHARED_BYTES or current_place() != self.place:
            return _constant(array)
        data = array.tobytes()
        key = array.dtype, array.shape, data if len(data) < _DIGESTED_BYTES else blake2b(data).digest()
        scope: _Scope | None = self
        while scope is not None and scope.place == self.place:
            if key in scope._constants:
                return scope._constants[key]
            scope = scope._outer
        made = self._constants[key] = _constant(array)
        return made

    def find(self, value: Value, is_constant: bool) -> Any:
        """The tensor of a value here or around; None for a constant that is not in this graph."""
        scope: _Scope | None = self
        while scope is not None:
            if value in scope.values and (scope.place == self.place or not is_constant):
                return scope.values[value]
            scope = scope._outer
        return None


def _integers(values: Any) -> np.ndarray[Any, Any]:
    """An array of sizes, axes or indices: int32, which TensorFlow reads in most places, if they fit."""
    array = np.asarray(values, np.int64)
    narrow = array.astype(np.int32)
    return narrow if np.array_equal(narrow, array) else array


def _is_rewritten_by(argument: Any) -> bool:
    """Whether an optimizer rewrites operations with that constant, once it has put the function where it is called.

    So entries have to see it: of 0 - x and of powers of 0.5 and -0.5 the values would be others, and where functions
    are compiled, of what depends on constants alone (`optimizer`).
    """
    is_inexact = isinstance(argument, tf.Tensor) and (argument.dtype.is_floating or argument.dtype.is_complex)
    return is_inexact and (uniform_of(argument) in (0, 0.5, -0.5) or computed_before_xla(argument))


def _is_larger(argument: Any, value: Value) -> bool:
    """Whether an array is in the place of a scalar."""
    return isinstance(value.type, TensorType) and not value.type.rank and argument.shape.rank != 0


def _named(operation: Operation) -> AbstractContextManager[Any]:
    """The name scope of an operation: where the user wrote it; a call without a location gets no scope of its own."""
    if operation.name == "func.call" and not operation.location:
        return nullcontext()
    return NameScope(operation.location or operation.name.rpartition(".")[2])


def _constant(value: np.ndarray[Any, Any]) -> tf.Tensor:
    """A constant; of equal elements, one of them is in the graph, if TensorFlow fills arrays of its dtype."""
    if (
        value.size > 1
        and tf.as_dtype(value.dtype) not in FEW_KERNELS
        and (not any(value.strides) or _has_equal_elements(value))
    ):
        return tf.fill(value.shape, nodes.constant(value.flat[0]))
    return nodes.constant(value)


def _has_equal_elements(value: np.ndarray[Any, Any]) -> bool:
    """Whether all elements of an array have the same bytes, of one that is too large to be looked at in the graph."""
    if value.size <= MOST_ELEMENTS_LOOKED_AT:
        return False
    first = value.flat[0].tobytes()
    return bool(first == value.flat[-1].tobytes()) and bool(value.tobytes() == first * value.size)


def _widened(tensor: Any, wider: Mapping[tf.DType, tf.DType]) -> Any:
    """A tensor in the dtype that an entry computes in."""
    if not wider or isinstance(tensor, tuple) or tensor.dtype not in wider:
        return tensor
    return tf.cast(tensor, wider[tensor.dtype])


def _cast(tensor: Any, type_: Any) -> Any:
    """A tensor in the dtype of its type."""
    if not isinstance(type_, TensorType) or tensor.dtype == type_.dtype:
        return tensor
    return tf.cast(tensor, type_.dtype)


def _settled(tensor: Any, value: Value, scope: _Scope, checked: Operation | None) -> Any:
    """A result in its dtype, with the sizes that its type knows, which may have to be compared when it is there."""
    tensor = _cast(tensor, value.type)
    if scope.is_lifted or tf.executing_eagerly() or not isinstance(value.type, TensorType):
        return tensor
    found, known = tensor.shape, value.type.shape
    if found.rank != len(known) or ((sizes := tuple(found)) != known and any(map(_is_news, sizes, known))):
        if checked is not None:
            if not found.is_compatible_with(known):
                raise ArgumentTypeError(
                    f"a result has shape {found}, and its type {known}, from {checked.name}\n"
                    "  remedy: correct the module, or call it with arguments whose sizes fit its types"
                )
            ensured = tf.ensure_shape(tensor if scope.runs_always else of_own_sizes(tensor), known)
            # Where nothing but its sizes is used, which are known now, nothing else would run it.
            scope.effects.append(tf.raw_ops.Assert(condition=typed(True, tf.bool), data=[ensured]))
            return ensured
        tensor.set_shape(known)
    return tensor


def _is_news(found: int | None, known: int | None) -> bool:
    """Whether a size that is known is not the one that was found."""
    return known is not None and found != known
