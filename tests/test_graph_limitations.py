"""The page on limitations of graph mode says what the tables in the code and the tests say."""

from .graph_limitations import PAGE, of_operations


def test_the_page_has_the_rows_of_the_tables():
    page = PAGE.read_text(encoding="utf-8")
    assert [line for part in of_operations() for line in part.splitlines() if line and line not in page] == []
    assert "\n".join(of_operations()) in page, "rows that are gone, or in another order"
