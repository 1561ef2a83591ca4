"""Which versions a module is written in: for consumers and producers of any version, and for releases of TensorFlow."""

import itertools

import pytest

from jaxtf.serialization import ModuleVersions, TensorFlowVersionError, negotiate, tensorflow_reads
from jaxtf.serialization._record.tensorflow import RELEASES

STABLEHLO = ("0.9.0", "1.2.10", "1.9.1", "1.13.7", "1.22.0", "2.0.0")  # oldest first; as texts in another order


@pytest.mark.parametrize(("reads", "writes"), list(itertools.product(range(len(STABLEHLO)), repeat=2)))
@pytest.mark.parametrize(("convention_read", "convention_written"), [(9, 10), (10, 10), (11, 10)])
def test_of_each_number_the_lower_is_written(reads, writes, convention_read, convention_written):
    """Consumers newer than the producer, equal to it and older."""
    found = negotiate(
        ModuleVersions(convention_read, STABLEHLO[reads]), ModuleVersions(convention_written, STABLEHLO[writes])
    )
    assert found == ModuleVersions(min(convention_read, convention_written), STABLEHLO[min(reads, writes)])


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.19", (2, 19)),
        ("2.19.1", (2, 19)),
        ("2.21.0", (2, 21)),
        ("2.21.0+nv25.1", (2, 21)),
        ("2.22.0rc0", (2, 22)),
        ("2.22.0-rc0", (2, 22)),
        ("2.22rc1", (2, 22)),
        ("2.22.0-dev20260801", (2, 21)),  # a nightly build on the way to 2.22
        ("2.22.0.dev20260801", (2, 21)),
    ],
)
def test_a_tensorflow_reads_what_its_release_reads(version, release):
    assert tensorflow_reads(version) == RELEASES[release]


@pytest.mark.parametrize("version", ["2.999", "2.999.0-dev20300101", "3.0", "10.1.2"])
def test_a_tensorflow_newer_than_all_known_ones_reads_what_the_newest_of_them_reads(version):
    assert tensorflow_reads(version) == RELEASES[max(RELEASES)]


@pytest.mark.parametrize("version", ["2.18", "2.18.1", "1.15.5", "2.2", "2.19.0-dev20250101"])
def test_a_tensorflow_older_than_all_known_ones_is_refused(version):
    with pytest.raises(TensorFlowVersionError) as caught:
        tensorflow_reads(version)
    assert str(caught.value) == (
        f"tensorflow_version='{version}' is older than any TensorFlow that modules can be written for\n  oldest: 2.19"
    )


@pytest.mark.parametrize("version", ["", "new", "2", "2.", "v2.21", "2.21 ", "2.21..0", 2.21, None, (2, 21)])
def test_what_is_not_a_version_of_tensorflow_is_refused(version):
    with pytest.raises(TensorFlowVersionError) as caught:
        tensorflow_reads(version)
    assert str(caught.value) == (
        f"tensorflow_version must be the version of a TensorFlow release, such as '2.20'. Got: {version!r}"
    )


def test_newer_releases_read_at_least_what_older_ones_read():
    """Else a version between two of the table, or beyond its end, could not count as the one before it."""
    for older, newer in itertools.pairwise(RELEASES[release] for release in sorted(RELEASES)):
        assert negotiate(older, newer) == older
