"""What the packages say of JAX's private names: the tables in their `_jax.py`, and whether the installed JAX has them.

`PRIVATE_NAMES` of a `_jax.py` has every private name of JAX that the package uses, also those that are reached through
an object: `jax._src.interpreters.mlir.ModuleContext.axis_context` is the attribute `axis_context` of an object of that
class. `DUE` has what JAX is going to remove. Both are read from the source: no package is imported.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .compatibility_modules import bound_names, chain, is_private, mentioned_paths

Rows = dict[str, tuple[str, str]]  # where JAX has it -> the newest JAX that it was seen in, and the reason


def rows(source: str, table: str) -> Rows:
    """The rows of a table in the source of a `_jax.py`; none if it has no such table."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [table]:
            names = [ast.literal_eval(key) for key in node.value.keys]
            assert len(set(names)) == len(names), f"{table} has a name twice"
            return ast.literal_eval(node.value)
    return {}


def missing(path: str) -> str | None:
    """The first part of a dotted path that the installed JAX does not have; None if it has all of it.

    An attribute of the objects of a class counts as there if the class has it, annotates it or sets it when it makes
    an object; one of what a function makes, if that function sets it.
    """
    found, rest = _module(path)
    for position, part in enumerate(rest):
        if hasattr(found, part):
            found = getattr(found, part)
        elif position == len(rest) - 1 and _sets(found, part):
            return None
        else:
            return f"{getattr(found, '__name__', found)}.{part}"
    return None


def _module(path: str) -> tuple[Any, list[str]]:
    """The innermost module on a dotted path, and what follows it."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            return importlib.import_module(".".join(parts[:length])), parts[length:]
        except ModuleNotFoundError as error:
            if not path.startswith(error.name or path):  # a need of that module, not the module
                raise
    raise AssertionError(f"{path} begins with no module")


def _sets(owner: Any, name: str) -> bool:
    """Whether a class annotates an attribute or sets it in its constructor, or a function sets it."""
    if not isinstance(owner, type):
        return name in getattr(getattr(owner, "__code__", None), "co_names", ())
    makers = [getattr(each.__dict__.get("__init__"), "__code__", None) for each in owner.__mro__]
    annotated = any(name in inspect.get_annotations(each) for each in owner.__mro__)
    return annotated or any(code is not None and name in code.co_names for code in makers)


def private_paths(source: str) -> set[str]:
    """The private dotted paths of JAX and jaxlib that a file imports, or reaches from an import."""
    paths = {path for _, path in mentioned_paths(ast.parse(source))}
    return {path for path in paths if path.split(".")[0] in ("jax", "jaxlib") and any(map(is_private, path.split(".")))}


def touched(source: str, names: set[str]) -> Iterator[tuple[int, str]]:
    """(line, name) of each attribute of these names that a file reads, sets or passes on.

    What is seen: attributes of any expression but modules of ours, `getattr` and its like with a literal name, and
    arguments by that name.
    """
    tree = ast.parse(source)
    bound = bound_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            if not (chain(node, bound) or "").startswith("jaxtf."):
                yield node.lineno, node.attr
        elif isinstance(node, ast.keyword) and node.arg in names:
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Call) and (name := literal_attribute(node)) in names:
            yield node.lineno, name


def literal_attribute(call: ast.Call) -> str | None:
    """The name that `getattr`, `hasattr`, `setattr` or `delattr` is called with; None for other calls."""
    if ast.unparse(call.func) not in ("getattr", "hasattr", "setattr", "delattr") or len(call.args) < 2:
        return None
    return call.args[1].value if isinstance(call.args[1], ast.Constant) else None


def compatibility_modules(packages: Path) -> dict[str, str]:
    """Package -> the source of its `_jax.py`."""
    return {file.parts[-5]: file.read_text(encoding="utf-8") for file in packages.glob("*/src/jaxtf/*/_jax.py")}
