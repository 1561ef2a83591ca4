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

A block with `>>>` prompts is a doctest. A block with a title, as in `python title="mymodel.py"`, is a file, which is
written. In a block marked `console`, each line that begins with `$ ` is a command, and what follows is what it prints.
`...` in an output matches any text, and a run of spaces and newlines for any other, so that long lines can be
wrapped.

Each page has a folder of its own for what its examples write; in it, `jaxtf` is the clone of the repository. Blocks in
other languages, and blocks marked `no-run`, as in `{.python .no-run}`, are left alone. Needs the standard library only,
so that it runs where just one package is installed.

    python tools/run_examples.py [--required] README.md docs/*.md

With `--required`, a page without any example fails. Exit status 1 if an example fails.
"""

import ast
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<words>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
COMPARED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class ExampleFailed(Exception):
    """An example that does not hold; the message says where and why."""


class Block(NamedTuple):
    """One example: its language and text, the line of the page on which it begins, and what the page says of it."""

    language: str
    text: str
    line: int
    title: str | None
    shown: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The examples of a page, in order."""
    pending, end = None, 0
    for match in FENCE.finditer(page):
        language, *marks = re.split(r"\s+", match["words"].strip("{} .")) or [""]
        text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.M)
        line = page.count("\n", 0, match.start("text"))
        if language == "output":
            if pending is None or pending.language != "python" or page[end : match.start()].strip():
                raise ExampleFailed(f"line {line}: an output without an example directly before it")
            if not text.replace("...", "").strip():
                raise ExampleFailed(f"line {line}: an output that shows nothing")
            pending = pending._replace(shown=text)
        if pending is not None:
            yield pending
        title = re.search(r'title="([^"]+)"', match["words"])
        is_example = language in ("python", "console") and not {"no-run", ".no-run"} & set(marks)
        pending, end = (Block(language, text, line, title and title[1]) if is_example else None), match.end()
    if pending is not None:
        yield pending


def compare(shown: str, got: str, where: str) -> None:
    """Raises `ExampleFailed` if what is shown is not what was printed."""
    checker = doctest.OutputChecker()
    if not checker.check_output(shown, got, COMPARED):
        raise ExampleFailed(f"{where}\n{checker.output_difference(doctest.Example('', shown), got, COMPARED)}")


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
    printed, raised = io.StringIO(), ""
    with redirect_stdout(printed):
        exec(compile(ast.Module(body[:-1], []), str(path), "exec"), names)
        try:
            exec(compile(ast.Module(body[-1:], []), str(path), "exec"), names)
        except Exception as error:
            if block.shown is None:
                raise
            raised = traceback.format_exc()
            print(f"{type(error).__name__}: {error}")
    compare(block.shown or "", printed.getvalue(), f'{raised}File "{path}", line {block.line}')


def run_commands(block: Block, path: Path) -> None:
    """Runs the commands of a block, and compares what each printed; TensorFlow's own log is left out."""
    commands = re.split(r"^\$ ", block.text, flags=re.M)
    if commands.pop(0) or not commands:
        raise ExampleFailed(f"line {block.line}: a console that does not begin with `$ ` and a command")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = os.environ | {"PATH": search, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for command, _, shown in (text.partition("\n") for text in commands):
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
        compare(shown, done.stdout.decode(), f'File "{path}", line {block.line}: $ {command}')


def run(block: Block, path: Path, names: dict[str, object]) -> None:
    """Runs one example in the folder of its page; an exception says what does not hold."""
    if block.title is not None:
        Path(block.title).write_text(block.text)
    elif block.language == "console":
        run_commands(block, path)
    elif ">>>" in block.text:
        run_doctest(block, path, names)
    else:
        run_code(block, path, names)


def run_page(path: Path) -> tuple[int, int]:
    """(examples that ran, examples that failed); a failure is printed where it happened."""
    names: dict[str, object] = {"__name__": "__main__"}
    page = path.read_text()
    ran = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("jaxtf").symlink_to(ROOT)
        try:
            for block in blocks(page):
                ran += 1
                run(block, path, names)
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
