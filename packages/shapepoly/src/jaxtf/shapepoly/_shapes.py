"""Shape texts to symbolic shapes: the functions that users call.

A text is read by `_expressions.parser`, its placeholders are filled from a shape it is matched with, and its
expressions become dimensions of one scope.
"""

from collections.abc import Sequence
from typing import Any

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.operands import as_size
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._dimensions.sizes import DimSize
from jaxtf.shapepoly._dimensions.unchecked import refuse_unchecked
from jaxtf.shapepoly._errors import JaxRequiredError, ShapeSpecError
from jaxtf.shapepoly._expressions.expression import Expression
from jaxtf.shapepoly._expressions.parser import ParsedShape, error_at, parse_shape
from jaxtf.shapepoly._polyshape import PolyShape, text_of_sizes

# JAX's words for a text that does not fit its shape too, which programs look for.
_HEADING = "syntax error in symbolic shape"


def symbolic_shape(
    shape_spec: str | PolyShape | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[DimSize, ...]:
    """Returns the shape that a text denotes: a tuple of integers and symbolic dimensions.

    >>> symbolic_shape("(b, 2*d, 3)")
    (b, 2*d, 3)
    >>> symbolic_shape("b, _, ...", like=(None, 28, 28))
    (b, 28, 28)
    >>> a, b = symbolic_shape("a, b", constraints=["a >= b + 2"])
    >>> a >= 3
    True

    Args:
      shape_spec: Dimensions separated by commas, in parentheses or not; None means `...`. A
        dimension is an integer, a dimension variable (a name, as Python has them),
        `e1 + e2`, `e1 - e2`, `-e`, `e1 * e2`, `floordiv(e1, e2)`, `mod(e1, e2)`, `max(e1, e2)` or
        `min(e1, e2)`; also `e1 // e2`, `e1 % e2` and `e ** 2`. `_` takes the size from `like`, and
        `...`, in the last place, takes all sizes that remain.
      constraints: Relations between the variables: texts of the form `e1 >= e2`, `e1 <= e2` or
        `e1 == e2`. They go to the new scope.
      scope: The scope to make the dimensions in, in place of a new one.
      like: The shape to take placeholders from; sizes not taken may be None.

    Raises:
      ShapeSpecError: The text is not in the grammar, or does not fit `like`.
      ScopeError: The constraints contradict each other.
      ValueError: Both `scope` and `constraints` were given.
    """
    return _shape_and_names(shape_spec, _scope(scope, constraints), like)[0]


def _shape_and_names(
    shape_spec: str | PolyShape | None, scope: SymbolicScope, like: Sequence[int | None] | None
) -> tuple[tuple[DimSize, ...], frozenset[str]]:
    """Returns the shape that a text denotes, and the variables that it names, those too that can only be one size."""
    like = None if like is None else tuple(map(as_size, like))
    if shape_spec is None:
        _check_all_known(like)
        text = "..."
    elif isinstance(shape_spec, str | PolyShape):
        text = str(shape_spec)
    else:
        text = text_of_sizes(shape_spec)
        remedy = f'; write the text "{text}"' if text else ""
        raise ShapeSpecError(
            f"polymorphic shape spec should be None or a string; "
            f"found {shape_spec!r} of type {type(shape_spec).__name__}{remedy}"
        )
    parsed = parse_shape(text, scope.algebra)
    return tuple(_dimension(size, scope) for size in _filled(text, parsed, like)), parsed.names


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Returns `jax.ShapeDtypeStruct`s for arguments, with shapes from texts and dtypes from the arguments.

    Args:
      args: A pytree of arrays, scalars or `jax.ShapeDtypeStruct`s. Their dtypes are kept, and their sizes
        fill in the placeholders of the texts. None has neither and stays None, whatever its specification.
      shapes_specs: A shape text, None (the shape of the argument), or a pytree of these that is a prefix of
        `args`; a list may be given for the tuple of arguments.
      constraints: As for `symbolic_shape`; their variables must occur in the shapes, or be tied by `==` to
        variables that do, for otherwise nothing would check them.
      scope: As for `symbolic_shape`.

    Raises:
      ShapeSpecError: A text is not in the grammar or does not fit its argument, which the message names;
        `shapes_specs` is not a prefix of `args`; or a constraint mentions a variable that occurs in no shape.
      ValueError: Both `scope` and `constraints` were given.
      JaxRequiredError: JAX is not installed.
    """
    try:
        from jaxtf.shapepoly._solve import arguments
    except ImportError as error:
        raise JaxRequiredError("symbolic_args_specs needs JAX; install jaxtf-shapepoly[jax]") from error
    scope = _scope(scope, constraints)
    variables: set[str] = set()

    def shape_of(path: str, spec: Any, like: Sequence[int | None]) -> tuple[DimSize, ...]:
        try:
            shape, names = _shape_and_names(spec, scope, like)
        except ShapeSpecError as error:
            raise ShapeSpecError(f"in the specification of {path}: {error}") from error
        variables.update(names)
        return shape

    specs = arguments.specs_of_arguments(args, shapes_specs, shape_of)
    if constraints:
        refuse_unchecked(scope, frozenset(variables))
    return specs


def _scope(scope: SymbolicScope | None, constraints: Sequence[str]) -> SymbolicScope:
    """Returns the scope that was given, or a new one with the constraints."""
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError(
            "Cannot specify both a `scope` and `constraints`: a scope never changes. "
            "Give the constraints when the scope is made: SymbolicScope(constraints)."
        )
    return scope


def _dimension(size: Expression | int, scope: SymbolicScope) -> DimSize:
    """Returns an expression as a dimension, or as an integer where it can only be one."""
    if isinstance(size, int):
        return size
    settled = scope.algebra.settled(size)
    constant = settled.as_integer
    return Dimension(settled, scope) if constant is None else constant


def _filled(text: str, parsed: ParsedShape, like: Sequence[int | None] | None) -> list[Expression | int]:
    """Returns the sizes of a parsed shape, with placeholders filled in from `like`."""
    _check_rank(text, parsed, like)
    sizes: list[Expression | int] = []
    for axis, (value, position) in enumerate(parsed.dimensions):
        if value is None:
            sizes.append(_from_like(text, "_", position, like, axis))
            continue
        known = None if like is None else like[axis]
        constant = value.as_integer
        if constant is not None and constant < 0:
            raise error_at(text, _HEADING, position, f"the size of dimension {axis} is {constant}")
        if constant is not None and isinstance(known, int) and constant != known:
            raise error_at(
                text,
                _HEADING,
                position,
                f"dimension {axis} is {constant}, but the shape given is {_shape_text(like)}",
            )
        sizes.append(value)
    if parsed.ellipsis is not None:
        for axis in range(len(sizes), len(like) if like is not None else len(sizes) + 1):
            sizes.append(_from_like(text, "...", parsed.ellipsis, like, axis))
    return sizes


def _from_like(text: str, placeholder: str, position: int, like: Sequence[int | None] | None, axis: int) -> int:
    """Returns the size that a placeholder takes from `like`."""
    if like is None:
        problem = f"placeholder '{placeholder}' takes its size from a shape, and none was given (parameter 'like')"
        raise error_at(text, _HEADING, position, problem)
    size = like[axis]
    if size is None:
        problem = (
            f"placeholder '{placeholder}' is for dimension {axis}, whose size is unknown in {_shape_text(like)}; "
            f"write a dimension variable in its place"
        )
        raise error_at(text, _HEADING, position, problem)
    return size


def _check_all_known(like: Sequence[int | None] | None) -> None:
    """Raises where a shape without a text, which is to be taken as it is, has sizes that are not known."""
    if like is None or None not in like:
        return
    named = [f"d{axis}" if size is None else "_" for axis, size in enumerate(like)]
    raise ShapeSpecError(
        f"{_HEADING} None: the shape given, {_shape_text(like)}, has unknown sizes, and no symbolic shape says what "
        "they may be\n"
        f"  remedy: write one with a dimension variable for each of them, such as {_shape_text(named)!r}"
    )


def _check_rank(text: str, parsed: ParsedShape, like: Sequence[int | None] | None) -> None:
    """Raises where a text has more or fewer dimensions than the shape it is matched with."""
    if like is None:
        return
    written, rank = len(parsed.dimensions), len(like)
    if written == rank or (parsed.ellipsis is not None and written < rank):
        return
    at_least = "at least " if parsed.ellipsis is not None else ""
    remedy = "write one dimension for each axis" + (
        f", or end it with '...' to keep the sizes of the last {rank - written}" if written < rank else ""
    )
    raise ShapeSpecError(
        f"{_HEADING} {text!r}: it has rank {at_least}{written}, but the shape it is for, {_shape_text(like)}, has rank "
        f"{rank}; {remedy}"
    )


def _shape_text(shape: Sequence[object] | None) -> str:
    """Returns the text of a shape."""
    sizes = ", ".join(map(str, shape or ()))
    return f"({sizes},)" if shape is not None and len(shape) == 1 else f"({sizes})"
