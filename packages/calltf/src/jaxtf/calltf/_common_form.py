"""One StableHLO program for all sizes, from programs for some of them.

TensorFlow compiles for constant sizes only. Compiled at several samples, a function gives programs that are the same
but for numbers: sizes in types, bounds of slices, constants. `CommonForm.emit` reads them side by side, looks up each
number that varies among the sizes that the operations of the trace have (`Numbers`), and writes the program with
dynamic shapes: `dynamic_reshape` for `reshape`, and so on. Programs that differ in more than numbers, or by numbers
that are not such sizes, are refused.

The program is written in place, its functions inlined, so that shape refinement meets each of its sizes once.

Knows StableHLO; nothing of TensorFlow or of the primitives. Source: StableHLO specification; "Dynamism in StableHLO".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._sizes import Numbers, Sample

_LAYOUTS = ("xla_shape", "result_layout", "operand_layouts")  # hints of HLO, for constant sizes


class NoCommonForm(Exception):
    """The programs have no common form; the message says where they differ."""


class CommonForm:
    """Writes the common form of programs into the program being lowered.

    Args:
      samples: Where the programs were compiled.
      modules: The programs, each with a function `main`.
      numbers: What their numbers may be.
      values: Gives the value of a symbolic size, an integer scalar, in the program being written.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        modules: Sequence[ir.Module],
        numbers: Numbers,
        values: Callable[[Any], ir.Value],
    ):
        self._samples = samples
        self._numbers = numbers
        self._values = values
        self._index = ir.IntegerType.get_signless(32)
        self._functions = [
            {ir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body.operations} for module in modules
        ]
        blocks = [f.regions[0].blocks[0] for functions in self._functions for f in functions.values()]
        vectors = {type_ for block in blocks for type_ in _written_out(block)}
        for block in blocks:
            _write_out_splats(block, vectors)
        self._ids: list[dict[ir.Value, int]] = [{} for _ in modules]  # the place of each value of each program
        self._written: list[ir.Value] = []  # the merged value, by place
        self._known: dict[Any, ir.Value] = {}

    def emit(self, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of `main`.

        Raises:
          NoCommonForm: The programs have no common form.
        """
        return self._inline([functions["main"] for functions in self._functions], arguments)

    def _inline(self, functions: Sequence[Any], arguments: Sequence[ir.Value]) -> list[ir.Value]:
        return self._block([function.regions[0].blocks[0] for function in functions], arguments)

    def _block(self, blocks: Sequence[Any], arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """Writes the operations of a block; gives what its terminator, which is not written, has as operands."""
        columns = [list(block.operations) for block in blocks]
        self._enter([block.arguments for block in blocks], arguments)
        for column in zip(*columns, strict=False):  # a terminator ends the shortest
            if len({op.operation.name for op in column}) > 1:
                raise NoCommonForm("it is compiled to different operations at different sizes")
            operations = [op.operation for op in column]
            wiring = [[ids[x] for x in op.operands] for ids, op in zip(self._ids, operations, strict=True)]
            if any(places != wiring[0] for places in wiring):
                raise NoCommonForm("its operations are connected differently at different sizes")
            operands = [self._written[place] for place in wiring[0]]
            if operations[0].name in ("func.return", "stablehlo.return"):
                return operands
            self._enter([op.results for op in operations], self._operation(operations, operands))
        raise AssertionError("a block without a terminator")

    def _enter(self, values: Sequence[Sequence[ir.Value]], written: Sequence[ir.Value]) -> None:
        """Remembers the merged value of the values that each program has in one place."""
        for ids, found in zip(self._ids, values, strict=True):
            ids.update({value: len(self._written) + i for i, value in enumerate(found)})
        self._written.extend(written)

    def _operation(self, operations: Sequence[Any], operands: list[ir.Value]) -> Sequence[ir.Value]:
        first = operations[0]
        if first.name == "func.call":
            callees = [
                functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
                for functions, op in zip(self._functions, operations, strict=True)
            ]
            return self._inline(callees, operands)
        if first.name == "stablehlo.constant" and len({_right_side(op) for op in operations}) == 1:
            return list(first.clone().results)
        types = [self._type([op.results[i].type for op in operations]) for i in range(len(first.results))]
        if first.name == "stablehlo.optimization_barrier":  # it has hidden constants from TensorFlow's compiler
            return operands
        if first.name == "stablehlo.set_dimension_size":
            return self._whole(operations, operands)
        varying = [name for name in _attribute_names(first) if len({str(op.attributes[name]) for op in operations}) > 1]
        is_dynamic = any(isinstance(t, ir.RankedTensorType) and not t.has_static_shape for t in types)
        if (varying or is_dynamic) and first.name in _SPECIAL:
            return _SPECIAL[first.name](self, operations, operands, types)
        if varying:
            raise NoCommonForm(f"{first.name} has no form for {', '.join(varying)} that depends on symbolic sizes")
        if is_dynamic and first.name in ("stablehlo.custom_call", "stablehlo.rng_bit_generator"):
            raise NoCommonForm(f"{first.name} has no form for results of symbolic sizes")
        attributes = {name: first.attributes[name] for name in _attribute_names(first)}
        written = ir.Operation.create(first.name, types, operands, attributes, regions=len(first.regions))
        for index in range(len(first.regions)):
            self._region(written.regions[index], [op.regions[index].blocks[0] for op in operations])
        return list(written.results)

    def _region(self, region: Any, blocks: Sequence[Any]) -> None:
        arguments = zip(*(block.arguments for block in blocks), strict=True)
        block = region.blocks.append(*(self._type([argument.type for argument in column]) for column in arguments))
        known = dict(self._known)  # a size computed in a region is known there only
        with ir.InsertionPoint(block):
            stablehlo.ReturnOp(self._block(blocks, block.arguments))
        self._known = known

    def _type(self, types: Sequence[ir.Type]) -> ir.Type:
        """The type that has the varying sizes unknown."""
        if all(t == types[0] for t in types):
            return types[0]
        ranked = [t for t in types if isinstance(t, ir.RankedTensorType)]
        if len({(t.rank, str(t.element_type)) for t in ranked}) != 1 or len(ranked) != len(types):
            raise NoCommonForm(f"the type of an intermediate result depends on symbolic sizes: {types[0]}, {types[-1]}")
        unknown = ir.ShapedType.get_dynamic_size()
        shape = [
            sizes[0] if len(set(sizes)) == 1 else unknown for sizes in zip(*(t.shape for t in ranked), strict=True)
        ]
        return ir.RankedTensorType.get(shape, ranked[0].element_type)

    # --- numbers ---

    def _scalar(self, column: Sequence[int], what: str) -> ir.Value:
        """A number, given at each sample, in the type that the sizes have."""
        size = self._numbers.find([int(value) for value in column])
        if size is None:
            shown = "; ".join(f"{v} for {s}" for v, s in list(zip(column, self._samples, strict=True))[:4])
            raise NoCommonForm(f"{what} is not one of the sizes of its operations: {shown}")
        if size not in self._known:
            self._known[size] = self._int32(self._values(size)) if is_symbolic(size) else _int32(size)
        return self._known[size]

    def _int32(self, value: ir.Value) -> ir.Value:
        scalar = ir.RankedTensorType.get([], self._index)
        return value if value.type == scalar else stablehlo.convert(scalar, value)

    def _vector(self, columns: Sequence[Sequence[int]], what: str) -> ir.Value:
        """A vector of numbers, given at each sample."""
        one = ir.RankedTensorType.get([1], self._index)
        scalars = [self._scalar(column, what) for column in zip(*columns, strict=True)]
        if not scalars:
            return mlir.ir_constant(np.zeros(0, np.int32))
        return stablehlo.concatenate([stablehlo.reshape(one, scalar) for scalar in scalars], 0)

    def _shape(self, operations: Sequence[Any]) -> ir.Value:
        return self._vector([ir.RankedTensorType(op.results[0].type).shape for op in operations], "a size")

    def _attribute(self, operations: Sequence[Any], name: str) -> ir.Value:
        columns = [list(ir.DenseI64ArrayAttr(op.attributes[name])) for op in operations]
        return self._vector(columns, f"{name} of {operations[0].name}")

    # --- operations that have another form where sizes vary ---

    def _constant(self, operations: Sequence[Any], operands: Any, types: Sequence[ir.Type]) -> list[ir.Value]:
        [type_] = types
        element = ir.RankedTensorType(type_).element_type
        try:
            attributes = [ir.DenseElementsAttr(op.attributes["value"]) for op in operations]
        except TypeError as error:  # of complex numbers, which Python does not read
            raise NoCommonForm(f"one of its constants, {type_}, depends on symbolic sizes") from error
        none = ir.DenseI64ArrayAttr.get([])
        if all(attribute.is_splat for attribute in attributes):
            splats = [attribute.get_splat_value() for attribute in attributes]
            if len(set(map(str, splats))) == 1:
                scalar_type = ir.RankedTensorType.get([], element)
                scalar = stablehlo.constant(ir.DenseElementsAttr.get_splat(scalar_type, splats[0]))
            else:
                scalar = self._element([splat.value for splat in splats], element)
            if not ir.RankedTensorType(type_).shape:
                return [scalar]
            return [stablehlo.dynamic_broadcast_in_dim(type_, scalar, self._shape(operations), none)]
        if "complex" in str(element):
            raise NoCommonForm(f"one of its constants, {type_}, depends on symbolic sizes")
        values = [np.array(attribute) for attribute in attributes]
        if ir.RankedTensorType(type_).has_static_shape and values[0].ndim == 1:  # indices, bounds
            one = ir.RankedTensorType.get([1], element)
            elements = [
                self._element([number.item() for number in column], element) for column in zip(*values, strict=True)
            ]
            return [stablehlo.concatenate([stablehlo.reshape(one, scalar) for scalar in elements], 0)]
        longest = max(values, key=np.size)
        axis = int(np.argmax(longest.shape))
        counted = [np.arange(value.size).reshape(value.shape) for value in values]
        if longest.size != longest.shape[axis] or not all(map(np.array_equal, values, counted)):
            raise NoCommonForm(f"one of its constants, {type_}, depends on symbolic sizes")
        return [stablehlo.dynamic_iota(type_, self._shape(operations), axis)]

    def _element(self, values: Sequence[float], element: ir.Type) -> ir.Value:
        """A scalar constant that depends on the sizes: an integer, or the inverse of one."""
        type_ = ir.RankedTensorType.get([], element)
        if all(float(value).is_integer() for value in values):
            return stablehlo.convert(type_, self._scalar(list(map(int, values)), "a constant"))
        inverse = [round(1 / value) if value else 0 for value in values]
        rounding: Any = {"f32": np.float32, "f64": np.float64}.get(str(element))
        if rounding and all(n and rounding(1) / rounding(n) == x for n, x in zip(inverse, values, strict=True)):
            number = stablehlo.convert(type_, self._scalar(inverse, "a constant"))
            return stablehlo.divide(stablehlo.convert(type_, _int32(1)), number)
        raise NoCommonForm(
            f"one of its constants is {values[0]} for {self._samples[0]}, {values[1]} for {self._samples[1]}"
        )

    def _whole(self, operations: Sequence[Any], operands: list[ir.Value]) -> list[ir.Value]:
        """An operand that is declared to have the size that it has."""
        for op in operations:
            axis = ir.IntegerAttr(op.attributes["dimension"]).value
            owner: Any = op.operands[1].owner
            size = ir.DenseElementsAttr(owner.attributes["value"]).get_splat_value()
            if size.value != ir.RankedTensorType(op.operands[0].type).shape[axis]:
                raise NoCommonForm("it has a result of dynamic size")
        return operands[:1]

    def _broadcast(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        dimensions = operations[0].attributes["broadcast_dimensions"]
        return [stablehlo.dynamic_broadcast_in_dim(types[0], operands[0], self._shape(operations), dimensions)]

    def _iota(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        return [stablehlo.dynamic_iota(types[0], self._shape(operations), operations[0].attributes["iota_dimension"])]

    def _reshape(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        return [stablehlo.dynamic_reshape(types[0], operands[0], self._shape(operations))]

    def _slice(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        bounds = [self._attribute(operations, name) for name in ("start_indices", "limit_indices", "strides")]
        return [stablehlo.real_dynamic_slice(types[0], operands[0], *bounds)]

    def _pad(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        return [stablehlo.dynamic_pad(types[0], *operands, *(self._attribute(operations, name) for name in names))]

    def _gather(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        sizes = self._attribute(operations, "slice_sizes")
        numbers, sort = (operations[0].attributes[name] for name in ("dimension_numbers", "indices_are_sorted"))
        written = ir.Operation.create(
            "stablehlo.dynamic_gather",
            types,
            [*operands, sizes],
            {"dimension_numbers": numbers, "indices_are_sorted": sort},
        )
        return list(written.results)

    def _dynamic_slice(self, operations: Sequence[Any], operands: Any, types: Any) -> list[ir.Value]:
        """Its start is clamped so that the slice lies inside."""
        operand, *starts = operands
        sizes = self._attribute(operations, "slice_sizes")
        whole = self._vector([ir.RankedTensorType(op.operands[0].type).shape for op in operations], "a size")
        one, scalar = ir.RankedTensorType.get([1], self._index), ir.RankedTensorType.get([], self._index)
        start = stablehlo.concatenate([stablehlo.reshape(one, stablehlo.convert(scalar, s)) for s in starts], 0)
        zeros = stablehlo.subtract(sizes, sizes)
        start = stablehlo.clamp(zeros, start, stablehlo.subtract(whole, sizes))
        strides = mlir.ir_constant(np.ones(len(starts), np.int32))
        return [stablehlo.real_dynamic_slice(types[0], operand, start, stablehlo.add(start, sizes), strides)]


def _written_out(block: Any) -> Iterator[str]:
    """The types of the vectors that are constants with elements of their own, such as shapes."""
    for op in block.operations:
        for region in op.operation.regions:
            yield from _written_out(region.blocks[0])
        if op.operation.name != "stablehlo.constant" or op.operation.results[0].type.rank != 1:
            continue
        if "complex" in str(op.operation.results[0].type):  # not indices
            continue
        if not ir.DenseElementsAttr(op.operation.attributes["value"]).is_splat:
            yield str(op.operation.results[0].type)


def _write_out_splats(block: Any, vectors: set[str]) -> None:
    """Makes constants of such vectors where XLA broadcasts a scalar, because the sizes happen to be equal there."""
    for op in list(block.operations):
        for region in op.operation.regions:
            _write_out_splats(region.blocks[0], vectors)
        if op.operation.name != "stablehlo.broadcast_in_dim":
            continue
        result, scalar = op.operation.results[0], op.operation.operands[0]
        owner: Any = getattr(scalar, "owner", None)
        if str(result.type) in vectors and getattr(owner, "name", None) == "stablehlo.constant":
            splat = ir.DenseElementsAttr(owner.attributes["value"]).get_splat_value()
            with ir.InsertionPoint(op), op.operation.location:
                constant = stablehlo.constant(ir.DenseElementsAttr.get_splat(result.type, splat))
            result.replace_all_uses_with(constant)
            op.operation.erase()
            if not list(scalar.uses):
                owner.erase()


def _right_side(constant: Any) -> str:
    """The text of a constant, without its name: Python has no attribute for one of complex numbers."""
    return str(constant).partition("=")[2]


def _int32(number: int) -> ir.Value:
    return mlir.ir_constant(np.int32(number))


def _attribute_names(operation: Any) -> list[str]:
    names = [attribute if isinstance(attribute, str) else attribute.name for attribute in operation.attributes]
    return [name for name in names if name not in _LAYOUTS]


_Rule = Callable[[CommonForm, Sequence[Any], Any, Any], list[ir.Value]]
_SPECIAL: dict[str, _Rule] = {
    "stablehlo.constant": CommonForm._constant,
    "stablehlo.broadcast_in_dim": CommonForm._broadcast,
    "stablehlo.iota": CommonForm._iota,
    "stablehlo.reshape": CommonForm._reshape,
    "stablehlo.slice": CommonForm._slice,
    "stablehlo.pad": CommonForm._pad,
    "stablehlo.gather": CommonForm._gather,
    "stablehlo.dynamic_slice": CommonForm._dynamic_slice,
}
