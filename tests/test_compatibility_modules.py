"""What the packages import, read from their sources; the reader itself is tried on bad snippets first."""

import ast
import re
from pathlib import Path

import pytest

from .compatibility_modules import COMPATIBILITY_MODULES, MAY_KNOW, defined_names, source_files, violations

ROOT = Path(__file__).resolve().parent.parent
FILES = source_files(ROOT / "packages")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import jax._src.core", "jax._src.core is private to JAX"),
        ("from jax._src import core", "jax._src.core is private to JAX"),
        ("from jax import _src", "jax._src is private to JAX"),
        ("import jaxlib.xla_extension as x", "jaxlib.xla_extension is private to JAX"),
        ("from jaxlib import _jax", "jaxlib._jax is private to JAX"),
        ("import jax\njax._src.core.Foo", "line 2: jax._src.core.Foo is private to JAX"),
        ("import jax.numpy as jnp\njnp.linalg._x", "jax.numpy.linalg._x is private to JAX"),
        ("def f():\n  from jax import core\n  return core._y", "line 3: jax.core._y is private to JAX"),
        ("import importlib\nimportlib.import_module('jax._src.mesh')", "jax._src.mesh is private to JAX"),
        ("__import__('jaxlib.mlir')", "jaxlib.mlir is private to JAX"),
        ("def f(lowered):\n  return lowered._lowering", "line 2: `._lowering` is private to another library"),
        ("def f(x):\n  return getattr(x, '_hidden', None)", "`._hidden` is private to another library"),
        ("import tensorflow.python.framework.ops", "tensorflow.python.framework.ops is private to TensorFlow"),
        ("from tensorflow.compiler.tf2xla.python import xla", "is private to TensorFlow"),
        ("import tensorflow as tf\ntf.python.ops", "tensorflow.python.ops is private to TensorFlow"),
        ("import tensorflow as tf\ntf.Module._setattr_tracking", "is private to TensorFlow"),
        ("import jaxtf.calltf", "convert may not know jaxtf.calltf"),
        ("from jaxtf.calltf import call_tf", "convert may not know jaxtf.calltf"),
        ("from jaxtf import calltf", "convert may not know jaxtf.calltf"),
    ],
)
def test_a_file_that_is_not_a_compatibility_module_is_refused(source, complaint):
    [found] = violations(source, "convert", "_native.py")
    assert complaint in found


@pytest.mark.parametrize("filename", ["_native.py", "_jax.py", "_tf.py"])
@pytest.mark.parametrize(
    "source",
    [
        "import jax.export",
        "from jax import export",
        "from jax import export as exporter",
        "from jax.export import export",
        "from jax._src.export import shape_poly",
        "import jax\njax.export.export",
        "from jax.experimental import jax2tf",
        "from jax.experimental.jax2tf import convert",
        "import importlib\nimportlib.import_module('jax.experimental.jax2tf')",
    ],
)
def test_upstreams_exporter_is_refused_in_every_file(source, filename):
    assert any("upstream's exporter" in found for found in violations(source, "convert", filename))


@pytest.mark.parametrize(
    ("filename", "source"),
    [
        ("_jax.py", "from jax._src import core\nimport jaxlib\ndef f(x):\n  return x._lowering"),
        ("_tf.py", "from tensorflow.compiler.tf2xla.python import xla"),
        ("_native.py", "import jax\nfrom jax.interpreters import mlir\njax.jit(f).trace(x).lower().__doc__"),
        ("_native.py", "import tensorflow as tf\ntf.raw_ops.Add"),
        ("_native.py", "from . import _jax\n_jax.kept(x)._asdict()"),
        ("_native.py", "class A:\n  def __init__(self):\n    self._x = 1\ndef f(a):\n  return a._x"),
        ("_native.py", "from jaxtf.serialization import Exported\nfrom jaxtf.shapepoly import symbolic_shape"),
        ("_native.py", '"""Works with jax.export and jax.experimental.jax2tf."""'),
    ],
)
def test_what_is_allowed_passes(filename, source):
    assert violations(source, "convert", filename) == []


def test_a_compatibility_module_is_for_its_own_framework():
    assert violations("import jax._src.core", "convert", "_tf.py")
    assert violations("import tensorflow.python", "convert", "_jax.py")


@pytest.mark.parametrize("source", ["import jax", "try:\n  import numpy as np\nexcept ImportError:\n  np = None"])
def test_shapepoly_may_not_import_a_framework_when_imported(source):
    [found] = violations(source, "shapepoly", "_expression.py")
    assert "when it is imported" in found


@pytest.mark.parametrize(
    "source",
    ["def f():\n  import jax", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import jax"],
)
def test_shapepoly_may_import_a_framework_later(source):
    assert violations(source, "shapepoly", "_expression.py") == []


def test_the_reader_finds_the_files_of_all_four_packages():
    assert {package for package, _ in FILES} == set(MAY_KNOW)


@pytest.mark.slow(1)
@pytest.mark.parametrize("package", MAY_KNOW)
def test_only_compatibility_modules_touch_what_frameworks_keep_private(package):
    files = [file for owner, file in FILES if owner == package]
    known = MAY_KNOW[package] | {package}
    own = frozenset().union(*(defined_names(ast.parse(file.read_text())) for owner, file in FILES if owner in known))
    found = [
        f"{file.relative_to(ROOT)}: {reason}"
        for file in files
        for reason in violations(file.read_text(), package, file.name, own)
    ]
    assert found == []


@pytest.mark.parametrize("package", MAY_KNOW)
def test_there_is_one_compatibility_module_for_each_framework(package):
    names = [file.name for owner, file in FILES if owner == package and file.name in COMPATIBILITY_MODULES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("package", MAY_KNOW)
def test_a_package_declares_those_of_ours_that_it_imports(package):
    project = (ROOT / "packages" / package / "pyproject.toml").read_text()
    sources = "\n".join(file.read_text() for owner, file in FILES if owner == package)
    imported = set(re.findall(r"^\s*(?:from|import) jaxtf\.(\w+)", sources, re.MULTILINE)) - {package}
    assert {name for name in imported if f"jaxtf-{name}" not in project} == set()


def test_one_file_of_convert_looks_for_calltf():
    source = "import importlib\nimportlib.import_module('jaxtf.calltf')"
    assert violations(source, "convert", "call_tf.py") == []
    assert violations(source, "convert", "_native.py") == ["line 2: convert may not know jaxtf.calltf"]


def test_what_a_sibling_keeps_private_is_not_used():
    found = violations("from jaxtf.serialization._export.export import export", "convert", "_native.py")
    assert found == [
        "line 1: jaxtf.serialization._export.export.export is private to jaxtf.serialization, "
        "which has versions of its own"
    ]
    assert not violations("from jaxtf.serialization import export", "convert", "_native.py")
