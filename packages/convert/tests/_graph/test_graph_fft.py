"""Discrete Fourier transforms in graph mode give JAX's results: of every kind, rank, length and size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from .graph_mode import MODES, drawn, run_graph_mode, run_jax, run_with_open_sizes


@pytest.fixture(autouse=True, scope="module")
def _with_64_bits():
    with jax.enable_x64(True):
        yield


@st.composite
def transforms(draw):
    """A kind, lengths, the shape of the operand, its dtype, and which of its sizes are left open."""
    # JAX makes no module of an RFFT of length 0.
    kind = draw(st.sampled_from(["FFT", "IFFT", "RFFT", "IRFFT"]))
    lengths = tuple(draw(st.lists(st.integers(int(kind == "RFFT"), 6), min_size=1, max_size=3)))
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    shape = [*batch, *lengths]
    if kind == "IRFFT":
        shape[-1] = lengths[-1] // 2 + 1 if lengths[-1] else draw(st.integers(0, 1))
    bits = draw(st.sampled_from([32, 64]))
    dtype = f"float{bits}" if kind == "RFFT" else f"complex{2 * bits}"
    names = [f"b{i}" if i < len(batch) and size and draw(st.booleans()) else size for i, size in enumerate(shape)]
    return kind, lengths, tuple(shape), dtype, names


def spectrum(shape, dtype):
    count = int(np.prod(shape))
    real = np.sin(np.arange(count) * 1.7 + 1).reshape(shape)
    return real.astype(dtype) if dtype.startswith("f") else (real + 1j * np.cos(real * 3)).astype(dtype)


def assert_transformed(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        epsilon = float(np.finfo(ours.dtype).eps)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=32 * epsilon * np.abs(theirs).max(initial=1))


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@given(drawn_case=transforms())
@drawn(25)
def test_any_transform_agrees(mode, drawn_case):
    kind, lengths, shape, dtype, names = drawn_case
    operand = spectrum(shape, dtype)

    def transform(x):
        return lax.fft(x, getattr(lax.FftType, kind), lengths)

    expected = run_jax(transform, operand)
    assert_transformed(run_with_open_sizes(transform, [operand], [names], mode=mode), expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_transform_to_nothing_does_not_end_the_process(mode):
    def every(x):
        return jnp.fft.irfft(x), jnp.fft.irfft2(x), jnp.fft.irfft(jnp.zeros((0, 3), x.dtype))

    assert_transformed(
        run_graph_mode(every, spectrum((2, 1), "complex64"), mode=mode), run_jax(every, spectrum((2, 1), "complex64"))
    )
