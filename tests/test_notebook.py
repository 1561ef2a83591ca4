"""The notebook among the pages: what its cells print is compared, and it becomes a page."""

import copy
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "train_and_serve.ipynb"


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import notebook_pages
    import run_notebook

    yield notebook_pages, run_notebook
    del sys.modules["notebook_pages"], sys.modules["run_notebook"]


@pytest.fixture
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def test_every_code_cell_was_run_in_order_and_shows_no_error(notebook):
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {(output["output_type"], output.get("name")) for cell in cells for output in cell["outputs"]}
    assert kinds == {("stream", "stdout")}


def test_another_output_is_a_difference_and_other_spaces_are_not(tools, notebook):
    _, run_notebook = tools
    run = copy.deepcopy(notebook)
    [output] = run["cells"][1]["outputs"]
    output["text"] = ["  ".join("".join(output["text"]).split(" "))]
    assert run_notebook.differences(notebook, run) == []
    output["text"] = ["(1, 8, 8)\n"]
    [difference] = run_notebook.differences(notebook, run)
    assert difference.startswith("cell 2: import jax ...\nExpected:\n    (1347, 8, 8) (450, 8, 8)\nGot:\n    (1, 8, 8)")


def test_a_page_shows_code_and_what_it_printed(tools, notebook):
    notebook_pages, _ = tools
    page = notebook_pages.markdown_of(notebook, NOTEBOOK.name)
    assert page.startswith("# Train in JAX, serve with TensorFlow\n\n*This page is [a notebook](train_and_serve.ipynb)")
    assert "\n```output\n(1347, 8, 8) (450, 8, 8)\n```\n" in page
    assert page.count("\n```python\n") == sum(cell["cell_type"] == "code" for cell in notebook["cells"])
