"""Code on pages of the site is as wide as a reader sees it there: `python3 run.py site` measures that in a browser."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = 90  # at a width of 1280 pixels
FOLDED = re.compile(r"<details.*?</details>", re.DOTALL)
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_no_line_of_code_is_cut_off(page):
    shown = FOLDED.sub("", page.read_text(encoding="utf-8"))
    lines = [line for block in BLOCK.findall(shown) for line in block.splitlines()]
    assert [line for line in lines if len(line) > COLUMNS] == []
