"""`call_tf` takes and returns the containers in which a `tf.Module` keeps lists, tuples and dicts."""

from collections import OrderedDict, namedtuple

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf

Pair = namedtuple("Pair", "first second")
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
TREES = {
    "dict": {"w": W, "inner": [W[0], (W[1], {"deep": W[2]})]},
    "ordered": OrderedDict(b=W, a=OrderedDict(d=W[0], c=[W[1]])),
    "list": [W, [W[0]], {"x": W[1]}],
    "named": Pair(W, [W[0], {"x": W[1]}]),
}


def in_module(tree):
    module = tf.Module()
    module.kept = jax.tree.map(lambda leaf: leaf, tree)  # a copy: TensorFlow replaces the containers in what it gets
    return module.kept


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_containers_of_a_module_are_pytrees_as_arguments_and_results(name, transform):
    tree, wrapped = TREES[name], in_module(TREES[name])

    def doubled(tree, x):
        return in_module(tf.nest.map_structure(lambda w: 2 * w, tree)), x

    found, _ = transform(lambda x: call_tf(doubled)(wrapped, x))(W)
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, 2 * b), found, tree)


def test_a_container_of_a_module_is_differentiated_as_the_dict_that_it_holds():
    wrapped = in_module({"w": W})
    gradient = jax.grad(lambda x: call_tf(lambda tree, x: tf.reduce_sum(tree["w"] * x))(wrapped, x))(2.0)
    np.testing.assert_allclose(gradient, W.sum(), atol=1e-6)


def test_a_bad_leaf_in_a_container_of_a_module_is_refused_by_its_address():
    with pytest.raises(TypeError, match=r"args\[0\]\['w'\]\[1\]"):
        call_tf(lambda tree: tree["w"][0])(in_module({"w": [W, "text"]}))
