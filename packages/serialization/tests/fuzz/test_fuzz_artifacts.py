"""A short session of the fuzz routine, so that it keeps running and stays without a fault."""

import pytest

from .loading import routine


@pytest.fixture
def fuzz_artifacts():
    return routine("fuzz_artifacts")


def test_a_thousand_mutations_cause_no_fault(capsys, fuzz_artifacts):
    assert fuzz_artifacts.main(["--mutations", "1000", "--seed", "7"]) == 0, capsys.readouterr().out


def test_a_fault_is_reported_with_the_mutation_that_makes_it_again(capsys, monkeypatch, fuzz_artifacts):
    def faulty(blob):
        if len(blob) < 100:
            raise KeyError("fault")

    monkeypatch.setitem(fuzz_artifacts.TARGETS, "read", faulty)
    assert fuzz_artifacts.main(["--mutations", "100", "--targets", "read"]) == 1
    assert "(garbage): KeyError('fault')" in capsys.readouterr().out
