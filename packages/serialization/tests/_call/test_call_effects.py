"""Calling exported functions with effects."""

import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax
from jax._src import effects as jax_effects
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, mlir

from jaxtf.serialization import Effect, export
from jaxtf.serialization._jax_values.effects import from_effect
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32


class OrderedEffect(jax_effects.Effect):
    """Named so that the order of the names is not that in which a function has the effects."""

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


class ZuluOrderedEffect(OrderedEffect):
    pass


class AlphaOrderedEffect(OrderedEffect):
    pass


class SilentEffect(OrderedEffect):
    pass


ZULU, ALPHA, SILENT = ZuluOrderedEffect(), AlphaOrderedEffect(), SilentEffect()
for _class in (ZuluOrderedEffect, AlphaOrderedEffect):
    jax_effects.ordered_effects.add_type(_class)
for _class in (ZuluOrderedEffect, AlphaOrderedEffect, SilentEffect):
    jax_effects.lowerable_effects.add_type(_class)
    jax_effects.control_flow_allowed_effects.add_type(_class)
    jax_effects.remat_allowed_effects.add_type(_class)
    jax_effects.custom_derivatives_allowed_effects.add_type(_class)

# Doubles its argument and has the effect; in the module it is a custom call that no platform has, or a product.
effectful_p = Primitive("doubles_with_an_effect")
effectful_p.def_impl(lambda x, *, effect: 2 * x)
effectful_p.def_effectful_abstract_eval(lambda x, *, effect: (x, {effect}))
ad.deflinear2(effectful_p, lambda cotangent, x, *, effect: (2 * cotangent,))


def _lower(ctx, x, *, effect):
    if jax_effects.ordered_effects.contains(effect):
        # What makes the order visible: the token's name in the module.
        token = ctx.tokens_in.get(effect)
        ctx.set_tokens_out(mlir.TokenSet({effect: stablehlo.AfterAllOp([token]).result}))
    two = stablehlo.add(x, x)
    two.owner.attributes["jaxtf.effect"] = ir.StringAttr.get(type(effect).__name__)
    return [two]


mlir.register_lowering(effectful_p, _lower)


def effectful(x, effect):
    return effectful_p.bind(x, effect=effect)


def zulu_then_alpha(x):
    return effectful(effectful(x, ZULU), ALPHA)


def spec():
    return ShapeDtypeStruct((3,), F32)


def names(effects):
    return [str(effect).rpartition(".")[2] for effect in effects]


def order_of(fun, *specs):
    """JAX's order of the ordered effects of a function, as its own exporter records it."""
    return [type(effect).__name__ for effect in jax.export.export(jax.jit(fun))(*specs).ordered_effects]


@pytest.mark.parametrize("fun", [zulu_then_alpha, lambda x: effectful(effectful(x, ALPHA), ZULU)])
def test_tokens_come_in_the_order_of_jax(fun):
    exported = export(fun)(spec())
    assert names(exported.ordered_effects) == order_of(fun, spec())
    main = re.search(r"func.func public @main\((.*?)\) -> \((.*?)\)", exported.mlir_module())
    assert main[1].count("!stablehlo.token") == main[2].count("!stablehlo.token") == 2


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "effects",
    [(ZULU,), (SILENT,), (ZULU, ALPHA), (ALPHA, SILENT, ZULU)],
    ids=lambda effects: "-".join(type(effect).__name__ for effect in effects),
)
@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu")], ids="-".join)
def test_a_function_with_effects_runs(wrap, effects, platforms):
    def fun(x):
        for effect in effects:
            x = effectful(x, effect)
        return x

    exported = export(fun, platforms=platforms)(ShapeDtypeStruct(symbolic_shape("b"), F32))
    assert len(exported.ordered_effects) == sum(effect is not SILENT for effect in effects)
    assert names(exported.unordered_effects) == ["SilentEffect"] * (SILENT in effects)
    np.testing.assert_array_equal(wrap(exported.call)(np.ones(2, F32)), np.full(2, 2.0 ** len(effects), F32))


def test_two_calls_in_sequence_keep_their_order():
    exported = export(zulu_then_alpha)(spec())
    twice = jax.jit(lambda x: exported.call(exported.call(x)))
    np.testing.assert_array_equal(twice(np.ones(3, F32)), np.full(3, 16, F32))
    text = twice.lower(spec()).as_text()
    calls = re.findall(r"%(\d+):3 = call @call_exported_\w+\((.*?)\)", text)
    assert len(calls) == 2
    (first, _), (_, operands) = calls
    assert f"%{first}#0" in operands
    assert f"%{first}#1" in operands


def test_the_tokens_of_a_callee_are_those_of_its_caller_whatever_their_order():
    inner = export(zulu_then_alpha)(spec())

    def outer(x):
        return inner.call(effectful(x, ALPHA))

    exported = export(outer)(spec())
    assert names(exported.ordered_effects) == order_of(lambda x: zulu_then_alpha(effectful(x, ALPHA)), spec())
    np.testing.assert_array_equal(exported.call(np.ones(3, F32)), np.full(3, 8, F32))
    text = exported.mlir_module()
    call = re.search(r"call @call_exported_zulu_then_alpha\((.*?)\)", text)[1].split(", ")
    zulu, alpha = map(names(inner.ordered_effects).index, ("ZuluOrderedEffect", "AlphaOrderedEffect"))
    # ALPHA has happened before the call, ZULU has not: one token comes from an operation, the other from main.
    assert call[zulu].startswith("%arg")
    assert not call[alpha].startswith("%arg")


def test_effects_are_used_in_loops_and_branches():
    exported = export(lambda x: effectful(effectful(x, ZULU), SILENT))(spec())
    loop = jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, c: exported.call(c), x))
    np.testing.assert_array_equal(loop(np.ones(3, F32)), np.full(3, 64, F32))
    branch = jax.jit(lambda p, x: lax.cond(p, exported.call, lambda x: x, x))
    np.testing.assert_array_equal(branch(True, np.ones(3, F32)), np.full(3, 4, F32))


def test_reverse_mode_runs_through_a_function_with_effects():
    exported = export(lambda x: effectful(x, ZULU).sum())(spec())
    np.testing.assert_array_equal(jax.grad(exported.call)(np.ones(3, F32)), np.full(3, 2, F32))
    np.testing.assert_array_equal(jax.jit(jax.grad(exported.call))(np.ones(3, F32)), np.full(3, 2, F32))


def test_forward_mode_refuses_ordered_effects_and_runs_unordered_ones():
    ordered = export(lambda x: effectful(x, ZULU))(spec())
    x = np.ones(3, F32)
    with pytest.raises(NotImplementedError) as caught:
        jax.jvp(ordered.call, (x,), (x,))
    assert "forward-mode differentiation of '<lambda>', which has the ordered effects " in str(caught.value)
    assert str(caught.value).endswith(
        "remedy: use reverse mode (jax.grad, jax.vjp), or export the function without them"
    )
    unordered = export(lambda x: effectful(x, SILENT))(spec())
    np.testing.assert_array_equal(jax.jvp(unordered.call, (x,), (x,))[1], 2 * x)


def test_vmap_refuses_ordered_effects_and_runs_unordered_ones():
    x = np.ones((2, 3), F32)
    with pytest.raises(NotImplementedError) as caught:
        jax.vmap(export(zulu_then_alpha)(spec()).call)(x)
    assert str(caught.value).startswith("jax.vmap of 'zulu_then_alpha', which has the ordered effects ")
    assert str(caught.value).endswith("remedy: call it in a Python loop or in jax.lax.scan")
    unordered = export(lambda x: effectful(x, SILENT))(spec())
    np.testing.assert_array_equal(jax.vmap(unordered.call)(x), 2 * x)


def test_a_class_that_took_the_place_of_another_of_its_name_is_the_one_found():
    first, second = (type("ReplacedEffect", (jax_effects.Effect,), {}) for _ in range(2))
    assert str(first) == str(second)
    assert type(from_effect(Effect(str(second)))) is second
