"""`jaxtf-artifact upgrade`: an artifact written anew."""

from __future__ import annotations

import argparse

from jaxtf.serialization._artifact.describe import describe
from jaxtf.serialization._artifact.deserialize import deserialize
from jaxtf.serialization._cli.check import check_records
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import about, progress, read, write
from jaxtf.serialization._requires import require_jax

__all__ = ["upgrade_file"]


def upgrade_file(options: argparse.Namespace) -> int:
    """Writes an artifact anew: in the newest format, with a trailer, for another consumer if asked for."""
    blob = read(options.file)
    progress(blob, "rewriting")
    try:
        orders = describe(blob).vjp_orders
        check_records(blob)
        exported = deserialize(blob)
        if options.stablehlo_version is not None:
            require_jax("upgrade --stablehlo-version")
            check_modules(blob)  # MLIR reads them in this process only when it did in another
            exported = exported.with_stablehlo_version(options.stablehlo_version)
        if options.tensorflow_version is not None:
            require_jax("upgrade --tensorflow-version")
            check_modules(blob)  # likewise
            exported = exported.with_tensorflow_version(options.tensorflow_version)
        written = exported.serialize(vjp_order=orders, format_version=options.format_version)
    except ValueError as error:
        raise about(options.file, error) from error
    write(options.output, written)
    return 0
