"""For the site: each notebook among the pages becomes a page, as it was saved (a hook of MkDocs).

Markdown cells stay what they are, code is a block of Python, and what a cell printed is the output after it, as on the
pages that are written by hand. The notebook itself is next to its page, to download.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

__all__ = ["markdown_of", "on_files", "text_of"]


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each notebook; MkDocs calls this."""
    from mkdocs.structure.files import File

    for file in list(files):
        path = PurePosixPath(file.src_uri)
        if path.suffix == ".ipynb":
            page = markdown_of(json.loads(file.content_string), path.name)
            files.append(File.generated(config, str(path.with_suffix(".md")), content=page))
    return files


def markdown_of(notebook: dict[str, Any], name: str) -> str:
    """The page of a notebook; `name` is that of its file."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            printed = text_of(cell)
            parts += [f"```output\n{printed.rstrip()}\n```"] if printed.strip() else []
    title, *rest = parts[0].split("\n", 1)
    parts[0] = "\n".join([title, "", f"*This page is [a notebook]({name}), shown with the outputs of its run.*", *rest])
    return "\n\n".join(parts) + "\n"


def text_of(cell: dict[str, Any]) -> str:
    """What a cell printed and gave, as text; what went to standard error is left out."""
    texts = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            texts.append("".join(output["text"]))
        elif output["output_type"] in ("execute_result", "display_data"):
            texts.append("".join(output["data"]["text/plain"]) + "\n")
    return "".join(texts)
