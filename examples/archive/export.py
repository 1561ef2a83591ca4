"""Writes a function, its record and examples of its answers: `python export.py FOLDER`.

The function is a Gaussian process with a squared-exponential kernel (Rasmussen and Williams 2006, algorithm 2.1): the
mean at queries, and how likely the noisy observations are. It has a Cholesky decomposition and triangular solves, whose
names inside JAX have changed before: what an archive must survive. Their derivative asks whether there are more
observations than columns in `y`, hence the constraint.
"""

import hashlib
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxtf.serialization import describe, export
from jaxtf.shapepoly import SymbolicScope, symbolic_shape

SIZES = ((2, 1), (3, 5), (10, 3), (60, 100))  # observations, queries


def posterior(x: jax.Array, y: jax.Array, queries: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean at each query, given values y with noise of variance 0.1 observed at x; the log likelihood of y."""
    factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(x.shape[0]))
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    likelihood = -y @ weights / 2 - jnp.sum(jnp.log(jnp.diag(factor))) - x.shape[0] * jnp.log(2 * jnp.pi) / 2
    return kernel(queries, x) @ weights, likelihood


def kernel(a: jax.Array, b: jax.Array) -> jax.Array:
    """exp(-|a - b|^2 / 2) of every pair of rows."""
    return jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, axis=-1) / 2)


def examples() -> dict[str, np.ndarray]:
    """Inputs at each size, with today's answers and the gradient of the likelihood with respect to x."""
    random, found = np.random.default_rng(0), {}
    for case, (n, q) in enumerate(SIZES):
        x, queries = random.uniform(0, 5, (n, 2)).astype(np.float32), random.uniform(0, 5, (q, 2)).astype(np.float32)
        y = np.sin(x.sum(axis=1))
        mean, likelihood = jax.jit(posterior)(x, y, queries)
        gradient = jax.jit(jax.grad(lambda *arguments: posterior(*arguments)[1]))(x, y, queries)
        arrays = {"x": x, "y": y, "queries": queries, "mean": mean, "likelihood": likelihood, "gradient": gradient}
        found |= {f"{case}/{name}": np.asarray(array) for name, array in arrays.items()}
    return found


def record(artifact: bytes) -> dict:
    """What somebody who finds the file needs to know."""
    described = describe(artifact).to_json()
    made_with = {package: version(package) for package in ("jaxtf-serialization", "jaxtf-shapepoly", "jax", "numpy")}
    return {
        "what": posterior.__doc__,
        "written": time.strftime("%Y-%m-%d", time.gmtime()),
        "made with": made_with | {"python": sys.version.partition(" ")[0]},
        "sha256 of model.jaxtf": hashlib.sha256(artifact).hexdigest(),
        "how to run it": 'jaxtf.serialization.deserialize(open("model.jaxtf", "rb").read()).call(x, y, queries)',
        "if nothing reads it": "after the first function's tables, the module is StableHLO, a portable artifact in "
        "MLIR bytecode (openxla.org/stablehlo); the format is described in docs/artifact_format.md of jaxtf",
        "description": described,
    }


def main(out: Path) -> None:
    """Writes `model.jaxtf`, `record.json` and `examples.npz`."""
    out.mkdir(parents=True, exist_ok=True)
    n, q = symbolic_shape("n, q", scope=SymbolicScope(["n >= 2"]))
    specs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((n, 2), (n,), (q, 2))]
    exported = export(posterior, platforms=("cpu", "tpu"), expand_linear_algebra=True)(*specs)
    artifact = bytes(exported.serialize(vjp_order=1))
    (out / "model.jaxtf").write_bytes(artifact)
    (out / "record.json").write_text(json.dumps(record(artifact), indent=2))
    np.savez(out / "examples.npz", **examples())
    print(f"wrote {exported} with JAX {jax.__version__}: {len(artifact):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
