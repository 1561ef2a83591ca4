"""Programs that import jax2tf get jaxtf, whatever was imported first, and get jax2tf back."""

import functools
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from types import ModuleType

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jaxtf.convert
from jaxtf import shapepoly
from jaxtf.convert import CalltfRequiredError, ConversionOptionError, install_as_jax2tf
from jaxtf.convert._as_jax2tf.modules import JAX2TF, NAMES

LIBRARY = """
import jax.experimental.jax2tf
from jax.experimental import jax2tf
from jax.experimental.jax2tf import PolyShape, convert as to_tensorflow
from jax.export import DisabledSafetyCheck, export, is_symbolic_dim
"""


@pytest.fixture
def library(monkeypatch):
    """Imports a library that imports jax2tf, and returns it."""

    def imported(name="a_library"):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(LIBRARY, vars(module))
        return module

    return imported


def is_ours(function):
    return function.__module__.startswith("jaxtf.")


def test_a_program_that_imports_jax2tf_gets_ours():
    with install_as_jax2tf():
        from jax.experimental import jax2tf
        from jax.experimental.jax2tf import convert, shape_poly
        from jax.experimental.jax2tf.shape_poly import PolyShape

        assert convert is jax2tf.convert is jax.experimental.jax2tf.convert is jaxtf.convert.convert
        assert PolyShape is shape_poly.PolyShape is jax2tf.PolyShape is shapepoly.PolyShape
        np.testing.assert_array_equal(jax2tf.convert(jnp.negative)(tf.ones(2)), [-1.0, -1.0])
        found = jax2tf.eval_polymorphic_shape(lambda x: x, polymorphic_shapes=["b, _"])(np.ones((2, 3), np.float32))
        assert found[1] == "(b, 3)"


def test_every_name_is_of_the_module_and_can_be_listed():
    with install_as_jax2tf():
        for name, places in NAMES.items():
            module = importlib.import_module(name)
            assert set(places) <= set(dir(module))
            assert module.__all__ == sorted(places)
            assert all(getattr(module, attribute) is not None for attribute in places)
            assert importlib.util.find_spec(name) is module.__spec__


def test_no_submodule_has_upstreams_implementation():
    import jax.experimental.jax2tf.call_tf
    import jax.experimental.jax2tf.jax2tf

    with install_as_jax2tf():
        for name in ("call_tf", "jax2tf", "impl_no_xla"):
            with pytest.raises(ModuleNotFoundError, match=f"No module named '{JAX2TF}.{name}'"):
                importlib.import_module(f"{JAX2TF}.{name}")
        with pytest.raises(ImportError, match="cannot import name 'jax2tf'"):
            exec("from jax.experimental.jax2tf import jax2tf")
        with pytest.raises(
            AttributeError, match=re.escape(f"{JAX2TF} is that of jaxtf (install_as_jax2tf), which has")
        ):
            jax.experimental.jax2tf.jax2tf  # noqa: B018
    assert importlib.import_module(f"{JAX2TF}.jax2tf").__file__


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_order_of_imports_does_not_matter(library, order):
    sys.modules.pop(JAX2TF, None) if order == "after" else importlib.import_module(JAX2TF)
    if order == "before":
        early = library()
        assert not is_ours(early.to_tensorflow)
    with install_as_jax2tf():
        held = early if order == "before" else library()
        assert held.to_tensorflow is held.jax2tf.convert is jaxtf.convert.convert
        assert held.PolyShape is shapepoly.PolyShape
        assert held.is_symbolic_dim(*shapepoly.symbolic_shape("b"))
        assert held.jax.experimental.jax2tf is held.jax2tf
        # The rest of jax.export stays JAX's.
        assert held.export is jax.export.export
        assert held.DisabledSafetyCheck is jax.export.DisabledSafetyCheck


def test_what_was_there_comes_back(library):
    upstream = importlib.import_module(JAX2TF)
    early = library()
    names = {**vars(early)}
    modules = {name: module for name, module in sys.modules.items() if name.startswith(JAX2TF)}
    export = dict(vars(jax.export))
    with install_as_jax2tf():
        assert dict(vars(early)) != names
    assert {name: module for name, module in sys.modules.items() if name.startswith(JAX2TF)} == modules
    assert all(vars(early)[name] is value for name, value in names.items())
    assert vars(jax.export) == export
    assert jax.experimental.jax2tf is upstream is sys.modules[JAX2TF]


@pytest.mark.slow
def test_nothing_is_there_again_where_nothing_was():
    program = f"""
import sys, jax.experimental
from jaxtf.convert import install_as_jax2tf
with install_as_jax2tf():
    import {JAX2TF}
    from jax.experimental.jax2tf.examples import saved_model_lib
    assert "tensorflow" not in sys.modules
assert [name for name in sys.modules if name.startswith("{JAX2TF}")] == []
assert not hasattr(jax.experimental, "jax2tf")
from jax.experimental import jax2tf
assert jax2tf.convert.__module__.startswith("jax.")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_installed_twice_it_leaves_with_the_first():
    with install_as_jax2tf():
        first = sys.modules[JAX2TF]
        with install_as_jax2tf():
            assert sys.modules[JAX2TF] is first
        assert sys.modules[JAX2TF] is first
    assert sys.modules.get(JAX2TF) is not first


def test_what_somebody_else_puts_there_stays():
    other = ModuleType(JAX2TF)
    before = sys.modules.get(JAX2TF)
    with install_as_jax2tf():
        sys.modules[JAX2TF] = other
    assert sys.modules[JAX2TF] is other
    sys.modules[JAX2TF] = before or importlib.import_module(JAX2TF)


def test_jaxtf_itself_in_the_place_of_jax2tf_is_not_taken_for_jax2tf(monkeypatch):
    """What programs did before: `sys.modules["jax.experimental.jax2tf"] = jaxtf.convert`."""
    import jaxtf

    monkeypatch.setitem(sys.modules, JAX2TF, jaxtf.convert)
    with install_as_jax2tf():
        assert jaxtf.convert is sys.modules["jaxtf.convert"]
        from jax.experimental import jax2tf

        assert jax2tf.convert is jaxtf.convert.convert
    assert sys.modules[JAX2TF] is jaxtf.convert


def test_modules_that_are_not_loaded_yet_stay_so(monkeypatch):
    spec = importlib.util.find_spec("this")  # of the standard library: it prints a poem when it is loaded
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "this", lazy)
    spec.loader.exec_module(lazy)
    with install_as_jax2tf():
        assert type(lazy) is not ModuleType


def test_jax_export_answers_for_sizes_of_both_kinds():
    [theirs], [ours] = jax.export.symbolic_shape("a"), shapepoly.symbolic_shape("b")
    assert not jax.export.is_symbolic_dim(ours)
    names = dir(jax.export)
    with install_as_jax2tf():
        assert dir(jax.export) == names
        assert [jax.export.is_symbolic_dim(size) for size in (theirs, ours, 3, None)] == [True, True, False, False]
        assert inspect.getdoc(jax.export.is_symbolic_dim)
        if "symbolic_dim_bounds" in names:  # JAX 0.10 has none
            bounds = [jax.export.symbolic_dim_bounds(size) for size in (theirs + 2, ours + 2, 3)]
            assert bounds == [(3, float("inf")), (3, float("inf")), (3, 3)]


def test_call_tf_is_that_of_calltf_or_says_that_it_is_not_installed(monkeypatch):
    place = NAMES[JAX2TF]["call_tf"]
    monkeypatch.setitem(sys.modules, "jaxtf.calltf", None)
    monkeypatch.delitem(sys.modules, place, raising=False)
    with install_as_jax2tf():
        from jax.experimental.jax2tf import call_tf

        with pytest.raises(CalltfRequiredError) as refused:
            call_tf(functools.partial(tf.add, 1), has_side_effects=False)
    assert isinstance(refused.value, ImportError)
    assert str(refused.value).startswith(
        "jax2tf.call_tf is provided by jaxtf.calltf, which is not installed; asked to call: "
    )
    assert str(refused.value).endswith("remedy: pip install jaxtf-calltf")
    monkeypatch.undo()
    sys.modules.pop(place, None)
    if importlib.util.find_spec("jaxtf.calltf"):
        with install_as_jax2tf():
            assert jax.experimental.jax2tf.call_tf is importlib.import_module("jaxtf.calltf").call_tf


# --- convert_and_save_model ---


@pytest.fixture
def saved_model_lib():
    with install_as_jax2tf():
        from jax.experimental.jax2tf.examples import saved_model_lib
    return saved_model_lib


PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "b": np.ones(2, np.float32)}


def predict(params, inputs):
    return jnp.tanh(inputs["x"] @ params["w"] + params["b"])


def at(batch):
    return np.linspace(0, 1, 3 * batch, dtype=np.float32).reshape(batch, 3)


@pytest.mark.parametrize("enable_xla", [True, False])
def test_a_model_saved_with_an_open_size(saved_model_lib, tmp_path, enable_xla):
    saved_model_lib.convert_and_save_model(
        predict,
        PARAMS,
        str(tmp_path),
        input_signatures=[{"x": tf.TensorSpec([None, 3], tf.float32)}],
        polymorphic_shapes="(b, _)",
        with_gradient=True,
        enable_xla=enable_xla,
        compile_model=enable_xla,
    )
    loaded = tf.saved_model.load(str(tmp_path))
    for batch in (1, 4):
        inputs = {"x": at(batch)}
        np.testing.assert_allclose(loaded(inputs), predict(PARAMS, inputs), rtol=1e-6)
    assert list(loaded.signatures["serving_default"].structured_input_signature[1]) == ["inputs"]
    assert len(loaded.variables) == len(loaded.trainable_variables) == 2
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded({"x": at(2)}))
    found = tape.gradient(total, loaded.variables)
    expected = jax.tree.leaves(jax.grad(lambda params: predict(params, {"x": at(2)}).sum())(PARAMS))
    for gradient, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(gradient, other, rtol=1e-5)
    assert ("XlaCallModule" in operations(loaded)) == enable_xla


def operations(loaded):
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    return {node.op for node in graph.node} | {node.op for f in graph.library.function for node in f.node_def}


def test_several_signatures_are_those_of_one_input(saved_model_lib, tmp_path):
    signatures = [{"x": tf.TensorSpec([batch, 3], tf.float32)} for batch in (2, 5)]
    saved_model_lib.convert_and_save_model(predict, PARAMS, str(tmp_path), input_signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path))
    for batch in (2, 5):
        np.testing.assert_allclose(loaded({"x": at(batch)}), predict(PARAMS, {"x": at(batch)}), rtol=1e-6)
    assert loaded.signatures["serving_default"].structured_input_signature[1]["inputs"].shape == [2, 3]
    assert loaded.trainable_variables == []


def test_the_users_options_are_used_and_stay_as_they_were(saved_model_lib, tmp_path):
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False, function_aliases={})
    signature = [{"x": tf.TensorSpec([2, 3], tf.float32)}]
    saved_model_lib.convert_and_save_model(
        predict, PARAMS, str(tmp_path), input_signatures=signature, with_gradient=True, saved_model_options=options
    )
    assert options.experimental_custom_gradients is False
    loaded = tf.saved_model.load(str(tmp_path))
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded({"x": at(2)}))
    assert None not in tape.gradient(total, loaded.variables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"input_signatures": []},
            "input_signatures must be a list of one or more signatures of the one input. Got: []",
        ),
        (
            {"input_signatures": [tf.TensorSpec([None])] * 2, "polymorphic_shapes": "b"},
            "with polymorphic_shapes there must be one signature. Got: 2 in input_signatures",
        ),
    ],
)
def test_signatures_that_say_nothing_or_too_much_are_refused(saved_model_lib, tmp_path, options, message):
    with pytest.raises(ConversionOptionError, match=re.escape(message)):
        saved_model_lib.convert_and_save_model(predict, PARAMS, str(tmp_path), **options)
