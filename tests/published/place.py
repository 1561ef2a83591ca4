"""Whether a program runs with jaxtf in the place of jax2tf: its first word says, `jaxtf` or `upstream`."""

import sys

from jaxtf.convert import install_as_jax2tf


def in_place() -> None:
    """Installs jaxtf, unless upstream is asked for."""
    kind = sys.argv[1]
    if kind == "jaxtf":
        install_as_jax2tf()
    elif kind != "upstream":
        raise SystemExit(f"jaxtf or upstream, not {kind!r}")
