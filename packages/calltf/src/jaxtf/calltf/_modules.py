"""The shapes of the results of a StableHLO module with dynamic shapes, for symbolic shapes of its arguments.

For modules that JAX or jaxtf have exported, which a TensorFlow function calls (`XlaCallModule`). Sizes there are read
by `get_dimension_size`, added and multiplied, and used as shapes. A module that does anything else with a size
(compares, divides, converts it to data), or has another operation of dynamic shape, is refused: at samples of the sizes
TensorFlow's compiler would fold it. Knows StableHLO and symbolic sizes; nothing of TensorFlow.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jaxtf.calltf._symbolic_values import Known, Shape, array_of, same, same_shape

_CHECK = "check"  # what is only looked at by shape assertions
_ARITHMETIC = {
    "stablehlo.add": operator.add,
    "stablehlo.multiply": operator.mul,
    "stablehlo.subtract": operator.sub,
}
_ELEMENTWISE = """
abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power
real remainder round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical
sign sine sqrt subtract tan tanh xor optimization_barrier reduce_precision
"""
_SAME_SHAPE = {f"stablehlo.{name}" for name in _ELEMENTWISE.split()}
# The operand that is the shape of the result.
_SHAPE_OPERANDS = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_reshape": 1,
    "stablehlo.dynamic_iota": 0,
}


class NotFollowed(Exception):
    """What a module does with a size, or with a value of symbolic shape, that is not followed."""


def result_shapes(module: bytes, shapes: Sequence[Shape], has_platform_index: bool) -> tuple[list[Shape], list[Any]]:
    """The shapes of the results of a portable artifact, and every size in it.

    Raises:
      NotFollowed: An operation that is not followed.
    """
    with mlir.make_ir_context() as context:
        parsed = stablehlo.deserialize_portable_artifact(context, module)
        walk = _Walk(parsed if isinstance(parsed, ir.Module) else ir.Module.parse(parsed))
        arguments: list[tuple[Shape, Any]] = [((), None)] * has_platform_index + [(shape, None) for shape in shapes]
        results = walk.call("main", arguments)
        return [shape for shape, _ in results], walk.sizes


class _Walk:
    def __init__(self, module: ir.Module):
        self._functions = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body.operations}
        self.sizes: list[Any] = []

    def call(self, name: str, arguments: Sequence[tuple[Shape, Any]]) -> list[tuple[Shape, Any]]:
        """The shapes of the results of a function, with their elements if they are sizes."""
        block = self._functions[name].regions[0].blocks[0]
        found: dict[Any, tuple[Shape, Any]] = dict(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            operation = op.operation
            operands = [found[x] for x in operation.operands]
            if operation.name in ("func.return", "stablehlo.return"):
                return operands
            for result, value in zip(operation.results, self._results(operation, operands), strict=True):
                found[result] = value
                self.sizes.extend(value[0])
        raise AssertionError("a block without a terminator")

    def _results(self, op: Any, operands: list[tuple[Shape, Any]]) -> list[tuple[Shape, Any]]:
        name = op.name
        if name in ("func.call", "call"):
            return self.call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)
        if (
            name == "stablehlo.custom_call"
            and ir.StringAttr(op.attributes["call_target_name"]).value == "shape_assertion"
        ):
            return []
        if name == "stablehlo.get_dimension_size":
            axis = ir.IntegerAttr(op.attributes["dimension"]).value
            return [((), array_of([operands[0][0][axis]], ()))]
        if any(known is not None for _, known in operands):
            return self._of_sizes(op, operands)
        if name == "stablehlo.constant" and _is_index(op.results[0].type):
            attribute = ir.DenseElementsAttr(op.attributes["value"])
            shape = tuple(op.results[0].type.shape)
            count = 1 if not shape else shape[0]
            elements = (
                [attribute.get_splat_value().value] * count
                if attribute.is_splat
                else [*ir.DenseIntElementsAttr(attribute)]
            )
            return [(shape, array_of(elements, shape))]
        types = [result.type for result in op.results]
        if all(type_.has_static_shape for type_ in types):
            self._inner(op)
            return [(tuple(type_.shape), None) for type_ in types]
        shapes = [shape for shape, _ in operands]
        if name in _SAME_SHAPE:
            ranked = [shape for shape in shapes if shape] or shapes[:1]
            if not all(same_shape(ranked[0], shape) for shape in ranked[1:]):
                raise NotFollowed(f"{name} of shapes {ranked}")
            return [(ranked[0], None) for _ in types]
        rule = _RULES.get(name)
        if rule is None:
            raise NotFollowed(f"{name} of symbolic shape")
        self._inner(op)
        return [(shape, None) for shape in rule(op, shapes)]

    def _inner(self, op: Any) -> None:
        """What regions compute must have constant shapes, and not look at sizes."""
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    if inner.operation.name in ("func.call", "call", "stablehlo.get_dimension_size"):
                        raise NotFollowed(f"{inner.operation.name} in a region")
                    if not all(result.type.has_static_shape for result in inner.operation.results):
                        raise NotFollowed(f"{inner.operation.name} of symbolic shape in a region")
                    self._inner(inner.operation)

    def _of_sizes(self, op: Any, operands: list[tuple[Shape, Any]]) -> list[tuple[Shape, Any]]:
        name, knowns = op.name, [known for _, known in operands]
        place = _SHAPE_OPERANDS.get(name)
        if place is not None and knowns[place] is not None and knowns[place] is not _CHECK:
            return [(tuple(knowns[place].flat), None)]
        is_constant = all(known is None or (known is not _CHECK and _is_constant(known)) for known in knowns)
        shapes = [shape for shape, _ in operands]
        if is_constant and name not in _ARITHMETIC and name not in _MOVES:
            return self._data(op, shapes)
        if any(known is None for known in knowns):
            if is_constant:
                return self._data(op, shapes)
            raise NotFollowed(f"{name} of a size and data")
        if name in ("stablehlo.compare", "stablehlo.and") or any(known is _CHECK for known in knowns):
            if name in ("stablehlo.compare", "stablehlo.and"):
                return [((), _CHECK)]
            raise NotFollowed(f"{name} of a comparison of sizes")
        if name in _ARITHMETIC:
            x, y = knowns
            elements = [_ARITHMETIC[name](a, b) for a, b in zip(x.flat, y.flat, strict=True)]
            return [(shapes[0], array_of(elements, x.shape))]
        if name in _MOVES:
            elements = [element for known in knowns for element in known.flat]
            shape = tuple(op.results[0].type.shape)
            if len(shape) <= 1 and _is_index(op.results[0].type) and (shape or (1,))[0] == len(elements):
                return [(shape, array_of(elements, shape))]
        if is_constant:
            return self._data(op, shapes)
        raise NotFollowed(f"{name} of a size")

    def _data(self, op: Any, shapes: list[Shape]) -> list[tuple[Shape, Any]]:
        return self._results(op, [(shape, None) for shape in shapes])


_MOVES = ("stablehlo.convert", "stablehlo.reshape", "stablehlo.concatenate", "stablehlo.broadcast_in_dim")


def _is_constant(known: Known) -> bool:
    return all(isinstance(element, int) for element in known.flat)


def _is_index(type_: Any) -> bool:
    return len(type_.shape) <= 1 and type_.has_static_shape and str(type_.element_type) in ("i32", "i64")


def _transpose(op: Any, shapes: list[Shape]) -> list[Shape]:
    return [tuple(shapes[0][axis] for axis in ir.DenseI64ArrayAttr(op.attributes["permutation"]))]


def _broadcast(op: Any, shapes: list[Shape]) -> list[Shape]:
    axes = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
    result: list[Any] = list(op.results[0].type.shape)
    for own, axis in zip(shapes[0], axes, strict=True):
        if result[axis] < 0:
            result[axis] = own
    return [tuple(result)]


def _reduce(op: Any, shapes: list[Shape]) -> list[Shape]:
    axes = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    return [tuple(size for axis, size in enumerate(shape) if axis not in axes) for shape in shapes[: len(op.results)]]


def _dot(op: Any, shapes: list[Shape]) -> list[Shape]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = shapes
    own, other = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    contracted = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    for x, y in [*contracted, *zip(own, other, strict=True)]:
        if not same(left[x], right[y]):
            raise NotFollowed(f"stablehlo.dot_general of shapes {left} and {right}")
    used_left = {*own, *(x for x, _ in contracted)}
    used_right = {*other, *(y for _, y in contracted)}
    return [
        (
            *(left[x] for x in own),
            *(size for axis, size in enumerate(left) if axis not in used_left),
            *(size for axis, size in enumerate(right) if axis not in used_right),
        )
    ]


def _plain_dot(op: Any, shapes: list[Shape]) -> list[Shape]:
    left, right = shapes
    if not same(left[-1], right[0]):
        raise NotFollowed(f"stablehlo.dot of shapes {left} and {right}")
    return [(*left[:-1], *right[1:])]


def _concatenate(op: Any, shapes: list[Shape]) -> list[Shape]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    first = list(shapes[0])
    for shape in shapes[1:]:
        if not same_shape((*first[:axis], *first[axis + 1 :]), (*shape[:axis], *shape[axis + 1 :])):
            raise NotFollowed(f"stablehlo.concatenate of shapes {shapes}")
        first[axis] = first[axis] + shape[axis]
    return [tuple(first)]


_RULES: dict[str, Callable[[Any, list[Shape]], list[Shape]]] = {
    "stablehlo.transpose": _transpose,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reduce": _reduce,
    "stablehlo.dot": _plain_dot,
    "stablehlo.dot_general": _dot,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": lambda op, shapes: shapes[:1],
    "stablehlo.sort": lambda op, shapes: shapes,
}
