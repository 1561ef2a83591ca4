"""Six models in JAX, with fixed parameters and inputs, and JAX's own results, with which each consumer is compared.

Knows nothing of TensorFlow. The batch size of every model is symbolic; results are dicts, so that they have names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Arrays = dict[str, np.ndarray]

EPSILON = np.finfo(np.float32).eps


@dataclass(frozen=True)
class Model:
    """A function of parameters and inputs.

    Attributes:
      predict: The function `predict(params, *inputs) -> {name: result}`.
      params: Its parameters, a dict of float32 arrays.
      signature: For each input by name: shape, None for the batch, and dtype.
      max_error_in_eps: The number of rounded operations on the longest path from an input to a result: n for a sum of
        n products, 4 for a transcendental function, and all those of each step of a loop.
    """

    name: str
    predict: Callable[..., dict[str, Any]]
    params: Arrays
    signature: dict[str, tuple[tuple[int | None, ...], str]]
    max_error_in_eps: int

    @property
    def polymorphic_shapes(self) -> list[str | None]:
        """For `convert`: the batch is the symbol `b`."""
        shapes = [shape for shape, _ in self.signature.values()]
        return ["(b, ...)" if shape[:1] == (None,) else None for shape in shapes]

    def inputs(self, batch: int) -> Arrays:
        """Inputs of a batch, the same in every run: normal numbers; integers from 0 to 7."""
        random = np.random.default_rng(batch)
        made = {}
        for name, (shape, dtype) in self.signature.items():
            sizes = [batch if size is None else size for size in shape]
            made[name] = np.asarray(
                random.normal(size=sizes) if dtype == "float32" else random.integers(0, 8, sizes), dtype
            )
        return made

    def expected(self, inputs: Arrays) -> Arrays:
        """JAX's results, compiled."""
        return {name: np.asarray(value) for name, value in jax.jit(self.predict)(self.params, *inputs.values()).items()}

    def tolerance(self, expected: np.ndarray) -> float:
        """How far two computations in float32 may be apart: each rounding, of either, loses half an epsilon at most.

        That is relative to the largest value. Layers keep magnitudes (parameters are scaled by the number of inputs),
        so that errors do not grow from layer to layer.
        """
        return self.max_error_in_eps * EPSILON * max(1.0, float(np.abs(expected).max()))


def normal(seed: int, **shapes: tuple[int, ...]) -> Arrays:
    """Parameters: normal, scaled by the number of inputs; vectors are small."""
    random = np.random.default_rng(seed)
    scales = {name: 0.1 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5 for name, shape in shapes.items()}
    return {name: (random.normal(size=shape) * scales[name]).astype(np.float32) for name, shape in shapes.items()}


# --- digits: a perceptron ---


def digits(params, images):
    hidden = jax.nn.relu(images.reshape(images.shape[0], -1) @ params["w1"] + params["b1"])
    return {"scores": hidden @ params["w2"] + params["b2"]}


# --- a convolutional network ---


def convolution(x, kernel, groups=1):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups)


def cnn(params, images):
    x = jax.nn.relu(convolution(images, params["k1"]) + params["b1"])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu6(convolution(x, params["depthwise"], groups=8) * params["scale"])
    x = jax.nn.gelu(convolution(x, params["pointwise"]))
    return {"probabilities": jax.nn.softmax(x.mean(axis=(1, 2)) @ params["w"] + params["b2"])}


# --- a transformer block with a cache: one step of decoding ---

WORDS, WIDTH, HEADS, LENGTH = 16, 32, 4, 12


def layer_norm(x, scale):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered * lax.rsqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * (1 + scale)


def transformer(params, words, position, keys, values):
    """Scores of the next word, and the cache with this word's key and value at `position`.

    The new cache has other names than the old: tf2onnx and OpenVINO confuse a result with an input of its name.
    """
    batch = words.shape[0]
    x = params["embedding"][words] + lax.dynamic_index_in_dim(params["positions"], position, keepdims=False)
    query, key, value = jnp.split(layer_norm(x, params["scale1"]) @ params["qkv"], 3, axis=-1)
    split = (batch, 1, HEADS, WIDTH // HEADS)
    start = (0, position, 0, 0)
    keys = lax.dynamic_update_slice(keys, key.reshape(split), start)
    values = lax.dynamic_update_slice(values, value.reshape(split), start)
    logits = jnp.einsum("bqhd,bkhd->bhqk", query.reshape(split), keys) / np.float32((WIDTH // HEADS) ** 0.5)
    seen = jnp.arange(LENGTH) <= position
    weights = jax.nn.softmax(jnp.where(seen, logits, -1e9), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, values).reshape(batch, WIDTH) @ params["out"]
    hidden = jax.nn.gelu(layer_norm(x, params["scale2"]) @ params["up"])
    x = x + hidden @ params["down"]
    return {"scores": x @ params["embedding"].T, "new_keys": keys, "new_values": values}


# --- a recurrent network ---


def rnn(params, sequence):
    """A gated recurrent unit, scanned over time."""

    def step(state, x):
        gates = jax.nn.sigmoid(x @ params["wx"] + state @ params["wh"] + params["b"])
        update, reset = jnp.split(gates, 2, axis=-1)
        candidate = jnp.tanh(x @ params["cx"] + (reset * state) @ params["ch"])
        state = update * state + (1 - update) * candidate
        return state, state.mean(axis=-1)

    start = jnp.zeros((sequence.shape[0], 16), sequence.dtype)
    last, means = lax.scan(step, start, sequence.transpose(1, 0, 2))
    return {"scores": last @ params["w"], "means": means.T}


# --- a variational autoencoder; the key is a constant of the function, so that its random numbers are too ---


def vae(params, images):
    """Four samples for each image; the noise is the same for each."""
    hidden = jax.nn.silu(images @ params["encoder"])
    mean, log_variance = jnp.split(hidden @ params["latent"], 2, axis=-1)
    noise = jax.random.normal(jax.random.key(0), (4, 6))
    sampled = mean[:, None] + jnp.exp(log_variance / 2)[:, None] * noise
    decoded = jax.nn.sigmoid(jax.nn.silu(sampled @ params["decoder"]) @ params["pixels"])
    return {"samples": decoded, "mean": mean}


# --- a loop of denoising steps ---

STEPS = 10


def diffusion(params, x):
    noise = jax.random.normal(jax.random.key(1), (STEPS, 16))
    frequencies = jnp.arange(1, 5, dtype=jnp.float32)

    def step(i, x):
        angles = i.astype(jnp.float32) / STEPS * frequencies
        time = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])
        hidden = jnp.tanh(x @ params["w1"] + time @ params["time"])
        fresh = lax.dynamic_index_in_dim(noise, i, keepdims=False)
        return 0.9 * x - 0.1 * (hidden @ params["w2"]) + 0.05 * fresh

    return {"denoised": lax.fori_loop(0, STEPS, step, x)}


MODELS = (
    Model(
        "digits",
        digits,
        normal(0, w1=(64, 32), b1=(32,), w2=(32, 10), b2=(10,)),
        {"images": ((None, 8, 8), "float32")},
        max_error_in_eps=64 + 32 + 2,
    ),
    Model(
        "cnn",
        cnn,
        normal(
            1,
            k1=(3, 3, 3, 8),
            b1=(8,),
            depthwise=(3, 3, 1, 8),
            scale=(8,),
            pointwise=(1, 1, 8, 16),
            w=(16, 10),
            b2=(10,),
        ),
        {"images": ((None, 16, 16, 3), "float32")},
        max_error_in_eps=27 + 9 + 8 + 64 + 16 + 10 + 3 * 4,
    ),
    Model(
        "transformer",
        transformer,
        normal(
            2,
            embedding=(WORDS, WIDTH),
            positions=(LENGTH, WIDTH),
            scale1=(WIDTH,),
            qkv=(WIDTH, 3 * WIDTH),
            out=(WIDTH, WIDTH),
            scale2=(WIDTH,),
            up=(WIDTH, 2 * WIDTH),
            down=(2 * WIDTH, WIDTH),
        ),
        {
            "words": ((None,), "int32"),
            "position": ((), "int32"),
            "keys": ((None, LENGTH, HEADS, WIDTH // HEADS), "float32"),
            "values": ((None, LENGTH, HEADS, WIDTH // HEADS), "float32"),
        },
        max_error_in_eps=2 * (2 * WIDTH + 4) + 3 * WIDTH + 2 * LENGTH + WIDTH // HEADS + 2 * WIDTH + 3 * 4,
    ),
    Model(
        "rnn",
        rnn,
        normal(3, wx=(8, 32), wh=(16, 32), b=(32,), cx=(8, 16), ch=(16, 16), w=(16, 4)),
        {"sequence": ((None, 12, 8), "float32")},
        max_error_in_eps=12 * (8 + 16 + 8 + 16 + 8 + 4) + 16,
    ),
    Model(
        "vae",
        vae,
        normal(4, encoder=(64, 32), latent=(32, 12), decoder=(6, 32), pixels=(32, 64)),
        {"images": ((None, 64), "float32")},
        max_error_in_eps=64 + 32 + 6 + 32 + 4 * 4,
    ),
    Model(
        "diffusion",
        diffusion,
        normal(5, w1=(16, 32), time=(8, 32), w2=(32, 16)),
        {"x": ((None, 16), "float32")},
        max_error_in_eps=STEPS * (16 + 8 + 32 + 3 * 4),
    ),
)
