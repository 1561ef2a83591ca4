"""Functions over several devices, of which this process pretends to have eight."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import DeviceCountError, PartitionerError, deserialize, export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
X = np.linspace(-1, 1, 32, dtype=F32).reshape(4, 8)
W = np.linspace(0, 1, 32, dtype=F32).reshape(8, 4)

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="XLA was started with fewer devices")


@pytest.fixture(scope="module")
def mesh():
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))


@pytest.fixture(scope="module")
def explicit():
    return jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)


def layer(x, w):
    return jnp.tanh(x @ w), x.sum()


def spec(shape):
    return ShapeDtypeStruct(symbolic_shape(shape), F32)


def sharded(mesh):
    rows, columns = NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "b"))
    return jax.jit(layer, in_shardings=(rows, columns), out_shardings=(NamedSharding(mesh, P("a", "b")), None))


@pytest.fixture(scope="module", params=["4, 8", "2*n, 8"])
def exported(request, mesh):
    return export(sharded(mesh))(spec(request.param), spec("8, 4"))


def replicated(mesh, *arrays):
    return [jax.device_put(array, NamedSharding(mesh, P())) for array in arrays]


def assert_close(found, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


def test_the_record_says_how_arguments_and_results_are_split(exported):
    assert exported.nr_devices == 4
    assert [sharding and sharding.partitions for sharding in exported.in_shardings] == [(("a",), ()), ((), ("b",))]
    assert [sharding and sharding.partitions for sharding in exported.out_shardings] == [(("a",), ("b",)), None]
    assert exported.in_shardings[0].mesh.axis_sizes == (2, 2)
    assert exported.in_shardings[0].mesh.axis_types == ("auto", "auto")


def test_the_record_gives_jax_the_shardings_that_jax_export_gives(mesh):
    theirs = jax.export.export(sharded(mesh))(spec("4, 8"), spec("8, 4"))
    ours = export(sharded(mesh))(spec("4, 8"), spec("8, 4"))
    for mine, other in [
        (ours.in_shardings_jax(mesh), theirs.in_shardings_jax(mesh)),
        (ours.out_shardings_jax(mesh), theirs.out_shardings_jax(mesh)),
    ]:
        assert all(a == b if a is None else a.is_equivalent_to(b, 2) for a, b in zip(mine, other, strict=True))
    assert ours.in_shardings_jax()[0].spec == P("a", None)
    with pytest.raises(ValueError, match=r"exported: a=2, b=2\n  given:    rows=8"):
        ours.in_shardings_jax(Mesh(np.array(jax.devices()), ("rows",)))


@pytest.mark.parametrize("shape", ["4, 8", "2*n, 8"])
def test_the_record_gives_the_shardings_of_xla(mesh, shape):
    """As `jax.export` had them; that of today has None for each."""
    ours = export(sharded(mesh))(spec(shape), spec("8, 4"))
    assert list(map(str, ours.in_shardings_hlo)) == [
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    ]
    assert list(map(str, ours.out_shardings_hlo)) == ["{devices=[2,2]<=[4]}", "None"]
    theirs = jax.export.export(sharded(mesh))(spec("4, 8"), spec("8, 4"))
    for mine, other in [
        (ours.in_shardings_hlo, theirs.in_shardings_hlo),
        (ours.out_shardings_hlo, theirs.out_shardings_hlo),
    ]:
        assert all(b is None or a == b for a, b in zip(mine, other, strict=True))
    alone = export(layer)(spec("4, 8"), spec("8, 4"))
    assert (alone.in_shardings_hlo, alone.out_shardings_hlo) == ((None, None), (None, None))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_call_places_its_results_whatever_the_arguments(exported, mesh, wrap):
    given = [jax.device_put(a, s) for a, s in zip((X, W), exported.in_shardings_jax(mesh), strict=True)]
    for args in (given, replicated(mesh, X, W)):
        y, total = wrap(exported.call)(*args)
        assert y.sharding.spec == P("a", "b")
        assert_close((y, total), layer(X, W))


def test_a_call_may_be_placed_by_jit_or_by_the_mesh_of_the_context(exported, mesh):
    placed = jax.jit(exported.call, in_shardings=exported.in_shardings_jax(mesh))
    assert_close(placed(X, W), layer(X, W))
    with jax.set_mesh(mesh):
        assert_close(jax.jit(exported.call)(X, W), layer(X, W))


def test_another_number_of_devices_is_refused(exported):
    everywhere = Mesh(np.array(jax.devices()), ("all",))
    for args, count in [((X, W), 1), (replicated(everywhere, X, W), 8)]:
        with pytest.raises(DeviceCountError) as caught:
            exported.call(*args)
        assert (
            f"Function 'layer' was exported for 4 devices and is called in a context with {count} devices, which is "
            "not allowed.\n  remedy: place the arguments over 4 devices" in str(caught.value)
        )


def test_a_function_that_splits_nothing_runs_over_any_number_of_devices(mesh):
    exported = export(layer)(spec("n, 8"), spec("8, 4"))
    assert exported.nr_devices == 1
    assert_close(exported.call(*replicated(mesh, X, W)), layer(X, W))
    rows = jax.device_put(X, NamedSharding(mesh, P("a")))
    assert_close(jax.jit(exported.call)(rows, W), layer(X, W))


def test_a_function_for_one_device_runs_over_several_whatever_it_is_split_by(mesh):
    one = Mesh(np.array(jax.devices()[:1]), ("a",))

    def constrained(x, w):
        return layer(lax.with_sharding_constraint(x * 2, NamedSharding(one, P("a"))), w)

    theirs = jax.export.export(jax.jit(constrained, in_shardings=NamedSharding(one, P("a"))))(X, W)
    for exported in (
        export(jax.jit(constrained, in_shardings=NamedSharding(one, P("a"))))(spec("4, 8"), spec("8, 4")),
        deserialize(theirs.serialize()),
    ):
        assert exported.nr_devices == 1
        assert_close(exported.call(X, W), layer(2 * X, W))
        for args in (replicated(mesh, X, W), [jax.device_put(a, NamedSharding(mesh, P("a"))) for a in (X, W)]):
            assert_close(jax.jit(exported.call)(*args), layer(2 * X, W))


def test_a_function_that_computes_by_its_one_device_is_not_run_over_several(mesh):
    one = Mesh(np.array(jax.devices()[:1]), ("a",))
    by_device = jax.shard_map(lambda x: lax.ppermute(x, "a", []), mesh=one, in_specs=P("a"), out_specs=P("a"))
    exported = export(jax.jit(by_device))(spec("n, 8"))  # zeros of unknown sizes are not written as such
    assert_close(exported.call(X), 0 * X)
    with pytest.raises(DeviceCountError, match="exported for 1 devices and is called in a context with 4"):
        exported.call(*replicated(mesh, X))


SPLIT = {
    "arguments": lambda mesh: jax.jit(jnp.sin, in_shardings=NamedSharding(mesh, P("a"))),
    "results": lambda mesh: jax.jit(jnp.sin, out_shardings=NamedSharding(mesh, P("a"))),
    "inside": lambda mesh: lambda x: lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("a"))),
    "mapped": lambda mesh: jax.shard_map(
        lambda x: jnp.sin(x) + lax.psum(0 * x, "a"), mesh=mesh, in_specs=P(), out_specs=P()
    ),
    "mapped in part": lambda mesh: jax.shard_map(
        lambda x: jnp.sin(x) + 0 * lax.axis_index("a"),
        mesh=mesh,
        in_specs=P(),
        out_specs=P(),
        axis_names={"a"},
        check_vma=False,
    ),
}


@pytest.mark.parametrize("name", SPLIT)
def test_shardings_of_shardy_are_refused_where_it_is_off(mesh, name):
    exported = export(SPLIT[name](mesh))(spec("4, 8"))
    args = replicated(mesh, X)
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        with pytest.raises(PartitionerError, match="was exported with Shardy enabled and is called with"):
            jax.jit(exported.call)(*args)
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    assert_close(jax.jit(exported.call)(*args), np.sin(X))


def by_index(mesh, axis):
    """A function whose values depend on which devices have what, and that says where its result is."""
    split = NamedSharding(mesh, P(axis))

    def shifted(x):
        return x * 2 + lax.axis_index(axis) + lax.psum(x, axis)

    mapped = jax.shard_map(shifted, mesh=mesh, in_specs=P(axis), out_specs=P(axis))
    return jax.jit(mapped, in_shardings=split, out_shardings=split), split


OTHER_MESHES = {
    "other sizes": ((4, 1), ("a", "b"), "a"),
    "another order": ((2, 2), ("b", "a"), "a"),
    "other names": ((2, 2), ("c", "d"), "d"),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", OTHER_MESHES)
def test_functions_over_different_meshes_are_called_in_one_program(mesh, name):
    sizes, names, axis = OTHER_MESHES[name]
    other = Mesh(np.array(jax.devices()[:4]).reshape(sizes), names)
    functions, splits = zip(by_index(mesh, "a"), by_index(other, axis), strict=True)
    one, two = (export(function)(spec("4, 8")) for function in functions)
    expected = [function(X) for function in functions]
    found = jax.jit(lambda x: (one.call(x), two.call(x)))(*replicated(mesh, X))
    for result, values, split in zip(found, expected, splits, strict=True):
        assert_close(result, values)
        assert result.sharding.is_equivalent_to(split, 2)
    nested = export(jax.jit(lambda x: one.call(two.call(x)), in_shardings=splits[0]))(spec("4, 8"))
    assert_close(jax.jit(nested.call)(*replicated(mesh, X)), functions[0](np.asarray(functions[1](X))))
    gradient = jax.jit(jax.grad(lambda x: one.call(x).sum() + (two.call(x) ** 2).sum()))(*replicated(mesh, X))
    losses = lambda x: functions[0](x).sum(), lambda x: (functions[1](x) ** 2).sum()
    assert_close(gradient, sum(np.asarray(jax.grad(loss)(X)) for loss in losses))


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a"), ("u", "v")])
def test_the_mesh_of_the_context_may_have_other_axes(mesh, names, axis_type):
    context = jax.make_mesh((2, 2), names, axis_types=(axis_type,) * 2)
    exported = export(jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P("a"))))(spec("4, 8"))
    for run in (exported.call, jax.jit(exported.call)):
        with jax.set_mesh(context):
            found = run(jax.device_put(X, NamedSharding(context, P(None, names[0]))))
        assert_close(found, X * 2)
        assert found.sharding.is_equivalent_to(NamedSharding(mesh, P("a")), 2)


def test_results_are_over_the_mesh_of_the_function_where_the_callers_has_no_such_axes():
    devices = np.array(jax.devices())
    three, two = Mesh(devices.reshape(2, 2, 2), ("c", "b", "a")), Mesh(devices.reshape(4, 2), ("b", "z"))
    placed = NamedSharding(three, P("c"))
    exported = export(jax.jit(jnp.sin, out_shardings=placed))(spec("8, 4"))
    for run in (exported.call, jax.jit(exported.call)):
        found = run(jax.device_put(W, NamedSharding(two, P("b"))))
        assert_close(found, np.sin(W))
        assert found.sharding.is_equivalent_to(placed, 2)


def test_a_result_over_one_device_is_where_the_program_has_it(mesh):
    one = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("a",)), P("a"))
    exported = export(jax.jit(jnp.sin, in_shardings=one, out_shardings=one))(spec("4, 8"))
    assert_close(exported.call(X), np.sin(X))
    assert_close(jax.jit(exported.call)(*replicated(mesh, X)), np.sin(X))
    assert_close(jax.jit(jax.grad(lambda x: exported.call(x).sum()))(*replicated(mesh, X)), np.cos(X))


def test_an_argument_over_explicit_axes_that_is_not_used_has_a_gradient(explicit):
    rows, columns = NamedSharding(explicit, P("a", None)), NamedSharding(explicit, P(None, "b"))
    args = (ShapeDtypeStruct((4, 8), F32, sharding=rows), ShapeDtypeStruct((8, 4), F32, sharding=columns))
    exported = export(lambda x, w: jnp.sin(x))(*args)
    assert exported.in_shardings[1].partitions == ((), ("b",))
    x, w = jax.device_put(X, rows), jax.device_put(W, columns)
    for call in (exported.call, deserialize(exported.serialize(vjp_order=1)).call):
        gradient = jax.grad(lambda x, w, call=call: call(x, w).sum(), (0, 1))
        for run in (gradient, jax.jit(gradient)):
            with jax.set_mesh(explicit):
                of_x, of_w = run(x, w)
            assert_close((of_x, of_w), (np.cos(X), 0 * W))
            assert of_w.sharding.is_equivalent_to(columns, 2)


def test_results_still_to_be_reduced_are_so_after_a_call(explicit):
    with jax.set_mesh(explicit):
        x, w = jax.device_put(X, P(None, "a")), jax.device_put(W, P("a", None))

        def product(x, w):
            return jnp.einsum("ij,jk->ik", x, w, out_sharding=P(None, None, unreduced={"a"}))

        exported = deserialize(export(jax.jit(product))(x, w).serialize())
        assert exported.out_shardings[0].unreduced == {"a"}
        found = exported.call(x, w)
        assert found.sharding.spec.unreduced == {"a"}
        assert_close(jax.reshard(found, P(None, None)), X @ W)


def test_results_still_to_be_reduced_are_differentiated(explicit):
    """Their cotangents are the same on all devices that they are to be reduced over."""
    with jax.set_mesh(explicit):
        x, w = jax.device_put(X, P(None, "a")), jax.device_put(W, P("a", None))

        def product(x, w):
            return jnp.einsum("ij,jk->ik", x, w, out_sharding=P(None, None, unreduced={"a"}))

        def squares(call):
            return lambda x, w: (jax.reshard(call(x, w), P(None, None)) ** 2).sum()

        exported = export(jax.jit(product))(x, w)
        for record in (exported, deserialize(exported.serialize(vjp_order=1))):
            found = jax.jit(jax.grad(squares(record.call), (0, 1)))(x, w)
            for one, other in zip(found, jax.grad(squares(product), (0, 1))(x, w), strict=True):
                assert one.sharding.spec == other.sharding.spec
                assert_close(one, other)


# --- memory ---


def in_host_memory_by_shardings(mesh):
    return jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P("a"), memory_kind="pinned_host"))


def in_host_memory_by_a_transfer(mesh):
    return jax.jit(lambda x: jax.device_put(x * 2, jax.memory.Space.Host))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("read_again", [False, True])
@pytest.mark.parametrize("in_host_memory", [in_host_memory_by_shardings, in_host_memory_by_a_transfer])
def test_results_are_in_the_memory_that_the_function_puts_them_in(mesh, in_host_memory, read_again, wrap):
    function = in_host_memory(mesh)
    placed = jax.device_put(X, NamedSharding(mesh, P("a"))) if in_host_memory is in_host_memory_by_shardings else X
    exported, theirs = export(function)(X), jax.export.export(function)(X)
    assert exported.out_avals[0].memory_space == theirs.out_avals[0].memory_space.name.lower() == "host"
    if read_again:
        exported = deserialize(exported.serialize())
    found = wrap(exported.call)(placed)
    assert found.sharding.memory_kind == function(placed).sharding.memory_kind == "pinned_host"
    assert_close(found, X * 2)


def test_results_in_host_memory_are_differentiated(mesh):
    exported = deserialize(export(in_host_memory_by_shardings(mesh))(X).serialize(vjp_order=1))

    def total(x):
        return jax.device_put(exported.call(x), jax.memory.Space.Device).sum()

    assert_close(jax.jit(jax.grad(total))(jax.device_put(X, NamedSharding(mesh, P("a")))), np.full_like(X, 2))


@pytest.mark.parametrize("read_again", [False, True])
def test_an_argument_in_host_memory_that_is_a_result_too_is_differentiated(mesh, read_again):
    host = NamedSharding(mesh, P(), memory_kind="pinned_host")
    exported = export(jax.jit(lambda x: (x, x + 1), in_shardings=host, out_shardings=(host, host)))(X)
    if read_again:
        exported = deserialize(exported.serialize(vjp_order=1))

    def total(x):
        one, other = (jax.device_put(result, jax.memory.Space.Device) for result in exported.call(x))
        return one.sum() + 2 * other.sum()

    assert_close(jax.jit(jax.grad(total))(jax.device_put(X, host)), np.full_like(X, 3))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_the_gradient_of_an_argument_in_host_memory_is_there(mesh, wrap):
    own, host = (NamedSharding(mesh, P(), memory_kind=kind) for kind in ("device", "pinned_host"))
    exported = export(jax.jit(lambda x: x**2, in_shardings=own))(X)
    found = wrap(jax.grad(lambda x: exported.call(x).sum()))(jax.device_put(X, host))
    assert_close(found, 2 * X)
    assert found.sharding.memory_kind == "pinned_host"
    transpose = jax.linear_transpose(exported.call, jax.device_put(X, host))
    assert_close(wrap(transpose)(jax.device_put(X, own))[0], np.zeros_like(X))


def test_a_single_device_is_recorded_with_the_memory_that_it_is_to_use():
    host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    own = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    function = jax.jit(jnp.sin, in_shardings=host, out_shardings=own)
    exported, theirs = export(function)(X), jax.export.export(function)(X)
    for record in (exported, deserialize(exported.serialize()), deserialize(theirs.serialize())):
        [sharding] = record.in_shardings_jax(Mesh(np.array(jax.devices()[:1]), ("a",)))
        assert (sharding.memory_kind, sharding.spec) == ("pinned_host", P(None, None))
        assert record.in_avals[0].memory_space == "host"
        assert_close(record.call(jax.device_put(X, host)), jnp.sin(X))
    assert exported.out_shardings == (None,)


@pytest.mark.parametrize(
    ("derivative", "w"),
    [
        (lambda f: jax.grad(lambda x, w: f(x, w)[0].sum() + f(x, w)[1], argnums=(0, 1)), W),
        (lambda f: lambda x, w: jax.jvp(f, (x, w), (x, w)), W),
        (lambda f: jax.vmap(f, (None, 0)), np.stack([W, 2 * W])),
    ],
    ids=["grad", "jvp", "vmap"],
)
def test_derivatives_and_batches_run_over_the_devices(exported, mesh, derivative, w):
    found = jax.jit(derivative(exported.call))(*replicated(mesh, X, w))
    assert_close(found, derivative(layer)(X, w))


def test_the_vjp_is_split_as_the_function_is(exported):
    vjp = exported.vjp()
    assert vjp.nr_devices == 4
    assert vjp.in_shardings[:2] == exported.in_shardings
    assert vjp.in_shardings[2] == exported.out_shardings[0]
    assert vjp.out_shardings == exported.in_shardings


def constraint(mesh, x):
    return lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("a", "b"))) + 1


def mapped(mesh, x):
    def shift(x):
        return x + lax.axis_index("a").astype(x.dtype) + lax.psum(x.sum(), ("a", "b"))

    return jax.shard_map(shift, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b"))(x)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("inside", "shape"), [(constraint, "4, 8"), (constraint, "4*n, 2*m"), (mapped, "4, 8")])
def test_shardings_inside_of_a_function_are_kept(inside, shape, mesh):
    exported = export(lambda x: inside(mesh, x))(spec(shape))
    assert exported.nr_devices == 4
    (x,) = replicated(mesh, X)
    assert_close(exported.call(x), inside(mesh, X))
    nested = export(lambda x: exported.call(exported.call(x)))(ShapeDtypeStruct(X.shape, F32, sharding=x.sharding))
    assert nested.nr_devices == 4
    assert_close(nested.call(x), inside(mesh, np.asarray(inside(mesh, X))))
    assert_close(
        jax.grad(lambda x: (exported.call(x) ** 2).sum())(x), jax.grad(lambda x: (inside(mesh, x) ** 2).sum())(x)
    )


@pytest.mark.xfail(
    raises=ValueError, reason="XLA refines no sizes inside of sdy.manual_computation; nor for jax.export"
)
def test_shard_map_of_symbolic_sizes(mesh):
    exported = export(lambda x: mapped(mesh, x))(spec("4*n, 2*m"))
    (x,) = replicated(mesh, X)
    assert_close(exported.call(x), mapped(mesh, X))


def test_meshes_of_caller_and_callee_do_not_collide(mesh):
    exported = export(lambda x: constraint(mesh, x))(spec("4, 8"))
    other = Mesh(np.array(jax.devices()[:4]).reshape(4), ("b",))
    placed = NamedSharding(other, P("b"))

    def outer(x):
        return exported.call(lax.with_sharding_constraint(x, placed)) * 3

    (x,) = replicated(other, X)
    assert_close(jax.jit(outer, out_shardings=placed)(x), (X * 2 + 1) * 3)
    nested = export(jax.jit(outer, in_shardings=placed))(spec("4, 8"))
    # JAX could not name the sharding of the result by the axis of the argument's mesh.
    assert_close(jax.jit(nested.call, out_shardings=placed)(x), (X * 2 + 1) * 3)


def test_explicit_axes_are_recorded_and_typed(explicit):
    rows, columns = NamedSharding(explicit, P("a", None)), NamedSharding(explicit, P(None, "b"))
    args = (ShapeDtypeStruct((4, 8), F32, sharding=rows), ShapeDtypeStruct((8, 4), F32, sharding=columns))
    exported = export(layer)(*args)
    assert exported.nr_devices == 4
    assert [sharding.partitions for sharding in exported.in_shardings] == [(("a",), ()), ((), ("b",))]
    assert exported.out_shardings[0].partitions == (("a",), ("b",))
    assert exported.in_shardings[0].mesh.axis_types == ("explicit", "explicit")
    x, w = jax.device_put(X, rows), jax.device_put(W, columns)
    y, total = exported.call(x, w)
    assert y.sharding.spec == P("a", "b")
    assert_close((y, total), layer(X, W))
    with jax.set_mesh(explicit):
        traced = jax.jit(exported.call).trace(x, w)
        assert traced.out_avals[0].sharding.spec == P("a", "b")
        assert_close(jax.jit(lambda x, w: jnp.sin(exported.call(x, w)[0]))(x, w), np.sin(layer(X, W)[0]))
        found = jax.jit(jax.grad(lambda x: exported.call(x, w)[0].sum()))(x)
        assert_close(found, jax.grad(lambda x: layer(x, W)[0].sum())(X))


@pytest.fixture
def without_shardy():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.usefixtures("without_shardy")
@pytest.mark.parametrize("shape", ["4, 8", "2*n, 8"])
def test_the_partitioner_before_shardy_is_served_with_calling_convention_9(mesh, shape):
    exported = export(sharded(mesh), calling_convention_version=9)(spec(shape), spec("8, 4"))
    assert not exported.uses_shardy
    assert "mhlo.sharding" in exported.mlir_module()
    assert "sdy." not in exported.mlir_module()
    y, total = exported.call(*replicated(mesh, X, W))
    assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("a", "b")), 2)
    assert_close((y, total), layer(X, W))


def test_calling_convention_9_has_no_word_for_shardy(mesh):
    assert jax.config.jax_use_shardy_partitioner
    exported = export(sharded(mesh), calling_convention_version=9)(spec("4, 8"), spec("8, 4"))
    assert not exported.uses_shardy
    assert "sdy." not in exported.mlir_module()
    assert "sdy." not in exported.vjp().mlir_module()
    y, total = exported.call(*replicated(mesh, X, W))
    assert_close((y, total), layer(X, W))


def test_a_module_for_shardy_says_so(exported):
    assert exported.uses_shardy
    assert exported.calling_convention_version == 10
    assert "sdy.sharding" in exported.mlir_module()


def test_donated_arguments_are_exported_as_jax_export_does(mesh):
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    ours, theirs = (e(donating)(spec("4, 8")) for e in (export, jax.export.export))
    marks = ("jax.buffer_donor", "tf.aliasing_output")
    assert [mark in ours.mlir_module() for mark in marks] == [mark in theirs.mlir_module() for mark in marks]
    x = jnp.asarray(X)
    ours.call(x)
    assert not x.is_deleted()


def over_devices(scaled, sine, mesh):
    """What calls inside of `shard_map` give, where some arguments vary over the devices and some do not."""
    x, w = X[:, :2], np.array([2.0, 3.0], F32)
    over = P(("a", "b"))

    def across(f, in_specs, out_specs):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    def total(w):
        return across(scaled, (over, P()), over)(x, w).sum()

    def loss(w, x):
        return lax.pmean(jnp.mean(scaled(x, w)), ("a", "b"))

    def inside(x, w):
        return jax.grad(lambda w: scaled(x, w).sum())(w)

    def twice(x):
        return lax.scan(lambda state, _: (sine(state), None), x, None, length=2)[0]

    return {
        "gradient of a loss": jax.jit(jax.grad(across(loss, (P(), over), P())))(w, x),
        "gradient": jax.grad(total)(w),
        "gradient inside": jax.jit(across(inside, (over, P()), P()))(x, w),
        "gradient of what varies": jax.grad(lambda x: across(sine, over, over)(x).sum())(x),
        "jvp": jax.jvp(total, (w,), (w,))[1],
        "hessian": jax.jit(jax.hessian(total))(w),
        "scan": jax.jit(across(twice, over, over))(x),
    }


@pytest.mark.slow
def test_calls_inside_of_shard_map_have_the_derivatives_of_the_function(mesh):
    scaled = export(lambda x, w: jnp.sin(x * w))(ShapeDtypeStruct((1, 2), F32), ShapeDtypeStruct((2,), F32))
    sine = export(jnp.sin)(ShapeDtypeStruct((1, 2), F32))
    found = over_devices(scaled.call, sine.call, mesh)
    for name, expected in over_devices(lambda x, w: jnp.sin(x * w), jnp.sin, mesh).items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_result_that_varies_is_not_taken_for_one_that_does_not(mesh):
    sine = export(jnp.sin)(ShapeDtypeStruct((1, 2), F32))
    mapped_sine = jax.shard_map(sine.call, mesh=mesh, in_specs=P(("a", "b")), out_specs=P())
    with pytest.raises(ValueError, match="can't be statically inferred"):
        jax.jit(mapped_sine)(X[:, :2])
