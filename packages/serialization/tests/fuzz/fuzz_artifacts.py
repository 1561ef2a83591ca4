"""A fuzz session: mutated artifacts, read by each target; a table of what came out.

`python fuzz_artifacts.py --mutations 100000 --seed 0` mutates artifacts of the frozen corpus, of
ours and of `jax.export`, and lets each target of `TARGETS` read each mutant. Good outcomes are
`read` (the mutation left an artifact) and the refusals of `REFUSALS`; every other exception is a
fault: its mutation is named, so that `mutant(seed, number)` makes it again. Of a sample, the peak
of memory that reading allocates is measured against the size of the mutant.

More than `MEMORY_RATIO` times and `MEMORY_FLOOR` is a fault too. Exits with 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from byte_mutations import flip_bit, garbage, splice, truncate

from jaxtf.serialization import ArtifactError, VersionError, describe
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import append_trailer, split_trailer
from jaxtf.serialization._artifact.writer import write_payload

REFUSALS = (ArtifactError, VersionError)
MEMORY_FLOOR = 2**20
MEMORY_RATIO = 10

CORPUS = Path(__file__).parent.parent / "artifacts"
PROGRAMS = (
    *("0.12.0.1/vjp_symbolic", "0.12.0.1/sharded_4_shardy", "0.12.0.1/many_arguments", "0.12.0.1/structures"),
    *("0.9.0/sharded_partly", "0.9.0/named_tuple", "0.6.2/dtypes", "0.4.30/cholesky", "0.4.30/vjp_2"),
)


def read(blob: bytes) -> None:
    """Takes the trailer off and reads the tables."""
    read_payload(split_trailer(blob).payload)


def deserialize(blob: bytes) -> None:
    """Makes the model, with every order of the VJP."""
    from jaxtf.serialization._artifact.deserialize import deserialize

    exported = deserialize(blob)
    while exported.has_vjp():
        exported = exported.vjp()


TARGETS: dict[str, Callable[[bytes], object]] = {"read": read, "describe": describe, "deserialize": deserialize}


def artifacts() -> list[bytes]:
    """The artifacts that are mutated: of JAX as they are, and the same with our trailer."""
    theirs = [(CORPUS / f"{program}.bin").read_bytes() for program in PROGRAMS]
    return [*theirs, *map(with_trailer, theirs)]


def with_trailer(blob: bytes) -> bytes:
    """The same tables, as we write them, with notes."""
    payload = write_payload(read_payload(blob))
    append_trailer(payload, NOTES)
    return bytes(payload)


NOTES = {"constraints": [], "producer": {"jaxtf-serialization": "0.1.0"}, "functions": []}


# Mutations: each returns another artifact. Those of `byte_mutations` besides.


def flip_early_bits(source: random.Random, blob: bytearray) -> bytearray:
    """In the tables, which are before the module in artifacts of ours and around it in those of JAX."""
    for _ in range(source.randrange(1, 8)):
        blob[source.randrange(min(len(blob), 1500))] ^= 1 << source.randrange(8)
    return blob


def set_number(source: random.Random, blob: bytearray) -> bytearray:
    """An offset or a length somewhere else."""
    values = (0, 1, 4, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, len(blob), source.randrange(len(blob)))
    if len(blob) >= 4:
        struct.pack_into("<I", blob, 4 * source.randrange(len(blob) // 4), source.choice(values))
    return blob


def shift_number(source: random.Random, blob: bytearray) -> bytearray:
    """An offset or a length a little off."""
    place = 4 * source.randrange(len(blob) // 4)
    value = struct.unpack_from("<I", blob, place)[0] + source.choice((-16, -8, -4, -1, 1, 4, 8, 16))
    struct.pack_into("<I", blob, place, value % 2**32)
    return blob


def delete(source: random.Random, blob: bytearray) -> bytearray:
    start = source.randrange(len(blob))
    del blob[start : start + source.randrange(1, 32)]
    return blob


def resealed(source: random.Random, blob: bytearray) -> bytearray:
    """Mutated notes and tables under a digest that is right."""
    notes = source.choice((NOTES, {}, {"functions": 1}, {"functions": [[], 7]}, {"constraints": [["n"], 3, "n >="]}))
    mutated = flip_early_bits(source, blob)
    append_trailer(mutated, notes)
    return mutated


MUTATIONS = (*(truncate, flip_bit, flip_early_bits, set_number, shift_number, splice, delete, garbage, resealed),)


def mutant(seed: int, number: int, seeds: list[bytes]) -> tuple[str, bytes]:
    """The mutation of a number, and its result."""
    source = random.Random(f"{seed}:{number}")
    mutation = MUTATIONS[number % len(MUTATIONS)]
    return mutation.__name__, bytes(mutation(source, bytearray(source.choice(seeds))))


def main(arguments: list[str] | None = None) -> int:
    """Runs a session; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=["read", "describe"])
    parser.add_argument("--sample", type=int, default=50, help="measure the memory of one mutant in so many")
    options = parser.parse_args(arguments)
    seeds = artifacts()
    for target in options.targets:
        TARGETS[target](seeds[0])  # what is imported and cached once is not counted
    outcomes: Counter[tuple[str, str, str]] = Counter()
    faults: list[str] = []
    slowest = (0.0, "")
    highest = (0.0, "")
    for number in range(options.mutations):
        name, blob = mutant(options.seed, number, seeds)
        measured = number % (options.sample * len(MUTATIONS)) < len(MUTATIONS)
        for target in options.targets:
            if measured:
                tracemalloc.start()
            start = time.perf_counter()
            try:
                TARGETS[target](blob)
                outcome = "read"
            except REFUSALS as error:
                outcome = type(error).__name__
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                outcome = f"FAULT {type(error).__name__}"
                faults.append(f"{target}, mutation {number} ({name}): {error!r}")
            seconds = time.perf_counter() - start
            where = f"{target}, mutation {number} ({name}) of {len(blob)} bytes"
            if measured:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                if len(blob) >= 4096:  # below, what is there in any case hides the rest
                    highest = max(highest, (peak / max(len(blob), 1), f"{peak:,} bytes, {where}"))
                if peak > MEMORY_RATIO * len(blob) + MEMORY_FLOOR:
                    faults.append(f"{peak:,} bytes of memory: {where}")
            else:
                slowest = max(slowest, (seconds, where))
            outcomes[name, target, outcome] += 1
        if sys.stderr.isatty() and number % 1000 == 0:
            print(f"\r{number}", end="", file=sys.stderr)
    _report(outcomes, options.targets)
    print(f"\nslowest: {slowest[0] * 1e3:.1f} ms, {slowest[1]}")
    print(f"most memory for its size: {highest[0]:.2f} times, {highest[1]}")
    print(f"faults: {len(faults)}", *faults[:20], sep="\n  ")
    return 1 if faults else 0


def _report(outcomes: Counter[tuple[str, str, str]], targets: list[str]) -> None:
    found = sorted({outcome for _, _, outcome in outcomes})
    print(f"{'mutation':16}{'target':14}" + "".join(f"{outcome:>18}" for outcome in found))
    for mutation in MUTATIONS:
        for target in targets:
            counts = "".join(f"{outcomes[mutation.__name__, target, outcome]:18}" for outcome in found)
            print(f"{mutation.__name__:16}{target:14}{counts}")


if __name__ == "__main__":
    sys.exit(main())
