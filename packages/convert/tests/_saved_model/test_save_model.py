"""SavedModels of JAX functions: what is in them, and what a process without JAX does with them."""

import json
import multiprocessing
import os
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import (
    ArgumentTypeError,
    ConversionOptionError,
    DisabledSafetyCheck,
    FunctionTypeError,
    GradientNotSaved,
    convert,
    save_exported,
    save_model,
    to_tflite,
)
from jaxtf.convert._function import constants
from jaxtf.convert._saved_model import whole_folder
from jaxtf.serialization import export

from . import kill_save

HERE = Path(__file__).parent
WEIGHTS = np.array([1.0, 2.0, 3.0], np.float32)


def waves(params, x):
    return (jnp.sin(params * x) * x).sum(axis=-1)


def table():
    """More than is kept in a module."""
    return np.linspace(-1, 1, 4 * 40_000, dtype=np.float32).reshape(4, 40_000)


def lookup(x):
    return jnp.tanh(x @ TABLE).sum(axis=-1)


TABLE = table()
PARAMS = {
    "w": np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2),
    "layers": [(np.ones(2, np.float32), np.zeros(2, np.float32))],
    "step": np.int32(3),
}


def network(params, images, options):
    scale, shift = params["layers"][0]
    hidden = jnp.tanh(images @ params["w"] * scale + shift)
    return {"scores": hidden * options["scale"], "sizes": (hidden.sum(), params["step"] + images.shape[0])}


def images(size):
    return np.linspace(0, 1, size * 4, dtype=np.float32).reshape(size, 4)


SCALE = {"scale": tf.TensorSpec([], tf.float32)}


def save_network(folder, **options):
    labels = folder.parent / "labels.txt"
    labels.write_text("cat dog", encoding="utf-8")
    return save_model(
        network,
        PARAMS,
        folder,
        input_signatures={
            "scoring": [tf.TensorSpec([None, 4], tf.float32), SCALE],
            "one": [tf.TensorSpec([1, 4], tf.float32), SCALE],
        },
        polymorphic_shapes=["(b, _)", None],
        assets={"labels": labels},
        metadata={"trained on": "nothing"},
        **options,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """SavedModels of everything below."""
    folder = tmp_path_factory.mktemp("models") / "saved"
    folder.mkdir()
    save_model(
        waves,
        WEIGHTS,
        folder / "orders",
        input_signatures=[tf.TensorSpec([None, 3], tf.float32)],
        polymorphic_shapes=["(b, _)"],
        gradient_order=3,
    )
    save_network(folder / "network")
    save_model(lambda params, x: lookup(x), {}, folder / "constants", input_signatures=[tf.TensorSpec([2, 4])])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    for name, function, shape in [("plain", lambda x: x**3, [2]), ("captured", lookup, [2, 4])]:
        module = tf.Module()
        module.f = tf.function(convert(function), autograph=False, input_signature=[tf.TensorSpec(shape)])
        tf.saved_model.save(module, str(folder / name), options=options)
    return folder


@pytest.fixture(scope="module")
def used(run_without_jax, folder):
    """What the process without JAX found, and what it printed meanwhile."""
    done = run_without_jax(HERE / "without_jax.py", folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def total(function, *args):
    return lambda params: function(params, *args).sum()


@pytest.mark.slow
def test_as_many_orders_of_gradient_as_asked_survive_without_jax(used):
    x = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = [total(waves, x)]
    for _ in range(3):
        expected.append(lambda w, f=expected[-1]: jax.grad(lambda w: f(w).sum())(w))
    found = used[0]["orders"]["gradients"]
    np.testing.assert_allclose(found[0], waves(WEIGHTS, x), rtol=1e-5)
    for order in (1, 2, 3):
        np.testing.assert_allclose(found[order], expected[order](WEIGHTS), rtol=1e-5)
    np.testing.assert_allclose(used[0]["orders"]["persistent"], expected[3](WEIGHTS), rtol=1e-5)


@pytest.mark.slow(1)
def test_orders_of_gradient_survive_in_graphs_too(used):
    first = jax.grad(total(waves, np.ones((2, 3), np.float32)))
    expected = jax.grad(lambda w: first(w).sum())(WEIGHTS)
    np.testing.assert_allclose(used[0]["orders"]["in graph"], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["orders", "plain"])
def test_one_order_more_is_refused_with_the_remedy(used, name):
    assert "holds no higher order of gradient" in used[0][name]["beyond"]
    assert "`jaxtf.convert.save_model(..., gradient_order=...)` one higher" in used[0][name]["beyond"]


def test_a_plain_save_keeps_the_first_order_and_loads_without_warnings(used):
    found, messages = used
    assert found["plain"]["first"] == found["plain"]["persistent"] == [3.0, 12.0]
    assert "custom gradients" not in messages


def test_signatures_serve_the_numbers_of_jax_at_any_batch_size(used):
    for size, found in used[0]["network"]["served"].items():
        expected = network(PARAMS, images(int(size)), {"scale": 2.0})
        assert set(found) == {"scores", "sizes_0", "sizes_1"}
        np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-5)
        np.testing.assert_allclose(found["sizes_0"], expected["sizes"][0], rtol=1e-5)
        assert found["sizes_1"] == 3 + int(size)


def test_the_loaded_object_is_a_reusable_saved_model(used):
    found = used[0]["network"]
    np.testing.assert_allclose(found["called"]["scores"], found["served"]["5"]["scores"], rtol=1e-5)
    assert (found["variables"], found["trainable"], found["regularization"]) == (4, 3, 0)
    assert found["step"] == 3
    assert found["asset"] == "cat dog"


def test_fine_tuning_moves_the_weights(used):
    assert used[0]["network"]["moved"] == [True, True, True]
    losses = used[0]["network"]["losses"]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", ["constants", "captured"])
def test_large_constants_have_no_gradient_and_the_arguments_that_of_jax(used, folder, name):
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(used[0][name]["result"], lookup(x), rtol=1e-4)
    np.testing.assert_allclose(used[0][name]["gradient"], jax.grad(lambda x: lookup(x).sum())(x), rtol=1e-4, atol=1e-3)


def test_large_constants_are_saved_beside_the_graph(folder):
    assert (folder / "constants" / "saved_model.pb").stat().st_size < TABLE.nbytes / 4
    reader = tf.train.load_checkpoint(str(folder / "constants" / "variables" / "variables"))
    shapes = reader.get_variable_to_shape_map().values()
    assert [4, 40_000] in shapes


def test_what_was_saved_is_reported(tmp_path):
    saved = save_network(tmp_path / "network", gradient_order=2)
    assert str(saved.signatures["scoring"]) == (
        "(images: float32[?,4], options_scale: float32[]) -> scores: float32[?,2], sizes_0: float32[], sizes_1: int32[]"
    )
    assert saved.parameter_bytes == 4 * (8 + 2 + 2 + 1)
    assert saved.constant_bytes == 0
    assert str(saved).splitlines()[0].endswith("2 orders of gradient")
    written = json.loads((tmp_path / "network" / "assets.extra" / "metadata.json").read_text(encoding="utf-8"))
    assert written == {"trained on": "nothing"}


def test_custom_containers_of_parameters_are_saved_by_their_paths(tmp_path):
    class Layer:
        def __init__(self, w, b):
            self.w, self.b = w, b

    jax.tree_util.register_pytree_with_keys(
        Layer,
        lambda x: (((jax.tree_util.GetAttrKey("w"), x.w), (jax.tree_util.GetAttrKey("b"), x.b)), None),
        lambda _, leaves: Layer(*leaves),
    )
    params = {1: Layer(np.float32(2), np.float32(1)), 7: np.float32(3)}

    def function(params, x):
        return Layer(params[1].w * x + params[1].b, params[7])

    save_model(function, params, tmp_path, input_signatures=[tf.TensorSpec([], tf.float32)])
    loaded = tf.saved_model.load(str(tmp_path))
    assert float(loaded.params["1"]["w"]) == 2
    assert {name: float(value) for name, value in loaded(4.0).items()} == {"w": 9.0, "b": 3.0}


def test_inputs_with_defaults_may_be_left_out(tmp_path):
    def function(params, x, y=2.0):
        return params * x * y

    scalar = tf.TensorSpec([], tf.float32)
    save_model(function, np.float32(3), tmp_path, input_signatures={"short": [scalar], "long": [scalar, scalar]})
    loaded = tf.saved_model.load(str(tmp_path))
    assert float(loaded.signatures["short"](x=tf.constant(5.0))["output_0"]) == 30
    assert float(loaded.signatures["long"](x=tf.constant(5.0), y=tf.constant(1.0))["output_0"]) == 15
    assert float(loaded(5.0)) == 30


NUMBERS = {"offset": 3, "scale": 0.5, "made": lambda: jnp.asarray(2.0), "flag": True}


def weak(params, x):
    return {
        "offset": x.astype(jnp.uint8) + params["offset"],
        "scaled": jnp.tanh(x * params["scale"]) * params["made"],
        "chosen": jnp.where(params["flag"], x, 0),
    }


@pytest.mark.slow(1)
@pytest.mark.parametrize("native", [True, False], ids=["native mode", "graph mode"])
@pytest.mark.parametrize("x64", [False, True])
def test_python_numbers_among_the_parameters_take_the_dtype_of_the_other_operand(tmp_path, x64, native):
    x = np.array([0.5, 250, 254]).astype(jnp.bfloat16)
    with jax.enable_x64(x64):
        params = {**NUMBERS, "made": NUMBERS["made"]()}
        saved = save_model(
            weak,
            params,
            tmp_path,
            input_signatures=[tf.TensorSpec([None], tf.bfloat16)],
            polymorphic_shapes=["(b,)"],
            gradient_order=2,
            native_serialization=native,
        )
        expected = jax.jit(weak)(params, x)
        slope = jax.grad(lambda scale: weak({**params, "scale": scale}, x)["scaled"].sum())
        first, second = slope(0.5), jax.grad(slope)(0.5)
    loaded = tf.saved_model.load(str(tmp_path))
    assert expected["scaled"].dtype == jnp.bfloat16
    for found in (loaded(tf.constant(x)), loaded.signatures["serving_default"](x=tf.constant(x))):
        for name, value in expected.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_allclose(np.float32(found[name]), np.float32(value), rtol=2**-7)
    wide = "64" if x64 else "32"
    names = {"offset": f"int{wide}", "scale": f"float{wide}", "made": f"float{wide}", "flag": "bool"}
    assert {name: variable.dtype.name for name, variable in loaded.params.items()} == names
    assert saved.parameter_bytes == 3 * int(wide) // 8 + 1
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            total = tf.reduce_sum(loaded(tf.constant(x))["scaled"])
        gradient = inner.gradient(total, loaded.params["scale"])
    assert gradient.dtype == first.dtype
    np.testing.assert_allclose(gradient, first, rtol=2**-6)
    np.testing.assert_allclose(outer.gradient(gradient, loaded.params["scale"]), second, rtol=2**-6)


@pytest.mark.parametrize("x64", [False, True])
def test_arrays_are_saved_in_the_dtype_that_jax_computes_in_and_variables_as_they_are(tmp_path, x64):
    params = {"w": np.arange(3) / 3, "n": np.arange(3), "c": np.complex128(1j), "v": tf.Variable(np.arange(3) / 7)}
    with jax.enable_x64(x64):
        saved = save_model(
            lambda p, x: x * p["w"] + p["n"] * p["c"].imag + p["v"],
            params,
            tmp_path,
            input_signatures=[tf.TensorSpec([3], tf.float32)],
        )
    wide = {"w": "float64", "n": "int64", "c": "complex128", "v": "float64"}
    narrow = {"w": "float32", "n": "int32", "c": "complex64", "v": "float64"}
    loaded = tf.saved_model.load(str(tmp_path))
    assert {name: variable.dtype.name for name, variable in loaded.params.items()} == (wide if x64 else narrow)
    assert saved.parameter_bytes == sum(v.dtype.size * v.shape.num_elements() for v in loaded.variables)
    reader = tf.train.load_checkpoint(str(tmp_path / "variables" / "variables"))
    held = {name.split("/")[1]: dtype.name for name, dtype in reader.get_variable_to_dtype_map().items() if "/" in name}
    assert {name: held[name] for name in wide} == (wide if x64 else narrow)
    expected = params["w"] + params["n"] + params["v"].numpy()
    found = loaded(tf.ones(3))
    assert found.dtype == ("float64" if x64 else "float32")
    np.testing.assert_allclose(found, expected, rtol=1e-15 if x64 else 1e-6)


def test_an_integer_too_large_for_jax_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError) as refused:
        save_model(lambda p, x: x * p["n"], {"n": 2**31}, tmp_path, input_signatures=[tf.TensorSpec([2])])
    assert str(refused.value) == (
        "args[0]['n'] is 2147483648, too large for int32, the dtype that JAX gives a Python integer\n"
        "  remedy: turn on jax_enable_x64, pass a float, or an array of the dtype that you want"
    )


def test_parameters_that_are_no_numbers_are_refused_by_their_path(tmp_path):
    for wrong, says in (
        ("text", r"args\[0\]\['a'\] is not a numeric value: found str"),
        (jax.random.key(0), "key<fry>"),
    ):
        with pytest.raises(ArgumentTypeError, match=says):
            save_model(lambda p, x: x, {"a": wrong}, tmp_path, input_signatures=[tf.TensorSpec([2])])


def loop(params, x):
    return jax.lax.while_loop(lambda x: x.sum() < 10, lambda x: x * params, x)


def test_a_function_that_jax_cannot_differentiate_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(GradientNotSaved) as caught:
        save_model(loop, np.float32(2), tmp_path, input_signatures=[tf.TensorSpec([2], tf.float32)])
    text = str(caught.value)
    assert text.startswith(
        "Error when tracing gradients for SavedModel: JAX cannot differentiate 'loop' in reverse mode"
    )
    assert "remedy: save it with a lower gradient_order, 0 for no gradient at all" in text


def test_a_function_that_jax_cannot_differentiate_saves_without_gradient(tmp_path):
    save_model(loop, np.float32(2), tmp_path, input_signatures=[tf.TensorSpec([2], tf.float32)], gradient_order=0)
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded([1.0, 1.0]), [8.0, 8.0])
    with pytest.raises(LookupError, match="does not support gradients"), tf.GradientTape() as tape:
        tape.gradient(loaded(tf.constant([1.0, 1.0])), loaded.params)


def test_a_plain_save_of_what_jax_cannot_differentiate_gives_the_documented_error(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        convert(lambda x: loop(2.0, x)), autograph=False, input_signature=[tf.TensorSpec([2], tf.float32)]
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    with pytest.raises(ValueError, match="Error when tracing gradients for SavedModel"):
        tf.saved_model.save(module, str(tmp_path), options=options)
    without = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(tmp_path), options=without)
    np.testing.assert_array_equal(tf.saved_model.load(str(tmp_path)).f([1.0, 1.0]), [8.0, 8.0])


def test_constants_that_no_graph_can_hold_are_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "GRAPH_BYTES", TABLE.nbytes - 1)
    module = tf.Module()
    module.f = tf.function(convert(lookup), autograph=False, input_signature=[tf.TensorSpec([2, 4])])
    with pytest.raises(ValueError, match="Error when tracing gradients") as caught:
        tf.saved_model.save(module, str(tmp_path / "plain"))
    text = str(caught.value.__cause__)
    assert "'lookup' closes over 640,000 bytes of large arrays; the graph of a SavedModel holds up to 639,999" in text
    assert "remedy: write it with jaxtf.convert.save_model, which makes variables of them" in text
    save_model(lambda _, x: lookup(x), {}, tmp_path / "model", input_signatures=[tf.TensorSpec([2, 4])])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gradient_order": -1}, "gradient_order must be a number of orders, 0 for no gradient. Got: -1"),
        ({"input_signatures": {}}, "input_signatures is empty"),
        ({"input_signatures": {"a": tf.TensorSpec([])}}, "the signature 'a' of input_signatures must be a list"),
        ({"polymorphic_shapes": "(b,)"}, "polymorphic_shapes of save_model must be a list"),
        (
            {"polymorphic_shapes": [None, "(b,)"]},
            "polymorphic_shapes of save_model must have one entry for each input, and none for the parameters. The "
            "signature 'serving_default' has 1 input. Got: 2 entries: [None, '(b,)']\n"
            "  remedy: leave out the first entry",
        ),
        (
            {"polymorphic_shapes": ["(b,)"], "input_signatures": {"a": [SCALE], "b": [SCALE, SCALE]}},
            "The signature 'b' has 2 inputs. Got: 1 entry: ['(b,)']\n"
            "  remedy: write one for each input, None where no size of it is open; all signatures share them",
        ),
        (
            {"input_signatures": tf.TensorSpec([2])},
            "the signature 'serving_default' of input_signatures must be a list of specifications, one for each "
            "input. Got: TensorSpec(shape=(2,), dtype=tf.float32, name=None)\n"
            "  remedy: put it in brackets, also for one input: [tf.TensorSpec([None, 4], tf.float32)]",
        ),
        (
            {"input_signatures": [(None, 4)]},
            "input_signatures must say shape and dtype of 'x', as tf.TensorSpec([None, 4], tf.float32) does. "
            "Got: (None, 4)",
        ),
        ({"metadata": {"a": object()}}, "metadata must be what JSON can hold"),
        ({"metadata": {"a": 1, 2: 3}}, "metadata must be what JSON can hold"),
        ({"metadata": {"a": float("nan")}}, "metadata must be what JSON can hold: Out of range float values"),
        ({"assets": {"labels": "/"}}, "assets['labels'] must be a file. Got the folder '/'"),
        ({"input_signatures": {"__saved_model_init_op": [SCALE]}}, "TensorFlow runs what has this name when it loads"),
        (
            {"assets": ["labels.txt"]},
            "assets of save_model must be a mapping of names to files, such as {'labels': 'labels.txt'}. "
            "Got: ['labels.txt']\n  remedy: give each file a name; loaded, the model has it as assets[name].asset_path",
        ),
        (
            {"assets": "labels.txt"},
            "must be a mapping of names to files, such as {'labels': 'labels.txt'}. Got: 'labels",
        ),
        ({"assets": {1: __file__}}, "must be a mapping of names to files, both of them texts. Got: 1: '"),
        ({"assets": {"labels": 3}}, "must be a mapping of names to files, both of them texts. Got: 'labels': 3"),
        ({"assets": {"labels": "no.txt"}}, "the file of assets['labels'] does not exist: 'no.txt'"),
        (
            {"input_signatures": [3]},
            "input_signatures must say shape and dtype of 'x', as tf.TensorSpec([None, 4], tf.float32) does. Got: 3",
        ),
        ({"input_signatures": {1: [SCALE]}}, "a signature of input_signatures must have a text for a name. Got: 1"),
        ({"polymorphic_constraints": "a >= b"}, "must be a list of texts, such as ['a >= b']. Got: 'a >= b'"),
        ({"polymorphic_constraints": 3}, "polymorphic_constraints must be a list of texts, such as ['a >= b']. Got: 3"),
        (
            {"disabled_checks": DisabledSafetyCheck.platform()},
            "disabled_checks must be a list of DisabledSafetyCheck, such as [DisabledSafetyCheck.platform()]. "
            "Got: DisabledSafetyCheck('platform')",
        ),
        ({"disabled_checks": ["platform"]}, "disabled_checks must be a list of DisabledSafetyCheck, such as ["),
        ({"platforms": ("sparc",)}, "must be a sequence containing a subset"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_written(tmp_path, options, says):
    given = {"input_signatures": [tf.TensorSpec([2], tf.float32)], **options}
    with pytest.raises(ConversionOptionError, match=re.escape(says)):
        save_model(lambda params, x: params * x, np.float32(1), tmp_path / "model", **given)
    assert not (tmp_path / "model").exists()


def test_what_is_not_a_function_or_a_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FunctionTypeError, match=r"save_model needs a function, found dict: \{\}"):
        save_model({}, jnp.sin, "model", input_signatures=[tf.TensorSpec([2])])
    with pytest.raises(ConversionOptionError, match="save_model needs a folder to write, found NoneType: None"):
        save_model(jnp.sin, {}, None, input_signatures=[tf.TensorSpec([2])])
    assert list(tmp_path.iterdir()) == []


def numbers_of(folder):
    """Which save the parts of a SavedModel by `kill_save.save` are of."""
    loaded = tf.saved_model.load(str(folder))
    weight, of_graph = loaded(tf.zeros(1000))
    metadata = json.loads((folder / "assets.extra" / "metadata.json").read_text())
    asset = Path(loaded.assets["number"].asset_path.numpy().decode()).read_text()
    return {*weight.numpy().astype(int), *of_graph.numpy().astype(int), metadata["number"], int(asset)}


@pytest.mark.slow
def test_a_save_that_is_killed_leaves_the_model_before_or_after_it(tmp_path):
    rounds = 100 if os.environ.get("JAXTF_FULL") == "1" else 6
    random = np.random.default_rng(0)
    folder = tmp_path / "model"
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["jax", "tensorflow"])  # imported once, not by each process
    for _ in range(rounds):
        saved, sender = processes.Pipe(duplex=False)
        process = processes.Process(target=kill_save.save_without_end, args=(folder, sender))
        process.start()
        sender.close()
        for number in range(1, int(random.integers(2, 5))):
            assert saved.recv() == number
        time.sleep(random.uniform(0, 0.25))  # a save takes about 0.2 s
        process.kill()
        process.join()
        assert len(numbers_of(folder)) == 1
        assert len(list((folder / "assets").iterdir())) == 1
    partial = [entry for entry in tmp_path.iterdir() if entry.name.endswith(".partial")]
    assert len(partial) <= rounds


def test_saves_at_the_same_time_into_one_folder_leave_one_of_them(tmp_path):
    folder = tmp_path / "model"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: kill_save.save(folder, number), range(8)))
    assert len(numbers_of(folder)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def small(folder, **options):
    return save_model(lambda p, x: p * x, np.float32(2), folder, input_signatures=[tf.TensorSpec([2])], **options)


def test_assets_and_metadata_of_an_earlier_save_do_not_stay(tmp_path):
    (tmp_path / "words.txt").write_text("words")
    folder = tmp_path / "above" / "model"
    small(folder, assets={"words": tmp_path / "words.txt"}, metadata={"version": 1})
    folder.chmod(0o750)
    small(folder)
    assert list((folder / "assets").iterdir()) == []
    assert not (folder / "assets.extra").exists()
    assert folder.stat().st_mode & 0o777 == 0o750
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("empty", "assets/photo.jpg"),
        ("empty", "debug/log.txt"),
        ("empty", "variables/notes"),
        ("empty", "variables/variables.index"),
        ("empty", "assets.extra/metadata.json"),
        ("empty", "fingerprint.pb"),
        ("earlier", "assets/photo.jpg"),
        ("earlier", "assets/more/words.txt"),
        ("earlier", "assets/.hidden"),
        ("earlier", "debug/log.txt"),
        ("earlier", "variables/notes"),
        ("earlier", "variables/variables.index.old"),
        ("earlier", "variables/more/variables.index"),
        ("earlier", "assets.extra/more/metadata.json"),
        ("earlier", "photo.jpg"),
        ("damaged", "assets/words.txt"),
    ],
)
def test_files_of_the_user_in_the_folders_of_a_saved_model_are_not_deleted(tmp_path, folder, file):
    (tmp_path / "words.txt").write_text("words")
    place = tmp_path / folder
    if folder != "empty":
        small(place, assets={"words": tmp_path / "words.txt"}, metadata={"version": 1})
    if folder == "damaged":
        (place / "saved_model.pb").write_bytes(b"text")
    (place / file).parent.mkdir(parents=True, exist_ok=True)
    (place / file).write_text("kept")
    exported = export(jax.jit(lambda x: x))(np.float32([1, 2]))
    for save in (small, lambda place: save_exported(exported, place)):
        with pytest.raises(ConversionOptionError, match="holds what it did not write: ") as refused:
            save(place)
        assert file.partition("/more/")[0] in str(refused.value)
        assert (place / file).read_text() == "kept"


def test_what_tensorflow_wrote_is_replaced(tmp_path):
    for words in ("a/words.txt", "b/words.txt"):  # files of the same name get other names
        (tmp_path / words).parent.mkdir()
        (tmp_path / words).write_text(words)
    root = tf.train.Checkpoint(v=tf.Variable(1.0))
    root.files = [tf.saved_model.Asset(str(tmp_path / words)) for words in ("a/words.txt", "b/words.txt")]
    options = tf.saved_model.SaveOptions(save_debug_info=True)
    root.f = tf.function(lambda: root.v, input_signature=[])
    tf.saved_model.save(root, str(tmp_path / "model"), options=options)
    assert len(list((tmp_path / "model" / "assets").iterdir())) == 2
    assert list((tmp_path / "model" / "debug").iterdir())
    small(tmp_path / "model")
    assert not (tmp_path / "model" / "debug").exists()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("x, X", ["x", "X_1"]),
        ("größe", ["gr__e"]),
        ("größe, gr__e", ["gr__e", "gr__e_1"]),
        ("变量, _", ["value", "value_1"]),
        ("self", ["self_1"]),
        ("self_1, self, Self", ["self_1", "self_2", "Self_3"]),
        ("name, fn, args, kwargs, cls, training", ["name", "fn", "args", "kwargs", "cls", "training"]),
    ],
)
def test_any_name_of_a_parameter_has_one_in_the_signature(tmp_path, parameters, expected):
    names = parameters.split(", ")
    fun = eval(f"lambda {parameters}: {' + '.join(f'{i} * {name}' for i, name in enumerate(names, 1))}")
    with_params = eval(f"lambda params, {parameters}: fun({parameters})", {"fun": fun})
    signature = [tf.TensorSpec([2])] * len(names)
    saved = save_model(with_params, {}, tmp_path, input_signatures=signature)
    assert sorted(saved.signatures["serving_default"].inputs) == sorted(expected)
    inputs = [np.float32([i, 10 * i]) for i in range(len(names))]
    loaded = tf.saved_model.load(str(tmp_path))
    tensors = map(tf.constant, inputs)
    [found] = loaded.signatures["serving_default"](**dict(zip(expected, tensors, strict=True))).values()
    np.testing.assert_array_equal(found, fun(*inputs))
    np.testing.assert_array_equal(loaded(*inputs), fun(*inputs))
    model = to_tflite(fun, input_signature=signature)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
    [found] = runner(**dict(zip(expected, inputs, strict=True))).values()
    np.testing.assert_array_equal(found, fun(*inputs))


def test_a_link_to_a_folder_stays_one(tmp_path):
    small(tmp_path / "1")
    (tmp_path / "latest").symlink_to("1")
    small(tmp_path / "latest", metadata={"version": 2})
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "1" / "assets.extra" / "metadata.json").exists()


@pytest.mark.parametrize("is_supported", [True, False])
def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch, is_supported):
    folder = tmp_path / "model"
    small(folder, metadata={"version": 1})
    if not is_supported:
        monkeypatch.setattr(whole_folder, "_EXCHANGES", False)

    def full(folder):
        raise OSError(28, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(whole_folder, "_flush", full)
        with pytest.raises(OSError, match="full"):
            small(folder)
    assert (folder / "assets.extra" / "metadata.json").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    small(folder)
    assert not (folder / "assets.extra").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "found an empty path"),
        (".", "cannot be the working directory"),
        ("*glob?[x]", "TensorFlow takes * ? [ in the path"),
        ("back\\slash", "for a pattern"),
        ("a[b]/model", "for a pattern"),
        ("gs://bucket/model", "a folder of this machine"),
        (b"model", "needs a folder to write, found bytes"),
        ("file", "found a file"),
        ("home", "holds what it did not write: photo.jpg"),
        ("served", "holds what it did not write: assets.extra/tf_serving_warmup_requests"),
    ],
)
def test_folders_that_cannot_be_replaced_or_read_again_are_refused(tmp_path, monkeypatch, path, says):
    monkeypatch.chdir(tmp_path)
    for file in ("file", "home/photo.jpg", "served/assets.extra/tf_serving_warmup_requests"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("kept")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConversionOptionError, match=re.escape(says)):
        small(path)
    assert sorted(tmp_path.rglob("*")) == before
