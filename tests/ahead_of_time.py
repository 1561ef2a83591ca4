"""A function's artifact for several platforms, written to a file, read back, compiled for a device that is not there.

For `test_aot.py` and `aot_table.py`. What compiles shows that lowering, calling convention, refinement of symbolic
sizes and custom calls are right for the target. Nothing is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxtf.serialization import SerializationError, deserialize, export
from jaxtf.shapepoly import symbolic_args_specs, symbolic_shape

from .battery.entry import Entry

__all__ = ["OVER_FOUR_DEVICES", "PLATFORMS", "Program", "compile_for", "program", "program_of"]

PLATFORMS = ("cpu", "cuda", "tpu")


@dataclass(frozen=True)
class Program:
    """What is compiled of a function: itself, and its VJP if it has one.

    Attributes:
      parts: By what it is, `function` and perhaps `vjp`, a callable and the arrays or avals that it takes.
      from_file: Whether it was read from the file; not where a pytree type of the function has no name in artifacts.
    """

    parts: dict[str, tuple[Callable[..., Any], Sequence[Any]]]
    from_file: bool

    def refusals(self, device: Any) -> dict[str, str]:
        """What the compiler of a device says against the parts that it does not compile."""
        errors = {}
        for name, (function, arguments) in self.parts.items():
            try:
                compile_for(device, function, arguments)
            except jax.errors.JaxRuntimeError as error:
                errors[name] = str(error)
        return errors


def compile_for(device: Any, function: Callable[..., Any], avals: Sequence[Any]) -> Any:
    """Compiles a function for a device that need not be there."""
    sharding = SingleDeviceSharding(device)
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding) for aval in avals]
    return jax.jit(function).lower(*specs).compile()


def program_of(entry: Entry, file: Path) -> Program:
    """An entry of the battery, exported for all platforms with symbolic sizes, written to a file and read from it."""
    arguments = entry.arguments(1)
    examples = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arguments]
    specs = symbolic_args_specs(examples, list(entry.shapes), constraints=entry.constraints)
    differentiable = entry.differentiable and entry.gradient_refusal is None
    return program(jax.jit(entry.function), specs, arguments, file, PLATFORMS, differentiable=differentiable)


def program(
    function: Callable[..., Any],
    specs: Sequence[Any],
    arguments: Sequence[Any],
    file: Path,
    platforms: Sequence[str],
    *,
    differentiable: bool,
) -> Program:
    """A function, exported for the platforms at the specs, written to a file and read from there.

    Args:
      arguments: Arrays of the sizes to compile for.
      differentiable: Whether its VJP is to be compiled too.
    """
    exported = export(function, platforms=platforms)(*specs)
    from_file = False
    with contextlib.suppress(SerializationError):
        file.write_bytes(exported.serialize(int(differentiable)))
        exported, from_file = deserialize(file.read_bytes()), True
    parts: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {"function": (exported.call, arguments)}
    results = jax.tree.leaves(jax.eval_shape(exported.call, *arguments))
    if differentiable and all(jnp.issubdtype(result.dtype, jnp.inexact) for result in results):
        parts["vjp"] = (exported.vjp().flat_call, [*arguments, *results])
    return Program(parts, from_file)


def _compile_over(mesh: Mesh, function: Callable[..., Any], spec: Any, shape: tuple[int, ...]) -> None:
    """Compiles for a mesh what its artifact holds of a function whose argument is split by rows."""
    split = NamedSharding(mesh, PartitionSpec("rows"))
    exported = deserialize(export(jax.jit(function, in_shardings=split), platforms=PLATFORMS)(spec).serialize())
    assert exported.nr_devices == 4
    jax.jit(exported.call).lower(jax.ShapeDtypeStruct(shape, jnp.float32, sharding=split)).compile()


def _shard_mapped(devices: Sequence[Any]) -> None:
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("rows", "columns"))

    def total(x: jax.Array) -> jax.Array:
        return jax.lax.psum(x, "rows") * 2

    mapped = jax.shard_map(total, mesh=mesh, in_specs=PartitionSpec("rows"), out_specs=PartitionSpec())
    _compile_over(mesh, mapped, jax.ShapeDtypeStruct((8, 4), jnp.float32), (8, 4))


def _constrained(devices: Sequence[Any]) -> None:
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("rows", "columns"))
    both = NamedSharding(mesh, PartitionSpec("rows", "columns"))

    def product(x: jax.Array) -> jax.Array:
        return jnp.tanh(jax.lax.with_sharding_constraint(x @ x.T, both))

    _compile_over(mesh, product, jax.ShapeDtypeStruct((8, 4), jnp.float32), (8, 4))


def _symbolic(devices: Sequence[Any]) -> None:
    spec = jax.ShapeDtypeStruct(symbolic_shape("4*b, 4"), jnp.float32)
    _compile_over(Mesh(np.array(devices[:4]), ("rows",)), lambda x: x @ x.T, spec, (16, 4))


OVER_FOUR_DEVICES: dict[str, Callable[[Sequence[Any]], None]] = {
    "shard_map": _shard_mapped,
    "a sharding constraint": _constrained,
    "symbolic sizes": _symbolic,
}
"""What is compiled for four devices: each takes them, and raises if it does not compile."""
