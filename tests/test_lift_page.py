"""docs/lift_operations.md is what the table of `lift` says."""

from .lift_page import PAGE, page


def test_the_page_of_operations_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/lift_page.py writes it"
