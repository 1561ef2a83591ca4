"""Models that more than one benchmark of this folder measures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import ShapeDtypeStruct

__all__ = ["WIDTH", "block", "parameters", "transformer", "transformer_of"]

LAYERS, WIDTH, HEADS = 12, 256, 8


def block(x: Any, p: Any) -> Any:
    batch, length, _ = x.shape
    h = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    q, k, v = ((h @ p[n]).reshape(batch, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3) for n in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    x = x + (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH) @ p["o"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def transformer(params: Any, x: Any) -> Any:
    for layer in params:
        x = block(x, layer)
    return x


def transformer_of() -> Callable[[Any, Any], Any]:
    """A function that JAX has not traced yet."""
    return functools.partial(transformer)


def parameters(layers: int = LAYERS) -> Any:
    """Specifications of the parameters of so many layers."""

    def spec(*shape: int) -> Any:
        return ShapeDtypeStruct(shape, jnp.float32)

    layer = {n: spec(WIDTH, WIDTH) for n in "qkvo"}
    return [{**layer, "up": spec(WIDTH, 4 * WIDTH), "down": spec(4 * WIDTH, WIDTH)}] * layers
