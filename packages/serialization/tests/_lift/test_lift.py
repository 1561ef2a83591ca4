"""A lifted function is differentiated, vectorized, sharded, staged and exported as the function it came from."""

import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax
from jax.sharding import PartitionSpec

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    LiftUnsupported,
    PlatformError,
    deserialize,
    export,
    lift,
    register_namedtuple_serialization,
)
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
X = np.linspace(-1, 1, 12, dtype=F32).reshape(3, 4)
W = np.linspace(0.1, 0.9, 16, dtype=F32).reshape(4, 4)


def network(parameters, x, *, scale=2.0):
    hidden = jnp.tanh(x @ parameters["w"] + parameters["b"]) * scale
    return {"out": jax.nn.softmax(hidden), "norm": jnp.sum(hidden**2)}


PARAMETERS = {"w": W, "b": W[0]}


@pytest.fixture(scope="module")
def lifted():
    """Read from bytes, so that nothing of the function is there but its module."""
    return deserialize(export(network)(PARAMETERS, X, scale=np.float32(2)).serialize()).lift()


def call(function, parameters, x):
    return function(parameters, x, scale=np.float32(2))


def loss(function, parameters, x):
    results = call(function, parameters, x)
    return jnp.sum(results["out"][:, 0]) + results["norm"]


def assert_close(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


def test_values_are_those_of_the_function(lifted):
    found, expected = call(lifted, PARAMETERS, X), jax.jit(network)(PARAMETERS, X, scale=np.float32(2))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "use",
    [
        lambda f: jax.grad(loss, argnums=1)(f, PARAMETERS, X),
        lambda f: jax.jvp(lambda x: call(f, PARAMETERS, x), (X,), (X,)),
        lambda f: jax.hessian(lambda b: loss(f, PARAMETERS | {"b": b}, X))(W[1]),
        lambda f: jax.jacfwd(jax.jacrev(jax.grad(lambda b: loss(f, PARAMETERS | {"b": b}, X))))(W[1]),
        lambda f: jax.vmap(lambda x: call(f, PARAMETERS, x), in_axes=2)(np.stack([X, X + 1], 2)),
        lambda f: jax.vmap(jax.vmap(lambda b, x: call(f, PARAMETERS | {"b": b}, x), (0, None)), (None, 0))(
            W[:2], np.stack([X, X + 1])
        ),
        lambda f: jax.vmap(jax.grad(lambda x: loss(f, PARAMETERS, x)))(np.stack([X, X + 1])),
        lambda f: lax.scan(lambda c, x: (c + loss(f, PARAMETERS, x), c), jnp.zeros(()), np.stack([X, X + 1])),
        lambda f: jax.grad(jax.checkpoint(lambda b: loss(f, PARAMETERS | {"b": b}, X)))(W[1]),
        lambda f: jax.linearize(lambda x: loss(f, PARAMETERS, x), X)[1](X),
        lambda f: jax.eval_shape(lambda: call(f, PARAMETERS, X))["norm"].shape == (),
    ],
    ids=["grad", "jvp", "hessian", "third order", "vmap", "nested vmap", "vmap of grad", "scan", "checkpoint",
         "linearize", "eval_shape"],
)  # fmt: skip
def test_transformations_are_those_of_the_function(lifted, use):
    assert_close(use(lifted), use(network))


def test_it_is_mapped_over_devices(lifted):
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = np.concatenate([X, X + 1])

    def use(f):
        run = functools.partial(call, f, PARAMETERS)
        spec = PartitionSpec("d")
        each = jax.shard_map(lambda x: run(x)["out"], mesh=mesh, in_specs=spec, out_specs=spec)
        return each(x)

    assert_close(use(lifted), use(network))
    with jax.set_mesh(mesh):
        batches = np.stack([X, X + 1])
        over = jax.jit(jax.vmap(lambda x: call(lifted, PARAMETERS, x), spmd_axis_name="d"))
        assert_close(over(batches), jax.vmap(lambda x: call(network, PARAMETERS, x))(batches))


def test_loops_and_branches_are_mapped_over_devices():
    def f(x):
        total = lax.fori_loop(0, 3, lambda i, c: c + jnp.sum(x) * i, jnp.zeros(()))
        bounded = lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c + 1.5, jnp.zeros(2))
        return total + lax.cond(total > 0, lambda: total * 2, lambda: jnp.zeros(())) + bounded + x

    lifted = export(f)(X[0, :2]).lift()
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = PartitionSpec("d")
    found = jax.shard_map(lifted, mesh=mesh, in_specs=spec, out_specs=spec)(X[0])
    np.testing.assert_array_equal(found, jnp.concatenate([lifted(X[0, :2]), lifted(X[0, 2:])]))


def test_what_jax_refuses_of_shardings_is_refused_in_words():
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones((4, 4), np.float32), PartitionSpec("a", "b"))
        product = jax.sharding.auto_axes(lambda x: jnp.sin(x) @ x.T, out_sharding=PartitionSpec("a", "b"))
        lifted = export(product)(x).lift()
        with pytest.raises(LiftUnsupported, match=r"(?s)dot_general.*JAX does not take it: .*jax\.sharding\.auto_axes"):
            lifted(x)
        found = jax.sharding.auto_axes(lifted, out_sharding=PartitionSpec("a", "b"))(x)
        np.testing.assert_allclose(found, product(x), rtol=1e-6)


@pytest.mark.slow
def test_nothing_of_a_trace_is_kept():
    functions = {
        "random numbers": lambda x: jax.random.normal(jax.random.key(x.astype(int)[0]), (3,)),
        "a loop of them": lambda x: (
            lax.scan(lambda c, k: (c + jax.random.normal(k), c), 0.0, jax.random.split(jax.random.key(0)))[1] + x[0]
        ),
        "other": lambda x: jax.nn.gelu(jax.nn.softmax(x)) + jnp.arcsinh(x),
    }
    x = np.linspace(0, 1, 3, dtype=np.float32)
    for name, function in functions.items():
        lifted = export(function)(x).lift()
        with jax.checking_leaks():
            found = [lifted(x), jax.jit(lifted)(x), jax.jvp(lifted, (x,), (x,))[0]]
        for result in found:
            np.testing.assert_allclose(result, function(x), rtol=1e-6, err_msg=name)


def test_it_is_exported_again_for_other_platforms(lifted):
    again = export(lifted, platforms=("tpu", "cuda", "cpu"))(PARAMETERS, X, scale=np.float32(2))
    assert again.platforms == ("tpu", "cuda", "cpu")
    assert_close(call(again.call, PARAMETERS, X), call(network, PARAMETERS, X))


def test_jaxprs_have_the_names_and_the_lines_of_the_module():
    def named(x):
        with jax.named_scope("dense"):
            return jnp.sin(x)

    line = inspect.getsourcelines(named)[1] + 2
    f = export(named)(X).lift()
    jaxpr = jax.make_jaxpr(f)(X)
    inner = jaxpr.eqns[0].params["jaxpr"]
    assert [str(equation.primitive) for equation in inner.eqns] == ["sin"]
    assert f"test_lift.py:{line}" in jaxpr.pretty_print(source_info=True)
    assert "dense/sin" in jax.jit(f).lower(X).as_text(debug_info=True)


def test_a_call_in_another_structure_or_of_another_size_is_refused_as_by_call(lifted):
    with pytest.raises(ArgumentMismatch, match=re.escape("args[0]['b']: exported with it, missing in the call")):
        call(lifted, {"w": W}, X)
    with pytest.raises(ArgumentMismatch, match=re.escape("Shape mismatch for args[1].shape[0]")):
        call(lifted, PARAMETERS, X[:2])
    with pytest.raises(ArgumentMismatch, match=re.escape("Dtype mismatch for args[1]")):
        call(lifted, PARAMETERS, X.astype(np.int32))


def test_random_keys_weak_types_and_unused_arguments_are_those_of_the_record():
    def draw(key, unused, x):
        return jax.random.split(key), jax.random.normal(key, (3,)) * x, 2 * x

    arguments = jax.random.key(3), np.ones(2, np.int8), 1.5
    found = export(draw)(*arguments).lift()(*arguments)
    expected = jax.jit(draw)(*arguments)
    np.testing.assert_array_equal(*(jax.random.key_data(r[0]) for r in (found, expected)))
    assert [jax.typeof(r) for r in found] == [jax.typeof(r) for r in expected]
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_stored_vjp_is_lifted_too():
    vjp = export(lambda x, n: (x * n, n))(X, np.int32(3)).vjp()
    given = (X, np.int32(3), X, np.zeros((), jax.dtypes.float0))
    found, expected = vjp.lift()(*given), vjp.call(*given)
    assert_close(found[0], expected[0])
    assert found[1].dtype == expected[1].dtype == jax.dtypes.float0


def test_a_stored_vjp_of_integers_of_a_symbolic_size_is_traced_with_the_size_open():
    ids, x = ShapeDtypeStruct(symbolic_shape("b"), jnp.int32), ShapeDtypeStruct((4,), F32)
    vjp = export(lambda ids, x: (x[ids] ** 2, ids + 1))(ids, x).vjp().lift()

    def pull_back(ids, x, cotangent):
        return vjp(ids, x, cotangent, jnp.zeros(ids.shape, jax.dtypes.float0))[1]

    again = export(pull_back)(ids, x, ShapeDtypeStruct(ids.shape, F32))
    values = np.arange(4, dtype=F32)
    found = again.call(np.array([1, 1, 3], np.int32), values, np.array([1, 10, 100], F32))
    np.testing.assert_array_equal(found, [0, 22, 0, 600])


def of_platform(x):
    return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, cuda=lambda x: x + 3)


INNER_AND_OUTER = [
    (("cpu", "cuda"), ("cuda", "cpu")),
    (("tpu", "cuda", "cpu"), ("cpu", "tpu")),
    (("cuda", "tpu", "cpu"), ("cpu",)),
    (("cpu", "tpu"), ("tpu", "cpu")),
]


@pytest.mark.parametrize(("inner", "outer"), INNER_AND_OUTER)
def test_the_branches_of_an_artifact_that_another_calls_are_those_of_the_platform(inner, outer):
    added = {"cpu": 1, "tpu": 2, "cuda": 3}
    of_jax = jax.export.export(jax.jit(of_platform), platforms=inner)(X)
    of_jax = jax.export.export(jax.jit(of_jax.call), platforms=outer)(X)
    innermost = export(of_platform, platforms=inner)(X)
    twice = export(lambda x: innermost.call(innermost.call(x)), platforms=inner[::-1])(X)
    own = export(lambda x: jnp.stack([jax.jit(innermost.call)(x), twice.call(x)]), platforms=outer)(X)
    for platform in outer:
        number = added[platform]
        np.testing.assert_allclose(own.lift(platform=platform)(X), [X + number, X + 2 * number], rtol=1e-6)
        np.testing.assert_allclose(deserialize(of_jax.serialize()).lift(platform=platform)(X), X + number, rtol=1e-6)
        assert "cond" not in str(jax.make_jaxpr(own.lift(platform=platform))(X))


def test_the_branches_of_one_platform_are_lifted():
    exported = export(of_platform, platforms=("cuda", "tpu", "cpu"))(X)
    np.testing.assert_array_equal(exported.lift()(X), X + 1)
    np.testing.assert_array_equal(lift(exported, platform="tpu")(X), X + 2)
    assert "case" not in str(jax.make_jaxpr(exported.lift(platform="tpu"))(X))
    with pytest.raises(PlatformError, match="was lowered for cuda, tpu, cpu, not for rocm"):
        exported.lift(platform="rocm")


@pytest.mark.parametrize("shape", [(), (2,), (600,)])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("how", ["alone", "beside", "of a size", "in a loop", "in a branch"])
def test_constants_of_64_bits_are_those_of_the_module_where_jax_has_none(how, dtype, shape):
    wide = np.full(shape, 2**40 + 1, dtype)
    one = np.ones((), dtype)
    functions = {
        "alone": lambda x: wide,
        "beside": lambda x: (x, jnp.asarray(wide), jnp.asarray(wide)),
        "of a size": lambda x: jnp.full(shape, jnp.asarray(x.shape[0] + 2**40, dtype)),
        "in a loop": lambda x: lax.fori_loop(0, 2, lambda i, c: (wide, c[0]), (wide - one, wide + one)),
        "in a branch": lambda x: lax.cond(x[0] > 0, lambda: wide, lambda: wide + one),
    }
    x = np.ones(3, np.float32)
    symbolic = jax.ShapeDtypeStruct(symbolic_shape("b"), x.dtype)
    with jax.enable_x64(True):
        exports = [export(functions[how])(x), export(functions[how])(symbolic)]
    for exported in exports:
        for found, expected in zip(*map(jax.tree.leaves, (exported.lift()(x), exported.call(x))), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_64_bits_are_those_of_the_module_or_refused():
    with jax.enable_x64(True):
        exported = export(lambda x: jnp.sin(x) * 2)(np.float64(1))
        np.testing.assert_array_equal(exported.lift()(np.float64(1)), np.sin(1.0) * 2)
    module = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.convert %x : (tensor<f32>) -> tensor<f64>
      %1 = stablehlo.sine %0 : tensor<f64>
      %2 = stablehlo.convert %1 : (tensor<f64>) -> tensor<f32>
      return %2 : tensor<f32> }"""
    with pytest.raises(LiftUnsupported, match="it computes in 64 bits, which are disabled in JAX"):
        lift(module)(np.float32(1))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(lift(module)(np.float32(1)), np.float32(np.sin(1.0)))


def test_ordered_effects_are_refused_by_name():
    def printing(x):
        jax.debug.print("{}", x, ordered=True)
        return x

    with pytest.raises(Exception, match="debug"):
        export(printing)(X)  # never an artifact
    token = "func.func @main(%t: !stablehlo.token) -> !stablehlo.token { return %t : !stablehlo.token }"
    with pytest.raises(LiftUnsupported, match="'main' takes or returns tokens"):
        lift(token)


def test_modules_of_anyone_are_functions_of_arrays(tmp_path):
    lowered = jax.jit(lambda x, y: (x + y, x * y)).lower(X, X)
    text = lowered.as_text()
    (tmp_path / "module.mlir").write_text(text)
    for source in (lowered, text, text.encode(), tmp_path / "module.mlir", lowered.compiler_ir("stablehlo")):
        added, product = lift(source)(X, X)
        np.testing.assert_array_equal(added, X + X)
        np.testing.assert_array_equal(product, X * X)
    upstream = pytest.importorskip("jax.export").export(jax.jit(jnp.sin))(X)
    np.testing.assert_array_equal(lift(upstream)(X), jnp.sin(X))
    np.testing.assert_array_equal(lift(upstream.serialize())(X), jnp.sin(X))
    np.testing.assert_array_equal(lift(upstream.mlir_module_serialized)(X), jnp.sin(X))


def test_other_functions_of_a_module_are_lifted_by_name():
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.add %x, %x : tensor<f32>
      return %0 : tensor<f32> }"""
    functions = lift(text, names=["twice", "main"])
    assert float(functions["twice"](3.0)) == 6
    assert float(jax.grad(functions["twice"])(3.0)) == 2
    with pytest.raises(ArtifactError, match="the module has no function 'other', but main, twice"):
        lift(text, names=["other"])
    with pytest.raises(TypeError, match=r"names must be a list of names of functions; found 'main'\n  remedy: names="):
        lift(text, names="main")


def test_what_is_not_a_module_is_refused():
    with pytest.raises(ArtifactError, match="lift needs a StableHLO module"):
        lift("func.func @main( {")
    with pytest.raises(ArtifactError):
        lift(b"\x00\x01\x02\xff" * 8)
    with pytest.raises(ArgumentMismatch, match=r"argument 0 of 'main' must be float32\[\], found float32\[3,4\]"):
        lift("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")(X)


def test_pytrees_of_the_user_come_back():
    from typing import NamedTuple

    class Pair(NamedTuple):
        first: object
        second: object

    register_namedtuple_serialization(Pair, serialized_name="test_lift.Pair")
    f = export(lambda p: Pair(p.second, p.first))(Pair(X, W)).lift()
    assert_close(f(Pair(X, W)), Pair(jnp.asarray(W), jnp.asarray(X)))


def test_derivatives_are_those_of_what_the_module_computes():
    """A rule of the user's is not in a module: the documented difference."""

    @jax.custom_vjp
    def clipped(x):
        return x * x

    clipped.defvjp(lambda x: (x * x, None), lambda _, g: (g * 100,))
    f = export(clipped)(np.float32(3)).lift()
    assert float(jax.grad(clipped)(3.0)) == 100
    assert float(jax.grad(f)(3.0)) == 6


def test_an_artifact_without_vjp_is_trained():
    exported = deserialize(export(network)(PARAMETERS, X, scale=np.float32(2)).serialize())
    assert not exported.has_vjp()
    f, parameters = exported.lift(), PARAMETERS
    step = jax.jit(lambda p: jax.tree.map(lambda w, g: w - 0.05 * g, p, jax.grad(lambda p: loss(f, p, X))(p)))
    losses = [float(loss(f, parameters, X))]
    for _ in range(5):
        parameters = step(parameters)
        losses.append(float(loss(f, parameters, X)))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.7 * losses[0]


def test_specifications_suffice_to_trace():
    f = export(jnp.sin)(ShapeDtypeStruct((2,), F32)).lift()
    assert jax.eval_shape(f, ShapeDtypeStruct((2,), F32)).shape == (2,)
