"""Loops, branches and calls, random numbers, Fourier transforms and linear algebra."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import FLOATS, SIGNED, Argument, Case, Draw, Sizes, dtypes

__all__ = ["control_flow", "fourier", "linear_algebra", "random_numbers"]


@st.composite
def control_flow(draw: Draw) -> Case:
    """A loop or branch, some in another; carries of several dtypes, constants from outside, no iterations at all."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 3, 3, 1)
    dtype = draw(dtypes(FLOATS, SIGNED))
    count = draw(st.integers(0, 4))
    step = draw(st.sampled_from(STEPS))
    inner = draw(st.sampled_from([None, None, *STEPS]))
    flag = Argument((), "int32", (-2, 5))
    is_in_branch = step in (branched, switched) and inner in (while_loop, fori_loop, scanned)

    def body(x: Any, n: Any, offset: Any) -> Any:
        made = x + offset
        return made if inner is None else inner(made, n, 2, lambda y, m, k: y - k * offset)

    def function(x: Any, n: Any) -> Any:
        return step(x, n, count, body)

    return Case(
        f"{step.__name__} {count} around {inner.__name__ if inner else 'a sum'}",
        function,
        (Argument(shape, dtype), flag),
        sizes.symbolic,
        has_derivative=not {step, inner} & {while_loop},
        max_error_in_eps=16,
        tags=frozenset({"a loop in a branch, of open sizes"} if is_in_branch and sizes.symbolic else ()),
    )


def while_loop(x: Any, n: Any, count: int, body: Any) -> Any:
    """Until a number that only the data knows is reached."""
    done = lax.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[1], n, s[0].astype(x.dtype))), (jnp.int32(0), x)
    )
    return done[1]


def fori_loop(x: Any, n: Any, count: int, body: Any) -> Any:
    """A known number of times."""
    return lax.fori_loop(0, count, lambda i, y: body(y, n, i.astype(x.dtype)), x)


def scanned(x: Any, n: Any, count: int, body: Any) -> Any:
    """Along the first axis, with stacked results, forward or backward."""
    carry, stacked = lax.scan(
        lambda c, e: (body(c, n, jnp.ones((), x.dtype)), (c + e, e)), jnp.zeros_like(x[0]), x, reverse=bool(count % 2)
    )
    return carry, stacked


def branched(x: Any, n: Any, count: int, body: Any) -> Any:
    """One of two."""
    return lax.cond(n > 1, lambda y: body(y, n, y * 0 + 1), lambda y: -y, x)


def switched(x: Any, n: Any, count: int, body: Any) -> Any:
    """One of several, the number clamped."""
    return lax.switch(n, [lambda y: y + 1, lambda y: body(y, n, y * 0 + 2), lambda y: y * 2], x)


def mapped(x: Any, n: Any, count: int, body: Any) -> Any:
    """Each along the first axis, by itself."""
    return jax.vmap(lambda y: body(y, n, jnp.ones((), x.dtype)))(x)


def called(x: Any, n: Any, count: int, body: Any) -> Any:
    """A function with a name, twice."""
    function = jax.jit(lambda y: body(y, n, jnp.full((), 3, x.dtype)))
    return function(x) + function(x * 0)


STEPS = (while_loop, fori_loop, scanned, branched, switched, mapped, called)

DISTRIBUTIONS = {
    "bits": jax.random.bits,
    "bits of 8": lambda key, shape: jax.random.bits(key, shape, "uint8"),
    "uniform": lambda key, shape: jax.random.uniform(key, shape, minval=-1, maxval=2),
    "normal": jax.random.normal,
    "randint": lambda key, shape: jax.random.randint(key, shape, -5, 100),
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    "exponential": jax.random.exponential,
    "gumbel": jax.random.gumbel,
    "categorical": lambda key, shape: jax.random.categorical(key, jnp.arange(5.0), shape=shape),
    "truncated_normal": lambda key, shape: jax.random.truncated_normal(key, -1, 2, shape),
    "split": lambda key, shape: jax.random.uniform(jax.random.split(key, 3)[1], shape),
    "fold_in": lambda key, shape: jax.random.uniform(jax.random.fold_in(key, 7), shape),
    "permutation": lambda key, shape: jax.random.permutation(key, 7),
}


# Of random numbers along the last dimension: of some of 8, 16, 24, ... a compiler follows all rounds of threefry.
SEARCHES = {
    "argmax": lambda x: jnp.argmax(x, -1),
    "argmin": lambda x: jnp.argmin(x, -1),
    "max": lambda x: jnp.max(x, -1),
    "min and max": lambda x: (jnp.min(x, -1), jnp.max(x, -1)),
    "softmax": lambda x: jax.nn.softmax(x.astype("float32"), -1),
    "log_softmax": lambda x: jax.nn.log_softmax(x.astype("float32"), -1),
    "cummax": lambda x: lax.cummax(x, x.ndim - 1),
    "sort": lambda x: jnp.sort(x, -1),
    "any": lambda x: jnp.any(x > 0, -1),
    "mean": lambda x: jnp.mean(x.astype("float32"), -1),
}


def twice(numbers: Any, search: Any, key: Any) -> Any:
    """Both in a function that is called twice."""
    function = jax.jit(lambda k: search(numbers(k)))
    return function(key), function(key + 1)


def search_called_twice(numbers: Any, search: Any, key: Any) -> Any:
    """The numbers here, the search in a function that is called twice."""
    function = jax.jit(lambda x: search(x[::-1] if x.ndim > 1 else x))
    return function(numbers(key)), function(numbers(key + 1))


def numbers_called_twice(numbers: Any, search: Any, key: Any) -> Any:
    """The search here, the numbers from a function that is called twice."""
    function = jax.jit(numbers)
    return search(function(key)), search(function(key + 1))


def loop_of_one_turn(numbers: Any, search: Any, key: Any) -> Any:
    """Each in a loop, of the numbers that are there when it begins."""
    return lax.scan(lambda x, k: (numbers(k), search(x)), numbers(key), key[None] + 1)


def several_keys(numbers: Any, search: Any, key: Any) -> Any:
    """For several keys at once."""
    return jax.vmap(lambda k: search(numbers(k)))(jnp.stack([key, key + 1]))


PLACES = (twice, search_called_twice, numbers_called_twice, loop_of_one_turn, several_keys)


@st.composite
def random_numbers(draw: Draw) -> Case:
    """jax.random with a key that is an argument, and what searches or reduces the numbers, in functions and loops.

    Bits are equal, floats up to rounding.
    """
    sizes = Sizes(draw)
    name = draw(st.sampled_from(list(DISTRIBUTIONS)))
    search = draw(st.sampled_from([None, *SEARCHES])) if name != "permutation" else None
    if search is None:
        shape, place = sizes.shape(0, 2, 5), None
    else:
        shape = (*sizes.shape(0, 1, 5, 1), draw(st.sampled_from([8, 8, 16, 24, 32, 3, sizes.named(6, 9)])))
        place = draw(st.sampled_from([None, *PLACES]))

    def function(key: Any, x: Any) -> Any:
        def numbers(k: Any) -> Any:
            return DISTRIBUTIONS[name](jax.random.wrap_key_data(k, impl="threefry2x32"), x.shape)

        found = SEARCHES.get(search, lambda y: y)
        return found(numbers(key)) if place is None else place(numbers, found, key)

    return Case(
        f"{search or ''} {name} {place.__name__ if place else ''}".strip(),
        function,
        (Argument((2,), "uint32", (0, 2**32 - 1)), Argument(shape)),
        sizes.symbolic,
        max_error_in_eps=64,
        scale=1.0 if name == "gumbel" or search in ("log_softmax", "mean") else 0.0,  # of what is rounded near 1
        has_derivative=False,
    )


FFTS = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "rfftn")


@st.composite
def fourier(draw: Draw) -> Case:
    """The transforms of jax.numpy.fft, of lengths from 1, batches of size 0 too."""
    sizes = Sizes(draw)
    name = draw(st.sampled_from(FFTS))
    rank = 1 if name.endswith("fft") else 2
    batch = tuple(sizes.size(0 if not draw(st.integers(0, 4)) else 1, 3) for _ in range(draw(st.integers(0, 2))))
    lengths = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    is_real = name.startswith("rfft")
    dtype = draw(st.sampled_from(["float32", "float64"] if is_real else ["complex64", "complex128"]))
    shorter = draw(st.booleans()) and rank == 1

    def function(x: Any) -> Any:
        options: dict[str, Any] = {"n": max(1, lengths[0] - 1)} if shorter else {}
        if name.endswith("n"):
            options = {"axes": tuple(range(-rank, 0))}
        return getattr(jnp.fft, name)(x, **options)

    return Case(
        f"{name} of {lengths} shorter={shorter}",
        function,
        (Argument((*batch, *lengths), dtype),),
        sizes.symbolic,
        max_error_in_eps=32,
        has_derivative=draw(st.booleans()),
        tags=frozenset({name, dtype}),
    )


ALGEBRA = {
    "cholesky": lambda a: jnp.linalg.cholesky(_positive(a)),
    "solve": lambda a: jnp.linalg.solve(_positive(a), a),
    "inv": lambda a: jnp.linalg.inv(_positive(a)),
    "det": lambda a: jnp.linalg.det(_positive(a)),
    "slogdet": lambda a: jnp.linalg.slogdet(_positive(a))[1],
    "triangular": lambda a: lax.linalg.triangular_solve(_positive(a), a, left_side=True, lower=True),
    "qr": lambda a: abs(jnp.linalg.qr(_positive(a))[1]),
    "eigvalsh": lambda a: jnp.linalg.eigvalsh(_positive(a)),
    "norm": lambda a: jnp.linalg.norm(_positive(a), axis=(-2, -1)),
}


def _positive(a: Any) -> Any:
    """Symmetric, with eigenvalues of at least 1."""
    return a @ jnp.swapaxes(a, -1, -2) + jnp.eye(a.shape[-1], dtype=a.dtype)


@st.composite
def linear_algebra(draw: Draw) -> Case:
    """Decompositions and solutions of batches of small matrices."""
    sizes = Sizes(draw)
    name = draw(st.sampled_from(list(ALGEBRA)))
    size = draw(st.integers(1, 4))
    batch = tuple(sizes.size(1, 3) for _ in range(draw(st.integers(0, 2))))
    return Case(
        name,
        ALGEBRA[name],
        (Argument((*batch, size, size), "float32"),),
        sizes.symbolic,
        max_error_in_eps=512,
        has_derivative=False,
        tags=frozenset({name}),
    )
