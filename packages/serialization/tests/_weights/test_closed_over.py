"""`export_model` of arrays in bodies of operations and in rules: taken out everywhere, or refused in words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax

from jaxtf.serialization import SerializationError, VjpUnavailable, describe, export, export_model, load
from jaxtf.shapepoly import symbolic_shape

SIZE = 16
LEAST_BYTES = 4 * SIZE * SIZE
SPEC = jax.ShapeDtypeStruct((2, SIZE), jnp.float32)
OPEN = jax.ShapeDtypeStruct(symbolic_shape(f"b, {SIZE}"), jnp.float32)
KEY = jax.random.key(0)


def array(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


X = array(0, 2, SIZE)
BIAS = array(1, SIZE)  # small, of NumPy
SCALE = jnp.float32(0.5)

# From a function of an array to one that computes as much within an operation.
OPERATIONS = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "checkpoint with a policy": lambda f: jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable),
    "scan": lambda f: lambda x: lax.scan(lambda carry, _: (f(carry), None), x, None, length=2)[0],
    "scan of slices": lambda f: (
        lambda x: lax.scan(
            lambda carry, number: (f(carry) + number, f(carry)), x, jnp.arange(3.0), reverse=True, unroll=2
        )[1][-1]
    ),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda number, value: f(value) + number, x),
    "while": lambda f: (
        lambda x: lax.while_loop(
            lambda state: (jnp.sum(f(state[1])) < 1e9) & (state[0] < 2.0),
            lambda state: (state[0] + 1.0, f(state[1]) * state[0]),
            (0.0, x),
        )[1]
    ),
    "cond": lambda f: lambda x: lax.cond(jnp.sum(x) > 0, f, lambda x: x * BIAS, x),
    "switch": lambda f: (
        lambda x: lax.switch(jnp.sum(x).astype(int) % 3, [f, lambda x: x * BIAS, lambda x: f(x) + SCALE], x)
    ),
    "platform_dependent": lambda f: lambda x: lax.platform_dependent(x, cpu=f, default=lambda x: x),
    "map": lambda f: lambda x: lax.map(f, x) if x.ndim == 2 else f(x),
    "vmap": lambda f: lambda x: jax.vmap(f)(x) if x.ndim == 2 else f(x),
    "gradient": lambda f: jax.grad(lambda x: jnp.sum(jax.checkpoint(f)(x))),
}


# Functions with rules of differentiation that close over what the function does.
def with_jvp(f):
    function = jax.custom_jvp(f)
    function.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return function


def with_vjp(f):
    function = jax.custom_vjp(f)
    function.defvjp(lambda x: jax.vjp(f, x), lambda pull_back, cotangent: pull_back(cotangent))
    return function


def with_gradient(f):
    return jax.custom_gradient(lambda x: jax.vjp(f, x))


RULES = {"custom_jvp": with_jvp, "custom_vjp": with_vjp, "custom_gradient": with_gradient}


def layer(kernel):
    return jax.jit(lambda x: jnp.tanh(x @ kernel + BIAS) * SCALE + 0.1 * jax.random.uniform(KEY))


def results(function, kernels, has_vjp):
    """The value, and the gradients of its sum by the kernels and by the input."""
    if not has_vjp:
        return jax.jit(function)(kernels, X), None

    def with_total(kernels, x):
        value = function(kernels, x)
        return jnp.sum(value), value

    gradients, value = jax.jit(jax.grad(with_total, argnums=(0, 1), has_aux=True))(kernels, X)
    return value, gradients


def check(program_of, kernels, spec=SPEC, has_vjp=True):
    """Compares with JAX a model whose weights were replaced: values, and gradients by the input and by the weights."""
    kernels = tuple(map(jnp.asarray, kernels))
    others = tuple(kernel[::-1] + 0.25 for kernel in kernels)
    model = export_model(program_of(*kernels), least_bytes=LEAST_BYTES)(spec)
    number_of = {name: next(i for i, k in enumerate(kernels) if k is array) for name, array in model.params.items()}
    changed = model.with_params({name: others[number] for name, number in number_of.items()})
    found = results(changed.exported.call, changed.params, has_vjp)
    expected = results(lambda ks, x: program_of(*ks)(x), others, has_vjp)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    if has_vjp:
        np.testing.assert_allclose(found[1][1], expected[1][1], rtol=1e-3, atol=1e-4)
        for name, number in number_of.items():
            np.testing.assert_allclose(found[1][0][name], expected[1][0][number], rtol=1e-3, atol=1e-4)
    return model


@pytest.mark.slow(1)
@pytest.mark.parametrize("spec", [SPEC, OPEN], ids=["static", "symbolic"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_array_within_an_operation_and_beside_it_is_one_weight(operation, spec):
    def program_of(kernel):
        within = OPERATIONS[operation](layer(kernel))
        return lambda x: within(x) + x @ kernel

    model = check(program_of, [array(2, SIZE, SIZE)], spec, has_vjp=operation != "while")
    assert len(model.params) == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_array_within_an_operation_alone_is_taken_out(operation, tmp_path):
    model = check(lambda kernel: OPERATIONS[operation](layer(kernel)), [array(2, SIZE, SIZE)], has_vjp=False)
    description = model.save(tmp_path / "m", vjp_order=int(operation != "while"))
    assert description.weights.parameters == SIZE * SIZE
    np.testing.assert_array_equal(load(tmp_path / "m").call(X), model.call(X))
    assert describe(tmp_path / "m").weights.parameters == SIZE * SIZE


def added(one, other):
    return lambda x: one(x) + other(x)


@st.composite
def programs(draw, operations):
    """A function of two kernels that gives a program, and the names of the operations in it."""
    names = draw(st.lists(st.sampled_from(sorted(operations)), min_size=2, max_size=3))
    assume("while" not in names or "gradient" not in names)
    is_within = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    beside = draw(st.sampled_from(["", "first", "both"]))

    def program_of(first, second):
        f = layer(first)
        for name, holds in zip(names, is_within, strict=True):
            inner = operations[name](f)
            kernel = jax.jit(lambda x: x @ second)
            f = added(inner, kernel) if holds else inner
        used = {"": [], "first": [first], "both": [first, second]}[beside]
        return lambda x: f(x) + sum(x @ kernel for kernel in used)

    return program_of, names


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(programs(OPERATIONS))
def test_nested_operations_compute_as_in_jax_when_weights_are_replaced(drawn):
    program_of, names = drawn
    check(program_of, [array(2, SIZE, SIZE), array(3, SIZE, SIZE)], has_vjp="while" not in names)


def solved(kernel):
    multiply = jax.jit(lambda x: x @ kernel)
    return lambda x: lax.custom_linear_solve(lambda x: x * 2.0, x, lambda _, b: multiply(b), symmetric=True)


def composed(kernel):
    return lax.composite(jax.jit(lambda x: x @ kernel), "jaxtf.test")


@pytest.mark.parametrize(("operation", "program_of"), [("custom_linear_solve", solved), ("composite", composed)])
def test_an_array_in_an_operation_that_is_not_rewritten_is_refused_with_its_name(operation, program_of):
    kernel = jnp.asarray(array(2, SIZE, SIZE))
    within = program_of(kernel)
    for program in (within, lambda x: within(x) + x @ kernel):
        with pytest.raises(SerializationError) as error:
            export_model(program, least_bytes=LEAST_BYTES)(SPEC)
        message = str(error.value)
        assert "closes over an array within an operation out of which export_model takes none" in message
        assert f"within: {operation} (float32[16,16])" in message
        assert "remedy: pass the array to the function within that operation as an argument" in message


@pytest.mark.parametrize("within", [lambda f: f, lambda f: jax.checkpoint(jax.jit(f))], ids=["beside", "within"])
def test_a_small_part_of_an_array_that_is_taken_out_is_refused(within):
    kernel = array(2, SIZE, SIZE)
    part = within(lambda x: x * kernel[0])
    with pytest.raises(SerializationError) as error:
        export_model(lambda x: part(x) + x @ kernel, least_bytes=LEAST_BYTES)(SPEC)
    assert "an array of NumPy (float32[16,16]) and over a small part of it (float32[16]), which" in str(error.value)
    row = np.array(kernel[0])
    model = export_model(lambda x: x * row + x @ kernel, least_bytes=LEAST_BYTES)(SPEC)
    np.testing.assert_allclose(model.with_params({"kernel": kernel * 2}).call(X), X * row + X @ kernel * 2, rtol=1e-4)

    def indexed(kernel):
        return lambda x: within(lambda x: x * jnp.asarray(kernel)[0])(x) + x @ kernel

    check(indexed, [kernel])


# Rules of differentiation


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_rule_that_closes_over_a_weight_has_its_value_and_no_vjp(data):
    program_of, names = data.draw(programs({**OPERATIONS, **RULES}))
    assume("gradient" not in names)  # of a function with rules of both kinds JAX has none
    model = check(program_of, [array(2, SIZE, SIZE), array(3, SIZE, SIZE)], has_vjp=False)
    if RULES.keys() & set(names):
        with pytest.raises(VjpUnavailable, match=r"closes over .*16,16\]|closes over '"):
            model.exported.vjp()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_within", [False, True], ids=["direct", "jit"])
def test_a_rule_that_closes_over_a_weight_is_refused_by_name_where_a_vjp_is_asked_for(rule, is_within, tmp_path):
    def program_of(kernel):
        function = RULES[rule](jax.jit(lambda x: x @ kernel) if is_within else lambda x: x @ kernel)
        return lambda x: function(x) ** 2 + x @ kernel

    kernel = jnp.asarray(array(2, SIZE, SIZE))
    model = check(program_of, [kernel], has_vjp=False)
    asked = [
        lambda: model.save(tmp_path / "m", vjp_order=1),
        lambda: jax.grad(lambda x: jnp.sum(model.call(x)))(X),
        lambda: jax.grad(lambda p: jnp.sum(model.exported.call(p, X)))(model.params),
    ]
    for ask in asked:
        with pytest.raises(VjpUnavailable) as error:
            ask()
        message = str(error.value)
        kind = "jax.custom_jvp" if rule == "custom_jvp" else "jax.custom_vjp"
        assert f"no VJP of '<lambda>' can be made: a function of {kind} closes over 'kernel', by which its" in message
        assert "test_closed_over.py:" in message
        assert "remedy: pass the array to the function with the rule as an argument" in message
    model.save(tmp_path / "m")
    (name,) = model.params
    changed = load(tmp_path / "m", params={name: kernel * 3})
    np.testing.assert_allclose(changed.call(X), program_of(kernel * 3)(X), rtol=1e-4)


@pytest.mark.parametrize("operation", ["scan", "checkpoint", "cond"])
def test_a_value_computed_of_a_weight_that_a_rule_leaves_out_has_no_vjp(operation):
    def program_of(kernel):
        def program(x):
            double = kernel * 2
            function = jax.custom_jvp(lambda x: x @ double)
            function.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
            return OPERATIONS[operation](function)(x)

        return program

    model = check(program_of, [array(2, SIZE, SIZE)], has_vjp=False)
    with pytest.raises(VjpUnavailable, match=r"jax.custom_jvp closes over 'float32\[16,16\]'"):
        model.exported.vjp()


@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("has_copy", [False, True])
def test_a_rule_with_an_array_of_its_own_has_no_vjp(rule, has_copy):
    def program_of(kernel):
        held = jnp.array(kernel.T) if has_copy else kernel
        if rule == "custom_jvp":
            function = jax.custom_jvp(jnp.sin)
            function.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), tangents[0] * held[0]))
        else:
            function = jax.custom_vjp(jnp.sin)
            function.defvjp(lambda x: (jnp.sin(x), None), lambda _, cotangent: (cotangent * held[0],))
        return lambda x: function(x) @ kernel

    kernel = jnp.asarray(array(2, SIZE, SIZE))
    model = export_model(program_of(kernel), least_bytes=LEAST_BYTES)(SPEC)
    np.testing.assert_allclose(model.call(X), program_of(kernel)(X), rtol=1e-4)
    with pytest.raises(VjpUnavailable) as error:
        model.exported.vjp()
    assert "jax.custom_gradient closes over large arrays (float32[16,16]), which it would go on" in str(error.value)
    export(program_of(kernel))(SPEC).serialize(vjp_order=1)  # nothing is replaced there


def test_a_rule_of_a_rule_with_an_array_of_its_own_has_vjps_up_to_its_order():
    def program_of(kernel):
        slope = jax.custom_jvp(jnp.sin)
        slope.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), tangents[0] * kernel[0]))
        function = jax.custom_jvp(jnp.square)
        function.defjvp(lambda primals, tangents: (primals[0] ** 2, tangents[0] * slope(primals[0])))
        return lambda x: function(x) @ kernel

    model = check(program_of, [array(2, SIZE, SIZE)])
    with pytest.raises(VjpUnavailable, match="closes over large arrays"):
        model.exported.serialize(vjp_order=2)


def test_a_rule_that_takes_the_weight_as_an_argument_is_used():
    def multiply_jvp(primals, tangents):
        return primals[0] @ primals[1], 2 * (tangents[0] @ primals[1] + primals[0] @ tangents[1])

    def program_of(kernel):
        function = jax.custom_jvp(jax.jit(lambda x, kernel: x @ kernel))
        function.defjvp(multiply_jvp)
        return lambda x: OPERATIONS["scan"](lambda x: function(x, kernel))(x) + jax.nn.relu(x @ kernel)

    check(program_of, [array(2, SIZE, SIZE)])


def test_integers_in_a_rule_have_no_vjp():
    numbers = np.arange(4 * SIZE * SIZE, dtype=np.int8).reshape(4 * SIZE, SIZE) % 5

    def program(x):
        return jnp.tile(x, 4) @ jnp.asarray(numbers).astype(jnp.float32)

    model = export_model(with_vjp(program), least_bytes=LEAST_BYTES)(SPEC)
    (name,) = model.params
    np.testing.assert_allclose(model.with_params({name: numbers * 2}).call(X), program(X) * 2, rtol=1e-4)
    with pytest.raises(VjpUnavailable, match=r"closes over large arrays \(int8\[64,16\]\)"):
        model.exported.vjp()
