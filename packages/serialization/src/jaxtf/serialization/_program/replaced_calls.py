"""Custom calls that jaxlib no longer has, rewritten into those that it has.

Until JAX 0.4.38 LAPACK was called through untyped custom calls: sizes and flags were scalar
operands, workspaces were results. jaxlib has since registered only the typed calls, named
`lapack_*_ffi`, whose flags are attributes and which find sizes and workspaces themselves.
`rewrite_removed_custom_calls(module)` replaces the one by the other, in place; also the typed
triangular solve of JAX 0.5, which had an operand more than today's.

The routines are data (`removed_calls`). The calls are exact translations: the same LAPACK routine
runs on the same numbers.
Source: the modules that JAX 0.4.30, 0.4.38 and 0.5.3 wrote (tests/artifacts), and those that
JAX 0.6.2 wrote of the same programs; the descriptions of the routines at netlib.org/lapack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._program.attributes import constant_text
from jaxtf.serialization._program.removed_calls import REWRITTEN, Routine

__all__ = ["rewrite_removed_custom_calls"]

_ATTRIBUTES_IN_MHLO = 1  # with this API version, XLA reads the dictionary `mhlo.backend_config`


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
            if routine is not None and _is_removed(op, routine):
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


def _is_removed(call: Any, routine: Routine) -> bool:
    """Whether `call` is to be rewritten: a typed one only if it has an operand too many."""
    if routine.attributes is not None:
        return True
    shapes = sum(shape is not None for shape in _shape_operands(call))
    return len(call.operands) - shapes != len(routine.typed_operands)


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
    return constant_text(constant).startswith(_ONE)


def _zeros(type_: Any, shape: Any) -> Any:
    """Zeros of an integer type, of the given shape where the type leaves it open."""
    ranked = ir.RankedTensorType(type_)
    zero = ir.IntegerAttr.get(ranked.element_type, 0)
    if ranked.has_static_shape:
        return stablehlo.constant(ir.DenseElementsAttr.get_splat(ranked, zero))
    scalar = stablehlo.constant(ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], ranked.element_type), zero))
    return stablehlo.dynamic_broadcast_in_dim(ranked, scalar, shape, ir.DenseI64ArrayAttr.get([]))
