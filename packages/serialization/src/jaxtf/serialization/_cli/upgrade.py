"""`jaxtf-artifact upgrade`: an artifact written anew."""

from __future__ import annotations

import argparse

from jaxtf.serialization._artifact.describe import describe_bytes
from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._cli.check import check_records
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import CommandError, check_output, errors_about, reading, write
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._requires import require_jax

__all__ = ["upgrade_file"]


def upgrade_file(options: argparse.Namespace) -> int:
    """Writes an artifact anew: in the newest format, with a trailer, for another consumer if asked for."""
    check_output(options.output, options.force, options.file)
    with reading(options.file, "rewriting") as source:
        written = _upgraded(options, source)
    with errors_about(options.output):
        write(options.output, written)
    return 0


def _upgraded(options: argparse.Namespace, source: Source) -> bytearray:
    parts = parts_of(source)
    if parts.manifest is not None:
        raise CommandError(
            "this is a program with its weights; only a program alone is written anew\n"
            "  remedy: in Python, load it, change `exported`, and save that with its weights"
        )
    blob = bytes(parts.artifact)
    orders = describe_bytes(blob).vjp_orders
    check_records(blob)
    exported = deserialize_bytes(blob)
    for version, option, changed in (
        (options.stablehlo_version, "--stablehlo-version", exported.with_stablehlo_version),
        (options.tensorflow_version, "--tensorflow-version", exported.with_tensorflow_version),
    ):
        if version is not None:
            require_jax(f"upgrade {option}")
            check_modules(blob)  # MLIR reads them in this process only when it did in another
            exported = changed(version)
    return exported.serialize(vjp_order=orders, format_version=options.format_version)
