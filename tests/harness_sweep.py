"""JAX's primitive harness through graph mode: every case of every primitive, compared with JAX on CPU.

`cases()` gives them in an order that mixes primitives and does not change; `outcome(case, mode, allows_xla)` runs one.
`EXPECTED` lists what is known to differ, with the reason; what it does not list has to agree, what it lists must not.

As a program it runs part of the cases, such as `--part 0/20`, and prints a line of JSON for each, or all of them in
every mode, with `--sweep FOLDER`, and prints a summary (the session `harness_sweep`). It needs JAX's 64-bit
types, which the harness decides on when it is imported, so it is a process of its own (`run`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import Program, export_for_graph

MODES = ("eager", "graph", "compiled")
ALL_MODES = tuple(f"{mode}{xla}" for xla in ("", "+xla") for mode in MODES)

# Rounding errors allowed in results, in units of the dtype's epsilon, relative to the larger of the element and the
# largest element: sums of some hundred terms in another order, and special functions by another approximation.
MAX_ERROR_IN_EPS = 64
LARGEST_PART = 1 / 8  # of the largest value, for floats of few bits

# In the refusals that report an error of TensorFlow's: they may hide a mistake in an entry.
NOT_TAKEN = "TensorFlow does not take it"


@dataclass(frozen=True)
class Known:
    """A difference that is known.

    Attributes:
      pattern: Of the full names of the cases, from their beginning.
      reason: In words, for the page on limitations.
      kind: `refused`, where graph mode raises GraphModeUnsupported; `differs`, where results are others.
      modes: In which it is so.
      with_xla: Whether also where XLA operations are allowed.
      strict: Whether each of the cases has to show it; otherwise some of them may.
    """

    pattern: str
    reason: str
    kind: str = "differs"
    modes: tuple[str, ...] = MODES
    with_xla: bool = True
    strict: bool = True


EXPECTED: tuple[Known, ...] = (
    Known(
        "rng_bit_generator_",
        "XLA's generators are not among TensorFlow's plain operations",
        kind="refused",
        with_xla=False,
    ),
    Known(
        "conv_general_dilated_preferred_lhs_complex64.*preferred_complex128",
        "graph mode computes in the result's dtype, JAX on CPU in that of the operands",
    ),
    Known("eig_", "TensorFlow compiles no Eig", kind="failed", modes=("compiled",)),
    Known("svd_.*complex", "TensorFlow compiles no complex Svd on CPU", kind="failed", modes=("compiled",)),
    Known(
        "eigh_.*(float64|complex128)",
        "compiled, TensorFlow's eigenvalues of 64-bit types are as accurate as those of 32 bits",
        modes=("compiled",),
        strict=False,
    ),
    Known(
        "svd_.*float64",
        "compiled, TensorFlow's eigenvalues of 64-bit types are as accurate as those of 32 bits",
        modes=("compiled",),
        with_xla=False,
        strict=False,
    ),
    Known(
        "(min|max)_inf_nan_(bfloat16|float)",
        "compiled, XLA's CPU backend drops NaN in minimum and maximum",
        modes=("compiled",),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
      kind: `equal`, `differs`, `refused`, or `failed`: an error that says nothing to the user.
      detail: Of the difference or the error.
    """

    kind: str
    detail: str = ""


def cases() -> list[Any]:
    """The harnesses that JAX itself runs on CPU, in the order of a hash of their names."""
    from jax._src.internal_test_util import test_harnesses

    assert jax.config.jax_enable_x64, "set JAX_ENABLE_X64=1"
    runnable = [harness for harness in test_harnesses.all_harnesses if harness.filter("cpu")]
    return sorted(runnable, key=lambda harness: (zlib.crc32(harness.fullname.encode()), harness.fullname))


def expected_kind(case: Any, mode: str, allows_xla: bool) -> tuple[str, Known | None]:
    """What the table says of a case."""
    for known in EXPECTED:
        applies = mode in known.modes and (known.with_xla or not allows_xla)
        if applies and re.match(known.pattern, case.fullname):
            return known.kind, known
    return "equal", None


@lru_cache(maxsize=1)
def traced(case: Any) -> tuple[Program, tuple[Any, ...], tuple[Any, ...]]:
    """The program as parsed, its arguments and JAX's results."""
    seed = zlib.crc32(case.fullname.encode()) % 2**31
    with jax.numpy_dtype_promotion("standard"):
        arguments = case.dyn_args_maker(np.random.RandomState(seed))
        function = jax.jit(case.dyn_fun)
        expected = jax.tree.leaves(function(*arguments))
        exported = export_for_graph(function)(*arguments)
    leaves = [plain(leaf) for leaf in jax.tree.leaves(arguments)]
    kept = tuple(leaves[i] for i in exported.module_kept_var_idx)
    return parse(exported.mlir_module_serialized), kept, tuple(map(plain, expected))


def plain(leaf: Any) -> np.ndarray:
    """An array as it is in a module: of a random key, its data."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(jax.numpy.asarray(leaf))


def outcome(case: Any, mode: str, allows_xla: bool) -> Outcome:
    """Runs a case in graph mode and compares it with JAX."""
    try:
        program, arguments, expected = traced(case)
        program = plan(program, allows_xla)

        def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
            return Emitter(program, allows_xla).main(tensors)

        if mode != "eager":
            run = tf.function(run, autograph=False, jit_compile=mode == "compiled")
        results = [result.numpy() for result in run(*map(tf.constant, arguments))]
    except GraphModeUnsupported as error:
        return Outcome("refused", str(error))
    except Exception as error:
        return Outcome("failed", f"{type(error).__name__}: {error}")
    difference = compared(case, results, expected, arguments)
    return Outcome("equal") if difference is None else Outcome("differs", difference)


def compared(
    case: Any, results: Sequence[np.ndarray], expected: Sequence[np.ndarray], arguments: Sequence[np.ndarray]
) -> str | None:
    """The first difference, in words; None where there is none."""
    if len(results) != len(expected):
        return f"{len(results)} results, not {len(expected)}"
    for ours, theirs in zip(results, expected, strict=True):
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            return f"{ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
    special = SPECIAL.get(case.group_name)
    if special is not None:
        return special(case, results, expected, arguments)
    differences = (difference(ours, theirs) for ours, theirs in zip(results, expected, strict=True))
    return next((d for d in differences if d is not None), None)


def difference(ours: np.ndarray, theirs: np.ndarray) -> str | None:
    """Where two arrays differ: at all, for integers; by more than rounding errors, for floats."""
    if not jax.dtypes.issubdtype(ours.dtype, np.inexact):
        different = ours != theirs
    else:
        epsilon = float(ml_dtypes.finfo(ours.dtype).eps)
        ours, theirs = as_doubles(ours), as_doubles(theirs)
        finite = np.isfinite(theirs)
        scale = np.maximum(np.abs(theirs), np.max(np.abs(theirs[finite]), initial=0))
        with np.errstate(invalid="ignore"):
            near = finite & (np.abs(ours - theirs) <= min(MAX_ERROR_IN_EPS * epsilon, LARGEST_PART) * scale)
        different = ~(near | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if not different.any():
        return None
    place = tuple(int(i) for i in np.argwhere(different)[0])
    return f"{int(different.sum())} of {different.size} elements; {ours[place]} at {place}, not {theirs[place]}"


def as_doubles(array: np.ndarray) -> np.ndarray:
    """Real numbers as float64, complex ones as pairs of them."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).astype(np.float64)
    return array.astype(np.float64)


def one_triangle(case: Any, results: Any, expected: Any, arguments: Any) -> str | None:
    """Cholesky: the other triangle is left undefined by the specification; the factor gives the argument back."""
    ours, theirs = np.tril(results[0]), np.tril(expected[0])
    return _near(ours @ _adjoint(ours), theirs @ _adjoint(theirs), "product")


def same_subspaces(case: Any, results: Any, expected: Any, arguments: Any) -> str | None:
    """Decompositions: numbers agree; vectors, which are determined up to phases, give the argument back.

    The errors of backward stable algorithms grow with the size of the matrix, here at most 200.
    """
    check = {"eigh": _check_eigh, "svd": _check_svd, "eig": _check_eig}[case.group_name]
    return check(case, results, expected, arguments[0])


def _near(ours: np.ndarray, theirs: np.ndarray, what: str) -> str | None:
    if ours.size == 0:
        return None
    epsilon = float(np.finfo(ours.dtype).eps)
    scale = max(float(np.max(np.abs(theirs))), 1.0)
    error = float(np.max(np.abs(ours - theirs))) / scale / epsilon
    limit = 16 * max(ours.shape[-2:])
    return None if error <= limit else f"{what}: error of {error:.0f} epsilon, more than {limit}"


def _first(*differences: str | None) -> str | None:
    return next((d for d in differences if d is not None), None)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def _check_eigh(case: Any, results: Any, expected: Any, operand: np.ndarray) -> str | None:
    vectors, values = sorted(results, key=lambda x: -x.ndim)
    _, expected_values = sorted(expected, key=lambda x: -x.ndim)
    lower = bool(case.params.get("lower", True))
    triangle = np.tril(operand) if lower else np.triu(operand)
    strict = np.tril(operand, -1) if lower else np.triu(operand, 1)
    matrix = np.where(np.eye(operand.shape[-1], dtype=bool), triangle.real, triangle) + _adjoint(strict)
    return _first(
        _near(values[..., np.newaxis], expected_values[..., np.newaxis], "eigenvalues"),
        _near(vectors * values[..., np.newaxis, :] @ _adjoint(vectors), matrix, "product"),
    )


def _check_svd(case: Any, results: Any, expected: Any, operand: np.ndarray) -> str | None:
    values = results[0]
    if len(results) == 1:
        return _near(values[..., np.newaxis], expected[0][..., np.newaxis], "singular values")
    _, left, right = results
    count = values.shape[-1]
    product = left[..., :, :count] * values[..., np.newaxis, :] @ right[..., :count, :]
    return _first(
        _near(values[..., np.newaxis], expected[0][..., np.newaxis], "singular values"),
        _near(product, operand, "product"),
        _near(
            _adjoint(left) @ left,
            np.broadcast_to(np.eye(left.shape[-1]), left.shape[:-2] + (left.shape[-1],) * 2),
            "left",
        ),
    )


def _check_eig(case: Any, results: Any, expected: Any, operand: np.ndarray) -> str | None:
    values = results[0]
    found = _near(
        np.sort_complex(values)[..., np.newaxis], np.sort_complex(expected[0])[..., np.newaxis], "eigenvalues"
    )
    vectors = list(results[1:])
    if case.params.get("compute_left_eigenvectors") and vectors:
        left = vectors.pop(0)
        found = found or _near(_adjoint(left) @ operand, values[..., :, np.newaxis] * _adjoint(left), "left vectors")
    if vectors:
        found = found or _near(operand @ vectors[0], vectors[0] * values[..., np.newaxis, :], "right vectors")
    return found


def same_order(case: Any, results: Any, expected: Any, arguments: Any) -> str | None:
    """Sorts: the keys agree; where they are equal and the sort is not stable, the rest comes in any order."""
    keys = len(results) if case.params.get("is_stable", True) else int(case.params.get("num_keys", 1))
    axis = int(case.params.get("dimension", 0))
    wrong = _first(*map(difference, results[:keys], expected[:keys]))
    if wrong is not None or keys == len(results):
        return wrong
    ours, theirs = (_rows_in_order(arrays, axis) for arrays in (results, expected))
    return _first(*map(difference, ours, theirs))


def _rows_in_order(arrays: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    """The arrays sorted together along an axis by all of them."""
    order = np.lexsort(arrays[::-1], axis=axis)
    return [np.take_along_axis(array, order, axis) for array in arrays]


def same_selection(
    case: Any, results: Sequence[np.ndarray], expected: Sequence[np.ndarray], arguments: Sequence[np.ndarray]
) -> str | None:
    """Of equal elements, JAX promises no order: values as in JAX, and indices, each once, that lead to them."""
    values, indices = results
    if (found := difference(values, expected[0])) is not None:
        return found
    axis = next(i for i, (a, b) in enumerate(zip(values.shape, arguments[0].shape, strict=True)) if a != b)
    ordered = np.sort(indices, axis)
    if (np.diff(ordered, axis=axis) == 0).any():
        return "an index twice"
    return difference(np.take_along_axis(arguments[0], indices.astype(np.int64), axis), values)


SPECIAL: dict[str, Callable[..., str | None]] = {
    "approx_top_k": same_selection,
    "sort": same_order,
    "cholesky": one_triangle,
    "eigh": same_subspaces,
    "svd": same_subspaces,
    "eig": same_subspaces,
}


def run(part: str, modes: Sequence[str], groups: str = "") -> list[dict[str, Any]]:
    """The rows of a part of the cases, from another process.

    Args:
      part: `i/n`: every n-th case, from the i-th on.
      modes: Such as `graph` or `graph+xla`.
      groups: Names of primitives, with commas; all if empty.
    """
    lines = _process("--part", part, "--modes", ",".join(modes), "--groups", groups)
    return [json.loads(line) for line in lines if line.startswith("{")]


def count() -> int:
    """How many cases there are."""
    return int(_process("--count")[-1])


def _process(*arguments: str) -> list[str]:
    """What this program prints."""
    environment = os.environ | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def sweep(parts: int, at_a_time: int, folder: Path) -> list[dict[str, Any]]:
    """Every case in every mode, in a process for each part, as compiled programs are kept until one ends.

    Args:
      parts: How many.
      at_a_time: How many processes run at once.
      folder: Where the rows are written, a file for each part.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def rows_of(part: int) -> list[dict[str, Any]]:
        start = time.monotonic()
        found = run(f"{part}/{parts}", ALL_MODES)
        (folder / f"{part}_of_{parts}.json").write_text(json.dumps(found))
        seconds = time.monotonic() - start
        print(f"part {part} of {parts}: {len(found)} rows, {len(unexpected(found))} unexpected, {seconds:.0f} s")
        sys.stdout.flush()
        return found

    with ThreadPoolExecutor(at_a_time) as pool:
        return [row for rows in pool.map(rows_of, range(parts)) for row in rows]


def print_summary(rows: Sequence[dict[str, Any]]) -> None:
    """Counts by mode, and what the table does not say."""
    for mode in ALL_MODES:
        kinds = Counter(row["kind"] for row in rows if row["mode"] == mode)
        print(f"{mode:14}", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    lines = unexpected(rows)
    print(*lines, f"{len(rows)} rows, {len(lines)} unexpected", sep="\n")


def unexpected(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What the table does not say: failures that it does not list, and successes that it lists as failures."""
    return [
        f"{row['mode']} {row['name']}: {row['kind']}, expected {row['expected']}: {row['detail']}"
        for row in rows
        if row["kind"] != row["expected"] and (row["strict"] or row["kind"] != "equal")
    ]


def main() -> None:
    """Runs cases and prints a line of JSON for each and each mode."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--modes", default="graph")
    parser.add_argument("--groups", default="")
    parser.add_argument("--sweep", type=Path, metavar="FOLDER", help="run everything, a summary at the end")
    parser.add_argument("--at-a-time", type=int, default=2, help="processes of a sweep")
    parser.add_argument("--count", action="store_true", help="print the number of cases only")
    options = parser.parse_args()
    if options.count:
        print(len(cases()))
        return
    if options.sweep:
        rows = sweep(20, options.at_a_time, options.sweep)
        print_summary(rows)
        sys.exit(1 if unexpected(rows) else 0)
    start, step = map(int, options.part.split("/"))
    wanted = set(filter(None, options.groups.split(",")))
    chosen = [case for case in cases() if not wanted or case.group_name in wanted][start::step]
    for case in chosen:
        for mode in options.modes.split(","):
            name, _, xla = mode.partition("+")
            found = outcome(case, name, bool(xla))
            expected, known = expected_kind(case, name, bool(xla))
            row = {
                "group": case.group_name,
                "name": case.fullname,
                "dtype": np.dtype(case.dtype).name if case.dtype is not None else "",
                "mode": mode,
                "kind": found.kind,
                "detail": found.detail[:300],
                "expected": expected,
                "strict": known is None or known.strict,
                "reason": known.reason if known is not None else "",
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
