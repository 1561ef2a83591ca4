import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError, VersionError
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._bytecode.portable import custom_call_targets, has_bounded_sizes, stablehlo_facts

CORPUS = Path(__file__).parent.parent / "artifacts"


def modules(path):
    """The modules of an artifact: of the function, and of each order of its VJP."""
    table = read_payload(path.read_bytes())
    while table is not None:
        yield bytes(table.mlir_module_serialized)
        table = table.vjp


MODULE = next(modules(CORPUS / "0.10.2" / "cholesky.bin"))


@pytest.mark.parametrize(
    ("release", "version"),
    [("0.4.30", "0.9.0"), ("0.4.38", "1.8.2"), ("0.9.0", "1.13.4"), ("0.12.0.1", "1.18.0")],
)
def test_the_frame_tells_the_stablehlo_version(release, version):
    facts = stablehlo_facts(next(modules(CORPUS / release / "elementwise.bin")))
    assert facts.stablehlo_version == version
    assert set(facts.dialects) == {"builtin", "vhlo"}
    assert not facts.uses_shardy


def test_shardings_for_shardy_are_distinguished_from_others():
    assert stablehlo_facts(next(modules(CORPUS / "0.12.0.1" / "sharded_4_shardy.bin"))).uses_shardy
    assert not stablehlo_facts(next(modules(CORPUS / "0.12.0.1" / "sharded_4_gspmd.bin"))).uses_shardy


@pytest.mark.slow(1)
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="MLIR decides")
@pytest.mark.parametrize("release", ["0.4.30", "0.4.38", "0.6.2", "0.8.1", "0.9.0", "0.10.2"])
def test_custom_call_targets_are_those_that_mlir_finds(release):
    from jaxtf.serialization._program.portable_artifact import deserialize_module

    seen = set()
    for path in sorted((CORPUS / release).glob("*.bin"))[::2]:
        for module in modules(path):
            text = str(deserialize_module(module))
            expected = sorted(set(re.findall(r'custom_call @"?([\w.]+)', text)))
            assert list(custom_call_targets(module)) == expected, path
            seen.update(expected)
    assert len(seen) > 5


SIZED = """
func.func public @main(%x: tensor<3xf32>) -> tensor<f32> {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.set_dimension_size"(%x, %n) <{dimension = 0 : i64}> : (tensor<3xf32>, tensor<i32>) -> TYPE
  %z = stablehlo.reduce(%y init: %0) applies stablehlo.add across dimensions = [0] : (TYPE, tensor<f32>) -> tensor<f32>
  return %z : tensor<f32>
}
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="MLIR writes")
@pytest.mark.parametrize("version", ["0.9.0", "1.8.0", "1.13.4"])
def test_bounded_sizes_are_found(version):
    from jaxlib.mlir.dialects import stablehlo

    bounded, static = (
        stablehlo.serialize_portable_artifact_str(SIZED.replace("TYPE", type_), version)
        for type_ in ("tensor<?xf32, #stablehlo.bounds<3>>", "tensor<3xf32>")
    )
    assert has_bounded_sizes(bounded)
    assert not has_bounded_sizes(static)


@pytest.mark.parametrize("release", ["0.4.30", "0.9.0", "0.12.0.1"])
def test_symbolic_and_static_sizes_have_no_bounds(release):
    for path in sorted((CORPUS / release).glob("*.bin")):
        assert not any(map(has_bounded_sizes, modules(path))), path


def test_every_truncation_is_an_artifact_error():
    for length in range(len(MODULE)):
        with pytest.raises((ArtifactError, VersionError)):
            stablehlo_facts(MODULE[:length])


def test_a_foreign_module_is_an_artifact_error_that_tells_what_it_is():
    with pytest.raises(ArtifactError, match="not MLIR bytecode; it begins with b'modu'"):
        stablehlo_facts(b"module @jit_f {}")
    with pytest.raises(ArtifactError, match="not written as a portable artifact, but by 'MLIR22'"):
        stablehlo_facts(MODULE.replace(b"StableHLO_v1.15.0", b"MLIR22"))


def test_bytecode_of_a_later_version_is_a_version_error():
    with pytest.raises(VersionError, match="MLIR bytecode of version 9; this release reads up to 6"):
        stablehlo_facts(MODULE[:4] + bytes([2 * 9 + 1]) + MODULE[5:])


@given(st.data())
def test_of_changed_modules_only_our_errors_come(data):
    module = bytearray(MODULE)
    for _ in range(data.draw(st.integers(1, 6))):
        module[data.draw(st.integers(4, len(module) - 1))] = data.draw(st.integers(0, 255))
    try:
        stablehlo_facts(module)
        custom_call_targets(module)
        has_bounded_sizes(module)
    except (ArtifactError, VersionError) as error:
        assert str(error)  # noqa: PT017 - which of the two, or neither, is not known
