"""Artifacts whose record and module disagree, or that vouch for what nobody can, each signed with a digest that fits.

`corpus()` makes them from a few exported functions: fields of the record replaced one at a time, for the function and
for its VJP; records with the modules of other functions; and modules written by hand. None of them may be run: each is
refused by whatever uses it. Needs JAX, which exports the functions.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jaxtf.serialization import Exported, export
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.schema import DisabledSafetyCheckTable, EffectTable, ExportedTable
from jaxtf.serialization._artifact.trailer import append_trailer, split_trailer
from jaxtf.serialization._artifact.writer import write_payload
from jaxtf.serialization._program.portable_artifact import serialize_module
from jaxtf.serialization._record.kinds import DTYPES
from jaxtf.shapepoly import symbolic_shape

__all__ = ["corpus", "sound"]

STABLEHLO = "1.9.0"
_VOUCHED = (DisabledSafetyCheckTable(kind=1, custom_call_target="ALL"),)
_IN_MLIR = {
    **{"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"},
    **{"ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "i4": "int4", "ui4": "uint4"},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{"complex<f32>": "complex64", "complex<f64>": "complex128", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"},
}


def _exported(fun: Callable[..., Any], *shapes: Any, **options: Any) -> Exported:
    specs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return export(fun, stablehlo_version=STABLEHLO, calling_convention_version=9, **options)(*specs)


def sound() -> dict[str, bytes]:
    """The artifacts that the hostile ones are made of, by name."""
    b, n = symbolic_shape("b, n")
    two = {"platforms": ("cpu", "cuda")}
    made = {
        "sine": _exported(jnp.sin, ((3,), "float32")),
        "product": _exported(lambda x, y: x @ y, ((2, 3), "float32"), ((3, 4), "float32")),
        "integers": _exported(lambda x, y: (x + y, x > y), ((5,), "int32"), ((), "int32")),
        "complex": _exported(lambda x: jnp.abs(x * x), ((4,), "complex64")),
        "symbolic": _exported(lambda x, y: (x @ y, y.sum()), ((b, n), "float32"), ((n, 2), "float32")),
        "platforms": _exported(lambda x: x * 2, ((3,), "float32"), **two),
        "unused": _exported(lambda x, y, z: y - 1, ((2,), "float32"), ((7,), "float32"), ((4,), "int8")),
        "calls": _exported(lambda x: jax.nn.softmax(jnp.where(x > 0, x, jnp.linspace(0, 1, 6))), ((6,), "float32")),
    }
    return {name: bytes(exported.serialize(vjp_order=1)) for name, exported in made.items()}


def corpus() -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each hostile artifact."""
    artifacts = sound()
    tables = {name: (read_payload(split.payload), split.notes) for name, split in _splits(artifacts)}
    for name, (table, notes) in tables.items():
        for change, changed in _changed(table):
            yield f"{name}: {change}", _signed(changed, notes)
        for change, changed in _changed(table.vjp):
            yield f"{name}, VJP: {change}", _signed(dataclasses.replace(table, vjp=changed), notes)
        for other, (its, _) in tables.items():
            if other != name:
                swapped = dataclasses.replace(table, mlir_module_serialized=its.mlir_module_serialized)
                yield f"{name} with the module of {other}", _signed(swapped, notes)
                swapped = dataclasses.replace(table.vjp, mlir_module_serialized=its.vjp.mlir_module_serialized)
                yield (
                    f"{name} with the module of the VJP of {other}",
                    _signed(dataclasses.replace(table, vjp=swapped), notes),
                )
    table, notes = tables["sine"]
    for what, text in _modules():
        module = serialize_module(_parsed(text), STABLEHLO)
        vouched = dataclasses.replace(table, mlir_module_serialized=module, disabled_checks=_VOUCHED)
        yield f"sine with {what}", _signed(vouched, notes)


def _splits(artifacts: dict[str, bytes]) -> Iterator[tuple[str, Any]]:
    return ((name, split_trailer(blob)) for name, blob in artifacts.items())


def _signed(table: ExportedTable, notes: Any) -> bytes:
    """The artifact of these tables, with notes that fit their numbers of arguments and results."""
    notes = json.loads(json.dumps(notes))
    payload = write_payload(table)
    append_trailer(payload, notes)
    return bytes(payload)


# Records


def _changed(table: ExportedTable) -> Iterator[tuple[str, ExportedTable]]:
    """What is changed, and the table with this one change."""
    replace = dataclasses.replace
    kept = table.module_kept_var_idx or ()
    for field, used in (("in_avals_idxs", set(kept)), ("out_avals_idxs", None)):
        positions = getattr(table, field)
        for place, position in enumerate(positions):
            if used is not None and place not in used:
                continue
            aval = table.unique_avals[position]
            for what, other in _other_avals(aval):
                avals = (*table.unique_avals, other)
                moved = (*positions[:place], len(avals) - 1, *positions[place + 1 :])
                yield f"{field}[{place}] {what}", replace(table, unique_avals=avals, **{field: moved})
    platforms = table.platforms
    yield "another platform", replace(table, platforms=(*platforms, "tpu", "rocm")[: 2 if len(platforms) == 1 else 1])
    yield (
        "an ordered effect",
        replace(table, ordered_effects=(EffectTable(type_name="<class 'jax._src.debugging.OrderedDebugEffect'>"),)),
    )
    for count in range(len(kept)):
        yield f"{count} kept arguments", replace(table, module_kept_var_idx=kept[:count])
    if table.uses_global_constants:
        yield "not refined", replace(table, uses_global_constants=False)


def _other_avals(aval: Any) -> Iterator[tuple[str, Any]]:
    shape, own = aval.shape or (), aval.dtype
    same = {own, DTYPES.index("float0")} if DTYPES[own] == "bool" else {own, DTYPES.index("bool")}
    for number, name in enumerate(DTYPES):
        if number not in (same if DTYPES[own] in ("bool", "float0") else {own}):
            yield f"of dtype {name}", dataclasses.replace(aval, dtype=number)
    yield "of a rank higher", dataclasses.replace(aval, shape=(*shape, "1"))
    if shape:
        yield "of a rank lower", dataclasses.replace(aval, shape=shape[1:])
        yield "of another size", dataclasses.replace(aval, shape=("1000", *shape[1:]))
        if shape[0].isdigit():
            yield "of a symbolic size", dataclasses.replace(aval, shape=("q", *shape[1:]))


# Modules


def _parsed(text: str) -> Any:
    return ir.Module.parse(text, mlir.make_ir_context())


_TYPE = "tensor<3xf32>"
_SINE = f"func.func public @main(%x: {_TYPE}) -> {_TYPE} {{ %0 = stablehlo.sine %x : {_TYPE}\nreturn %0 : {_TYPE} }}"


def _modules() -> Iterator[tuple[str, str]]:
    """Modules that are not of a function from float32[3] to float32[3], or that must not run."""
    yield "an empty module", "module {}"
    yield "no main", _SINE.replace("@main", "@other")
    yield "a private main", _SINE.replace("public", "private")
    yield (
        "no argument",
        f"func.func @main() -> {_TYPE} {{ %x = stablehlo.constant dense<1.0> : {_TYPE}\nreturn %x : {_TYPE} }}",
    )
    yield "no result", f"func.func @main(%x: {_TYPE}) {{ return }}"
    yield "two results", f"func.func @main(%x: {_TYPE}) -> ({_TYPE}, {_TYPE}) {{ return %x, %x : {_TYPE}, {_TYPE} }}"
    yield "an argument more", f"func.func @main(%x: {_TYPE}, %y: {_TYPE}) -> {_TYPE} {{ return %x : {_TYPE} }}"
    for dtype, name in _IN_MLIR.items():
        if name != "float32":
            typed = _TYPE.replace("f32", dtype)
            yield f"an argument of {name}", _converting(typed, _TYPE)
            yield f"a result of {name}", _converting(_TYPE, typed)
    for sizes in ("", "1x", "2x", "4x", "3x1x", "1x3x", "?x", "1000000x"):
        typed = f"tensor<{sizes}f32>"
        yield f"an argument of sizes {sizes}", _other_shape(typed, _TYPE)
        yield f"a result of sizes {sizes}", _other_shape(_TYPE, typed)
    for length in range(1, 9):
        yield f"a circle of {length} calls", _circle(length)
        yield f"a circle of {length} calls beside main", _circle(length, beside=True)
    for target in (
        "xla_ffi_python_cpu_callback",
        "xla_python_cpu_callback",
        "xla_ffi_partitioned_python_cpu_callback",
        "xla_ffi_python_gpu_callback",
        "xla_python_gpu_callback",
        "xla_buffer_python_cpu_callback",
    ):
        for version, config in ((4, "{index = 7 : ui64}"), (2, '"140234"')):
            yield f"the callback {target}, API {version}", _custom_call(target, version, config)


def _converting(argument: str, result: str) -> str:
    if "complex" in argument:
        convert = f"%r = stablehlo.real %x : ({argument}) -> {argument.replace('complex<', '').replace('>>', '>')}"
        middle = argument.replace("complex<", "").replace(">>", ">")
        body = f"{convert}\n%0 = stablehlo.convert %r : ({middle}) -> {result}"
    else:
        body = f"%0 = stablehlo.convert %x : ({argument}) -> {result}"
    return f"func.func @main(%x: {argument}) -> {result} {{ {body}\nreturn %0 : {result} }}"


def _other_shape(argument: str, result: str) -> str:
    """A function whose result does not depend on its argument."""
    if "?" in result:
        constant = (
            "%n = stablehlo.constant dense<5> : tensor<1xi32>\n%c = stablehlo.constant dense<1.0> : tensor<f32>\n"
            f"%0 = stablehlo.dynamic_broadcast_in_dim %c, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> {result}"
        )
    else:
        constant = f"%0 = stablehlo.constant dense<1.0> : {result}"
    return f"func.func @main(%x: {argument}) -> {result} {{ {constant}\nreturn %0 : {result} }}"


def _circle(length: int, *, beside: bool = False) -> str:
    """Functions that call each other in a circle; `main` is the first, or calls it."""
    names = [f"f{index}" for index in range(length)]
    if not beside:
        names[0] = "main"
    functions = [_calling(name, names[(index + 1) % length]) for index, name in enumerate(names)]
    return "\n".join([*([_calling("main", names[0])] if beside else []), *functions])


def _calling(name: str, callee: str) -> str:
    visibility = "public" if name == "main" else "private"
    call = f"%0 = call @{callee}(%x) : ({_TYPE}) -> {_TYPE}"
    return f"func.func {visibility} @{name}(%x: {_TYPE}) -> {_TYPE} {{ {call}\nreturn %0 : {_TYPE} }}"


def _custom_call(target: str, version: int, config: str) -> str:
    attributes = f"api_version = {version} : i32, backend_config = {config}"
    call = f"%0 = stablehlo.custom_call @{target}(%x) {{{attributes}}} : ({_TYPE}) -> {_TYPE}"
    return f"func.func @main(%x: {_TYPE}) -> {_TYPE} {{ {call}\nreturn %0 : {_TYPE} }}"
