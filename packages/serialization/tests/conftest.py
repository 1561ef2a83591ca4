"""Without JAX, only the tests of what works without JAX are collected. JAX has eight virtual devices."""

import importlib.util
import os

HAS_JAX = importlib.util.find_spec("jax") is not None
NEED_JAX = (
    "agreement artifact call call_effects dtypes export forward_mode linear_algebra main pickle reducers shardings "
    "tree vjp vmap"
)
collect_ignore = [] if HAS_JAX else [f"test_{name}.py" for name in NEED_JAX.split()]

# Read when the first program is compiled.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
