"""Without JAX, only the tests of what works without JAX are collected."""

import importlib.util

HAS_JAX = importlib.util.find_spec("jax") is not None
collect_ignore = [] if HAS_JAX else ["test_call.py", "test_export.py", "test_main.py", "test_vjp.py"]
