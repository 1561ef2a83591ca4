"""Which line of a location of MLIR is the user's."""

import sys
from pathlib import Path
from types import SimpleNamespace

import jaxtf.serialization
from jaxtf.serialization._record.locations import source_line, user_line, users_files

OURS = f"{Path(jaxtf.serialization.__file__).parent.parent}/convert/_convert/convert.py"


def location(*paths):
    """The location of an operation that was reached through these files, the innermost first."""
    stack = "".join(f'callsite("f"("{path}":{line}:3 to :9) at ' for line, path in enumerate(paths, 1))
    return f'loc("jit(f)/eig"({stack}"<module>"("-":1:1){")" * len(paths)}))'


def test_the_users_line_is_the_innermost_that_is_not_of_jax_tensorflow_python_or_ours(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(__path__=["/src/jax"]))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__path__=["/v/site-packages/tensorflow"]))
    others = (
        "/src/jax/_src/mlir.py",
        "/v/site-packages/tensorflow/python/function.py",
        OURS,
        "/usr/lib/python3.13/threading.py",
        "<frozen runpy>",
    )
    flax = "/v/lib/python3.13/site-packages/flax/linen.py"
    assert source_line(location(*others, flax, "/home/jax/model.py", "/home/main.py")) == "/home/jax/model.py:7"
    assert source_line(location(*others, "<stdin>")) == "<stdin>:6"
    assert source_line(location(*others, flax)) == f"{flax}:6"
    assert source_line(location(*others)) == ""
    assert source_line('loc("schur")') == ""


def test_an_operation_without_a_line_of_the_user_is_named():
    assert user_line(location(OURS)) == "jit(f)/eig"
    assert user_line(location(OURS, "/home/model.py")) == "jit(f)/eig, /home/model.py:2"
    assert user_line("loc(unknown)") == "loc(unknown)"


def test_a_file_that_no_location_names_is_nobodys():
    assert users_files([]) == users_files(["-", OURS]) == frozenset()
