"""scikit-learn's handwritten digits, split once and for all into training and held-out images."""

from typing import NamedTuple

import numpy as np

HELD_OUT = 450


class Digits(NamedTuple):
    """Images as float32[n, 8, 8] with values from 0 to 16, and the digit on each as int32[n]."""

    images: np.ndarray
    labels: np.ndarray


def load() -> tuple[Digits, Digits]:
    """The training images and the 450 held-out ones; the split is the same on every machine."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(seed=0).permutation(len(digits.images))
    images = digits.images[order].astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    return Digits(images[HELD_OUT:], labels[HELD_OUT:]), Digits(images[:HELD_OUT], labels[:HELD_OUT])
