"""`jaxtf-artifact cost`: what calls cost, for several sizes. Needs JAX."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import asdict

from jaxtf.serialization._artifact.describe import describe_source
from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._cli.child import check_modules
from jaxtf.serialization._cli.files import CommandError, each_once, print_json, reading
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._record.cost import QUANTITIES, Cost, growth
from jaxtf.serialization._requires import require_jax

__all__ = ["print_costs"]


def print_costs(options: argparse.Namespace) -> int:
    """Prints a row for each combination of sizes, and how each quantity grows with each size."""
    given = each_once("--size", map(_sizes, options.size))
    with reading(options.file, "compiling") as source:
        require_jax("cost")
        weights = describe_source(source).weights
        artifact = bytes(parts_of(source).artifact)
        check_modules(artifact)  # MLIR reads them in this process only when it did in another
        exported = deserialize_bytes(artifact)
        exported.check_module()
        combinations = [dict(zip(given, sizes, strict=True)) for sizes in itertools.product(*given.values())]
        costs = [exported.cost(**sizes) for sizes in combinations]
    parameters = None if weights is None else {"count": weights.parameters, "bytes": weights.size}
    if options.json:
        print_json(
            {"file": options.file, "parameters": parameters, "costs": list(map(asdict, costs)), "growth": growth(costs)}
        )
        return 0
    if parameters is not None:
        print(f"parameters: {parameters['count']:,}, {parameters['bytes']:,} bytes")
    print(f"compiled for: {costs[0].platform}\n")
    _print_table(costs)
    return 0


def _sizes(text: str) -> tuple[str, list[int]]:
    name, equals, sizes = text.partition("=")
    parts = sizes.split(",")
    if not equals or not name or not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise CommandError(f"--size {text!r}: write NAME=SIZES, such as b=8 or b=8,64,512")
    return name, list(map(int, parts))


def _print_table(costs: Sequence[Cost]) -> None:
    names = list(costs[0].sizes)
    rows = [[*names, *(quantity.replace("_", " ") for quantity in QUANTITIES)]]
    rows += [[*(f"{size}" for size in cost.sizes.values()), *_shown(cost)] for cost in costs]
    for name, exponents in growth(costs).items():
        texts = ["-" if value is None else f"{name}^{value:g}" for value in exponents.values()]
        rows.append([*("grows" if other == name else "" for other in names), *texts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _shown(cost: Cost) -> list[str]:
    values = [getattr(cost, quantity) for quantity in QUANTITIES]
    return ["unknown" if value is None else f"{value:,}" for value in values]
