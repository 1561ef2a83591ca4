"""Which files are collected, and how many examples hypothesis tries.

The tests under `with_jax` are collected where JAX is installed. `HYPOTHESIS_PROFILE=sweep` tries many
more examples than a routine run does: `SWEEP_EXAMPLES` for each property.
"""

import os
from importlib.util import find_spec

from hypothesis import HealthCheck, settings

collect_ignore = [] if find_spec("jax") else ["with_jax"]

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile(
    "sweep",
    max_examples=int(os.environ.get("SWEEP_EXAMPLES", "25000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
