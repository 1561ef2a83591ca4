"""`jax.vmap` of a call gives what a loop over the batch gives, vectorized or not."""

import gc
import logging
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import CompilationError, call_tf
from jaxtf.calltf._configuration import Configuration
from jaxtf.calltf._function import Staging, UserFunction
from jaxtf.calltf._traced import Traced
from jaxtf.calltf._vectorized import Vectorized

STAGES = pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])

BATCH = np.arange(12, dtype=np.float32).reshape(4, 3) / 5 - 1


def function_tf(x):
    return tf.sin(x) * tf.reduce_sum(x)


def function_jax(x):
    return jnp.sin(x) * x.sum()


def collatz_tf(x):
    """Runs another number of rounds for each element."""
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 9, lambda y: (y * y + 1,), (x,), maximum_iterations=9)[0]


def branching_tf(x):
    return tf.cond(x[0] > 0, lambda: x * 2, lambda: tf.sin(x))


@tf.custom_gradient
def clipped_tf(x):
    return x * x, lambda upstream: -7.0 * upstream * x


def branching_jax(x):
    return jnp.where(x[0] > 0, x * 2, jnp.sin(x))


def vectorizes(function, *specs):
    """Whether the batch is computed at once; `specs` are shapes, the first axis of the first is the batch."""
    tree = jax.tree.structure((tuple(0 for _ in specs), {}))
    user = UserFunction(function, tree, staging=Staging(), declared=None, configuration=Configuration.now())
    traced = Vectorized(user, (True, *(False for _ in specs[1:]))).trace(
        [jax.ShapeDtypeStruct(spec, np.float32) for spec in specs]
    )
    return not any(node.op.endswith("While") for node in traced.concrete.graph.as_graph_def().node)


def compositions(f):
    total = lambda x: f(x).sum()  # noqa: E731
    return {
        "vmap": jax.vmap(f),
        "in_axes and out_axes": jax.vmap(f, in_axes=1, out_axes=1),
        "nested": lambda x: jax.vmap(jax.vmap(f))(x.reshape(2, 2, 3)),
        "vmap of jit": jax.vmap(jax.jit(f)),
        "vmap of grad": jax.vmap(jax.grad(total)),
        "grad of vmap": jax.grad(lambda x: jax.vmap(f)(x).sum()),
        "vmap of jvp": jax.vmap(lambda x: jax.jvp(f, (x,), (x,))),
        "jvp of vmap": lambda x: jax.jvp(jax.vmap(f), (x,), (x,)),
        "vmap of hessian": jax.vmap(jax.hessian(total)),
        "grad of vmap of grad": jax.grad(lambda x: (jax.vmap(jax.grad(total))(x) ** 2).sum()),
        "jacobian of vmap": jax.jacfwd(jax.vmap(f)),
        "vmap of scan": jax.vmap(lambda x: jax.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[0]),
        "vmap of cond": jax.vmap(lambda x: jax.lax.cond(x[0] > 0, f, lambda x: x, x)),
    }


@pytest.mark.slow(2)
@STAGES
@pytest.mark.parametrize("name", compositions(function_jax))
@pytest.mark.parametrize(
    ("callable_tf", "reference"),
    [(function_tf, function_jax), (branching_tf, branching_jax)],
    ids=["vectorized", "loop"],
)
def test_vmap_composes_with_jax(name, callable_tf, reference, stage):
    found = stage(compositions(call_tf(callable_tf))[name])(BATCH)
    expected = compositions(reference)[name](BATCH)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5), found, expected)


@pytest.mark.parametrize(
    ("function", "vectorized"),
    [
        (function_tf, True),
        (lambda x: tf.linalg.matvec(tf.eye(3), x), True),
        (clipped_tf, True),
        (branching_tf, False),
        (collatz_tf, False),
        (lambda x: x * tf.random.uniform([]), False),
        (lambda x: tf.map_fn(tf.sin, x), False),
    ],
)
def test_the_batch_is_computed_at_once_where_that_is_known_to_be_right(function, vectorized):
    assert vectorizes(function, (4, 3)) == vectorized


@STAGES
def test_a_loop_that_depends_on_the_element_ends_where_that_one_ends(stage):
    found = stage(jax.vmap(call_tf(collatz_tf)))(BATCH)
    np.testing.assert_allclose(found, [collatz_tf(row) for row in BATCH], rtol=1e-6)


@STAGES
def test_arguments_without_a_batch_are_shared_and_their_gradients_summed(stage):
    def loss(w, x, call):
        return jax.vmap(call, in_axes=(None, 0))(w, x).sum()

    w = np.ones((3, 2), np.float32)
    found = stage(
        jax.grad(
            lambda w, x: loss(
                w,
                x,
                call_tf(lambda w, x: tf.tanh(x @ w if x.shape.rank > 1 else tf.linalg.matvec(w, x, transpose_a=True))),
            ),
            argnums=(0, 1),
        )
    )(w, BATCH)
    expected = jax.grad(lambda w, x: loss(w, x, lambda w, x: jnp.tanh(x @ w)), argnums=(0, 1))(w, BATCH)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


@STAGES
@pytest.mark.parametrize("moves", [(True, False), (False, True), (True, True)])
def test_tangents_may_have_a_batch_that_primals_have_not(stage, moves):
    def program(x, t, f):
        return jax.vmap(lambda x, t: jax.jvp(f, (x,), (t,))[1], in_axes=tuple(0 if m else None for m in moves))(x, t)

    x, t = (BATCH if m else BATCH[1] for m in moves)
    found = stage(lambda x, t: program(x, t, call_tf(function_tf)))(x, t)
    np.testing.assert_allclose(found, program(x, t, function_jax), rtol=1e-5, atol=1e-6)


@STAGES
def test_a_custom_gradient_survives_vectorization(stage):
    call = call_tf(clipped_tf)
    np.testing.assert_array_equal(stage(jax.grad(lambda x: jax.vmap(call)(x).sum()))(BATCH), -7 * BATCH)
    np.testing.assert_array_equal(stage(jax.vmap(jax.grad(lambda x: call(x).sum())))(BATCH), -7 * BATCH)
    np.testing.assert_array_equal(stage(lambda x: jax.jvp(jax.vmap(call), (x,), (x,))[1])(BATCH), -7 * BATCH**2)


@STAGES
def test_a_batch_of_no_elements_runs_nothing(stage):
    call = call_tf(lambda x: (tf.sin(x), tf.argmax(x)))
    sines, indices = stage(jax.vmap(call))(BATCH[:0])
    assert (sines.shape, sines.dtype, indices.shape, indices.dtype) == ((0, 3), np.float32, (0,), np.int32)
    assert stage(jax.grad(lambda x: jax.vmap(call)(x)[0].sum()))(BATCH[:0]).shape == (0, 3)
    assert stage(lambda x: jax.jvp(jax.vmap(call), (x,), (x,))[1][0])(BATCH[:0]).shape == (0, 3)


@STAGES
def test_every_element_draws_its_own_random_number(stage):
    found = stage(jax.vmap(call_tf(lambda x: tf.random.uniform([2]) + 0 * x[:2])))(BATCH)
    assert len(np.unique(found)) == found.size


@STAGES
def test_stateless_random_numbers_are_those_of_each_seed(stage):
    def draw(seed):
        return tf.random.stateless_uniform([3], seed, alg="philox")

    # Of a seed that is not a constant, compiled TensorFlow draws other numbers than eager TensorFlow.
    compiled = tf.function(draw, jit_compile=True)
    seeds = np.array([[1, 2], [3, 4], [1, 2]], np.int32)
    np.testing.assert_array_equal(
        stage(jax.vmap(call_tf(draw)))(seeds), [compiled(tf.constant(seed)) for seed in seeds]
    )
    shared = stage(jax.vmap(call_tf(lambda x: x + draw([5, 6]))))(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(shared, [draw([5, 6])] * 2)


@STAGES
def test_results_keep_structure_dtype_and_place_beside_unbatched_ones(stage):
    call = call_tf(
        lambda x, n: {"double": 2 * x, "shared": (n + 1, None), "empty": x[:0], "half": tf.cast(x, tf.bfloat16)}
    )
    found = stage(jax.vmap(call, in_axes=(0, None)))(BATCH, 7)
    np.testing.assert_array_equal(found["double"], 2 * BATCH)
    np.testing.assert_array_equal(found["shared"][0], [8] * 4)
    assert found["shared"][1] is None
    assert found["empty"].shape == (4, 0)
    assert found["half"].dtype == jnp.bfloat16


def test_variables_are_not_written_under_vmap():
    variable = tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"modifies a tf.Variable .* or under jax.vmap"):
        jax.vmap(call_tf(variable.assign_add))(BATCH[0])
    assert variable.numpy() == 1.0


@STAGES
def test_what_tensorflow_does_not_compile_is_refused_under_vmap(stage):
    batch = np.ones((2, 3, 3), np.float32)
    with pytest.raises(CompilationError, match=r"vmap_matrix_square_root(.|\n)*remedy: .* jax\.vmap"):
        stage(jax.vmap(call_tf(tf.linalg.sqrtm)))(batch)


def test_nothing_is_logged_where_tensorflow_does_not_vectorize(tmp_path):
    module = tf.Module()
    module.weights = tf.Variable([1.0, 2.0, 3.0])
    specification = [tf.TensorSpec([3], tf.float32)]
    module.total = tf.function(lambda x: tf.reduce_sum(tf.cumsum(x) ** 2 * module.weights), specification)
    tf.saved_model.save(module, tmp_path)
    loaded, records, logger = tf.saved_model.load(tmp_path), [], tf.get_logger()
    handler, filters = logging.Handler(), list(logger.filters)
    handler.emit = records.append
    logger.addHandler(handler)
    try:
        found = jax.hessian(call_tf(loaded.total))(np.ones(3, np.float32))
        assert not [record.filename for record in records]
        logger.error("Others report as ever.")
        assert len(records) == 1
    finally:
        logger.removeHandler(handler)
    assert logger.filters == filters
    np.testing.assert_allclose(found, [[12, 10, 6], [10, 10, 6], [6, 6, 6]])


def test_a_captured_variable_is_read_under_vmap():
    variable = tf.Variable(3.0)
    call = jax.vmap(call_tf(lambda x: x * variable))
    np.testing.assert_array_equal(call(BATCH), BATCH * 3)
    variable.assign(2.0)
    np.testing.assert_array_equal(call(BATCH), BATCH * 2)


def test_a_vectorized_function_is_traced_once_in_eager_mode():
    traces = []
    call = call_tf(lambda x: traces.append(None) or tf.sin(x))
    jax.vmap(call)(BATCH)
    count = len(traces)
    jax.vmap(call)(BATCH)
    assert len(traces) == count


@STAGES
def test_spmd_axis_name_is_refused_with_the_remedy(stage):
    message = (
        r"(?s)jax.vmap of function_tf with spmd_axis_name=\('x',\) is not supported.*remedy: leave spmd_axis_name out"
    )
    with pytest.raises(NotImplementedError, match=message):
        stage(jax.vmap(call_tf(function_tf), spmd_axis_name="x"))(BATCH)


@STAGES
def test_a_result_that_differs_in_shape_between_elements_is_refused(stage):
    with pytest.raises(ValueError, match="output has dynamic shape"):
        stage(jax.vmap(call_tf(lambda x: tf.boolean_mask(x, x > 0))))(BATCH)


WITH_NAN = np.array([[np.nan, -1, 0, 1.5], [0, np.nan, 3, 1]], np.float32)
OF_MAXIMA = {
    "reduce_max": tf.reduce_max,
    "reduce_min": tf.reduce_min,
    "segment_max": lambda x: tf.math.unsorted_segment_max(x, [0, 0, 1, 1], 2),
    "max_pool": lambda x: tf.nn.max_pool1d(x[None, :, None], 2, 1, "VALID"),
}


def evaluated(f):
    return lambda batch: jax.core.eval_jaxpr(jax.make_jaxpr(jax.vmap(f))(batch).jaxpr, (), batch)[0]


EXECUTED = {
    "vmap": jax.vmap,
    "vmap of the gradient": lambda f: jax.vmap(jax.grad(lambda x: f(x).sum())),
    "jacfwd": lambda f: lambda batch: jnp.stack([jax.jacfwd(f)(x) for x in batch]),
    "jaxpr": evaluated,
}


@pytest.mark.parametrize("kind", EXECUTED)
@pytest.mark.parametrize("name", OF_MAXIMA)
def test_a_batch_has_the_nan_of_a_compiled_one_in_maxima(name, kind):
    batched = EXECUTED[kind](call_tf(OF_MAXIMA[name]))
    np.testing.assert_array_equal(batched(WITH_NAN), jax.jit(batched)(WITH_NAN))
    if kind in ("vmap", "jaxpr") and name.startswith("reduce"):
        np.testing.assert_array_equal(batched(WITH_NAN), [np.nan, np.nan])


def test_nan_is_kept_where_jit_is_disabled():
    with jax.disable_jit():
        assert np.isnan(jax.jit(call_tf(tf.reduce_max))(WITH_NAN[0]))
        assert np.isnan(jax.vmap(call_tf(tf.reduce_max))(WITH_NAN)).all()


def test_an_eager_batch_reads_its_captures_again_with_their_own_dtypes(x64):
    variable = tf.Variable(np.float64(1 + 2**-40))
    batched = jax.vmap(call_tf(lambda x: tf.cast((variable - 1) * 2**40, tf.float32) * x))
    np.testing.assert_array_equal(batched(np.ones(2, np.float32)), [1, 1])
    variable.assign(1 + 2**-39)
    np.testing.assert_array_equal(batched(np.ones(2, np.float32)), [2, 2])


def test_what_ran_in_a_batch_is_freed():
    def function(x):
        return tf.sin(x)

    alive = weakref.ref(function)
    jax.vmap(call_tf(function))(np.ones(2, np.float32))
    del function
    gc.collect()
    assert alive() is None


def test_an_eager_batch_is_compiled_once():
    traces = []
    batched = jax.vmap(call_tf(lambda x: traces.append(None) or tf.sin(x)))
    batched(np.ones(2, np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Traced, "hlo", None)
        np.testing.assert_allclose(batched(np.zeros(2, np.float32)), 0)
    assert len(traces) == 1
