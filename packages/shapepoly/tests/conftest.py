"""Which files are collected: the tests under `with_jax` where JAX is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("jax") else ["with_jax"]
