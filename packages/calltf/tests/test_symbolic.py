"""A call with symbolic shapes is one program for all sizes; JAX itself exports, reloads and runs it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import export  # the authority: what it takes is an ordinary JAX program

from jaxtf.calltf import call_tf

RNG = np.random.default_rng(0)


def specs(*shapes, constraints=()):
    scope = export.SymbolicScope(constraints)
    return [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), np.float32) for shape in shapes]


def exported(function, *arguments, platforms=("cpu",)):
    return export.deserialize(export.export(jax.jit(function), platforms=platforms)(*arguments).serialize())


def layer_norm(x):
    return tf.nn.batch_normalization(x, *tf.nn.moments(x, [0]), None, None, 1e-3)


def positions(x):
    return x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None]


def batch_norm(version, form):
    operation = getattr(tf.raw_ops, f"FusedBatchNorm{version}")
    details = {"scale": [0.5, 2.0], "offset": [0.1, -0.3], "mean": [0.3, -0.2], "variance": [0.5, 2.0]}
    return lambda x: operation(x=x, is_training=False, data_format=form, **details)[0]


ONE = [((size, 3),) for size in (1, 2, 3, 9, 300)]
IMAGES = [((1, 4, 4, 2),), ((5, 4, 4, 2),)]
CASES = {
    "sin": (tf.sin, ["b, 3"], ONE),
    "concat": (lambda x: tf.concat([x, x], axis=0), ["b, 3"], ONE),
    "softmax": (tf.nn.softmax, ["b, 3"], ONE),
    "mean": (tf.reduce_mean, ["b, 3"], ONE),
    "reshape of a product": (
        lambda x, y: tf.reshape(x @ y, [-1]),
        ["b, 3", "3, c"],
        [((2, 3), (3, 4)), ((1, 3), (3, 1)), ((7, 3), (3, 2))],
    ),
    "constants": (lambda x: x * tf.constant([1.0, 2.0, 3.0]) + 1, ["b, 3"], ONE),
    "range": (positions, ["b, 3"], ONE),
    "size": (lambda x: (tf.shape(x)[0], x), ["b, 3"], ONE),
    "all but one": (lambda x: x[:-1], ["b, 3"], ONE[1:]),
    "every other": (lambda x: x[::2], ["b, 3"], ONE),
    "last": (lambda x: x[-1], ["b, 3"], ONE),
    "map_fn": (lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), ["b, 3"], ONE[:-1]),
    "conv2d": (lambda x: tf.nn.conv2d(x, tf.ones((2, 2, 2, 4)), 1, "SAME"), ["b, 4, 4, 2"], IMAGES),
    "resize": (lambda x: tf.image.resize(x, (6, 6)), ["b, 4, 4, 2"], IMAGES),
    "batch norm": (batch_norm("", "NHWC"), ["b, 4, 4, 2"], IMAGES),
    "batch norm 2": (batch_norm("V2", "NCHW"), ["b, 2, 1, 1"], [((1, 2, 1, 1),), ((5, 2, 1, 1),)]),
    "batch norm 3": (batch_norm("V3", "NHWC"), ["b, 4, 4, 2"], IMAGES),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), ["b, 3"], ONE),
    "layer norm": (layer_norm, ["b, 3"], ONE),
    "gather": (lambda x: tf.gather(x, [0, 1], axis=1), ["b, 3"], ONE),
    "einsum": (lambda x: tf.einsum("bi,bj->ij", x, x), ["b, 3"], ONE),
    "reverse": (lambda x: tf.reverse(x, [0]), ["b, 3"], ONE),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", CASES)
def test_a_function_is_exported_reloaded_and_run_at_several_sizes_with_gradients(name):
    function, shapes, sizes = CASES[name]
    call = call_tf(function)

    def gradient(*xs):
        def total(*xs):
            return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(call(*xs)) if jnp.issubdtype(leaf.dtype, np.floating))

        return jax.grad(total, argnums=tuple(range(len(xs))))(*xs)

    for program in (call, gradient):
        reloaded = exported(program, *specs(*shapes))
        for shapes_here in sizes:
            args = [RNG.normal(size=shape).astype(np.float32) for shape in shapes_here]
            expected = jax.tree.leaves(program(*args))
            for found, wanted in zip(jax.tree.leaves(reloaded.call(*args)), expected, strict=True):
                assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: tf.concat([x, x], 0), "(2*b, 3)"),
        (lambda x: tf.reshape(x, [-1]), "(3*b,)"),
        (lambda x: x[1:], "(b - 1, 3)"),
        (lambda x: x[::2], "(floordiv(b + 1, 2), 3)"),
        (lambda x: x[:10], "(min(b, 10), 3)"),
        (lambda x: tf.reduce_sum(x, 0), "(3,)"),
        (lambda x: tf.einsum("bi,ci->bc", x, x), "(b, b)"),
        (lambda x: tf.reshape(tf.einsum("bi,ci->bc", x, x), [-1]), "(b^2,)"),
    ],
)
def test_shapes_of_results_are_inferred_as_formulas(function, shape):
    [result] = jax.tree.leaves(jax.jit(call_tf(function)).eval_shape(*specs("b, 3")))
    assert str(result.shape) == shape


def test_sizes_that_are_formulas_of_others_and_constraints_are_understood():
    arguments = specs("2*b, c", "b, c", "b + c", constraints=("b >= 2*c", "mod(b, 4) == 0"))
    reloaded = exported(call_tf(lambda x, y, z: (tf.concat([x, y], 0), z[tf.shape(y)[1] :])), *arguments)
    assert str(reloaded.out_avals[0].shape) == "(3*b, c)"
    x, y, z = np.ones((16, 3), np.float32), np.zeros((8, 3), np.float32), np.arange(11, dtype=np.float32)
    found = reloaded.call(x, y, z)
    np.testing.assert_array_equal(found[0], np.concatenate([x, y]))
    np.testing.assert_array_equal(found[1], z[3:])


def test_a_declared_symbolic_shape_is_used_and_checked():
    def program(x):
        call = call_tf(
            lambda x: tf.concat([x, x], axis=0),
            output_shape_dtype=jax.ShapeDtypeStruct((x.shape[0] * 2, *x.shape[1:]), x.dtype),
        )
        return jnp.ones(call(x).shape) + call(x)

    x = np.ones((5, 3), np.float32)
    np.testing.assert_array_equal(exported(program, *specs("b, 3")).call(x), np.full((10, 3), 2.0))
    same = exported(lambda x: call_tf(tf.math.sin, output_shape_dtype=x)(x), *specs("b, 3"))
    np.testing.assert_allclose(same.call(x), np.sin(x), rtol=1e-6)


def test_a_violated_declaration_is_refused():
    message = r"(?s)match the declared output_shape_dtype.*float32\[2\*b, 3\] vs. expected float32\[b \+ 1, 3\]"
    with pytest.raises(ValueError, match=message):
        jax.jit(
            lambda x: call_tf(
                lambda x: tf.concat([x, x], 0), output_shape_dtype=jax.ShapeDtypeStruct((x.shape[0] + 1, 3), x.dtype)
            )(x)
        ).trace(*specs("b, 3"))
    [stranger] = specs("stranger, 3")
    with pytest.raises(ValueError, match=r"no argument of the call has the dimension variable 'stranger'"):
        jax.jit(call_tf(tf.sin, output_shape_dtype=stranger)).trace(*specs("b, 3"))
    with pytest.raises(
        ValueError, match=r"Result\[0\] is of constant shape, as the arguments are, vs. expected float32"
    ):
        jax.jit(call_tf(tf.sin, output_shape_dtype=stranger))(np.ones((2, 3), np.float32))


def loop(turn, x):
    """A loop whose array may have other sizes in each turn."""
    body = lambda count, y: (count + 1, turn(y))  # noqa: E731
    shapes = tf.TensorShape([]), tf.TensorShape([None, None])
    return tf.while_loop(lambda count, y: count < 3, body, (0, x), shape_invariants=shapes)[1]


def test_a_loop_that_may_change_sizes_and_does_not_has_a_form():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = exported(call_tf(lambda x: loop(lambda y: y * 2, x)), *specs("b, 3")).call(x)
    np.testing.assert_array_equal(found, x * 8)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            lambda x: tf.cond(tf.shape(x)[0] > 3, lambda: x[3], lambda: x[0]),
            r"operation StridedSlice \(.*takes element 3 of b, not b >= 4 for all sizes",
        ),
        (tf.linalg.diag_part, r"operation MatrixDiagPartV3 \(.*is of a matrix that is not square, \[b, 3\]"),
        (lambda x: x[: tf.cast(x[0, 0], tf.int32)], r"operation StridedSlice \(.*not computed by"),
        (lambda x: x + tf.ones([tf.shape(x)[0] + 1, 3]), "AddV2 .* broadcasts sizes b and b . 1, not equal"),
        (lambda x: tf.boolean_mask(x, x[:, 0] > 0), "Where .* has no entry in the table"),
        (
            lambda x: tf.compat.v1.nn.fused_batch_norm(x[:, None, None], [1.0] * 3, [0.0] * 3)[0],
            r"operation FusedBatchNormV3 \(.*is training, and compiled with the quotient of a size",
        ),
        (
            lambda x: tf.gradients(tf.while_loop(lambda y: tf.reduce_sum(y) < 9, lambda y: (y * y + 1,), (x,)), x)[0],
            r"operation EmptyTensorList \(.*without a bound on its elements, .*",
        ),
        (lambda x: loop(lambda y: tf.concat([y, y], 0), x), r"operation StatelessWhile.*shape \[b, 3\] to \[2\*b, 3\]"),
        (lambda x: loop(lambda y: y[None, :, 0], x), r"operation StatelessWhile.*shape \[b, 3\] to \[1, b\] in a turn"),
        (
            lambda x: tf.cond(x[0, 0] > 0, lambda: x, lambda: tf.concat([x, x], 0)),
            r"operation StatelessIf \(.*other shapes in its branches, \[2\*b, 3\] and \[b, 3\]",
        ),
    ],
)
def test_an_operation_that_has_no_form_for_all_sizes_is_refused_by_name(function, reason):
    message = f"(?s)is called with symbolic sizes, and its {reason}.*remedy" if "operation" in reason[:9] else reason
    with pytest.raises(NotImplementedError, match=f"(?s){message}"):
        exported(call_tf(function), *specs("b, 3"))


def test_python_that_needs_the_size_is_refused_when_traced():
    with pytest.raises(TypeError) as raised:
        jax.jit(call_tf(lambda x: x if x.shape[0] > 3 else x + 1)).trace(*specs("b, 3"))
    assert "call_tf traced <lambda> to a TensorFlow graph" in raised.value.__notes__[0]


def test_constraints_decide():
    [spec] = specs("b, 3", constraints=("b >= 4",))
    assert exported(call_tf(lambda x: x[3]), spec).call(np.ones((4, 3), np.float32)).shape == (3,)
    few = exported(call_tf(lambda x: x[:2]), *specs("b, 3", constraints=("b <= 3",)))
    assert [few.call(np.ones((rows, 3), np.float32)).shape for rows in (1, 2, 3)] == [(1, 3), (2, 3), (2, 3)]


def test_forward_mode_and_vmap_take_symbolic_shapes():
    call = call_tf(lambda x: tf.reduce_sum(x * x, axis=-1))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    pushed = exported(lambda x: jax.jvp(call, (x,), (x,))[1], *specs("b, 3"))
    np.testing.assert_allclose(pushed.call(x), 2 * (x * x).sum(-1), rtol=1e-6)
    np.testing.assert_allclose(exported(jax.vmap(call), *specs("b, 3")).call(x), (x * x).sum(-1), rtol=1e-6)


def test_a_call_is_exported_for_several_platforms_at_once():
    reloaded = exported(call_tf(lambda x: tf.concat([x, x], 0)), *specs("b, 3"), platforms=("cpu", "cuda", "rocm"))
    assert reloaded.call(np.ones((2, 3), np.float32)).shape == (4, 3)


@pytest.mark.parametrize("platforms", [("cpu",), ("cuda", "cpu")])
def test_captured_variables_are_constants(platforms):
    weights = tf.Variable([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="does not capture"):
        reloaded = exported(call_tf(lambda x: x * weights), *specs("b, 3"), platforms=platforms)
    np.testing.assert_array_equal(reloaded.call(np.ones((2, 3), np.float32)), [[1, 2, 3]] * 2)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_constants_of_16_bits_are_constants(dtype):  # with no warning of NumPy's
    function = call_tf(lambda x: tf.cast(tf.cast(x, dtype) * tf.constant([2, 3, 3], dtype) + 1, tf.float32))
    reloaded = exported(function, *specs("b, 3"))
    np.testing.assert_array_equal(reloaded.call(np.ones((2, 3), np.float32)), [[3, 4, 4]] * 2)


def test_a_captured_table_is_refused():
    values = tf.lookup.KeyValueTensorInitializer([0, 1], [1.0, 2.0])
    table = tf.lookup.StaticHashTable(values, 0.0)
    with pytest.raises(ValueError, match=r"captures a resource that is not a variable.*\n  remedy"):
        jax.jit(call_tf(lambda x: x * table.lookup(tf.constant(1)))).trace(*specs("b, 3"))


@pytest.mark.parametrize("shape", [[None, 3], None])
def test_a_captured_variable_of_unknown_sizes_is_refused(shape):
    weights = tf.Variable([[1.0, 2.0, 3.0]], shape=tf.TensorShape(shape))
    with pytest.raises(NotImplementedError, match=r"captures tf.Variable .* sizes are not all known\n  remedy: pass"):
        jax.jit(call_tf(lambda x: x * weights)).trace(*specs("b, 3"))


def test_sizes_that_no_constraint_allows_are_refused_with_what_needs_them():
    function = lambda x: (x[3], tf.ensure_shape(x, [2, 3]))  # noqa: E731
    with pytest.raises(
        NotImplementedError, match=r"takes element 3 of 2, not 2 >= 4 for all sizes given b == 2, which"
    ):
        exported(call_tf(function), *specs("b, 3"))


def test_shapes_that_tensorflow_refuses_at_a_size_are_refused_by_name():
    with pytest.raises(NotImplementedError, match=r"Conv2DBackpropInput \(.*\) is not possible for b = \d+ \(.*"):
        exported(
            call_tf(lambda x: tf.nn.conv2d_transpose(x, tf.ones((2, 2, 2, 2)), (1, 6, 6, 2), 2)), *specs("b, 3, 3, 2")
        )


def test_a_symbolic_signature_is_traced_once():
    traces = []
    call = call_tf(lambda x: (traces.append(x.shape), tf.sin(x))[1])
    exported(lambda x: call(x) + call(call(x)), *specs("b, 3"))
    assert len(traces) == 1
    assert traces[0].as_list() == [None, 3]
