"""A TensorFlow function inside a JAX function stays what it is in graph mode: one plain graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import CompilationError, UnsupportedError, call_tf
from jaxtf.convert import convert, convert_exported
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
SCALE = tf.Variable(2.0)

pytestmark = pytest.mark.filterwarnings("ignore:call_tf works best")  # it is a constant


def preprocess(x):
    """What graph mode does not translate, but calls: it has a variable."""
    return tf.nn.relu(x) * SCALE


def model(x):
    return jnp.tanh(call_tf(preprocess)(x)).sum(axis=-1)


def reference(x):
    return jnp.tanh(jax.nn.relu(x) * 2).sum(axis=-1)


def in_graph_mode(fun, **options):
    return convert(fun, native_serialization=False, enable_xla=False, **options)


def operations(graph):
    """The operations of a graph and of the functions in it."""
    definition = graph.as_graph_def()
    inner = [node.op for function in definition.library.function for node in function.node_def]
    return {node.op for node in definition.node} | set(inner)


MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


@pytest.mark.parametrize("mode", MODES)
def test_values_and_gradients_are_those_of_jax(mode):
    function = MODES[mode](in_graph_mode(model))
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = function(x)
    np.testing.assert_allclose(y, reference(X), rtol=1e-6)
    expected = jax.grad(lambda x: reference(x).sum())(X)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5, atol=1e-6)


def test_one_graph_serves_all_sizes_and_holds_the_operations_of_both():
    converted = in_graph_mode(model, polymorphic_shapes=["(b, _)"])
    graph = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, 3])])
    for size in (1, 4):
        np.testing.assert_allclose(graph(X[:size]), reference(X[:size]), rtol=1e-6)
    found = operations(graph.get_concrete_function().graph)
    assert {"Relu", "Tanh", "Sum"} <= found
    assert "ReadVariableOp" not in found
    assert not {name for name in found if name.startswith("Xla")}


def test_the_variable_is_a_constant_as_in_native_mode():
    function = tf.function(in_graph_mode(model), autograph=False)
    function(X)
    SCALE.assign(3.0)
    try:
        np.testing.assert_allclose(function(X), reference(X), rtol=1e-6)
    finally:
        SCALE.assign(2.0)


def test_a_saved_model_holds_it(tmp_path):
    module = tf.Module()
    converted = in_graph_mode(model, polymorphic_shapes=["(b, _)"])
    module.f = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = loaded.f(x)
    np.testing.assert_allclose(y, reference(X), rtol=1e-6)
    assert tape.gradient(y, x).shape == X.shape


def test_inside_control_flow():
    def scanned(x):
        return jax.lax.scan(lambda c, row: (c + call_tf(tf.math.sin)(row), c), jnp.zeros(3), x)

    found = tf.function(in_graph_mode(scanned), autograph=False)(X)
    for a, b in zip(found, jax.lax.scan(lambda c, row: (c + jnp.sin(row), c), jnp.zeros(3), X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_call_by_name_with_symbolic_sizes_keeps_a_function_that_does_not_compile():
    def printed(x):
        tf.print("rows:", tf.shape(x)[0], output_stream="file:///dev/null")
        scale = tf.ensure_shape(tf.py_function(lambda x: x.numpy().max(), [x], tf.float32), [])
        return tf.concat([x, x], 0) * scale

    converted = in_graph_mode(call_tf(printed, call_tf_graph=True), polymorphic_shapes=["(b, _)"])
    graph = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, 3])])
    for size in (1, 4):
        np.testing.assert_allclose(graph(X[:size]), np.concatenate([X[:size]] * 2) * X[:size].max(), rtol=1e-6)
    assert {"PrintV2", "EagerPyFunc"} <= operations(graph.get_concrete_function().graph)


def counted(x):
    """How many elements are positive, by what XLA makes wrong: of `ones_like` it keeps the largest size."""
    return tf.reduce_sum(tf.ones_like(tf.boolean_mask(x, x > 0)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("by_name", "native"), [(False, False), (False, True), (True, True)])
def test_sizes_that_xla_would_lose_are_refused(by_name, native, mode):
    call = call_tf(counted, call_tf_graph=by_name)
    converted = convert(lambda x: call(x) * 2, native_serialization=native)
    with pytest.raises(CompilationError, match="whose sizes depend on values"):
        MODES[mode](converted)(X)


def test_sizes_that_depend_on_values_are_kept_where_nothing_is_compiled():
    converted = convert(lambda x: call_tf(counted, call_tf_graph=True)(x) * 2, native_serialization=False)
    assert tf.function(converted, autograph=False)(X).numpy() == 2 * (X > 0).sum()


NEED_SIZES = {
    "b >= 4": lambda x: x + x[3],
    "2*b + 2*floordiv(b, 2) == 3*b": lambda x: tf.reshape(x, [-1, 2]),
    "b >= 2": lambda x: tf.math.top_k(tf.transpose(x), 2)[0],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("needs", NEED_SIZES)
def test_sizes_that_operations_need_are_asserted_where_the_graph_knows_them_too(needs, mode):
    """The entry's own requirements hold for all sizes; those of the function that is called do not."""
    exported = export(call_tf(NEED_SIZES[needs]))(jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32))
    converted = MODES[mode](convert_exported(exported, native_serialization=False))
    np.testing.assert_array_equal(converted(X), NEED_SIZES[needs](X))
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        converted(X[:1])
    assert mode == "compiled" or f"needs {needs}, and has b = " in str(error.value)


def test_of_sizes_that_the_graph_knows_nothing_is_left():
    exported = export(call_tf(NEED_SIZES["b >= 4"]))(jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32))
    converted = convert_exported(exported, native_serialization=False)
    known = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([4, 3]))
    assert "Assert" not in operations(known.graph)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs b >= 4, and has b = 3"):
        tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([3, 3]))


def positive(x):
    tf.debugging.assert_positive(x)
    return x * 2


def assert_in_a_branch(x):
    tf.cond(tf.size(x) > 0, lambda: positive(x), lambda: x)
    return x * 2


ASSERTING = {
    "of TensorFlow": positive,
    "of a function that is called": tf.function(positive, autograph=False),
    "in a branch": assert_in_a_branch,
    "by an operation": lambda x: x * tf.debugging.check_numerics(tf.math.log(x), "not a number"),
}
# Programs that return the same whether a function is called by them or not.
UNUSED = {
    "call": lambda f, x: f(x),
    "jit": lambda f, x: jax.jit(f)(x),
    "cond": lambda f, x: jax.lax.cond(x[0] > 0, f, lambda x: x, x),
    "scan": lambda f, x: jax.lax.scan(lambda carry, _: (carry, f(carry)), x, length=2),
    "fori_loop": lambda f, x: jax.lax.fori_loop(0, 2, lambda _, carry: (f(carry), carry)[1], x),
    "vmap": lambda f, x: jax.vmap(f)(x),
    "vjp": jax.vjp,
    "its pullback": lambda f, x: jax.vjp(f, x)[1](x),
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("unused", UNUSED)
@pytest.mark.parametrize("function", ASSERTING)
def test_assertions_of_a_call_by_name_are_checked_where_nobody_uses_its_results(function, unused, symbolic):
    call = call_tf(ASSERTING[function], call_tf_graph=True)

    def program(x):
        UNUSED[unused](call, x)
        return x + 1

    converted = tf.function(in_graph_mode(program, polymorphic_shapes=["b"] if symbolic else None), autograph=False)
    np.testing.assert_array_equal(converted(np.float32([1, 2, 3])), [2, 3, 4])
    with pytest.raises(tf.errors.InvalidArgumentError):
        converted(np.float32([1, -2, 3]))


@pytest.mark.parametrize("unused", sorted(UNUSED.keys() - {"cond"}))
def test_assertions_of_a_call_by_name_are_checked_in_a_session(unused):
    call = call_tf(positive, call_tf_graph=True)
    converted = in_graph_mode(lambda x: (UNUSED[unused](call, x), x + 1)[1])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [3])
        y = converted(x)
        np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3]}), [2, 3, 4])
        with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.CancelledError)):
            session.run(y, {x: [1, -2, 3]})


def test_assertions_of_a_call_by_name_are_kept_where_a_gradient_is_written_again():
    """That of a root of a complex number, which TensorFlow compiles without a conjugate."""

    def root(x):
        tf.debugging.assert_positive(tf.math.real(x))
        return tf.sqrt(x)

    def program(x):
        return jax.vjp(call_tf(root, call_tf_graph=True), x)[1](jnp.ones_like(x))

    converted = tf.function(in_graph_mode(program), autograph=False)
    np.testing.assert_allclose(converted(np.complex64([4.0]))[0], [0.25])
    with pytest.raises(tf.errors.InvalidArgumentError):
        converted(np.complex64([-4.0 + 1j]))


def test_a_call_by_name_without_side_effects_is_dropped_with_its_assertions():
    call = call_tf(positive, call_tf_graph=True, has_side_effects=False)
    converted = tf.function(in_graph_mode(lambda x: (call(x), x + 1)[1]), autograph=False)
    np.testing.assert_array_equal(converted(np.float32([1, -2, 3])), [2, -1, 4])


# What XLA computes where TensorFlow refuses, because a size does not fit constant indices.
NEED_INDICES = {
    "gather": lambda x: tf.gather(x, [3, 0]),
    "scatter": lambda x: tf.scatter_nd([[0], [3]], [1.0, 2.0], [tf.shape(x)[0]]),
    "list": lambda x: tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x).write(3, [1.0, 2.0, 3.0]).stack(),
}


@pytest.mark.parametrize("native", [False, True], ids=["graph", "native"])
@pytest.mark.parametrize("by_name", [False, True], ids=["compiled", "by name"])
@pytest.mark.parametrize("needs", NEED_INDICES)
def test_constant_indices_need_their_sizes_in_every_mode(needs, by_name, native):
    function = NEED_INDICES[needs]
    converted = convert(
        call_tf(function, call_tf_graph=by_name), polymorphic_shapes=["b, _"], native_serialization=native
    )
    converted = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, 3])])
    np.testing.assert_array_equal(converted(X), function(X))
    with pytest.raises(tf.errors.InvalidArgumentError):
        converted(X[:3])


NOT_COMPILED = {
    "euclidean norm": tf.math.reduce_euclidean_norm,
    "strings": lambda x: x + tf.cast(tf.strings.length(tf.strings.as_string(tf.reduce_sum(x))), tf.float32),
    "print": lambda x: (tf.print(tf.shape(x), output_stream="file:///dev/null"), x)[1],
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function", NOT_COMPILED)
def test_a_function_that_does_not_compile_is_refused_at_conversion_and_runs_by_name(function, symbolic):
    def converted(by_name):
        call = call_tf(NOT_COMPILED[function], call_tf_graph=by_name)
        return tf.function(in_graph_mode(call, polymorphic_shapes=["b, _"] if symbolic else None), autograph=False)

    with pytest.raises((CompilationError, NotImplementedError), match="call_tf"):
        converted(by_name=False).get_concrete_function(tf.TensorSpec([4, 3]))
    np.testing.assert_allclose(converted(by_name=True)(X), NOT_COMPILED[function](tf.constant(X)), rtol=1e-6)


def test_effects_of_branches_are_those_of_elements_that_take_them_under_map():
    """As the page says; under `jax.vmap` JAX computes all branches."""
    seen = []

    def note(t):
        return tf.ensure_shape(tf.numpy_function(lambda a: (seen.append(float(a)), a)[1], [t], tf.float32), t.shape)

    call = call_tf(note, call_tf_graph=True)

    def program(x):
        return jax.lax.map(lambda a: jax.lax.cond(a > 1.5, call, lambda a: a, a), x)

    in_graph_mode(program, with_gradient=False)(np.float32([1, 2, 3]))
    assert seen == [2, 3]


def counting(counted, name):
    """A call by name that adds its name and operand to a list whenever it runs, and gives how long the list is then."""

    def count(i):
        counted.append((name, int(i)))
        return np.float32(len(counted))

    return call_tf(lambda i: tf.ensure_shape(tf.numpy_function(count, [i], tf.float32), []), call_tf_graph=True)


def looped(loop, turn):
    """The sum of what `turn` makes of x and the number of each of three turns."""

    def run(x):
        if loop == "scan":
            return jax.lax.scan(lambda total, i: (total + turn(x, i), None), 0 * x, jnp.arange(3))[0]
        if loop == "fori_loop":
            return jax.lax.fori_loop(0, 3, lambda i, total: total + turn(x, i), 0 * x)
        return jax.lax.map(lambda i: turn(x, i), jnp.arange(3)).sum()

    return run


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "map"])
def test_calls_in_loops_that_are_differentiated_run_in_each_turn(loop):
    counted = []
    first, second = counting(counted, "first"), counting(counted, "second")

    def turn(x, i):
        first(i)
        return x * jax.jit(second)(i)

    run = looped(loop, turn)
    for function in (run, jax.grad(run), jax.value_and_grad(run)):
        counted.clear()
        result = in_graph_mode(function)(np.float32(1))
        # TensorFlow keeps no order between the two.
        for name in ("first", "second"):
            assert [i for found, i in counted if found == name] == [0, 1, 2]
        seconds = [index + 1 for index, (name, _) in enumerate(counted) if name == "second"]
        assert set(map(float, tf.nest.flatten(result))) == {sum(seconds)}


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "map"])
def test_calls_that_do_not_depend_on_the_turn_are_refused_in_loops_that_are_differentiated(loop):
    counted = []
    count = counting(counted, "count")
    run = looped(loop, lambda x, i: x * count(0))
    assert in_graph_mode(run)(np.float32(1)) == 1 + 2 + 3
    with pytest.raises(UnsupportedError, match="depends on neither the carry nor the inputs of the loop"):
        in_graph_mode(jax.grad(run))(np.float32(1))
    assert len(counted) == 3


NARROW = {"int4": np.array([[0, 3, -8], [7, 4, -1]]), "uint4": np.array([[0, 3, 15], [7, 4, 8]])}

# What a function of a narrow array x and of floats y does with them: where it takes, gives and captures such arrays.
CROSSINGS = {
    "argument": lambda x, y: tf.cast(tf.cast(x, tf.int8), tf.float32) * y,
    "result": lambda x, y: tf.cast(tf.cast(y, tf.int8), x.dtype),
    "identity": lambda x, y: x,
    "both, and others": lambda x, y: {"x": x, "y": (y * 2, [tf.cast(tf.cast(x, tf.int8) // 2, x.dtype)])},
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("captures", [False, True])
@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize("dtype", NARROW)
def test_integers_of_4_bits_pass_into_and_out_of_what_is_called(dtype, crossing, captures, mode, symbolic):
    narrow = tf.cast(tf.constant(NARROW[dtype], tf.int8), tf.as_dtype(dtype))
    y = np.linspace(0, 7, 6, dtype=np.float32).reshape(2, 3)

    def called(x, y):
        return CROSSINGS[crossing](narrow if captures else x, y)

    shapes = ["(a, 3)", None if captures else "(a, 3)"] if symbolic else None
    converted = MODES[mode](convert(call_tf(called), polymorphic_shapes=shapes, native_serialization=False))
    expected = jax.tree.leaves(called(narrow, tf.constant(y)))
    for found, wanted in zip(tf.nest.flatten(converted(narrow, y)), expected, strict=True):
        assert found.dtype == wanted.dtype
        if wanted.dtype == dtype:
            found, wanted = tf.cast(found, tf.int8), tf.cast(wanted, tf.int8)  # noqa: PLW2901
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_integers_of_4_bits_within_a_model_are_right_with_gradients(mode):
    def model(weights, x):
        return call_tf(lambda w, x: tf.cast(w, tf.float32) * x**2)(weights.astype(jnp.int4), x).sum()

    weights = np.arange(-8, 8, dtype=np.int8)
    x = tf.Variable(np.linspace(-1, 1, 16, dtype=np.float32))

    def gradient(weights):
        with tf.GradientTape() as tape:
            y = convert(model, native_serialization=False)(weights, x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(MODES[mode](gradient)(weights), 2 * weights * x.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int2", "uint2", "float4_e2m1fn"])
def test_other_dtypes_narrower_than_a_byte_are_refused(dtype):
    try:
        jnp.zeros(1, dtype), tf.as_dtype(dtype)
    except TypeError as error:
        pytest.skip(f"not in these versions: {error}")

    def model(x):
        return call_tf(lambda x: x)(x.astype(dtype)).astype(jnp.int8)

    with pytest.raises(UnsupportedError, match=dtype):
        convert(model, native_serialization=False)(np.zeros(3, np.int8))
