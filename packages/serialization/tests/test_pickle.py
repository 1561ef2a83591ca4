"""Exported functions that go to other processes by pickle."""

import copy
import pickle
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import deserialize, export
from jaxtf.shapepoly import symbolic_shape


class Pair(NamedTuple):
    first: object
    second: object


@jax.tree_util.register_pytree_node_class
class Box:
    """A type that JAX knows in every process that imports this module."""

    def __init__(self, inside):
        self.inside = inside

    def tree_flatten(self):
        return (self.inside,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def weighted(pair, box):
    return {"sum": (pair.first * pair.second).sum(axis=-1), "box": box}


def fresh():
    b = symbolic_shape("b, c", constraints=["b >= c"])
    x = jax.ShapeDtypeStruct(b, jnp.float32)
    return export(weighted)(Pair(x, x), Box(x))


def numbers():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    return Pair(x, x + 1), Box(x)


def gradient(exported):
    return jax.grad(lambda *args: exported.call(*args)["sum"].sum())(*numbers())


def plain():
    x = jax.ShapeDtypeStruct(symbolic_shape("b, c"), jnp.float32)
    return export(lambda x: jnp.sin(x).sum(axis=-1))(x)


def test_a_fresh_function_comes_back_equal_with_its_vjp_and_scope():
    exported = fresh()
    again = pickle.loads(pickle.dumps(exported))
    assert again.has_same_function(exported)
    assert again.scope is exported.scope
    assert (again.in_tree, again.out_tree) == (exported.in_tree, exported.out_tree)
    np.testing.assert_array_equal(again.call(*numbers())["sum"], exported.call(*numbers())["sum"])
    np.testing.assert_array_equal(gradient(again).second, gradient(exported).second)
    assert again.vjp().has_same_function(exported.vjp())
    assert not again.vjp().has_vjp()


@pytest.mark.parametrize("orders", [0, 1, 2])
def test_one_that_was_read_comes_back_with_all_its_orders(orders):
    record = deserialize(plain().serialize(vjp_order=orders))
    again = pickle.loads(pickle.dumps(record))
    for _ in range(orders):
        assert again == record
        again, record = again.vjp(), record.vjp()
    assert again == record
    assert again.has_vjp() is record.has_vjp() is False


def test_one_for_another_stablehlo_version_and_one_that_has_run_pickle_too():
    exported = plain()
    exported.call(np.ones((3, 2), np.float32))
    older = exported.with_stablehlo_version("1.9.0")
    assert pickle.loads(pickle.dumps(older)).vjp().has_same_function(older.vjp())


def test_one_that_jax_cannot_differentiate_comes_back_without_vjp():
    loop = export(lambda x: jax.lax.while_loop(lambda y: y < 9, lambda y: y * 2, x))(jnp.float32(1))
    again = pickle.loads(pickle.dumps(loop))
    assert again.has_same_function(loop)
    assert not again.has_vjp()


def test_a_copy_is_the_same_object():
    exported = plain()
    assert copy.copy(exported) is copy.deepcopy(exported) is exported


def test_another_process_runs_it_and_gives_it_back(tmp_path):
    exported = plain()
    (tmp_path / "exported").write_bytes(pickle.dumps(exported))
    program = (
        "import pickle, sys, jax, numpy as np\n"
        "exported = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "x = np.arange(6, dtype=np.float32).reshape(3, 2)\n"
        "found = np.asarray(jax.grad(lambda x: exported.call(x).sum())(x))\n"
        "open(sys.argv[1], 'wb').write(pickle.dumps((exported, found)))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "exported")], check=True, timeout=120)
    again, found = pickle.loads((tmp_path / "exported").read_bytes())
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert again.has_same_function(exported)
    assert again.scope is exported.scope
    np.testing.assert_array_equal(found, jax.grad(lambda x: exported.call(x).sum())(x))


def test_where_there_is_no_jax_it_is_read_and_pickled_again(tmp_path):
    exported = plain()
    (tmp_path / "exported").write_bytes(pickle.dumps(exported))
    program = (
        "import pickle, sys\n"
        "sys.modules['jax'] = None\n"
        "exported = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "assert exported.has_vjp()\n"
        "open(sys.argv[1], 'wb').write(pickle.dumps(exported))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "exported")], check=True)
    assert pickle.loads((tmp_path / "exported").read_bytes()).has_same_function(exported)
