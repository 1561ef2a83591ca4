"""Describing artifacts of every writer, without JAX and without parsing a module."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError, VersionError, describe, deserialize
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import append_trailer
from jaxtf.serialization._artifact.writer import write_payload

CORPUS = Path(__file__).parent.parent / "artifacts"


def blob_of(name):
    return (CORPUS / f"{name}.bin").read_bytes()


def noted(name, notes):
    payload = write_payload(read_payload(blob_of(name)))
    append_trailer(payload, notes)
    return bytes(payload)


def test_every_artifact_of_the_corpus_is_described():
    paths = sorted(CORPUS.glob("*/*.bin"))
    assert len(paths) > 500
    for path in paths:
        description = describe(path.read_bytes())
        assert description.digest == "none"
        assert str(description)
        assert json.loads(json.dumps(description.to_json()))["vjp_orders"] == description.vjp_orders


@pytest.mark.parametrize(
    ("release", "low", "high"),
    [("0.4.30", 2, 2), ("0.4.38", 2, 3), ("0.6.2", 2, 4), ("0.8.2", 5, 5), ("0.9.0", 6, 6), ("0.10.2", 10, 11)],
)
def test_the_formats_that_the_fields_tell_hold_the_one_that_was_written(release, low, high):
    for path in (CORPUS / release).glob("*.bin"):
        formats = describe(path.read_bytes()).formats
        assert formats[0] <= high, path
        assert formats[1] >= low, path


def test_paths_types_and_symbolic_shapes_are_reported():
    function = describe(blob_of("0.12.0.1/vjp_symbolic")).function
    assert [(array.path, array.dtype, array.shape) for array in function.arguments] == [
        ("args[0]", "float32", ("b", "n")),
        ("args[1]", "float32", ("n", "n")),
    ]
    structures = describe(blob_of("0.4.30/structures")).function
    assert "kwargs['options']['a']['z']" in [array.path for array in structures.arguments]
    assert "result['nested'][0][0]" in [array.path for array in structures.results]


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX decides")
@pytest.mark.parametrize("name", ["dtypes", "structures", "unused_arguments", "multi_platform", "vjp_multi_platform"])
def test_jax_reads_the_same(name):
    import jax.export

    theirs = jax.export.deserialize(bytearray(blob_of(f"0.10.2/{name}")))
    function = describe(blob_of(f"0.10.2/{name}")).function
    assert function.name == theirs.fun_name
    assert function.platforms == theirs.platforms
    assert [array.dtype for array in function.arguments] == [str(aval.dtype) for aval in theirs.in_avals]
    assert [array.shape for array in function.results] == [aval.shape for aval in theirs.out_avals]
    kept = [position for position, array in enumerate(function.arguments) if array.kept]
    assert tuple(kept) == tuple(theirs.module_kept_var_idx)


def test_custom_calls_tell_whether_they_are_stable_and_allowed():
    (call,) = describe(blob_of("0.12.0.1/disabled_custom_call")).function.custom_calls
    assert (call.target, call.stable, call.allowed) == ("corpus_target", False, True)
    assert "corpus_target (not known to be stable; the exporter vouched for it)" in str(
        describe(blob_of("0.12.0.1/disabled_custom_call"))
    )
    assert all(call.stable for call in describe(blob_of("0.12.0.1/cholesky")).function.custom_calls)


def test_notes_tell_constraints_producers_paths_and_weak_types():
    notes = {
        "constraints": ["n >= 2"],
        "producer": {"jaxtf-serialization": "0.1.0", "jaxlib": "0.12.0"},
        "functions": [{"arguments": ["args[0]", "args[1].weight"], "weak_arguments": [1]}],
    }
    description = describe(noted("0.12.0.1/vjp_symbolic", notes))
    assert description.constraints == ("n >= 2",)
    assert description.producer == {"jaxtf-serialization": "0.1.0", "jax": "0.12.0.1", "jaxlib": "0.12.0"}
    assert [array.path for array in description.function.arguments] == ["args[0]", "args[1].weight"]
    assert [array.weak_type for array in description.function.arguments] == [False, True]
    assert description.digest == "verified"
    assert "digest              verified: sha256 " in str(description)


@pytest.mark.parametrize("notes", [{}, {"functions": 7}, {"functions": [[], None]}, {"constraints": "n"}])
def test_notes_may_lack_anything(notes):
    assert describe(noted("0.12.0.1/vjp_2", notes)).vjp_orders == 2


def test_a_damaged_artifact_of_ours_is_refused():
    blob = bytearray(noted("0.12.0.1/vjp_2", {}))
    blob[len(blob) // 2] ^= 4
    with pytest.raises(ArtifactError, match="its bytes do not have the SHA-256"):
        describe(blob)


@given(st.data())
def test_of_changed_artifacts_only_our_errors_come(data):
    blob = bytearray(blob_of("0.9.0/sharded_4_shardy"))
    for _ in range(data.draw(st.integers(1, 8))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        describe(blob)
    except (ArtifactError, VersionError) as error:
        assert str(error)  # noqa: PT017 - which of the two, or neither, is not known


def test_describing_imports_neither_jax_nor_numpy_nor_islpy():
    program = (
        "import sys\nfrom jaxtf.serialization import describe\n"
        f"describe(open({str(CORPUS / '0.12.0.1' / 'vjp_2.bin')!r}, 'rb').read())\n"
        "print(sorted({'jax', 'numpy', 'islpy', 'flatbuffers', 'jaxtf.shapepoly'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("read", [describe, deserialize])
@pytest.mark.parametrize("blob", [None, 3, memoryview(bytes(8))[::2]], ids=["none", "int", "strided"])
def test_what_is_not_bytes_one_after_the_other_is_an_artifact_error(read, blob):
    with pytest.raises(ArtifactError, match="an artifact is "):
        read(blob)
