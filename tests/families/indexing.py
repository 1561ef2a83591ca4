"""Parts of arrays read and written where indices say: gather, scatter, slices, pads, layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import COMPLEX, FLOATS, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes, least_scale, whole_range

__all__ = ["gather", "layout", "pad", "scatter", "slices"]

ANY = (("bool", *FLOATS), SIGNED, UNSIGNED, COMPLEX)
INDICES = ("int32", "int8", "uint8", "uint32", "int64")
MODES = ("clip", "fill", "promise_in_bounds")


class Indexed:
    """Dimensions of an operand that indices, batches and windows walk through, for gather and scatter alike.

    Args:
      draw: Of hypothesis.
    """

    def __init__(self, draw: Draw) -> None:
        self.sizes = sizes = Sizes(draw)
        rank = draw(st.integers(1, 4))
        roles = [draw(st.sampled_from(["point", "slice", "whole", "part", "one", "batch"])) for _ in range(rank)]
        self.shape = tuple(sizes.size(1, 4) for _ in range(rank))
        self.slices: list[Any] = []
        for size, role in zip(self.shape, roles, strict=True):
            least = sizes.least(size)
            taken = {"point": 1, "one": 1, "batch": 1, "whole": size}.get(role)
            self.slices.append(draw(st.integers(1, least)) if taken is None else taken)
        self.collapsed = [i for i, role in enumerate(roles) if role in ("point", "one")]
        self.batching = [i for i, role in enumerate(roles) if role == "batch"]
        self.windows = [i for i, role in enumerate(roles) if role in ("slice", "whole", "part")]
        indexed = [i for i, role in enumerate(roles) if role in ("point", "slice")]
        self.indexed = list(draw(st.permutations(indexed)))
        own = [("own", sizes.size(1, 3)) for _ in range(draw(st.integers(0, 2)))]
        shared = [("shared", i) for i in self.batching]
        places = draw(st.permutations([*own, *shared]))
        self.batch_shape = [self.shape[x] if kind == "shared" else x for kind, x in places]
        self.index_batching = [places.index(("shared", i)) for i in self.batching]
        self.index_shape = (*self.batch_shape, len(self.indexed))
        count = len(self.batch_shape) + len(self.windows)
        self.window_dims = sorted(draw(st.permutations(range(count)))[: len(self.windows)])
        extents = iter([self.slices[i] for i in self.windows])
        batch = iter(self.batch_shape)
        self.result_shape = tuple(next(extents) if i in self.window_dims else next(batch) for i in range(count))
        self.index_dtype = draw(st.one_of(st.just("int32"), st.sampled_from(INDICES)))
        largest = max((max(values) for values in sizes.symbolic.values()), default=0)
        self.tags = {"narrow indices"} if largest > whole_range(self.index_dtype)[1] else set()
        self.mode = draw(st.sampled_from(MODES))
        last_starts = [sizes.least(self.shape[i]) - sizes.least(self.slices[i]) for i in self.indexed]
        if self.mode == "promise_in_bounds":
            self.bounds = (0, min(last_starts, default=0))
        elif not draw(st.integers(0, 3)):
            self.bounds = whole_range(self.index_dtype)
        else:
            self.bounds = (0 if self.index_dtype.startswith("u") else -2, 5)

    def numbers(self, kind: Any, indexed: Sequence[int]) -> Any:
        """The dimension numbers with those dimensions indexed."""
        batching = tuple(self.batching), tuple(self.index_batching)
        return kind(tuple(self.window_dims), tuple(self.collapsed), tuple(indexed), *batching)

    def in_jax(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """How JAX is asked where there is no index: with one, 0; None elsewhere.

        Without one the XLA of JAX 0.10 scatters only the last of several updates, in the gradient of a gather too.
        """
        free = [i for i in range(len(self.shape)) if i not in self.batching]
        if self.indexed or not free:
            return None

        def asked(x: Any, indices: Any, *updates: Any) -> Any:
            indices = jnp.pad(indices, [(0, 0)] * (indices.ndim - 1) + [(0, 1)])
            return function(x, indices, *updates, indexed=free[:1])

        return asked


@st.composite
def gather(draw: Draw) -> Case:
    """`lax.gather` with any dimension numbers and mode."""
    parts = Indexed(draw)
    numbers = parts.numbers(lax.GatherDimensionNumbers, parts.indexed)
    dtype = draw(dtypes(*ANY))
    names = [size if isinstance(size, int) else (i, size) for i, size in enumerate(parts.slices)]

    def function(x: Any, indices: Any, indexed: Sequence[int] = parts.indexed) -> Any:
        slice_sizes = [size if isinstance(size, int) else x.shape[size[0]] for size in names]
        fill = {"fill_value": 1} if parts.mode == "fill" else {}
        asked = parts.numbers(lax.GatherDimensionNumbers, indexed)
        return lax.gather(x, indices, asked, slice_sizes, mode=parts.mode, **fill)

    return Case(
        f"gather {numbers} slices {parts.slices} {parts.mode}",
        function,
        (Argument(parts.shape, dtype), Argument(parts.index_shape, parts.index_dtype, parts.bounds)),
        parts.sizes.symbolic,
        in_jax=parts.in_jax(function),
        tags=frozenset(parts.tags),
    )


SCATTERS = {
    "add": lax.scatter_add,
    "sub": lax.scatter_sub,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
    "set": lax.scatter,
    "apply": None,
}


@st.composite
def scatter(draw: Draw) -> Case:
    """The scatters with any dimension numbers and mode, indices that repeat, and partial windows, some into 0 or 1."""
    parts = Indexed(draw)
    numbers = parts.numbers(lax.ScatterDimensionNumbers, parts.indexed)
    kind = draw(st.sampled_from(list(SCATTERS)))
    groups = ANY if kind == "set" else ANY[1:] if kind == "apply" else (FLOATS, SIGNED, UNSIGNED)
    dtype = draw(dtypes(*groups))
    values = "small"
    if kind in ("min", "max", "mul") and dtype in FLOATS:
        values = draw(st.sampled_from(["small", "wide" if kind == "mul" else "special"]))
    into = draw(st.sampled_from([None, None, None, 0, 1])) if kind != "apply" else None

    def function(x: Any, indices: Any, updates: Any, indexed: Sequence[int] = parts.indexed) -> Any:
        asked = parts.numbers(lax.ScatterDimensionNumbers, indexed)
        if into is not None:
            x = jnp.full_like(x, into)
        if kind == "apply":
            # Each time it is applied it changes the value, so that repeated indices show.
            shape = tuple(updates.shape)
            return lax.scatter_apply(x, indices, lambda v: v * 2 - 1, asked, update_shape=shape, mode=parts.mode)
        if kind == "set":
            updates = jnp.zeros_like(updates)  # which of several is written is not defined
        return SCATTERS[kind](x, indices, updates, asked, mode=parts.mode)

    return Case(
        f"scatter_{kind} {numbers} {parts.mode} {'' if into is None else f'into {into}'}".strip(),
        function,
        (
            Argument(parts.shape, dtype, values),
            Argument(parts.index_shape, parts.index_dtype, parts.bounds),
            Argument(parts.result_shape, dtype, values),
        ),
        parts.sizes.symbolic,
        scale=least_scale(dtype) if values == "wide" else 0.0,
        has_derivative=kind in ("add", "sub", "set"),
        in_jax=parts.in_jax(function),
        tags=frozenset({f"scatter_{kind}", values, *parts.tags}),
    )


@st.composite
def slices(draw: Draw) -> Case:
    """Static and dynamic slices, updates of slices, reversal and concatenation."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 4, 5)
    kind = draw(st.sampled_from(["slice", "dynamic_slice", "dynamic_update_slice", "rev", "concatenate", "index"]))
    dtype = draw(dtypes(*ANY))
    rank = len(shape)
    least = [sizes.least(size) for size in shape]
    starts = [draw(st.integers(0, n)) for n in least]
    limits = [draw(st.integers(s, n)) for s, n in zip(starts, least, strict=True)]
    strides = [draw(st.integers(1, 3)) for _ in shape]
    extents = [limit - start for start, limit in zip(starts, limits, strict=True)]
    axes = draw(st.sets(st.integers(0, rank - 1)))
    index_dtype = draw(st.one_of(st.just("int32"), st.sampled_from(INDICES)))
    is_near = draw(st.integers(0, 3))
    bounds = (0 if index_dtype.startswith("u") else -7, 7) if is_near else whole_range(index_dtype)
    indices = Argument((rank,), index_dtype, bounds)
    from_end = draw(st.booleans())

    def function(x: Any, *more: Any) -> Any:
        if kind == "slice":
            ends = [x.shape[i] if from_end else limit for i, limit in enumerate(limits)]
            return lax.slice(x, starts, ends, strides)
        if kind == "dynamic_slice":
            return lax.dynamic_slice(x, list(more[0]), extents)
        if kind == "dynamic_update_slice":
            return lax.dynamic_update_slice(x, more[1], list(more[0]))
        if kind == "rev":
            return lax.rev(x, sorted(axes))
        if kind == "index":
            return x[
                tuple(slice(start - n, None, -stride) for start, n, stride in zip(starts, least, strides, strict=True))
            ]
        return lax.concatenate([x, x[: least[0] // 2], more[1]], 0)

    arguments = [Argument(shape, dtype)]
    if kind in ("dynamic_slice", "dynamic_update_slice", "concatenate"):
        other = (sizes.size(0, 3), *shape[1:]) if kind == "concatenate" else tuple(extents)
        arguments += [indices, Argument(other, dtype)]
    return Case(f"{kind} {starts} {limits} {strides} {axes}", function, tuple(arguments), sizes.symbolic)


@st.composite
def pad(draw: Draw) -> Case:
    """`lax.pad` with padding before, after and between, negative too."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 4, 4)
    configuration = [(draw(st.integers(-2, 2)), draw(st.integers(-2, 2)), draw(st.integers(0, 2))) for _ in shape]
    dtype = draw(dtypes(*ANY))
    return Case(
        f"pad {configuration}",
        lambda x, value: lax.pad(x, value, configuration),
        (Argument(shape, dtype), Argument((), dtype)),
        sizes.symbolic,
    )


@st.composite
def layout(draw: Draw) -> Case:
    """Transposes, reshapes, broadcasts, squeezes and iotas, several of them one after the other."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 4, 4)
    dtype = draw(dtypes(*ANY))
    steps = draw(st.lists(st.tuples(st.sampled_from(LAYOUTS), st.integers(0, 1000)), min_size=1, max_size=5))

    def function(x: Any) -> Any:
        for step, seed in steps:
            x = step(x, seed)
        return x

    return Case(f"layout {[(s.__name__, n) for s, n in steps]}", function, (Argument(shape, dtype),), sizes.symbolic)


def _order(count: int, seed: int) -> list[int]:
    axes = list(range(count))
    return [axes.pop(seed // (i + 1) % len(axes)) for i in range(count)]


def transposed(x: Any, seed: int) -> Any:
    """Any permutation."""
    return x.transpose(_order(x.ndim, seed))


def merged(x: Any, seed: int) -> Any:
    """Two neighbouring axes as one."""
    if x.ndim < 2:
        return x
    axis = seed % (x.ndim - 1)
    return x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])


def expanded(x: Any, seed: int) -> Any:
    """One more axis of size 1."""
    return jnp.expand_dims(x, seed % (x.ndim + 1)) if x.ndim < 6 else x


def squeezed(x: Any, seed: int) -> Any:
    """An axis of size 1 put somewhere, and taken away elsewhere: a symbolic size may be 1, but is not known to be."""
    wide = jnp.expand_dims(x, seed % (x.ndim + 1))
    order = _order(wide.ndim, seed // 7)
    return jnp.squeeze(wide.transpose(order), order.index(seed % (x.ndim + 1)))


def broadcast(x: Any, seed: int) -> Any:
    """An axis of size 2 put somewhere."""
    axis = seed % (x.ndim + 1)
    dims = [i for i in range(x.ndim + 1) if i != axis]
    return lax.broadcast_in_dim(x, (*x.shape[:axis], 2, *x.shape[axis:]), dims) if x.ndim < 5 else x


def counted(x: Any, seed: int) -> Any:
    """With positions along an axis added."""
    if not x.ndim or x.dtype == bool:
        return x
    return x + lax.broadcasted_iota(jnp.int32, x.shape, seed % x.ndim).astype(x.dtype)


def stretched(x: Any, seed: int) -> Any:
    """Multiplied with its own part of size 1, which is broadcast along an axis."""
    if not x.ndim or x.dtype == bool:
        return x
    axis = seed % x.ndim
    return x * (1 + lax.iota(x.dtype, 3).sum()) + jnp.ones_like(x).sum(axis, keepdims=True).astype(x.dtype)


def flattened(x: Any, seed: int) -> Any:
    """As a vector."""
    return x.reshape(-1) if seed % 3 == 0 else x


LAYOUTS = (transposed, merged, expanded, squeezed, broadcast, counted, stretched, flattened)
