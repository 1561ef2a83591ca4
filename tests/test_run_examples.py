"""The runner of the pages' examples (tools/run_examples.py) runs what a reader would, and fails when it fails."""

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parent.parent / "tools" / "run_examples.py"


def run(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    file = folder / "page.md"
    file.write_text(page)
    return subprocess.run([sys.executable, RUNNER, "--required", file], capture_output=True, text=True, check=False)


def block(text: str, words: str = "python") -> str:
    return f"```{words}\n{text}\n```\n"


def output(text: str) -> str:
    return block(text, "output")


@pytest.mark.parametrize(
    ("page", "ran"),
    [
        (block("x = 1") + "prose\n\n" + block("assert x == 1"), 2),
        (block("x = 1") + block(">>> x + 1\n2"), 2),
        (block(">>> x = 1\n>>> print('one', 'two')\none ..."), 1),
        (block("x = 1") + block("rm -rf /", "sh") + block("not Python", "python no-run"), 1),
        ("- in a list\n\n  ```python\n  x = 1\n  if x:\n    print(2)\n  ```\n\n  ```output\n  2\n  ```\n", 1),
        (block("print('one')\nprint('two')") + "\n" + output("one\ntwo") + block("x = 1"), 2),
        (block("print('one  two three')") + output("one\n... three"), 1),
        (block("print(1)\n[][0]") + output("1\nIndexError: list index out of range"), 1),
        (
            block("if True:\n  print(1)\n  {}['key']") + output("1\nKeyError: 'key'") + block("print(2)") + output("2"),
            2,
        ),
        (block("# a comment only"), 1),
        (block("print('no-run')", "{.python .no-run}") + block("$ false; echo no", "{.console .no-run}"), 0),
        (block("$ echo one; echo two >&2\none\ntwo\n$ false\n$ echo 'a  b'\na ...", "console"), 1),
        (
            block("open('file', 'w').write('text')")
            + block("$ cat file; echo; ls jaxtf/run.py\ntext\njaxtf/run.py", "console"),
            2,
        ),
        (
            block("VALUE = 7", 'python title="module.py"')
            + block("$ python -c 'import module as m; print(m.VALUE)'\n7", "console"),
            2,
        ),
    ],
)
def test_examples_that_hold_pass(tmp_path, page, ran):
    done = run(tmp_path, page)
    assert done.returncode == (0 if ran else 1), done.stdout + done.stderr
    assert f"{ran} examples, 0 failed" in done.stdout


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (block("x = 1\nassert x == 2"), 'page.md", line 3'),
        (block(">>> 1 + 1\n3"), "Expected:\n    3\nGot:\n    2"),
        (block("x = ("), "SyntaxError"),
        ("no example at all", "0 examples"),
        (block("print(2)") + output("3"), "Expected:\n    3\nGot:\n    2"),
        (block("x = 1\nprint(2)") + output("2\n2"), "Expected:\n    2\n    2\nGot:\n    2"),
        (block("x = 1") + output("1"), "Got nothing"),
        (block("print(2)"), "Expected nothing\nGot:\n    2"),
        (block("print(2)") + output("..."), "an output that shows nothing"),
        (block("x = 2") + "prose\n\n" + output("2"), "line 6: an output without an example directly before it"),
        (output("2"), "line 1: an output without an example directly before it"),
        (block("x = 1") + block("print(2)", "sh") + output("2"), "an output without an example directly before it"),
        (block(">>> 1 + 1\n2") + output("2"), "a block with prompts shows its output itself"),
        (block("[][0]") + output("KeyError: 0"), "Got:\n    IndexError: list index out of range"),
        (block("[][0]\nprint(1)") + output("IndexError: list index out of range"), "line 2, in <module>"),
        (block("print(1)\n[][0]") + output("1"), "IndexError"),
        (block("$ echo one\none\n$ echo two\nthree", "console"), "$ echo two\nExpected:\n    three\nGot:\n    two"),
        (block("$ echo one", "console"), "Expected nothing"),
        (block("echo one\none", "console"), "line 1: a console that does not begin with"),
        (block("$ true", "console") + output("x"), "an output without an example directly before it"),
    ],
)
def test_examples_that_do_not_hold_fail(tmp_path, page, complaint):
    done = run(tmp_path, page)
    assert done.returncode == 1
    assert complaint in done.stdout + done.stderr


def test_what_follows_a_failure_does_not_run(tmp_path):
    assert "1 examples, 1 failed" in run(tmp_path, block("1 / 0") + block("print('ran')")).stdout
