"""docs/guide_examples.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_of_the_guide_names_tests_that_exist():
    page = (ROOT / "docs/guide_examples.md").read_text(encoding="utf-8")
    folders = [ROOT / "packages/convert/tests", ROOT / "packages/calltf/tests"]
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|", page, re.MULTILINE)[2:]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`([\w/]+(?:\.py)?(?:::\w+)?)`", row)
        file = None
        for name in named:
            path, _, test = name.partition("::")
            if path.startswith("test_") and not path.endswith(".py"):
                path, test = file, path  # another test of the file before
            found = [ROOT / path] if (ROOT / path).exists() else [f for folder in folders for f in folder.rglob(path)]
            assert found, f"{path} does not exist"
            file = path
            if test:
                assert f"def {test}(" in found[0].read_text(encoding="utf-8"), f"{path} has no {test}"
