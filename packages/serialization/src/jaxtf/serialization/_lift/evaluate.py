"""A `Program` evaluated with `jax.lax`: each operation is looked up in the table and applied while JAX traces.

What an operation gives is compared with the type that the module has for it: an entry that gave another shape or dtype
is a mistake here, or the module's sizes lie, and neither may pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._errors import ArgumentMismatch, ArtifactError
from jaxtf.serialization._jax import ShardingTypeError
from jaxtf.serialization._jax_values.varying import vary_alike
from jaxtf.serialization._lift.arrays import as_array, constant, has_64_bits
from jaxtf.serialization._lift.bits import taken_apart
from jaxtf.serialization._lift.differentiated import differentiated_as_one
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.folding import folded, known_constant
from jaxtf.serialization._lift.places import at_place_of
from jaxtf.serialization._lift.pointwise import Plan, Pointwise, planned
from jaxtf.serialization._lift.registry import Bound, Entry
from jaxtf.serialization._lift.sizes import Known
from jaxtf.serialization._lift.table import entries, entry_of
from jaxtf.serialization._program.calls import callee_of
from jaxtf.serialization._program.composites import of_chlo
from jaxtf.serialization._program.program import Block, Operation, Program, TensorType, Value, operations_of
from jaxtf.serialization._program.refusal import type_text
from jaxtf.serialization._program.requirements import has_requirements, requirements

__all__ = ["Evaluator"]

# A function of fewer operations than this is evaluated again for each of its calls.
_SMALL = 8

_NOTHING: Mapping[Any, Any] = {}


class Evaluator:
    """Evaluates one program, any number of times.

    Args:
      program: The module; every operation has an entry (`table.check`).
      checks_shapes: Whether assertions about sizes are checked.
    """

    def __init__(self, program: Program, checks_shapes: bool = True) -> None:
        self._program = program
        self._checks_shapes = checks_shapes
        blocks = [function.body for function in program.functions.values()]
        operations = [operation for block in blocks for operation in operations_of(block)]
        self._taken_apart = taken_apart(program)
        self._sources = {result: operation for operation in operations for result in operation.results}
        self._plans: dict[Block, Plan] = {}
        self._traced_once = {} if _has_open_sizes(operations) else _called_often(operations, program)

    def main(self, arguments: Sequence[Any]) -> list[Any]:
        """The results of the main function.

        Args:
          arguments: One array for each argument, of its type.

        Raises:
          LiftUnsupported: A use of an operation that is not lifted.
          ArgumentMismatch: An assertion of the module about sizes fails, or sizes of operands do not agree.
        """
        body = next(iter(self._program.functions.values())).body
        return list(map(_as_result, self._apply(body, arguments, {}), body.returned))

    def call(self, name: str, operands: Sequence[Any]) -> list[Any]:
        """The results of a function of the module."""
        body = self._program.functions[name].body
        if name not in self._traced_once or any(isinstance(operand, Known) for operand in operands):
            return self._apply(body, operands, {})
        if self._traced_once[name] is None:
            self._traced_once[name] = self._as_jitted(name, body)
        return list(self._traced_once[name](*operands))

    def _as_jitted(self, name: str, body: Block) -> Any:
        def run(*arguments: Any) -> list[Any]:
            return [as_array(result) for result in self._apply(body, arguments, {})]

        run.__name__ = run.__qualname__ = name
        return jax.jit(run)

    def _apply(
        self,
        block: Block,
        arguments: Sequence[Any],
        outer: dict[Value, Any],
        replaced: Mapping[Operation, Callable[..., list[Any]]] = _NOTHING,
    ) -> list[Any]:
        """What a block returns for arguments; functions take the place of some of its operations."""
        scope = _Scope(outer, arguments)
        scope.update(zip(block.arguments, arguments, strict=True))
        plan = self._plan(block)
        for operation in block.operations:
            if operation in plan.within:
                continue
            if operation in plan.functions:
                scope[operation.results[0]] = self._pointwise(plan.functions[operation], scope, plan.logistic)
                continue
            if operation.name == "stablehlo.constant":
                scope[operation.results[0]] = _constant(operation)
                continue
            operands = [scope[value] for value in operation.operands]
            if operation in replaced:
                results = replaced[operation](*operands)
            else:
                results = at_place_of(operation, self._operation, operation, operands, scope)
            scope.update(zip(operation.results, results, strict=True))
        return [scope[value] for value in block.returned]

    def _plan(self, block: Block) -> Plan:
        if block not in self._plans:
            self._plans[block] = planned(block, self._program, self._sources)
        return self._plans[block]

    def _pointwise(self, function: Pointwise, scope: _Scope, logistic: Mapping[Operation, Pointwise]) -> Any:
        """The result of operations that are a function of each element of an array."""
        sizes = {value: scope[value] for value in function.sizes}  # JAX keeps the function, and what it closes over

        def evaluate(array: Any) -> Any:
            inner = _Scope(sizes, (array,))
            inner[function.argument] = array
            for operation in function.operations:
                if operation.name == "stablehlo.constant":
                    inner[operation.results[0]] = _constant(operation)
                    continue
                if operation in logistic and not function.is_logistic:
                    inner[operation.results[0]] = self._pointwise(logistic[operation], inner, logistic)
                    continue
                operands = [inner[value] for value in operation.operands]
                inner.update(
                    zip(
                        operation.results,
                        at_place_of(operation, self._operation, operation, operands, inner),
                        strict=True,
                    )
                )
            return inner[function.operations[-1].results[0]]

        array = as_array(scope[function.argument])
        if function.is_logistic:
            if sizes:
                evaluate(array)  # for its refusals: XLA drops what nothing uses
            return lax.logistic(array)
        if all(isinstance(size, Known) for size in sizes.values()):
            type_ = function.operations[-1].results[0].type
            assert isinstance(type_, TensorType), "a function of each element has an array for a result"
            return differentiated_as_one(evaluate, type_.dtype, function.alike)(array)
        if function.alike is not None:
            return function.alike(array)
        return evaluate(array)  # shapes that are arrays: a function may not close over them

    def _operation(self, operation: Operation, operands: Sequence[Any], scope: _Scope) -> list[Any]:
        """The results of one operation."""
        if operands and all(isinstance(operand, Known) for operand in operands):
            known = folded(operation, operands)
            if known is not None:
                return [known]
        operation, entry = _looked_up(operation)
        bound = Bound(
            operation,
            tuple(partial(self._region, block, scope) for block in operation.regions),
            partial(self._replacing, operation, scope),
            self.call,
            self._program.functions,
            self._sources,
            scope.__getitem__,
            scope.varying,
            operation in self._taken_apart,
            self._checks_shapes,
        )
        assert entry.evaluate is not None, f"{operation.name} is refused, or has an entry"
        _check_sizes(operation, operands)
        given = operands if entry.takes_sizes else list(map(as_array, operands))
        try:
            with _as_wide_as(operation):
                made = entry.evaluate(bound, *given)
        except (TypeError, ValueError, ShardingTypeError) as error:
            if not _is_of_jax(error):
                raise
            reason = "JAX does not take it: " + str(error).strip().partition("\n")[0]
            if isinstance(error, ShardingTypeError):
                raise unsupported(operation, reason, _OF_SHARDINGS) from error
            raise unsupported(operation, reason) from error
        results = operation.of_one_tuple(list(made) if isinstance(made, list | tuple) else [made])
        _check_types(operation, results)
        return results

    def _replacing(
        self,
        operation: Operation,
        scope: _Scope,
        number: int,
        arguments: Sequence[Any],
        replaced: Mapping[Operation, Callable[..., list[Any]]],
    ) -> list[Any]:
        return self._apply(operation.regions[number], arguments, scope, replaced)

    def _region(self, block: Block, scope: _Scope, *arguments: Any) -> list[Any]:
        return self._apply(block, arguments, scope)


def _constant(operation: Operation) -> Any:
    """The value of a constant."""
    value = operation.attributes["value"]
    known = known_constant(value)
    if known is not None:
        return known
    with _as_wide_as(operation):
        return constant(value)


def _as_result(result: Any, value: Value) -> Any:
    """A result as an array, of its dtype: JAX halves constants of 64 bits where it is set to have none."""
    if not isinstance(result, Known | np.ndarray):
        return result
    is_wide = isinstance(value.type, TensorType) and value.type.dtype.name in _INTEGERS_OF_64_BITS
    if not is_wide or has_64_bits():
        return as_array(result)
    with jax.enable_x64(True):
        return jnp.asarray(as_array(result))


_OF_SHARDINGS = (
    "a module does not say how its intermediate values are sharded in types: evaluate the function under "
    "jax.sharding.auto_axes, or call the exported function (`call`)"
)
_INTEGERS_OF_64_BITS = frozenset(("int64", "uint64"))
_OTHERS_OF_64_BITS = frozenset(("float64", "complex128"))


def _as_wide_as(operation: Operation) -> AbstractContextManager[Any]:
    """A context in which JAX has the dtypes of an operation.

    Integers of 64 bits are inside of modules whose exporter had none: JAX itself makes them, of counters of random bits
    and of keys. Numbers that are differentiated would be needed by the rules of JAX as well, which run outside.

    Raises:
      LiftUnsupported: Floating point of 64 bits, where JAX is set not to have it.
    """
    if has_64_bits():
        return nullcontext()
    types = (value.type for value in (*operation.operands, *operation.results))
    names = {type_.dtype.name for type_ in types if isinstance(type_, TensorType)}
    if names & _OTHERS_OF_64_BITS:
        raise _without_64_bits(operation)
    return jax.enable_x64(True) if names & _INTEGERS_OF_64_BITS else nullcontext()


def _without_64_bits(operation: Operation) -> Exception:
    return unsupported(
        operation,
        "it computes in 64 bits, which are disabled in JAX",
        "jax.config.update('jax_enable_x64', True), or call it under jax.enable_x64(True)",
    )


class _Scope(dict[Value, Any]):
    """The values of one block, and of those around it."""

    def __init__(self, outer: dict[Value, Any], arguments: Sequence[Any]) -> None:
        super().__init__()
        self._outer = outer
        self._arguments: Sequence[Any] = outer._arguments if isinstance(outer, _Scope) else arguments

    def varying(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays that vary over the axes of a mesh over which the arguments of the function do."""
        like = [x for x in self._arguments if not isinstance(x, Known | tuple)]
        return vary_alike([*arrays, *like])[: len(arrays)]

    def __missing__(self, value: Value) -> Any:
        return self._outer[value]


def _looked_up(operation: Operation) -> tuple[Operation, Entry]:
    """The entry of an operation, and the operation as the entry takes it: one of CHLO for its composite."""
    of_name = of_chlo(operation)
    if of_name is not None and of_name.name in entries():
        operation = of_name
    return operation, entry_of(operation)


def _has_open_sizes(operations: Sequence[Operation]) -> bool:
    values = (value for operation in operations for value in operation.results)
    return any(isinstance(value.type, TensorType) and not value.type.is_static for value in values)


def _called_often(operations: Sequence[Operation], program: Program) -> dict[str, Any]:
    """The functions that JAX is to trace once for all their calls."""
    calls = Counter(callee for operation in operations if (callee := callee_of(operation)) is not None)
    return {
        name: None
        for name, count in calls.items()
        if count > 1 and len(program.functions[name].body.operations) >= _SMALL
    }


def _check_sizes(operation: Operation, operands: Sequence[Any]) -> None:
    """Refuses operands of other sizes than StableHLO requires, which JAX may broadcast.

    Raises:
      ArgumentMismatch: Of the first such size.
    """
    if not has_requirements(operation.name):
        return

    def elements(index: int) -> Sequence[Any]:
        operand = operands[index]
        values = list(operand.elements.flat) if isinstance(operand, Known) else [None] * math.prod(operand.shape)
        return [value if isinstance(value, int) else None for value in values]

    shapes = {id(operand): operand.shape for operand in operands}
    for required in requirements(operation, [shapes[id(operand)] for operand in operands], elements):
        size, limit, is_most = required
        # Of symbolic sizes JAX compares all but that one of them is 1.
        is_certain = all(isinstance(n, int) for n in (size, limit)) or (not is_most and 1 in (size, limit))
        if is_certain and not required.is_met():
            raise ArgumentMismatch(required.refusal(operation))


def _check_types(operation: Operation, results: Sequence[Any]) -> None:
    """Refuses results of other types than those of the module."""
    for value, result in zip(operation.results, results, strict=True):
        type_ = value.type
        if not isinstance(type_, TensorType) or isinstance(result, tuple) or result is None:
            continue
        shape = result.shape
        agrees = len(shape) == type_.rank and all(
            known is None or found == known for found, known in zip(shape, type_.shape, strict=True)
        )
        if result.dtype != type_.dtype or not agrees:
            sizes = ",".join(map(str, shape))
            raise ArtifactError(
                f"the module has {type_text(type_)} for a result of {operation.name}, and its operands give "
                f"{np.dtype(result.dtype).name}[{sizes}]"
            )


def _is_of_jax(error: BaseException) -> bool:
    """Whether JAX raised an error in what this package called; any other is a fault of ours, or a refusal."""
    own, last = -1, -1
    traceback, place = error.__traceback__, 0
    while traceback is not None:
        package = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        own = place if package == "jaxtf" else own
        last = place if package == "jax" else last
        traceback, place = traceback.tb_next, place + 1
    return last > own
