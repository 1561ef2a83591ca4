"""`run.py`: what it says on a Python that jaxtf does not support."""

import runpy
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / "run.py"


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 15, 0)])
def test_a_python_that_is_not_supported_gets_one_line_and_nothing_is_installed(monkeypatch, version):
    main = runpy.run_path(str(RUN))["main"]
    found = ".".join(map(str, version))
    monkeypatch.setattr(sys, "version_info", (*version, "final", 0))
    monkeypatch.setattr(sys, "version", f"{found} (main, Nov 21 2026)")
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert main(["tests"]) == f"jaxtf needs Python 3.11 to 3.14; /usr/bin/python3 is {found}. Try: python3.13 run.py"


@pytest.mark.parametrize(("version", "is_untried"), [((3, 11, 0), False), ((3, 13, 1), False), ((3, 14, 0), True)])
def test_a_python_that_is_admitted_untried_is_reported(monkeypatch, capsys, version, is_untried):
    main = runpy.run_path(str(RUN))["main"]
    monkeypatch.setattr(sys, "version_info", (*version, "final", 0))
    monkeypatch.setitem(main.__globals__, "install_tools", lambda home: [sys.executable, "-c", "pass"])
    assert main(["tests"]) == 0
    assert ("jaxtf is untried on Python 3.14" in capsys.readouterr().err) == is_untried
