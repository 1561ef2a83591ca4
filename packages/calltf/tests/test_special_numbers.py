"""An operation on NaN, infinities and zeros is compiled to what it is in eager mode, but for what the page lists.

A fixed number of those that are compiled from others is tried always; `RANDOM_PROGRAMS` of each type, others each
time, in the session `random_operations`.
"""

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject
from hypothesis import strategies as st

from jaxtf.calltf import CompilationError, call_tf
from jaxtf.calltf._replacements import _REPLACEMENTS

from .batched import MAKERS, operations
from .batched.sampling import FULL, sampled

NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0)

# What docs/calltf.md says of them, under "Some numbers at NaN and infinity are others when compiled".
LISTED = {
    "pools": "MaxPool MaxPoolV2 MaxPool3D MaxPoolGrad MaxPoolGradV2 MaxPool3DGrad "
    "MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad",
    "softmax": "Softmax LogSoftmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits "
    "CumulativeLogsumexp",
    "products with zeros": "Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 "
    "Conv3DBackpropInputV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
    "DepthwiseConv2dNativeBackpropInput MatrixTriangularSolve BatchMatMul BatchMatMulV2 BatchMatMulV3",
    "matrices that are not finite": "Cholesky MatrixInverse MatrixSolve SelfAdjointEigV2",
    "colours": "AdjustContrastv2 AdjustHue AdjustSaturation RGBToHSV HSVToRGB",
    "orders that are infinite": "Polygamma Zeta",
    "cotangents that are not finite": "ReluGrad Relu6Grad",
    "moments": "FusedBatchNormV3",
    "a difference that is the tolerance": "ApproximateEqual",
    "NaN in eager mode, wrongly": "Erf",
}
NOT_COMPARED = {name for names in LISTED.values() for name in names.split()}
COMPARED = [name for name in MAKERS if name not in NOT_COMPARED]


def with_some(values, seed):
    """An array with one or two of `NUMBERS`, if it is of floats."""
    random, changed = np.random.default_rng(seed), np.array(values)
    if changed.dtype.kind in "fc" and changed.size:
        for _ in range(random.integers(1, 3)):
            changed.flat[random.integers(changed.size)] = NUMBERS[random.integers(len(NUMBERS))]
    return changed


def is_as_in_eager_mode(operation, seed):
    arguments = [
        with_some(x.values[0] if x.batched else x.values, seed + i) for i, x in enumerate(operation.arguments())
    ]
    try:
        expected = operation(*map(tf.constant, arguments))
    except (tf.errors.OpError, ValueError):
        reject()  # refused, as factorizations of such numbers are
    try:
        found = jax.jit(call_tf(tf.function(operation, autograph=False)))(*arguments)
    except CompilationError:
        reject()
    for ours, theirs in zip(map(np.asarray, found), (np.asarray(x) for x in expected), strict=True):
        tolerance = 0 if theirs.dtype.kind not in "fc" else 2e-2 if theirs.dtype == np.float16 else 1e-3
        message = f"{operation} of {arguments}"
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=message)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", COMPARED if FULL else [name for name in COMPARED if name in _REPLACEMENTS])
def test_special_numbers_are_compiled_as_in_eager_mode(name):
    @given(operations(name), st.integers(0, 10**6))
    @sampled(12)
    def check(operation, seed):
        with jax.enable_x64(True):
            is_as_in_eager_mode(operation, seed)

    check()
