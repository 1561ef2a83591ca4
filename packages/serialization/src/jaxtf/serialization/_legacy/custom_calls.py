"""Custom calls that jaxlib no longer has, rewritten into those that it has.

Until JAX 0.4.38 LAPACK was called through untyped custom calls: sizes and flags were scalar
operands, workspaces were results. jaxlib has since registered only the typed calls, named
`lapack_*_ffi`, whose flags are attributes and which find sizes and workspaces themselves.
`rewrite_removed_custom_calls(module)` replaces the one by the other, in place; also the typed
triangular solve of JAX 0.5, which had an operand more than today's.

Each routine is one entry: its operands and results before and after, by name, and how its
flags become attributes. Results that the typed call does not give are workspaces, which nobody
reads, and success codes (`info`), which are 0 for every call with valid sizes. What is
removed and not rewritten stands in `NOT_REWRITTEN`, with the reason.

The calls are exact translations: the same LAPACK routine runs on the same numbers.
Source: the modules that JAX 0.4.30, 0.4.38 and 0.5.3 wrote (tests/artifacts), and those that
JAX 0.6.2 wrote of the same programs; the descriptions of the routines at netlib.org/lapack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import ArtifactError

__all__ = ["NOT_REWRITTEN", "OPERATIONS_OF_XLA", "REWRITTEN", "Routine", "rewrite_removed_custom_calls"]

_ATTRIBUTES_IN_MHLO = 1  # with this API version, XLA reads the dictionary `mhlo.backend_config`


@dataclass(frozen=True)
class Routine:
    """How calls of one routine are rewritten.

    Attributes:
      target: The target of the typed call.
      operands: Names of the untyped call's operands, without those that give shapes of results.
      results: Names of its results; workspaces start with `work`.
      typed_operands: Names of the operands that the typed call takes.
      typed_results: Names of the results that it gives.
      attributes: Its attributes, from a function that reads a scalar operand by name; None if the
        call is a typed one already, which keeps its own.
    """

    target: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    typed_operands: tuple[str, ...]
    typed_results: tuple[str, ...]
    attributes: Callable[[Callable[[str], int]], dict[str, int | str]] | None

    def takes(self, call: Any) -> bool:
        """Whether `call` is to be rewritten: a typed one only if it has an operand too many."""
        if self.attributes is not None:
            return True
        shapes = sum(shape is not None for shape in _shape_operands(call))
        return len(call.operands) - shapes != len(self.typed_operands)


def rewrite_removed_custom_calls(module: ir.Module) -> tuple[str, ...]:
    """Rewrites, in place, custom calls that jaxlib no longer has; returns their targets.

    A module without any is left as it is. Calls that cannot be rewritten stay; their targets
    are those of `NOT_REWRITTEN`. If the module calls LAPACK, LAPACK is made ready: in a process
    that has not lowered such a call itself, the call would crash.

    Raises:
      ArtifactError: A call that does not look as JAX wrote it.
    """
    calls: list[tuple[Any, Routine]] = []
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        op = operation.operation
        if op.name == "stablehlo.custom_call":
            target = _target(op)
            found.add(target)
            routine = REWRITTEN.get(target)
            if routine is not None and routine.takes(op):
                calls.append((op, routine))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    targets = {_target(call): None for call, _ in calls}
    with module.context:
        for call, routine in calls:
            _rewrite(call, routine)
    if any(target.startswith(("lapack_", "blas_")) for target in found):
        _jax.initialize_lapack()
    return tuple(targets)


# --- the table ---


def _entries() -> Iterator[tuple[str, Routine]]:
    """The untyped target of each routine and how it is rewritten, for LAPACK's element types."""

    def no_attributes(_: Callable[[str], int]) -> dict[str, int | str]:
        return {}

    def triangle(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {"uplo": "L" if scalar("lower") else "U"}

    def eigenvectors_of_triangle(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {"mode": "V", **triangle(scalar)}

    def svd_mode(scalar: Callable[[str], int]) -> dict[str, int | str]:
        if not scalar("compute_uv"):
            return {"mode": "N"}
        return {"mode": "A" if scalar("full_matrices") else "S"}

    def eigenvector_sides(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {"compute_left": chr(scalar("jobvl")), "compute_right": chr(scalar("jobvr"))}

    def schur_mode(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {"mode": chr(scalar("jobvs")), "sort": chr(scalar("sort"))}

    def row_range(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {"low": scalar("ilo"), "high": scalar("ihi")}

    def triangular_system(scalar: Callable[[str], int]) -> dict[str, int | str]:
        return {
            "side": "L" if scalar("left") else "R",
            "uplo": "L" if scalar("lower") else "U",
            "trans_x": "NTC"[scalar("transposed")],
            "diag": "U" if scalar("unit_diagonal") else "N",
        }

    for e in "sdcz":
        real = e in "sd"

        def entry(
            name: str,
            operands: str,
            results: str,
            typed: str,
            attributes: Callable[[Callable[[str], int]], dict[str, int | str]] = no_attributes,
            *,
            element: str = e,
            library: str = "lapack",
        ) -> tuple[str, Routine]:
            typed_operands, _, typed_results = typed.partition(" -> ")
            return f"{library}_{element}{name}", Routine(
                target=f"lapack_{element}{name}_ffi",
                operands=tuple(operands.split()),
                results=tuple(results.split()),
                typed_operands=tuple(typed_operands.split()),
                typed_results=tuple(typed_results.split()),
                attributes=attributes,
            )

        # Cholesky, LU and QR factors; the product of elementary reflectors.
        yield entry("potrf", "lower batch n a", "a info", "a -> a info", triangle)
        yield entry("getrf", "batch m n a", "a pivots info", "a -> a pivots info")
        yield entry("geqrf", "batch m n lwork a", "a tau info work", "a -> a tau")
        product = "orgqr" if real else "ungqr"
        yield entry(product, "batch m n k lwork a tau", "a info work", "a tau -> a")
        # Singular values; eigenvalues of symmetric (Hermitian) and of general matrices; Schur form.
        workspaces = "work1 work2" if real else "work1 work2 work3"
        svd = "full_matrices compute_uv batch m n lwork a"
        yield entry("gesdd", svd, f"a s u vt info {workspaces}", "a -> a s u vt info", svd_mode)
        symmetric = "syevd" if real else "heevd"
        yield entry(symmetric, "lower batch n a", f"a w info {workspaces}", "a -> a w info", eigenvectors_of_triangle)
        values = "wr wi" if real else "w"
        workspaces = "work1 work2 work3" if real else "work1 work2"
        eig = "batch n jobvl jobvr a"
        yield entry("geev", eig, f"{workspaces} {values} vl vr info", f"a -> {values} vl vr info", eigenvector_sides)
        schur = f"a {values} vs selected info" if real else f"a work {values} vs selected info"
        yield entry("gees", "batch n jobvs sort a", schur, f"a -> a vs {values} selected info", schur_mode)
        # Hessenberg and tridiagonal forms.
        yield entry("gehrd", "n ilo ihi lda batch lwork a", "a tau info work", "a -> a tau info", row_range)
        reduction = "sytrd" if real else "hetrd"
        yield entry(reduction, "n lower lda batch lwork a", "a d e tau info work", "a -> a d e tau info", triangle)
        # Triangular systems. The typed call has no factor `alpha`; JAX only ever gave 1.
        system = "left lower transposed unit_diagonal m n batch alpha a b"
        yield entry("trsm", system, "x", "a b -> x", triangular_system, library="blas")
        # JAX 0.5 gave the factor to the typed call too; its attributes stay.
        yield f"lapack_{e}trsm_ffi", replace(entry("trsm", "a b alpha", "x", "a b -> x")[1], attributes=None)


REWRITTEN: Mapping[str, Routine] = dict(_entries())
"""The removed targets that are rewritten, and how."""

_DESCRIPTOR = (
    "its sizes are in an opaque descriptor of the jaxlib that wrote it, and no artifact here holds one to check"
)


def _gpu_targets() -> Iterator[str]:
    """What old releases called on GPUs and declared stable, or used beside."""
    for vendor in ("cu", "hip"):
        yield f"{vendor}_threefry2x32"
        yield from (
            f"{vendor}solver_{name}" for name in ("geqrf", "orgqr", "getrf", "syevj", "syevd", "gesvd", "gesvdj")
        )
        yield from (f"{vendor}blas_{name}_batched" for name in ("geqrf", "getrf"))


NOT_REWRITTEN: Mapping[str, str] = dict.fromkeys(_gpu_targets(), _DESCRIPTOR)
"""The removed targets that are not rewritten, all of them for GPUs, and why."""

OPERATIONS_OF_XLA = frozenset(
    (
        *(f"mhlo.{name}" for name in ("acosh", "asinh", "atanh", "erf", "sinh", "tan", "topk")),
        "xla.sdy.FuncResultSharding",
    )
)
"""Targets that no exporter calls: serialization until JAX 0.9.0 wrote operations in this form, which XLA reads back."""


# --- rewriting one call ---


def _rewrite(call: Any, routine: Routine) -> None:
    """Puts the typed call in the place of `call`."""
    shapes = _shape_operands(call)
    count = len(call.operands) - sum(shape is not None for shape in shapes)
    if count != len(routine.operands) or len(call.results) != len(routine.results):
        raise ArtifactError(
            f"a call of '{_target(call)}' with {count} operands and {len(call.results)} results; "
            f"JAX wrote {len(routine.operands)} and {len(routine.results)}"
        )
    given = [routine.results.index(name) for name in routine.typed_results]
    arrays = [routine.operands.index(name) for name in routine.typed_operands]
    sizes = [shape for index in given if (shape := shapes[index]) is not None]
    taken = [*arrays, *sizes]
    attributes = _kept_attributes(call) | {
        "call_target_name": ir.StringAttr.get(routine.target),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _ATTRIBUTES_IN_MHLO),
        "mhlo.backend_config": _flags(call, routine),
    }
    for name, chosen in (("operand_layouts", taken), ("result_layouts", given)):
        if name in call.attributes:
            layouts = ir.ArrayAttr(call.attributes[name])
            attributes[name] = ir.ArrayAttr.get([layouts[index] for index in chosen])
    if sizes:  # all results have one, or none has
        positions = np.arange(len(arrays), len(taken), dtype=np.int64)
        attributes["indices_of_shape_operands"] = ir.DenseIntElementsAttr.get(positions)
    with ir.InsertionPoint(call), call.location:
        typed = ir.Operation.create(
            "stablehlo.custom_call",
            results=[call.results[index].type for index in given],
            operands=[call.operands[index] for index in taken],
            attributes=attributes,
        )
        for name, old, shape in zip(routine.results, list(call.results), shapes, strict=True):
            if name in routine.typed_results:
                old.replace_all_uses_with(typed.results[routine.typed_results.index(name)])
            elif name == "info":
                old.replace_all_uses_with(_zeros(old.type, None if shape is None else call.operands[shape]))
            elif next(iter(old.uses), None) is not None:
                raise ArtifactError(f"a workspace of '{_target(call)}' is used, which no program of JAX does")
    call.erase()


def _flags(call: Any, routine: Routine) -> Any:
    """The attributes of the typed call, as an attribute."""

    def scalar(name: str) -> int:
        constant = _constant(call, routine.operands.index(name), name)
        return int(ir.DenseIntElementsAttr(constant.attributes["value"])[0])

    if "alpha" in routine.operands and not _is_one(_constant(call, routine.operands.index("alpha"), "alpha")):
        raise ArtifactError(f"a call of '{_target(call)}' with a factor other than 1; JAX wrote none")
    if routine.attributes is None:
        return call.attributes["mhlo.backend_config"]
    try:
        return ir.DictAttr.get({name: _attribute(value) for name, value in routine.attributes(scalar).items()})
    except ArtifactError:
        raise
    except (ValueError, IndexError, OverflowError) as error:
        raise ArtifactError(f"a call of '{_target(call)}' with flags that LAPACK does not have") from error


def _target(call: Any) -> str:
    return str(ir.StringAttr(call.attributes["call_target_name"]).value)


_REPLACED = frozenset(
    (
        "call_target_name",
        "api_version",
        "backend_config",
        "mhlo.backend_config",
        "operand_layouts",
        "result_layouts",
        "output_operand_aliases",  # permission to reuse memory; today's calls copy where they are not given it
        "indices_of_shape_operands",
    )
)


def _kept_attributes(call: Any) -> dict[str, Any]:
    """Attributes that have nothing to do with the routine, such as shardings."""
    names = [attribute if isinstance(attribute, str) else attribute.name for attribute in call.attributes]
    return {name: call.attributes[name] for name in names if name not in _REPLACED}


_FLAGS = frozenset("ACLNRSTUV")


def _attribute(value: int | str) -> Any:
    """A number as a 32-bit integer, a letter as its code."""
    if isinstance(value, str):
        if value not in _FLAGS:
            raise ValueError(value)
        return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(8), ord(value))
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _shape_operands(call: Any) -> list[int | None]:
    """Of each result, the position of the operand that gives its shape; None where shapes are static."""
    if "indices_of_shape_operands" not in call.attributes:
        return [None] * len(call.results)
    indices = list(ir.DenseIntElementsAttr(call.attributes["indices_of_shape_operands"]))
    if len(indices) != len(call.results) or not all(0 <= index < len(call.operands) for index in indices):
        raise ArtifactError(f"a call of '{_target(call)}' whose results and shapes do not match")
    return indices


def _constant(call: Any, index: int, name: str) -> Any:
    """The operation that makes a scalar operand."""
    owner = call.operands[index].owner
    operation = getattr(owner, "operation", owner)
    if getattr(operation, "name", None) != "stablehlo.constant":
        raise ArtifactError(f"'{name}' of a call of '{_target(call)}' is not a constant; JAX wrote one")
    return operation


_ONE = ("dense<1.000000e+00>", "dense<(1.000000e+00,0.000000e+00)>")


def _is_one(constant: Any) -> bool:
    """Whether a constant of a real or complex type is 1; by its text, as jaxlib gives no access to complex values."""
    return any(one in constant.get_asm() for one in _ONE)


def _zeros(type_: Any, shape: Any) -> Any:
    """Zeros of an integer type, of the given shape where the type leaves it open."""
    ranked = ir.RankedTensorType(type_)
    zero = ir.IntegerAttr.get(ranked.element_type, 0)
    if ranked.has_static_shape:
        return stablehlo.constant(ir.DenseElementsAttr.get_splat(ranked, zero))
    scalar = stablehlo.constant(ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], ranked.element_type), zero))
    return stablehlo.dynamic_broadcast_in_dim(ranked, scalar, shape, ir.DenseI64ArrayAttr.get([]))
