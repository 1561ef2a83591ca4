"""The list of custom calls that TensorFlow resolves, against the TensorFlow that is installed."""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from jaxlib.mlir.dialects import stablehlo

from jaxtf.convert import _tf
from jaxtf.convert._native.custom_calls import IN_TENSORFLOW

# Kernels of TPUs, which are in libtpu; and a name that the compiler keeps as numbers in its code. What is called by
# it runs in test_by_name.py of jaxtf-calltf.
NOT_IN_THE_LIBRARY = {"LuDecomposition", "tf.call_tf_function"}
ELEMENTWISE = {
    **{"mhlo.acosh": np.arccosh, "mhlo.asinh": np.arcsinh, "mhlo.atanh": np.arctanh},
    **{"mhlo.sinh": np.sinh, "mhlo.tan": np.tan},
}


def run(target, attributes, value):
    """A module of one custom call, in an XlaCallModule op."""
    module = stablehlo.serialize_portable_artifact_str(
        f"""
        func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
          %0 = stablehlo.custom_call @{target}(%x) {{{attributes}}} : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }}""",
        _tf.stablehlo_version(),
    )
    call = _tf.ModuleCall(
        module=module,
        calling_convention_version=9,
        result_dtypes=[tf.float32],
        result_shapes=[[2]],
        platforms=["CPU"],
        disabled_checks=[],
        uses_shardy=False,
    )
    compiled = tf.function(lambda x: call([x])[0], autograph=False, jit_compile=True)
    return compiled(tf.constant(value, tf.float32, shape=[2])).numpy()


@pytest.mark.parametrize("attributes", ["", "mhlo.attributes = {}, mhlo.version = 1 : i64"])
def test_tensorflow_has_no_code_for_a_target_that_nobody_registered(attributes):
    with pytest.raises(tf.errors.NotFoundError, match=r"No registered implementation .* custom call to mhlo.nothing"):
        run("mhlo.nothing", attributes, 0.5)


@pytest.mark.parametrize("target", ELEMENTWISE)
def test_operations_that_stablehlo_did_not_have_are_those_operations(target):
    assert target in IN_TENSORFLOW
    value = np.float32(1.5 if target == "mhlo.acosh" else 0.5)
    found = run(target, "mhlo.attributes = {}, mhlo.version = 1 : i64", value)
    np.testing.assert_allclose(found, ELEMENTWISE[target](np.full(2, value)), rtol=1e-6)


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"])
def test_what_partitioners_read_is_the_value_itself(target):
    assert target in IN_TENSORFLOW
    np.testing.assert_array_equal(run(target, 'mhlo.sharding = "{replicated}"', 0.5), [0.5, 0.5])


@pytest.mark.skipif(os.environ.get("JAXTF_FULL") != "1", reason="reads the whole library; JAXTF_FULL=1 does")
def test_what_is_in_the_list_is_in_the_library():
    libraries = [file for file in Path(tf.__file__).parent.glob("*.so*") if file.stat().st_size > 10_000_000]
    if not libraries:
        pytest.skip("this TensorFlow has its library elsewhere")

    def has(target):
        for library in libraries:
            with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if content.find(target.encode()) >= 0:
                    return True
        return False

    assert not has("jaxtf_that_nobody_has")
    assert {target for target in IN_TENSORFLOW if not has(target)} <= NOT_IN_THE_LIBRARY
