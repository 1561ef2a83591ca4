"""The table of `lift` is complete: each operation of the dialects, and each call that artifacts hold, is in it."""

import jax
import pytest
from jaxlib.mlir.dialects import chlo, stablehlo

from jaxtf.serialization import LiftUnsupported, lift
from jaxtf.serialization._lift.registry import lifts
from jaxtf.serialization._lift.table import FAMILIES, entries
from jaxtf.serialization._record.checks import STABLE_CUSTOM_CALLS

# What reads a module settles these: constants, terminators, and custom calls, which have entries by their targets.
READ = {"stablehlo.constant", "chlo.constant", "stablehlo.return", "stablehlo.custom_call"}


def operations_of(dialect):
    classes = vars(dialect).values()
    return {found.OPERATION_NAME for found in classes if hasattr(found, "OPERATION_NAME")}


def test_every_operation_of_the_dialects_has_an_entry_or_a_refusal():
    known = set(entries()) | READ
    assert operations_of(stablehlo) - known == set()
    assert operations_of(chlo) - known == set()


def test_every_stable_custom_call_has_an_entry_or_a_refusal():
    assert {f"custom_call.{target}" for target in STABLE_CUSTOM_CALLS} - set(entries()) == set()


def test_refusals_have_reasons_and_entries_have_functions():
    for entry in entries().values():
        assert (entry.evaluate is None) == bool(entry.reason), entry.name
        if entry.evaluate is None:
            assert not entry.differs, entry.name


def test_a_second_entry_for_a_name_is_an_error():
    with pytest.raises(AssertionError, match=r"stablehlo.add has an entry already"):
        lifts("stablehlo.add")(lambda bound, *operands: operands)


def test_families_are_imported_in_order_of_their_names():
    assert list(FAMILIES) == sorted(FAMILIES)


def test_a_refused_operation_is_named_before_anything_is_evaluated():
    module = """func.func @main(%x: tensor<ui32>) -> tensor<ui32> {
      %0 = stablehlo.add %x, %x : tensor<ui32>
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.add %0, %1 : tensor<ui32>
      return %2 : tensor<ui32> }"""
    with pytest.raises(LiftUnsupported) as refused:
        lift(module)
    assert str(refused.value).startswith(
        "lift does not evaluate stablehlo.partition_id: it asks which of several devices runs it, by numbers of the "
        "module\n  found:    () -> (uint32[])\n"
    )
    unknown = module.replace("stablehlo.partition_id", 'stablehlo.custom_call @"my.call"()')
    with pytest.raises(LiftUnsupported, match=r"custom_call.my.call: lift does not know it"):
        lift(unknown.replace(": tensor<ui32>\n      %2", ": () -> tensor<ui32>\n      %2"))


def test_what_only_another_function_holds_does_not_matter():
    module = """func.func @main(%x: tensor<ui32>) -> tensor<ui32> { return %x : tensor<ui32> }
    func.func private @unused() -> tensor<ui32> {
      %0 = stablehlo.partition_id : tensor<ui32>
      return %0 : tensor<ui32> }"""
    assert int(lift(module)(jax.numpy.uint32(3))) == 3
