"""The page on adding an operation, followed word by word in a copy of the package: the tests that it shows pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'^```(?P<kind>text|diff) title="(?P<file>\S+)"\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)


def apply(block, folder):
    """Writes a file of the page, or the lines that it adds to one; returns its path."""
    file = folder / block["file"]
    if block["kind"] == "text":
        assert not file.exists(), f"{block['file']} is there already"
        file.write_text(block["body"])
        return file
    lines = block["body"].splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] == " ")
    after = "".join(line[1:] for line in lines)
    text = file.read_text()
    assert text.count(before) == 1, f"{block['file']} has these lines {text.count(before)} times:\n{before}"
    file.write_text(text.replace(before, after))
    return file


@pytest.mark.slow
def test_an_operation_that_is_added_as_the_page_says_works(tmp_path):
    shutil.copytree(ROOT / "packages/convert/src", tmp_path / "packages/convert/src")
    (tmp_path / "packages/convert/tests/_graph").mkdir(parents=True)
    blocks = list(BLOCK.finditer((ROOT / "docs/graph_ops.md").read_text()))
    files = [apply(block, tmp_path) for block in blocks]
    [tests] = [str(file) for file in files if file.name.startswith("test_")]
    paths = (
        tmp_path / "packages/convert/src",
        *(ROOT / f"packages/{name}/src" for name in ("shapepoly", "serialization")),
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
