"""What one eager call costs: the bare XlaCallModule op, `jaxtf.convert`, and upstream's jax2tf.

The function is the sine of f32[16], so that nearly all the time is the way to it. Each row is the median over
rounds of the CPU time and of the wall time of one call; "polymorphic" takes the size as a dimension variable. A
row says why when it cannot be measured here.

    python3 run.py bench
"""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from bare_op import bare_op
from timing import line, seconds_in_turns

from jaxtf.convert import convert

ROUNDS = 7
SECONDS_PER_ROUND = 0.3


def upstream(polymorphic: bool) -> Callable[..., Any]:
    """The same function by jax.experimental.jax2tf."""
    with warnings.catch_warnings(action="ignore"):
        from jax.experimental import jax2tf

        return jax2tf.convert(jnp.sin, polymorphic_shapes=["(n,)"] if polymorphic else None)


SUBJECTS = {
    "sin: bare op": lambda: bare_op(jnp.sin, jax.ShapeDtypeStruct((16,), np.float32)),
    "sin: jaxtf": lambda: convert(jnp.sin),
    "sin: jaxtf (polymorphic)": lambda: convert(jnp.sin, polymorphic_shapes=["(n,)"]),
    "sin: upstream": lambda: upstream(polymorphic=False),
    "sin: upstream (polymorphic)": lambda: upstream(polymorphic=True),
}


def main() -> None:
    """Prints one line per subject."""
    versions = f"JAX {jax.__version__}, TensorFlow {tf.__version__}"
    print(f"one eager call of sin on f32[16], CPU time and wall time, in turns; {versions}")
    x = tf.constant(np.linspace(0, 1, 16, dtype=np.float32))
    functions = {name: make() for name, make in SUBJECTS.items()}
    calls = {name: lambda f=f: f(x) for name, f in functions.items()}
    for name, found in seconds_in_turns(calls, ROUNDS, SECONDS_PER_ROUND).items():
        if not isinstance(found, Exception):
            np.testing.assert_allclose(functions[name](x), np.sin(x), rtol=1e-6)
        print(line(name, found, 30), flush=True)


if __name__ == "__main__":
    main()
