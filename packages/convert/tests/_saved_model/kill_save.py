"""Saves a model again and again until it is killed.

Weights, a constant of the graph, metadata and an asset all say which save they are of.
"""

import itertools
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import tensorflow as tf

from jaxtf.convert import save_model


def save(folder: Path, number: int) -> None:
    """Saves what says everywhere that it is the number."""
    asset = folder.with_name(f"asset-{number}.txt")
    asset.write_text(str(number))
    save_model(
        lambda params, x: (x + params, x + number),
        np.full(1000, number, np.float32),
        folder,
        input_signatures=[tf.TensorSpec([1000], tf.float32)],
        gradient_order=0,
        assets={"number": asset},
        metadata={"number": number},
        native_serialization=False,
    )
    asset.unlink()


def save_without_end(folder: Path, saved: Connection) -> None:
    """Sends the number of each save that is done."""
    for number in itertools.count(1):
        save(folder, number)
        saved.send(number)
