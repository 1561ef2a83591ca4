"""Modules with texts that are not UTF-8, which MLIR allows and whose bindings end the process, or raise, at some."""

import dataclasses
import io
import re

import numpy as np
import pytest

pytest.importorskip("jax")

from jax.extend import mlir

from jaxtf.serialization import ArtifactError, export, lift
from jaxtf.serialization._bytecode.texts import is_utf8
from jaxtf.serialization._jaxlib import read_module
from jaxtf.serialization._program.utf8 import in_utf8
from jaxtf.serialization.interop import Reading, TensorType, read_program

X = np.float32(1)
READING = Reading("the test", ValueError, lambda element, dtype, shape: TensorType(dtype, shape))


def sine(attributes="", location="", argument="", module="", name="sine_of"):
    return f"""module {module} {{
      func.func @main(%x: tensor<f32> {argument}) -> tensor<f32> {{
        %0 = call @"{name}"(%x) : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }}
      func.func private @"{name}"(%x: tensor<f32>) -> tensor<f32> {{
        %0 = stablehlo.sine %x {attributes} : tensor<f32> {location} return %0 : tensor<f32> }} }}"""


# Where a name or a value is read, and the operation that MLIR has for such a text.
LOCATIONS = {
    "name": sine(location='loc("caf\\E9")'),
    "file": sine(location='loc("caf\\E9.py":3:1)'),
    "named": sine(location='loc("a"("caf\\E9.py":3:1))'),
    "call site": sine(location='loc("a"(callsite("b\\FF"("caf\\E9.py":3:1) at "d\\FE.py":4:2)))'),
    "fused": sine(location='loc(fused["a\\E9", "caf\\E9.py":3:1])'),
}
VALUES = {
    "text": sine('{a = "\\FF\\FE"}'),
    "texts": sine('{a = ["b", "\\FF"], c = {d = "\\FF"}}'),
    "of the module": sine(module='attributes {jax.a = "\\FF"}'),
    "of an argument": sine(argument='{jax.a = "\\FF"}'),
}
NAMES = {
    "attribute": sine('{"a\\E9" = 1 : i32}'),
    "in a dictionary": sine('{a = {"b\\E9" = 1 : i32}}'),
    "attribute of the module": sine(module='attributes {"jax.a\\E9" = 1 : i32}'),
    "attribute of an argument": sine(argument='{"jax.a\\E9" = 1 : i32}'),
    "function": sine(name="f\\E9"),
}
ALL = LOCATIONS | VALUES | NAMES


def as_text(text):
    return text


def as_latin_1(text):
    return re.sub(r"(?<!\\)\\E9", "é", text).encode("latin-1")


def parsed(text):
    return read_module(text)  # its texts are read in no way


def as_bytecode(text):
    file = io.BytesIO()
    parsed(text).operation.write_bytecode(file)
    return file.getvalue()


def as_portable(text):
    return bytes(mlir.serialize_portable_artifact(parsed(text), "1.9.0", True))


def as_record(text):
    return dataclasses.replace(export(lambda x: x)(X), mlir_module_serialized=as_portable(text), _is_read=True)


@pytest.mark.parametrize("form", [as_text, as_bytecode, as_portable, as_record])
@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_a_module_with_other_texts_is_lifted(text, form):
    np.testing.assert_allclose(lift(form(text))(X), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("form", [as_text, as_latin_1, as_bytecode, as_portable])
def test_bytes_that_are_not_utf_8_are_question_marks(form):
    text = sine('{a = "b\\E9c", d = "\\C3\\A9\\\\E9"}', 'loc("caf\\E9/\\C3\\A9"("/caf\\E9.py":3:1))', name="f\\E9")
    program = read_program(form(text), READING)
    assert list(program.functions) == ["main", "f?"]
    [operation] = program.functions["f?"].body.operations
    assert operation.attributes["a"] == "b?c"
    assert operation.attributes["d"] == "é\\E9"
    assert operation.source == "/caf?.py:3"


@pytest.mark.parametrize("form", [as_bytecode, as_portable])
def test_nothing_else_of_a_module_is_changed(form):
    clean = form(sine('{a = "\\C3\\A9"}', 'loc("\\C3\\A9\\\\FF")', name="f\\C3\\A9"))
    assert is_utf8(clean)
    assert in_utf8(clean) is clean
    foreign = form(sine('{a = "\\C3\\A9"}', 'loc("\\C3\\A9\\\\FF\\FF")', name="f\\C3\\A9"))
    assert not is_utf8(foreign)
    assert in_utf8(foreign) == foreign.replace(b"\\FF\xff\0", b"\\FF?\0")


@pytest.mark.parametrize("text", ['module { "caf\\E9.x"() : () -> () }', sine().replace("call @", 'call @"\\FF" //')])
def test_a_module_that_is_not_valid_is_refused_in_mlirs_words(text):
    with pytest.raises(ArtifactError, match="lift needs a StableHLO module"):
        lift(text)


@pytest.mark.parametrize("text", [*LOCATIONS.values(), *VALUES.values()], ids=LOCATIONS | VALUES)
def test_values_and_places_with_other_texts_are_called_as_they_are(text):
    record = as_record(text)
    np.testing.assert_allclose(record.call(X), np.sin(X), rtol=1e-6)
    retargeted = record.with_stablehlo_version("1.8.0")
    assert not is_utf8(retargeted.mlir_module_serialized)


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_names_that_are_not_utf_8_are_refused_where_they_would_be_kept(text):
    for use in (lambda record: record.call(X), lambda record: record.with_stablehlo_version("1.8.0")):
        with pytest.raises(ArtifactError, match=r'the module has a name that is not UTF-8: "[\w.]+\\(E9|FF)"'):
            use(as_record(text))
