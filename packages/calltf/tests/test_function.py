"""Traces and derived functions are made once, and kept in bounded caches of the function itself."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.calltf._configuration import Configuration
from jaxtf.calltf._function import Staging, UserFunction
from jaxtf.calltf._vjp import VectorJacobian


def user_function(callable_tf):
    in_tree = jax.tree.structure(((0,), {}))
    return UserFunction(callable_tf, in_tree, staging=Staging(), declared=None, configuration=Configuration.now())


def test_a_trace_is_made_once_for_each_shape_and_dtype():
    function = user_function(lambda x: {"y": x * 2})
    aval = jax.typeof(jnp.ones(3))
    traced = function.trace([aval])
    assert function.trace([jax.ShapeDtypeStruct((3,), np.float32)]) is traced
    assert function.trace([jax.ShapeDtypeStruct((3,), np.int32)]) is not traced
    assert traced.tree == jax.tree.structure({"y": 0})
    assert [(a.shape, a.dtype) for a in traced.avals] == [((3,), np.float32)]


def test_a_derived_function_is_made_once_for_each_choice():
    function = user_function(tf.sin)
    derived = function.derived(VectorJacobian, (0,), (0,))
    assert function.derived(VectorJacobian, (0,), (0,)) is derived
    assert function.derived(VectorJacobian, (0,), ()) is not derived


def test_the_caches_are_bounded_and_not_shared():
    function, other = user_function(tf.sin), user_function(tf.sin)
    function.trace([jax.typeof(jnp.ones(3))])
    assert function._trace.cache_info().maxsize == 128
    assert function._derive.cache_info().maxsize == 64
    assert other._trace.cache_info().currsize == 0


def test_a_function_is_named_after_what_was_called():
    assert user_function(tf.sin).name == "sin"
    assert user_function(lambda x: x).symbol == "lambda"
    assert VectorJacobian(user_function(tf.sin), (0,), (0,)).name == "vjp_sin"
