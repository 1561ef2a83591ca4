"""The page for users of jax2tf: each name and parameter of theirs, held against theirs and ours; its lines run."""

import importlib
import inspect
import re
from types import ModuleType

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf import calltf, convert, serialization, shapepoly

from .migration_table import IDIOMS, MODULES, PAGE, Name, page

NOW = [module for module in MODULES if module.until is None]

# Of one of these JAX releases only: what the other has not, it cannot be compared with.
NOT_IN_EVERY_JAX = {"symbolic_dim_bounds"}


def upstream(module, name):
    """The value of a name of the module, and the class it is in."""
    owner, value = None, importlib.import_module(module)
    for part in name.split("."):
        owner, value = (
            value,
            inspect.getattr_static(value, part, None) if inspect.isclass(value) else getattr(value, part),
        )
    return owner, value


def public(module):
    """The public names of a module, and of its classes the public attributes and fields."""
    names = []
    for name, value in vars(importlib.import_module(module)).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        names.append(name)
        if inspect.isclass(value):
            inherited = {attribute for base in value.__mro__[1:] for attribute in dir(base)}
            attributes = {*dir(value), *inspect.get_annotations(value)} - inherited
            names += [f"{name}.{attribute}" for attribute in attributes if not attribute.startswith("_")]
    return names


def ours(name):
    """The value of one of our names; None for a field."""
    package, _, path = name.removeprefix("jaxtf.").partition(".")
    value = importlib.import_module(f"jaxtf.{package}")
    for part in path.split("."):
        if inspect.isclass(value) and part in value.__dataclass_fields__:
            return None
        value = getattr(value, part)
    return value


def parameters(function):
    """The parameters of a function or class, without `self`."""
    try:
        found = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}
    found.pop("self", None)
    return found


@pytest.mark.parametrize("module", NOW, ids=lambda module: module.name)
def test_every_public_name_is_there_once(module):
    names = [name.was for name in module.names]
    assert sorted(set(names)) == sorted(names)
    found = set(public(module.name))
    assert found - set(names) == set()
    assert set(names) - found <= NOT_IN_EVERY_JAX


@pytest.mark.parametrize(
    ("module", "name"),
    [(module.name, name) for module in NOW for name in module.names],
    ids=lambda value: value.was if isinstance(value, Name) else value,
)
def test_every_parameter_is_there_and_the_same_ones_are_the_same(module, name):
    try:
        _, function = upstream(module, name.was)
    except AttributeError:
        assert name.was in NOT_IN_EVERY_JAX
        return
    function = function.__func__ if isinstance(function, classmethod) else function
    theirs = parameters(function) if callable(function) else {}
    theirs.pop("cls", None)
    if name.was == "Exported":  # its fields are names of their own
        return
    assert set(theirs) == {*name.same, *name.other}
    here = parameters(ours(name.now)) if name.same else {}
    for parameter in name.same:
        assert here[parameter].kind == theirs[parameter].kind
        if theirs[parameter].default is not inspect.Parameter.empty:
            assert as_text(here[parameter].default) == as_text(theirs[parameter].default)


def as_text(default):
    """A default to compare; those without a value of their own are the same."""
    return "none given" if type(default).__name__ in ("UnspecifiedOutputShapeDtype", "_Unspecified") else default


@pytest.mark.parametrize("name", [name for module in MODULES for name in module.names], ids=lambda name: name.was)
def test_what_it_becomes_exists(name):
    value = ours(name.now)
    for parameter in name.same:
        assert parameter in parameters(value)
    for note in (name.note, *name.other.values()):
        for parameter in re.findall(r"`(\w+)=", note):
            assert parameter in parameters(value) or parameter == "lowering_platform"


# --- the lines to write ---


def saved_by_hand(function, params, folder, options):
    model = tf.Module()
    model.params = tf.nest.map_structure(tf.Variable, params)
    model.call = tf.function(lambda x: function(model.params, x), input_signature=[tf.TensorSpec([None, 4])])
    tf.saved_model.save(model, folder, options=options)
    loaded = tf.saved_model.load(folder)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded.call(np.ones((2, 4), np.float32)))
    np.testing.assert_array_equal(tape.gradient(total, loaded.params["w"]), np.full((4, 3), 2.0))


LINES = dict.fromkeys(
    [
        *(name.line for module in MODULES for name in module.names if name.line),
        *(line for module in MODULES for name in module.names for line in name.lines.values()),
        *(idiom.line for idiom in IDIOMS if not idiom.needs),
    ]
)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """What the lines have names for."""
    params, x = {"w": np.ones((4, 3), np.float32)}, np.ones((2, 4), np.float32)

    def predict(params, x):
        return x @ params["w"]

    specification = jax.ShapeDtypeStruct(shapepoly.symbolic_shape("b, 4"), np.float32)
    exported = serialization.export(jnp.sin)(specification)
    folder = tmp_path_factory.mktemp("saved")
    convert.save_model(predict, params, str(folder), input_signatures=[x], polymorphic_shapes=None)
    return {
        "blob": exported.serialize(),
        "calltf": calltf,
        "convert": convert,
        "exported": exported,
        "f": jnp.sin,
        "jax": jax,
        "np": np,
        "params": params,
        "predict": predict,
        "saved": str(folder),
        "saved_by_hand": saved_by_hand,
        "serialization": serialization,
        "shapepoly": shapepoly,
        "size": specification.shape[0],
        "tf": tf,
        "x": x,
    }


@pytest.mark.parametrize("line", LINES)
def test_what_it_says_to_write_runs(line, namespace, tmp_path):
    with convert.install_as_jax2tf():  # what the line installs is installed already, and leaves with this
        value = eval(line, namespace | {"folder": str(tmp_path)})
        if line.startswith("convert.convert(f") and not line.endswith("(x)"):
            np.testing.assert_allclose(value(namespace["x"]), np.sin(namespace["x"]), rtol=1e-6)


def test_the_page_has_the_tables():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "python tests/migration_table.py writes it again"


def test_the_page_has_every_name():
    assert [name for module in NOW for name in public(module.name) if f"`{name}`" not in PAGE.read_text()] == []
