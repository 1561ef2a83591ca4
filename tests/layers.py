"""Reads the imports of a package: from which sub-package to which, where, and in circles or not; nothing is imported.

A sub-package is a folder next to the package's `__init__.py`, or one of its files. An import counts wherever it is
written: at the top, in a function, under `TYPE_CHECKING`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "packages"


@dataclass(frozen=True)
class Import:
    """One import of a module of the same package.

    Attributes:
      importer: The module that imports, as a dotted path in its package.
      imported: The module that is imported.
      line: Where.
      is_late: Whether it is in a function.
    """

    importer: str
    imported: str
    line: int
    is_late: bool

    @property
    def parts(self) -> tuple[str, str]:
        """The sub-packages of the two."""
        return self.importer.partition(".")[0], self.imported.partition(".")[0]


def modules(package: str) -> dict[str, Path]:
    """Each module of a package by its dotted path; that of the package itself is empty."""
    root = PACKAGES / package / "src" / "jaxtf" / package
    found = {}
    for file in root.rglob("*.py"):
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(package: str) -> list[Import]:
    """Every import within a package."""
    files = modules(package)
    found = []
    for module, file in files.items():
        for path, line, is_late in mentioned(ast.parse(file.read_text()), f"jaxtf.{package}"):
            target = path if path in files else path.rpartition(".")[0]
            found.append(Import(module, target, line, is_late))
    return found


def mentioned(tree: ast.AST, package: str, is_late: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Paths in the package that are imported, the line, and whether within a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}."):
            prefix = (node.module or "")[len(package) + 1 :]
            for alias in node.names:
                yield (f"{prefix}.{alias.name}" if prefix else alias.name), node.lineno, is_late
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(f"{package}."):
                    yield alias.name[len(package) + 1 :], node.lineno, is_late
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from mentioned(node, package, is_late or inside)


def late_imports(package: str) -> list[tuple[str, int]]:
    """Every import statement within a function, of anything: module and line."""
    found = []
    for module, file in modules(package).items():
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found += [
                    (module, node.lineno)
                    for node in ast.walk(function)
                    if isinstance(node, ast.Import | ast.ImportFrom)
                ]
    return sorted(set(found))


def circles(package: str, entrances: frozenset[tuple[str, str]] = frozenset()) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others.

    Args:
      package: Its name.
      entrances: Imports, importer and imported, that do not count.
    """
    graph: dict[str, set[str]] = {module: set() for module in modules(package)}
    for found in imports(package):
        if found.importer and found.imported and (found.importer, found.imported) not in entrances:
            # all lead to the package's own `__init__`
            graph[found.importer].add(found.imported)
    order: list[str] = []
    seen: set[str] = set()

    def visit(module: str, edges: dict[str, set[str]], into: list[str]) -> None:
        stack = [(module, iter(sorted(edges[module])))]
        seen.add(module)
        while stack:
            current, targets = stack[-1]
            following = next((target for target in targets if target not in seen), None)
            if following is None:
                into.append(current)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    for module in sorted(graph):
        if module not in seen:
            visit(module, graph, order)
    backwards: dict[str, set[str]] = {module: set() for module in graph}
    for importer, targets in graph.items():
        for target in targets:
            backwards[target].add(importer)
    seen.clear()
    groups = []
    for module in reversed(order):
        if module not in seen:
            group: list[str] = []
            visit(module, backwards, group)
            groups.append(sorted(group))
    return sorted(group for group in groups if len(group) > 1)
