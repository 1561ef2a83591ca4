"""Shardings in XLA's form, held against jaxlib, which made the form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization._artifact.hlo_sharding import named_sharding
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.shardings import AbstractMesh, NamedSharding

pytest.importorskip("jax")

from jaxlib import xla_client

TYPE = xla_client.OpSharding.Type


def op_sharding(**fields):
    proto = xla_client.OpSharding()
    for name, value in fields.items():
        setattr(proto, name, value)
    return proto


def tiled(tiles, devices, *, partly=False):
    return op_sharding(
        type=TYPE.OTHER,
        tile_assignment_dimensions=list(tiles),
        tile_assignment_devices=list(devices),
        replicate_on_last_tile_dim=partly,
    )


def holders(sharding, rank):
    """For each tile, in row-major order, the devices that hold it, from the definition of a named sharding."""
    mesh = sharding.mesh
    devices = np.arange(math.prod(mesh.axis_sizes)).reshape(mesh.axis_sizes)
    partitions = [*sharding.partitions, *[()] * (rank - len(sharding.partitions))]
    split = [mesh.axis_names.index(name) for names in partitions for name in names]
    whole = [axis for axis in range(len(mesh.axis_sizes)) if axis not in split]
    tiles = math.prod(mesh.axis_sizes[axis] for axis in split)
    return [set(row) for row in devices.transpose(*split, *whole).reshape(tiles, -1).tolist()]


def holders_by_jaxlib(proto):
    """The same as jaxlib reads it; None if the array is whole everywhere."""
    hlo = xla_client.HloSharding.from_proto(proto)
    if hlo.is_replicated():
        return None
    devices = np.array(hlo.tile_assignment_devices())
    replicas = hlo.tile_assignment_dimensions()[-1] if hlo.replicate_on_last_tile_dim() else 1
    return [set(row) for row in devices.reshape(-1, replicas).tolist()]


MESHES = [(2,), (4,), (2, 2), (4, 2), (2, 2, 2), (1, 4), (3, 2), (2, 3, 4)]


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("sizes", MESHES)
def test_each_tile_is_where_jaxlib_puts_it(sizes, listed):
    count, axes = math.prod(sizes), len(sizes)
    for order in itertools.permutations(range(axes)):
        for partly in (False, True):
            tiles = [sizes[axis] for axis in order]
            devices = np.arange(count).reshape(sizes).transpose(order)
            if listed:
                proto = tiled(tiles, devices.ravel().tolist(), partly=partly)
            else:
                last = [TYPE.REPLICATED] if partly else []
                proto = xla_client.HloSharding.iota_tile(tiles, sizes, order, last).to_proto()
            expected = holders_by_jaxlib(proto)
            found = named_sharding(proto.SerializeToString(), count)
            assert holders(found, axes) == ([set(range(count))] if expected is None else expected)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("tiles", [(4,), (1, 4), (4, 1), (2, 2), (1, 2, 2)])
def test_one_array_axis_may_take_several_mesh_axes(tiles, order):
    proto = tiled(tiles, order)
    found = named_sharding(proto.SerializeToString(), 4)
    assert holders(found, len(tiles)) == holders_by_jaxlib(proto)


def test_the_mesh_has_the_devices_in_their_own_order():
    transposed = named_sharding(tiled((2, 2), (0, 2, 1, 3)).SerializeToString(), 4)
    assert transposed == NamedSharding(
        AbstractMesh((2, 2), ("axis0", "axis1"), ("auto", "auto")), (("axis1",), ("axis0",))
    )


def test_replicated_is_whole_on_every_device():
    proto = xla_client.HloSharding.replicate().to_proto().SerializeToString()
    assert named_sharding(proto, 8) == NamedSharding(AbstractMesh((8,), ("axis0",), ("auto",)), ())


REFUSED = {
    "manual": (op_sharding(type=TYPE.MANUAL), "a sharding of kind 'manual' is not read"),
    "maximal": (op_sharding(type=TYPE.MAXIMAL, tile_assignment_devices=[1]), "kind 'maximal' is not read"),
    "tuple": (op_sharding(type=TYPE.TUPLE), "a sharding of kind 'tuple' is not read"),
    "count": (tiled((3,), (0, 1, 2)), r"a sharding of \[3\] tiles is not for 4 devices"),
    "twice": (tiled((4,), (0, 1, 1, 2)), r"devices \[0, 1, 1, 2\] are not those from 0 to 3"),
    "outside": (tiled((4,), (0, 1, 2, 4)), r"devices \[0, 1, 2, 4\] are not those from 0 to 3"),
    "order": (tiled((4,), (3, 1, 0, 2)), r"in the order \[3, 1, 0, 2\], which no mesh has"),
    "subgroups": (
        op_sharding(
            type=TYPE.OTHER,
            tile_assignment_dimensions=[2, 2],
            tile_assignment_devices=[0, 1, 2, 3],
            last_tile_dims=[TYPE.MANUAL],
        ),
        "a sharding with manual subgroups is not read",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_shardings_are_refused_by_name(case):
    proto, message = REFUSED[case]
    with pytest.raises(ArtifactError, match=message):
        named_sharding(proto.SerializeToString(), 4)


def test_tiles_that_do_not_fit_the_order_of_the_devices_are_refused():
    proto = xla_client.HloSharding.iota_tile((2, 3), (3, 2), (1, 0), []).to_proto()
    assert holders(named_sharding(proto.SerializeToString(), 6), 2) == holders_by_jaxlib(proto)
    proto = xla_client.HloSharding.iota_tile((3, 2), (3, 2), (1, 0), []).to_proto()
    with pytest.raises(ArtifactError, match=r"a sharding of \[3, 2\] tiles over devices in an order that no mesh has"):
        named_sharding(proto.SerializeToString(), 6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "an integer that does not end, at byte 1"),
        (b"\x08" + b"\xff" * 11, "an integer that does not end, at byte 1"),
        (b"\x1a\x05\x02", "5 bytes at byte 2 of 3"),
        (b"\x0b", "not a protocol buffer: wire type 3"),
        (b"\x0a\x01\x03", "field 1 is not an integer"),
        (b"\x08\x09", "a sharding of kind number 9 is not read"),
        (b"\x08\x03\x1a\x01\x04\x4a\x05\xff\xff\xff\xff\x0f\x52\x01\x00", "is not for 4"),
        (b"\x08\x03\x1a\x01\x04\x4a\x01\x04\x52\x01\x01", "not a permutation"),
    ],
)
def test_damaged_bytes_are_refused(data, message):
    with pytest.raises(ArtifactError, match=message):
        named_sharding(data, 4)


@given(st.binary(max_size=40), st.integers(1, 2**32))
def test_any_bytes_are_a_sharding_or_refused(data, device_count):
    try:
        found = named_sharding(data, device_count)
    except ArtifactError:
        return
    assert math.prod(found.mesh.axis_sizes) == device_count


@given(data=st.data(), count=st.sampled_from([1, 2, 4, 6, 8]))
def test_any_order_of_devices_is_read_rightly_or_refused(data, count):
    order = data.draw(st.permutations(range(count)))
    tiles = data.draw(
        st.sampled_from([t for t in itertools.product([1, 2, 3, 4, 6, 8], repeat=2) if math.prod(t) == count])
    )
    proto = tiled(tiles, order)
    try:
        found = named_sharding(proto.SerializeToString(), count)
    except ArtifactError:
        return
    assert holders(found, 2) == (holders_by_jaxlib(proto) or [set(range(count))])
