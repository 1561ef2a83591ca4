"""Without JAX, only the tests of what works without JAX are collected. JAX has eight virtual devices."""

import importlib.util
import os
import re
from pathlib import Path

HAS_JAX = importlib.util.find_spec("jax") is not None
NEEDS_JAX = re.compile(r"^(import|from) (jax|jaxlib)[. \n]", re.MULTILINE)
HERE = Path(__file__).parent
collect_ignore = [
    str(path.relative_to(HERE))
    for path in HERE.rglob("test_*.py")
    if not HAS_JAX and NEEDS_JAX.search(path.read_text())
]

# Read when the first program is compiled.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
