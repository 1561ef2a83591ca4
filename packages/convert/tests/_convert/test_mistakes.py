"""Mistakes that people make with `convert` and its neighbours: each has a message of ours that says what to do."""

import dataclasses
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.experimental.sparse import BCSR

from jaxtf.convert import (
    ArgumentTypeError,
    ConversionStateError,
    FunctionTypeError,
    GraphModeUnsupported,
    convert,
    convert_exported,
    convert_stablehlo,
    save_model,
    to_tflite,
    verify,
)
from jaxtf.serialization import LapackNeeded, UnstableCustomCall, export
from jaxtf.shapepoly import ScopeError

X = tf.ones((2, 3))


@tf.function
def of_tensorflow(x):
    return tf.sin(x)


def calls_tensorflow(x):
    return tf.sin(x) + 1


def message(error, call):
    """What an error says, with its notes."""
    with pytest.raises(error) as raised:
        call()
    return "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])


@pytest.mark.parametrize("user", [convert, verify, lambda fun: save_model(fun, {}, "folder", input_signatures=[])])
def test_a_function_of_tensorflow_is_not_one_of_jax(user):
    text = message(FunctionTypeError, lambda: user(of_tensorflow))
    assert re.match(r"\w+ needs a JAX function, found the TensorFlow function 'of_tensorflow'\n", text)
    assert "remedy: it runs in TensorFlow as it is; to call TensorFlow from JAX, use jaxtf.calltf.call_tf" in text


def test_a_call_of_tensorflow_in_a_function_is_named_with_its_line():
    text = message(FunctionTypeError, lambda: convert(calls_tensorflow)(X))
    assert text.startswith("'calls_tensorflow' calls TensorFlow with a value that JAX traces")
    assert f"called at: {__file__}:{calls_tensorflow.__code__.co_firstlineno + 1}\n" in text


def test_numpy_on_a_traced_value_keeps_the_error_of_jax():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        convert(lambda x: np.sin(np.asarray(x)))(X)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5.0, "convert needs a function, found float: 5.0"),
        ("model.jaxtf", "remedy: for an artifact in a file, convert_exported(path)"),
        (
            export(jnp.sin)(jax.ShapeDtypeStruct((3,), "float32")),
            "found an exported function\n  remedy: use convert_exported",
        ),
    ],
)
def test_what_is_not_a_function_is_a_type_error_with_a_remedy(given, text):
    assert text in message(TypeError, lambda: convert(given))


def test_a_path_in_place_of_an_artifact_is_to_be_read_first():
    text = message((ValueError, TypeError), lambda: verify("model.jaxtf"))
    assert "read the file first: pathlib.Path(path).read_bytes()" in text


def test_a_path_without_a_file_is_named():
    assert "model.jaxtf" in message(FileNotFoundError, lambda: convert_exported("model.jaxtf"))


def test_one_text_for_several_arguments_is_explained_where_tracing_fails():
    wrong = convert(lambda x, w: x @ w, polymorphic_shapes="(b, _)")
    text = message(TypeError, lambda: wrong(X, tf.ones((3, 4))))
    assert (
        "polymorphic_shapes='(b, _)' is one text for all 2 arguments: args[0] has shape (b, 3), args[1] has shape "
        "(b, 4)\n  remedy: if it is meant for one of them, give a list with an entry for each: ['(b, _)', None]" in text
    )
    right = convert(lambda x, w: x @ w, polymorphic_shapes=["(b, _)", None])
    assert right(X, tf.ones((3, 4))).shape == (2, 4)


def test_the_error_of_keras_for_a_symbolic_size_leads_to_the_line_that_helps():
    def as_keras_standardizes_shapes(x):
        if not all(isinstance(size, int) for size in x.shape):
            raise ValueError(f"Cannot convert '{x.shape}' to a shape. Found invalid dimension '{x.shape[0]}'")
        return x

    text = message(ValueError, lambda: convert(as_keras_standardizes_shapes, polymorphic_shapes="(b, _)")(X))
    assert "remedy: jaxtf.convert.install_as_jax2tf() before the model is converted" in text


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    """As a module of Equinox: a pytree with a function among its leaves."""

    weight: object
    activation: object


@pytest.mark.parametrize("user", [lambda f: convert(f)(LAYER, X), lambda f: export(f)(LAYER, X)])
def test_a_module_with_functions_in_it_is_to_be_partitioned(user):
    text = message(ArgumentTypeError, lambda: user(lambda layer, x: layer.activation(x @ layer.weight)))
    assert text.startswith("args[0].activation is not a")
    assert "arrays, rest = eqx.partition(module, eqx.is_array), and eqx.combine(arrays, rest) in the function" in text


LAYER = Layer(np.ones((3, 2), np.float32), jnp.tanh)


def test_a_size_that_was_kept_from_an_earlier_trace_is_explained():
    kept = []

    def caching(x):
        kept.append(x.shape[0])
        return x[: min(kept)] if len(kept) < 2 else x[: jax.core.max_dim(kept[0], x.shape[0])]

    call = convert(caching, polymorphic_shapes="(b, _)")
    call(X)
    text = message(ScopeError, lambda: convert(lambda x: x * (kept[0] > x.shape[0]), polymorphic_shapes="(b, _)")(X))
    assert "if you made only one of them, the other was kept from an earlier trace" in text


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())])
def test_a_call_inside_a_transformation_is_refused_also_without_a_traced_argument(transform):
    converted = convert(jnp.sin)
    text = message(ConversionStateError, lambda: transform(lambda x: converted(1.0))(jnp.ones(2)))
    assert "remedy: call the JAX function itself there; convert what jit, grad or vmap returns" in text
    assert converted(1.0).shape == ()


def called_back(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def by_a_primitive_of_its_own():
    """A function with a primitive whose rule calls back: JAX says 'EmitPythonCallback not supported on tf backend'."""
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    primitive = Primitive("calls_back_by_its_rule")
    primitive.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        results, _, _ = mlir.emit_python_callback(
            ctx, lambda x: (np.sin(x),), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        return results

    mlir.register_lowering(primitive, rule)
    return primitive.bind


@pytest.mark.parametrize("native", [True, False])
def test_a_callback_is_refused_with_its_line(native):
    text = message(NotImplementedError, lambda: convert(called_back, native_serialization=native)(X))
    assert "'called_back' calls back into Python, by jax.pure_callback" in text
    assert f"\n  called at: {__file__}:{called_back.__code__.co_firstlineno + 1}\n" in text
    assert "remedy: leave the callback out of the function that is exported" in text


SQUARE = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.scipy.linalg.schur(x)[0],
        lambda x: jax.scipy.linalg.qr(x, pivoting=True)[1],
        jax.scipy.linalg.hessenberg,
    ],
)
def test_a_factorization_that_neither_mode_has_does_not_lead_to_the_other(function):
    text = message(GraphModeUnsupported, lambda: convert(function, native_serialization=False)(SQUARE))
    assert "remedy:   compute it in JAX, outside of the function that is converted" in text
    assert "native mode" not in text
    message(LapackNeeded, lambda: convert(function)(SQUARE))


def of_a_sparse_matrix(x):
    rows = BCSR((jnp.ones(2, x.dtype), jnp.array([0, 2]), jnp.array([0, 1, 1, 2])), shape=(3, 3))
    return rows @ x


@pytest.mark.parametrize(
    ("error", "function"), [(LapackNeeded, jnp.linalg.eigvals), (UnstableCustomCall, of_a_sparse_matrix)]
)
def test_a_call_that_tensorflow_has_not_leads_to_graph_mode(error, function):
    text = message(error, lambda: convert(function)(SQUARE))
    assert "TensorFlow has none of these calls: native_serialization_disabled_checks is for" in text
    assert "remedy: graph mode (native_serialization=False)" in text
    np.testing.assert_allclose(convert(function, native_serialization=False)(SQUARE), function(SQUARE))


def test_a_callback_of_a_primitive_is_refused_in_graph_mode():
    text = message(NotImplementedError, lambda: convert(by_a_primitive_of_its_own(), native_serialization=False)(X))
    assert "calls back into Python, by a host callback" in text


def test_a_check_of_equinox_says_how_to_turn_it_off(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages" / "equinox"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from ._errors import error_if")
    (folder / "_errors.py").write_text(
        "import jax\n"
        "def error_if(x, wrong):\n"
        "    return jax.pure_callback(lambda x, wrong: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x, wrong)\n"
    )
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delitem(__import__("sys").modules, "equinox", raising=False)
    import equinox

    def checked(x):
        return jnp.sin(equinox.error_if(x, x.sum() < 0))

    text = message(NotImplementedError, lambda: convert(checked)(X))
    monkeypatch.delitem(__import__("sys").modules, "equinox", raising=False)
    assert f"\n  called at: {__file__}:{checked.__code__.co_firstlineno + 1}\n" in text
    assert "set the environment variable EQX_ON_ERROR=nan" in text


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("size", [1, 1 << 15])
def test_a_gradient_that_jax_cannot_make_is_refused_with_the_line(native, size):
    constant = jnp.ones(size)

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def times(n, x):
        return n * x

    times.defjvp(lambda n, primals, tangents: (times(n, *primals), n * tangents[0]))

    def function(n, x):
        return times(n, x) * constant.sum()

    n, x = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = convert(function, native_serialization=native)(n, x)
    text = message(ValueError, lambda: tape.gradient(y, x))
    assert text.startswith("no VJP of 'function' can be made: the rule of a jax.custom_jvp function")
    assert f"\n  called at: {__file__}:{function.__code__.co_firstlineno + 1}\n" in text


@pytest.mark.filterwarnings("ignore::UserWarning")  # tf.lite.Interpreter moves to ai_edge_litert
def test_a_tflite_model_of_nested_results_has_the_names_of_a_saved_model(tmp_path):
    def nested(d):
        return {"a": [d["x"] + 1, d["x"] * 2], "z": (d["x"],)}

    signature = [{"x": tf.TensorSpec((2,))}]
    saved = save_model(lambda params, d: nested(d), {}, tmp_path / "saved", input_signatures=signature)
    model = tf.lite.Interpreter(model_content=to_tflite(nested, input_signature=signature))
    outputs = model.get_signature_list()["serving_default"]["outputs"]
    assert outputs == sorted(saved.signatures["serving_default"].outputs) == ["a_0", "a_1", "z_0"]
    results = model.get_signature_runner()(d_x=np.float32([1, 2]))
    np.testing.assert_array_equal(results["a_1"], [2, 4])
    flat = tf.lite.Interpreter(model_content=to_tflite(lambda x: (x, x + 1), input_signature=[tf.TensorSpec((2,))]))
    assert flat.get_signature_list()["serving_default"]["outputs"] == ["output_0", "output_1"]


@pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
def test_a_masked_array_is_refused_also_after_a_plain_one(native, tmp_path):
    masked, plain = np.ma.masked_array(np.float32([1, 999, 3]), mask=[0, 1, 0]), np.zeros(3, np.float32)
    converted = convert(jnp.sum, native_serialization=native)
    read = convert_exported(export(jnp.sum)(plain), native_serialization=native)
    of_module = convert_stablehlo("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }")
    for call in (converted, read, of_module):
        call(plain)
        refusal = message(ArgumentTypeError, lambda call=call: call(masked))
        assert "is a masked array of NumPy, whose mask would be lost" in refusal
    saving = lambda: save_model(jnp.multiply, masked, tmp_path, input_signatures=[tf.TensorSpec([])])  # noqa: E731
    assert "args[0] is a masked array" in message(ArgumentTypeError, saving)
