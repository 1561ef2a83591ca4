"""What old releases of JAX wrote gives, lifted, the numbers that they computed themselves.

Of some programs, of every family, the artifact of the oldest release that has it; `JAXTF_FULL=1` runs all that a CPU
can run.
"""

import os

import jax
import pytest

from jaxtf.serialization import LiftUnsupported, deserialize
from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._program.portable_artifact import current_stablehlo_version
from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

from .corpus import RELEASES, _argument, _numbers, _with_phases_of, differences, prepare_process, recorded

# Program -> why it is not lifted.
REFUSED = {
    "shard_map": "the devices of a mesh",
    "effect_ordered": "the ordered effects",
    "effect_both_symbolic": "the ordered effects",
}

RUNNABLE = [entry for release in RELEASES for entry in recorded(release) if entry.runs]
OLDEST = {entry.program: entry for entry in reversed(RUNNABLE)}
FAMILIES = (
    *("lu", "qr", "svd", "eigh", "eig", "schur", "hessenberg", "tridiagonal", "cholesky_batch"),
    *("symbolic_floordiv", "symbolic_gather", "symbolic_windows", "approx_top_k_symbolic", "top_k", "sort", "chlo"),
    *("control_flow", "random_bits", "random_key_rbg", "multi_platform", "network", "vjp_2", "int4", "float8"),
)
RUN = RUNNABLE if "JAXTF_FULL" in os.environ else [OLDEST[name] for name in FAMILIES if name in OLDEST]


@pytest.mark.parametrize("entry", RUN, ids=str)
def test_a_lifted_artifact_gives_the_numbers_of_its_release(entry):
    prepare_process()
    exported = deserialize(entry.blob)
    written = stablehlo_facts(exported.mlir_module_serialized).stablehlo_version
    if parse_stablehlo_version(written) > parse_stablehlo_version(current_stablehlo_version()):
        pytest.skip("newer than this jaxlib reads")
    for order, sides in enumerate(entry.values()):
        exported = exported.vjp() if order else exported
        with jax.enable_x64(entry.facts["x64"]):
            leaves = [_argument(dtype, array) for dtype, array in sides["in"]]
            args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
            if entry.program in REFUSED:
                with pytest.raises(LiftUnsupported, match=REFUSED[entry.program]):
                    exported.lift()
                return
            results = [_numbers(leaf) for leaf in jax.tree.leaves(exported.lift()(*args, **kwargs))]
        numbers = [array for _, array in sides["out"]]
        found = _with_phases_of(numbers, results) if entry.program.startswith("schur") else results
        assert not differences(found, numbers, exact=not entry.facts["inexact"]), f"order {order}"
