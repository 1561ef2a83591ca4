"""Reads source files for what only a compatibility module may use; no module is imported.

A compatibility module is the one file of a package that may touch what a framework keeps private: `_jax.py` for JAX and
jaxlib, `_jaxlib.py` for jaxlib where there may be no JAX, `_tf.py` for TensorFlow.
`violations(source, package, filename)` returns one sentence per offence.

What is seen: imports (also through `importlib.import_module` and `__import__` with a literal name), chains of
attributes that start at a name bound by such an import, and underscore attributes of any object that no class
or module of the package defines: `lowered._lowering` is somebody else's, whoever made `lowered`.
What is not seen: `getattr` with a computed name, and a private attribute that shares its name with one of ours.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

COMPATIBILITY_MODULES = ("_jax.py", "_jaxlib.py", "_tf.py")
FORBIDDEN = ("jax.experimental.jax2tf", "jax.export", "jax._src.export")
TENSORFLOW_PRIVATE = ("tensorflow.python", "tensorflow.compiler", "tensorflow.core", "tensorflow.lite.python")
PUBLIC_DESPITE_UNDERSCORE = {"_replace", "_asdict", "_fields", "_make"}  # collections.namedtuple documents them

# Which packages of ours each may import (DESIGN, section 2).
MAY_KNOW = {
    "shapepoly": set(),
    "serialization": {"shapepoly"},
    "convert": {"shapepoly", "serialization"},
    "calltf": {"shapepoly", "serialization"},
}

# What a file may look for, and does without where it is not installed: (package, file) -> package.
MAY_LOOK_FOR = {("convert", "call_tf.py"): "calltf"}

# Files of shapepoly that are themselves imported only where JAX is.
NEED_JAX = ("_jax.py", "_jax_error.py")


def violations(source: str, package: str, filename: str, own_names: frozenset[str] = frozenset()) -> list[str]:
    """What the source of one file may not do, each with its line.

    Args:
      source: The text of the file.
      package: The package it belongs to, such as "convert".
      filename: Its name without folders, such as "_jax.py": it decides which compatibility module the file is, if any.
      own_names: Names defined in the package's other files (`defined_names`).
    """
    tree = ast.parse(source)
    own = own_names | defined_names(tree)
    found = []
    for line, path in mentioned_paths(tree):
        found += [f"line {line}: {reason}" for reason in judged(path, package, filename)]
    if filename not in COMPATIBILITY_MODULES:
        bound = bound_names(tree)
        for line, name in underscore_attributes(tree, bound):
            if name not in own and name not in PUBLIC_DESPITE_UNDERSCORE:
                found.append(
                    f"line {line}: `.{name}` is private to another library; only a compatibility module may use it"
                )
    if package == "shapepoly" and filename not in NEED_JAX:
        for node in eager_imports(tree):
            for path in imported_paths(node):
                if path.partition(".")[0] in ("jax", "jaxlib", "numpy", "ml_dtypes", "tensorflow"):
                    found.append(f"line {node.lineno}: shapepoly imports {path} when it is imported")
    return list(dict.fromkeys(found))


def judged(path: str, package: str, filename: str) -> Iterator[str]:
    """The reasons for which a file may not mention the dotted path."""
    root, *rest = path.split(".")
    if any(within(path, banned) for banned in FORBIDDEN):
        yield f"{path} is upstream's exporter; no package uses it"
    elif root == "jaxlib" or (root == "jax" and any(map(is_private, rest))):
        if filename != "_jax.py" and not (root == "jaxlib" and filename == "_jaxlib.py"):
            yield f"{path} is private to JAX; only _jax.py may use it"
    elif root == "tensorflow":
        if filename != "_tf.py" and (any(within(path, p) for p in TENSORFLOW_PRIVATE) or any(map(is_private, rest))):
            yield f"{path} is private to TensorFlow; only _tf.py may use it"
    elif root == "jaxtf" and rest and rest[0] != package:
        if rest[0] not in MAY_KNOW[package] and MAY_LOOK_FOR.get((package, filename)) != rest[0]:
            yield f"{package} may not know jaxtf.{rest[0]}"
        elif any(map(is_private, rest[1:])):
            yield f"{path} is private to jaxtf.{rest[0]}, which has versions of its own"


def mentioned_paths(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, dotted path) of every import and of every attribute chain that starts at an imported name."""
    bound = bound_names(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}  # parts of a longer chain
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for path in imported_paths(node):
                yield node.lineno, path
        elif isinstance(node, ast.Call) and named(node.func) in ("import_module", "__import__"):
            if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value
        elif isinstance(node, ast.Attribute) and id(node) not in inner and (path := chain(node, bound)):
            yield node.lineno, path


def imported_paths(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:  # relative: stays in the package
        return []
    return [f"{node.module}.{alias.name}" for alias in node.names]


def bound_names(tree: ast.Module) -> dict[str, str]:
    """Each name that an absolute import binds somewhere in the file, with the dotted path it refers to."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return bound


def chain(node: ast.expr, bound: dict[str, str]) -> str | None:
    """`jnp.linalg._x` as "jax.numpy.linalg._x"; None when it does not start at an imported name."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute) and (prefix := chain(node.value, bound)):
        return f"{prefix}.{node.attr}"
    return None


def underscore_attributes(tree: ast.Module, bound: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Underscore attributes of objects that are not `self`, `cls` or a module whose path is judged already."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if named(node.value) not in ("self", "cls") and chain(node, bound) is None:
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and named(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and is_private(name.value):
                yield node.lineno, name.value


def defined_names(tree: ast.Module) -> frozenset[str]:
    """Names that the file defines: functions, classes, variables, fields, and attributes set on `self`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if named(node.value) in ("self", "cls") else set()
        elif isinstance(node, ast.ImportFrom) and node.level:
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("object.__setattr__", "super().__setattr__"):
            names.update(a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return frozenset(names)


def eager_imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run when the module is imported: not inside a function, not under `if TYPE_CHECKING`."""
    pending: list[ast.stmt | ast.ExceptHandler] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt | ast.ExceptHandler)]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def within(path: str, parent: str) -> bool:
    return path == parent or path.startswith(parent + ".")


def named(node: ast.expr) -> str | None:
    """The last name of `f`, `a.f`; None for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def source_files(packages: Path) -> list[tuple[str, Path]]:
    """(package, file) of every source file under `packages/*/src`."""
    return sorted((p.name, f) for p in packages.iterdir() for f in (p / "src").rglob("*.py"))
