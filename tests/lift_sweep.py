"""Lifted modules compared with their original functions: JAX's harness of primitives, the battery, the old artifacts.

`compare(function, arguments)` exports a function, lifts the module, and compares values, `vmap`, forward and reverse
mode with those of the function: the unit is the dtype's epsilon times the largest element.

    python tests/lift_sweep.py harness --part 0/20
    python tests/lift_sweep.py battery
    python tests/lift_sweep.py corpus

prints a line of JSON for each, and a summary. `EXPECTED` has what is known to differ or to be refused, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jaxtf.serialization import export
from jaxtf.serialization._errors import LiftUnsupported

MAX_ERROR_IN_EPS = 64
"""Epsilons of the largest element that separate two orders of the same sums."""


@dataclass(frozen=True)
class Known:
    """A difference that is known.

    Attributes:
      pattern: Of the names of the cases, from their beginning.
      check: `values`, `jvp`, `grad` or `vmap`; a pattern.
      kind: `refused`, `differs` or `failed`.
      reason: In words.
    """

    pattern: str
    check: str
    kind: str
    reason: str


_RULE = "a rule of differentiation of its own is not in a module: the derivative is that of what the module computes"

EXPECTED: tuple[Known, ...] = (
    Known("(vmap of )?custom_vjp$|custom_jvp|stop_gradient|random.gamma", "jvp|grad", "differs", _RULE),
    Known("random.gamma|igamma", "grad", "failed", "its module has a loop whose number of rounds is not known"),
    Known(
        "igamma", "jvp", "differs", "where it is not defined its value is NaN, and the derivative of that constant is 0"
    ),
    Known(
        "digamma_",
        "jvp|grad",
        "differs",
        "of negative numbers JAX's rule gives another one than trigamma, and infinity near the poles, which is finite",
    ),
    Known(
        "convert_element_type_.*newdtype_bfloat16",
        "grad",
        "differs",
        "XLA leaves out a rounding of the cotangent to bfloat16 and back, in one of the two programs",
    ),
    Known("lgamma_", "jvp|grad", "differs", "at poles it is infinite, and NaN by JAX's rule"),
    Known("(min|max)_inf_nan_complex", "jvp|grad", "differs", "of NaN: the derivative is that of the operand chosen"),
    Known("select_and_scatter_add_.*_bool", "values|vmap", "refused", "sums of truth values"),
    Known(
        "cholesky_",
        "jvp|grad",
        "differs",
        "the case returns the upper triangle too, where LAPACK leaves the operand, whose derivative JAX's rule omits",
    ),
    Known(
        "integer_pow_.*float16",
        "jvp|grad",
        "differs",
        "a negative power is a quotient, whose derivative overflows sooner",
    ),
    Known(
        "select_and_gather_add_",
        "grad",
        "failed",
        "JAX does not differentiate windows of several operands in reverse mode",
    ),
    Known(
        "special functions|(igamma|lgamma|nextafter|random_gamma)",
        "jvp|grad",
        "refused",
        "JAX computes it by the bits of floats",
    ),
    Known(
        "layer_norm|standardize$",
        "jvp|grad",
        "differs",
        "it cancels but for rounding: both are as far from the numbers of 64 bits",
    ),
    Known(
        "gather_.*|scatter_add_modes_out_of_bounds_.*PROMISE_IN_BOUNDS",
        "jvp|grad",
        "differs",
        "the case promises positions inside and has others, for which the gradient of JAX is not that of the values",
    ),
)


@dataclass(frozen=True)
class Row:
    """What became of one check of one case.

    Attributes:
      name: Of the case.
      check: `values`, `jvp`, `grad`, `vmap`.
      kind: `equal` (bit by bit), `close`, `differs`, `refused` (by lift), `original` (the function does not have it
        either), `failed`.
      distance: In epsilons of the largest element.
      detail: Of an error or a difference.
    """

    name: str
    check: str
    kind: str
    distance: float = 0.0
    detail: str = ""


def compare(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[Row]:
    """The rows of one function of arrays and other pytrees."""
    leaves, tree = jax.tree.flatten(tuple(arguments))

    def original(*flat: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(tree, flat)))

    jitted = jax.jit(original)
    try:
        lifted = export(jitted, disabled_checks=[_every_call()])(*leaves).lift()
    except Exception as error:
        yield Row(name, "values", _kind_of(error), detail=_first(error))
        return
    yield check(name, "values", jitted, lifted, leaves)
    inexact = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), np.inexact)]
    if inexact:
        yield check(name, "jvp", pushed(original, inexact), pushed(lifted, inexact), leaves)
        yield check(name, "grad", pulled(original, inexact), pulled(lifted, inexact), leaves)
    if leaves and not any(_is_key(leaf) for leaf in leaves):
        batch = [jnp.stack([leaf, leaf]) for leaf in map(jnp.asarray, leaves)]
        yield check(name, "vmap", jax.vmap(original), jax.vmap(lifted), batch)


def _every_call() -> Any:
    from jaxtf.serialization import DisabledSafetyCheck

    return DisabledSafetyCheck.custom_call("ALL")


def pushed(function: Callable[..., Any], inexact: Sequence[int]) -> Callable[..., Any]:
    """Forward mode along some tangents."""

    def run(*leaves: Any) -> Any:
        def moving(*values: Any) -> Any:
            return function(*_replaced(leaves, inexact, values))

        points = [jnp.asarray(leaves[i]) for i in inexact]
        return _inexact(jax.jvp(moving, points, list(map(_direction, points)))[1])

    return run


def pulled(function: Callable[..., Any], inexact: Sequence[int]) -> Callable[..., Any]:
    """Reverse mode along some cotangents."""

    def run(*leaves: Any) -> Any:
        def moving(*values: Any) -> Any:
            return _inexact(function(*_replaced(leaves, inexact, values)))

        results, pull = jax.vjp(moving, *(jnp.asarray(leaves[i]) for i in inexact))
        return pull(list(map(_direction, results)))

    return run


def _direction(x: Any) -> Any:
    """Numbers between a half and one and a half, all different: along ones, much cancels."""
    return jnp.cos(jnp.arange(x.size).reshape(x.shape) * 0.7).astype(x.dtype) / 2 + jnp.ones_like(x)


def _replaced(leaves: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    whole = list(leaves)
    for place, value in zip(places, values, strict=True):
        whole[place] = value
    return whole


def _inexact(values: Sequence[Any]) -> list[Any]:
    return [x for x in jax.tree.leaves(values) if jnp.issubdtype(x.dtype, np.inexact)]


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.extended)


def check(name: str, kind: str, original: Callable[..., Any], lifted: Callable[..., Any], leaves: Sequence[Any]) -> Row:
    """One comparison."""
    try:
        expected = jax.tree.leaves(jax.jit(original)(*leaves))
    except Exception as error:
        return Row(name, kind, "original", detail=_first(error))
    try:
        found = jax.tree.leaves(jax.jit(lifted)(*leaves))
    except Exception as error:
        return Row(name, kind, _kind_of(error), detail=_first(error))
    # Of derivatives, one leaf may be 0 but for rounding: then the others tell how exact it is.
    largest = 0.0 if kind in ("values", "vmap") else max(map(_largest, expected), default=0.0)
    distances = [distance(ours, theirs, largest) for ours, theirs in zip(found, expected, strict=True)]
    worst = max(distances, default=0.0)
    return Row(name, kind, "equal" if worst == 0 else "close" if worst <= MAX_ERROR_IN_EPS else "differs", worst)


def _largest(array: Any) -> float:
    """The largest finite element, of floating point or complex; 0 if there is none."""
    if _is_key(array) or not jnp.issubdtype(array.dtype, np.inexact):
        return 0.0
    magnitudes = np.abs(np.asarray(array).astype(np.complex128))
    return float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))


def distance(ours: Any, theirs: Any, largest: float = 0.0) -> float:
    """How far apart two arrays are; infinite if of another dtype or shape, or not finite in other places.

    In epsilons of the largest element, or of `largest` if that is more.
    """
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return float("inf")
    if _is_key(ours):
        ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
    if ours.dtype == jax.dtypes.float0:
        return 0.0
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.tobytes() == b.tobytes():
        return 0.0
    if not jnp.issubdtype(a.dtype, np.inexact):
        return float("inf")
    epsilon = float(ml_dtypes.finfo(a.dtype).eps)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(b)
    same = np.where(np.isnan(b), np.isnan(a), a == b)
    if not np.all(finite | same):
        return float("inf")
    if not np.any(finite):
        return 0.0
    largest = max(largest, float(np.max(np.abs(b[finite])))) or 1.0
    gap = np.abs(a[finite] - b[finite])
    return float("inf") if np.isnan(gap).any() else float(np.max(gap)) / (epsilon * largest)


def _kind_of(error: Exception) -> str:
    return "refused" if isinstance(error, LiftUnsupported) else "failed"


def _first(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def harness(part: int, count: int) -> Iterator[Row]:
    """The cases of JAX's harness that run on CPU."""
    from jax._src.internal_test_util import test_harnesses

    runnable = [case for case in test_harnesses.all_harnesses if case.filter("cpu")]
    ordered = sorted(runnable, key=lambda case: (zlib.crc32(case.fullname.encode()), case.fullname))
    for case in ordered[part::count]:
        seed = zlib.crc32(case.fullname.encode()) % 2**31
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            yield from compare(case.fullname, case.dyn_fun, case.dyn_args_maker(np.random.RandomState(seed)))


def battery(part: int, count: int) -> Iterator[Row]:
    """The battery of JAX functions, at one size each."""
    from battery import BATTERY

    for name in sorted(BATTERY)[part::count]:
        entry = BATTERY[name]
        if entry.refusal is None:
            yield from compare(name, entry.function, entry.arguments(0))


def known(row: Row) -> Known | None:
    """What the table says of a row."""
    for each in EXPECTED:
        if re.match(each.pattern, row.name) and re.fullmatch(each.check, row.check) and each.kind == row.kind:
            return each
    return None


def unexpected(row: Row) -> bool:
    """Whether a row is not what it should be."""
    return row.kind not in ("equal", "close", "original") and known(row) is None


def main() -> None:
    """Runs the cases, prints rows and a summary; fails where one is not expected."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("harness", "battery"))
    parser.add_argument("--part", default="0/1")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", given.what == "harness")
    part, count = map(int, given.part.split("/"))
    kinds: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for row in {"harness": harness, "battery": battery}[given.what](part, count):
        kinds[row.check, row.kind] += 1
        wrong += unexpected(row)
        if row.kind not in ("equal", "original"):
            print(json.dumps(asdict(row)), flush=True)
    for (kind, what), number in sorted(kinds.items()):
        print(f"{kind:8} {what:10} {number}")
    print(f"unexpected: {wrong}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
