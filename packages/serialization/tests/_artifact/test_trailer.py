import contextlib
import hashlib
import json
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError, VersionError
from jaxtf.serialization._artifact.schema import ExportedTable
from jaxtf.serialization._artifact.trailer import MAGIC, append_trailer, check_end, split_trailer, writer_of

NOTES = {"constraints": ["n >= 2"], "b": {"z": 1, "a": [None, True, "ü"]}}


def sealed(payload=b"payload", notes=NOTES):
    blob = bytearray(payload)
    append_trailer(blob, notes)
    return bytes(blob)


def resealed(payload, notes, trailer_format=1, length=None):
    """A trailer made by hand, as the module's docstring lays it out."""
    front = payload + notes + struct.pack("<IHH", len(notes) if length is None else length, trailer_format, 0)
    return front + hashlib.sha256(front).digest() + MAGIC


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('abc"\\é', max_size=4), inner, max_size=4),
)


@given(st.binary(max_size=100), st.dictionaries(st.text("xyz", max_size=3), json_values, max_size=4))
def test_what_is_appended_is_split_off_again(payload, notes):
    split = split_trailer(sealed(payload, notes))
    assert split.payload == payload
    assert split.notes == notes
    assert split.trailer_format == 1


def test_the_layout_is_the_one_documented():
    notes = json.dumps(NOTES, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert sealed() == resealed(b"payload", notes)


def test_the_order_of_notes_makes_no_difference():
    assert sealed(notes={"a": 1, "b": 2}) == sealed(notes={"b": 2, "a": 1})


def test_every_flipped_bit_is_found_before_anything_is_parsed():
    blob = sealed()
    for position in range(8 * len(blob)):
        damaged = bytearray(blob)
        damaged[position // 8] ^= 1 << position % 8
        in_magic = position // 8 >= len(blob) - len(MAGIC)
        try:
            assert split_trailer(damaged).notes is None, position
            assert in_magic
        except (ArtifactError, VersionError):
            assert not in_magic


def test_a_wrong_digest_tells_to_copy_the_file_again():
    damaged = bytearray(sealed())
    damaged[0] ^= 1
    with pytest.raises(ArtifactError, match="its bytes do not have the SHA-256 that it was written with"):
        split_trailer(damaged)


def test_bytes_without_a_trailer_are_all_payload():
    split = split_trailer(b"somebody else's")
    assert (bytes(split.payload), split.notes, split.digest) == (b"somebody else's", None, None)


def test_a_later_trailer_is_a_version_error_even_if_its_digest_is_made_otherwise():
    blob = bytearray(resealed(b"payload", b"{}", trailer_format=2))
    blob[-len(MAGIC) - 1] ^= 1
    with pytest.raises(VersionError, match=r"a trailer of format 2.*reads format 1"):
        split_trailer(blob)


@pytest.mark.parametrize("notes", [b"", b"[]", b"{", b"\xff", b'{"a":' + b"[" * 100_000, b"7"], ids=repr)
def test_notes_that_are_no_json_object_are_an_artifact_error(notes):
    with pytest.raises(ArtifactError, match="notes of the artifact"):
        split_trailer(resealed(b"payload", notes))


def test_notes_longer_than_the_artifact_are_an_artifact_error():
    with pytest.raises(ArtifactError, match="notes of 4000 bytes"):
        split_trailer(resealed(b"payload", b"{}", length=4000))


@pytest.mark.parametrize("item", [b"{}", b"[]", b'{"":0}', b"[[]]", b'"ab"', b"1e9"])
def test_notes_take_no_more_than_ten_times_the_memory_of_the_artifact(item):
    blob = resealed(b"payload", b'{"a":[' + b",".join([item] * 200_000) + b"]}")
    tracemalloc.start()
    with contextlib.suppress(ArtifactError):
        split_trailer(blob)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 10 * len(blob)


def test_the_releases_that_wrote_an_artifact_are_in_one_text():
    assert writer_of(ExportedTable()) == (None, None)
    assert writer_of(ExportedTable(jax_version="0.12.0.1")) == ("0.12.0.1", None)
    assert writer_of(ExportedTable(jax_version="0.12.0.1 jaxtf-serialization 0.1.0")) == ("0.12.0.1", "0.1.0")
    assert writer_of(ExportedTable(jax_version="unknown jaxtf-serialization 0.1.0")) == (None, "0.1.0")


def test_an_artifact_of_ours_without_its_trailer_is_an_artifact_error():
    ours = ExportedTable(jax_version="0.12.0.1 jaxtf-serialization 0.1.0")
    check_end(ours, {})
    check_end(ExportedTable(jax_version="0.12.0.1"), None)
    with pytest.raises(
        ArtifactError, match=r"the end of the artifact is missing: jaxtf-serialization 0\.1\.0 wrote it"
    ):
        check_end(ours, None)
