"""Constant sizes in graph mode that TensorFlow learns when it runs: compared there with those that the function needs.

Sizes that do not fit are the error that they are in native mode, whatever the graph; where all sizes are known, nothing
is added to it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert, convert_exported, convert_stablehlo, save_exported, save_model, to_tflite
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

OPEN, RANKLESS = tf.TensorSpec([None, None]), tf.TensorSpec(None)
FITTING, OTHERS = (2, 3), [(2, 4), (3, 1)]


def mean(x):
    return x.mean() + x.shape[1]


def size_alone(x):
    return jnp.float32(2 * x.shape[1])


def squares(x):
    return (x**2).mean()


def exported(function, shape="2, 3"):
    return export(function)(jax.ShapeDtypeStruct(symbolic_shape(shape), jnp.float32))


def numbers(shape):
    return tf.reshape(tf.range(float(np.prod(shape))), shape)


def traced(converted, specification, **options):
    return tf.function(converted, input_signature=[specification], autograph=False, **options)


def gradient(converted):
    def of_squares(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    return of_squares


def in_dataset(converted):
    def run(x):
        made = tf.data.Dataset.from_generator(lambda: [x.numpy()], output_signature=OPEN).map(converted)
        return next(iter(made))

    return run


def saved(folder, function, name):
    save_exported(exported(function), folder, native_serialization=False)
    loaded = tf.saved_model.load(str(folder))
    serve = lambda x: loaded.signatures["serving_default"](args_0=x)["output_0"]  # noqa: E731
    return {"call": loaded, "signature": serve, "open call": traced(loaded, OPEN), "open": traced(serve, OPEN)}[name]


def saved_model(folder, function, name, order=1):
    save_model(
        lambda p, x: p * function(x),
        np.float32(1),
        folder,
        input_signatures=[tf.TensorSpec(FITTING)],
        native_serialization=False,
        gradient_order=order,
    )
    loaded = tf.saved_model.load(str(folder))
    serve = lambda x: loaded.signatures["serving_default"](x=x)["output_0"]  # noqa: E731
    return {"signature": serve, "open call": traced(loaded, OPEN), "open": traced(serve, OPEN)}[name]


RUNS = {
    "symbolic": lambda f, _: traced(convert(f, polymorphic_shapes=["b, 3"], native_serialization=False), OPEN),
    "compiled": lambda f, _: traced(
        convert(f, polymorphic_shapes=["b, 3"], native_serialization=False), OPEN, jit_compile=True
    ),
    "no gradient": lambda f, _: traced(
        convert(f, polymorphic_shapes=["b, 3"], native_serialization=False, with_gradient=False), OPEN
    ),
    "no XLA": lambda f, _: traced(convert(f, polymorphic_shapes=["b, 3"], enable_xla=False), OPEN),
    "exported": lambda f, _: traced(convert_exported(exported(f), native_serialization=False), OPEN),
    "exported, compiled": lambda f, _: traced(
        convert_exported(exported(f), native_serialization=False), OPEN, jit_compile=True
    ),
    "exported, any rank": lambda f, _: traced(convert_exported(exported(f), native_serialization=False), RANKLESS),
    "symbolic, any rank": lambda f, _: traced(
        convert_exported(exported(f, "b, 3"), native_serialization=False), RANKLESS
    ),
    "called": lambda f, _: traced(
        convert(exported(f).call, polymorphic_shapes=["2, 3"], native_serialization=False), OPEN
    ),
    "vectorized": lambda f, _: (
        lambda x: traced(
            lambda rows: tf.vectorized_map(convert(f, polymorphic_shapes=["2, 3"], native_serialization=False), rows),
            tf.TensorSpec([None, None, None]),
        )(x[None])[0]
    ),
    "data set": lambda f, _: in_dataset(convert(f, polymorphic_shapes=["b, 3"], native_serialization=False)),
    **{
        f"save_exported, {name}": lambda f, folder, name=name: saved(folder, f, name)
        for name in ("call", "signature", "open call", "open")
    },
    **{
        f"save_model, {name}": lambda f, folder, name=name: saved_model(folder, f, name)
        for name in ("signature", "open call", "open")
    },
    "save_model without gradient": lambda f, folder: saved_model(folder, f, "signature", 0),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("function", [mean, size_alone])
def test_other_sizes_are_refused_when_it_runs(name, function, tmp_path):
    run = RUNS[name](function, tmp_path / "model")
    np.testing.assert_array_equal(run(numbers(FITTING)), jax.jit(function)(numbers(FITTING).numpy()))
    for shape in OTHERS:
        # Of other sizes TensorFlow finds no function to call in a SavedModel.
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            run(numbers(shape))


@pytest.mark.parametrize("name", ["exported, any rank", "symbolic, any rank"])
def test_another_rank_is_refused_when_it_runs(name):
    run = RUNS[name](mean, None)
    for shape in [(6,), (2, 3, 1), ()]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(numbers(shape))


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_too(compiled):
    converted = convert_exported(exported(squares), native_serialization=False)
    run = traced(gradient(converted), OPEN, jit_compile=compiled)
    np.testing.assert_array_equal(run(numbers(FITTING)), jax.jit(jax.grad(squares))(numbers(FITTING).numpy()))
    for shape in OTHERS:
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(numbers(shape))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("shape", [(2, 4), (1, 3), (2, 1), (3,), (1, 2, 3), ()])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("sizes", [None, "b, n"])
def test_cotangents_of_other_sizes_are_refused(sizes, native, shape, is_traced, is_open):
    if sizes is None:
        converted = convert_exported(exported(lambda x: x**2), native_serialization=native)
    else:
        converted = convert(lambda x: x**2, polymorphic_shapes=[sizes], native_serialization=native)

    def pulled(x, cotangent):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x, output_gradients=cotangent)

    if is_traced:
        specifications = [tf.TensorSpec(FITTING), RANKLESS if is_open else tf.TensorSpec(shape)]
        pulled = tf.function(pulled, specifications, autograph=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        pulled(numbers(FITTING), tf.ones(shape))


def test_the_error_names_the_argument_and_both_shapes():
    run = traced(RUNS["symbolic"](lambda images: images.mean(), None), OPEN)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(numbers((2, 4)))
    text = str(caught.value)
    assert "[2,4] is not compatible with expected shape [?,3]" in text
    assert "shape_of_args_0" in text


def test_known_sizes_add_nothing_to_the_graph():
    converted = convert(mean, polymorphic_shapes=["b, 3"], native_serialization=False)
    exported_mean = convert_exported(exported(mean), native_serialization=False)
    for function, specification in [(converted, [None, 3]), (converted, [2, 3]), (exported_mean, [2, 3])]:
        graph = traced(function, tf.TensorSpec(specification)).get_concrete_function().graph
        assert not [operation.name for operation in graph.get_operations() if operation.type == "EnsureShape"]


def test_checked_sizes_are_known_in_the_graph():
    def folds(x):
        return (
            tf.constant(0)
            if convert(lambda y: y * 2, polymorphic_shapes=["b, 3"], native_serialization=False)(x).shape[1] == 3
            else tf.constant(1)
        )

    assert traced(folds, OPEN)(numbers(FITTING)).numpy() == 0


def test_variables_of_any_shape():
    variable = tf.Variable(numbers(FITTING), shape=tf.TensorShape(None))
    converted = convert_exported(exported(mean), native_serialization=False)
    run = tf.function(lambda: converted(variable), autograph=False)
    expected = jax.jit(mean)(numbers(FITTING).numpy())
    np.testing.assert_array_equal(run(), expected)
    np.testing.assert_array_equal(converted(variable), expected)
    variable.assign(numbers((2, 4)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run()


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated:UserWarning")
def test_tflite_models_have_the_sizes():
    model = to_tflite(mean, input_signature=[OPEN], polymorphic_shapes=["b, 3"])
    interpreter = tf.lite.Interpreter(model_content=model)
    [details] = interpreter.get_input_details()
    assert details["shape_signature"].tolist() == [-1, 3]
    found = interpreter.get_signature_runner()(x=numbers((4, 3)).numpy())
    np.testing.assert_allclose(found["output_0"], mean(numbers((4, 3)).numpy()))
    with pytest.raises(RuntimeError, match="of tensor 0 with value 3 to 4"):
        interpreter.resize_tensor_input(details["index"], (2, 4), strict=True)


@pytest.mark.parametrize("native", [True, False])
def test_native_mode_too_takes_an_array_of_any_rank(native):
    run = traced(convert_exported(exported(mean, "b, 3"), native_serialization=native), RANKLESS)
    np.testing.assert_allclose(run(numbers((4, 3))), mean(numbers((4, 3)).numpy()))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(numbers((6,)))


def nothing(x):
    return ()


UNREAD = "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2xf32>) -> tensor<2xf32> { return %y : tensor<2xf32> }"
WITHOUT_RESULTS = "func.func @main(%x: tensor<2x3xf32>) { return }"

OF_NO_NUMBER = {
    "convert": lambda: convert(nothing, polymorphic_shapes=["2, 3"], native_serialization=False),
    "no gradient": lambda: convert(
        nothing, polymorphic_shapes=["b, 3"], native_serialization=False, with_gradient=False
    ),
    "exported": lambda: convert_exported(exported(nothing), native_serialization=False),
    "native": lambda: convert(nothing, polymorphic_shapes=["2, 3"], native_serialization=True),
    "native, exported": lambda: convert_exported(exported(nothing), native_serialization=True),
    "native, another number": lambda: convert_exported(exported(lambda x: 1.0), native_serialization=True),
    "StableHLO": lambda: convert_stablehlo(WITHOUT_RESULTS),
    "StableHLO with another argument": lambda: lambda x: convert_stablehlo(UNREAD)(x, tf.ones(2)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", OF_NO_NUMBER)
def test_other_sizes_are_refused_also_where_no_result_is_computed_of_them(name, is_late, compiled):
    converted = OF_NO_NUMBER[name]()
    if is_late:
        converted = traced(converted, OPEN).get_concrete_function()
    run = traced(converted, OPEN, jit_compile=compiled)
    assert len(tf.nest.flatten(run(numbers(FITTING)))) == ("another" in name)
    for shape in [(2, 4), (3, 3)] if name != "no gradient" else [(2, 4)]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with expected shape"):
            run(numbers(shape))


@pytest.mark.parametrize("name", OF_NO_NUMBER)
def test_without_results_known_sizes_add_nothing_to_the_graph(name):
    graph = traced(OF_NO_NUMBER[name](), tf.TensorSpec(FITTING)).get_concrete_function().graph
    assert not [operation.name for operation in graph.get_operations() if operation.type == "Assert"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("shapes", [["a", "a + 1"], ["a", "a"], ["2*a", "b"]])
def test_related_sizes_are_refused_also_without_results(shapes, native, is_late, compiled):
    signature = [tf.TensorSpec([None])] * 2
    converted = convert(lambda x, y: (), polymorphic_shapes=shapes, native_serialization=native)
    if is_late:
        converted = tf.function(converted, input_signature=signature, autograph=False).get_concrete_function()
    run = tf.function(lambda x, y: converted(x, y) or 0, signature, autograph=False, jit_compile=compiled)
    fitting = {"a + 1": 4, "a": 3, "b": 5}[shapes[1]]
    run(tf.ones(4 if "2" in shapes[0] else 3), tf.ones(fitting))
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        run(tf.ones(3), tf.ones(6))


def test_a_native_graph_has_nothing_of_sizes_that_are_compared_by_the_op():
    def types(function, specification):
        converted = convert(function, polymorphic_shapes=["2, b"], native_serialization=True)
        return {each.type for each in traced(converted, specification).get_concrete_function().graph.get_operations()}

    assert "EnsureShape" not in types(mean, OPEN)
    assert "EnsureShape" not in types(nothing, tf.TensorSpec([2, None]))
