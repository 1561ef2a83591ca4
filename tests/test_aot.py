"""Exported functions compiled for accelerators that this machine does not have.

`JAXTF_AOT=tpu` or `cuda` chooses the compiler; without it nothing is tested here (`python3 run.py aot_tpu`).
One artifact of each function, for cpu, cuda and tpu, with its VJP, is read back and compiled for real, for topologies
without devices. That shows that what is lowered compiles: custom calls, calling convention, refinement of symbolic
sizes, shardings. It does not run.

A deterministic sample of the battery; `aot_table.py` compiles all of it for all targets.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import deserialize, export

from .ahead_of_time import OVER_FOUR_DEVICES, PLATFORMS, compile_for, program_of
from .aot_targets import TARGETS
from .battery import BATTERY

PLATFORM = os.environ.get("JAXTF_AOT")
NAMES = [name for name, target in TARGETS.items() if target.platform == PLATFORM]
if not NAMES:
    pytest.skip("JAXTF_AOT names no platform of a target", allow_module_level=True)

WORKING = [name for name, entry in BATTERY.items() if entry.refusal is None]
SAMPLE = [(NAMES[0], name) for name in WORKING[::8]] + [(other, name) for other in NAMES[1:] for name in WORKING[3::40]]


@pytest.fixture(scope="module", params=NAMES)
def devices(request):
    return TARGETS[request.param].devices()


@pytest.mark.parametrize(("target", "name"), SAMPLE)
def test_one_artifact_for_all_platforms_compiles(target, name, tmp_path):
    found = program_of(BATTERY[name], tmp_path / "artifact").refusals(TARGETS[target].devices()[0])
    expected = TARGETS[target].refused.get(name)
    if expected is None:
        assert not found
    else:
        assert expected in "".join(found.values()), "where it compiles now: delete its entry in aot_targets.py"


@pytest.mark.parametrize("kind", OVER_FOUR_DEVICES)
def test_a_function_over_four_devices_compiles(devices, kind):
    OVER_FOUR_DEVICES[kind](devices)


def test_a_random_function_compiles_for_each_implementation(devices):
    for implementation in ("threefry2x32", "rbg"):

        def draw(seed, implementation=implementation):
            return jax.random.normal(jax.random.key(seed, impl=implementation), (128,))

        exported = export(draw, platforms=PLATFORMS)(jax.ShapeDtypeStruct((), jnp.uint32))
        compile_for(devices[0], deserialize(exported.serialize()).call, [np.uint32(0)])
