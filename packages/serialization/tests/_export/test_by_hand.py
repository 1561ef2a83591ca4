"""Records made by hand, of what `export` and `jax.export` made."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import ArtifactError, DisabledSafetyCheck, Exported, SerializationError, deserialize, export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def fun(x, *, scale):
    return {"scaled": x * scale["w"] * x.shape[0]}


def parts(exported, **changed):
    names = (
        "fun_name in_tree in_avals out_tree out_avals mlir_module_serialized platforms calling_convention_version "
        "nr_devices ordered_effects unordered_effects disabled_safety_checks module_kept_var_idx uses_global_constants"
    )
    own = {"uses_shardy": exported.uses_shardy} if isinstance(exported, Exported) else {}
    return {name: getattr(exported, name) for name in names.split()} | own | changed


def made(shape="b, 2", **options):
    spec = jax.ShapeDtypeStruct(symbolic_shape(shape), F32)
    return export(fun, **options)(spec, scale={"w": jax.ShapeDtypeStruct((), F32)})


def test_a_record_of_the_same_parts_is_equal_and_runs():
    exported = made(disabled_checks=[DisabledSafetyCheck.platform()])
    by_hand = Exported.from_parts(**parts(exported))
    assert by_hand.has_same_function(exported)
    for record in (by_hand, deserialize(by_hand.serialize())):
        np.testing.assert_array_equal(record.call(X, scale={"w": 2.0})["scaled"], X * 6)
    assert not by_hand.has_vjp()
    with_vjp = Exported.from_parts(**parts(exported, vjp=exported.vjp()))
    gradient = jax.grad(lambda x: with_vjp.call(x, scale={"w": 2.0})["scaled"].sum())(X)
    np.testing.assert_array_equal(gradient, np.full_like(X, 6))


def test_what_is_left_out_follows_from_the_rest():
    for exported in (made(), made("3, 2"), made("3, 2", platforms=["cpu", "tpu"])):
        kept = parts(exported)
        for name in ("calling_convention_version", "nr_devices", "module_kept_var_idx", "uses_global_constants"):
            del kept[name]
        assert Exported.from_parts(**kept).has_same_function(exported)


def test_the_parts_of_jax_export_make_a_record():
    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 2", constraints=["b >= 2"]), F32)
    theirs = jax.export.export(jax.jit(fun), disabled_checks=[jax.export.DisabledSafetyCheck.platform()])(
        spec, scale={"w": jax.ShapeDtypeStruct((), F32)}
    )
    by_hand = Exported.from_parts(**parts(theirs))
    assert by_hand.disabled_safety_checks == (DisabledSafetyCheck.platform(),)
    assert [str(aval) for aval in by_hand.in_avals] == ["float32[b,2]", "float32[]"]
    np.testing.assert_array_equal(by_hand.call(X, scale={"w": 2.0})["scaled"], X * 6)
    with pytest.raises(ValueError, match="b >= 2"):
        by_hand.call(X[:1], scale={"w": 2.0})


def test_shardings_of_jax_are_recorded():
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    rows = NamedSharding(mesh, P("a"))
    by_hand = Exported.from_parts(**parts(made(), in_shardings=[rows, None], out_shardings=[rows]))
    assert (by_hand.in_shardings[0].partitions, by_hand.in_shardings[1]) == ((("a",), ()), None)
    assert by_hand.out_shardings == by_hand.in_shardings[:1]
    with pytest.raises(SerializationError, match=r"a sharding of in_shardings cannot be recorded: "):
        Exported.from_parts(**parts(made(), in_shardings=[jax.sharding.SingleDeviceSharding(jax.devices()[0]), None]))


def test_a_module_that_is_not_of_the_record_is_refused_when_it_is_used():
    by_hand = Exported.from_parts(**parts(made(), in_avals=[jax.ShapeDtypeStruct((3, 4), F32)] * 2))
    with pytest.raises(ArtifactError):
        by_hand.call(np.ones((3, 4), np.float32), scale={"w": np.ones((3, 4), np.float32)})
    with pytest.raises(ArtifactError):
        Exported.from_parts(**parts(made(), mlir_module_serialized=b"module {}"))


@pytest.mark.skipif(jax.device_count() < 8, reason="XLA was started with fewer devices")
@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_module_for_another_number_of_devices_than_recorded_is_refused_when_it_is_called(version, count):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    rows = jax.jit(lambda x: x.cumsum(0), in_shardings=NamedSharding(mesh, P("a")))
    exported = export(rows, calling_convention_version=version)(jax.ShapeDtypeStruct((4, 2), F32))
    by_hand = Exported.from_parts(**parts(exported, nr_devices=count))
    everywhere = NamedSharding(Mesh(np.array(jax.devices()[:count]), ("all",)), P())
    with pytest.raises(ArtifactError) as caught:
        by_hand.call(jax.device_put(np.ones((4, 2), np.float32), everywhere))
    assert str(caught.value).startswith(
        "the module of '<lambda>' is not the one that its record describes: it says num_partitions=4, and nr_devices "
        f"of the record is {count}\n  remedy: give the record nr_devices=4"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"in_avals": []}, r"^in_tree has 2 leaves, and in_avals has 0 entries: "),
        ({"out_avals": []}, r"^out_tree has 1 leaves, and out_avals has 0 entries: "),
        (
            {"in_tree": jax.tree.structure([1, 2])},
            r"^in_tree must be the structure of \(args, kwargs\)\. Got: .*\n  remedy",
        ),
        ({"in_shardings": [None]}, r"^in_shardings has 1 entries for 2 arrays$"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(SerializationError, match=message):
        Exported.from_parts(**parts(made(), **changed))
