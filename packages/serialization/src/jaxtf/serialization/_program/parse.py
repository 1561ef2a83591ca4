"""A StableHLO module of any producer, as a `Program`: plain data, MLIR left behind. Needs jaxlib, not JAX."""

from __future__ import annotations

import re
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._jaxlib import ir, read_module
from jaxtf.serialization._program.attributes import (
    array_of_text,
    attribute_value,
    constant_text,
    element_dtype,
    named,
    value_type,
)
from jaxtf.serialization._program.calls import reached
from jaxtf.serialization._program.default_attributes import without_defaults
from jaxtf.serialization._program.locations import scope_of, source_of
from jaxtf.serialization._program.one_device import rewrite_for_one_device
from jaxtf.serialization._program.program import Block, Function, Operation, Program, TensorType, Value
from jaxtf.serialization._program.promotions import promoted
from jaxtf.serialization._program.reading import Reading
from jaxtf.serialization._program.unread import unread
from jaxtf.serialization._program.utf8 import in_utf8, is_bytecode

__all__ = ["read_program"]

_MAIN = "main"


def read_program(module: Any, reading: Reading, main: str | None = None) -> Program:
    """Reads a module.

    Args:
      module: A portable artifact, a module in MLIR's bytecode or text, or one of MLIR's bindings, whose texts are UTF-8
        (`in_utf8`), and which is changed: of a module for one device, collectives are left out.
      reading: For whom.
      main: The function to take for the main one; by default that named `main`, else the only public one.

    Returns:
      The main function, first, and those that it reaches by calls.

    Raises:
      ArtifactError: It is bytecode, and damaged.
      VersionError: It is bytecode of a StableHLO version that the installed jaxlib does not read yet.
      ValueError: It is none of these, or it is not known which function is the main one, or one that is called is not
        there; the message says where.
      Exception: Of the class that `reading` has: values of a type that it does not take, several blocks, or recursion.
    """
    module = _parsed(module) if isinstance(module, bytes | str) else module
    rewrite_for_one_device(module)
    return reached(_Reader(module, reading).program(main), reading)


def _parsed(module: bytes | str) -> Any:
    try:
        return read_module(in_utf8(module))
    except ValueError as error:
        if isinstance(module, str) or isinstance(error, ArtifactError) or not is_bytecode(module):
            raise
        raise unread(error, module) from error


class _Reader:
    """Reads one module. Types, attributes and places, which MLIR has once for all that are equal, are read once.

    Args:
      module: In MLIR's bindings.
      reading: For whom.
    """

    def __init__(self, module: Any, reading: Reading) -> None:
        self._module = module
        self._reading = reading
        self._values: dict[Any, Value] = {}
        self._type = cache(partial(value_type, reading=reading))
        self._attribute = cache(attribute_value)
        self._source = cache(source_of)

    def program(self, name: str | None) -> Program:
        """The whole module; the main function is the one of this name, if any is given."""
        found = [op.operation for op in self._module.body.operations if op.operation.name == "func.func"]
        functions = [self._function(op) for op in found if len(op.regions[0].blocks)]
        if not functions:
            raise ValueError("the module has no function with a body")
        main = _main_of(functions, name)
        functions.sort(key=lambda function: function is not main)
        return Program({function.name: function for function in functions}, self._attributes(self._module.operation))

    def _function(self, op: Any) -> Function:
        attributes = self._attributes(op)
        return Function(
            name=attributes["sym_name"],
            body=(body := self._region(op.regions[0], f"function '{attributes['sym_name']}'")),
            is_public=attributes.get("sym_visibility", "public") == "public",
            argument_attributes=attributes.get("arg_attrs", ({},) * len(body.arguments)),
        )

    def _region(self, region: Any, owner: str) -> Block:
        """The only block of a region."""
        if len(region.blocks) != 1:
            raise self._reading.error(
                f"{owner} has {len(region.blocks)} blocks; in StableHLO it has one, and control flow is in operations "
                "such as stablehlo.while\n"
                "  remedy: lift the control flow between blocks (dialect cf) to StableHLO's before"
            )
        return self._block(region.blocks[0])

    def _block(self, block: Any) -> Block:
        arguments = tuple(self._new_value(argument) for argument in block.arguments)
        *operations, terminator = [op.operation for op in block.operations]
        read = tuple(made for op in operations for made in promoted(self._operation(op)))
        return Block(arguments, read, tuple(self._values[operand] for operand in terminator.operands))

    def _new_value(self, value: Any) -> Value:
        made = self._values[value] = Value(self._type(value.type))
        return made

    def _operation(self, op: Any) -> Operation:
        name, attributes = op.name, self._attributes(op)
        if name in _CONSTANTS:
            name = "stablehlo.constant"
        if name == "stablehlo.custom_call":
            name = f"custom_call.{attributes['call_target_name']}"
        location = op.location
        return Operation(
            name=name,
            operands=tuple(self._values[operand] for operand in op.operands),
            regions=tuple(self._region(region, f"a region of {name}") for region in op.regions if len(region.blocks)),
            results=tuple(map(self._new_value, op.results)),
            attributes=attributes,
            location=scope_of(location),
            source=self._source(location.child_loc if isinstance(location, ir.NameLoc) else location),
        )

    def _attributes(self, op: Any) -> dict[str, Any]:
        if op.name in _CONSTANTS:
            return {"value": self._constant(op)}
        attributes = op.attributes
        names = [name for name in map(_name_of, attributes) if name not in _SKIPPED]
        # A dictionary has MHLO's name for it in modules for consumers that only know a text here.
        read = {_RENAMED.get(name, name): self._attribute(named(attributes, name)) for name in names}
        return without_defaults(read, op)

    def _constant(self, op: Any) -> np.ndarray[Any, Any]:
        type_ = self._type(op.results[0].type)
        assert isinstance(type_, TensorType)
        dtype, shape = element_dtype(op.results[0].type), tuple(size for size in type_.shape if size is not None)
        try:
            attribute = op.attributes["value"]
        except TypeError:  # the bindings have no attributes of complex numbers
            return array_of_text(constant_text(op), dtype, shape)
        if isinstance(attribute, ir.DenseElementsAttr):
            array: np.ndarray[Any, Any] = self._attribute(attribute)
            return array
        found = _RESOURCE.match(str(attribute))
        assert found is not None, f"a constant is dense or a resource; found {attribute!s:.60}"
        name = found[1].strip('"')
        if name not in self._resources:
            raise ValueError(f"the module has no resource '{name}', of which a constant is made")
        raw = np.frombuffer(self._resources[name], np.uint8 if dtype == np.bool_ else dtype)
        return raw.reshape(shape).astype(dtype, copy=False)

    @cached_property
    def _resources(self) -> dict[str, bytes]:
        """The bytes of `dense_resource` attributes, which follow the module in its text, after four of alignment."""
        text = self._module.operation.get_asm(large_elements_limit=1)
        _, _, resources = text.partition("{-#")
        found = re.findall(rf'({_KEY}):\s*"0x([0-9A-Fa-f]*)"', resources)
        return {name.strip('"'): bytes.fromhex(digits)[4:] for name, digits in found}


def _main_of(functions: list[Function], name: str | None) -> Function:
    """The function of this name; without one, that named `main`, else the only public one, else the only one."""
    if name is not None:
        for function in functions:
            if function.name == name:
                return function
        raise ValueError(f"the module has no function '{name}', but {', '.join(each.name for each in functions)}")
    named = [function for function in functions if function.name == _MAIN]
    candidates = named or [function for function in functions if function.is_public] or functions
    if len(candidates) > 1:
        names = ", ".join(function.name for function in candidates)
        raise ValueError(
            f"the module has no function '{_MAIN}', and which of its functions to take is not known: {names}\n"
            f"  remedy: name one of them '{_MAIN}', or make the others private"
        )
    return candidates[0]


# The key of a resource: bare, or a text.
_KEY = r'[\w.$-]+|"(?:[^"\\]|\\.)*"'
_RESOURCE = re.compile(rf"dense_resource<({_KEY})>")
_CONSTANTS = ("stablehlo.constant", "chlo.constant")
_RENAMED = {"mhlo.backend_config": "backend_config"}

# They say what the types say, or what only a compiler reads.
_SKIPPED = frozenset(("function_type", "operand_layouts", "result_layouts", "sdy.sharding_rule"))


def _name_of(attribute: Any) -> str:
    """The name under which an attribute is found; bindings iterate over names or over pairs."""
    return attribute if isinstance(attribute, str) else str(attribute.name)
