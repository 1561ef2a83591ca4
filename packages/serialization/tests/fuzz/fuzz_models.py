"""A fuzz session: mutated files of programs with weights, by `describe`, `check` and `load`; a table of what came out.

`python fuzz_models.py --mutations 100000 --seed 0` mutates files that `save` wrote and lets each target read each
mutant from a disk. Good outcomes are `read` and the refusals `ArtifactError` and `VersionError`, of `check` its exit
codes 0 and 1; every other exception is a fault, named with the seed and number that make it again. So is a mutant that
is read with other weights than those that were written, where nothing was sealed again: every byte is under a digest;
and one in which `check` finds nothing and that `load` refuses.

Needs JAX, to make the files. Exits with 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
from byte_mutations import flip_bit, garbage, splice, truncate

from jaxtf.serialization import ArtifactError, VersionError, describe, export, load, save
from jaxtf.serialization._cli.program import main as command

REFUSALS = (ArtifactError, VersionError)


def models(folder: Path) -> list[bytes]:
    """The files that are mutated."""
    nested = {"a": [np.ones((3, 3), np.float32), np.arange(4, dtype=np.int8)], "b": {"c": np.float32(2)}}
    half = (np.ones((5,), ml_dtypes.bfloat16), np.array([True, False]), np.array([1, -8], ml_dtypes.int4))
    x = np.ones((2, 3), np.float32)
    programs = [
        (export(lambda p, x: x @ p["a"][0] * p["b"]["c"])(nested, x), nested, 0),
        (export(lambda p, x, q: x + p[0].sum() + q.sum())(half, x, x), (half, x), (0, 2)),
    ]
    for number, (exported, params, argnums) in enumerate(programs):
        metadata = {"license": "Apache-2.0"}
        save(folder / str(number), exported, params, argnums=argnums, metadata=metadata, vjp_order=number)
    return [(folder / str(number)).read_bytes() for number in range(len(programs))]


# Mutations: each returns another file. Those of `byte_mutations` besides.


def flip_header(source: random.Random, blob: bytearray) -> bytearray:
    for _ in range(source.randrange(1, 6)):
        blob[source.randrange(min(len(blob), 3000))] ^= 1 << source.randrange(8)
    return blob


def set_length(source: random.Random, blob: bytearray) -> bytearray:
    values = (0, 1, 2**31, 2**63, 2**64 - 1, len(blob), len(blob) - 8, source.randrange(len(blob)))
    struct.pack_into("<Q", blob, 0, source.choice(values))
    return blob


VALUES = (None, True, 0, 1, -1, 2**31, 2**64, 1.5, "", "F32", "a", "float32", "object", [], [0], [[]], {}, {"a": 1})


def changed(source: random.Random, value: Any) -> Any:
    """The JSON value with something in it replaced, dropped, repeated or renamed."""
    if isinstance(value, dict) and value and source.random() < 0.9:
        key = source.choice(sorted(value))
        match source.randrange(6):
            case 0:
                return {other: item for other, item in value.items() if other != key}
            case 1:
                return {**value, source.choice(["", "x", "jaxtf.program", key + "x"]): value[key]}
            case _:
                return {**value, key: changed(source, value[key])}
    if isinstance(value, list) and value and source.random() < 0.9:
        place = source.randrange(len(value))
        match source.randrange(5):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return [*value, value[place]]
            case _:
                return [*value[:place], changed(source, value[place]), *value[place + 1 :]]
    if type(value) is int and source.random() < 0.7:
        return value + source.choice((-64, -4, -1, 1, 4, 64, 2**32, 2**63))
    return source.choice(VALUES)


def sealed(values: dict[str, Any], entries: dict[str, Any], data: bytes) -> bytearray:
    """A file of a manifest and the header's entries, under a digest that is right."""
    text = json.dumps(values)
    entries["__metadata__"] = {"jaxtf": text, "jaxtf.sha256": hashlib.sha256(text.encode()).hexdigest()}
    header = json.dumps(entries).encode()
    return bytearray(struct.pack("<Q", len(header)) + header + data)


def taken_apart(blob: bytearray) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    (length,) = struct.unpack_from("<Q", blob)
    entries = json.loads(blob[8 : 8 + length])
    return json.loads(entries.pop("__metadata__")["jaxtf"]), entries, bytes(blob[8 + length :])


def change_manifest(source: random.Random, blob: bytearray) -> bytearray:
    values, entries, data = taken_apart(blob)
    for _ in range(source.randrange(1, 4)):
        values = changed(source, values)
        values = values if isinstance(values, dict) else {}
    return sealed(values, entries, data)


def change_header(source: random.Random, blob: bytearray) -> bytearray:
    values, entries, data = taken_apart(blob)
    changes = changed(source, entries)
    return sealed(values, changes if isinstance(changes, dict) else {}, data)


def change_both(source: random.Random, blob: bytearray) -> bytearray:
    """One array with another dtype, shape or place, in the manifest and in the header alike."""
    values, entries, data = taken_apart(blob)
    name = source.choice(sorted(values["arrays"]))
    stored, entry = values["arrays"][name], entries[name]
    dtype = source.choice([("float32", "F32"), ("int8", "I8"), ("int4", "U8"), ("object", "U8"), ("float0", "U8")])
    stored["dtype"], entry["dtype"] = dtype
    shape = source.choice([entry["shape"], [], [0], [4, -1], [2**40, 2**40], [1] * 40, [entry["data_offsets"][1]]])
    stored["shape"] = entry["shape"] = shape
    stored["stored"] = [entry["dtype"], shape]
    return sealed(values, entries, data)


def change_program(source: random.Random, blob: bytearray) -> bytearray:
    """The program changed, under a digest of the file that is right."""
    values, entries, data = taken_apart(blob)
    program = values["program"]
    content = bytearray(data)
    for _ in range(source.randrange(1, 8)):
        content[source.randrange(program["start"], program["end"])] ^= 1 << source.randrange(8)
    program["sha256"] = hashlib.sha256(content[program["start"] : program["end"]]).hexdigest()
    return sealed(values, entries, bytes(content))


UNSEALED = (truncate, flip_bit, flip_header, set_length, splice, garbage)
MUTATIONS = (*UNSEALED, change_manifest, change_header, change_both, change_program)


def check(file: str) -> bool:
    """Whether the command found nothing."""
    with contextlib.redirect_stdout(io.StringIO()):
        code = command(["check", "--no-parse", file])
    assert code in (0, 1), code
    return code == 0


TARGETS: dict[str, Callable[[str], object]] = {"describe": describe, "check": check, "load": load}


def mutant(seed: int, number: int, seeds: list[bytes]) -> tuple[str, int, bytes]:
    """The mutation of a number, which file it is of, and its result."""
    source = random.Random(f"{seed}:{number}")
    mutation = MUTATIONS[number % len(MUTATIONS)]
    which = source.randrange(len(seeds))
    return mutation.__name__, which, bytes(mutation(source, bytearray(seeds[which])))


def main(arguments: list[str] | None = None) -> int:
    """Runs a session; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    outcomes: Counter[tuple[str, str, str]] = Counter()
    faults: list[str] = []
    slowest, sound = (0.0, ""), False
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        seeds = models(Path(folder))
        written = [jax.tree.leaves(load(blob).params) for blob in seeds]
        file = os.path.join(folder, "mutant")
        for number in range(options.mutations):
            name, which, blob = mutant(options.seed, number, seeds)
            with open(file, "wb") as opened:
                opened.write(blob)
            for target, run in TARGETS.items():
                start = time.perf_counter()
                try:
                    result = run(file)
                    outcome = "found something" if result is False else "read"
                    sound = result is True
                    if target == "load" and name in {mutation.__name__ for mutation in UNSEALED}:
                        leaves = jax.tree.leaves(result.params)  # type: ignore[attr-defined]
                        if [leaf.tobytes() for leaf in leaves] != [leaf.tobytes() for leaf in written[which]]:
                            raise AssertionError("other weights, under digests that are right")
                except REFUSALS as error:
                    outcome = type(error).__name__
                    if target == "load" and sound:
                        faults.append(f"mutation {number} ({name}): check finds nothing, load {error!r}")
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    outcome = f"FAULT {type(error).__name__}"
                    faults.append(f"{target}, mutation {number} ({name}): {error!r}")
                seconds = time.perf_counter() - start
                slowest = max(slowest, (seconds, f"{target}, mutation {number} ({name}) of {len(blob)} bytes"))
                outcomes[name, target, outcome] += 1
    found = sorted({outcome for _, _, outcome in outcomes})
    print(f"{'mutation':18}{'target':12}" + "".join(f"{outcome:>18}" for outcome in found))
    for mutation in MUTATIONS:
        for target in TARGETS:
            counts = "".join(f"{outcomes[mutation.__name__, target, outcome]:18}" for outcome in found)
            print(f"{mutation.__name__:18}{target:12}{counts}")
    print(f"\nslowest: {slowest[0] * 1e3:.1f} ms, {slowest[1]}")
    print(f"faults: {len(faults)}", *faults[:20], sep="\n  ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
