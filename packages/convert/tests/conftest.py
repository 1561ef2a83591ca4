"""Quiet TensorFlow before it is imported, eight virtual devices for JAX, and what changes a process comes last."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Read when the first program is compiled.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()


def pytest_collection_modifyitems(items):
    """Tests that import jax2tf run after all others: it makes pytrees of TensorFlow's containers in the process."""
    items.sort(key=lambda item: "_as_jax2tf" in item.path.parts)
