"""Loops that are differentiated: calls with effects are those of the loop that is not, as often and in its order.

A call that JAX would move out of the loop is refused.
"""

import contextlib
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.extend.core import jaxprs_in_params
from jax.extend.core.primitives import scan_p, while_p

from jaxtf.calltf import UnsupportedError, _jax, call_tf
from jaxtf.serialization import deserialize, export

LENGTH = 4
X = jax.ShapeDtypeStruct((), np.float32)
# What draws in a turn gets its number.
drawn_at = call_tf(lambda i: tf.random.normal(()))
silently_drawn_at = call_tf(lambda i: tf.random.normal(()), has_side_effects=False)
# What JAX would draw once, before the loop.
noise = call_tf(lambda: tf.random.normal(()))
silent_noise = call_tf(lambda: tf.random.normal(()), has_side_effects=False)


def summed(draws):
    """The carry of a loop, and what is drawn in it: the derivative by x is the sum of what is drawn."""

    def turn(carry, x, i):
        drawn = draws(i)
        return carry + x * jnp.sum(drawn), drawn

    return turn


def scanned(draws, **options):
    turn = summed(draws)
    return lambda x: lax.scan(lambda carry, i: turn(carry, x, i), 0 * x, jnp.arange(LENGTH), **options)


def of_carry(draws):
    turn = summed(draws)

    def run(x):
        def step(state, _):
            carry, drawn = turn(state[0], x, state[1])
            return (carry, state[1] + 1), drawn

        (carry, _), drawn = lax.scan(step, (0 * x, 0), None, length=LENGTH)
        return carry, drawn

    return run


def in_fori_loop(draws):
    turn = summed(draws)

    def step(i, state):
        carry, drawn = turn(state[0], state[2], i)
        return carry, state[1].at[i].set(drawn), state[2]

    return lambda x: lax.fori_loop(0, LENGTH, step, (0 * x, jnp.zeros(LENGTH), x))[:2]


def mapped(draws):
    turn = summed(draws)

    def run(x):
        carries, drawn = lax.map(lambda i: turn(0 * x, x, i), jnp.arange(LENGTH))
        return jnp.sum(carries), drawn

    return run


LOOPS = {
    "scan": scanned,
    "of carry": of_carry,
    "reversed": lambda draws: scanned(draws, reverse=True),
    "unrolled": lambda draws: scanned(draws, unroll=2),
    "unrolled with a rest": lambda draws: scanned(draws, unroll=3),
    "fori_loop": in_fori_loop,
    "map": mapped,
}


def with_forward(draws, value):
    """A function of (x, i) whose derivative by x is what is drawn, also if the value is not."""

    @jax.custom_vjp
    def with_rule(x, i):
        return value(x, i)

    def forward(x, i):
        drawn = draws(i)
        return x * drawn, drawn

    with_rule.defvjp(forward, lambda drawn, cotangent: (cotangent * drawn, None))
    return with_rule


def in_custom_jvp(draws):
    @jax.custom_jvp
    def drawn(x, i):
        return x * draws(i)

    drawn.defjvp(lambda primals, tangents: (drawn(*primals), tangents[0]))
    return lambda i: drawn(1.0, i)


def in_while_loop(draws):
    def step(state):
        return state[0] + 1, state[1] + draws(state[2]), state[2]

    return lambda i: lax.while_loop(lambda state: state[0] < 2, step, (0, jnp.zeros(()), i))[1]


# What may be around a call in the body of a loop.
AROUND = {
    "nothing": lambda draws: draws,
    "jit": jax.jit,
    "cond": lambda draws: lambda i: lax.cond(jnp.sin(1.0) > 0, lambda: 1.0 * draws(i), lambda: 2.0 * draws(i)),
    "switch": lambda draws: lambda i: lax.switch(jnp.int32(1), [lambda: 1.0 * draws(i), lambda: 2.0 * draws(i)]),
    "scan": lambda draws: (
        lambda i: lax.scan(lambda carry, _: (carry + draws(i), None), jnp.zeros(()), None, length=2)[0]
    ),
    "while_loop": in_while_loop,
    "custom_jvp": in_custom_jvp,
    "checkpoint": jax.checkpoint,
}

# Each gives a function from x to the value, what was drawn and the derivative.


def plain(run):
    return lambda x: (*run(x), None)


def reverse(run):
    def found(x):
        (value, drawn), derivative = jax.value_and_grad(run, has_aux=True)(x)
        return value, drawn, derivative

    return found


def pulled_back(run):
    def found(x):
        value, pull_back, drawn = jax.vjp(run, x, has_aux=True)
        return value, drawn, *pull_back(1.0)

    return found


def pushed_forward(run):
    def found(x):
        value, push_forward, drawn = jax.linearize(run, x, has_aux=True)
        return value, drawn, push_forward(1.0)

    return found


def forward_mode(run):
    def found(x):
        value, derivative, drawn = jax.jvp(run, (x,), (1.0,), has_aux=True)
        return value, drawn, derivative

    return found


DERIVATIVES = {
    "value": plain,
    "grad": reverse,
    "vjp": pulled_back,
    "linearize": pushed_forward,
    "jvp": forward_mode,
}
# JAX moves something out of the loops of these.
MOVING = ["grad", "vjp", "linearize"]


def check_draws(found, number):
    """As many numbers as there are turns, all of them others, of which value and derivative are the sum."""
    value, drawn, derivative = found
    assert len(np.unique(drawn)) == np.size(drawn) == number
    for each in (value, derivative):
        if each is not None:
            np.testing.assert_allclose(each, np.sum(drawn), rtol=1e-4, atol=1e-5)


def check_refused(run):
    """A call would be moved; none is made before that is said."""
    for function in (run, jax.jit(run)):
        with pytest.raises(UnsupportedError, match="depends on neither the carry nor the inputs of the loop"):
            function(1.0)


def unasked(draws):
    """What draws, but not by the number of the turn."""
    return lambda _: draws()


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("loop", LOOPS)
def test_each_turn_draws_another_number(loop, derivative):
    run = DERIVATIVES[derivative](LOOPS[loop](drawn_at))
    check_draws(jax.jit(run)(1.0), LENGTH)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_call_that_does_not_depend_on_the_turn_is_refused_where_it_would_be_moved(loop, derivative):
    run = DERIVATIVES[derivative](LOOPS[loop](unasked(noise)))
    if derivative in MOVING:
        check_refused(run)
    else:
        check_draws(jax.jit(run)(1.0), LENGTH)


def test_the_error_says_what_would_happen_and_what_to_do():
    with pytest.raises(UnsupportedError) as error:
        jax.grad(scanned(unasked(noise)), has_aux=True)(1.0)
    assert str(error.value) == (
        "call_tf: a derivative of a loop with a call of <lambda>, which has effects or draws random numbers and "
        "depends on neither the carry nor the inputs of the loop: JAX would run it once, before the loop, and not in "
        "each turn\n"
        "  remedy: pass the carry, an element of the inputs or a counter to the function: "
        "`call_tf(lambda i: tf.random.normal(()))(i)` with `jax.lax.scan(..., jnp.arange(n))`"
    )


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_each_turn_draws_another_number_outside_of_jit(derivative):
    check_draws(DERIVATIVES[derivative](scanned(drawn_at))(1.0), LENGTH)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_the_parameter_about_effects_does_not_change_what_is_drawn(derivative):
    check_draws(jax.jit(DERIVATIVES[derivative](scanned(silently_drawn_at)))(1.0), LENGTH)
    if derivative in MOVING:
        check_refused(DERIVATIVES[derivative](scanned(unasked(silent_noise))))


@pytest.mark.parametrize("around", AROUND)
def test_each_turn_draws_another_number_within(around):
    check_draws(jax.jit(DERIVATIVES["grad"](scanned(AROUND[around](drawn_at))))(1.0), LENGTH)
    check_draws(jax.jit(DERIVATIVES["grad"](of_carry(AROUND[around](drawn_at))))(1.0), LENGTH)


@pytest.mark.parametrize("around", AROUND)
def test_a_call_is_refused_whatever_is_around_it(around):
    run = scanned(AROUND[around](unasked(noise)))
    check_draws(jax.jit(plain(run))(1.0), LENGTH)
    check_refused(DERIVATIVES["grad"](run))


# A while_loop in a checkpoint has an error of its own.
PAIRS = [
    lambda draws, outer=outer, inner=inner: AROUND[outer](AROUND[inner](draws))
    for outer, inner in itertools.product(AROUND, repeat=2)
    if (outer, inner) != ("checkpoint", "while_loop")
]


@pytest.mark.slow
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_each_turn_draws_another_number_within_any_two(derivative):
    pairs = [around(drawn_at) for around in PAIRS]
    run = DERIVATIVES[derivative](scanned(lambda i: jnp.stack([draws(i) for draws in pairs])))
    check_draws(jax.jit(run)(1.0), LENGTH * len(pairs))


@pytest.mark.slow
def test_a_call_within_any_two_is_refused_or_right():
    right = 0
    for around in PAIRS:
        run = DERIVATIVES["grad"](scanned(around(unasked(noise))))
        with contextlib.suppress(UnsupportedError):
            check_draws(jax.jit(run)(1.0), LENGTH)
            right += 1
    assert right <= 1  # JAX moves nothing out of a custom_jvp in a checkpoint


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_each_turn_of_nested_loops_draws_another_number(derivative):
    def inner(i):
        return lax.scan(lambda carry, j: (carry, drawn_at(3 * i + j)), 0, jnp.arange(3))[1]

    check_draws(jax.jit(DERIVATIVES[derivative](scanned(inner)))(1.0), LENGTH * 3)


@pytest.mark.parametrize(
    "inner",
    [
        lambda i: lax.scan(lambda carry, j: (carry, drawn_at(j)), 0, jnp.arange(3))[1],
        lambda i: lax.scan(lambda carry, j: (carry * j, noise()), i, jnp.arange(3))[1],
    ],
    ids=["of the inner turn alone", "of none"],
)
def test_a_call_of_nested_loops_is_refused_that_does_not_depend_on_the_outer_turn(inner):
    check_refused(DERIVATIVES["grad"](scanned(inner)))


def test_a_call_that_depends_on_the_outer_turn_alone_is_refused_if_the_inner_loop_is_differentiated():
    def run(x, draws):
        def step(carry, i):
            return lax.scan(lambda carry, j: (carry + x * draws(i, j), None), carry, jnp.arange(3))[0], None

        return lax.scan(step, 0 * x, jnp.arange(LENGTH))[0]

    check_refused(jax.grad(lambda x: run(x, lambda i, j: drawn_at(i))))
    value, derivative = jax.jit(jax.value_and_grad(lambda x: run(x, lambda i, j: drawn_at(3 * i + j))))(1.0)
    np.testing.assert_allclose(value, derivative, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_in_value", [True, False])
def test_a_call_within_a_function_with_a_rule_draws_another_number_in_each_turn(is_in_value):
    def run(draws):
        with_rule = with_forward(draws, lambda x, i: x * draws(i) if is_in_value else x)
        return lambda x: lax.scan(lambda carry, i: (carry + with_rule(x, i), None), 0 * x, jnp.arange(LENGTH))[0]

    value, derivative = jax.jit(jax.value_and_grad(run(drawn_at)))(1.0)
    np.testing.assert_allclose(value, derivative, rtol=1e-4, atol=1e-5)
    if is_in_value:
        check_refused(jax.grad(run(unasked(noise))))


def test_what_is_only_checked_may_be_checked_once():
    def positive(x):
        tf.debugging.assert_positive(x)
        return tf.identity(x)

    call = call_tf(positive, call_tf_graph=True)
    run = lambda x: lax.scan(lambda carry, _: (carry * call(x), None), x, None, length=LENGTH)[0]  # noqa: E731
    for function in (run, jax.grad(run)):
        assert [name for name, _ in calls_by_loop(jax.make_jaxpr(function)(1.0).eqns)]
    beside = scanned(lambda i: drawn_at(i) + call(2.0))
    assert jax.make_jaxpr(jax.grad(beside, has_aux=True))(1.0)


def test_loops_that_call_nothing_are_traced_as_often_as_without_this_package(monkeypatch):
    traced = []

    @jax.custom_jvp
    def doubled(x):
        return 2 * x

    @doubled.defjvp
    def rule(primals, tangents):
        traced.append(primals)
        return 2 * primals[0], 2 * tangents[0]

    run = lambda x: lax.scan(lambda carry, _: (doubled(carry), None), x, None, length=LENGTH)[0]  # noqa: E731
    assert jax.jit(jax.grad(run))(1.0) == 2.0**LENGTH
    found = len(traced)
    for rules in (_jax._partial_eval.custom_partial_eval_rules, _jax._ad.primitive_linearizations):
        monkeypatch.setitem(rules, scan_p, rules[scan_p].__wrapped__)
    traced.clear()
    jax.clear_caches()
    jax.jit(jax.grad(jax.jit(run)))(1.0)
    assert len(traced) == found


SECOND = {
    "twice": lambda f: lambda x: jax.grad(jax.grad(lambda x: f(x * x), has_aux=True), has_aux=True)(x)[1],
    "forward over reverse": lambda f: lambda x: jax.jvp(jax.grad(lambda x: f(x * x), has_aux=True), (x,), (1.0,))[0][1],
    "in a batch": lambda f: lambda x: jax.vmap(jax.grad(f, has_aux=True))(jnp.stack([x, x]))[1][0],
    "reverse over forward": lambda f: (
        lambda x: jax.grad(lambda x: jax.jvp(f, (x,), (x,), has_aux=True)[1:], has_aux=True)(x)[1]
    ),
}


@pytest.mark.parametrize("derivative", SECOND)
def test_each_turn_draws_another_number_in_derivatives_of_derivatives(derivative):
    assert len(np.unique(jax.jit(SECOND[derivative](scanned(drawn_at)))(1.0))) == LENGTH
    check_refused(SECOND[derivative](scanned(unasked(noise))))


def test_each_turn_draws_a_tangent_with_another_number():
    scaled = call_tf(lambda x, i: x * tf.random.normal(()))
    tangent = lambda i: jax.jvp(lambda x: scaled(x, i), (2.0,), (1.0,))[1]  # noqa: E731
    for derivative in ("value", "grad"):
        _, drawn, _ = jax.jit(DERIVATIVES[derivative](scanned(tangent)))(1.0)
        assert len(np.unique(drawn)) == LENGTH
    check_refused(DERIVATIVES["grad"](scanned(lambda i: jax.jvp(lambda x: scaled(x, 0), (2.0,), (1.0,))[1])))


@pytest.mark.parametrize("is_of_hidden", [True, False])
def test_each_step_of_a_recurrent_network_has_another_mask(is_of_hidden):
    if is_of_hidden:
        drop = call_tf(lambda w, hidden: tf.nn.dropout(tf.ones_like(w), 0.5))
    else:
        drop = call_tf(lambda w: tf.nn.dropout(tf.ones_like(w), 0.5))

    def network(w):
        def step(hidden, x):
            mask = drop(w, hidden) if is_of_hidden else drop(w)
            return hidden + x * w * mask, mask

        hidden, masks = lax.scan(step, w, jnp.arange(3.0))
        return jnp.sum(hidden), masks

    derivative = jax.grad(network, has_aux=True)
    if is_of_hidden:
        gradient, masks = jax.jit(derivative)(jnp.ones(50))
        assert len(np.unique(masks, axis=0)) == 3
        np.testing.assert_allclose(gradient, 1 + jnp.arange(3.0) @ masks, rtol=1e-6)
    else:
        with pytest.raises(UnsupportedError, match="depends on neither"):
            derivative(jnp.ones(50))


def test_an_exported_derivative_draws_another_number_in_each_turn():
    run = scanned(drawn_at)
    exported = export(jax.grad(run, has_aux=True))(X)
    _, drawn = deserialize(exported.serialize()).call(np.float32(1))
    assert len(np.unique(drawn)) == LENGTH
    program = deserialize(export(run)(X).serialize(vjp_order=1))
    (value, drawn), _ = jax.vjp(program.call, np.float32(1))
    check_draws((value, drawn, None), LENGTH)


def test_exporting_a_derivative_is_refused_if_a_call_would_be_moved():
    exported = export(scanned(unasked(noise)))(X)
    check_draws((*exported.call(np.float32(1)), None), LENGTH)
    with pytest.raises(UnsupportedError, match="depends on neither"):
        exported.serialize(vjp_order=1)


@pytest.mark.parametrize(
    "sample",
    [
        lambda x: scanned(unasked(noise))(1.0),
        lambda x: jax.jit(scanned(unasked(noise)))(lax.stop_gradient(x)),
        jax.jit(
            lambda x: lax.scan(lambda carry, _: (carry + x * (drawn := noise()), drawn), 0 * x, None, length=LENGTH)
        ),
    ],
    ids=["of a constant", "of what has no derivative", "staged"],
)
def test_a_loop_that_is_not_differentiated_is_left_alone(sample):
    def value(x):
        total, drawn = sample(lax.stop_gradient(x))
        return x * total, drawn

    derivative, drawn = jax.jit(jax.grad(value, has_aux=True))(1.0)
    np.testing.assert_allclose(derivative, np.sum(drawn), rtol=1e-5, atol=1e-6)
    assert len(np.unique(drawn)) == LENGTH


def test_a_loop_in_a_checkpoint_is_refused_whatever_is_differentiated():
    run = jax.checkpoint(lambda x: scanned(unasked(noise))(lax.stop_gradient(x)))
    with pytest.raises(UnsupportedError, match="depends on neither"):
        jax.grad(lambda x: x * run(x)[0])(1.0)


@pytest.mark.parametrize("derivative", MOVING)
@pytest.mark.parametrize("around", AROUND)
def test_a_call_whose_results_nobody_uses_stays_or_is_refused(around, derivative):
    draws = AROUND[around](drawn_at)

    def run(x):
        def step(carry, i):
            draws(i)
            return carry * x, i

        return lax.scan(step, x, jnp.arange(LENGTH))

    function = DERIVATIVES[derivative](run)
    if around in ("cond", "switch", "checkpoint"):
        with pytest.raises(UnsupportedError) as error:
            jax.make_jaxpr(function)(1.0)
        assert str(error.value) == (
            "call_tf: a derivative of a loop with a call of <lambda>, which has effects, whose results nobody uses, "
            "within a branch or jax.checkpoint: JAX would leave it out\n"
            "  remedy: use a result of it in the loop, or make the call outside of branches and jax.checkpoint"
        )
    else:
        assert [loops > 0 for _, loops in calls_by_loop(jax.make_jaxpr(function)(1.0).eqns)] == [True]


def test_a_call_in_a_branch_in_a_loop_in_a_checkpoint_stays_though_nobody_uses_its_results():
    def run(x):
        def step(carry, i):
            lax.cond(jnp.sin(1.0) > 0, drawn_at, lambda _: 2.0, i)
            return carry * x, i

        return lax.scan(step, x, jnp.arange(LENGTH))[0]

    assert calls_by_loop(jax.make_jaxpr(jax.grad(jax.checkpoint(run)))(1.0).eqns) == [("<lambda>", 1)]


def test_a_loop_without_turns_calls_nothing():
    run = lambda x: lax.scan(lambda carry, i: (carry + x * drawn_at(i), None), 0 * x, jnp.arange(0))[0]  # noqa: E731
    assert "stablehlo.rng" not in jax.jit(jax.grad(run)).lower(1.0).as_text()


def calls_by_loop(equations, loops=0):
    """The functions that equations call, in order, each with the number of scans that it is in."""
    found = []
    for equation in equations:
        if equation.primitive.name == "call_tf":
            found.append((equation.params["traced"].function.name, loops))
        for jaxpr in jaxprs_in_params(equation.params):
            found += calls_by_loop(jaxpr.eqns, loops + (equation.primitive.name == "scan"))
    return found


@pytest.mark.parametrize("ordered", [False, True])
def test_calls_by_name_stay_in_their_loop_in_order(ordered):
    def first(i):
        tf.print("first")
        return tf.constant(1.0)

    def second(i):
        return tf.constant(1.0)  # with an effect only if it is ordered

    calls = [call_tf(function, call_tf_graph=True, ordered=ordered) for function in (first, second)]
    run = scanned(lambda i: jnp.stack([call(i) for call in calls]))
    for function in (run, jax.grad(run, has_aux=True), lambda x: jax.linearize(run, x, has_aux=True)[::2]):
        found = calls_by_loop(jax.make_jaxpr(function)(1.0).eqns)
        assert found == [("first", 1), ("second", 1)] if ordered else ("first", 1) in found


def test_what_only_computes_is_still_moved_out_of_a_loop():
    def sine(x):
        return tf.sin(x)

    run = lambda x: lax.scan(lambda carry, _: (carry * call_tf(sine)(x), None), x, None, length=LENGTH)[0]  # noqa: E731
    assert ("sine", 1) in calls_by_loop(jax.make_jaxpr(run)(1.0).eqns)
    found = calls_by_loop(jax.make_jaxpr(jax.grad(run))(1.0).eqns)
    assert ("sine", 0) in found
    assert ("sine", 1) not in found


@pytest.mark.parametrize("around", AROUND)
def test_a_loop_in_a_checkpoint_is_refused_if_its_call_would_be_moved(around):
    with pytest.raises(UnsupportedError, match=r"depends on neither the carry|jax\.checkpoint of a while_loop"):
        jax.grad(jax.checkpoint(scanned(AROUND[around](unasked(noise)))), has_aux=True)(1.0)


@pytest.mark.parametrize("loop", ["scan", "of carry", "map"])
def test_a_loop_in_a_checkpoint_is_right_if_the_call_depends_on_the_turn(loop):
    check_draws(jax.jit(DERIVATIVES["grad"](jax.checkpoint(LOOPS[loop](drawn_at))))(1.0), LENGTH)


def test_a_loop_in_a_checkpoint_may_compute():
    run = jax.checkpoint(scanned(lambda _: call_tf(tf.sin)(2.0)))
    np.testing.assert_allclose(jax.grad(run, has_aux=True)(1.0)[0], LENGTH * np.sin(2.0), rtol=1e-6)


def while_loop(draws):
    """x times what is drawn in three turns."""
    return lambda x: lax.while_loop(
        lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1] + x * draws()), (0, 0 * x)
    )[1]


def linearized(f):
    return lambda x: jax.linearize(f, x)[1](x)


@pytest.mark.parametrize("draws", [noise, silent_noise], ids=["effect", "no effect"])
@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: linearized(f)(1.0),
        lambda f: jax.jit(linearized(f))(1.0),
        lambda f: jax.vmap(linearized(f))(jnp.ones(2)),
        lambda f: jax.jvp(linearized(f), (1.0,), (1.0,)),
    ],
    ids=["now", "staged", "in a batch", "differentiated"],
)
def test_a_while_loop_that_would_run_again_is_refused(derivative, draws):
    with pytest.raises(UnsupportedError) as error:
        derivative(while_loop(draws))
    assert str(error.value) == (
        "call_tf: jax.linearize of a while_loop with a call that has effects or draws random numbers: JAX would run "
        "the loop again for the tangents\n"
        "  remedy: use jax.jvp, or a loop whose number of turns is constant: jax.lax.scan, jax.lax.fori_loop"
    )


def test_a_while_loop_in_a_checkpoint_is_refused_if_it_has_an_effect():
    in_scan = lambda x: scanned(jax.checkpoint(in_while_loop(drawn_at)))(x)[0]  # noqa: E731
    with pytest.raises(UnsupportedError, match=r"jax\.checkpoint of a while_loop"):
        jax.grad(in_scan)(1.0)
    for f in (while_loop(noise), lambda x: x * while_loop(noise)(2.0)):
        with pytest.raises(UnsupportedError) as error:
            jax.linearize(jax.checkpoint(f), 1.0)
        assert str(error.value) == (
            "call_tf: a derivative of jax.checkpoint of a while_loop with a call of <lambda>, which has effects: JAX "
            "would run the loop again in the backward pass\n"
            "  remedy: leave jax.checkpoint out there, or use a loop whose number of turns is constant: jax.lax.scan, "
            "jax.lax.fori_loop"
        )


@pytest.mark.parametrize(
    "sample",
    [
        lambda x: while_loop(noise)(lax.stop_gradient(x)),
        lambda x: lax.stop_gradient(while_loop(silent_noise)(x)),
    ],
    ids=["of what has no derivative", "with a derivative that is dropped"],
)
def test_a_while_loop_whose_derivative_nobody_asks_for_may_draw(sample):
    def value(x):
        sampled = sample(x)
        return x * sampled, sampled

    derivative = jax.jit(jax.grad(value, has_aux=True))
    assert np.equal(*derivative(1.0))
    assert derivative.lower(1.0).as_text().count("stablehlo.rng ") == 1


def test_a_while_loop_has_forward_derivatives():
    value, tangent = jax.jit(lambda x: jax.jvp(while_loop(noise), (x,), (1.0,)))(1.0)
    np.testing.assert_allclose(value, tangent, rtol=1e-5)
    constant = while_loop(lambda: call_tf(tf.sin)(2.0))
    np.testing.assert_allclose(linearized(constant)(1.0), 3 * np.sin(2.0), rtol=1e-6)


@pytest.mark.parametrize("draws", [noise, lambda: call_tf(tf.sin)(2.0)])
def test_a_while_loop_has_no_reverse_derivative(draws):
    with pytest.raises(ValueError, match=r"Reverse-mode differentiation does not work for lax\.while_loop"):
        jax.grad(while_loop(draws))(1.0)


@pytest.mark.parametrize("primitive", [scan_p, while_p])
@pytest.mark.parametrize(
    ("owner", "table"),
    [
        (_jax._partial_eval, "custom_partial_eval_rules"),
        (_jax._partial_eval, "partial_eval_jaxpr_custom_rules"),
        (_jax._ad, "primitive_linearizations"),
    ],
)
def test_nothing_is_checked_where_jax_lacks_a_rule(monkeypatch, owner, table, primitive):
    if table == "primitive_linearizations":
        primitive = scan_p
    monkeypatch.delitem(getattr(owner, table), primitive)
    left = dict(getattr(owner, table))
    assert not _jax.check_divided_loops(None, None, None)
    assert getattr(owner, table) == left


def test_nothing_is_checked_where_rules_have_another_form(monkeypatch):
    monkeypatch.setattr(_jax, "_parts_of_linearization", lambda: None)
    assert not _jax.check_divided_loops(None, None, None)


def test_all_operands_of_a_scan_count_as_constants_where_it_is_not_known():
    assert _jax._number_of_constants({}, 3) == 3


def test_jax_refuses_effects_in_loops_that_are_not_allowed(monkeypatch):
    monkeypatch.setattr(_jax.control_flow_allowed_effects, "_effect_types", set())
    with pytest.raises(NotImplementedError, match=re.escape("CallTf")):
        jax.jit(scanned(unasked(call_tf(lambda: tf.random.normal(())))))(1.0)
