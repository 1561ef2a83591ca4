"""The battery with its leading size symbolic: each function that works, of 79, as values and as gradients.

`right_sizes(name, gradients)` exports a function of `test_battery.py` with the size of the first axis of its first
argument, and of others with that size, symbolic (`b`, at least 1), and compares it with that at constant sizes.
`python packages/calltf/tests/battery_sizes.py` prints what does not work, and the counts.
"""

import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import jax
import numpy as np
from jax import export
from test_battery import CASES, RNG, arguments, gradient

from jaxtf.calltf import call_tf

SIZES = (1, 2, 3, 7, 20)  # and the size of the case


def right_sizes(name: str, gradients: bool) -> list[int]:
    """The sizes at which the exported function gives what the function gives; it must not refuse that of the case.

    Raises:
      Whatever the export raises, or the call at the size of the case; AssertionError for another result.
    """
    case = CASES[name]
    args = arguments(case, np.float32)
    call = call_tf(case.function)
    call(*args)  # makes the layers and SavedModels that are made once
    program = (lambda *floats, rest: gradient(call, case, [*floats, *rest])(*floats)) if gradients else call
    own = args[0].shape[0]
    [size] = export.symbolic_shape("b")
    varies = [x.shape[:1] == (own,) for x in args]
    specs = [
        jax.ShapeDtypeStruct((size, *x.shape[1:]) if vary else x.shape, x.dtype)
        for x, vary in zip(args, varies, strict=True)
    ]
    count = len(case.shapes)

    def staged(*args):
        return program(*args[:count], rest=args[count:]) if gradients else program(*args)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = export.export(jax.jit(staged))(*specs)
    right = []
    for rows in dict.fromkeys((own, *SIZES)):
        varied = [_of_rows(x, rows) if vary else x for x, vary in zip(args, varies, strict=True)]
        try:
            expected = jax.tree.leaves(jax.jit(staged)(*varied))
        except Exception:
            if rows == own:
                raise
            continue  # TensorFlow refuses this size
        found = jax.tree.leaves(exported.call(*varied))
        for x, y in zip(found, expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
        right.append(rows)
    return right


def _of_rows(x: np.ndarray, rows: int) -> np.ndarray:
    if np.issubdtype(x.dtype, np.integer):
        return np.resize(x, (rows, *x.shape[1:]))
    return RNG.normal(size=(rows, *x.shape[1:])).astype(x.dtype)


def main() -> None:
    for gradients in (False, True):
        right = []
        for name, case in CASES.items():
            if gradients and not case.shapes:
                continue
            try:
                right.append((name, right_sizes(name, gradients)))
            except Exception as error:
                kind = "wrong" if isinstance(error, AssertionError) else type(error).__name__
                message = str(error).partition("\n")[0][:200]
                print(name, "gradient" if gradients else "value", kind, message, sep=" | ", flush=True)
        print("gradients" if gradients else "values", len(right), flush=True)


if __name__ == "__main__":
    main()
