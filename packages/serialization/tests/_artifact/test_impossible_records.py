"""Records that were changed to what no exported function has, and signed again, are refused when they are read."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxtf.serialization import ArtifactError, deserialize, export
from jaxtf.serialization._artifact.fields import read_tables
from jaxtf.serialization._artifact.trailer import append_trailer
from jaxtf.serialization._artifact.writer import write_payload
from jaxtf.serialization._record.kinds import MemorySpace
from jaxtf.shapepoly import symbolic_shape

F32 = np.float32


def sharded():
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("x"))
    return export(jax.jit(lambda x: x + 1, in_shardings=split, out_shardings=split))(jax.ShapeDtypeStruct((4, 2), F32))


def symbolic():
    spec = jax.ShapeDtypeStruct(symbolic_shape("n, m"), F32)
    return export(lambda x: (x.sum(0), jnp.arange(x.shape[0] + 1)))(spec)


def changed(exported, field, index=0, **values):
    """The artifact with one entry of a list of its table changed."""
    split, table = read_tables(exported.serialize())
    entries = list(getattr(table, field))
    inner = {name: value(getattr(entries[index], name)) if callable(value) else value for name, value in values.items()}
    entries[index] = dataclasses.replace(entries[index], **inner)
    payload = write_payload(dataclasses.replace(table, **{field: tuple(entries)}))
    append_trailer(payload, split.notes)
    return bytes(payload)


def split_over(*axes):
    return lambda spec: dataclasses.replace(
        spec, partitions=tuple(dataclasses.replace(spec.partitions[0], axes=names) for names in axes)
    )


AXES = r"a sharding refers to the axes {}, each of which must be one of its mesh \({}\), and once"
SHARDED = {
    "an axis twice": ("unique_named_shardings", {"spec": split_over(("x",), ("x",))}, AXES.format("x, x", "x=1")),
    "twice at once": ("unique_named_shardings", {"spec": split_over(("x", "x"))}, AXES.format("x, x", "x=1")),
    "no such axis": ("unique_named_shardings", {"spec": split_over(("y",))}, AXES.format("y", "x=1")),
    "reduced too": (
        "unique_named_shardings",
        {"spec": lambda spec: dataclasses.replace(spec, unreduced=("x",))},
        AXES.format("x, x", "x=1"),
    ),
    "too many axes": (
        "unique_named_shardings",
        {"spec": split_over(("x",), (), ())},
        r"among the arguments, float32\[4,2\] has a sharding of 3 axes",
    ),
    "a kind of memory": (
        "unique_named_shardings",
        {"memory_kind": "cpu"},
        r"of the kind 'cpu'; there are device, unpinned_host, pinned_host",
    ),
    "another mesh": ("unique_abstract_meshes", {"axis_names": ("y",)}, AXES.format("x", "y=1")),
    "no devices": ("unique_abstract_meshes", {"axis_sizes": (0,)}, r"a mesh has the axes \('x',\) of the sizes \(0,\)"),
    "an axis of two": (
        "unique_abstract_meshes",
        {"axis_sizes": (1, 1), "axis_names": ("x", "x"), "axis_types": b"\1\1"},
        r"a mesh has the axes \('x', 'x'\) of the sizes \(1, 1\)",
    ),
    "any memory": ("unique_avals", {"memory_space": MemorySpace.ANY}, "an argument or result in any memory"),
}
SIZES = {
    "another variable": (0, ("k", "m"), r"result\[1\] has the size n \+ 1, and no size of an argument has n"),
    "one variable": (0, ("n", "n"), r"result\[0\] has the size m, and no size of an argument has m"),
    "in a result": (1, ("n*q + r",), r"result\[0\] has the size n\*q \+ r, and no size of an argument has q, r"),
}


@pytest.mark.parametrize("name", SHARDED)
def test_shardings_and_memory_that_cannot_be_are_refused(name):
    field, values, message = SHARDED[name]
    with pytest.raises(ArtifactError, match=message):
        deserialize(changed(sharded(), field, **values))


@pytest.mark.parametrize("name", SIZES)
def test_a_size_of_a_result_is_computed_from_the_arguments(name):
    index, shape, message = SIZES[name]
    with pytest.raises(ArtifactError, match=message):
        deserialize(changed(symbolic(), "unique_avals", index, shape=shape))


@pytest.mark.parametrize(("index", "shape"), [(1, ("n",)), (2, ("n + 2",)), (2, ("max(n, m)",))])
def test_a_module_that_gives_other_sizes_than_recorded_is_refused_when_it_is_called(index, shape):
    exported = deserialize(changed(symbolic(), "unique_avals", index, shape=shape))
    with pytest.raises(ArtifactError, match="for these arguments a result has other sizes than recorded"):
        exported.call(np.ones((5, 2), F32))


@pytest.mark.parametrize("made", [sharded, symbolic])
def test_an_artifact_that_was_only_signed_again_is_read(made):
    exported = made()
    assert deserialize(changed(exported, "unique_avals")).has_same_function(exported)
