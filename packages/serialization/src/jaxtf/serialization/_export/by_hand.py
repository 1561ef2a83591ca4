"""The parts of a record that is made by hand (`Exported.from_parts`), from JAX's form or ours to ours. Imports JAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._jax_values.avals import to_aval
from jaxtf.serialization._jax_values.effects import to_effect
from jaxtf.serialization._jax_values.paths import argument_paths, result_paths
from jaxtf.serialization._jax_values.settings import default_calling_convention_version, registered_platforms
from jaxtf.serialization._jax_values.shardings import from_jax
from jaxtf.serialization._jax_values.sizes import with_own_sizes
from jaxtf.serialization._record.avals import Aval, python_sizes
from jaxtf.serialization._record.effects import Effect
from jaxtf.serialization._record.platforms import check_platforms
from jaxtf.serialization._record.shardings import NamedSharding
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._record.versions import check_calling_convention_version
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["Side", "both_sides", "calling_convention", "known_platforms", "own_effects"]


@dataclass(frozen=True)
class Side:
    """The arguments of a function, or its results.

    Attributes:
      structure: Their pytree.
      avals: Of each leaf.
      names: The path of each leaf.
      shardings: Of each leaf.
    """

    structure: Tree
    avals: tuple[Aval, ...]
    names: tuple[str, ...]
    shardings: tuple[NamedSharding | None, ...]

    @property
    def has_symbolic_sizes(self) -> bool:
        """Whether a size is symbolic."""
        return any(is_symbolic_dim(size) for aval in self.avals for size in aval.shape)


def both_sides(
    arguments: tuple[Any, Sequence[Any], Sequence[Any] | None], results: tuple[Any, Sequence[Any], Sequence[Any] | None]
) -> tuple[Side, Side]:
    """The arguments and the results, each from a treedef of JAX, avals and shardings; their sizes are of one scope."""
    (in_tree, in_avals, in_shardings), (out_tree, out_avals, out_shardings) = arguments, results
    _check_tree("in_tree", in_tree, in_avals)
    _check_tree("out_tree", out_tree, out_avals)
    own_in, own_out = with_own_sizes((list(in_avals), list(out_avals)))
    taken, given = tuple(map(_aval, own_in)), tuple(map(_aval, own_out))
    return (
        Side(Tree.of_treedef(in_tree), taken, argument_paths(in_tree), _own("in_shardings", in_shardings, taken)),
        Side(Tree.of_treedef(out_tree), given, result_paths(out_tree), _own("out_shardings", out_shardings, given)),
    )


def known_platforms(platforms: Sequence[str]) -> tuple[str, ...]:
    """The lowering platforms, all of them known to JAX here."""
    return check_platforms(platforms, registered=registered_platforms())


def calling_convention(version: int | None) -> int:
    """The calling convention version; for None what `export` would take."""
    return check_calling_convention_version(default_calling_convention_version() if version is None else version)


def own_effects(effects: Sequence[Any]) -> tuple[Effect, ...]:
    """Our form of effects in JAX's form or ours."""
    return tuple(effect if isinstance(effect, Effect) else to_effect(effect) for effect in effects)


def _aval(aval: Any) -> Aval:
    return replace(aval, shape=python_sizes(aval.shape)) if isinstance(aval, Aval) else to_aval(aval)


def _check_tree(name: str, tree: Any, avals: Sequence[Any]) -> None:
    if tree.num_leaves != len(avals):
        avals_name = "in_avals" if name == "in_tree" else "out_avals"
        raise SerializationError(
            f"{name} has {tree.num_leaves} leaves, and {avals_name} has {len(avals)} entries: {tree}"
        )
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
                f"a sharding of {name} cannot be recorded: {given!r:.80}\n"
                "  remedy: a jax.sharding.NamedSharding that splits each axis or does not, or None"
            )
    return tuple(own)
