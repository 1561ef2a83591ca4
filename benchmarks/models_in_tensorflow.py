"""The models of the benchmarks as one writes them in TensorFlow: what graph mode is held against, with the same XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from models import HEADS, WIDTH

__all__ = ["block", "cnn", "mlp", "transformer"]


def mlp(params: Any, x: tf.Tensor) -> tf.Tensor:
    """As `bench_graph.mlp`."""
    for w, b in params[:-1]:
        x = tf.nn.relu(x @ w + b)
    w, b = params[-1]
    return tf.nn.softmax(x @ w + b)


def cnn(params: Any, images: tf.Tensor) -> tf.Tensor:
    """As `bench_graph.cnn`."""
    x = tf.nn.relu(tf.nn.conv2d(images, params["k1"], 1, "SAME") + params["b1"])
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = x + tf.nn.relu(tf.nn.conv2d(x, params["k2"], 1, "SAME") + params["b2"])
    if "depthwise" in params:
        kernel = tf.transpose(params["depthwise"], (0, 1, 3, 2))
        x = tf.nn.relu6(tf.nn.depthwise_conv2d(x, kernel, (1, 1, 1, 1), "SAME"))
    x = tf.nn.silu(tf.nn.conv2d(x, params["k3"], 2, "SAME"))
    return tf.nn.softmax(tf.reduce_mean(x, (1, 2)) @ params["w"])


def block(x: tf.Tensor, p: Any) -> tf.Tensor:
    """As `models.block`."""
    batch, length, _ = x.shape
    h = x / tf.sqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
    in_heads = (batch, length, HEADS, WIDTH // HEADS)
    q, k, v = (tf.transpose(tf.reshape(h @ p[n], in_heads), (0, 2, 1, 3)) for n in "qkv")
    scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(WIDTH // HEADS).astype(np.float32)
    scores = tf.where(tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0), scores, -1e9)
    x = x + tf.reshape(tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3)), x.shape) @ p["o"]
    return x + tf.nn.gelu(x @ p["up"], approximate=True) @ p["down"]


def transformer(params: Any, x: tf.Tensor) -> tf.Tensor:
    """As `models.transformer`."""
    for layer in params:
        x = block(x, layer)
    return x
