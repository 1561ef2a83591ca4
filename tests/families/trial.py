"""One random case through one backend, compared with JAX, or with its own reference.

`compare(case, trial)` raises `AssertionError` where results differ, `GraphModeUnsupported` and the errors of TensorFlow
where there are none; `NotACase` where JAX itself does not compute or export it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from jaxtf.convert import convert, convert_stablehlo
from jaxtf.serialization import Exported, LapackNeeded, deserialize, export, lift
from jaxtf.shapepoly import InconclusiveDimensionOperation, symbolic_args_specs

from .case import Case, pattern
from .opened import opened, printed

__all__ = ["BACKENDS", "DERIVATIVES", "NotACase", "Trial", "compare", "trials"]

BACKENDS = (
    "eager",
    "graph",
    "compiled",
    "eager+xla",
    "graph+xla",
    "compiled+xla",
    "native",
    "artifact",
    "lift",
    "vectorized",
)
DERIVATIVES = ("", "vjp", "jvp")


# What JAX raises for a function that it does not compute, or not with symbolic sizes.
REFUSED = (
    TypeError,
    ValueError,
    NotImplementedError,
    ZeroDivisionError,
    AssertionError,
    IndexError,
    InconclusiveDimensionOperation,
)


class NotACase(Exception):
    """JAX does not compute it, or does not export it for symbolic sizes."""


@dataclass(frozen=True)
class Trial:
    """How a case is run.

    Attributes:
      backend: One of `BACKENDS`.
      derivative: One of `DERIVATIVES`.
      x64: Whether JAX has types of 64 bits.
      seed: Of the numbers.
      constants: Which arguments are constants where a graph is called, and the same for all elements where it is
        vectorized, by index.
      is_late: Whether a graph that is compiled, or vectorized, was made as one that is not, as in a SavedModel.
      is_opened: Whether graph mode and `lift` take a module with sizes left open that its types could know, as other
        producers write them.
      is_vague: Whether a graph is traced for arguments of which TensorFlow knows no size. It has to refuse arrays of
        other sizes than the constant ones.
    """

    backend: str
    derivative: str
    x64: bool
    seed: int
    constants: frozenset[int] = frozenset()
    is_late: bool = False
    is_opened: bool = False
    is_vague: bool = False


def trials(case: Case) -> st.SearchStrategy[Trial]:
    """The trials that a case allows."""
    derivatives = st.sampled_from(("", "", *DERIVATIVES)) if case.has_derivative else st.just("")
    x64 = st.just(True) if case.needs_x64 else st.booleans()
    interpreted = ("eager", "graph", "vectorized")
    backends = [name for name in BACKENDS if case.reference is None or name.startswith(interpreted)]
    if not case.arguments:
        backends.remove("vectorized")
    count = len(case.arguments)
    constants: st.SearchStrategy[frozenset[int]] = (
        st.frozensets(st.integers(1, count - 1)) if count > 1 else st.just(frozenset())
    )
    backend = st.sampled_from(backends)
    if case.often:
        backend = st.one_of(st.sampled_from(case.often), backend)
    is_opened = st.sampled_from((False, False, True))
    is_vague = st.sampled_from((False, False, False, True))
    return st.builds(
        Trial, backend, derivatives, x64, st.integers(0, 99), constants, st.booleans(), is_opened, is_vague
    )


def compare(case: Case, trial: Trial, *, with_jit: bool = True) -> None:
    """Runs a case at all its sizes and compares it with JAX, which compiles it whole, or each operation by itself."""
    with enable_x64(trial.x64), warnings.catch_warnings():
        # JAX warns of what a conversion loses, and where a dtype of 64 bits is not to be had.
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        function = derived(case.function, trial.derivative)
        names = list(case.sizes)
        count = max((len(case.sizes[name]) for name in names), default=1)
        rounds = [{name: case.sizes[name][i] for name in names} for i in range(count)]
        arguments = [arrays(case, trial, sizes) for sizes in rounds]
        if case.reference is None:
            asked = derived(case.in_jax or case.function, trial.derivative)
            expected = [in_jax(asked, values, with_jit) for values in arguments]
        else:
            expected = [jax.tree.leaves(case.reference(*values)) for values in arguments]
        run = runner(function, arguments[0], case, trial)
        for values, wanted, sizes in zip(arguments, expected, rounds, strict=True):
            found = run(*values)
            difference = differs(found, wanted, case.max_error_in_eps, case.scale, case.by_element)
            assert difference is None, f"{case.label} at {sizes}: {difference}"


def enable_x64(x64: bool) -> AbstractContextManager[Any]:
    """JAX with types of 64 bits, or without."""
    context: AbstractContextManager[Any] = jax.enable_x64(x64)
    return context


def arrays(case: Case, trial: Trial, sizes: dict[str, int]) -> list[np.ndarray]:
    """The arguments; of a tangent map, tangents follow."""
    random = np.random.default_rng(trial.seed)
    made = [argument.array(sizes, random) for argument in case.arguments]
    if trial.derivative != "jvp":
        return made
    tangents = [
        random.integers(-2, 3, x.shape).astype(x.dtype) for x in made if jax.dtypes.issubdtype(x.dtype, np.inexact)
    ]
    return [*made, *tangents]


def derived(function: Callable[..., Any], derivative: str) -> Callable[..., Any]:
    """The function, or one for its derivative."""
    if derivative == "vjp":

        def pulled(*args: Any) -> Any:
            results, pull = jax.vjp(function, *args)
            cotangents = pull(jax.tree.map(pattern, results))
            return [c for c in cotangents if c.dtype != jax.dtypes.float0]

        return pulled
    if derivative == "jvp":

        def pushed(*args: Any) -> Any:
            count = next(n for n in range(len(args) + 1) if n + sum(map(_is_inexact, args[:n])) == len(args))
            given = iter(args[count:])
            tangents = [next(given) if _is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0) for x in args[:count]]
            results, moved = jax.jvp(function, args[:count], tuple(tangents))
            return [results, [t for t in jax.tree.leaves(moved) if t.dtype != jax.dtypes.float0]]

        return pushed
    return function


def _is_inexact(x: Any) -> bool:
    return jax.dtypes.issubdtype(x.dtype, np.inexact)


def in_jax(function: Callable[..., Any], values: Sequence[np.ndarray], with_jit: bool) -> list[np.ndarray]:
    """What JAX computes."""
    try:
        with jax.disable_jit(not with_jit):
            results = jax.jit(function)(*map(jnp.asarray, values))
    except (*REFUSED, jax.errors.JaxRuntimeError) as error:  # the latter is XLA's
        raise NotACase(str(error)) from error
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def runner(
    function: Callable[..., Any], values: Sequence[np.ndarray], case: Case, trial: Trial
) -> Callable[..., list[np.ndarray]]:
    """The function by the backend, for arrays."""
    if trial.is_opened and trial.backend.startswith(("eager", "graph", "compiled", "lift")):
        return partial(run_opened, function, case, trial)
    shapes = polymorphic_shapes(case, len(values))
    specs = symbolic_args_specs(tuple(values), shapes)
    try:
        exported = export(jax.jit(function))(*specs)
    except REFUSED as error:
        raise NotACase(str(error)) from error
    if trial.backend in ("artifact", "lift"):
        kept = deserialize(bytes(exported.serialize()))
        call = jax.jit(lift(kept) if trial.backend == "lift" else kept.call)

        def run_artifact(*args: np.ndarray) -> list[np.ndarray]:
            try:
                return [np.asarray(leaf) for leaf in jax.tree.leaves(call(*args))]
            except ValueError as error:
                if "Error refining shapes" in str(error) and jax_export_refuses(function, exported, shapes, args):
                    raise NotACase(str(error)) from error
                raise

        return run_artifact
    backend, _, xla = trial.backend.partition("+")
    converted = convert(
        function,
        polymorphic_shapes=shapes,
        native_serialization=backend == "native",
        enable_xla=bool(xla) or backend == "native",
        with_gradient=False,
    )
    if backend in ("graph", "compiled", "vectorized"):
        specifications = [
            tf.TensorSpec([None if isinstance(n, str) or trial.is_vague else n for n in argument.shape], value.dtype)
            for argument, value in zip(arguments_of(case, len(values)), values, strict=True)
        ]
        if trial.is_late:
            converted = tf.function(converted, specifications, autograph=False).get_concrete_function()
        if backend == "vectorized":
            converted = vectorized(converted, trial.constants)
        else:
            converted = tf.function(converted, specifications, autograph=False, jit_compile=backend == "compiled")

    if trial.is_vague and backend in ("graph", "compiled"):
        check_refusal(converted, case, values)

    def run(*args: np.ndarray) -> list[np.ndarray]:
        called = with_constants(converted, args, trial.constants) if backend == "graph" else converted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = called(*map(tf.constant, args))
        return [np.asarray(leaf.numpy()) for leaf in tf.nest.flatten(results)]

    return run


def check_refusal(converted: Callable[..., Any], case: Case, values: Sequence[np.ndarray]) -> None:
    """Calls a graph of open sizes with one more row than a constant size, of each argument in turn."""
    for index, argument in enumerate(arguments_of(case, len(values))):
        axis = next((axis for axis, size in enumerate(argument.shape) if not isinstance(size, str)), None)
        if axis is not None:
            shape = list(values[index].shape)
            shape[axis] += 1
            others = list(map(tf.constant, values))
            others[index] = tf.zeros(shape, values[index].dtype)
            try:
                converted(*others)
            except tf.errors.InvalidArgumentError:
                continue
            raise AssertionError(f"{case.label}: argument {index} of shape {others[index].shape} is not refused")


def run_opened(function: Callable[..., Any], case: Case, trial: Trial, *args: np.ndarray) -> list[np.ndarray]:
    """The results of a module as of another producer: of sizes that are open, or of known ones that are then opened."""
    is_symbolic = bool(case.sizes) and trial.seed % 2 == 1
    specs = symbolic_args_specs(args, polymorphic_shapes(case, len(args))) if is_symbolic else args
    try:
        exported = export(jax.jit(function), expand_linear_algebra=True)(*specs)
    except (*REFUSED, LapackNeeded) as error:
        raise NotACase(str(error)) from error
    text = printed(exported) if is_symbolic else opened(exported, trial.seed)
    given = [args[index] for index in exported.module_kept_var_idx]
    if trial.backend == "lift":
        return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(lift(text))(*given))]
    backend, _, xla = trial.backend.partition("+")
    converted = convert_stablehlo(text, enable_xla=bool(xla))
    if backend != "eager":
        specifications = [tf.TensorSpec([None] * x.ndim if trial.is_late else x.shape, x.dtype) for x in given]
        converted = tf.function(converted, specifications, autograph=False, jit_compile=backend == "compiled")
    return [np.asarray(leaf.numpy()) for leaf in tf.nest.flatten(converted(*map(tf.constant, given)))]


def jax_export_refuses(
    function: Callable[..., Any], exported: Exported, shapes: Sequence[str], args: Sequence[np.ndarray]
) -> bool:
    """Whether `jax.export` cannot compute the function for these arrays either, as where a size leaves nothing.

    Where it does not decide what sizes are, it is asked to compute the exported function.
    """
    specs = jax.export.symbolic_args_specs(tuple(args), tuple(shapes))
    try:
        try:
            asked = jax.export.export(jax.jit(function))(*specs)
        except jax.core.InconclusiveDimensionOperation:
            asked = jax.export.deserialize(bytearray(exported.serialize()))
        asked.call(*args)
    except ValueError as error:
        return "Error refining shapes" in str(error)
    return False


def with_constants(
    function: Callable[..., Any], args: Sequence[np.ndarray], indices: frozenset[int]
) -> Callable[..., Any]:
    """A function that calls another of the graph with those of the arguments as constants."""
    if not indices.intersection(range(len(args))):
        return function

    def calling(*tensors: tf.Tensor) -> Any:
        return function(*(tf.constant(args[i]) if i in indices else x for i, x in enumerate(tensors)))

    return tf.function(calling, autograph=False)


def vectorized(function: Callable[..., Any], same: frozenset[int]) -> Callable[..., Any]:
    """A function that computes another for two elements at once, by `tf.vectorized_map`, and gives those of the second.

    The first is the second turned over, but for the arguments that are the same.
    """

    @tf.function(autograph=False)
    def of_pairs(*given: tf.Tensor) -> Any:
        def of_one(varying: Sequence[tf.Tensor]) -> Any:
            left = iter(varying)
            return function(*(x if i in same else next(left) for i, x in enumerate(given)))

        return tf.vectorized_map(of_one, [x for i, x in enumerate(given) if i not in same])

    def calling(*tensors: tf.Tensor) -> Any:
        pairs = of_pairs(*(x if i in same else tf.stack([turned_over(x), x]) for i, x in enumerate(tensors)))
        return tf.nest.map_structure(lambda results: results[1], pairs)

    return calling


def turned_over(tensor: tf.Tensor) -> tf.Tensor:
    """The elements from the last to the first along all dimensions."""
    return tf.constant(np.flip(tensor.numpy()))


def arguments_of(case: Case, count: int) -> list[Any]:
    """The arguments, and those whose tangents follow."""
    tangents = [a for a in case.arguments if jax.dtypes.issubdtype(getattr(ml_dtypes, a.dtype, a.dtype), np.inexact)]
    return [*case.arguments, *tangents][:count]


def polymorphic_shapes(case: Case, count: int) -> list[str]:
    """The shapes as texts."""
    return ["(" + "".join(f"{size}, " for size in argument.shape) + ")" for argument in arguments_of(case, count)]


def differs(
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    max_error_in_eps: float,
    scale: float,
    by_element: bool = False,
) -> str | None:
    """The first difference, in words; None where there is none."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
        if not np.array_equal(ours, theirs) and not _are_near(ours, theirs, max_error_in_eps, scale, by_element):
            return f"{ours!r}, not {theirs!r}"
    return None


def _are_near(ours: np.ndarray, theirs: np.ndarray, max_error_in_eps: float, scale: float, by_element: bool) -> bool:
    if not jax.dtypes.issubdtype(ours.dtype, np.inexact):
        return False
    limits = ml_dtypes.finfo(ours.dtype)
    is_complex = ours.dtype.kind == "c"
    wide = np.complex128 if is_complex else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    # A part of a complex number is as accurate as the number is.
    sizes = np.abs(theirs)
    sizes = np.where(np.isfinite(sizes), sizes, 0)  # that of a finite complex number may not be
    sizes = np.maximum(sizes if by_element else sizes.max(initial=0), max(scale, float(limits.tiny)))
    # What is smaller than the least number may count as 0.
    allowed = np.maximum(max_error_in_eps * float(limits.eps) * sizes, 0 if max_error_in_eps else float(limits.tiny))
    parts = [(ours.real, theirs.real), (ours.imag, theirs.imag)] if is_complex else [(ours, theirs)]
    return all(_is_near(mine, other, allowed) for mine, other in parts)


def _is_near(ours: np.ndarray, theirs: np.ndarray, allowed: np.ndarray) -> bool:
    """Whether numbers differ by no more than is allowed, and others are the same."""
    finite = np.isfinite(theirs)
    with np.errstate(invalid="ignore"):
        is_near = np.abs(ours - theirs) <= allowed
    return bool(is_near[finite].all()) and np.array_equal(ours[~finite], theirs[~finite], equal_nan=True)
