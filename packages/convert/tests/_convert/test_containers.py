"""The containers of a `tf.Module` are pytrees: as arguments and parameters, and in what a function closes over."""

import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert, convert_exported, save_model
from jaxtf.serialization import export
from jaxtf.serialization.interop import plain_containers

Pair = namedtuple("Pair", "first second")
X = np.arange(12, dtype=np.float32).reshape(4, 3)
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
TREES = {
    "dict": {"w": W, "inner": [W[0], (W[1], {"deep": W[2]})]},
    "ordered": OrderedDict(b=W, a=OrderedDict(d=W[0], c=[W[1]])),
    "list": [W, [W[0]], {"x": W[1]}],
    "named": Pair(W, [W[0], {"x": W[1]}]),
}


def in_module(tree):
    module = tf.Module()
    module.weights = jax.tree.map(lambda leaf: leaf, tree)  # a copy: TensorFlow replaces the containers in what it gets
    return module.weights


def summed(tree, x):
    first, *others = jax.tree.leaves(jax.tree.map(lambda w: 2 * w, tree))
    return {"y": x @ first if first.ndim == 2 else x * 2, "others": sum(map(jnp.sum, others), 0 * x[0, 0])}


@pytest.mark.parametrize("name", TREES)
def test_a_container_of_a_module_is_the_argument_that_was_assigned_to_it(name):
    tree, wrapped = TREES[name], in_module(TREES[name])
    assert type(wrapped) is not type(tree)
    assert jax.tree.structure(plain_containers(wrapped)) == jax.tree.structure(tree)
    expected = summed(tree, X)
    for found in (
        convert(summed)(wrapped, X),
        tf.function(lambda x: convert(summed)(wrapped, x), autograph=False)(X),
        convert_exported(export(summed)(tree, X))(wrapped, X),
    ):
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-6)


@pytest.mark.parametrize("name", ["dict", "list"])
def test_a_container_of_a_module_is_saved_as_parameters(name, tmp_path):
    save_model(summed, in_module(TREES[name]), tmp_path / "m", input_signatures=[tf.TensorSpec(X.shape)])
    found = tf.saved_model.load(str(tmp_path / "m"))(X)
    np.testing.assert_allclose(found["y"], summed(TREES[name], X)["y"], rtol=1e-6)


def test_a_bad_leaf_in_a_container_of_a_module_is_refused_by_its_address():
    wrapped = in_module({"w": [W, "text"]})
    with pytest.raises(TypeError, match=r"args\[0\]\['w'\]\[1\]"):
        convert(lambda tree: tree["w"][0])(wrapped)


def test_plain_containers_keep_the_classes_of_dicts():
    tree = {"a": OrderedDict(b=1, a=[2]), "b": defaultdict(list, x=(1, [2]))}
    found = plain_containers(tree)
    assert found == tree
    assert [type(found["a"]), type(found["b"]), found["b"].default_factory] == [OrderedDict, defaultdict, list]


@pytest.mark.parametrize(
    "function",
    [
        lambda tree, x: jax.tree.map(lambda w: w * 2, tree),
        lambda tree, x: sum(jnp.sum(w) for w in jax.tree.leaves(tree)) + x,
        lambda tree, x: tree,
        jax.jit(lambda tree, x: x @ tree["w"]),
    ],
)
def test_a_container_that_a_function_closes_over_is_refused_with_what_to_do(function):
    wrapped = in_module(TREES["dict"])
    with pytest.raises(TypeError) as caught:
        convert(lambda x: function(wrapped, x))(X)
    notes = "\n".join(caught.value.__notes__)
    assert "in its attributes as a container of its own, which is a leaf to JAX, not a pytree" in notes
    assert "remedy: jaxtf.convert.register_tensorflow_containers() first, once" in notes


def test_an_error_that_no_container_takes_part_in_has_no_note_of_one():
    wrapped = in_module(TREES["dict"])
    with pytest.raises(ValueError, match="broadcasting") as caught:
        convert(lambda x: x + len(wrapped) + jnp.ones(7))(X)
    assert not any("tf.Module" in note for note in getattr(caught.value, "__notes__", ()))


REGISTERED = """
import sys
import jax, jax.numpy as jnp, numpy as np, tensorflow as tf
sys.path.insert(0, sys.argv[1])
from test_containers import TREES, X, W, in_module, summed
if sys.argv[2] == "jax2tf first":
    import jax.experimental.jax2tf
from jaxtf.convert import convert, register_tensorflow_containers
register_tensorflow_containers()
register_tensorflow_containers()
ours = sys.argv[2] == "alone"
for name, tree in TREES.items():
    wrapped = in_module(tree)
    expected = summed(tree, X)
    for found in (convert(lambda x: summed(wrapped, x))(X), convert(summed)(wrapped, X),
                  tf.function(convert(lambda x: summed(wrapped, x)), autograph=False)(X)):
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-6)
        np.testing.assert_allclose(found["others"], expected["others"], rtol=1e-6)
    try:
        convert(summed)(in_module({"w": [W, "text"]}), X)
    except TypeError as error:
        assert str(error).startswith("args[0]['w'][1] is not a numeric value"), error
    else:
        raise AssertionError("a text among the arguments is not refused")
    assert [type(leaf) for leaf in jax.tree.leaves(wrapped)] == [np.ndarray] * len(jax.tree.leaves(tree)), name
    if ours:
        paths = lambda tree: [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
        assert paths(wrapped) == paths(tree)
        for a, b in zip(jax.tree.leaves(wrapped), jax.tree.leaves(tree), strict=True):
            np.testing.assert_array_equal(a, b)
        assert jax.tree.structure(jax.tree.map(lambda w: w, wrapped)) == jax.tree.structure(wrapped)
        loss = lambda tree: sum(jnp.sum(w ** 2) for w in jax.tree.leaves(tree))
        stepped = jax.tree.map(lambda w, g: w - g / 2, wrapped, jax.grad(loss)(wrapped))
        assert all(np.all(np.abs(leaf) < 1e-6) for leaf in jax.tree.leaves(stepped))
        carried, _ = jax.lax.scan(lambda c, _: (jax.tree.map(jnp.sin, c), None), wrapped, None, length=2)
        assert type(carried) is type(wrapped) and type(convert(lambda x: wrapped)(X)) is type(wrapped)
print("as expected")
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["alone", "jax2tf first"])
def test_registered_containers_are_pytrees_in_what_a_function_closes_over(order):
    command = [sys.executable, "-c", REGISTERED, str(Path(__file__).parent), order]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.endswith("as expected\n"), ran.stdout + ran.stderr
