"""What importing the package needs, and the error of what needs JAX where there is none."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jaxtf.convert

WITHOUT_JAX = "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = None\n"


def test_the_names_for_type_checkers_are_those_that_are_imported():
    tree = ast.parse(Path(jaxtf.convert.__file__).read_text())
    [for_checkers] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in for_checkers.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.name: node.module for node in imports for alias in node.names}
    assert imported == jaxtf.convert._MODULES
    assert imported.keys() - {"__version__"} == set(jaxtf.convert.__all__)


def test_every_public_name_is_there():
    for name in jaxtf.convert.__all__:
        assert getattr(jaxtf.convert, name) is not None
    assert set(jaxtf.convert.__all__) <= set(dir(jaxtf.convert))
    with pytest.raises(AttributeError, match=r"module 'jaxtf.convert' has no attribute 'converts'"):
        jaxtf.convert.converts  # noqa: B018


@pytest.mark.slow
def test_every_name_is_imported_where_there_is_no_jax():
    # TensorFlow itself imports JAX where it is installed, so it is made not to be.
    program = f"{WITHOUT_JAX}from jaxtf.convert import *; print('imported')"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "imported", found.stderr


NEED_JAX = {
    "convert(lambda x: x)": "convert",
    "convert(lambda x: x, native_serialization=False)": "convert",
    "save_model(lambda p, x: x, {}, 'model', input_signatures=[])": "save_model",
    "eval_polymorphic_shape(lambda x: x)": "eval_polymorphic_shape",
    "to_tflite(lambda x: x, input_signature=[])": "to_tflite of a function",
    "verify(lambda x: x)": "verify",
    "dtype_of_val(1.0)": "dtype_of_val",
}


def test_what_needs_jax_says_so_where_there_is_none(run_without_jax):
    tries = "".join(f"try: {program}\nexcept JaxRequiredError as error: print(error)\n" for program in NEED_JAX)
    program = f"{WITHOUT_JAX}from jaxtf.convert import *\nassert issubclass(JaxRequiredError, ImportError)\n{tries}"
    found = run_without_jax("-c", program)
    assert found.stdout == "".join(
        f"{wanted} needs JAX, which cannot be imported here: import of jax halted; None in sys.modules\n"
        '  remedy: pip install "jaxtf-convert[jax]"\n'
        for wanted in NEED_JAX.values()
    ), found.stderr


def test_the_command_says_that_it_needs_jax(run_without_jax):
    program = f"{WITHOUT_JAX}from jaxtf.convert._verify.cli import main; print(main(['model.jaxtf']))"
    found = run_without_jax("-c", program)
    assert found.stdout == "2\n"
    assert found.stderr.splitlines()[-2:] == [
        "jaxtf-verify: the command needs JAX, which cannot be imported here: import of jax halted; None in sys.modules",
        '  remedy: pip install "jaxtf-convert[jax]"',
    ]


def test_dir_lists_the_public_names_alone():
    import jaxtf.convert
    import jaxtf.serialization

    for package in (jaxtf.convert, jaxtf.serialization):
        assert [name for name in dir(package) if not name.startswith("__")] == sorted(package.__all__)
