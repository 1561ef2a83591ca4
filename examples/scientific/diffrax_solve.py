"""An ordinary differential equation solved by diffrax with adaptive steps, and its gradient by backpropagation."""

import os

os.environ["EQX_ON_ERROR"] = "nan"  # an error in the program becomes NaN, not a call of Python

import diffrax
import jax.numpy as jnp
import numpy as np
from comparison import compare


def solved(initial, parameters):
    """Prey and predators at five times."""

    def slope(t, y, args):
        prey, predators = y
        return jnp.stack([prey * (args[0] - args[1] * predators), predators * (args[2] * prey - args[3])])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(slope),
        diffrax.Tsit5(),
        t0=0.0,
        t1=3.0,
        dt0=0.1,
        y0=initial,
        args=parameters,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 3.0, 5)),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
        max_steps=64,
    )
    return solution.ys


def main():
    compare("diffrax", solved, [np.float32([2, 1]), np.float32([1.1, 0.4, 0.1, 0.4])], 1e-3)


main()
