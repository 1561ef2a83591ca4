"""The corpus of artifacts that old JAX releases wrote: what is recorded of each, and running it today.

`recorded(release)` gives the entries of a release, `Entry.run` calls an artifact as a user would:
`deserialize(blob).call(*args, **kwargs)`, and each order of VJP likewise. `artifacts/generate.py`
says how the files were made.

`python packages/serialization/tests/corpus.py` runs all of it and writes docs/corpus.md.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["RELEASES", "Entry", "Newer", "differences", "programs", "recorded"]

FOLDER = Path(__file__).resolve().parent / "artifacts"

# A few units in the last place, of the largest number of a result: what separates two orders of
# the same sums, or two approximations of an elementary function. The matrices of the corpus have
# condition numbers below 100, so that backward stable routines lose no more than this.
ULPS = 64


def _module(name: str) -> ModuleType:
    """A module of the artifacts' folder."""
    specification = importlib.util.spec_from_file_location(f"corpus_{name}", FOLDER / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


generate = _module("generate")
RELEASES = tuple(_module("releases").RELEASES)


class Newer(Exception):
    """An artifact whose StableHLO version is newer than what the installed jaxlib reads."""


@dataclass(frozen=True, eq=False)
class Entry:
    """What a release recorded of one program.

    Attributes:
      release: The JAX release that wrote it.
      program: Its name in `artifacts/programs.py`.
      facts: Its entry in the manifest.
    """

    release: str
    program: str
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.release}-{self.program}"

    @property
    def written(self) -> bool:
        """Whether the release could export the program."""
        return "refused" not in self.facts

    @property
    def runs(self) -> bool:
        """Whether there are numbers to compare with: a CPU runs it, and that release ran it."""
        return self.written and bool(self.facts["orders"])

    @property
    def blob(self) -> bytes:
        """The artifact."""
        return (FOLDER / self.release / f"{self.program}.bin").read_bytes()

    def values(self) -> list[dict[str, list[tuple[str, np.ndarray]]]]:
        """Of each order, the leaves of arguments (`in`) and results (`out`) as (dtype, numbers)."""
        return list(generate.read_values(self.facts, _values(self.release)[self.program]))

    def run(self, read: Callable[[bytes], Any] | None = None) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Calls the function and its VJPs; gives computed and recorded leaves of each.

        Args:
          read: Another reader than ours.

        Raises:
          Newer: The installed jaxlib cannot read it, as its StableHLO is newer.
        """
        import jax

        from jaxtf.serialization import deserialize

        prepare_process()
        ours = deserialize(self.blob)
        exported = read(self.blob) if read else ours
        for order, sides in enumerate(self.values()):
            ours, exported = (ours.vjp(), exported.vjp()) if order else (ours, exported)
            with jax.enable_x64(self.facts["x64"]):
                leaves = [_argument(dtype, array) for dtype, array in sides["in"]]
                if exported.nr_devices > 1:
                    leaves = _placed(ours, leaves)
                args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
                call = jax.jit(exported.call) if exported.nr_devices > 1 else exported.call
                try:
                    results = [_numbers(leaf) for leaf in jax.tree.leaves(call(*args, **kwargs))]
                except Exception as error:
                    if _is_newer(exported):
                        raise Newer(exported.stablehlo_version) from error
                    raise
            numbers = [array for _, array in sides["out"]]
            yield _with_phases_of(numbers, results) if self.program.startswith("schur") else results, numbers


def differences(computed: Sequence[np.ndarray], expected: Sequence[np.ndarray], *, exact: bool) -> list[str]:
    """What differs between computed and recorded leaves, in words; empty if nothing does."""
    found = []
    if len(computed) != len(expected):
        return [f"{len(computed)} results instead of {len(expected)}"]
    for index, (ours, theirs) in enumerate(zip(computed, expected, strict=True)):
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            found.append(f"result {index}: {ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}")
        elif ours.tobytes() != theirs.tobytes() and (exact or not _close(ours, theirs)):
            found.append(f"result {index}:\n{ours}\ninstead of\n{theirs}")
    return found


def _with_phases_of(expected: Sequence[np.ndarray], computed: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Schur decompositions, each as form, vectors and once more the form, with the phases that were recorded.

    A decomposition is unique but for a factor of modulus 1 for each vector, which LAPACK's kernels for one processor
    choose otherwise than those for another: with vectors Z D and form D* T D, D diagonal, it is that of Z and T.
    """
    found: list[np.ndarray] = []
    for start in range(0, len(expected), 3):
        ours, theirs = computed[start : start + 3], expected[start : start + 3]
        if all(one.tobytes() == other.tobytes() for one, other in zip(ours, theirs, strict=True)):
            found += ours
            continue
        products = np.sum(theirs[1].conj() * ours[1], axis=-2)
        factors = products / np.abs(products)
        left, right = factors[..., :, None], factors.conj()[..., None, :]
        found += [left * ours[0] * right, ours[1] * right, left * ours[2] * right]
    return found


def _close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if theirs.dtype.kind not in "fc":
        return False
    bound = ULPS * np.finfo(theirs.dtype).eps * max(1.0, float(np.nanmax(np.abs(theirs))))
    return bool(np.allclose(ours, theirs, rtol=0, atol=bound, equal_nan=True))


@functools.cache
def recorded(release: str) -> tuple[Entry, ...]:
    """The entries of a release, those that it could not export among them."""
    manifest = json.loads((FOLDER / release / "manifest.json").read_text())
    return tuple(Entry(release, name, facts) for name, facts in manifest["programs"].items())


@functools.cache
def _values(release: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / release / "values.npz") as stored:
        return dict(stored)


@functools.cache
def programs() -> ModuleType:
    """The module of the programs; needs JAX."""
    return _module("programs")


@functools.cache
def prepare_process() -> None:
    """Registers what the corpus has of its own: effects, a named tuple, a pytree node."""
    from jaxtf.serialization import register_namedtuple_serialization, register_pytree_node_serialization

    made = programs()
    made.effect_types()
    register_namedtuple_serialization(made.Point, serialized_name="corpus.Point")
    register_pytree_node_serialization(
        made.Ball,
        serialized_name="corpus.Ball",
        serialize_auxdata=lambda name: name.encode(),
        deserialize_auxdata=lambda data: bytes(data).decode(),
    )


def _is_newer(exported: Any) -> bool:
    from jaxtf.serialization._program.portable_artifact import current_stablehlo_version
    from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

    newest = parse_stablehlo_version(current_stablehlo_version())
    return parse_stablehlo_version(exported.stablehlo_version) > newest


def _argument(dtype: str, array: np.ndarray) -> Any:
    """A recorded leaf as it is given to `call`."""
    import jax

    if dtype.startswith("key<"):
        names = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}
        return jax.random.wrap_key_data(array, impl=names[dtype[4:-1]])
    return np.zeros(array.shape, jax.dtypes.float0) if dtype == "float0" else array


def _numbers(leaf: Any) -> np.ndarray:
    """A result as it was recorded."""
    import jax

    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
        return np.asarray(jax.random.key_data(leaf))
    return np.zeros(leaf.shape, np.bool_) if leaf.dtype == jax.dtypes.float0 else np.asarray(leaf)


def _placed(exported: Any, leaves: Sequence[Any]) -> list[Any]:
    """Arguments on the devices where the record wants them; whole on each where it does not say."""
    import jax

    devices = np.array(jax.devices()[: exported.nr_devices])
    whole = jax.sharding.NamedSharding(jax.sharding.Mesh(devices, ("d",)), jax.sharding.PartitionSpec())
    placed = []
    for leaf, sharding in zip(leaves, exported.in_shardings, strict=True):
        if sharding is None:
            placed.append(jax.device_put(leaf, whole))
            continue
        mesh = jax.sharding.Mesh(devices.reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names)
        spec = jax.sharding.PartitionSpec(*(names or None for names in sharding.partitions))
        placed.append(jax.device_put(leaf, jax.sharding.NamedSharding(mesh, spec)))
    return placed


# --- the page ---

PAGE = FOLDER.parents[3] / "docs" / "corpus.md"

_HEAD = """# Artifacts of old JAX releases

What JAX releases wrote with `jax.export`, frozen in `packages/serialization/tests/artifacts`, and what
`jaxtf.serialization` makes of it with JAX {jax} on a CPU. Each artifact is loaded, called with recorded
arguments, and its results are compared with what that release computed itself; those of its VJPs too, where it has any.

- **=** runs, and every number is the recorded one, bit for bit;
- **~** runs, and the numbers agree within {ulps} units in the last place of the largest; XLA and LAPACK promise
  no more;
- **L** loads; a CPU cannot run it (it is for another platform, or calls a target of its own), or that release could
  not;
- **-** that release could not export it; the reason is in its `manifest.json`;
- **F** fails today.

The last row counts, of those that run, those that `jax.export` of this JAX reads and runs with the recorded numbers.

Made by `python packages/serialization/tests/corpus.py`; `python3 run.py artifacts` makes the artifacts again, in
environments with these releases, and compares.
"""


def outcome(entry: Entry) -> str:
    """The sign of an entry in the table."""
    if not entry.written:
        return "-"
    from jaxtf.serialization import deserialize

    deserialize(entry.blob)
    if not entry.runs:
        return "L"
    try:
        pairs = list(entry.run())
    except Exception as error:
        print(f"{entry}: {error}", file=sys.stderr, flush=True)
        return "F"
    if not any(differences(*pair, exact=True) for pair in pairs):
        return "="
    wrong = [text for pair in pairs for text in differences(*pair, exact=not entry.facts["inexact"])]
    assert not wrong, f"{entry}: {wrong}"
    return "~"


def runs_with_jax_export(entry: Entry) -> bool:
    """Whether `jax.export` reads it, and computes what was recorded."""
    from jax import export

    try:
        pairs = list(entry.run(lambda blob: export.deserialize(bytearray(blob))))
    except Exception as error:
        print(f"{entry}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)
        return False
    return not any(differences(*pair, exact=not entry.facts["inexact"]) for pair in pairs)


def register_with_jax_export() -> None:
    """Registers there what `prepare_process` registers here."""
    from jax import export

    made = programs()
    made.register_linalg_results()
    export.register_namedtuple_serialization(made.Point, serialized_name="corpus.Point")
    export.register_pytree_node_serialization(
        made.Ball,
        serialized_name="corpus.Ball",
        serialize_auxdata=lambda name: name.encode(),
        deserialize_auxdata=lambda data: bytes(data).decode(),
    )


def page() -> str:
    """The text of docs/corpus.md."""
    import jax

    register_with_jax_export()

    lines = [_HEAD.format(jax=jax.__version__, ulps=ULPS)]
    lines.append(f"| program | {' | '.join(RELEASES)} |")
    lines.append(f"| --- |{' --- |' * len(RELEASES)}")
    entries = {(e.release, e.program): e for release in RELEASES for e in recorded(release)}
    names = dict.fromkeys(program for _, program in entries)
    counts = {release: dict.fromkeys("=~L-F", 0) for release in RELEASES}
    by_jax = dict.fromkeys(RELEASES, 0)
    for name in names:
        signs = [outcome(entries[release, name]) for release in RELEASES]
        for release, sign in zip(RELEASES, signs, strict=True):
            counts[release][sign] += 1
            by_jax[release] += sign in "=~" and runs_with_jax_export(entries[release, name])
        lines.append(f"| `{name}` | {' | '.join(signs)} |")
        print(lines[-1], flush=True)
    for sign, words in (
        ("=", "equal"),
        ("~", "within tolerance"),
        ("L", "loads only"),
        ("-", "not exported"),
        ("F", "fails"),
    ):
        lines.append(f"| **{words}** | {' | '.join(str(counts[release][sign]) for release in RELEASES)} |")
    lines.append(f"| **runs with `jax.export`** | {' | '.join(str(by_jax[release]) for release in RELEASES)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    PAGE.write_text(page())
