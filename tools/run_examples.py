"""Runs the examples in Markdown pages, as a reader would who types them from top to bottom.

In each page given, fenced blocks marked `python` run in order in one namespace, up to the first that fails; a
block with `>>>` prompts is a doctest (`...` in an expected output stands for any text). Blocks in other languages,
and blocks marked `python no-run`, or `{.python .no-run}` as the site knows it, are left alone. Needs the standard
library only, so that it runs where just one package is installed.

    python tools/run_examples.py [--required] README.md docs/*.md

With `--required`, a page without any example fails. Exit status 1 if an example fails.
"""

import doctest
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<words>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """The text of one fenced block, and the line of the page on which it begins."""

    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(page):
        words = match["words"].split()
        if words and words[0] in ("python", "pycon", "py") and "no-run" not in words:
            text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.M)
            found.append(Block(text, page.count("\n", 0, match.start("text"))))
    return found


def run_page(path: Path) -> tuple[int, int]:
    """(examples that ran, examples that failed); a failure is printed where it happened."""
    names: dict[str, object] = {"__name__": "__main__"}
    ran = failed = 0
    for block in blocks(path.read_text()):
        if ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, names, str(path), str(path), block.line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            result = runner.run(test, clear_globs=False)
            names = test.globs
            ran, failed = ran + result.attempted, failed + result.failed
        else:
            ran += 1
            try:
                exec(compile("\n" * block.line + block.text, str(path), "exec"), names)
            except Exception:
                failed += 1
                traceback.print_exc()
        if failed:
            break  # what follows would only miss the names of this block
    return ran, failed


def main(arguments: list[str]) -> int:
    """Runs the pages; the exit status."""
    required = "--required" in arguments
    status = 0
    for path in (Path(argument) for argument in arguments if not argument.startswith("--")):
        ran, failed = run_page(path)
        print(f"{path}: {ran} examples, {failed} failed", flush=True)
        if failed or (required and not ran):
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
