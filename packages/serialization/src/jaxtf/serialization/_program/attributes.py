"""MLIR's types and attributes as Python values, dtypes and NumPy arrays.

Everything comes out, whatever its dtype: the bindings give no array of 16-bit brain floats, of floats of 8 bits or
fewer or of integers of 4 bits or fewer, and no attribute at all of complex numbers. Those are read from MLIR's text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jaxtf.serialization._jaxlib import STRUCTURES, ir
from jaxtf.serialization._program.program import TensorType, TokenType, TupleType
from jaxtf.serialization._program.reading import Reading
from jaxtf.serialization._record.avals import dtype_from_name

__all__ = ["array_of_text", "attribute_value", "constant_text", "dtype_of_text", "element_dtype", "named", "value_type"]

_DTYPES = {
    "i1": "bool",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn",
    "index": "int64",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}

# Elements as MLIR prints them; floats that have no short decimal form, and NaN, are printed as their bits.
_ELEMENT = re.compile(r"true|false|-?0x[0-9A-Fa-f]+|-?\d[\d.eE+-]*")
_DENSE = re.compile(r"dense<([^>]*)>")
_ENUMERATION = re.compile(r"#(?:stablehlo|chlo)<\w+ (\w+)>")
_GENERIC_CONSTANT = re.compile(r'(?:%\w+ = )?"[\w.]+"\(\) <\{value = ')
_STRUCTURE = re.compile(r"#stablehlo\.(\w+)<")


def value_type(type_: Any, reading: Reading) -> TensorType | TokenType | TupleType:
    """The type of a value, as whoever reads the module has it.

    Raises:
      Exception: Of the class that `reading` has: a type, or a dtype, that it does not take.
    """
    if isinstance(type_, ir.RankedTensorType):
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = tuple(None if size == dynamic else size for size in type_.shape)
        found = reading.array_type(str(type_.element_type), _DTYPES.get(str(type_.element_type)), shape)
        return found if type_.encoding is None else replace(found, bounds=_bounds(type_.encoding))
    if isinstance(type_, ir.TupleType):
        return TupleType(tuple(value_type(type_.get_type(index), reading) for index in range(type_.num_types)))
    if str(type_) == "!stablehlo.token":
        return TokenType()
    raise reading.error(
        f"{reading.name} has no values of type {type_}: arrays of known rank, tokens and tuples are what it translates"
    )


def _bounds(encoding: Any) -> tuple[int | None, ...]:
    """The bounds of sizes in the encoding of a type; none in an encoding of anything else."""
    found = attribute_value(encoding)
    if not isinstance(found, Mapping) or "bounds" not in found:
        return ()
    dynamic = ir.ShapedType.get_dynamic_size()
    return tuple(None if size == dynamic else size for size in found["bounds"])


def element_dtype(type_: Any) -> np.dtype[Any]:
    """The dtype of the elements of a ranked type, as NumPy or `ml_dtypes` have it.

    Raises:
      ValueError: They have none.
    """
    name = _DTYPES.get(str(type_.element_type))
    if name is None:
        raise ValueError(f"NumPy and ml_dtypes have no dtype for {type_.element_type} ({type_})")
    dtype: np.dtype[Any] = dtype_from_name(name)
    return dtype


def dtype_of_text(name: str) -> str:
    """The name in NumPy or `ml_dtypes` of an element type that MLIR prints so; TF32 is computed with in float32."""
    return "float32" if name == "tf32" else _DTYPES[name]


def attribute_value(attribute: Any) -> Any:
    """An attribute, or its text, as a plain Python value, as `Operation.attributes` describes it."""
    if isinstance(attribute, str):
        return attribute
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr | ir.FlatSymbolRefAttr):
        return attribute.value
    try:
        if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr | ir.DenseBoolArrayAttr | ir.ArrayAttr):
            return tuple(attribute_value(item) if isinstance(item, ir.Attribute) else item for item in attribute)
        if isinstance(attribute, ir.DictAttr):
            return {item.name: attribute_value(item.attr) for item in attribute}
    except TypeError:  # one of complex numbers is in it
        return str(attribute)
    if isinstance(attribute, ir.DenseElementsAttr):
        return _array(attribute)
    return _by_text(attribute)


def named(attributes: Any, name: str) -> Any:
    """The attribute of an operation that has this name; of complex numbers its text, which is all there is."""
    try:
        return attributes[name]
    except TypeError:
        [found] = [each for each in map(attributes.__getitem__, range(len(attributes))) if each.name == name]
        return str(found).removeprefix(f"NamedAttribute({name}=")[:-1]


def constant_text(constant: Any) -> str:
    """The text of a constant operation from that of its value on.

    In the generic form its value, its only property, comes first; in any other form, attributes of other names do.
    """
    text: str = constant.get_asm(large_elements_limit=None, print_generic_op_form=True, use_local_scope=True)
    found = _GENERIC_CONSTANT.match(text)
    assert found is not None, f"the generic form of a constant begins with its value; found {text:.60}"
    return text[found.end() :]


def _by_text(attribute: Any) -> Any:
    """An attribute of StableHLO's own: an enumeration, a structure, or, if unknown, its text."""
    text = str(attribute)
    if text == "unit":
        return True
    if (enumeration := _ENUMERATION.fullmatch(text)) is not None:
        return enumeration[1]
    if (structure := _STRUCTURE.match(text)) is not None and structure[1] in STRUCTURES:
        fields: Mapping[str, Any] = STRUCTURES[structure[1]](attribute)
        return {name: str(value) if isinstance(value, ir.Type) else value for name, value in fields.items()}
    return text


def _array(attribute: Any) -> np.ndarray[Any, Any]:
    """The elements of a dense attribute; one element, repeated, where all are the same."""
    type_ = attribute.type
    if str(type_.element_type) in ("i2", "i4", "ui2", "ui4", "bf16") or re.match(r"f[48]", str(type_.element_type)):
        return array_of_text(str(attribute), element_dtype(type_), tuple(type_.shape))
    array = np.asarray(memoryview(attribute))
    if attribute.is_splat and array.size > 1:
        return np.broadcast_to(array.flat[0], tuple(type_.shape))
    return np.array(array, dtype=element_dtype(type_))


def array_of_text(text: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array of `dense<...>`, with which the text begins: elements are printed one by one, or all as their bytes."""
    found = _DENSE.match(text)
    assert found is not None, f"a dense attribute prints as dense<...>; found {text:.60}"
    content = found[1].strip()
    if content.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(content[3:-1]), dtype)
        return np.broadcast_to(raw[0], shape) if raw.size == 1 else raw.reshape(shape)
    numbers = [_element(token, dtype) for token in _ELEMENT.findall(content)]
    if dtype.kind == "c":
        numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    array = np.array(numbers, dtype)
    return np.broadcast_to(array[0], shape) if array.size == 1 else array.reshape(shape)


def _element(token: str, dtype: np.dtype[Any]) -> Any:
    """A number as MLIR prints it."""
    if token in ("true", "false"):
        return token == "true"
    if not token.startswith("0x"):
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    value = np.frombuffer(int(token, 16).to_bytes(part.itemsize, "little"), part)[0]
    return value.item() if dtype.kind == "c" else value
