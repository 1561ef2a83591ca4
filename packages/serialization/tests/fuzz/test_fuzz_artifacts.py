"""A short session of the fuzz routine, so that it keeps running and stays without a fault."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parent / "fuzz_artifacts.py"


def test_a_thousand_mutations_cause_no_fault(capsys):
    specification = importlib.util.spec_from_file_location("fuzz_artifacts", SCRIPT)
    routine = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(routine)
    assert routine.main(["--mutations", "1000", "--seed", "7"]) == 0, capsys.readouterr().out


def test_a_fault_is_told_with_the_mutation_that_makes_it_again(capsys, monkeypatch):
    specification = importlib.util.spec_from_file_location("fuzz_artifacts", SCRIPT)
    routine = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(routine)

    def faulty(blob):
        if len(blob) < 100:
            raise KeyError("fault")

    monkeypatch.setitem(routine.TARGETS, "read", faulty)
    assert routine.main(["--mutations", "100", "--targets", "read"]) == 1
    assert "(garbage): KeyError('fault')" in capsys.readouterr().out
