"""Quiet TensorFlow before it is imported, and eight virtual devices for JAX."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Read when the first program is compiled.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
