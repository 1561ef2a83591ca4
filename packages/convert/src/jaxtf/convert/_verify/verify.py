"""`verify`: runs a function on every backend there is, at several sizes, and compares with JAX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._values.progress import Progress
from jaxtf.convert._values.sizes import result_shapes
from jaxtf.convert._verify.backends import BACKENDS
from jaxtf.convert._verify.compare import TOLERANCE, allowed, check_tolerance, difference
from jaxtf.convert._verify.locate import located
from jaxtf.convert._verify.numbers import NUMBERS, argument, cotangent, is_inexact
from jaxtf.convert._verify.report import Report, Row
from jaxtf.convert._verify.sizes import admissible_sizes, argument_shapes, given_sizes
from jaxtf.convert._verify.subject import Subject, make_subject
from jaxtf.serialization import UnstableCustomCall

__all__ = ["verify"]

_SIZES = 3

# Outcome, error, place, and the error that is allowed, None where no numbers were compared.
_Compared = tuple[Any, float, str, float | None]


def verify(
    target: Any,
    *specs: Any,
    sizes: Sequence[Mapping[str, int]] | None = None,
    backends: list[str] | tuple[str, ...] | None = None,
    gradients: bool = True,
    tolerance: float | None = None,
    numbers: list[str] | tuple[str, ...] = ("regular", "ties"),
    locate: bool = False,
) -> Report:
    """Compares a function on every backend that runs it: JAX, artifact, TensorFlow, SavedModel, graph mode.

    Args:
      target: A JAX function, an `Exported`, or the bytes of an artifact.
      specs: For a function: shapes and dtypes of its positional arguments, as `jax.ShapeDtypeStruct`, also symbolic;
        the values of static ones.
      sizes: Values of the dimension variables to run at, a dict by name for each run; by default up to three that the
        constraints allow.
      backends: Names among `exported`, `artifact`, `eager`, `graph`, `compiled`, `saved_model`, `graph_mode`,
        `graph_mode_saved_model`; by default all. Each is compared with JAX.
      gradients: Whether reverse mode is compared too, where the function has it.
      tolerance: The largest error, relative to eps * max abs value, at which results count as the same; by default 256,
        but no more than an eighth of the largest value, or one unit: 16 for bfloat16, 128 for float16.
      numbers: What to run with, of `regular` (no two are equal), `ties` (many are equal, indices too, so that their
        order shows) and `special` (NaN, infinities and signed zeros among them; no gradients): TensorFlow compiled for
        CPU drops NaN in maxima, so that a function with a `relu` differs.
      locate: Whether to find, for each backend that differs, the first operation whose value does, by its line: all
        intermediate values of the function are compared, in one more run in JAX and on the backend. Of an
        artifact these are the operations of its module, as `Exported.lift` evaluates them.

    Returns:
      A report that prints as a table; `report.ok` is whether all agree.

    Raises:
      FunctionTypeError: `target` is neither a JAX function, nor an `Exported`, nor bytes.
      ConversionOptionError: No such backend, kind of numbers or dimension variable, or no values that the constraints
        allow; nothing to compare, or a tolerance that is no number of at least 0.
      JaxRequiredError: JAX, the reference of the comparison, is not installed.

    >>> import jax, jax.numpy as jnp
    >>> from jaxtf.convert import verify
    >>> from jaxtf.shapepoly import symbolic_shape
    >>> spec = jax.ShapeDtypeStruct(symbolic_shape("b, 2"), jnp.float32)
    >>> report = verify(jnp.sin, spec, backends=["eager", "saved_model"])
    >>> report.ok, len(report.rows)
    (True, 24)
    """
    check_tolerance(tolerance)
    compared = tuple(name for name in BACKENDS if name != "jax")
    names = compared if backends is None else _known("backends", backends, compared)
    numbers = _known("numbers", numbers, NUMBERS)
    subject = make_subject(target, specs)
    exported = subject.exported
    cases = admissible_sizes(exported, _SIZES) if sizes is None else given_sizes(exported, sizes)
    runs = [(sizes, kind) for sizes in cases for kind in numbers]
    with Progress(f"verify {exported.fun_name}") as progress:
        rows = [
            row
            for name in names
            for row in _rows(name, subject, runs, gradients=gradients, tolerance=tolerance, progress=progress)
        ]
        if locate:
            rows = list(_with_places(rows, subject, tolerance, progress))
    if gradients and subject.no_gradient:
        rows.append(Row("jax", {}, "gradients", "refused", float("inf"), subject.no_gradient))
    return Report(exported.fun_name, TOLERANCE if tolerance is None else tolerance, tuple(rows))


def _known(option: str, names: Any, known: Collection[str]) -> list[str]:
    """The names that an option gives.

    Raises:
      ConversionOptionError: It is one text, or empty, or names an unknown backend.
    """
    if isinstance(names, str):
        raise ConversionOptionError(f"{option} must be a list of names. Got: {names!r}\n  remedy: {option}=[{names!r}]")
    if unknown := [name for name in names if name not in known]:
        singular = option.removesuffix("s") if option == "backends" else option
        raise ConversionOptionError(f"verify has no {singular} {unknown[0]!r}; there are {', '.join(known)}")
    if not names:
        raise ConversionOptionError(f"{option} must name at least one; there are {', '.join(known)}")
    return list(names)


def _rows(
    backend: str,
    subject: Subject,
    runs: Sequence[tuple[dict[str, int], str]],
    *,
    gradients: bool,
    tolerance: float | None,
    progress: Progress,
) -> Iterator[Row]:
    """The comparisons of one backend with JAX."""
    exported, authority = subject.exported, BACKENDS["jax"](subject)
    progress.at(f"{backend}: made")
    try:
        runner = BACKENDS[backend](subject)
    except Exception as error:  # whatever keeps a backend from running is reported
        yield Row(backend, {}, "values", *_failure(error))
        return
    reasons: set[str] = set()
    for sizes, kind in progress.over(runs, f"{backend}: run", len(runs)):
        arguments = _arguments(subject, sizes, kind)
        values = partial(runner.values, arguments), partial(authority.values, arguments)
        row = _row(backend, sizes, "values", _compared(*values, exported.out_names, tolerance), kind)
        if row.outcome in ("refused", "not compared"):
            if row.where not in reasons:  # the same at other sizes and numbers is reported once
                reasons.add(row.where)
                yield row
            continue
        yield row
        cotangents = _cotangents(subject, arguments)
        has_gradient = gradients and kind != "special" and not subject.no_gradient
        if not (has_gradient and cotangents and any(map(_rounds, exported.in_avals))):
            continue
        pulled = partial(runner.gradients, arguments, cotangents), partial(authority.gradients, arguments, cotangents)
        names = [name for name, aval in zip(exported.in_names, exported.in_avals, strict=True) if _rounds(aval)]
        yield _row(backend, sizes, "gradients", _compared(*pulled, names, tolerance), kind)


def _row(
    backend: str, sizes: dict[str, int], question: Any, compared: tuple[Any, float, str, float | None], kind: str
) -> Row:
    outcome, error, where, most = compared
    return Row(backend, sizes, question, outcome, error, where, kind, allowed=most)


def _with_places(rows: Sequence[Row], subject: Subject, tolerance: float | None, progress: Progress) -> Iterator[Row]:
    """The rows; the first of each backend and question that differs has the place where it begins to."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if row.outcome != "differs" or (row.backend, row.question) in seen:
            yield row
            continue
        seen.add((row.backend, row.question))
        progress.at(f"{row.backend}: where it differs")
        arguments = _arguments(subject, row.sizes, row.numbers)
        cotangents = _cotangents(subject, arguments) if row.question == "gradients" else None
        yield replace(
            row, place=located(subject, BACKENDS, row.backend, arguments, tolerance=tolerance, cotangents=cotangents)
        )


def _compared(
    found: Callable[[], Sequence[Any]],
    expected: Callable[[], Sequence[Any]],
    names: Sequence[str],
    tolerance: float | None,
) -> _Compared:
    """What comes of a comparison."""
    try:
        right = list(map(np.asarray, expected()))
    except Exception as error:
        return "not compared", float("inf"), f"JAX: {_said(error)}", None
    try:
        left = [None if array is None else np.asarray(array) for array in found()]
    except Exception as error:
        return *_failure(error), None
    missing = [name for name, array in zip(names, left, strict=True) if array is None]
    compared = [(name, a, b) for name, a, b in zip(names, left, right, strict=True) if a is not None]
    errors = [(difference(a, b), allowed(b, tolerance)) for _, a, b in compared]
    largest, most, name = 0.0, None, ""
    if errors:
        largest, most = worst = max(errors, key=lambda pair: (pair[0] > pair[1], pair[0]))
        name, _, _ = compared[errors.index(worst)]
    if most is not None and largest > most:
        return "differs", largest, name, most
    if missing:
        others = "; the others are the same" if errors else ""
        where = f"TensorFlow's tape gives no gradient of {', '.join(missing)}: floats of 8 bits{others}"
        return "refused", float("inf"), where, most
    return "same", largest, "", most


def _failure(error: Exception) -> tuple[Any, float, str]:
    """Outcome, error and reason: a refusal of ours says so by its class, anything else is a difference."""
    is_ours = type(error).__module__.partition(".")[0] == "jaxtf"
    outcome = "refused" if is_ours and isinstance(error, NotImplementedError | UnstableCustomCall) else "differs"
    return outcome, float("inf"), _said(error)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _arguments(subject: Subject, sizes: Mapping[str, int], numbers: str) -> list[np.ndarray[Any, Any]]:
    avals = subject.exported.in_avals
    shapes = argument_shapes(subject.exported, sizes)
    return [argument(shape, aval.dtype, i, numbers) for i, (shape, aval) in enumerate(zip(shapes, avals, strict=True))]


def _cotangents(subject: Subject, arguments: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    shapes = result_shapes(subject.exported, [array.shape for array in arguments])
    return [
        cotangent(tuple(size or 0 for size in shape), aval.dtype, i)
        for i, (shape, aval) in enumerate(zip(shapes, subject.exported.out_avals, strict=True))
        if _rounds(aval)
    ]


def _rounds(aval: Any) -> bool:
    return isinstance(aval.dtype, np.dtype) and is_inexact(aval.dtype)
