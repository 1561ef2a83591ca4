"""Runs the examples in Markdown pages, as a reader would who types them from top to bottom.

In each page given, fenced blocks marked `python` run in order in one namespace, up to the first that fails. What a
block prints must be shown: in a block marked `output`, directly after it, as a terminal would show it. An error ends
the block and its output, as `ClassName: message`; only the last statement of a block may raise one.

```python
print(1 + 1)
[][0]
```
```output
2
IndexError: list index out of range
```

`...` in an output stands for any text, and a run of spaces and newlines for any other, so that long lines can be
wrapped. A block with `>>>` prompts is a doctest, with the same two rules. Blocks in other languages, and blocks marked
`python no-run`, or `{.python .no-run}` as the site knows it, are left alone. Needs the standard library only, so that
it runs where just one package is installed.

    python tools/run_examples.py [--required] README.md docs/*.md

With `--required`, a page without any example fails. Exit status 1 if an example fails.
"""

import ast
import doctest
import io
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<words>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
COMPARED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class ExampleFailed(Exception):
    """An example that does not hold; the message says where and why."""


class Block(NamedTuple):
    """One Python block: its text, the line of the page on which it begins, and the output shown for it, if any."""

    text: str
    line: int
    shown: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The Python blocks of a page, in order."""
    pending, end = None, 0
    for match in FENCE.finditer(page):
        words, text = match["words"].split(), re.sub(f"^{match['indent']}", "", match["text"], flags=re.M)
        line = page.count("\n", 0, match.start("text"))
        if words[:1] == ["output"]:
            if pending is None or page[end : match.start()].strip():
                raise ExampleFailed(f"line {line}: an output that no example stands directly before")
            if not text.replace("...", "").strip():
                raise ExampleFailed(f"line {line}: an output that shows nothing")
            pending = pending._replace(shown=text)
        if pending is not None:
            yield pending
        is_example = bool(words) and words[0] in ("python", "pycon", "py") and "no-run" not in words
        pending, end = (Block(text, line) if is_example else None), match.end()
    if pending is not None:
        yield pending


def run_doctest(block: Block, path: Path, names: dict[str, object]) -> None:
    """Runs a block with prompts, in the namespace of the page."""
    if block.shown is not None:
        raise ExampleFailed(f"line {block.line}: a block with prompts shows its output itself")
    test = doctest.DocTestParser().get_doctest(block.text, names, str(path), str(path), block.line)
    report = io.StringIO()
    result = doctest.DocTestRunner(optionflags=COMPARED).run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    if result.failed:
        raise ExampleFailed(report.getvalue())


def run_code(block: Block, path: Path, names: dict[str, object]) -> None:
    """Runs a block without prompts, and compares what it printed with what the page shows."""
    body = ast.parse("\n" * block.line + block.text, str(path)).body
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.Module(body[:-1], []), str(path), "exec"), names)
        raised = ""
        try:
            exec(compile(ast.Module(body[-1:], []), str(path), "exec"), names)
        except Exception as error:
            if block.shown is None:
                raise
            raised = traceback.format_exc()
            print(f"{type(error).__name__}: {error}")
    got, shown = printed.getvalue(), block.shown or ""
    checker = doctest.OutputChecker()
    if not checker.check_output(shown, got, COMPARED):
        difference = checker.output_difference(doctest.Example("", shown), got, COMPARED)
        raise ExampleFailed(f'{raised}File "{path}", line {block.line}\n{difference}')


def run_page(path: Path) -> tuple[int, int]:
    """(examples that ran, examples that failed); a failure is printed where it happened."""
    names: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    try:
        for block in blocks(path.read_text()):
            ran += 1
            (run_doctest if ">>>" in block.text else run_code)(block, path, names)
    except ExampleFailed as failure:
        print(f"{path}: {failure}")
        return ran, 1
    except Exception:
        traceback.print_exc()
        return ran, 1
    return ran, 0


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
