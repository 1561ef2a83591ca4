"""What TFLite's converter refuses is what the table says, and nothing is refused that the converter takes."""

import re

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import TFLiteUnsupported, _tf, save_model, to_tflite
from jaxtf.convert._tflite.limits import REFUSED, refused

RAW = {
    "ArgMax": lambda x: tf.argmax(x, 0),
    "ArgMin": lambda x: tf.argmin(x, 0),
    "BatchMatMulV2": lambda x: tf.matmul(tf.reshape(x, [1, 2, 2]), tf.reshape(x, [1, 2, 2])),
    "BroadcastTo": lambda x: tf.broadcast_to(x, [3, 4]),
    "Cholesky": lambda x: tf.linalg.cholesky(tf.reshape(x, [2, 2])),
    "Complex": lambda x: tf.complex(x, x),
    "ConcatV2": lambda x: tf.concat([x, x], 0),
    "Conj": tf.math.conj,
    "Cumprod": tf.math.cumprod,
    "Cumsum": tf.cumsum,
    "FFT": tf.signal.fft,
    "GatherV2": lambda x: tf.gather(x, [0, 2]),
    "IFFT": tf.signal.ifft,
    "LogSoftmax": tf.nn.log_softmax,
    "MatMul": lambda x: tf.matmul(tf.reshape(x, [2, 2]), tf.reshape(x, [2, 2])),
    "MatrixTriangularSolve": lambda x: tf.linalg.triangular_solve(tf.reshape(x, [2, 2]), tf.reshape(x, [2, 2])),
    "Max": lambda x: tf.reduce_max(x, [0]),
    "Min": lambda x: tf.reduce_min(x, [0]),
    "PadV2": lambda x: tf.pad(x, [[1, 1]], constant_values=tf.cast(1, x.dtype)),
    "Polygamma": tf.math.polygamma,
    "Prod": lambda x: tf.reduce_prod(x, [0]),
    "Qr": lambda x: tf.linalg.qr(tf.reshape(x, [2, 2]))[0],
    "Relu": tf.nn.relu,
    "ReverseV2": lambda x: tf.reverse(x, [0]),
    "SelectV2": lambda x: tf.where(tf.equal(tf.cast(x, tf.float32), 0), x, x),
    "SelfAdjointEigV2": lambda x: tf.linalg.eigh(tf.reshape(x, [2, 2]))[0],
    "Slice": lambda x: tf.slice(x, [0], [2]),
    "Softmax": tf.nn.softmax,
    "StridedSlice": lambda x: x[0:2],
    "Sum": lambda x: tf.reduce_sum(x, [0]),
    "Svd": lambda x: tf.linalg.svd(tf.reshape(x, [2, 2]))[0],
    "TensorScatterMax": lambda x: tf.tensor_scatter_nd_max(x, [[0]], x[:1]),
    "TensorScatterMin": lambda x: tf.tensor_scatter_nd_min(x, [[0]], x[:1]),
    "TensorScatterUpdate": lambda x: tf.tensor_scatter_nd_update(x, [[0]], x[:1]),
    "TopKV2": lambda x: tf.math.top_k(x, 2)[0],
    "Transpose": lambda x: tf.transpose(tf.reshape(x, [2, 2])),
    "Zeta": tf.math.zeta,
}
NAMES = """
    AddV2 BitwiseAnd BitwiseOr BitwiseXor Equal FloorMod Greater GreaterEqual LeftShift Less LessEqual Maximum
    Minimum Mul NotEqual Pow RealDiv RightShift Sub TruncateDiv
"""
BINARY = NAMES.split()
TWICE = ("Polygamma", "Zeta")


def made(name, x):
    if name in RAW:
        return RAW[name](*([x, x] if name in TWICE else [x]))
    raw = getattr(tf.raw_ops, name)
    return raw(x=x, y=x) if name in BINARY else raw(x=x)


# Four elements of each dtype, all the operations at once: the error names those that are left over.
@pytest.mark.parametrize("dtype", sorted(REFUSED, key=str), ids=lambda dtype: dtype.name)
def test_the_converter_refuses_what_the_table_names(dtype):
    def run(x):
        return {name: made(name, x) for name in sorted(REFUSED[dtype])}

    concrete = tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec([4], dtype))
    with pytest.raises(_tf.tflite_converter_error()) as error:
        tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module()).convert()
    left = set(re.findall(r"^\s*tf\.(\w+)\(", str(error.value), re.MULTILINE))
    assert REFUSED[dtype] - left == set()
    names = {op for op, _, _ in refused(concrete.graph.as_graph_def(), ["x"], [x.name for x in concrete.outputs])}
    assert REFUSED[dtype] - names == set()


@pytest.fixture
def without_converter(monkeypatch):
    class Converter:
        def convert(self):
            raise AssertionError("the converter was asked")

    monkeypatch.setattr(tf.lite.TFLiteConverter, "from_concrete_functions", lambda *_: Converter())


def test_what_is_known_is_refused_before_the_converter_runs(without_converter):
    with pytest.raises(TFLiteUnsupported) as error:
        to_tflite(lambda n: (n & 5) + (n & 9) + (n | 3), input_signature=[tf.TensorSpec([3], tf.int32)])
    assert str(error.value) == (
        "TFLite has no builtin operation for tf.BitwiseAnd, tf.BitwiseOr\n"
        "  found:  BitwiseAnd of int32 at jaxtf_lambda/and/BitwiseAnd and 1 more\n"
        "  found:  BitwiseOr of int32 at jaxtf_lambda/or/BitwiseOr\n"
        "  remedy: compute that part outside of the model, or write it with other operations or dtypes"
    )


def test_loops_and_branches_are_looked_into(without_converter):
    def looped(n):
        return jax.lax.fori_loop(0, 3, lambda i, v: jax.lax.cond(v[0] > 0, lambda v: v & 5, lambda v: v + 1, v), n)

    with pytest.raises(TFLiteUnsupported, match=r"  found:  BitwiseAnd of int32 at jaxtf_looped/while/\S+\n"):
        to_tflite(looped, input_signature=[tf.TensorSpec([3], tf.int32)])


def test_what_depends_on_no_input_is_not_refused(tmp_path):
    save_model(
        lambda params, n: n + (params["mask"] & 5),
        {"mask": np.array([1, 2, 7], np.int32)},
        str(tmp_path),
        input_signatures=[tf.TensorSpec([3], tf.int32)],
        gradient_order=0,
        native_serialization=False,
        enable_xla=False,
    )
    assert to_tflite(str(tmp_path))[4:8] == b"TFL3"


def test_what_is_not_used_is_not_refused():
    @tf.function(autograph=False)
    def run(x):
        tf.bitwise.bitwise_and(x, x)
        return x + 1

    concrete = run.get_concrete_function(tf.TensorSpec([2], tf.int32))
    graph = concrete.graph.as_graph_def()
    assert "BitwiseAnd" in {node.op for node in graph.node}
    assert refused(graph, ["x"], [x.name for x in concrete.outputs]) == []
