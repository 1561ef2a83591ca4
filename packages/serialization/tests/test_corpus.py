"""Every artifact that JAX releases since 0.4.30 wrote loads; all that a CPU can run give the recorded numbers.

The corpus and how it is compared are in `corpus.py`. All artifacts are read; of each program the one of
the oldest and the one of the newest release that has it are run, with `JAXTF_FULL=1` all of them.
"""

import os

import pytest

from jaxtf.serialization import deserialize
from jaxtf.serialization._errors import PlatformError

from .corpus import FOLDER, RELEASES, Newer, differences, generate, recorded

jax = pytest.importorskip("jax")

ENTRIES = [entry for release in RELEASES for entry in recorded(release)]
WRITTEN = [entry for entry in ENTRIES if entry.written]
RUNNABLE = [entry for entry in WRITTEN if entry.runs]
OLDEST = {entry.program: entry for entry in reversed(RUNNABLE)}
NEWEST = {entry.program: entry for entry in RUNNABLE}
RUN = RUNNABLE if "JAXTF_FULL" in os.environ else list(dict.fromkeys([*OLDEST.values(), *NEWEST.values()]))

# Which JAX could read an artifact is decided by these numbers, and they are not a guide: see `_artifact/schema.py`.
STORED_NUMBERS = {
    "0.4.30": 2,
    "0.4.38": 2,
    "0.5.3": 2,
    "0.6.2": 2,
    "0.8.1": 2,
    "0.8.2": 3,
    "0.9.0": 3,
    "0.10.2": 3,
    "0.12.0.1": 12,
}


def test_the_files_are_those_of_the_manifests():
    for release in RELEASES:
        files = {path.stem for path in (FOLDER / release).glob("*.bin")}
        assert files == {entry.program for entry in recorded(release) if entry.written}


def test_every_artifact_loads_with_what_its_release_recorded():
    for entry in WRITTEN:
        exported = deserialize(entry.blob)
        facts = entry.facts
        assert exported.platforms == tuple(facts["platforms"]), str(entry)
        assert exported.nr_devices == facts["devices"], str(entry)
        assert exported.calling_convention_version == facts["calling_convention"], str(entry)
        for _ in range(facts["vjp_order"]):
            exported = exported.vjp()
        assert not exported.has_vjp(), str(entry)


def test_each_release_stored_the_number_that_it_did():
    for entry in WRITTEN:
        assert generate.stored_number(entry.blob) == entry.facts["stored_number"] == STORED_NUMBERS[entry.release]


@pytest.mark.parametrize("entry", RUN, ids=str)
def test_an_artifact_gives_the_numbers_of_its_release(entry):
    if entry.facts["devices"] > len(jax.devices()):
        pytest.skip("needs XLA_FLAGS=--xla_force_host_platform_device_count=4")
    try:
        for order, (computed, expected) in enumerate(entry.run()):
            found = differences(computed, expected, exact=not entry.facts["inexact"])
            assert not found, f"order {order}: {found}"
    except Newer:
        pytest.skip("its StableHLO is newer than the installed jaxlib")


def test_an_artifact_for_another_platform_is_refused_by_name():
    [entry] = [e for e in WRITTEN if (e.release, e.program) == ("0.4.30", "cuda_only")]
    with pytest.raises(PlatformError, match="exported for platforms '\\('cuda',\\)' but it is used on '\\('cpu',\\)'"):
        deserialize(entry.blob).call(jax.numpy.zeros((3,)))


@pytest.mark.slow
def test_every_rewritten_routine_occurs_in_the_corpus():
    from jaxtf.serialization._program.operations import custom_calls
    from jaxtf.serialization._program.portable_artifact import deserialize_module
    from jaxtf.serialization._program.removed_calls import NOT_REWRITTEN, REWRITTEN

    found = set()
    for entry in WRITTEN:
        if entry.release in ("0.4.30", "0.4.38", "0.5.3"):
            module = deserialize_module(deserialize(entry.blob).mlir_module_serialized)
            found |= {target for target, _ in custom_calls(module)}
    assert found >= set(REWRITTEN)
    assert not found & set(NOT_REWRITTEN)
