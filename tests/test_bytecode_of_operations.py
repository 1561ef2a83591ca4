"""The reader of bytecode takes each operation for as many bytes as it has: what comes after it is found."""

import re

from jax.extend.mlir import ir
from jax.interpreters import mlir

from jaxtf.serialization._bytecode.functions import _Module
from jaxtf.serialization._errors import StablehloVersionError
from jaxtf.serialization._program.portable_artifact import current_stablehlo_version, expand_chlo, serialize_module

from .specification import CASES

MARKED = re.compile(r"\n\s*return ")
MARKER = "\nfunc.func private @marker() { return }"


def test_a_call_after_any_operation_is_found():
    count = 0
    for case in CASES:
        text = MARKED.sub(r"\nfunc.call @marker() : () -> ()\g<0>", case.text, count=1) + MARKER
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            try:
                expand_chlo(module)
                reader = _Module(serialize_module(module, current_stablehlo_version()))
            except (StablehloVersionError, ir.MLIRError):  # it has no form in StableHLO, or no version
                continue
        [main] = [function for function in reader.functions if function.name == "main"]
        assert "marker" in reader.calls(main), case.name
        count += 1
    assert count > 0.9 * len(CASES)
