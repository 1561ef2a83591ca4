"""Shardings in XLA's form, as artifacts from before 2026 hold them, into named ones.

`named_sharding(proto, device_count)` reads an OpSharding protocol buffer, of which JAX wrote two
kinds: replicated, and tiled: an array is cut into equal tiles along its axes, and each device
holds one; several devices may hold the same. The order of the devices is a list, or a range
that is reshaped and transposed. All other kinds are refused by name.

The mesh of the result has the devices in their own order, 0, 1, 2, ..., so that shardings of
several arguments agree on it, and axes just fine enough to name the tiles: strides through the
devices are factored until each factor lies within one axis of the array.

Bytes are checked before they are used; nothing is allocated by what they claim. Needs no JAX.
Source: `message OpSharding` in XLA's xla_data.proto; the encoding of protocol buffers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.shardings import AbstractMesh, NamedSharding

__all__ = ["named_sharding"]

_REPLICATED, _MAXIMAL, _OTHER = 0, 1, 3
_KINDS = ("replicated", "maximal", "tuple", "tiled", "manual", "unknown", "unreduced")

# The fields of OpSharding that are read, by number.
_TYPE, _TILES, _DEVICES, _PARTLY_REPLICATED, _LAST_TILES, _RESHAPE, _TRANSPOSE = 1, 3, 4, 6, 8, 9, 10


@dataclass(frozen=True)
class _Factor:
    """A walk through the devices: `size` steps of `stride`."""

    size: int
    stride: int


def named_sharding(proto: bytes, device_count: int) -> NamedSharding:
    """The named sharding that splits an array over `device_count` devices as an OpSharding does.

    Raises:
      ArtifactError: Not an OpSharding, a kind that is not read, or one for other devices.

    >>> str(named_sharding(bytes([8, 3, 26, 2, 1, 2, 34, 2, 0, 1]), 2))
    '(-, axis0) over axis0=2'
    """
    fields: dict[int, list[int]] = {}
    for number, values in _integers(bytes(proto)):
        fields.setdefault(number, []).extend(values)
    kind = fields.get(_TYPE, [_REPLICATED])[-1]
    if kind == _REPLICATED or (kind == _MAXIMAL and device_count == 1):
        return _whole(device_count)
    if kind != _OTHER:
        name = f"'{_KINDS[kind]}'" if kind < len(_KINDS) else f"number {kind}"
        raise ArtifactError(f"a sharding of kind {name} is not read; JAX writes 'replicated' and 'tiled'")
    return _tiled(fields, device_count)


def _whole(device_count: int) -> NamedSharding:
    """An array that every device holds."""
    return NamedSharding(AbstractMesh((device_count,), ("axis0",), ("auto",)), ())


def _tiled(fields: dict[int, list[int]], device_count: int) -> NamedSharding:
    sizes = tuple(fields.get(_TILES, ()))
    if not sizes or min(sizes) < 1 or math.prod(sizes) != device_count:
        raise ArtifactError(f"a sharding of {_text(sizes)} tiles is not for {device_count} devices")
    subgroups = fields.get(_LAST_TILES, [])
    if any(subgroup != _REPLICATED for subgroup in subgroups) or len(subgroups) > 1:
        raise ArtifactError("a sharding with manual subgroups is not read; JAX writes replicated ones")
    replicated = bool(subgroups) or bool(fields.get(_PARTLY_REPLICATED, [0])[-1])
    factors = _refined(_devices(fields, device_count), sizes)
    if not any(factors):
        return _whole(device_count)
    axes = sorted((factor for group in factors for factor in group), key=lambda factor: -factor.stride)
    names = {factor: f"axis{position}" for position, factor in enumerate(axes)}
    mesh = AbstractMesh(tuple(factor.size for factor in axes), tuple(names.values()), ("auto",) * len(axes))
    groups = factors[:-1] if replicated else factors  # the last size counts replicas
    return NamedSharding(mesh, tuple(tuple(names[factor] for factor in group) for group in groups))


def _devices(fields: dict[int, list[int]], device_count: int) -> list[_Factor]:
    """The walk, from its slowest factor to its fastest, that meets the devices in the order of the tiles."""
    order = fields.get(_DEVICES, [])
    reshape, transpose = fields.get(_RESHAPE, []), fields.get(_TRANSPOSE, [])
    if not reshape:
        if len(order) != device_count or sorted(order) != list(range(len(order))):
            raise ArtifactError(f"a sharding whose devices {_text(order)} are not those from 0 to {device_count - 1}")
        return _walk(order)
    if order or min(reshape) < 1 or math.prod(reshape) != device_count:
        raise ArtifactError(f"a sharding whose range of devices has sizes {_text(reshape)} is not for {device_count}")
    transpose = transpose or list(range(len(reshape)))
    if sorted(transpose) != list(range(len(reshape))):
        raise ArtifactError(f"a sharding whose devices are transposed by {_text(transpose)}, not a permutation")
    strides = [math.prod(reshape[axis + 1 :]) for axis in range(len(reshape))]
    return [_Factor(reshape[axis], strides[axis]) for axis in transpose if reshape[axis] > 1]


def _walk(order: Sequence[int]) -> list[_Factor]:
    """The factors of a listed order, which must be that of a mesh whose axes were exchanged."""
    factors: list[_Factor] = []
    rest = list(order)
    while len(rest) > 1:
        stride = rest[1] - rest[0]
        size = 2
        while size < len(rest) and rest[size] == rest[0] + size * stride:
            size += 1
        factors.append(_Factor(size, stride))
        rest = rest[::size]
    factors.reverse()
    if _visited(factors) != list(order):
        raise ArtifactError(f"a sharding over devices in the order {_text(order)}, which no mesh has")
    return factors


def _visited(factors: Sequence[_Factor]) -> list[int]:
    visited = [0]
    for factor in factors:
        visited = [start + step * factor.stride for start in visited for step in range(factor.size)]
    return visited


def _refined(walk: Sequence[_Factor], sizes: Sequence[int]) -> list[list[_Factor]]:
    """The factors of the walk, split so that each lies within one of `sizes`; for each size those within it."""
    groups: list[list[_Factor]] = []
    pending = list(walk)
    for size in reversed(sizes):  # from the fastest
        group: list[_Factor] = []
        left = size
        while left > 1:
            factor = pending.pop()
            taken = math.gcd(left, factor.size)
            if taken != min(left, factor.size):
                raise ArtifactError(f"a sharding of {_text(sizes)} tiles over devices in an order that no mesh has")
            group.append(_Factor(taken, factor.stride))
            left //= taken
            if factor.size > taken:
                pending.append(_Factor(factor.size // taken, factor.stride * taken))
        groups.append(group[::-1])
    return groups[::-1]


def _text(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers[:10]))}{', ...' if len(numbers) > 10 else ''}]"


# --- protocol buffers ---

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_REPEATED = frozenset((_TILES, _DEVICES, _LAST_TILES, _RESHAPE, _TRANSPOSE))


def _integers(data: bytes) -> Iterator[tuple[int, list[int]]]:
    """The integer fields that are read: field number, and values; repeated ones may come packed."""
    read = _REPEATED | {_TYPE, _PARTLY_REPLICATED}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position, len(data))
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position, len(data))
            if number in read:
                yield number, [value]
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position, len(data))
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise ArtifactError(f"a sharding is not a protocol buffer: wire type {wire_type} before byte {position}")
        end = position + size
        if end > len(data):
            raise ArtifactError(f"a sharding that ends within a field: {size} bytes at byte {position} of {len(data)}")
        if number in read:
            if wire_type != _BYTES or number not in _REPEATED:
                raise ArtifactError(f"a sharding whose field {number} is not an integer, at byte {position}")
            packed = []
            while position < end:
                value, position = _varint(data, position, end)
                packed.append(value)
            yield number, packed
        position = end


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """An integer of at most ten bytes, seven bits each, and the position after it."""
    value = 0
    for index in range(10):
        if position + index >= end:
            break
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise ArtifactError(f"a sharding with an integer that does not end, at byte {position}")
