"""The Ray cluster that a program runs on: its own, on this machine, or one that `--address` names."""

import argparse
import importlib.util
import os
from pathlib import Path

# Ray reads these when it is imported. A cluster for one program on one machine needs no tokens.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# How long Ray's own processes may take to start: 30 seconds by default, too short for a busy machine.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")
os.environ.setdefault("RAY_agent_register_timeout_ms", "180000")

import ray
from models import KINDS, ONE_THREAD

HERE = Path(__file__).resolve().parent


def arguments(description: str) -> argparse.Namespace:
    """`kind`, `folder` and `address` of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", type=Path, help="with model/ or model.jaxtf, and expected.npz")
    parser.add_argument(
        "--address", help="of a running cluster, HOST:PORT or ray://HOST:PORT; by default one is started"
    )
    return parser.parse_args()


def join(address: str | None) -> None:
    """Joins the cluster at the address, or starts one here with enough CPUs for two workers and Ray's own tasks."""
    environment = {"env_vars": ONE_THREAD}
    quiet = {"logging_level": "error", "log_to_driver": False}
    if address:
        ray.init(address, runtime_env=environment | {"working_dir": str(HERE)}, **quiet)
    else:
        ray.init("local", num_cpus=4, include_dashboard=False, runtime_env=environment, **quiet)
    jax = "here" if importlib.util.find_spec("jax") else "not installed here"
    print(f"Ray {ray.__version__}, {address or 'a local cluster'}; JAX is {jax}", flush=True)
