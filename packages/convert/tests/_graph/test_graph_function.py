"""`convert(native_serialization=False)`: gradients, sizes that are open, SavedModels, refusals, modes."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import (
    DEFAULT_NATIVE_SERIALIZATION,
    ConversionOptionError,
    ConversionStateError,
    DisabledSafetyCheck,
    GraphModeUnsupported,
    convert,
    convert_exported,
    save_model,
)
from jaxtf.convert._convert import mode
from jaxtf.convert._convert.mode import is_native
from jaxtf.convert._function.gradient import GRADIENT_PREVENTED, NO_VJP
from jaxtf.convert._graph import registry
from jaxtf.convert._graph.parse import parse
from jaxtf.serialization import LoweringRuleMissing, deserialize, export
from jaxtf.serialization.interop import for_platform
from jaxtf.shapepoly import symbolic_shape

HERE = Path(__file__).parent
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def graph(function, **options):
    return convert(function, native_serialization=False, **options)


def types_of(concrete):
    """The types of all operations in a graph and its library."""
    definition = concrete.graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return [node.op for node in nodes]


def concrete(converted, *specs):
    return tf.function(converted, autograph=False).get_concrete_function(*specs)


def loss(params, x):
    hidden = jax.nn.softmax(jnp.tanh(x @ params["w"] + params["b"]))
    return {"loss": (hidden**2).sum(), "hidden": hidden}


PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.arange(3, dtype=np.float32)}


# Gradients


def test_gradients_of_a_tape_are_those_of_jax():
    variables = tf.nest.map_structure(tf.Variable, PARAMS)
    with tf.GradientTape() as tape:
        value = graph(loss, polymorphic_shapes=[None, "(b, _)"])(variables, X)["loss"]
    found = tape.gradient(value, variables)
    expected = jax.grad(lambda p: loss(p, X)["loss"])(PARAMS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


def test_gradients_in_a_graph_are_those_of_jax():
    converted = graph(loss)

    @tf.function(autograph=False)
    def gradient(w, b):
        return tf.gradients(converted({"w": w, "b": b}, X)["loss"], [w, b])

    expected = jax.grad(lambda p: loss(p, X)["loss"])(PARAMS)
    found = gradient(PARAMS["w"], PARAMS["b"])
    np.testing.assert_allclose(found[0], expected["w"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], expected["b"], rtol=1e-5, atol=1e-6)


def test_second_and_third_gradients_are_those_of_jax():
    def f(x):
        return (jnp.sin(x) * x**2).sum()

    x = tf.Variable(X)
    with tf.GradientTape() as third, tf.GradientTape() as second:
        with tf.GradientTape() as first:
            y = graph(f)(x)
        one = first.gradient(y, x)
        two = second.gradient(one, x)
    df = jax.grad(f)
    d2f = jax.grad(lambda x: df(x).sum())
    np.testing.assert_allclose(two, d2f(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(third.gradient(two, x), jax.grad(lambda x: d2f(x).sum())(X), rtol=1e-5, atol=1e-5)


def test_integers_have_no_gradient_and_derivatives_of_the_user_are_respected():
    @jax.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (x * n, None), lambda _, cotangent: (cotangent * 100, None))
    x, n = tf.Variable(2.0), tf.Variable(3)
    with tf.GradientTape() as tape:
        y = graph(f)(x, n)
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (6, 100)
    with tf.GradientTape() as tape:
        y = graph(lambda x, n: x * n)(x, n)
    assert tape.gradient(y, n) is None


@pytest.mark.parametrize("in_graph", [False, True])
def test_without_a_gradient_asking_for_one_is_an_error(in_graph):
    converted = graph(jnp.sin, with_gradient=False)
    run = tf.function(converted, autograph=False) if in_graph else converted
    x = tf.Variable(1.0)

    def gradient():
        with tf.GradientTape() as tape:
            y = run(x)
        return tape.gradient(y, x)

    with pytest.raises(LookupError, match=GRADIENT_PREVENTED.replace("`", ".")):
        gradient()


# Sizes that are open


@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_one_graph_computes_for_every_size(size):
    def f(x, y):
        return (
            jnp.concatenate([x, x + y], axis=0) @ x.T,
            jax.nn.softmax(x, axis=0),
            x.sum(axis=0),
            jnp.arange(x.shape[0]),
        )

    x = np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(size, 4)
    converted = graph(f, polymorphic_shapes=["(b, _)", "(1, _)"])
    traced = concrete(converted, tf.TensorSpec([None, 4]), tf.TensorSpec([1, 4]))
    shapes = [result.shape.as_list() for result in traced.structured_outputs]
    assert shapes == [[None, None], [None, 4], [4], [None]]
    for run in (converted, traced, tf.function(traced, jit_compile=True)):
        for found, expected in zip(run(tf.constant(x), tf.constant(x[:1])), f(x, x[:1]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def doubled(x):
    return x * 2


MISMATCH = "Division had remainder 1 when computing the value of 'b'"
ASSERTED = r"Division had remainder \] \[1\] \[ when computing the value of .*b.*"  # as TensorFlow prints the parts
OPEN = {"polymorphic_shapes": ["(2*b,)"]}
SPEC = tf.TensorSpec([None])
ODD = np.ones(3, np.float32)


def test_sizes_that_do_not_fit_are_refused_in_eager_mode_in_the_words_of_native_mode():
    messages = []
    for native in (True, False):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            convert(doubled, native_serialization=native, **OPEN)(ODD)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert MISMATCH in messages[0]


def test_sizes_that_do_not_fit_are_refused_while_a_graph_is_made_where_they_are_known():
    with pytest.raises(tf.errors.InvalidArgumentError, match=MISMATCH):
        concrete(graph(doubled, **OPEN), tf.TensorSpec([3]))


@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_that_do_not_fit_are_refused_when_a_graph_runs(compiled):
    run = tf.function(graph(doubled, **OPEN), autograph=False, input_signature=[SPEC], jit_compile=compiled)
    np.testing.assert_array_equal(run(tf.ones(4)), 2 * np.ones(4))
    message = "shapes_do_not_match_the_polymorphic_shapes_specification" if compiled else ASSERTED
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(ODD)


def test_assertions_run_also_where_no_result_depends_on_them():
    """In a branch of a conditional, and in a SavedModel whose signature is pruned to its results."""
    converted = graph(doubled, **OPEN)
    run = tf.function(lambda x: tf.cond(tf.size(x) > 0, lambda: converted(x)[:1], lambda: x), input_signature=[SPEC])
    with pytest.raises(tf.errors.InvalidArgumentError, match=ASSERTED):
        run(ODD)
    wrapped = tf.compat.v1.wrap_function(converted, [SPEC])
    pruned = wrapped.prune(wrapped.inputs[0], wrapped.outputs[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=ASSERTED):
        pruned(tf.constant(ODD))


def test_assertions_that_are_disabled_are_not_there():
    disabled = [DisabledSafetyCheck.shape_assertions()]
    converted = graph(doubled, native_serialization_disabled_checks=disabled, **OPEN)
    np.testing.assert_array_equal(converted(ODD), 2 * ODD)
    assert "Assert" not in types_of(concrete(converted, SPEC))


def test_no_assertion_and_no_arithmetic_with_sizes_where_all_are_known():
    types = types_of(concrete(graph(jnp.sin), tf.TensorSpec([3, 4])))
    assert set(types) <= {"Placeholder", "Sin", "Identity", "IdentityN", "NoOp"}
    static = types_of(concrete(graph(doubled, **OPEN), tf.TensorSpec([4])))
    assert "Assert" not in static


# What is in the graph


def test_plain_operations_only_where_xla_is_not_allowed():
    def f(x):
        y = lax.dynamic_slice(x, (1, 0), (2, 4)) @ x.T
        return y.at[0].add(1.0), jnp.sort(x), jnp.cumsum(x), lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME")

    converted = graph(f, enable_xla=False)
    types = types_of(concrete(converted, tf.TensorSpec([3, 4])))
    assert [name for name in types if name.startswith("Xla")] == []
    for found, expected in zip(converted(X), f(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_names_of_inputs_and_results_are_the_users():
    traced = concrete(graph(loss), {"w": tf.TensorSpec([4, 3]), "b": tf.TensorSpec([3])}, tf.TensorSpec([3, 4]))
    names = [node.name for node in traced.graph.as_graph_def().node]
    assert {"hidden", "loss"} <= set(names)
    assert "jaxtf_loss/tanh/Tanh" in names


def test_large_arrays_are_captured_and_not_in_the_graph():
    table = np.linspace(-1, 1, 4 * 40_000, dtype=np.float32).reshape(4, 40_000)

    def f(x):
        return jnp.tanh(x @ table).sum(axis=-1)

    traced = concrete(graph(f), tf.TensorSpec([3, 4]))
    assert len(traced.captured_inputs) == 1
    assert traced.graph.as_graph_def().ByteSize() < 10_000
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = graph(f)(x)
    np.testing.assert_allclose(y, f(X), rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(tape.gradient(y, x), jax.grad(lambda x: f(x).sum())(X), rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bfloat16", "complex64", "bool"])
def test_dtypes_are_those_of_jax(dtype):
    x = np.array([0, 1, 1]).astype(tf.as_dtype(dtype).as_numpy_dtype)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            found, expected = graph(lambda x: jnp.stack([x, x[::-1]]))(x), jnp.stack([x, x[::-1]])
        assert (found.dtype.name, found.numpy().tolist()) == (expected.dtype.name, np.asarray(expected).tolist())


# Refusals


def test_what_is_not_translated_is_refused_when_it_is_converted_with_its_place():
    def gathered(x):
        with jax.named_scope("exchange"):
            return jax.lax.psum(x, "i")

    mesh = jax.make_mesh((2,), ("i",), devices=jax.devices()[:2])
    spec = jax.sharding.PartitionSpec()
    function = jax.shard_map(gathered, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    with pytest.raises(GraphModeUnsupported) as caught:
        graph(function)(X)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("graph mode does not translate ")
    assert "devices" in lines[0]
    assert lines[-1] == "  remedy:   convert the function for a mesh of one device"


REFUSED = """func.func @main(%x: tensor<2x?xf32>) -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32> loc("jit(f)/exchange/axis_index"("/home/model.py":41:3))
  return %0 : tensor<ui32>
}"""


def test_a_refusal_says_what_where_why_and_what_to_do():
    from jaxtf.convert import convert_stablehlo

    with pytest.raises(GraphModeUnsupported) as caught:
        convert_stablehlo(REFUSED)
    assert str(caught.value) == (
        "graph mode does not translate stablehlo.partition_id: it asks which of several devices runs it; a TensorFlow "
        "graph runs on one\n"
        "  found:    () -> (uint32[])\n"
        "  asked at: exchange/axis_index, /home/model.py:41\n"
        "  remedy:   convert the function for a mesh of one device"
    )


def by_pallas(x):
    from jax.experimental import pallas

    def kernel(source, target):
        target[...] = source[...]

    return pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def by_platform(x):
    return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)


@pytest.mark.parametrize(
    ("function", "named"),
    [(by_pallas, "primitive 'pallas_call'"), (by_platform, "platform_dependent without a default")],
)
def test_what_jax_lowers_for_platforms_only_is_refused_by_name(function, named):
    with pytest.raises(LoweringRuleMissing, match=f"'{function.__name__}' has .*{named}.*graph mode lowers for no"):
        graph(function)(X)


def test_of_branches_for_platforms_the_default_is_taken():
    dependent = graph(lambda x: lax.platform_dependent(x, cuda=jnp.cos, default=jnp.sin))
    np.testing.assert_allclose(dependent(X), np.sin(X), rtol=1e-6)


def test_an_unknown_custom_call_is_refused():
    from jaxtf.convert import convert_stablehlo

    text = """func.func @main(%x: tensor<2x?xf32>) -> tensor<f32> {
      %0 = stablehlo.custom_call @mine(%x) : (tensor<2x?xf32>) -> tensor<f32>
      return %0 : tensor<f32> }"""
    with pytest.raises(GraphModeUnsupported) as caught:
        convert_stablehlo(text)
    assert str(caught.value).splitlines()[:2] == [
        "graph mode does not translate custom_call.mine: graph mode does not know it",
        "  found:    (float32[2,?]) -> (float32[])",
    ]
    assert "in a process that registers the target" in str(caught.value)


def test_what_needs_xla_is_refused_without_it_and_the_remedy_says_so():
    def bits(key):
        return lax.rng_bit_generator(key, (3,))[1]

    key = np.arange(4, dtype=np.uint32)
    with pytest.raises(GraphModeUnsupported) as caught:
        graph(bits, enable_xla=False)(key)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("graph mode does not translate stablehlo.rng_bit_generator: ")
    assert lines[1] == "  found:    (uint64[2]) -> (uint64[2], uint32[3])"
    assert lines[2].startswith("  asked at: rng_bit_generator, ")
    assert "test_graph_function.py:" in lines[2]
    assert lines[3] == (
        "  remedy:   allow TensorFlow's XLA operations (enable_xla=True), compute it differently, or use native mode "
        "(native_serialization=True)"
    )


def test_what_tensorflow_refuses_is_refused_by_us_with_its_words(monkeypatch):
    wrong = replace(registry.registered()["stablehlo.sine"], emit=lambda bound, x: tf.bitwise.invert(x))
    monkeypatch.setitem(registry._ENTRIES, "stablehlo.sine", wrong)
    with pytest.raises(GraphModeUnsupported) as caught:
        graph(jnp.sin)(X)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("graph mode does not translate stablehlo.sine: TensorFlow does not take it: Value")
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_shardings_of_arguments_and_results_are_reported_to_xla(is_compiled):
    mesh = jax.make_mesh((8,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    converted = graph(jax.jit(jnp.sin, in_shardings=sharding, out_shardings=sharding))
    x = np.linspace(0, 1, 8, dtype=np.float32)
    run = tf.function(converted, autograph=False, jit_compile=is_compiled)
    np.testing.assert_allclose(run(x), np.sin(x), rtol=1e-6)
    assert types_of(concrete(converted, tf.TensorSpec([8]))).count("XlaSharding") == 2
    with pytest.raises(ConversionStateError, match=r"must be used under a `tf\.function` context"):
        converted(x)


def test_platforms_are_of_native_mode():
    with pytest.warns(UserWarning, match=r"it is ignored in graph mode, .* Got: \('cpu',\)") as caught:
        converted = graph(jnp.sin, native_serialization_platforms=("cpu",))
    assert caught[0].filename == __file__
    assert not is_one_op(converted)


def test_without_xla_alone_is_graph_mode(tmp_path):
    assert not is_one_op(convert(jnp.sin, enable_xla=False))
    assert not is_one_op(convert(jnp.sin, enable_xla=False, native_serialization="default"))
    assert is_one_op(convert(jnp.sin, native_serialization="default"))
    exported = export(jnp.sin)(jax.ShapeDtypeStruct((3, 4), jnp.float32))
    assert not is_one_op(convert_exported(exported, enable_xla=False))
    for run in (convert, lambda fun, **options: convert_exported(exported, **options)):
        with pytest.raises(ConversionOptionError, match=r"exclude each other: .*\n  remedy: leave one of them out"):
            run(jnp.sin, enable_xla=False, native_serialization=True)


# The default


def is_one_op(converted):
    return "XlaCallModule" in types_of(concrete(converted, tf.TensorSpec([3, 4])))


def test_the_flag_of_jax_says_which_mode_is_the_default():
    assert is_one_op(convert(jnp.sin))
    assert repr(DEFAULT_NATIVE_SERIALIZATION) == "DEFAULT_NATIVE_SERIALIZATION"
    jax.config.update("jax2tf_default_native_serialization", False)
    try:
        assert not is_one_op(convert(jnp.sin))
        assert is_one_op(convert(jnp.sin, native_serialization=True))
    finally:
        jax.config.update("jax2tf_default_native_serialization", True)


@pytest.mark.parametrize(
    ("text", "expected"), [("false", False), ("0", False), ("True", True), ("on", True), (None, True)]
)
def test_without_the_flag_the_environment_says_it(monkeypatch, text, expected):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delenv(mode.VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(mode.VARIABLE, text)
    assert is_native(DEFAULT_NATIVE_SERIALIZATION, True) is expected
    assert is_native(not expected, True) is not expected


def test_an_environment_that_says_neither_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setenv(mode.VARIABLE, "maybe")
    with pytest.raises(ConversionOptionError) as caught:
        is_native(DEFAULT_NATIVE_SERIALIZATION, True)
    message = "the environment variable JAX2TF_DEFAULT_NATIVE_SERIALIZATION must be true or false. Got: 'maybe'"
    assert str(caught.value) == message


# Artifacts and SavedModels


def test_an_artifact_runs_in_graph_mode_with_its_gradients():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 4"), np.float32)
    blob = export(lambda x: jnp.tanh(x).sum())(spec).serialize(vjp_order=1)
    converted = convert_exported(blob, native_serialization=False)
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = converted(x)
    np.testing.assert_allclose(y, np.tanh(X).sum(), atol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), 1 - np.tanh(X) ** 2, atol=1e-6)
    assert "XlaCallModule" not in types_of(concrete(converted, tf.TensorSpec([None, 4])))


def test_an_artifact_for_several_platforms_runs_as_for_cpu():
    exported = export(
        lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2), platforms=("tpu", "cpu")
    )(X)
    np.testing.assert_array_equal(convert_exported(exported, native_serialization=False)(X), X + 1)


def test_what_other_platforms_call_is_no_reason_to_refuse():
    """Cholesky is cuSOLVER's on CUDA, and an operation of StableHLO elsewhere; in a function that is called twice."""

    def roots(x):
        return jnp.linalg.cholesky(lax.fori_loop(0, 2, lambda _, y: jnp.linalg.cholesky(y) + y, x))

    x = np.eye(3, dtype=np.float32) * 4 + 1
    exported = export(roots, platforms=("cuda", "cpu", "tpu"), expand_linear_algebra=True)(x)
    assert "cusolver" in exported.mlir_module()
    converted = convert_exported(exported, native_serialization=False)
    np.testing.assert_allclose(converted(x), roots(x), rtol=1e-5)
    types = {
        node.type for node in tf.function(converted, autograph=False).get_concrete_function(x).graph.get_operations()
    }
    assert not types & {"Case", "StatelessCase", "If", "StatelessIf"}


def test_each_platform_has_its_own_branch():
    module = """
    func.func @main(%i: tensor<i32> {jax.global_constant = "_platform_index"}, %x: tensor<f32>) -> tensor<f32> {
      %0 = func.call @inner(%i, %x) : (tensor<i32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @inner(
      %i: tensor<i32> {jax.global_constant = "_platform_index"}, %x: tensor<f32>
    ) -> tensor<f32> {
      %c = "stablehlo.case"(%i) ({
        %one = stablehlo.constant dense<1> : tensor<i32>
        stablehlo.return %one : tensor<i32>
      }, {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        stablehlo.return %zero : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      %y = "stablehlo.case"(%c) ({
        %a = stablehlo.negate %x : tensor<f32>
        stablehlo.return %a : tensor<f32>
      }, {
        %b = stablehlo.exponential %x : tensor<f32>
        stablehlo.return %b : tensor<f32>
      }) : (tensor<i32>) -> tensor<f32>
      return %y : tensor<f32>
    }"""
    for index, name in enumerate(("stablehlo.exponential", "stablehlo.negate", "stablehlo.negate")):
        inner = for_platform(parse(module), index).functions["inner"]
        names = [operation.name for operation in inner.body.operations]
        assert names == ["stablehlo.constant", name]
        assert inner.body.returned == inner.body.operations[-1].results


@pytest.mark.slow
def test_saved_models_and_modules_run_without_jax(run_without_jax, tmp_path):
    module = tf.Module()
    module.f = tf.function(graph(scanned, polymorphic_shapes=["(b, _)"]), autograph=False, input_signature=[OPEN_ROWS])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path / "plain"), options=options)
    save_model(
        lambda params, x: scanned(x * params),
        np.float32(2),
        tmp_path / "trained",
        input_signatures=[OPEN_ROWS],
        polymorphic_shapes=["(b, _)"],
        gradient_order=2,
        native_serialization=False,
    )
    exported = export(scanned)(jax.ShapeDtypeStruct(symbolic_shape("b, 4"), np.float32))
    (tmp_path / "artifact").write_bytes(exported.serialize(vjp_order=1))
    (tmp_path / "portable").write_bytes(exported.mlir_module_serialized)
    done = run_without_jax(HERE / "graph_without_jax.py", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    expected, gradient = scanned(X), jax.grad(scanned)(X)
    trained = jax.grad(lambda p: scanned(X * p))
    assert found["types"] == []
    close = {"rtol": 1e-5, "atol": 1e-5}
    for name in ("plain", "artifact"):
        np.testing.assert_allclose(found[name]["value"], expected, **close)
        np.testing.assert_allclose(found[name]["gradient"], gradient, **close)
    np.testing.assert_allclose(found["portable"], expected, **close)
    np.testing.assert_allclose(found["text"], [4, 6])
    np.testing.assert_allclose(found["trained"], [trained(np.float32(2)), jax.grad(trained)(np.float32(2))], **close)


OPEN_ROWS = tf.TensorSpec([None, 4], tf.float32)


def scanned(x):
    return lax.scan(lambda c, row: (jnp.tanh(c + row), c), jnp.zeros(4), x.reshape(-1, 4))[0].sum() + (x**2).sum()


def test_a_function_without_gradient_has_only_operations_that_other_consumers_know_and_refuses(tmp_path):
    converted = convert(lambda x: x + 1, native_serialization=False, enable_xla=False, with_gradient=False)
    x = tf.Variable(X)
    message = "Gradient explicitly disabled. Reason: The jaxtf-converted function does not support gradients"
    for function in (converted, tf.function(converted, autograph=False)):
        np.testing.assert_array_equal(function(x), X + 1)
        with pytest.raises(LookupError, match=message), tf.GradientTape() as tape:
            tape.gradient(function(x), x)
    module = tf.Module()
    module.f = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec(X.shape)])
    graph = module.f.get_concrete_function().graph
    assert {op.type for op in graph.get_operations()} <= {"Placeholder", "Const", "AddV2", "Identity"}
    for name, with_gradients in (("with", True), ("without", False)):
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
        tf.saved_model.save(module, str(tmp_path / name), options=options)
        loaded = tf.saved_model.load(str(tmp_path / name))
        np.testing.assert_array_equal(loaded.f(x), X + 1)
        with pytest.raises(LookupError, match="no_gradient_because_of_with_gradient_False"), tf.GradientTape() as tape:
            tape.gradient(loaded.f(x), x)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda native: convert(jnp.sin, with_gradient=False, native_serialization=native), GRADIENT_PREVENTED),
        (
            lambda native: convert_exported(
                deserialize(export(jnp.sin)(jax.ShapeDtypeStruct((2,), np.float32)).serialize()),
                native_serialization=native,
            ),
            NO_VJP,
        ),
    ],
)
def test_what_has_no_gradient_refuses_it_to_a_tape_inside_of_a_graph_too(native, make, message):
    converted = make(native)

    @tf.function(autograph=False)
    def within(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(tf.exp(x))
        return tape.gradient(y, x)

    @tf.function(autograph=False)
    def stopped(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * tf.stop_gradient(converted(tf.exp(x)))
        return tape.gradient(y, x)

    x = tf.constant([0.0, 1.0])
    with pytest.raises(LookupError, match=re.escape(message)):
        within(x)
    np.testing.assert_allclose(stopped(x), np.sin(np.exp([0.0, 1.0])), rtol=1e-6)


def test_the_operations_of_a_graph_stand_between_the_arguments_and_the_results_of_its_gradient():
    """Programs that read graphs (tf2jax) take them as the function that the gradient is of."""

    @tf.function(autograph=False)
    def function(x, y):
        return convert(lambda x, y: (jnp.sin(x) * y, y), native_serialization=False)(x, y)

    graph = function.get_concrete_function(tf.TensorSpec((3,)), tf.TensorSpec(())).graph
    (tied,) = (op for op in graph.get_operations() if op.type == "IdentityN")
    first, second, x, y = tied.inputs
    before, reached = [first.op, second.op], set()
    while before:
        op = before.pop()
        if op not in (x.op, y.op) and op not in reached:
            reached.add(op)
            before += [tensor.op for tensor in op.inputs]
    assert {op.type for op in reached} - {"Identity"} == {"Sin", "Mul"}


def test_a_version_of_tensorflow_is_refused_where_it_says_nothing():
    with pytest.raises(ConversionOptionError) as refused:
        convert(jnp.sin, native_serialization=False, tensorflow_version="2.20")
    assert str(refused.value) == (
        "tensorflow_version says for which TensorFlow native mode writes its module; graph mode "
        "(native_serialization=False) gives the operations of the installed TensorFlow. Got: '2.20'\n"
        "  remedy: leave it out, or convert with that TensorFlow installed"
    )


@pytest.mark.slow
def test_without_jaxlib_graph_mode_says_what_it_needs(run_without_jax):
    program = (
        "import sys; sys.modules['jaxlib'] = None; sys.modules['jax'] = None\n"
        "from jaxtf.convert import convert_stablehlo\n"
        "try: convert_stablehlo('module {}')\n"
        "except ImportError as error: print(error)"
    )
    done = run_without_jax("-c", program)
    assert done.stdout == (
        "StableHLO is read with jaxlib, which cannot be imported here\n  remedy: pip install 'jaxlib>=0.10.1'\n"
    )


def test_a_tape_inside_of_a_graph_gets_the_gradient_of_jax():
    @tf.function(autograph=False)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = graph(lambda x: jnp.tanh(x) * 2)(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(tf.constant(X)), 2 / np.cosh(X) ** 2, rtol=1e-5, atol=1e-6)


# Cumulative sums


@pytest.mark.parametrize("cumulative", [jnp.cumsum, jnp.cumprod])
def test_the_flag_for_associative_scans_leaves_no_cumulative_operation(cumulative):
    x = np.linspace(0.5, 1.5, 37, dtype=np.float32)
    converted = graph(cumulative)
    by_default = converted(x)
    found = {}
    for flag in (False, True):
        with jax.jax2tf_associative_scan_reductions(flag):
            types = {operation.type for operation in concrete(converted, tf.TensorSpec([37])).graph.get_operations()}
            found[flag] = bool({"Cumsum", "Cumprod"} & types)
            # The order of additions differs: an error of 37 eps.
            np.testing.assert_allclose(converted(x), cumulative(x), rtol=37 * np.finfo(np.float32).eps)
    assert found == {False: True, True: False}
    np.testing.assert_array_equal(converted(x), by_default)
