"""Random JAX functions over several devices, of which the process pretends to have eight.

Any mesh and order of its devices; what is split is given for arguments, results and values between; parts are computed
by each device for itself, over all or some axes of the mesh, with collectives. A seed makes a function.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

__all__ = ["Program", "program", "random_mesh", "random_spec"]

SHAPES = [(8,), (2, 4), (4, 2), (2, 2, 2), (4,), (2, 2), (2,), (1,), (1, 2), (4, 1)]
KINDS = ["auto", "auto", "manual", "manual", "in part", "explicit"]
LARGEST = 64  # size of an array that is made larger


@dataclass(frozen=True)
class Program:
    """A function, compiled for a mesh, and arguments of it.

    Attributes:
      kind: One of `KINDS`: how it is split.
      function: Of `jax.jit`, with shardings of arguments and results that are given, if any.
      specs: How the arguments are split where they are placed as the function has them.
    """

    kind: str
    mesh: Mesh
    function: Any
    arguments: tuple[np.ndarray, ...]
    specs: tuple[P, ...]

    def placed(self, mesh: Mesh | None = None, specs: Iterable[P] | None = None) -> list[jax.Array]:
        """The arguments over a mesh, its own if not given; split as the function has them, or by `specs`."""
        shardings = [NamedSharding(mesh or self.mesh, spec) for spec in (specs or self.specs)]
        return [jax.device_put(array, one) for array, one in zip(self.arguments, shardings, strict=True)]

    def shapes(self) -> list[jax.ShapeDtypeStruct]:
        """What the function is exported for."""
        if self.kind != "explicit":
            return [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in self.arguments]
        return [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in self.placed()]


def random_mesh(draw: random.Random, count: int | None = None, axis_type: AxisType = AxisType.Auto) -> Mesh:
    """A mesh, of so many devices if it is said, of the first devices or of any."""
    shape = draw.choice([one for one in SHAPES if count in (None, math.prod(one))])
    places = draw.sample(range(8), 8) if draw.random() < 0.5 else list(range(8))
    devices = np.array(jax.devices())[places[: math.prod(shape)]].reshape(shape)
    return Mesh(devices, tuple(draw.sample("abc", len(shape))), axis_types=(axis_type,) * len(shape))


def random_spec(draw: random.Random, rank: int, axes: Sequence[str], *, of_all: bool = False) -> P:
    """A partition of the dimensions by some of the axes, or by all."""
    parts: list[list[str]] = [[] for _ in range(rank)]
    for axis in draw.sample(list(axes), len(axes)):
        if of_all or draw.random() < 0.6:
            draw.choice(parts).append(axis)
    return P(*(tuple(part) if len(part) > 1 else part[0] if part else None for part in parts))


def program(seed: int) -> Program:
    """The program of a seed."""
    draw = random.Random(seed)
    kind = draw.choice(KINDS)
    mesh = random_mesh(draw, axis_type=AxisType.Explicit if kind == "explicit" else AxisType.Auto)
    numbers = np.random.default_rng(seed)
    shapes = [
        tuple(draw.choice([8, 8, 16]) for _ in range(draw.choice([1, 2, 2, 3]))) for _ in range(draw.choice([1, 2]))
    ]
    arguments = tuple(numbers.standard_normal(shape).astype(np.float32) for shape in shapes)
    specs = tuple(random_spec(draw, len(shape), mesh.axis_names) for shape in shapes)
    count, again = draw.randint(1, 4), draw.randrange(2**32)

    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return _Steps(random.Random(again), kind, mesh).run(arrays, count)

    options: dict[str, Any] = {}
    if kind != "explicit" and draw.random() < 0.6:
        options["in_shardings"] = tuple(NamedSharding(mesh, spec) for spec in specs)
    if kind != "explicit" and draw.random() < 0.6:
        results = jax.eval_shape(function, *arguments)
        options["out_shardings"] = tuple(
            draw.choice((None, NamedSharding(mesh, _even(mesh, x, random_spec(draw, len(x.shape), mesh.axis_names)))))
            for x in results
        )
    return Program(kind, mesh, jax.jit(function, **options), arguments, specs)


def _even(mesh: Mesh, x: Any, spec: P) -> P:
    """The partition, or none where its parts would differ in size."""
    names = [() if one is None else (one,) if isinstance(one, str) else one for one in spec]
    counts = [math.prod(mesh.shape[axis] for axis in part) for part in names]
    return P() if any(size % count for size, count in zip(x.shape, counts, strict=True)) else spec


class _Steps:
    """Computes step by step: the same each time that it is traced."""

    def __init__(self, draw: random.Random, kind: str, mesh: Mesh) -> None:
        self.draw, self.kind, self.mesh = draw, kind, mesh

    def run(self, arrays: Sequence[jax.Array], count: int) -> tuple[jax.Array, ...]:
        """The last one or two of the values."""
        made: list[jax.Array] = []
        for i in range(count):
            pool = [*arrays, *made]
            if self.kind in ("manual", "in part") and (i == 0 or self.draw.random() < 0.3):
                made.append(self._by_device(pool[-2:]))
            elif self.draw.random() < 0.3:
                made.append(self._split(self.draw.choice(pool), self.mesh.axis_names))
            else:
                steps = _BY_ELEMENT if self.kind == "explicit" else _ANY
                made.append(self.draw.choice(steps)(self.draw, self.draw.choice(pool)))
        return tuple(made[-2:])

    def _split(self, x: jax.Array, axes: Sequence[str]) -> jax.Array:
        spec = random_spec(self.draw, x.ndim, axes)
        if self.kind == "explicit":
            return jax.reshard(x, spec)
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def _by_device(self, arrays: Sequence[jax.Array]) -> jax.Array:
        """What each device computes of its part, over all axes or, in part, over some."""
        draw, axes = self.draw, list(self.mesh.axis_names)
        if self.kind == "in part" and len(axes) > 1:
            axes = draw.sample(axes, draw.randint(1, len(axes) - 1))
        steps = [draw.choice(_COLLECTIVES if draw.random() < 0.6 else _ANY) for _ in range(draw.randint(1, 4))]
        again = draw.randrange(2**32)

        def of_a_device(*parts: jax.Array) -> jax.Array:
            inner, pool = random.Random(again), list(parts)
            for step in steps:
                x = inner.choice(pool)
                if step in _COLLECTIVES:
                    chosen = inner.sample(axes, inner.randint(1, len(axes)))
                    over = tuple(axis for axis in self.mesh.axis_names if axis in chosen)  # the order that JAX takes
                    pool.append(step(inner, x, over, math.prod(self.mesh.shape[axis] for axis in over)))
                else:
                    pool.append(step(inner, x))
            return pool[-1]

        specs = tuple(_even(self.mesh, x, random_spec(draw, x.ndim, axes)) for x in arrays)
        options: dict[str, Any] = {"mesh": self.mesh, "in_specs": specs, "axis_names": set(axes), "check_vma": False}
        ranks: list[int] = []

        def noted(*parts: jax.Array) -> None:
            ranks.append(of_a_device(*parts).ndim)

        jax.eval_shape(jax.shard_map(noted, out_specs=P(), **options), *arrays)
        result = random_spec(draw, ranks[-1], axes, of_all=True)
        return jax.shard_map(of_a_device, out_specs=result, **options)(*arrays)


# --- steps: of any array of one dimension or more ---


def _axis(draw: random.Random, x: jax.Array) -> int:
    return draw.randrange(x.ndim)


def _weights(x: jax.Array) -> jax.Array:
    return jnp.asarray((np.arange(x.shape[-1] * 8) % 7 - 3).reshape(-1, 8) / 8, x.dtype)


def _scanned(_: random.Random, x: jax.Array) -> jax.Array:
    def turn(carried: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        carried = (carried + row * 2) / 2
        return carried, carried + 1

    return lax.scan(turn, x[0], x, reverse=True)[1]


def _rotated(_: random.Random, x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda i, y: (jnp.flip(y, 0) + x) / 2, x)


def _updated(draw: random.Random, x: jax.Array) -> jax.Array:
    axis = _axis(draw, x)
    return lax.dynamic_update_slice_in_dim(x, lax.slice_in_dim(x, 0, 1, 1, axis) * 2, draw.randrange(3), axis)


def _joined(draw: random.Random, x: jax.Array) -> jax.Array:
    axis = _axis(draw, x)
    return jnp.concatenate([x, jnp.flip(x, axis)], axis) if x.shape[axis] < LARGEST else jnp.flip(x, axis)


_BY_ELEMENT: list[Callable[[random.Random, jax.Array], jax.Array]] = [
    lambda draw, x: jnp.sin(x),
    lambda draw, x: x * 2 + 1,
    lambda draw, x: x - x.mean(_axis(draw, x), keepdims=True),
    lambda draw, x: x.sum(_axis(draw, x)) / 4 if x.ndim > 1 else jnp.cos(x),
    lambda draw, x: jnp.transpose(x, draw.sample(range(x.ndim), x.ndim)),
    lambda draw, x: jax.checkpoint(lambda y: jnp.sin(jnp.cos(y)))(x),
]
_ANY = [
    *_BY_ELEMENT,
    lambda draw, x: x + lax.broadcasted_iota(x.dtype, x.shape, _axis(draw, x)),
    lambda draw, x: jnp.roll(x, draw.randint(1, 4), _axis(draw, x)),
    lambda draw, x: jnp.sort(x, _axis(draw, x)),
    lambda draw, x: x.reshape(-1),
    lambda draw, x: jnp.take(x, np.array([draw.randrange(9) for _ in range(8)]), _axis(draw, x), mode="clip"),
    lambda draw, x: x.at[np.array([draw.randrange(8) for _ in range(4)])].add(x[:1], mode="drop"),
    lambda draw, x: x @ _weights(x) if x.ndim > 1 else x * 3,
    lambda draw, x: jnp.swapaxes(x, -1, -2) @ x / 8 if x.ndim > 1 else x / 2,
    lambda draw, x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: jnp.flip(y, 0), x),
    lambda draw, x: jax.jit(lambda y: jnp.tanh(y) + y)(x),
    lambda draw, x: x + jax.random.normal(jax.random.fold_in(jax.random.key(3), 5), x.shape, x.dtype),
    _scanned,
    _rotated,
    _updated,
    _joined,
]


# --- steps with collectives: also of axes, over so many devices ---


def _gathered(draw: random.Random, x: jax.Array, axes: tuple[str, ...], count: int) -> jax.Array:
    axis = _axis(draw, x)
    return lax.all_gather(x, axes, axis=axis, tiled=True) if x.shape[axis] * count <= LARGEST else lax.pmean(x, axes)


def _scattered(draw: random.Random, x: jax.Array, axes: tuple[str, ...], count: int) -> jax.Array:
    axis = _axis(draw, x)
    if x.shape[axis] % count:
        return lax.psum(x, axes) / count
    return lax.psum_scatter(x, axes, scatter_dimension=axis, tiled=True) / count


def _exchanged(draw: random.Random, x: jax.Array, axes: tuple[str, ...], count: int) -> jax.Array:
    one, other = _axis(draw, x), _axis(draw, x)
    return lax.pmean(x, axes) if x.shape[one] % count else lax.all_to_all(x, axes, one, other, tiled=True)


def _permuted(draw: random.Random, x: jax.Array, axes: tuple[str, ...], count: int) -> jax.Array:
    targets = draw.sample(range(count), count)
    return lax.ppermute(x, axes, [pair for pair in enumerate(targets) if draw.random() < 0.8])


def _shifted(draw: random.Random, x: jax.Array, axes: tuple[str, ...], count: int) -> jax.Array:
    pairs = [(i, (i + 1) % count) for i in range(count)]
    return lax.scan(lambda y, _: ((lax.ppermute(y, axes, pairs) + x) / 2, None), x, None, length=2)[0]


_COLLECTIVES: list[Callable[[random.Random, jax.Array, tuple[str, ...], int], jax.Array]] = [
    lambda draw, x, axes, count: lax.psum(x, axes) / count,
    lambda draw, x, axes, count: x + lax.axis_index(axes).astype(x.dtype),
    lambda draw, x, axes, count: x * lax.axis_size(axes),
    lambda draw, x, axes, count: lax.cond(lax.axis_index(axes) % 2 == 0, jnp.sin, jnp.cos, x),
    _gathered,
    _scattered,
    _exchanged,
    _permuted,
    _shifted,
]
