"""Modules that are not what they seem are refused with documented errors, and nothing of them is evaluated."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    LiftUnsupported,
    VersionError,
    deserialize,
    export,
    lift,
)
from jaxtf.serialization._bytecode.portable import Frame
from jaxtf.serialization._lift.reading import READING
from jaxtf.serialization.interop import read_program

X = np.ones(3, np.float32)
REFUSED = (ArtifactError, LiftUnsupported)


def with_module(exported, text):
    """A record with another module, as from bytes."""
    module = jax.jit(lambda x: x).lower(X).compiler_ir("stablehlo")
    from jax.extend import mlir
    from jax.extend.mlir import ir

    with module.context:
        made = ir.Module.parse(text)
        serialized = bytes(mlir.serialize_portable_artifact(made, exported.stablehlo_version, True))
    return dataclasses.replace(exported, mlir_module_serialized=serialized, _is_read=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main() -> tensor<3xf32> { %0 = stablehlo.constant dense<1.0> : tensor<3xf32> "
         "return %0 : tensor<3xf32> }", "'main' has 0 arguments"),
        ("func.func @main(%x: tensor<3xf32>) { return }", "'main' has 0 results"),
        ("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }", "in the record"),
        ("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { %0 = call @f(%x) : (tensor<3xf32>) -> tensor<3xf32> "
         "return %0 : tensor<3xf32> } func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> { "
         "%0 = call @main(%x) : (tensor<3xf32>) -> tensor<3xf32> return %0 : tensor<3xf32> }", "in a cycle"),
    ],
    ids=["arguments", "results", "sizes", "recursion"],
)  # fmt: skip
def test_a_module_that_its_record_does_not_describe(text, message):
    exported = with_module(export(lambda x: x)(X), text)
    with pytest.raises(ArtifactError, match=message):
        exported.lift()


@pytest.mark.parametrize(
    "text",
    [
        "func.func @main() { call @main() : () -> () return }",
        "func.func @main() { call @f() : () -> () return } func.func private @f() { call @g() : () -> () return } "
        "func.func private @g() { call @f() : () -> () return }",
        "func.func @main() { cf.br ^next ^next: return }",
        "func.func @f() { return } func.func @g() { return }",
        "func.func private @main(%x: tensor<3xf32>) -> tensor<3xf32>",
        "func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }",
        "func.func @main(%x: tensor<3xf8E8M0FNU>) -> tensor<3x!quant.uniform<i8:f32, 1.0>> { return %x }",
        "func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> { return %x : tensor<3xf32> }",
        "module { }",
        "",
    ],
)
def test_what_is_not_a_function_of_arrays(text):
    with pytest.raises(REFUSED):
        lift(text)


def test_a_damaged_artifact():
    blob = bytes(export(lambda x: x + 1)(X).serialize())
    for damaged in (blob[: len(blob) // 2], blob[:20] + bytes(40) + blob[60:], b"ML\xefR" + blob[4:200]):
        with pytest.raises(REFUSED):
            lift(damaged)


def test_callbacks_are_refused_whoever_vouches_for_them():
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }"""
    with pytest.raises(LiftUnsupported, match="calls back into the Python process that traced it"):
        lift(text)


def test_sizes_that_lie_are_found_while_tracing():
    lies = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.add %x, %y : tensor<?xf32>
      return %0 : tensor<?xf32> }"""
    f = lift(lies)
    np.testing.assert_array_equal(f(X, X), X + X)
    for size in (1, 2):  # one of which JAX would broadcast
        with pytest.raises(ArgumentMismatch, match=f"found 3, required {size}"):
            f(X, np.ones(size, np.float32))


def with_damaged_module(producer=rb"\g<0>"):
    """A record whose module has a sound frame and functions, and which returns a value that there is not."""
    exported = jax.export.export(jax.jit(lambda x: x * 2 + 1))(jax.ShapeDtypeStruct((3,), np.float32))
    blob, module = exported.serialize(), bytes(exported.mlir_module_serialized)
    operations = Frame(module).sections[4]
    last = operations.start + len(operations.view) - 1  # the number of that value, in one byte
    damaged = module[:last] + bytes([module[last] | 64]) + module[last + 1 :]
    return deserialize(blob.replace(module, re.sub(rb"StableHLO_v\d\.\d\d", producer, damaged, count=1)))


def uses_of(record):
    """All that reads the module of a record."""
    return [
        lambda: record.call(X),
        lambda: jax.jit(record.call)(X),
        record.lift,
        record.mlir_module,
        lambda: record.with_stablehlo_version("1.9.0"),
        lambda: read_program(record.mlir_module_serialized, READING),
    ]


def test_a_module_of_a_later_stablehlo_is_not_called_damaged_wherever_it_is_read():
    record = with_damaged_module(b"StableHLO_v9.99")
    for use in uses_of(record):
        with pytest.raises(
            VersionError, match=r"written for StableHLO 9\.99\..* reads up to 1\..*\n  remedy: install a newer"
        ):
            use()


def test_a_module_that_jaxlib_does_not_read_is_refused_wherever_it_is_read():
    record = with_damaged_module()
    for use in uses_of(record):
        with pytest.raises(
            ArtifactError, match=r"the module is damaged: jaxlib does not read it .*\n  remedy: copy"
        ) as found:
            use()
        assert found.value.__cause__ is not None
