import importlib.util
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError
from jaxtf.serialization._artifact.reader import MAX_DEPTH, MEMORY_RATIO, read_payload
from jaxtf.serialization._artifact.schema import ExportedTable, PyTreeDefTable
from jaxtf.serialization._artifact.writer import write_payload

CORPUS = Path(__file__).parent.parent / "artifacts"


def corpus(*programs):
    return pytest.mark.parametrize("blob", [(CORPUS / f"{name}.bin").read_bytes() for name in programs], ids=programs)


ALL_FORMATS = corpus(
    *("0.4.30/vjp_2", "0.4.38/structures", "0.6.2/named_tuple", "0.8.1/sharded_4_gspmd", "0.8.2/host_memory"),
    *("0.9.0/sharded_4_shardy", "0.10.2/vjp_symbolic", "0.12.0.1/sharded_4_shardy", "0.12.0.1/vjp_symbolic"),
)


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX decides")
@corpus("0.10.2/vjp_symbolic", "0.10.2/structures", "0.10.2/dtypes", "0.10.2/calling_convention_10")
def test_jax_reads_the_same_function_name_types_and_module(blob):
    import jax.export

    theirs, ours = jax.export.deserialize(bytearray(blob)), read_payload(blob)
    assert ours.function_name == theirs.fun_name
    assert bytes(ours.mlir_module_serialized) == theirs.mlir_module_serialized
    assert ours.platforms == theirs.platforms
    assert ours.calling_convention_version == theirs.calling_convention_version
    assert (ours.module_kept_var_idx or ()) == theirs.module_kept_var_idx
    assert ours.nr_devices == theirs.nr_devices
    shapes = [ours.unique_avals[position].shape or () for position in ours.in_avals_idxs]
    assert shapes == [tuple(map(str, aval.shape)) for aval in theirs.in_avals]


@ALL_FORMATS
def test_the_module_is_a_view_of_the_input_and_not_a_copy(blob):
    module = read_payload(blob).mlir_module_serialized
    assert module.obj is blob
    assert module.readonly
    assert bytes(module[:4]) == b"ML\xefR"


@ALL_FORMATS
def test_every_truncation_before_the_end_of_the_tables_is_an_artifact_error(blob):
    whole = read_payload(blob)
    for length in range(len(blob)):
        try:
            assert read_payload(blob[:length]) == whole, "only padding at the end may be missing"
        except ArtifactError:
            assert length < len(blob)


def refusal(blob):
    """The ArtifactError that reading raises, if it does; others are not caught."""
    try:
        read_payload(blob)
    except ArtifactError as error:
        return error
    return None


@given(st.binary(max_size=300))
def test_of_random_bytes_only_artifact_errors_come(blob):
    error = refusal(blob)
    assert error is None or 0 <= error.offset <= len(blob)


@given(st.data())
def test_of_changed_artifacts_only_artifact_errors_come(data):
    blob = bytearray((CORPUS / "0.12.0.1" / "sharded_4_shardy.bin").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        struct.pack_into("<I", blob, data.draw(st.integers(0, len(blob) - 4)), data.draw(st.integers(0, 2**32 - 1)))
    error = refusal(blob)
    assert error is None or 0 <= error.offset <= len(blob)


def nested(depth):
    tree = PyTreeDefTable(kind=1)
    for _ in range(depth - 2):
        tree = PyTreeDefTable(kind=2, children=(tree,))
    return ExportedTable(function_name="f", in_tree=tree)


def test_tables_nest_as_deep_as_is_promised():
    table = nested(MAX_DEPTH)
    assert read_payload(write_payload(table)) == table


def test_a_table_that_holds_itself_is_an_artifact_error():
    # References lead forwards only: the shortest way round is a distance that wraps, which no reader may follow.
    payload = write_payload(ExportedTable(vjp=ExportedTable(function_name="g")))
    root = struct.unpack_from("<I", payload, 0)[0]
    struct.pack_into("<I", payload, root + 4, 2**32 - 4)
    with pytest.raises(ArtifactError, match=rf"a reference leads to byte {root + 2**32} of {len(payload)}"):
        read_payload(payload)


def test_tables_that_nest_too_deep_are_an_artifact_error():
    with pytest.raises(ArtifactError, match=f"nest deeper than {MAX_DEPTH} levels"):
        read_payload(shared_trees(levels=MAX_DEPTH, width=1))


def shared_trees(levels, width):
    """A payload whose pytree has width**levels leaves, in a few tables: each refers to the next so many times."""
    out = bytearray(struct.pack("<I", 0))
    vtable_root = len(out)
    out += struct.pack("<HHHHHxx", 10, 8, 0, 0, 4)  # one field: slot 2, in_tree
    root = len(out)
    struct.pack_into("<I", out, 0, root)
    out += struct.pack("<iI", root - vtable_root, 0)
    reference = root + 4
    vtable = len(out)
    out += struct.pack("<HHHH", 8, 8, 0, 4)  # one field: slot 1, children
    places = [reference]
    for _ in range(levels):
        table = len(out)
        for place in places:
            struct.pack_into("<I", out, place, table - place)
        out += struct.pack("<iI", table - vtable, 4)
        out += struct.pack("<I", width)
        places = [len(out) + 4 * index for index in range(width)]
        out += bytes(4 * width)
    leaf_vtable = len(out)
    out += struct.pack("<HH", 4, 4)
    leaf = len(out)
    for place in places:
        struct.pack_into("<I", out, place, leaf - place)
    out += struct.pack("<i", leaf - leaf_vtable)
    return bytes(out)


def test_a_few_shared_tables_are_read_as_often_as_they_are_referred_to():
    tree = read_payload(shared_trees(levels=3, width=3)).in_tree
    assert len(tree.children) == 3
    assert tree.children[0].children[2].children == (PyTreeDefTable(),) * 3


@pytest.mark.parametrize(("levels", "width"), [(20, 10), (190, 2), (3, 5000)])
def test_tables_that_stand_for_many_times_their_size_are_refused_within_ten_times_the_memory(levels, width):
    blob = shared_trees(levels, width)
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError, match=f"expand to more than {MEMORY_RATIO} times its size"):
            read_payload(blob)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 10 * len(blob) + 2**20


def test_one_module_does_not_stand_for_many():
    table = ExportedTable(mlir_module_serialized=b"m" * 1000, vjp=ExportedTable(mlir_module_serialized=b"n" * 1000))
    payload = write_payload(table)
    first, second = payload.index(b"m" * 1000) - 4, payload.index(b"n" * 1000) - 4
    places = [place for place in range(0, first, 4) if place + struct.unpack_from("<I", payload, place)[0] == second]
    struct.pack_into("<I", payload, places[0], first - places[0])
    del payload[second:]
    with pytest.raises(ArtifactError, match="vectors of bytes are together longer than all of it"):
        read_payload(payload)


def test_a_text_that_is_not_utf_8_is_an_artifact_error_with_its_offset():
    payload = write_payload(ExportedTable(function_name="name_of_it"))
    start = payload.index(b"name_of_it")
    payload[start + 3] = 0xFF
    with pytest.raises(ArtifactError, match="not UTF-8") as raised:
        read_payload(payload)
    assert raised.value.offset == start + 3


def test_fields_of_later_formats_are_passed_over():
    payload = bytearray(write_payload(ExportedTable(function_name="f")))
    root = struct.unpack_from("<I", payload, 0)[0]
    end = len(payload)
    # The same table, with a longer layout: 40 slots, one of them number 39.
    slots = [0] * 40
    slots[1], slots[39] = 4, 8
    vtable = struct.pack("<42H", 84, 12, *slots)
    text = root + 4 + struct.unpack_from("<I", payload, root + 4)[0]
    assert struct.unpack_from("<I", payload, text)[0] == 1
    moved = end + len(vtable)
    payload += vtable + struct.pack("<iII", len(vtable), 12, 7) + b"\0\0\0\0" + struct.pack("<I", 1) + b"f\0\0\0"
    struct.pack_into("<I", payload, 0, moved)
    assert read_payload(payload) == ExportedTable(function_name="f")
