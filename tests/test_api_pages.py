"""The API pages name everything that a package gives, in the order of use; errors are last."""

import importlib
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parent.parent / "docs" / "api"


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_an_api_page_has_every_public_name_once_and_errors_last(page):
    package = importlib.import_module(f"jaxtf.{page.stem}")
    names = re.findall(r"^ +- (\w+)$", page.read_text(), flags=re.M)
    assert sorted(names) == sorted(package.__all__)
    values = [getattr(package, name) for name in names]
    errors = [isinstance(value, type) and issubclass(value, BaseException) for value in values]
    assert errors == sorted(errors)
