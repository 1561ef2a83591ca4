"""Gradients of pools: the window of an array that belongs to an element of the source selects what that is added to."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import LiftUnsupported, lift

# The shape, the lengths and strides of windows, and the padding of each dimension.
WINDOWS = {
    "plain": ((6,), (2,), (2,), ((0, 0),)),
    "overlapping": ((5, 6), (3, 2), (1, 1), ((0, 0), (0, 0))),
    "padded before": ((4,), (2,), (1,), ((1, 0),)),
    "padded": ((4, 5), (2, 3), (1, 2), ((1, 1), (0, 2))),
    "of padding alone": ((3,), (2,), (1,), ((3, 2),)),
    "cropped": ((7,), (2,), (1,), ((-2, 1),)),
    "cropped after": ((6, 5), (2, 2), (2, 1), ((1, -2), (-1, -1))),
}
CUMULATIVE = "window_dimensions = array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>"
RELATIONS = {"GE": np.greater_equal, "LE": np.less_equal, "GT": np.greater, "LT": np.less, "EQ": np.equal}
DTYPES = {"f32": np.float32, "i32": np.int32, "ui8": np.uint8}


def text(sizes, counts, windows, type_, selects, *, initial):
    def tensor(shape=()):
        return f"tensor<{''.join(f'{size}x' for size in shape)}{type_}>"

    lengths, strides, padding = windows
    pairs = str([list(pair) for pair in padding])
    whole, source, one = tensor(sizes), tensor(counts), tensor()
    return f"""func.func @main(%x: {whole}, %u: {source}) -> {whole} {{
      %z = stablehlo.constant dense<{initial}> : {one}
      %r = "stablehlo.select_and_scatter"(%x, %u, %z) <{{
        window_dimensions = array<i64: {str(lengths).strip("(,)")}>,
        window_strides = array<i64: {str(strides).strip("(,)")}>,
        padding = dense<{pairs}> : tensor<{len(padding)}x2xi64> }}> ({{
        ^bb0(%a: {one}, %b: {one}):
          {selects.format(one)}
          stablehlo.return %c : tensor<i1> }}, {{
        ^bb0(%a: {one}, %b: {one}):
          %c = stablehlo.add %a, %b : {one}
          stablehlo.return %c : {one} }}) : ({whole}, {source}, {one}) -> {whole}
      return %r : {whole} }}"""


def counts_of(sizes, lengths, strides, padding):
    dimensions = zip(sizes, lengths, strides, padding, strict=True)
    return tuple((size + sum(pair) - length) // stride + 1 for size, length, stride, pair in dimensions)


def by_definition(x, u, initial, windows, is_kept):
    """Source: StableHLO specification, `select_and_scatter`; what is padding is not selected."""
    lengths, strides, padding = windows
    result = np.full_like(x, initial)
    for place in np.ndindex(*u.shape):
        chosen = None
        for offset in np.ndindex(*lengths):
            dimensions = zip(place, strides, offset, padding, strict=True)
            element = tuple(p * s + o - low for p, s, o, (low, _) in dimensions)
            if not all(0 <= e < size for e, size in zip(element, x.shape, strict=True)):
                continue
            if chosen is None or not is_kept(x[chosen], x[element]):
                chosen = element
        if chosen is not None:
            result[chosen] += u[place]
    return result


def drawn(shape, type_, seed):
    random, dtype = np.random.RandomState(seed), DTYPES[type_]
    x = random.randint(0, 3, shape)
    if type_ == "f32":
        return np.array([-np.inf, np.inf, np.nan, 0, -0.0, 1, -1, np.finfo(dtype).min], dtype)[
            random.randint(0, 8, shape)
        ]
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, 1], dtype)[x]


@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("direction", RELATIONS)
def test_a_windows_first_selected_element_gets_the_source(direction, name, type_):
    shape, *windows = WINDOWS[name]
    counts = counts_of(shape, *windows)
    kind = "FLOAT" if type_ == "f32" else "SIGNED" if type_ == "i32" else "UNSIGNED"
    selects = f"%c = stablehlo.compare {direction}, %a, %b, {kind} : ({{0}}, {{0}}) -> tensor<i1>"
    initial = "3.0" if type_ == "f32" else "3"
    lifted = lift(text(shape, counts, windows, type_, selects, initial=initial))
    xs = np.stack([drawn(shape, type_, seed) for seed in range(6)])
    us = np.random.RandomState(0).randint(1, 9, (6, *counts)).astype(xs.dtype)
    expected = [by_definition(x, u, 3, windows, RELATIONS[direction]) for x, u in zip(xs, us, strict=True)]
    np.testing.assert_array_equal(jax.jit(jax.vmap(lifted))(xs, us), expected)
    np.testing.assert_array_equal(jax.jit(lifted)(xs[0], us[0]), expected[0])
    if type_ == "f32":
        weights = np.arange(xs[0].size, dtype=xs.dtype).reshape(shape)
        (found,) = jax.vjp(lambda u: lifted(xs[0], u), us[0])[1](weights)
        ones = np.eye(us[0].size, dtype=xs.dtype).reshape(-1, *counts)

        sums = [np.sum(np.where(part != 0, part * weights, 0)) for part in parts(xs[0], ones, windows, direction)]
        np.testing.assert_array_equal(found, np.reshape(sums, counts))


def parts(x, ones, windows, direction):
    return [by_definition(x, one, 0, windows, RELATIONS[direction]) for one in ones]


def test_a_selection_that_is_no_comparison_is_refused():
    selects = "%c = stablehlo.constant dense<true> : tensor<i1>"
    module = text((4,), (2,), ((2,), (2,), ((0, 0),)), "f32", selects, initial="0.0")
    with pytest.raises(LiftUnsupported, match="it selects by another function than a comparison of the two elements"):
        lift(module)(np.ones(4, np.float32), np.ones(2, np.float32))


@pytest.mark.slow(1)
@pytest.mark.parametrize("windows", ["window_dimensions = array<i64: 2>", CUMULATIVE])
@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
def test_windows_from_any_value_on_are_differentiated_and_vectorized(name, windows):
    count = 3 if windows != CUMULATIVE else 4
    module = f"""func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<{count}xf32> {{
      %r = "stablehlo.reduce_window"(%x, %z) ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %k = stablehlo.{name} %a, %b : tensor<f32>
          stablehlo.return %k : tensor<f32> }}) {{{windows}}} : (tensor<4xf32>, tensor<f32>) -> tensor<{count}xf32>
      return %r : tensor<{count}xf32> }}"""
    combine = {"add": jnp.add, "maximum": jnp.maximum, "minimum": jnp.minimum}[name]

    def by_hand(x, z):
        starts = range(count) if windows != CUMULATIVE else [0] * 4
        stops = range(1, 5) if windows == CUMULATIVE else range(2, 5)
        return jnp.stack([functools.reduce(combine, x[i:j], z) for i, j in zip(starts, stops, strict=True)])

    lifted, x, zs = lift(module), np.array([1, 4, 2, 8], np.float32), np.array([0, 3, -np.inf, 5], np.float32)
    of_batches = [
        lambda f: jax.vmap(f, (None, 0))(x, zs),
        lambda f: jax.vmap(f)(np.stack([x, x[::-1], 2 * x, -x]), zs),
    ]
    uses = [
        *(of_batches if name != "add" else ()),  # JAX has no windows of sums from several values on
        lambda f: jax.jvp(f, (x, zs[1]), (x + 1, zs[3])),
        lambda f: jax.vjp(f, x, zs[1])[1](np.arange(1, count + 1, dtype=np.float32)),
    ]
    for use in uses:
        for found, expected in zip(*(jax.tree.leaves(use(f)) for f in (lifted, by_hand)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_more_elements_than_their_indices_count_are_refused():
    shape, *windows = (2**31,), (2,), (2,), ((2, 0),)
    counts = counts_of(shape, *windows)
    selects = "%c = stablehlo.compare GE, %a, %b, FLOAT : ({0}, {0}) -> tensor<i1>"
    lifted = lift(text(shape, counts, windows, "f32", selects, initial="0.0"))
    arguments = [jax.ShapeDtypeStruct(sizes, np.float32) for sizes in (shape, counts)]
    with pytest.raises(LiftUnsupported, match=r"padding, or .* of 2\*\*31 elements or more"):
        jax.eval_shape(lifted, *arguments)
