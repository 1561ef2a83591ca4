"""What a call costs, as XLA says of the compiled program. Imports JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax

from jaxtf.serialization._errors import ArgumentMismatch
from jaxtf.serialization._jax_values.avals import to_spec
from jaxtf.serialization._record.avals import python_sizes
from jaxtf.serialization._record.cost import Cost
from jaxtf.serialization._record.exported import Exported
from jaxtf.shapepoly import IntegerOperations, evaluate, is_symbolic_dim

__all__ = ["cost_of"]


def cost_of(exported: Exported, sizes: Mapping[str, int]) -> Cost:
    """The cost of a call at these sizes; see `Exported.cost`."""
    symbolic = [size for aval in exported.in_avals for size in aval.shape if is_symbolic_dim(size)]
    variables = sorted({name for size in symbolic for name in size.expression.variables()})
    sizes = {name: size if isinstance(size, bool) else python_sizes([size])[0] for name, size in sizes.items()}
    if sorted(sizes) != variables or not all(type(size) is int and size >= 1 for size in sizes.values()):
        raise ArgumentMismatch(
            f"the cost of '{exported.fun_name}' needs a size from 1 on for each of {', '.join(variables) or 'none'}; "
            f"found {', '.join(f'{name}={size!r}' for name, size in sizes.items()) or 'none'}"
        )
    operations = IntegerOperations(())
    shapes = [tuple(int(evaluate(size, sizes, operations)) for size in aval.shape) for aval in exported.in_avals]
    exported.check_shapes(*shapes)
    specs = [to_spec(replace(aval, shape=shape), None) for aval, shape in zip(exported.in_avals, shapes, strict=True)]
    compiled = jax.jit(exported.flat_call).lower(*specs).compile()
    analysis = compiled.cost_analysis()
    counted: Mapping[str, Any] = (analysis[0] if isinstance(analysis, list) else analysis) or {}
    memory = compiled.memory_analysis()
    return Cost(
        sizes=dict(sizes),
        platform=jax.default_backend(),
        flops=_integer(counted.get("flops")),
        bytes_accessed=_integer(counted.get("bytes accessed")),
        temporary_bytes=_integer(getattr(memory, "temp_size_in_bytes", None)),
        argument_bytes=_integer(getattr(memory, "argument_size_in_bytes", None)),
        result_bytes=_integer(getattr(memory, "output_size_in_bytes", None)),
        code_bytes=_integer(getattr(memory, "generated_code_size_in_bytes", None)),
    )


def _integer(value: Any) -> int | None:
    """A count; XLA has -1 for what it does not know."""
    return None if value is None or value < 0 else int(value)
