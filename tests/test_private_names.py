"""JAX's private names: each is in a table, the installed JAX has it, only the compatibility modules touch it."""

import ast
from pathlib import Path

import jax
import pytest

from .compatibility_modules import defined_names, source_files
from .private_names import compatibility_modules, literal_attribute, missing, private_paths, rows, touched

ROOT = Path(__file__).resolve().parent.parent
FILES = source_files(ROOT / "packages")
SOURCES = compatibility_modules(ROOT / "packages")
PRIVATE = {package: rows(source, "PRIVATE_NAMES") for package, source in SOURCES.items()}
DUE = {package: rows(source, "DUE") for package, source in SOURCES.items()}
# Attributes that are private by the table alone; underscores are seen by `compatibility_modules`.
ATTRIBUTES = {path.rpartition(".")[2] for table in PRIVATE.values() for path in table}
OWN = frozenset().union(*(defined_names(ast.parse(file.read_text())) for _, file in FILES if file.name != "_jax.py"))


@pytest.mark.parametrize(("package", "path"), [(package, path) for package, table in PRIVATE.items() for path in table])
def test_the_installed_jax_has_each_private_name(package, path):
    seen, why = PRIVATE[package][path]
    assert missing(path) is None, (
        f"JAX {jax.__version__} has no {missing(path)}\n"
        f"  needed by: jaxtf.{package}, {path}: {why}\n"
        f"  seen in:   {seen}"
    )


@pytest.mark.parametrize(("package", "path"), [(package, path) for package, table in DUE.items() for path in table])
def test_the_installed_jax_still_has_what_it_is_going_to_remove(package, path):
    seen, due = DUE[package][path]
    assert missing(path) is None, (
        f"JAX {jax.__version__} has removed {path}, last seen in {seen}\n  due in jaxtf.{package}: {due}"
    )


@pytest.mark.parametrize("package", SOURCES)
def test_each_private_name_that_is_used_is_in_the_table(package):
    table = PRIVATE[package]
    # A module is imported for names in it, which are rows.
    unlisted = [
        path
        for path in private_paths(SOURCES[package])
        if path not in table and not any(row.startswith(f"{path}.") for row in table)
        if not any(path.startswith(f"{row}.") for row in table)
    ]
    assert unlisted == []


@pytest.mark.parametrize("package", SOURCES)
def test_each_row_is_of_use(package):
    tree = ast.parse(SOURCES[package])
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    names |= {literal_attribute(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert [path for path in PRIVATE[package] if path.rpartition(".")[2] not in names] == []


@pytest.mark.slow
def test_only_the_compatibility_modules_touch_private_attributes():
    """A name that a class or module of ours has too (`size`, `mesh`) is nobody's sign, and not looked for."""
    found = [
        f"{file.relative_to(ROOT)}, line {line}: .{name} is private to JAX; only _jax.py may touch it"
        for _, file in FILES
        if file.name not in ("_jax.py", "_tf.py")
        for line, name in touched(file.read_text(), ATTRIBUTES - OWN)
    ]
    assert found == []


def test_attributes_that_were_spread_over_modules_are_looked_for():
    spread = {"axis_context", "fancy_primitive_batchers", "manual_axis_type", "module_context", "uses_dim_vars"}
    assert spread <= ATTRIBUTES - OWN


@pytest.mark.parametrize(
    "source",
    [
        "def rule(ctx):\n  ctx.module_context.state.uses_dim_vars = True",
        "def f(aval):\n  return getattr(aval, 'uses_dim_vars', None)",
        "def f(aval):\n  return aval.update(uses_dim_vars=False)",
        "import jax\ndef f():\n  return jax.typeof(1).uses_dim_vars",
        "from jax.interpreters import mlir\nmlir.uses_dim_vars = {}",
    ],
)
def test_an_attribute_is_seen_on_every_way_to_it(source):
    assert [name for _, name in touched(source, {"uses_dim_vars"})] == ["uses_dim_vars"]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("jax._src.core.pytype_aval_mappings", None),
        ("jax._src.interpreters.mlir.ShapePolyLoweringState.uses_dim_vars", None),
        ("jax._src.core.pytype_mappings", "jax._src.core.pytype_mappings"),
        ("jax._src.interpreters.mlir.ModuleContext.no_such", "ModuleContext.no_such"),
        ("jax._src.interpreters.no_such_module.name", "jax._src.interpreters.no_such_module"),
    ],
)
def test_what_jax_does_not_have_is_named(path, part):
    assert missing(path) == part


def test_a_name_that_is_gone_fails_with_its_row(monkeypatch):
    monkeypatch.setitem(DUE, "example", {"jax._src.core.gone": ("0.12.0.1", "what is to be done then")})
    with pytest.raises(AssertionError, match=r"removed jax\._src\.core\.gone, last seen in 0\.12\.0\.1\n.*to be done"):
        test_the_installed_jax_still_has_what_it_is_going_to_remove("example", "jax._src.core.gone")
