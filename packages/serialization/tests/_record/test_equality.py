"""Records are equal where they compute the same numbers, also when they are differentiated."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.export as jax_export
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import ArtifactError, Exported, VersionError, deserialize, export
from jaxtf.serialization._artifact.fields import read_tables
from jaxtf.serialization._artifact.writer import write_payload

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def by_vjp(sign):
    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (sign * 2 * x * g,))
    return square


def by_jvp(sign):
    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: (primals[0] ** 2, sign * 2 * primals[0] * tangents[0]))
    return square


def stopped(sign):
    def square(x):
        return (x if sign > 0 else jax.lax.stop_gradient(x)) * x

    return square


RULES = {"custom_vjp": by_vjp, "custom_jvp": by_jvp, "stop_gradient": stopped}
READ = {"exported": lambda made: made, "read": lambda made: deserialize(made.serialize(vjp_order=1))}


@partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["function"])
@dataclass
class Held:
    function: Exported
    x: Any


CALLS = {
    "static": jax.jit(lambda e, x: jax.grad(e.call)(x), static_argnums=0),
    "static field": jax.jit(lambda held: jax.grad(held.function.call)(held.x)),
    "vjp": jax.jit(lambda e, x: e.vjp().call(x, jnp.ones(()))[0], static_argnums=0),
}


def pair(rule):
    """Two records with one and the same module; derived by the two rules."""
    one, other = (export(RULES[rule](sign))(SCALAR) for sign in (1, -1))
    assert one.mlir_module_serialized == other.mlir_module_serialized
    assert one.has_same_function(other)
    return one, other


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("rule", RULES)
def test_each_of_two_with_one_module_has_its_own_gradient(rule, read, call):
    x = jnp.float32(1)
    expected = [2, 1] if rule == "stop_gradient" else [2, -2]
    for record, slope in zip(map(READ[read], pair(rule)), expected, strict=True):
        given = (Held(record, x),) if call == "static field" else (record, x)
        assert float(CALLS[call](*given)) == float(jax.grad(record.call)(x)) == slope


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("rule", RULES)
def test_those_with_other_rules_are_not_equal(rule, read):
    one, other = map(READ[read], pair(rule))
    assert one != other
    assert one == one  # noqa: PLR0124
    assert len({one, other, one}) == 2


def test_those_that_were_read_are_equal_where_all_their_orders_are():
    made = export(jnp.sin)(SCALAR)
    for order in range(3):
        again = [deserialize(made.serialize(vjp_order=order)) for _ in range(2)]
        assert again[0] == again[1]
        assert hash(again[0]) == hash(again[1])
        assert again[0] != deserialize(made.serialize(vjp_order=order + 1))
        assert again[0] != made != again[0]


def test_one_that_is_read_again_and_again_is_compiled_once():
    traced = []

    def called(record, x):
        traced.append(record)
        return record.call(x)

    artifact = export(jnp.sin)(SCALAR).serialize(vjp_order=1)
    jitted = jax.jit(called, static_argnums=0)
    for _ in range(3):
        jitted(deserialize(artifact), jnp.float32(1))
    assert len(traced) == 1


def test_one_with_a_damaged_vjp_stands_in_the_way_of_no_other():
    x = jnp.ones(2)
    good = bytes(jax_export.export(jax.jit(lambda x: x * x))(x).serialize(vjp_order=1))
    table = read_tables(good)[1]
    wrong_tree = replace(table.vjp, in_tree=replace(table.vjp.in_tree, kind=100))
    bad = deserialize(bytes(write_payload(replace(table, vjp=wrong_tree))))
    assert bad.call(x).tolist() == [1, 1]
    read = deserialize(good)
    assert read.call(x).tolist() == jax.jit(read.call)(x).tolist() == [1, 1]
    assert jax.grad(lambda x: read.call(x).sum())(x).tolist() == [2, 2]
    assert bad != read != bad
    with pytest.raises((ArtifactError, VersionError)):
        bad.vjp()
