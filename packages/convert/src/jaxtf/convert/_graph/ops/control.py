"""Control flow and calls: loops, branches, functions; and tuples, assertions, and what only compilers heed.

Loops and branches are those of TensorFlow; a branch among several is a tree of `tf.cond`, which every consumer knows
(TFLite has no Case). Tokens order effects that graph mode does not have, and are refused with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._function.checked_sizes import refused_unless
from jaxtf.convert._graph._support import typed, where
from jaxtf.convert._graph.kernels import without_switches
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.ops.loop_turns import most_turns
from jaxtf.convert._graph.optimizer import computed_before_xla
from jaxtf.convert._graph.registry import Bound, refuses, translates
from jaxtf.convert._tf import asserted, evaluated, traces_compiled
from jaxtf.serialization.interop import COLLECTIVES, EFFECTS, PYTHON_CALLBACKS, TensorType

__all__: list[str] = []

# What an assertion says that is there for every symbolic size.
_OF_ANY_SIZE = "Expected value >= 1 for dimension variable"

_PLACEHOLDER = re.compile(r"\{(\d+)\}")

_COLLECTIVE = "it moves data between devices that run the same program; a TensorFlow graph is one program"
_ONE_DEVICE = "convert the function for a mesh of one device"
_TOKEN = "it orders effects, such as input and output while it runs, which TensorFlow graphs do not have in this form"

refuses(
    *COLLECTIVES,
    "custom_call.SPMDFullToShardShape",
    "custom_call.SPMDShardToFullShape",
    reason=_COLLECTIVE,
    remedy=_ONE_DEVICE,
)
refuses(
    "stablehlo.partition_id",
    "stablehlo.replica_id",
    reason="it asks which of several devices runs it; a TensorFlow graph runs on one",
    remedy=_ONE_DEVICE,
)
refuses(
    *EFFECTS,
    reason=_TOKEN,
)
refuses(
    "stablehlo.async_start", "stablehlo.async_done", reason="it runs concurrently with others, as a compiler decides"
)
refuses(
    *PYTHON_CALLBACKS,
    reason="it calls back into the Python process that traced it",
)


@translates("stablehlo.while")
def while_loop(bound: Bound, *initial: tf.Tensor) -> list[tf.Tensor]:
    """The values after the body has been applied for as long as the condition holds.

    Source: StableHLO specification, `while`.
    """
    condition, body = bound.regions
    shapes = [_invariant(type_, value) for type_, value in zip(bound.result_types, initial, strict=True)]
    carried = [i for i in range(len(initial)) if not _stays_a_constant(bound, i, initial[i])]
    if not carried:  # the condition is always the same, too
        carried = list(range(len(initial)))
    if not initial:
        return []

    def of_all(state: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        values = list(initial)
        for i, value in zip(carried, state, strict=True):
            values[i] = value
        return values

    def goes_on(*state: tf.Tensor) -> tf.Tensor:
        (result,) = condition(*of_all(state))
        return result

    def turn(*state: tf.Tensor) -> list[tf.Tensor]:
        results = body(*of_all(state))
        return [results[i] for i in carried]

    start, invariants = ([of[i] for i in carried] for of in (initial, shapes))
    most = most_turns(bound, initial) if bound.is_differentiated and traces_compiled() else None
    results = list(tf.while_loop(goes_on, turn, start, shape_invariants=invariants, maximum_iterations=most))
    without_switches(results)
    return of_all(results)


def _stays_a_constant(bound: Bound, index: int, value: tf.Tensor) -> bool:
    """Whether the body of a loop that is compiled hands on a constant as it is.

    TensorFlow sees that, too, and computes before what depends on it: so what is emitted inside has to see it.
    """
    body = bound.operation.regions[1]
    return body.returned[index] == body.arguments[index] and computed_before_xla(value)


def _invariant(type_: Any, value: tf.Tensor) -> tf.TensorShape:
    """What stays of the shape of a value while a loop runs."""
    return tf.TensorShape(type_.shape) if isinstance(type_, TensorType) else value.shape


@translates("stablehlo.if")
def if_(bound: Bound, predicate: tf.Tensor) -> list[tf.Tensor]:
    """What one of two regions gives.

    Source: StableHLO specification, `if`.
    """
    if predicate.shape.rank:
        return _of_elements(tf.cast(tf.logical_not(predicate), tf.int32), bound.regions)
    known = known_value(predicate)
    return _either(predicate, *bound.regions) if known is None else bound.regions[0 if known else 1]()


@translates("stablehlo.case")
def case(bound: Bound, index: tf.Tensor) -> list[tf.Tensor]:
    """What the region of that number gives; the last one's for a number that there is no region for.

    Source: StableHLO specification, `case`.
    """
    count = len(bound.regions)
    if count == 1:
        return bound.regions[0]()
    if index.shape.rank:
        return _of_elements(index, bound.regions)
    known = known_value(index)
    if known is not None:
        return bound.regions[int(known) if 0 <= known < count else count - 1]()
    last = typed(count - 1, index.dtype)
    if count > 2:
        index = tf.where(tf.logical_or(index < 0, index > last), last, index)
        return _among(index, 0, bound.regions)
    return _either(tf.equal(index, 0), *bound.regions)


def _of_elements(index: tf.Tensor, regions: Sequence[Callable[[], list[tf.Tensor]]]) -> list[tf.Tensor]:
    """For each element what the region of its number gives, in a region that is applied to many elements at once."""
    *others, last = (region() for region in regions)
    results = last
    for number, given in reversed(list(enumerate(others))):
        chosen = tf.equal(index, typed(number, index.dtype))
        results = [where(chosen, x, y) for x, y in zip(given, results, strict=True)]
    return results


def _among(index: tf.Tensor, first: int, regions: Sequence[Callable[[], list[tf.Tensor]]]) -> list[tf.Tensor]:
    """What the region of number `index - first` gives."""
    if len(regions) == 1:
        return regions[0]()
    half = len(regions) // 2
    return _either(
        index < first + half,
        lambda: _among(index, first, regions[:half]),
        lambda: _among(index, first + half, regions[half:]),
    )


def _either(
    predicate: tf.Tensor, yes: Callable[[], list[tf.Tensor]], no: Callable[[], list[tf.Tensor]]
) -> list[tf.Tensor]:
    """What one of two functions gives; both give the same kinds of values."""

    def of(branch: Callable[[], list[tf.Tensor]]) -> Callable[[], tuple[tf.Tensor, ...]]:
        # Each result is a tensor of the branch's own, also where it is one from outside.
        return lambda: tuple(map(tf.identity, branch()))

    given = tf.cond(predicate, of(yes), of(no))
    results = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    without_switches(results)
    return results


@translates("func.call")
def call(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """What a function of the module gives."""
    return bound.call(bound["callee"], operands)


@translates("stablehlo.composite")
def composite(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """What the decomposition of an operation gives that has a name but no entry here.

    Source: StableHLO specification, `composite`.
    """
    return bound.call(bound["decomposition"], operands)


@translates("stablehlo.map")
def map_(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """The region applied elementwise.

    Source: StableHLO specification, `map`.
    """
    results = bound.regions[0](*operands)
    return [tf.broadcast_to(result, tf.shape(operands[0])) for result in results]


@translates("stablehlo.optimization_barrier")
def optimization_barrier(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """The operands, all there before any of them is used.

    Source: StableHLO specification, `optimization_barrier`.
    """
    return list(tf.raw_ops.IdentityN(input=operands)) if operands else []


@translates("stablehlo.tuple")
def tuple_(bound: Bound, *operands: tf.Tensor) -> list[Any]:
    """The operands as one value.

    Source: StableHLO specification, `tuple`.
    """
    return [tuple(operands)]


@translates("stablehlo.get_tuple_element")
def get_tuple_element(bound: Bound, operand: tuple[tf.Tensor, ...]) -> list[tf.Tensor]:
    """One of the values in a tuple.

    Source: StableHLO specification, `get_tuple_element`.
    """
    return [operand[bound["index"]]]


@translates("custom_call.shape_assertion")
def shape_assertion(bound: Bound, holds: tf.Tensor, *sizes: tf.Tensor) -> list[Any]:
    """An assertion about sizes, with the message that the module has for it.

    XLA drops assertions. It refuses a reshape to another number of elements, which follows the assertion about it. Of
    sizes that depend on values, which it cannot compare when it compiles, it is asked to compile those of which nothing
    is required but that they are not 0. That alone is not checked there: of an empty array there are numbers.
    """
    parts: list[Any] = []
    for index, part in enumerate(_PLACEHOLDER.split(bound["error_message"])):
        parts.append(sizes[int(part)] if index % 2 else part)
    known = _number(holds)
    if known is not None and not tf.executing_eagerly():
        if known:
            return []
        text = "".join(part if isinstance(part, str) else str(_number(part)) for part in parts)
        raise tf.errors.InvalidArgumentError(None, None, text)
    assertion = asserted(holds, [part for part in parts if not isinstance(part, str) or part])
    if tf.executing_eagerly():
        return []
    is_compared = _OF_ANY_SIZE not in bound["error_message"]
    scope = "shapes_do_not_match_the_polymorphic_shapes_specification"
    return [assertion, *refused_unless(holds, assertion, scope, is_compared=is_compared)]


def _number(tensor: tf.Tensor) -> Any:
    """A scalar that follows from the sizes that the graph knows; None if it does not."""
    known = known_value(tensor)
    return evaluated(tensor) if known is None and tf.is_symbolic_tensor(tensor) else known


@translates(
    "custom_call.Sharding",
    "custom_call.xla.sdy.FuncResultSharding",
    "sdy.sharding_constraint",
    "sdy.propagation_barrier",
    "sdy.reshard",
    "sdy.data_flow_edge",
)
def sharding(bound: Bound, operand: tf.Tensor, *sizes: tf.Tensor) -> tf.Tensor:
    """The operand; how it is split over devices changes no value. Its sizes follow it where they are not known."""
    return operand


@translates("custom_call.annotate_device_placement")
def placement(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The operand; in which memory it lies changes no value."""
    return operand
