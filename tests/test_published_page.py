"""docs/published.md has a row for each package that the session runs, and each program is one of the session's."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")


def in_noxfile(name):
    """The keys of a table in noxfile.py, which only nox can import."""
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return [key.value for key in node.value.keys]
    raise AssertionError(f"noxfile.py has no {name}")


def test_each_package_has_a_row_with_both_results():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]
    assert [row[0].strip("`") for row in rows] == in_noxfile("PUBLISHED_TESTS") + in_noxfile("PUBLISHED_PROGRAMS")
    assert all(len(row) == 5 and all(row) for row in rows)


def test_each_program_is_run_and_says_how_to_run_it():
    folder = ROOT / "tests" / "published"
    programs = {file.stem: file.read_text(encoding="utf-8") for file in folder.glob("*.py")}
    helpers = {"place", "with_jaxtf"}
    assert programs.keys() - helpers == set(in_noxfile("PUBLISHED_PROGRAMS"))
    for name in programs.keys() - helpers:
        assert re.search(rf"python {name}\.py jaxtf\|upstream", programs[name])
