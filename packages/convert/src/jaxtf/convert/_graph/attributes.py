"""MLIR's types and attributes as Python values, dtypes and NumPy arrays.

Everything comes out, whatever its dtype: the bindings give no array of 16-bit brain floats, of floats of 8 bits or
fewer or of integers of 4 bits or fewer, and no attribute at all of complex numbers. Those are read from MLIR's text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.program import TensorType, TokenType, TupleType
from jaxtf.convert._jaxlib import STRUCTURES, ir

__all__ = ["array_of_text", "attribute_value", "value_type"]

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
    "f4E2M1FN": "float4_e2m1fn",
    "index": "int64",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}

# More of them abort the process (TensorFlow 2.21).
_MOST_DIMENSIONS = 254

# Elements as MLIR prints them; floats that have no short decimal form, and NaN, are printed as their bits.
_ELEMENT = re.compile(r"true|false|-?0x[0-9A-Fa-f]+|-?\d[\d.eE+-]*")
_DENSE = re.compile(r"dense<([^>]*)>")
_ENUMERATION = re.compile(r"#(?:stablehlo|chlo)<\w+ (\w+)>")
_STRUCTURE = re.compile(r"#stablehlo\.(\w+)<")


def value_type(type_: Any) -> TensorType | TokenType | TupleType:
    """The type of a value.

    Raises:
      GraphModeUnsupported: TensorFlow has no such dtype.
    """
    if isinstance(type_, ir.RankedTensorType):
        if type_.rank > _MOST_DIMENSIONS:
            raise GraphModeUnsupported(
                f"graph mode has no arrays of {type_.rank} dimensions: TensorFlow's have up to {_MOST_DIMENSIONS}"
            )
        dynamic = ir.ShapedType.get_dynamic_size()
        return TensorType(_dtype(type_), tuple(None if size == dynamic else size for size in type_.shape))
    if isinstance(type_, ir.TupleType):
        return TupleType(tuple(value_type(type_.get_type(index)) for index in range(type_.num_types)))
    if str(type_) == "!stablehlo.token":
        return TokenType()
    raise GraphModeUnsupported(
        f"graph mode has no values of type {type_}: arrays of known rank, tokens and tuples are what it translates"
    )


def _dtype(type_: Any) -> tf.DType:
    name = str(type_.element_type)
    try:
        return tf.as_dtype(_DTYPES[name])
    except (KeyError, TypeError):
        raise GraphModeUnsupported(
            f"graph mode has no arrays of {name} ({type_}): TensorFlow has no such dtype"
        ) from None


def attribute_value(attribute: Any) -> Any:
    """An attribute as a plain Python value, as `Operation.attributes` describes it."""
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr | ir.FlatSymbolRefAttr):
        return attribute.value
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr | ir.DenseBoolArrayAttr | ir.ArrayAttr):
        return tuple(attribute_value(item) if isinstance(item, ir.Attribute) else item for item in attribute)
    if isinstance(attribute, ir.DictAttr):
        return {item.name: attribute_value(item.attr) for item in attribute}
    if isinstance(attribute, ir.DenseElementsAttr):
        return _array(attribute)
    return _by_text(attribute)


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
        return array_of_text(str(attribute), _dtype(type_), tuple(type_.shape))
    array = np.asarray(memoryview(attribute))
    if attribute.is_splat and array.size > 1:
        return np.broadcast_to(array.flat[0], tuple(type_.shape))
    return np.array(array, dtype=_dtype(type_).as_numpy_dtype)


def array_of_text(text: str, dtype: tf.DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array of `dense<...>` in MLIR's text, whose elements are printed one by one, or all as their bytes."""
    found = _DENSE.search(text)
    assert found is not None, f"a dense attribute prints as dense<...>; found {text:.60}"
    numpy_dtype, content = np.dtype(dtype.as_numpy_dtype), found[1].strip()
    if content.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(content[3:-1]), numpy_dtype)
        return np.broadcast_to(raw[0], shape) if raw.size == 1 else raw.reshape(shape)
    numbers = [_element(token, numpy_dtype) for token in _ELEMENT.findall(content)]
    if dtype.is_complex:
        numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    array = np.array(numbers, numpy_dtype)
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
