"""The page on limitations of graph mode says what the tables in the code and the tests say."""

import importlib
from pathlib import Path


def test_the_page_has_the_rows_of_the_tables(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)  # the program that writes the page is no module of this package
    program = importlib.import_module("graph_limitations")
    page = program.PAGE.read_text(encoding="utf-8")
    lines = program.of_operations()
    assert [line for part in lines for line in part.splitlines() if line and line not in page] == []
    assert "\n".join(lines) in page, "rows that are gone, or in another order"
