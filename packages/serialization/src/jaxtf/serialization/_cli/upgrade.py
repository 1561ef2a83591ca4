"""`jaxtf-artifact upgrade`: an artifact rewritten."""

from __future__ import annotations

import argparse
from dataclasses import replace

from jaxtf.serialization._artifact.describe import describe_bytes
from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._cli.check import check_records
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import check_output, errors_about, reading, write
from jaxtf.serialization._cli.save import check_place, write_with_weights
from jaxtf.serialization._container.manifest import Manifest
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._requires import require_jax
from jaxtf.serialization._weights.model import model_of
from jaxtf.serialization._weights.write import Leaf

__all__ = ["upgrade_file"]


def upgrade_file(options: argparse.Namespace) -> int:
    """Rewrites an artifact: in the newest format, with a trailer, for another consumer; weights are copied."""
    check_output(options.output, options.force, options.file)
    with reading(options.file, "rewriting") as source:
        parts = parts_of(source)
        written = _upgraded(options, bytes(parts.artifact))
        leaves = [] if parts.manifest is None else _leaves(source, parts.manifest, options.output)
    if parts.manifest is not None:
        manifest = parts.manifest
        write_with_weights(
            options.output, written, leaves, manifest.arguments, manifest.metadata, is_tuple=manifest.is_tuple
        )
        return 0
    with errors_about(options.output):
        write(options.output, written)
    return 0


def _leaves(source: Source, manifest: Manifest, output: str) -> list[Leaf]:
    """The weights of a file, in its memory, by the names that they have there."""
    check_place(output)
    return [replace(leaf, name=name) for leaf, name in zip(model_of(source).leaves, manifest.leaves, strict=True)]


def _upgraded(options: argparse.Namespace, blob: bytes) -> bytearray:
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
