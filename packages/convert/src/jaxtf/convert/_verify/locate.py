"""Where a backend begins to differ: the first step of a function whose value is another one than in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import jax
import numpy as np

from jaxtf.convert._verify.compare import allowed, difference
from jaxtf.convert._verify.lifted import gradient_lifted, lifted
from jaxtf.convert._verify.steps import Step, recording, steps_of
from jaxtf.convert._verify.subject import Subject, of_function
from jaxtf.serialization import LiftUnsupported
from jaxtf.serialization.interop import specification

__all__ = ["Place", "Statistics", "located"]

_Runner = Callable[[Subject], Any]


@dataclass(frozen=True)
class Statistics:
    """An array in a few numbers.

    Attributes:
      shape: Its sizes.
      dtype: Its dtype.
      least: The least of the numbers in it that are finite; of their magnitudes, if they are complex.
      largest: The greatest.
      mean: Their mean.
      not_finite: How many are NaN or infinite.
    """

    shape: tuple[int, ...]
    dtype: str
    least: float
    largest: float
    mean: float
    not_finite: int

    @classmethod
    def of(cls, array: Any) -> Statistics:
        """Those of an array."""
        array = np.asarray(array)
        wide = np.abs(array.astype(np.complex128)) if array.dtype.kind == "c" else array.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        least, largest, mean = (float(f(finite)) if finite.size else float("nan") for f in (np.min, np.max, np.mean))
        return cls(array.shape, array.dtype.name, least, largest, mean, int(wide.size - finite.size))

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        text = f"{self.dtype}[{sizes}] from {self.least:.6g} to {self.largest:.6g}, mean {self.mean:.6g}"
        return text + (f", {self.not_finite} not finite" if self.not_finite else "")


@dataclass(frozen=True)
class Place:
    """Where a backend begins to differ.

    Attributes:
      line: `file:line` of the user's program; empty if it is not known.
      primitive: JAX's name of the operation.
      operations: The StableHLO operations that it is lowered to.
      error: How far its value differs, relative to eps * max abs value.
      expected: Its value in JAX.
      found: Its value on the backend.
      iteration: Of the scan that it is in, the iteration, from 0; None if it is in none.
      step: How many values agree before it.
    """

    line: str
    primitive: str
    operations: tuple[str, ...]
    error: float
    expected: Statistics
    found: Statistics
    iteration: int | None
    step: int

    def __str__(self) -> str:
        what = f"{self.primitive} ({', '.join(self.operations)})" if self.operations else self.primitive
        when = "" if self.iteration is None else f", in iteration {self.iteration} of its scan"
        return (
            f"first differs at {self.line or 'an unknown line'}: {what}{when}, by {self.error:.1f}, after "
            f"{self.step} values that agree\n    JAX:   {self.expected}\n    found: {self.found}"
        )


def located(
    subject: Subject,
    backends: Mapping[str, _Runner],
    name: str,
    arguments: Sequence[Any],
    *,
    tolerance: float | None,
    cotangents: Sequence[Any] | None = None,
) -> Place | str:
    """The first step of a function whose value differs on a backend.

    The function that gives all its values is run in JAX and on the backend, once each.

    Args:
      subject: The function, or an artifact: the steps are then the operations of its module.
      backends: Those that there are, `jax` among them.
      name: Of the backend.
      arguments: The flat arguments to run it with.
      tolerance: Up to which error values are the same, as of `allowed`.
      cotangents: Of the inexact results: the steps are those of the gradient, not of the function.

    Returns:
      The place; where there is none, why.
    """
    given = list(arguments) if cotangents is None else [*arguments, *cotangents]
    try:
        subject = _taken_apart(subject, is_gradient=cotangents is not None)
    except LiftUnsupported as error:
        return f"in an artifact, locating evaluates its operations in JAX: {error}".splitlines()[0]
    return _first_that_differs(subject, backends, name, given, tolerance)


def _taken_apart(subject: Subject, *, is_gradient: bool) -> Subject:
    """The function of flat arguments whose steps are compared: of an artifact, what its module is.

    Raises:
      LiftUnsupported: The artifact has an operation that is not lifted.
    """
    if subject.function is None:
        return gradient_lifted(subject.exported) if is_gradient else lifted(subject.exported)
    return _of_gradient(subject) if is_gradient else subject


def _first_that_differs(
    subject: Subject, backends: Mapping[str, _Runner], name: str, arguments: Sequence[Any], tolerance: float | None
) -> Place | str:
    """The first step of a subject whose value differs; where there is none, why."""
    try:
        recorded = _recorded(subject)
        expected = list(map(np.asarray, backends["jax"](recorded).values(arguments)))
        found = list(map(np.asarray, backends[name](recorded).values(arguments)))
    except Exception as error:
        return f"the function that returns all its values fails: {type(error).__name__}: {error}".splitlines()[0]
    specs = [jax.ShapeDtypeStruct(np.shape(a), spec.dtype) for a, spec in zip(arguments, _flat(subject), strict=True)]
    known, own = steps_of(subject.in_jax(), specs), _steps_on(subject, name, specs)
    pairs = _aligned(known, own)
    differing = [
        (*_order(known[i], expected[i], found[j], i, tolerance), i, j)
        for i, j in pairs
        if difference(found[j], expected[i]) > allowed(expected[i], tolerance)
    ]
    if not differing:
        return (
            f"all {len(pairs)} values agree when each is a separate result: the backend's fusion makes the difference"
        )
    first, iteration, _, i, j = min(differing)
    step = known[i]
    return Place(
        line=step.line,
        primitive=step.primitive,
        operations=step.operations(),
        error=difference(found[j], expected[i]),
        expected=Statistics.of(expected[i]),
        found=Statistics.of(found[j]),
        iteration=None if step.scan is None else _iteration(step, expected[i], iteration),
        step=sum(a < first for a, _ in pairs),
    )


def _flat(subject: Subject) -> list[Any]:
    specs: list[Any] = jax.tree.leaves(subject.specs)
    return specs


def _recorded(subject: Subject) -> Subject:
    """The function that gives the value of each step."""
    record = recording(subject.in_jax())

    def values(*args: Any) -> list[Any]:
        return record(*jax.tree.leaves(args))

    return of_function(values, subject.specs, has_gradient=False)


def _steps_on(subject: Subject, name: str, specs: Sequence[Any]) -> list[Step]:
    """The steps as the backend has them: all but JAX's own are traced with the specifications, symbolic sizes too."""
    return steps_of(subject.in_jax(), specs if name == "jax" else _flat(subject))


def _of_gradient(subject: Subject) -> Subject:
    """The gradient of a function, of its arguments and of cotangents."""
    flat, leaves = subject.in_jax(), _flat(subject)
    count = len(leaves)
    inexact = [index for index, spec in enumerate(leaves) if _is_inexact(spec)]
    results = [spec for spec in jax.eval_shape(flat, *leaves) if _is_inexact(spec)]

    def gradient(*args: Any) -> Any:
        arguments, cotangents = list(args[:count]), list(args[count:])

        def differentiated(*values: Any) -> list[Any]:
            for index, value in zip(inexact, values, strict=True):
                arguments[index] = value
            return [result for result in flat(*arguments) if _is_inexact(result)]

        _, pull_back = jax.vjp(differentiated, *(arguments[index] for index in inexact))
        return pull_back(cotangents)

    specs = tuple(specification(spec.shape, spec.dtype) for spec in (*leaves, *results))
    return of_function(gradient, specs, has_gradient=False)


def _is_inexact(spec: Any) -> bool:
    return bool(jax.numpy.issubdtype(spec.dtype, np.inexact))


def _aligned(known: Sequence[Step], own: Sequence[Step]) -> list[tuple[int, int]]:
    """Pairs of steps that are the same: with symbolic sizes a function may have steps of its own."""
    keys = [step.identity for step in known], [step.identity for step in own]
    blocks = SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return [(block.a + i, block.b + i) for block in blocks for i in range(block.size)]


def _order(step: Step, expected: Any, found: Any, index: int, tolerance: float | None) -> tuple[int, int, int]:
    """When a value that differs is computed: those of a scan by iteration first."""
    if step.scan is None:
        return index, 0, index
    if expected.shape != found.shape:
        return step.scan, 0, index
    rows = range(len(expected) - 1, -1, -1) if step.is_reversed else range(len(expected))
    for iteration, row in enumerate(rows):
        if difference(found[row], expected[row]) > allowed(expected[row], tolerance):
            return step.scan, iteration, index
    return step.scan, len(expected), index


def _iteration(step: Step, expected: Any, iteration: int) -> int:
    return len(expected) - 1 - iteration if step.is_reversed else iteration
