"""Solutions of triangular systems, Cholesky factors and Fourier transforms, of batches."""

from __future__ import annotations

import numpy as np

from .text import COMPLEX, Module, Text, list_of

__all__ = ["cholesky", "fourier", "triangular_solve"]

_REALS = ["f32", "f64"]


def _batch(text: Text) -> tuple[int, ...]:
    return tuple(text.random.randint(1, 2) for _ in range(text.random.randint(0, 2)))


def triangular_solve(text: Text) -> Module:
    """On either side, by any triangle, transposed or not; what is in the other triangle is not to be read."""
    random, element = text.random, text.random.choice([*_REALS, *COMPLEX])
    batch, size, count = _batch(text), random.randint(1, 4), random.randint(1, 3)
    is_left = random.random() < 0.5
    matrix = text.array((*batch, size, size), element, "normal") + 6 * np.eye(size)
    right = text.argument((*batch, size, count) if is_left else (*batch, count, size), element, "normal")
    lower, unit = (random.choice(("true", "false")) for _ in range(2))
    turned = random.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    attributes = (
        f"left_side = {str(is_left).lower()}, lower = {lower}, unit_diagonal = {unit},"
        f" transpose_a = #stablehlo<transpose {turned}>"
    )
    operands = [text.given(matrix, element), right]
    return text.module(
        text.operation("triangular_solve", operands, (right.shape, element), attributes), max_error_in_eps=1000
    )


def cholesky(text: Text) -> Module:
    """By either triangle, whatever is in the other one; XLA leaves that as it is, ours is 0."""
    random, element = text.random, text.random.choice([*_REALS, *COMPLEX])
    batch, size, is_lower = _batch(text), random.randint(1, 4), text.random.random() < 0.5
    one = text.array((*batch, size, size), element, "normal")
    matrix = one @ np.conj(np.swapaxes(one, -1, -2)) + 2 * np.eye(size)
    kept = np.tril(np.ones((size, size))) if is_lower else np.triu(np.ones((size, size)))
    if random.random() < 0.5:
        matrix = np.where(kept, matrix, 9)
    x = text.given(matrix, element)
    type_, attributes = (x.shape, element), f"lower = {str(is_lower).lower()}"
    mask = text.given(np.broadcast_to(kept, x.shape), "i1")
    zeros = text.given(np.zeros(x.shape), element)
    factor = text.operation("cholesky", [x], type_, attributes)
    return text.module(text.operation("select", [mask, factor, zeros], type_), max_error_in_eps=500)


def fourier(text: Text) -> Module:
    """Over up to three dimensions."""
    random, kind = text.random, text.random.choice(["FFT", "IFFT", "RFFT", "IRFFT"])
    batch, lengths = _batch(text), [text.random.randint(1, 6) for _ in range(text.random.randint(1, 3))]
    real, complex_ = random.choice(list(zip(_REALS, COMPLEX, strict=True)))
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    taken, made = {"RFFT": (lengths, half), "IRFFT": (half, lengths)}.get(kind, (lengths, lengths))
    x = text.argument((*batch, *taken), real if kind == "RFFT" else complex_, "normal")
    result = ((*batch, *made), real if kind == "IRFFT" else complex_)
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {list_of(lengths)}"
    return text.module(text.operation("fft", [x], result, attributes), max_error_in_eps=32)
