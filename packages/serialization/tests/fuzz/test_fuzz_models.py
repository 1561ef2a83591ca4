"""A short session of the fuzz routine of files with weights; `python3 run.py hostile_models` is the long one."""

import jax  # noqa: F401  the files are made with it
import pytest

from .loading import routine


@pytest.fixture(scope="module")
def fuzz_models():
    return routine("fuzz_models")


def test_three_hundred_mutations_cause_no_fault(capsys, fuzz_models):
    assert fuzz_models.main(["--mutations", "300", "--seed", "7"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("fault", ["another error", "other weights"])
def test_a_fault_is_reported_with_the_mutation_that_makes_it_again(capsys, monkeypatch, fuzz_models, fault):
    load = fuzz_models.load

    def faulty(file):
        if fault == "another error":
            raise KeyError("fault")
        return load(file, verify=False)  # so that damage of a weight is not found

    def flip_weight(_, blob):
        blob[8 + int.from_bytes(blob[:8], "little")] ^= 1
        return blob

    monkeypatch.setitem(fuzz_models.TARGETS, "load", faulty)
    for name in ("MUTATIONS", "UNSEALED"):
        monkeypatch.setattr(fuzz_models, name, (flip_weight,))
    assert fuzz_models.main(["--mutations", "5"]) == 1
    out = capsys.readouterr().out
    assert "mutation 0 (flip_weight): KeyError('fault')" in out if fault == "another error" else "other weights" in out
