"""Functions of complex numbers that a module has written out for their parts, with the derivatives that they have.

For tapes: what is written out selects where the parts are equal, or one is 0, and has another derivative there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jaxtf.serialization.interop import Block, Operation, Value, operations_of_complex_function

__all__ = ["DIFFERENTIATED_AS", "with_derivatives"]

DIFFERENTIATED_AS = "jaxtf.differentiated_as"
"""The name of the operation that gives its first operand, with the derivative of a `function` of the second."""


def with_derivatives(block: Block, sources: Mapping[Value, Operation]) -> Block:
    """The block in which the results of such functions have the derivatives of the operations that they are."""
    within = frozenset(block.operations)

    def made(operation: Operation) -> Iterator[Operation]:
        found = operations_of_complex_function(operation, sources, within)
        if found is None:
            yield operation
            return
        argument, _, function = found
        [result] = operation.results
        computed = Value(result.type)
        yield replace(operation, results=(computed,))
        yield Operation(
            DIFFERENTIATED_AS,
            (computed, argument),
            (result,),
            {"function": function},
            (),
            operation.location,
            operation.source,
        )

    return replace(block, operations=tuple(each for operation in block.operations for each in made(operation)))
