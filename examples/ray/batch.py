"""Batch inference with Ray Data: `python batch.py savedmodel|artifact FOLDER [--address HOST:PORT]`.

360,000 images through 1 and 2 workers. Each worker is an actor that loads the model when it starts and keeps it; the
rows carry their number, so that every answer can be compared with JAX's. No batch is given out before all workers are
ready, and the time is that from the first batch begun to the last one done, as the workers' own clocks have it:
starting Ray and the workers is left out.
"""

import logging
import os
import time

from cluster import arguments, join  # before Ray, whose settings it makes

# isort: split
import numpy as np
import ray
from models import assert_as_in_jax, loaded, packed

COUNT = 360_000
BATCH = 4_000

Batch = dict[str, np.ndarray]


class Worker:
    """Holds the model; called by Ray Data with one batch after another."""

    def __init__(self, kind: str, model: bytes):
        self.model = loaded(kind, model)
        self.model(np.zeros((BATCH, 8, 8), np.float32))  # compiled before the first batch comes

    def __call__(self, batch: Batch) -> Batch:
        """The logits of a batch, and when, where and for how long they were computed."""
        begun, cpu = time.time(), time.process_time()
        logits = self.model(batch["image"])
        clock = {"begun": begun, "done": time.time(), "cpu": (time.process_time() - cpu) / BATCH, "worker": os.getpid()}
        return {"number": batch["number"], "logits": logits} | {
            name: np.full(len(logits), value) for name, value in clock.items()
        }


def pictures(batch: Batch, images: np.ndarray) -> Batch:
    """Numbered images, the held-out ones again and again; where a real job reads its files."""
    number = batch["id"] % len(images)
    return {"number": number, "image": images[number]}


def read(rows: ray.data.Dataset, expected: np.ndarray, kind: str, model: bytes, workers: int) -> tuple[float, float]:
    """Images read in a second, and in a second of a worker's CPU time; every answer has been compared."""
    answers = rows.map_batches(
        Worker,
        fn_constructor_args=(kind, model),
        batch_size=BATCH,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
    begun, done, cpu, seen, used = np.inf, 0.0, 0.0, 0, set()
    for batch in answers.iter_batches(batch_size=None):
        assert_as_in_jax(batch["logits"], expected[batch["number"]])
        begun, done = min(begun, batch["begun"].min()), max(done, batch["done"].max())
        cpu, seen, used = cpu + batch["cpu"].sum(), seen + len(batch["number"]), used | set(batch["worker"])
    assert (seen, len(used)) == (COUNT, workers)
    return seen / (done - begun), seen / cpu


def main() -> None:
    """Reads the images with 1 and with 2 workers."""
    asked = arguments(__doc__)
    join(asked.address)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars, context.wait_for_min_actors_s = False, 600
    expected = dict(np.load(asked.folder / "expected.npz"))
    model = packed(asked.kind, asked.folder)
    images = expected["images"]
    rows = ray.data.range(COUNT).map_batches(pictures, fn_args=(images,), batch_size=BATCH).materialize()
    for workers in (1, 2):
        rate, own = read(rows, expected["logits"], asked.kind, model, workers)
        print(
            f"Ray Data, {asked.kind}, {workers} worker(s): {rate:,.0f} images/s, {own:,.0f} in a second of a worker's "
            f"CPU time, all {COUNT:,} as in JAX",
            flush=True,
        )


if __name__ == "__main__":
    main()
