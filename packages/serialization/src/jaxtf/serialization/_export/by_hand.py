"""A record made by hand, of a module that `export` did not make and of JAX's trees and avals.

Nothing vouches for the record and the module being of each other: it is checked as one that was read from bytes, before
it is first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._jax_values.avals import to_aval
from jaxtf.serialization._jax_values.effects import to_effect
from jaxtf.serialization._jax_values.paths import argument_paths, result_paths
from jaxtf.serialization._jax_values.settings import default_calling_convention_version, producer, registered_platforms
from jaxtf.serialization._jax_values.shardings import from_jax
from jaxtf.serialization._jax_values.sizes import with_own_sizes
from jaxtf.serialization._record.avals import Aval
from jaxtf.serialization._record.checks import checks_of
from jaxtf.serialization._record.effects import Effect
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.platforms import check_platforms
from jaxtf.serialization._record.shardings import NamedSharding
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._record.versions import check_calling_convention_version
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["from_parts"]


def from_parts(
    *,
    fun_name: str,
    in_tree: Any,
    in_avals: Sequence[Any],
    out_tree: Any,
    out_avals: Sequence[Any],
    mlir_module_serialized: bytes,
    platforms: Sequence[str],
    calling_convention_version: int | None,
    in_shardings: Sequence[Any] | None,
    out_shardings: Sequence[Any] | None,
    nr_devices: int,
    ordered_effects: Sequence[Any],
    unordered_effects: Sequence[Any],
    disabled_safety_checks: Sequence[Any],
    module_kept_var_idx: Sequence[int] | None,
    uses_global_constants: bool | None,
    uses_shardy: bool | None,
    vjp: Exported | None,
) -> Exported:
    """As `Exported.from_parts` says."""
    _check_tree("in_tree", in_tree, in_avals)
    _check_tree("out_tree", out_tree, out_avals)
    own_in, own_out = with_own_sizes((list(in_avals), list(out_avals)))
    arguments, results = tuple(map(_aval, own_in)), tuple(map(_aval, own_out))
    if calling_convention_version is None:
        calling_convention_version = default_calling_convention_version()
    names = check_platforms(platforms, registered=registered_platforms())
    if uses_global_constants is None:
        sizes = [size for aval in (*arguments, *results) for size in aval.shape]
        uses_global_constants = len(names) > 1 or any(map(is_symbolic_dim, sizes))
    module = bytes(mlir_module_serialized)
    facts = stablehlo_facts(module)
    return Exported(
        fun_name=fun_name,
        in_structure=Tree.of_treedef(in_tree),
        in_avals=arguments,
        in_names=argument_paths(in_tree),
        in_shardings=_own("in_shardings", in_shardings, arguments),
        out_structure=Tree.of_treedef(out_tree),
        out_avals=results,
        out_names=result_paths(out_tree),
        out_shardings=_own("out_shardings", out_shardings, results),
        platforms=names,
        ordered_effects=tuple(map(_effect, ordered_effects)),
        unordered_effects=tuple(map(_effect, unordered_effects)),
        disabled_safety_checks=checks_of(disabled_safety_checks),
        nr_devices=nr_devices,
        mlir_module_serialized=module,
        stablehlo_version=facts.stablehlo_version,
        calling_convention_version=check_calling_convention_version(calling_convention_version),
        module_kept_var_idx=tuple(range(len(arguments)) if module_kept_var_idx is None else module_kept_var_idx),
        uses_global_constants=uses_global_constants,
        uses_shardy=facts.uses_shardy if uses_shardy is None else uses_shardy,
        producer=producer(),
        _make_vjp=None if vjp is None else lambda: vjp,
        _is_read=True,
    )


def _aval(aval: Any) -> Aval:
    return aval if isinstance(aval, Aval) else to_aval(aval)


def _effect(effect: Any) -> Effect:
    return effect if isinstance(effect, Effect) else to_effect(effect)


def _check_tree(name: str, tree: Any, avals: Sequence[Any]) -> None:
    if tree.num_leaves != len(avals):
        of = "in_avals" if name == "in_tree" else "out_avals"
        raise SerializationError(f"{name} has {tree.num_leaves} leaves, and {of} has {len(avals)} entries: {tree}")
    node_data = tree.node_data()
    if name == "in_tree" and not (node_data and node_data[0] is tuple and len(tree.children()) == 2):
        raise SerializationError(
            f"in_tree must be the structure of (args, kwargs). Got: {tree}\n"
            "  remedy: jax.tree.structure((args, kwargs)), with {} where there are no keyword arguments"
        )


def _own(name: str, shardings: Sequence[Any] | None, avals: Sequence[Any]) -> tuple[NamedSharding | None, ...]:
    """Our form of shardings in JAX's form or ours, one for each aval."""
    if shardings is None:
        return (None,) * len(avals)
    if len(shardings) != len(avals):
        raise SerializationError(f"{name} has {len(shardings)} entries for {len(avals)} arrays")
    own = [
        sharding if isinstance(sharding, NamedSharding) else from_jax(sharding, aval.ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]
    for given, recorded in zip(shardings, own, strict=True):
        if given is not None and recorded is None:
            raise SerializationError(
                f"a sharding of {name} has no form in a record: {given!r:.80}\n"
                "  remedy: a jax.sharding.NamedSharding that splits each axis or does not, or None"
            )
    return tuple(own)
