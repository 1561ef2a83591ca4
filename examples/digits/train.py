"""Trains the network of `network.py` on the digits, in JAX alone; writes `parameters.npz`.

Adam (Kingma and Ba 2015, algorithm 1), written out; one epoch is one compiled call. Fails unless the network
reads at least 96% of the held-out images.
"""

import sys
from pathlib import Path

from clock import Clock, output_folder

OUT = output_folder()
clock = Clock("train", OUT)
with clock("import JAX"):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from data import Digits, load
    from network import Parameters, cross_entropy, initial_parameters, predict
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

EPOCHS, BATCH, LEARNING_RATE = 30, 32, 2e-3
DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8
REQUIRED_ACCURACY = 0.96

Moments = tuple[jax.Array, Parameters, Parameters]  # steps taken, running mean of gradients and of their squares


def train(training: Digits, console: Console) -> Parameters:
    """Parameters after `EPOCHS` epochs; shows a bar on a terminal, and a line now and then elsewhere."""
    parameters = initial_parameters(seed=0)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = (parameters, (jnp.zeros(()), zeros, zeros))
    images, labels = jnp.asarray(training.images), jnp.asarray(training.labels)
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=EPOCHS)
        for number, key in enumerate(jax.random.split(jax.random.key(1), EPOCHS), start=1):
            with clock("compile" if number == 1 else "epochs"):
                state, loss = jax.block_until_ready(epoch(state, images, labels, key))
            progress.update(task, advance=1, description=f"loss {loss:.4f}")
            if not console.is_terminal and number % 10 == 0:
                console.print(f"epoch {number} of {EPOCHS}, loss {loss:.4f}")
    return state[0]


@jax.jit
def epoch(
    state: tuple[Parameters, Moments], images: jax.Array, labels: jax.Array, key: jax.Array
) -> tuple[tuple[Parameters, Moments], jax.Array]:
    """One pass over the images in a new order; the new state, and the mean loss."""
    batches = len(images) // BATCH
    order = jax.random.permutation(key, len(images))[: batches * BATCH].reshape(batches, BATCH)

    def step(state: tuple[Parameters, Moments], rows: jax.Array) -> tuple[tuple[Parameters, Moments], jax.Array]:
        loss, gradient = jax.value_and_grad(cross_entropy)(state[0], images[rows], labels[rows])
        return adam(*state, gradient), loss

    state, losses = jax.lax.scan(step, state, order)
    return state, losses.mean()


def adam(parameters: Parameters, moments: Moments, gradient: Parameters) -> tuple[Parameters, Moments]:
    """One step of Adam: the new parameters, and the new moments."""
    count, mean, square = moments
    count = count + 1
    mean = jax.tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, mean, gradient)
    square = jax.tree.map(lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g**2, square, gradient)
    rate = LEARNING_RATE * jnp.sqrt(1 - DECAY_SQUARE**count) / (1 - DECAY_MEAN**count)
    parameters = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + EPSILON), parameters, mean, square)
    return parameters, (count, mean, square)


def main(out: Path) -> None:
    """Trains, measures on the held-out images, and writes the parameters."""
    console = Console(highlight=False)
    with clock("read the digits"):
        training, held_out = load()
    parameters = train(training, console)
    with clock("measure"):
        accuracy = float(np.mean(np.argmax(predict(parameters, held_out.images), axis=1) == held_out.labels))
    console.print(
        f"JAX reads {accuracy:.1%} of {len(held_out.labels)} held-out images ({len(training.labels)} to train on)"
    )
    if accuracy < REQUIRED_ACCURACY:
        sys.exit(f"train.py: {accuracy:.1%} is below the {REQUIRED_ACCURACY:.0%} that this network reaches")
    np.savez(out / "parameters.npz", **parameters)


if __name__ == "__main__":
    main(OUT)
