"""Sizes that an operation does not take are refused when the program runs: by size, function and operation."""

import re

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import export

from jaxtf.calltf import call_tf
from jaxtf.serialization import deserialize
from jaxtf.serialization import export as export_own
from jaxtf.shapepoly import symbolic_shape


def rows(x):
    return tf.shape(x)[0]


# Function, what it needs of the sizes of its argument, and the operation.
CASES = {
    "an element": (lambda x: x[3], "b >= 4", "StridedSlice", "takes element 3 of b"),
    "the largest": (lambda x: tf.math.top_k(tf.transpose(x), 2)[0], "b >= 2", "TopKV2", "takes 2 of b"),
    "a slice": (lambda x: tf.slice(x, [1, 0], [2, 3]), "b >= 3", "Slice", "takes 2 from 1 on of b"),
    "a range": (lambda x: tf.range(rows(x) - 2), "b - 2 >= 0", "Range", "has a size b - 2"),
    "halves": (lambda x: tf.split(x, 2)[1], "2*floordiv(b, 2) == b", "Split", "divides b into 2 parts"),
    "a size": (lambda x: tf.ensure_shape(x, [4, 3]) * 2, "b == 4", "EnsureShape", "has operands of shapes [b, 3]"),
    "rows of 4": (
        lambda x: tf.reshape(x, [-1, 4]),
        "4*floordiv(3*b, 4) == 3*b",
        "Reshape",
        "makes the shape [floordiv(3*b, 4), 4] of [b, 3]",
    ),
    "updates": (
        lambda x: tf.tensor_scatter_nd_update(x, [[0], [0]], 2 * x[:2]),
        "min(b, 2) == 2",
        "TensorScatterUpdate",
        "has operands of shapes [min(b, 2), 3] and [2, 3]",
    ),
    "one row": (lambda x: tf.squeeze(x, [0]), "b == 1", "Squeeze", "drops axis 0 of [b, 3]"),
    "parts": (lambda x: tf.split(x, [2, -1])[1], "b - 2 >= 0", "SplitV", "has a size b - 2"),
    "padded": (lambda x: tf.pad(x, [[0, rows(x) - 3], [0, 0]]), "b - 3 >= 0", "Pad", "has a size b - 3"),
    "gathered": (
        lambda x: tf.gather(x, [[0, 2], [1, 0]]),
        "b >= 3",
        "GatherV2",
        "takes element 2 of b",
    ),
    "embedded": (lambda x: tf.nn.embedding_lookup(x, [1, 0]), "b >= 2", "GatherV2", "takes element 1 of b"),
    "gathered columns": (
        lambda x: tf.gather(tf.transpose(x), [3, 0], axis=1),
        "b >= 4",
        "GatherV2",
        "takes element 3 of b",
    ),
    "gathered in batches": (
        lambda x: tf.gather(tf.transpose(x), [[0], [2], [1]], batch_dims=1),
        "b >= 3",
        "GatherV2",
        "takes element 2 of b",
    ),
    "gathered by many": (
        lambda x: tf.gather(x, np.arange(5000, dtype=np.int32) % 4),
        "b >= 4",
        "GatherV2",
        "takes element 3 of b",
    ),
    "gathered by a range": (lambda x: tf.gather(x, tf.range(3)), "b >= 3", "GatherV2", "takes element 2 of b"),
    "gathered elements": (
        lambda x: tf.gather_nd(x, [[0, 2], [3, 1]]),
        "b >= 4",
        "GatherNd",
        "takes element 3 of b",
    ),
    "scattered": (
        lambda x: tf.scatter_nd([[0], [2]], [1.0, 2.0], [rows(x)]),
        "b >= 3",
        "ScatterNd",
        "takes element 2 of b",
    ),
    "updated": (
        lambda x: tf.tensor_scatter_nd_update(x, [[1]], [[1.0, 2.0, 3.0]]),
        "b >= 2",
        "TensorScatterUpdate",
        "takes element 1 of b",
    ),
    "added": (
        lambda x: tf.tensor_scatter_nd_add(x, [[0, 1], [2, 2]], [1.0, 2.0]),
        "b >= 3",
        "TensorScatterAdd",
        "takes element 2 of b",
    ),
    "segments": (
        lambda x: tf.math.unsorted_segment_sum(tf.constant([1.0, 2.0, 3.0]), [0, -1, 2], rows(x)),
        "b >= 3",
        "UnsortedSegmentSum",
        "takes element 2 of b",
    ),
    "classes": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 3], tf.transpose(x)),
        "b >= 4",
        "SparseSoftmaxCrossEntropyWithLogits",
        "takes element 3 of b",
    ),
    "a band": (lambda x: tf.linalg.band_part(x, 2, 0), "b >= 2", "MatrixBandPart", "keeps 2 diagonals of b"),
    "rows apart": (lambda x: tf.unstack(x, 2)[1], "b == 2", "Unpack", "divides b into 2 parts"),
    "an element of a list": (
        lambda x: tf.TensorArray(tf.float32, size=rows(x), clear_after_read=False).unstack(x).read(2),
        "b >= 3",
        "TensorListGetItem",
        "takes element 2 of b",
    ),
    "a list that is written to": (
        lambda x: tf.TensorArray(tf.float32, size=rows(x)).unstack(x).write(2, [1.0, 2.0, 3.0]).stack(),
        "b >= 3",
        "TensorListSetItem",
        "takes element 2 of b",
    ),
    "two needs": (lambda x: (x[1], tf.reshape(x, [-1, 6])), "b >= 2", "StridedSlice", "takes element 1 of b"),
}


def rows_of(size):
    return np.linspace(-1, 1, 3 * size, dtype=np.float32).reshape(size, 3)


def text_of(error):
    """What an error of a call in JAX says, with its causes."""
    return f"{error}\n{text_of(error.__cause__)}" if error is not None else ""


@pytest.mark.parametrize("name", CASES)
def test_a_size_is_taken_or_refused_as_tensorflow_does_with_size_function_and_operation(name):
    function, needed, operation, what = CASES[name]
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    exported = export.export(jax.jit(lambda x: jax.tree.map(lambda y: 1 * y, call_tf(function)(x))))(spec)
    taken = refused = 0
    for size in (1, 2, 3, 4, 5, 8):
        x = rows_of(size)
        try:
            expected = [y.numpy() for y in tf.nest.flatten(function(tf.constant(x)))]
        except (tf.errors.OpError, ValueError):
            with pytest.raises(ValueError, match="Error refining shapes") as raised:
                exported.call(x)
            assert (
                re.search(
                    rf"call_tf: <lambda>, whose operation {operation} \([\w/]+\) {re.escape(what)}.*, needs "
                    rf".*, and has b = {size}\n  remedy: call it with such sizes",
                    text_of(raised.value),
                )
                or name == "two needs"
            )
            assert f"needs {needed}" in text_of(raised.value) or name == "two needs"
            refused += 1
        else:
            for y, wanted in zip(jax.tree.leaves(exported.call(x)), expected, strict=True):
                np.testing.assert_array_equal(y, wanted)
            taken += 1
    assert taken
    assert refused


def test_an_artifact_says_so_when_it_is_called_and_differentiated():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32)
    exported = deserialize(export_own(call_tf(lambda x: x[3] ** 2))(spec).serialize(vjp_order=1))
    calls = {"call": exported.call, "gradient": jax.grad(lambda x: exported.call(x).sum())}
    np.testing.assert_array_equal(calls["gradient"](rows_of(4))[3], 2 * rows_of(4)[3])
    for call in calls.values():
        with pytest.raises(ValueError, match="in the call of") as raised:
            call(rows_of(2))
        assert str(raised.value) == (
            "in the call of the exported function '<lambda>': call_tf: <lambda>, whose operation StridedSlice "
            "(strided_slice) takes element 3 of b, needs b >= 4, and has b = 2\n"
            "  remedy: call it with such sizes; to require them, add the constraint 'b >= 4' when the function "
            "is exported"
        )


def test_in_control_flow_of_jax_and_with_several_sizes():
    def program(x, y):
        step = call_tf(lambda x, y: x + tf.matmul(y, x)[0] + x[1])
        return jax.lax.scan(lambda carry, _: (step(carry, y), None), x, length=2)[0]

    b, c, d = export.symbolic_shape("b, c, d")
    specs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((b, 3), (c, d))]
    exported = export.export(jax.jit(program))(*specs)
    x, y = rows_of(4), np.ones((2, 4), np.float32)
    np.testing.assert_allclose(exported.call(x, y), program(x, y), rtol=1e-6)
    with pytest.raises(ValueError, match="Error refining shapes") as raised:
        exported.call(x, np.ones((2, 5), np.float32))
    assert re.search(r"operation MatMul .*, needs \w == \w, and has b = 4, c = 2, d = 5\n", text_of(raised.value))


def test_what_the_constraints_decide_is_not_looked_at():
    scope = export.SymbolicScope(["b >= 4"])
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3", scope=scope), np.float32)
    exported = export.export(jax.jit(call_tf(lambda x: x[3])))(spec)
    assert "call_tf: <lambda>" not in exported.mlir_module()
    unconstrained = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    assert "call_tf: <lambda>" in export.export(jax.jit(call_tf(lambda x: x[3])))(unconstrained).mlir_module()


def test_later_operations_know_what_earlier_ones_need():
    """`x[3]` needs 4 rows, so that the first 2 are 2."""
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    exported = export.export(jax.jit(call_tf(lambda x: x[:2] + tf.reshape(x[3], [1, 3]))))(spec)
    assert [str(aval.shape) for aval in exported.out_avals] == ["(2, 3)"]


def test_constant_indices_within_an_inner_function_require_the_size_and_computed_ones_are_data():
    inner = tf.function(lambda x, indices: 1 * tf.gather(x, indices), autograph=False)
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    exported = export.export(jax.jit(call_tf(lambda x: inner(x, tf.constant([2, 0])))))(spec)
    with pytest.raises(ValueError, match="Error refining shapes") as raised:
        exported.call(rows_of(2))
    assert "takes element 2 of b, needs b >= 3, and has b = 2" in text_of(raised.value)
    specs = [spec, jax.ShapeDtypeStruct((2,), np.int32)]
    computed = export.export(jax.jit(call_tf(inner)))(*specs)
    assert "call_tf: " not in computed.mlir_module()


def test_a_negative_index_is_of_no_element_at_any_size():
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    with pytest.raises(NotImplementedError, match=r"GatherV2 \(GatherV2\) takes element -1 of b"):
        export.export(jax.jit(call_tf(lambda x: tf.gather(x, [0, -1]))))(spec)
