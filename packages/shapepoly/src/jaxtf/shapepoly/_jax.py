"""The compatibility module for JAX: with `_jax_error` what imports it here, once JAX is loaded or asked for.

Importing this module makes JAX accept `Dimension` wherever it accepts a Python integer: in shapes,
and as a value that becomes a scalar of the default integer type. Nothing of it changes how JAX treats
other types.

`PRIVATE_NAMES` has each private name of JAX, those that are reached through objects too; `DUE`, what JAX is going to
remove. Tests hold both against the JAX that is installed (tests/test_private_names.py).
All else is public: `jax.interpreters.xla.canonicalize_dtype_handlers`, `jax.interpreters.mlir`,
`jax.extend.core.Primitive`, `jax.core.ShapedArray`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util
from jax._src import core as _private_core
from jax._src import dtypes as _private_dtypes
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir, xla

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._inconclusive import inconclusive

# Each private name: where JAX has it -> the newest JAX that it was seen in, and why it is needed.
PRIVATE_NAMES = {
    "jax._src.core.pytype_aval_mappings": (
        "0.12.0.1",
        "the type of a value of a Python class; `jax.core` has it, deprecated, and no public function registers one",
    ),
    "jax._src.dtypes.python_scalar_types_to_dtypes": ("0.12.0.1", "the dtype of Python's scalar classes, as for `int`"),
    "jax._src.dtypes.register_weak_scalar_type": ("0.12.0.1", "which classes promote weakly, as `int` does"),
    # What a lowering rule reads; it has no public documentation.
    "jax._src.interpreters.mlir.LoweringRuleContext.module_context": ("0.12.0.1", "the module that is lowered into"),
    "jax._src.interpreters.mlir.LoweringRuleContext.dim_var_values": ("0.12.0.1", "its dimension variables"),
    "jax._src.interpreters.mlir.ModuleContext.shape_poly_state": ("0.12.0.1", "gives their names"),
    "jax._src.interpreters.mlir.ShapePolyLoweringState.dim_vars": ("0.12.0.1", "their names"),
}

# What JAX is going to remove: where it is -> the newest JAX that it was seen in, and what is due when it is gone.
DUE = {
    "jax._src.core.pytype_aval_mappings": (
        "0.12.0.1",
        "`jax.core.pytype_aval_mappings` is deprecated, in 0.10.2 too. Then `Dimension` must be made an operand in "
        "another way.",
    ),
}


def dimension_dtype() -> np.dtype[Any]:
    """Returns the dtype of a dimension's value: the default integer type."""
    return np.dtype(jax.dtypes.result_type(int))


def dimension_aval(dim: Any = None) -> ShapedArray:
    """Returns the type of a dimension's value: a scalar that promotes weakly, as a Python integer does."""
    return ShapedArray((), dimension_dtype(), weak_type=True)


def dimension_value(dimension: Dimension) -> jax.Array:
    """Returns the value of a dimension in the program that is being traced."""
    value: jax.Array = dimension_value_p.bind(dim=dimension)
    return value


class JaxOperations:
    """Arithmetic on JAX integers: sizes that are known when the program runs."""

    def constant(self, value: int) -> Any:
        """Returns the integer in the dtype of dimensions.

        Raises:
          OverflowError: It has no such integer.
        """
        dtype = np.dtype(dimension_dtype())
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise OverflowError(
                f"A size is computed with the number {value}, which {dtype.name}, the dtype of sizes in a program, "
                "does not hold. Possible remedy: divide and multiply by smaller numbers, or export in jax.enable_x64()."
            )
        return np.asarray(value, dtype)

    def add(self, a: Any, b: Any) -> Any:
        """Returns a + b."""
        return lax.add(*_same_dtype(a, b))

    def multiply(self, a: Any, b: Any) -> Any:
        """Returns a * b."""
        return lax.mul(*_same_dtype(a, b))

    def floordiv(self, a: Any, b: Any) -> Any:
        """Returns a // b."""
        return jnp.floor_divide(*_same_dtype(a, b))

    def mod(self, a: Any, b: Any) -> Any:
        """Returns a % b."""
        return jnp.remainder(*_same_dtype(a, b))

    def maximum(self, a: Any, b: Any) -> Any:
        """Returns the larger one."""
        return lax.max(*_same_dtype(a, b))

    def minimum(self, a: Any, b: Any) -> Any:
        """Returns the smaller one."""
        return lax.min(*_same_dtype(a, b))


def _same_dtype(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns both in the dtype of dimensions."""
    dtype = dimension_dtype()
    return lax.convert_element_type(a, dtype), lax.convert_element_type(b, dtype)


def _value_outside_of_tracing(*, dim: Dimension) -> Any:
    raise inconclusive(
        f"Symbolic dimension '{dim}' used in a context that requires a constant: its value exists only inside a\n"
        f"  function that is traced with it in the shapes of its arguments"
    )


def _lower_value(ctx: Any, *, dim: Dimension) -> Any:
    """Lowers a dimension's value to arithmetic on the variables that the module takes as arguments."""
    names = ctx.module_context.shape_poly_state.dim_vars

    def value(*sizes: Any) -> Any:
        return lax.convert_element_type(dim._evaluate(dict(zip(names, sizes, strict=True))), dimension_dtype())

    inner = ctx.replace(avals_in=[dimension_aval()] * len(names), tokens_out=None)
    return mlir.lower_fun(value, multiple_results=False)(inner, *ctx.dim_var_values)


dimension_value_p = Primitive("symbolic_dimension_value")
"""A primitive without operands: the value of its parameter `dim`."""

dimension_value_p.def_abstract_eval(dimension_aval)
dimension_value_p.def_impl(_value_outside_of_tracing)
mlir.register_lowering(dimension_value_p, _lower_value)

_private_core.pytype_aval_mappings[Dimension] = dimension_aval
_private_dtypes.register_weak_scalar_type(Dimension)
_private_dtypes.python_scalar_types_to_dtypes[Dimension] = np.dtype("int64")
xla.canonicalize_dtype_handlers[Dimension] = lambda dimension: dimension


class Container(NamedTuple):
    """A container of a pytree, taken apart by one level.

    Attributes:
      structure: What it has in common with all containers of its type, its keys and its length.
      children: What it contains, with paths such as `['w']` from the container.
    """

    structure: Any
    children: tuple[tuple[str, Any], ...]


def container(node: Any) -> Container | None:
    """Returns a node of a pytree taken apart; None for a leaf. `None` is a container of nothing."""
    children, structure = tree_util.tree_flatten_with_path(node, is_leaf=lambda inner: inner is not node)
    if any(not path for path, _ in children):
        return None
    # With the type: JAX's structures of two dataclasses are equal if they have as many fields (JAX 0.10.2).
    return Container((type(node), structure), tuple((tree_util.keystr(path), child) for path, child in children))


def flat(tree: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Returns the leaves of a pytree with their paths from its root, and its structure."""
    leaves, structure = tree_util.tree_flatten_with_path(tree)
    return [(tree_util.keystr(path), leaf) for path, leaf in leaves], structure


def unflat(structure: Any, leaves: Sequence[Any]) -> Any:
    """Returns the pytree of a structure and its leaves."""
    return tree_util.tree_unflatten(structure, leaves)


def trace(fun: Any, arguments: Sequence[Any]) -> None:
    """Traces a function for the specifications of its arguments."""
    jax.eval_shape(fun, *arguments)


def spec_of(argument: Any, shape: Sequence[Any]) -> jax.ShapeDtypeStruct:
    """Returns a specification with a shape, and the dtype of an argument."""
    return jax.ShapeDtypeStruct(shape, shape_and_dtype(argument)[1])


def shape_and_dtype(leaf: Any) -> tuple[Any, Any]:
    """Returns the shape and dtype of an argument."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return leaf.shape, leaf.dtype
    aval = jax.typeof(leaf)
    return aval.shape, aval.dtype
