"""Convolutions that may have an empty batch, by which open sizes of a program are known to be 1 or more.

TensorFlow's convolutions of no batch give another shape. A batch of a module that JAX exports is a dimension variable,
which is at least 1, or is computed from such, as `b - 1`. So sizes are followed through the program: the elements of
integers of sizes, and the sizes of arrays. What is not known counts as one that may be 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxtf.convert._graph.plan.equal_sizes import KEEP_SIZES
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import Block, Operation, Program, TensorType, Value, callee_of, operations_of
from jaxtf.shapepoly import is_symbolic_dim, symbolic_dim_bounds

__all__ = ["MAY_BE_EMPTY", "with_empty_batches"]

MAY_BE_EMPTY = "may_be_empty"
"""The attribute of a convolution of whose operand, or kernel, a size may be 0 at run time."""

_CONVOLUTIONS = ("stablehlo.convolution", "stablehlo.dynamic_conv")

# The results have the sizes of the first operand.
_KEEP_THE_FIRST = frozenset(("stablehlo.scatter", "stablehlo.select_and_scatter", "stablehlo.dynamic_update_slice"))
# By the operand that holds the sizes of the result.
_BY_SIZES = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_iota": 0,
    "stablehlo.dynamic_reshape": 1,
}

Known = tuple[bool, ...]
"""Of each size of an array whether it is known to be 1 or more."""
Least = tuple[int | None, ...]
"""Of each element of a few integers what it is at least; None if that is not known, and nothing of an array."""


def with_empty_batches(program: Program, exported: Exported) -> Program:
    """The program in which convolutions that may be of nothing have the attribute.

    Args:
      program: That of an exported function, of which the integers that JAX marks as global constants are dimension
        variables.
      exported: The function, of which the arguments of the program are the last ones.
    """
    bodies = [function.body for function in program.functions.values()]
    if not any(map(_has_open_sizes, (operation for body in bodies for operation in operations_of(body)))):
        return program
    avals = [exported.in_avals[index] for index in exported.module_kept_var_idx]
    known = _Known(program, [tuple(map(_is_some, aval.shape)) for aval in avals])

    def marked(block: Block) -> Block:
        return replace(block, operations=tuple(map(with_attribute, block.operations)))

    def with_attribute(operation: Operation) -> Operation:
        if _has_open_sizes(operation) and not known.has_some(operation):
            return replace(operation, attributes={**operation.attributes, MAY_BE_EMPTY: True})
        return replace(operation, regions=tuple(map(marked, operation.regions))) if operation.regions else operation

    functions = {name: replace(f, body=marked(f.body)) for name, f in program.functions.items()}
    return replace(program, functions=functions)


def _has_open_sizes(operation: Operation) -> bool:
    return operation.name in _CONVOLUTIONS and not all(map(all, map(_static, operation.operands[:2])))


def _is_some(size: Any) -> bool:
    return bool(symbolic_dim_bounds(size)[0] >= 1) if is_symbolic_dim(size) else size >= 1


class _Known:
    """What is known of the sizes of all values of a program."""

    def __init__(self, program: Program, arguments: Sequence[Known]) -> None:
        self._program = program
        self._sizes: dict[Value, Known] = {}
        self._least: dict[Value, Least] = {}
        self._exact: dict[Value, Least] = {}
        main, *others = program.functions.values()
        first = len(main.body.arguments) - len(arguments)
        self._set(zip(main.body.arguments[first:], arguments, strict=True))
        for function in others:  # until a call says otherwise
            self._set((value, (True,) * _rank(value)) for value in function.body.arguments)
        for function in program.functions.values():
            for value, attributes in zip(function.body.arguments, function.argument_attributes, strict=True):
                if not attributes.get("jax.global_constant", "_").startswith("_"):  # not `_platform_index`
                    self._least[value] = (1,)
        before: object = None
        while before != (self._sizes, self._least):
            before = dict(self._sizes), dict(self._least)
            for name in _callees_first(program):
                self._block(program.functions[name].body)

    def has_some(self, convolution: Operation) -> bool:
        """Whether no size of the kernel, and not the batch or the features of the operand, may be 0."""
        numbers = convolution.attributes["dimension_numbers"]
        operand, kernel = (self._of(value) for value in convolution.operands[:2])
        needed = numbers["input_batch_dimension"], numbers["input_feature_dimension"]
        return all(kernel) and all(operand[axis] for axis in needed)

    def _set(self, found: Any) -> None:
        for value, known in found:
            self._sizes[value] = known

    def _of(self, value: Value) -> Known:
        """Of the sizes of an array."""
        static = _static(value)
        found = self._sizes.get(value, static)
        return tuple(map(operator.or_, static, found)) if len(found) == len(static) else static

    def _narrow(self, values: Sequence[Value], given: Sequence[Value]) -> None:
        """What several may be given for is known if it is of all of them."""
        for value, other in zip(values, given, strict=True):
            self._sizes[value] = tuple(map(operator.and_, self._of(value), self._of(other)))

    def _block(self, block: Block) -> None:
        for operation in block.operations:
            callee = callee_of(operation)
            if callee is not None:
                body = self._program.functions[callee].body
                self._narrow(body.arguments, operation.operands)
                self._set(zip(operation.results, map(self._of, body.returned), strict=True))
            elif operation.name == "stablehlo.optimization_barrier":
                self._set(zip(operation.results, map(self._of, operation.operands), strict=True))
            elif operation.name == "stablehlo.while":
                self._loop(operation)
            elif operation.regions and operation.name in ("stablehlo.case", "stablehlo.if"):
                for region in operation.regions:
                    self._block(region)
                columns = zip(*(map(self._of, region.returned) for region in operation.regions), strict=True)
                self._set(
                    (x, tuple(map(all, zip(*c, strict=True)))) for x, c in zip(operation.results, columns, strict=True)
                )
            else:
                for table in (self._least, self._exact):
                    table.update((x, self._computed(operation, table)) for x in operation.results[:1])
                self._set((x, self._made(operation, x)) for x in operation.results)

    def _loop(self, operation: Operation) -> None:
        condition, body = operation.regions
        self._set(zip(body.arguments, map(self._of, operation.operands), strict=True))
        before: list[Known] = []
        while before != (now := [*map(self._of, body.arguments)]):
            before = now
            self._block(body)
            self._narrow(body.arguments, body.returned)
        self._set(zip(operation.results, map(self._of, body.arguments), strict=True))
        self._set(zip(condition.arguments, map(self._of, body.arguments), strict=True))
        self._block(condition)

    # --- integers ---

    def _computed(self, operation: Operation, table: Mapping[Value, Least]) -> Least:
        """What the elements of one or a few integers are at least, or exactly, by a table of that."""
        (result, *_) = operation.results
        type_ = result.type
        if not isinstance(type_, TensorType) or not type_.dtype.is_integer or type_.rank > 1 or not type_.is_static:
            return ()
        name, count = operation.name.removeprefix("stablehlo."), math.prod(size or 0 for size in type_.shape)
        operands = [table.get(value, ()) for value in operation.operands]
        if name == "constant":
            return tuple(np.ravel(operation.attributes["value"]).tolist()) if count < _MANY else ()
        if name == "get_dimension_size":
            is_some = self._of(operation.operands[0])[operation.attributes["dimension"]]
            return (int(is_some) if table is self._least else None,)
        if name == "concatenate":
            joined = tuple(least for operand in operands for least in operand)
            return joined if len(joined) == count else ()
        if name in ("convert", "reshape", "broadcast_in_dim") and len(operands[0]) in (1, count):
            return operands[0] if len(operands[0]) == count else operands[0] * count
        if name in _OF_LEAST and all(len(operand) == count for operand in operands):
            pairs = zip(*operands, strict=True)
            return tuple(None if a is None or b is None else _OF_LEAST[name](a, b) for a, b in pairs)
        return ()

    def _are_some(self, value: Value) -> Known:
        """Of integers."""
        return tuple(least is not None and least >= 1 for least in self._least.get(value, ()))

    # --- sizes ---

    def _made(self, operation: Operation, result: Value) -> Known:
        """Of the sizes of a result."""
        rank, first = _rank(result), operation.operands[0] if operation.operands else result
        found: Known = ()
        if operation.name in KEEP_SIZES or operation.name.startswith("chlo."):
            alike = [self._of(value) for value in operation.operands if _rank(value) == rank]
            found = tuple(map(any, zip(*alike, strict=True)))
        elif operation.name in _KEEP_THE_FIRST:
            found = self._of(first)
        elif operation.name in _BY_SIZES:
            found = self._are_some(operation.operands[_BY_SIZES[operation.name]])
        elif (rule := _RULES.get(operation.name)) is not None:
            found = rule(self, operation)
        is_reshape = operation.name in ("stablehlo.reshape", "stablehlo.dynamic_reshape")
        if is_reshape and all(self._of(first)):
            found = (True,) * rank  # of an element at least
        static = _static(result)
        return tuple(map(operator.or_, static, found)) if len(found) == len(static) else static

    def _first(self, operation: Operation) -> Known:
        return self._of(operation.operands[0])

    def _transposed(self, operation: Operation) -> Known:
        known = self._of(operation.operands[0])
        return tuple(known[axis] for axis in operation.attributes["permutation"])

    def _broadcast(self, operation: Operation) -> Known:
        known, places = self._of(operation.operands[0]), list(operation.attributes["broadcast_dimensions"])
        return tuple(axis in places and known[places.index(axis)] for axis in range(_rank(operation.results[0])))

    def _reduced(self, operation: Operation) -> Known:
        left_out = set(operation.attributes["dimensions"])
        return tuple(known for axis, known in enumerate(self._of(operation.operands[0])) if axis not in left_out)

    def _concatenated(self, operation: Operation) -> Known:
        return tuple(map(any, zip(*map(self._of, operation.operands), strict=True)))

    def _padded(self, operation: Operation) -> Known:
        added = zip(operation.attributes["edge_padding_low"], operation.attributes["edge_padding_high"], strict=True)
        known = self._of(operation.operands[0])
        return tuple(bool(some and low + high >= 0) for some, (low, high) in zip(known, added, strict=True))

    def _padded_by_sizes(self, operation: Operation) -> Known:
        low, high, _ = (self._least.get(value, ()) for value in operation.operands[2:])
        known = self._of(operation.operands[0])
        if not len(low) == len(high) == len(known):
            return ()
        added = [None if a is None or b is None else a + b for a, b in zip(low, high, strict=True)]
        return tuple(more is not None and more >= (not some) for some, more in zip(known, added, strict=True))

    def _cut(self, operation: Operation) -> Known:
        """Of slices from the first element on."""
        starts = self._exact.get(operation.operands[1], ())
        return tuple(
            start == 0 and some for start, some in zip(starts, self._are_some(operation.operands[2]), strict=False)
        )

    def _gathered(self, operation: Operation) -> Known:
        numbers, indices = operation.attributes["dimension_numbers"], operation.operands[1]
        of_batch = [x for i, x in enumerate(self._of(indices)) if i != numbers["index_vector_dim"]]
        left_out = (*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"])
        if operation.name == "stablehlo.gather":
            extents = tuple(int(n) >= 1 for n in operation.attributes["slice_sizes"])
        else:
            extents = self._are_some(operation.operands[2]) or (False,) * _rank(operation.operands[0])
        kept = [x for i, x in enumerate(extents) if i not in left_out]
        offsets = list(numbers["offset_dims"])
        return tuple(
            kept[offsets.index(axis)] if axis in offsets else of_batch.pop(0)
            for axis in range(_rank(operation.results[0]))
        )

    def _multiplied(self, operation: Operation) -> Known:
        numbers = operation.attributes["dot_dimension_numbers"]
        left, right = map(self._of, operation.operands)
        batch = list(numbers["lhs_batching_dimensions"])
        return tuple(left[i] for i in batch) + tuple(
            known
            for values, side in ((left, "lhs"), (right, "rhs"))
            for i, known in enumerate(values)
            if i not in (*numbers[f"{side}_batching_dimensions"], *numbers[f"{side}_contracting_dimensions"])
        )

    def _convolved(self, operation: Operation) -> Known:
        """The batch and the features; of the others it depends on the windows."""
        numbers, known = operation.attributes["dimension_numbers"], [False] * _rank(operation.results[0])
        operand, kernel = (self._of(value) for value in operation.operands[:2])
        is_one = int(operation.attributes.get("batch_group_count", 1)) == 1
        known[numbers["output_batch_dimension"]] = is_one and operand[numbers["input_batch_dimension"]]
        known[numbers["output_feature_dimension"]] = kernel[numbers["kernel_output_feature_dimension"]]
        return tuple(known)

    def _windowed(self, operation: Operation) -> Known:
        """Along dimensions in which a window has one element, and is not moved by more."""
        given = operation.attributes
        count = len(operation.operands) // 2
        rank = _rank(operation.operands[0])
        ones = [1] * rank
        sizes, strides = list(given["window_dimensions"]), list(given.get("window_strides") or ones)
        padding = given.get("padding")
        edges = np.zeros((rank, 2), int) if padding is None else np.asarray(padding).reshape(rank, 2)
        known = self._of(operation.operands[0]) if count else ()
        plain = zip(known, sizes, strides, edges, strict=True)
        return tuple(bool(some and size == stride == 1 and sum(edge) >= 0) for some, size, stride, edge in plain)


_RULES: Mapping[str, Callable[[_Known, Operation], Known]] = {
    "custom_call.Sharding": _Known._first,
    "custom_call.xla.sdy.FuncResultSharding": _Known._first,
    "sdy.sharding_constraint": _Known._first,
    "stablehlo.broadcast_in_dim": _Known._broadcast,
    "stablehlo.concatenate": _Known._concatenated,
    "stablehlo.convolution": _Known._convolved,
    "stablehlo.dot_general": _Known._multiplied,
    "stablehlo.dynamic_conv": _Known._convolved,
    "stablehlo.dynamic_gather": _Known._gathered,
    "stablehlo.dynamic_pad": _Known._padded_by_sizes,
    "stablehlo.gather": _Known._gathered,
    "stablehlo.pad": _Known._padded,
    "stablehlo.real_dynamic_slice": _Known._cut,
    "stablehlo.reduce": _Known._reduced,
    "stablehlo.reduce_window": _Known._windowed,
    "stablehlo.transpose": _Known._transposed,
}

_MANY = 1 << 10
# What a result is at least; a product may wrap, which sizes do not.
_OF_LEAST: Mapping[str, Callable[[int, int], int | None]] = {
    "add": operator.add,
    "maximum": max,
    "minimum": min,
    "multiply": lambda a, b: a * b if a >= 0 and b >= 0 else None,
}


def _callees_first(program: Program) -> list[str]:
    """The names of functions; each comes after those that it calls."""
    done: dict[str, None] = {}
    begun: set[str] = set()

    def add(name: str) -> None:
        begun.add(name)
        for operation in operations_of(program.functions[name].body):
            if (callee := callee_of(operation)) is not None and callee not in begun:
                add(callee)
        done[name] = None

    for name in program.functions:
        if name not in begun:
            add(name)
    return list(done)


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0


def _static(value: Value) -> Known:
    return tuple(bool(size) for size in value.type.shape) if isinstance(value.type, TensorType) else ()
