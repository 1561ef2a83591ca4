"""The numbers: calling convention versions and StableHLO versions."""

import pytest

from jaxtf.serialization import CallingConventionError, StablehloVersionError
from jaxtf.serialization._record.stablehlo import check_stablehlo_version, parse_stablehlo_version
from jaxtf.serialization._record.versions import check_calling_convention_version


@pytest.mark.parametrize("version", [9, 10])
def test_calling_conventions_in_range_pass(version):
    assert check_calling_convention_version(version) == version


@pytest.mark.parametrize("version", [8, 11, 0, -1, "9", 9.0, True, None])
def test_calling_conventions_outside_the_range_are_refused_with_the_range(version):
    with pytest.raises(CallingConventionError) as caught:
        check_calling_convention_version(version)
    assert str(caught.value).startswith(
        f"The requested export calling convention version {version} is outside the range of supported versions [9..10]"
    )


def test_stablehlo_versions_compare_by_number_not_by_text():
    assert parse_stablehlo_version("1.13.7") > parse_stablehlo_version("1.9.10")


@pytest.mark.parametrize("text", ["", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "1.-2.3", 1.2, None])
def test_what_is_not_a_stablehlo_version_is_refused(text):
    with pytest.raises(StablehloVersionError, match="not a StableHLO version"):
        parse_stablehlo_version(text)


@pytest.mark.parametrize("target", ["0.8.9", "1.15.1"])
def test_a_stablehlo_version_that_cannot_be_written_is_refused_with_the_range(target):
    with pytest.raises(StablehloVersionError, match=r"writes versions 0\.9\.0 to 1\.15\.0"):
        check_stablehlo_version(target, oldest="0.9.0", newest="1.15.0")
    assert check_stablehlo_version("1.15.0", oldest="0.9.0", newest="1.15.0") == "1.15.0"
