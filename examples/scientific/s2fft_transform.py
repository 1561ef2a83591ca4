"""Spherical harmonic transforms of s2fft, forward and back, of a signal on the sphere."""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import s2fft  # noqa: E402
from comparison import compare  # noqa: E402

L = 8


def forward(signal):
    """Real and imaginary parts of the coefficients."""
    coefficients = s2fft.forward_jax(signal.astype(jnp.complex128), L, reality=False)
    return coefficients.real, coefficients.imag


def round_trip(signal):
    """The signal, limited to the band and filtered."""
    coefficients = s2fft.forward_jax(signal.astype(jnp.complex128), L, reality=False)
    return s2fft.inverse_jax(coefficients * jnp.exp(-jnp.arange(L))[:, None], L, reality=False).real


def main():
    signal = np.random.default_rng(0).standard_normal((L, 2 * L - 1))
    compare("s2fft forward", forward, [signal], 1e-9)
    compare("s2fft round trip", round_trip, [signal], 1e-9)


main()
