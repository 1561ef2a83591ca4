"""A trace, interpreted with symbolic sizes: operations have the shapes of their results, or are refused by name.

The trace is written again, into a graph for one sample of the sizes, operation by operation. What it computes from
sizes stays a computation there: a size enters as a number behind an optimization barrier, so that no compiler folds it,
and branches, loops and roots over sizes are run when the program is. What must be constant when TensorFlow compiles
(the shape of a reshape, the bounds of a slice) is known exactly, as symbolic sizes (`Value.known`), and is written as
its numbers at the sample. What is needed there and not known is refused. Where TensorFlow refuses an operation at some
sizes the program does, too (`require`).

An operation whose operands and results have constant shapes needs no more. Any other needs an entry in the table of
`_operations`, which says what its results are and that what TensorFlow compiles for it has one form for all sizes but
for the sizes themselves. An operation without an entry is refused.

Knows graphs of TensorFlow; nothing of StableHLO or JAX's primitives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.calltf._errors import LIMITATIONS, UnsupportedError
from jaxtf.calltf._graph import does_more_than_compute
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._scope import RELATIONS, CallScope, Required, Requirement
from jaxtf.calltf._sizes import Sample
from jaxtf.calltf._symbolic_values import (
    Known,
    ListOf,
    Shape,
    Value,
    array_of,
    decided,
    product,
    same_known,
    same_shape,
    selected,
)
from jaxtf.calltf._tf import executed, is_stateful, outside_of_graphs
from jaxtf.calltf._walk import BRANCHES, LOOPS, Walk, branch_names, constant_array, emitted, left_out, walked

_MOST_KNOWN = 4096  # elements of a tensor that is followed
_CONSTANT = ("OnesLike", "ZerosLike")  # whatever their operands
_READS = ("ReadVariableOp", "Identity")
_CONSTRAINT = "if a constraint on the sizes always holds and decides it, add it to their scope"

Rule = Callable[["Interpreter", Any, "list[Value]"], "list[Value]"]


class Interpreter:
    """Writes a trace into the graph being built, for one sample.

    Args:
      function: What was traced, for messages.
      concrete: The trace.
      scope: Of the symbolic sizes.
      sample: The sizes of the graph that is written.
      rules: The table of operations.
      for_shapes: Whether the shapes of the results are all that is wanted: the function may do anything, and what is
        written is not compiled.

    Attributes:
      expressions: Every size that was met; the numbers of the program that is compiled are among them.
      counts: The numbers of elements of the arguments of symbolic shapes.
    """

    def __init__(
        self,
        function: Any,
        concrete: Any,
        scope: CallScope,
        sample: Sample,
        rules: Mapping[str, Rule],
        *,
        for_shapes: bool = False,
    ):
        self._function = function
        self._for_shapes = for_shapes
        self._sample = sample
        self._required = dict.fromkeys(requirement.text for requirement in scope.requirements)
        self._is_conditional = False
        self._rules = rules
        self._walk = Walk(concrete)
        self._sizes: dict[tuple[int, str], Any] = {}
        self.expressions: dict[Any, None] = {}
        self.counts: tuple[Any, ...] = ()

    def run(self, arguments: Sequence[Any], shapes: Sequence[Shape]) -> list[Value]:
        """The results of the trace for tensors with these symbolic shapes.

        Raises:
          UnsupportedError: An operation that is not in the table, or is not decided for all sizes.
          Required: TensorFlow refuses an operation at some sizes; it is not known yet that there are none.
        """
        values = [self.value(tensor, shape) for tensor, shape in zip(arguments, shapes, strict=True)]
        self.counts = tuple(dict.fromkeys(product(shape) for shape in shapes if any(map(is_symbolic, shape))))
        return self._results(self._walk.graph, values)

    # --- graphs and functions ---

    def _results(self, graph: Any, arguments: Sequence[Value]) -> list[Value]:
        found = walked(graph, arguments, self._operation)
        for op in [] if self._for_shapes else left_out(graph):
            if does_more_than_compute(op.type):
                raise self.refused(op, "does more than compute its results,")
        return found

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """The results of a function of the library."""
        return self._results(self._walk.body(name), arguments)

    def _operation(self, op: Any, inputs: list[Value]) -> list[Value]:
        if not self._for_shapes:
            return self._followed(op, inputs)
        unknown = next((value.unknown for value in inputs if value.unknown), None)
        if unknown is not None:
            return self._as_traced(op, unknown)
        try:
            return self._followed(op, inputs)
        except UnsupportedError:  # nothing is compiled here
            return self._as_traced(op)

    def _followed(self, op: Any, inputs: list[Value]) -> list[Value]:
        if (body := self._walk.called(op)) is not None:
            return self._results(body, inputs)
        if op.type in BRANCHES:
            return self._branch(op, inputs)
        if op.type in LOOPS:
            return self._loop(op, inputs)
        if op.type in _READS and inputs and op.inputs[0].dtype == tf.resource:
            return inputs[:1]  # its value is the argument
        if op.type == "Const":
            return [self._constant_op(op)]
        if op.type in ("IdentityN", "StopGradient", "PreventGradient", "Snapshot"):
            return inputs
        is_function = not is_stateful(op.type) and "Random" not in op.type  # whose numbers the compiler chooses
        if is_function and all(value.is_constant for value in inputs) and self._is_dense(op):
            folded = self.folded(op, inputs)
            if folded is not None:
                return folded
        if op.type in self._rules:
            results = self._rules[op.type](self, op, inputs)
            return [self._checked(op, result) for result in results]
        return self._static(op, inputs)

    def _is_dense(self, op: Any) -> bool:
        return not any(x.dtype in (tf.variant, tf.resource, tf.string) for x in (*op.inputs, *op.outputs))

    def _static(self, op: Any, inputs: list[Value]) -> list[Value]:
        """The results of an operation without an entry, whose operands and results have constant shapes."""
        if not all(value.is_static for value in inputs):
            raise self.refused(op, "has no entry in the table of operations, for operands of symbolic shapes")
        tensors = self.emit(op, [value.tensor for value in inputs])
        if not all(x.shape.is_fully_defined() for x in tensors) or not self._is_dense(op):
            raise self.refused(op, "has no entry in the table of operations, and results whose shapes are not constant")
        return [self.value(tensor, tuple(tensor.shape.as_list())) for tensor in tensors]

    def _as_traced(self, op: Any, unknown: str | None = None) -> list[Value]:
        """The results of an operation that is not followed: of the shapes that TensorFlow inferred in the trace."""
        results = []
        for x in op.outputs:
            if x.shape.is_fully_defined() and x.dtype not in (tf.variant, tf.resource):
                results.append(self.value(tf.zeros(x.shape, x.dtype), tuple(x.shape.as_list())))
            else:
                results.append(Value(tf.zeros([]), (), unknown=unknown or f"{op.type} ({op.name})"))
        return results

    def _checked(self, op: Any, result: Value) -> Value:
        """The result, if TensorFlow infers the same shape at the sample; hidden, if only its size varies."""
        if result.items is not None:
            return result
        if not result.tensor.shape.is_compatible_with(self._sample.shape(result.shape)):
            raise self.refused(op, f"has the shape {result.tensor.shape} for {self._sample}, not {list(result.shape)},")
        is_constant = op.type in _CONSTANT or all(x.op.type == "Const" for x in result.tensor.op.inputs)
        return result if result.is_static or not is_constant else replace(result, tensor=self.barrier(result.tensor))

    # --- values ---

    def value(self, tensor: Any, shape: Sequence[Any], known: Known | None = None) -> Value:
        """A value; its sizes are remembered."""
        self.remember(shape)
        self.remember(
            product(shape[start:stop]) for start in range(len(shape)) for stop in range(start + 2, len(shape) + 1)
        )
        return Value(tensor, tuple(shape), known)

    def remember(self, sizes: Iterable[Any]) -> None:
        """Sizes that may be numbers of the program that is compiled."""
        self.expressions.update(dict.fromkeys(size for size in sizes if is_symbolic(size)))

    def at_sample(self, known: Known, dtype: Any) -> Any:
        """Known elements as a constant."""
        self.remember(known.flat)
        numbers = [self.number(element) for element in known.flat]
        return tf.constant(np.array(numbers, dtype.as_numpy_dtype).reshape(known.shape), dtype)

    def number(self, size: Any) -> Any:
        """A size, or an integer, at the sample."""
        return self._sample.shape((size,))[0] if is_symbolic(size) else size

    def size(self, size: Any, dtype: Any = tf.int32) -> Any:
        """A size as a scalar that the program computes."""
        if not is_symbolic(size):
            return tf.constant(size, dtype)
        self.remember([size])
        key = (id(tf.compat.v1.get_default_graph()), f"{dtype.name} {size}")
        if key not in self._sizes:
            self._sizes[key] = (self.barrier(tf.constant(self.number(size), dtype)), tf.compat.v1.get_default_graph())
        return self._sizes[key][0]

    def counted(self, count: Any) -> Any:
        """The integers from 0 on, so many."""
        self.remember([count])
        return self.barrier(tf.range(self.number(count), dtype=tf.int32))

    def barrier(self, tensor: Any) -> Any:
        """The same tensor, of which no compiler knows that it is constant."""
        types = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=[tensor.dtype.as_datatype_enum]))
        graph = tf.compat.v1.get_default_graph()
        [result] = graph.create_op("XlaOptimizationBarrier", [tensor], [tensor.dtype], attrs={"T": types}).outputs
        result.set_shape(tensor.shape)
        return result

    def vector(self, known: Known, dtype: Any) -> Any:
        """Known elements as a tensor that the program computes."""
        if not known.ndim:
            return self.size(known.item(), dtype)
        if not known.size:
            return tf.zeros(known.shape, dtype)
        return tf.reshape(tf.stack([self.size(element, dtype) for element in known.flat]), known.shape)

    # --- operations ---

    def emit(self, op: Any, tensors: Sequence[Any], **attrs: Any) -> list[Any]:
        """The operation, with other operands, in the graph being built."""
        try:
            return emitted(op, tensors, **attrs)
        except ValueError as error:
            raise self.refused(op, f"is not possible for {self._sample} ({error}),") from error

    def compiled(self, op: Any, inputs: Sequence[Value], constants: Sequence[int] = (), **attrs: Any) -> list[Any]:
        """The operation on operands of which some must be constant when it is compiled."""
        tensors = [value.tensor for value in inputs]
        for index in constants:
            tensors[index] = self.at_sample(self.known(op, inputs, index), tensors[index].dtype)
        return self.emit(op, tensors, **attrs)

    def known(self, op: Any, inputs: Sequence[Value], index: int) -> Known:
        """The elements of an operand that must be constant when TensorFlow compiles."""
        known = inputs[index].known
        if known is None:
            name = op.inputs[index].op.type
            raise self.refused(
                op,
                f"needs operand {index} (of {name}) as sums, products, quotients, minima and maxima of sizes, "
                "but it is computed differently,",
            )
        self.remember(known.flat)
        return known

    def integers(self, op: Any, inputs: Sequence[Value], index: int) -> list[int]:
        """The elements of an operand that must be numbers."""
        known = self.known(op, inputs, index)
        if not inputs[index].is_constant:
            raise self.refused(op, f"needs operand {index} to be the same for all sizes, but it is {known.tolist()},")
        return [int(element) for element in known.flat]

    def folded(self, op: Any, inputs: Sequence[Value]) -> list[Value] | None:
        """The results of an operation on constants, computed by TensorFlow."""
        operands = [(self.known(op, inputs, index), x.dtype) for index, x in enumerate(op.inputs)]
        results = eagerly(op, operands)
        if results is None or any(result.size > _MOST_KNOWN for result in results):
            return None
        return [self.value(tf.constant(result), result.shape, _objects(result)) for result in results]

    def moved(self, op: Any, inputs: Sequence[Value], data: Sequence[int]) -> list[Known] | None:
        """The elements of the results of an operation that only moves those of some operands; None if not known."""
        pool: list[Any] = []
        operands: list[tuple[Known, Any]] = []
        for index, (value, x) in enumerate(zip(inputs, op.inputs, strict=True)):
            if value.known is None or (index not in data and not value.is_constant):
                return None
            if index in data:
                operands.append(
                    (np.arange(len(pool), len(pool) + value.known.size).reshape(value.known.shape), x.dtype)
                )
                pool += value.known.flat
            else:
                operands.append((value.known, x.dtype))
        if any(op.inputs[index].dtype not in (tf.int32, tf.int64) for index in data):
            return None
        results = eagerly(op, operands)
        if results is None:
            return None
        return [array_of((pool[place] for place in result.flat), result.shape) for result in results]

    def _constant_op(self, op: Any) -> Value:
        [tensor] = self.emit(op, [])
        shape = tuple(tensor.shape.as_list())
        if int(np.prod(shape)) > _MOST_KNOWN or tensor.dtype in (tf.string, tf.variant):
            return self.value(tensor, shape)
        return self.value(tensor, shape, _objects(constant_array(op)))

    # --- branches and loops ---

    def _branch(self, op: Any, inputs: list[Value]) -> list[Value]:
        index, arguments = inputs[0], inputs[1:]
        names = branch_names(op)
        if index.is_constant and index.known is not None and not index.known.ndim:
            place = int(index.known.item())
            return self.call(names[place if 0 <= place < len(names) else -1], arguments)
        if index.shape or index.tensor.dtype not in (tf.bool, tf.int32):
            raise self.refused(op, "has a condition that is not a boolean scalar")
        found: dict[int, list[Value]] = {}

        def branch(place: int) -> Callable[[], Any]:
            def run() -> Any:
                with self._conditionally():
                    found[place] = self.call(names[place], arguments)
                return tuple(value.tensor for value in found[place])

            return run

        if op.type.endswith("If"):
            written = tf.cond(index.tensor, branch(1), branch(0))
        else:
            written = tf.switch_case(index.tensor, [branch(place) for place in range(len(names))])
        results = []
        for tensor, *column in zip(tf.nest.flatten(written), *(found[place] for place in sorted(found)), strict=True):
            first = column[0]
            for other in column[1:]:
                if not same_shape(first.shape, other.shape) or (first.items is None) != (other.items is None):
                    raise self.refused(
                        op, f"has results of other shapes in its branches, {list(first.shape)} and {list(other.shape)},"
                    )
            if any(value.items != first.items for value in column):
                raise self.refused(op, "has lists of other sizes in its branches")
            known = first.known if all(same_known(first.known, value.known) for value in column) else None
            if known is None and tensor.dtype in (tf.int32, tf.int64):
                known = _known_choice(index, [value.known for value in column])
            unknown = next((value.unknown for value in column if value.unknown), None)
            results.append(Value(tensor, first.shape, known, first.items, unknown))
        return results

    def _loop(self, op: Any, inputs: list[Value]) -> list[Value]:
        condition, body = op.get_attr("cond").name, op.get_attr("body").name
        invariant = self._invariant(body)
        carried = [
            value if index in invariant else Value(value.tensor, value.shape, None, value.items)
            for index, value in enumerate(inputs)
        ]
        for _ in range(4):
            after: list[Value] = []

            def values(tensors: Sequence[Any], carried: Sequence[Value] = carried) -> list[Value]:
                return [Value(x, v.shape, v.known, v.items) for x, v in zip(tensors, carried, strict=True)]

            def test(*tensors: Any, values: Any = values) -> Any:
                return self.call(condition, values(tensors))[0].tensor

            def turn(
                *tensors: Any,
                values: Any = values,
                carried: Sequence[Value] = carried,
                after: list[Value] = after,
            ) -> Any:
                with self._conditionally():
                    after[:] = self.call(body, values(tensors))
                return tuple(
                    y.tensor if y.unknown is None and same_shape(x.shape, y.shape) else tensor
                    for tensor, x, y in zip(tensors, carried, after, strict=True)
                )  # what TensorFlow would not take is refused below, in words of its sizes

            written = tf.while_loop(test, turn, tuple(value.tensor for value in carried))
            unknown = next((value.unknown for value in after if value.unknown), None)
            if unknown is not None:
                return self._as_traced(op, unknown)
            for before, value in zip(carried, after, strict=True):
                if not same_shape(before.shape, value.shape):
                    raise self.refused(op, f"changes the shape {list(before.shape)} to {list(value.shape)} in a turn")
            if all(_same_items(x.items, y.items) for x, y in zip(carried, after, strict=True)):
                return [
                    Value(x, value.shape, value.known, value.items) for x, value in zip(written, carried, strict=True)
                ]
            carried = [Value(x.tensor, x.shape, x.known, y.items) for x, y in zip(carried, after, strict=True)]
        raise self.refused(op, "has lists that have no common form")

    def _invariant(self, body: str) -> set[int]:
        """The places of what a turn of a loop passes on as it is."""
        graph = self._walk.body(body)
        found = set()
        for index, (before, after) in enumerate(zip(graph.inputs, graph.outputs, strict=True)):
            source = after
            while source.op.type == "Identity":
                source = source.op.inputs[0]
            if source is before:
                found.add(index)
        return found

    @contextlib.contextmanager
    def _conditionally(self) -> Iterator[None]:
        """Within it operations are written that may not be run."""
        before, self._is_conditional = self._is_conditional, True
        yield
        self._is_conditional = before

    # --- what is not so for all sizes ---

    def require(self, op: Any, left: Any, relation: str, right: Any, what: str, *, to_compile: bool = False) -> None:
        """Requires a relation of sizes (`>=` or `==`), without which TensorFlow refuses the operation.

        Args:
          op: The operation.
          left: A size.
          relation: Of it to the other.
          right: Another size.
          what: What the operation does, for messages.
          to_compile: Whether TensorFlow refuses to compile it, also where it is not run.

        Raises:
          UnsupportedError: It holds for no sizes, or the operation is not always run.
          Required: It holds for some.
        """
        holds = decided(RELATIONS[relation], left, right)
        requirement = Requirement(left, relation, right, f"{op.type} ({op.name}) {what}")
        if holds or requirement.text in self._required:
            return
        if self._is_conditional and self._for_shapes:
            return
        if holds is False or (self._is_conditional and not to_compile):
            given = f" given {' and '.join(self._required)}" if self._required else ""
            raise self.refused(op, f"{what}, not {requirement.text} for all sizes{given},")
        raise Required(requirement)

    def refused(self, op: Any, what: str, remedy: str = _CONSTRAINT) -> UnsupportedError:
        """The error for an operation that has no form for symbolic sizes."""
        return UnsupportedError(
            f"call_tf: {self._function} is called with symbolic sizes, and its operation {op.type} ({op.name}) {what} "
            "which has no form for all sizes\n"
            f"  remedy: {remedy}; else use constant shapes for the arguments of this function, or split it, and write "
            f"in JAX the part that depends on sizes in this way; see {LIMITATIONS}"
        )


def _known_choice(condition: Value, choices: Sequence[Known | None]) -> Known | None:
    """The elements of the chosen result, where the condition and the elements of each result are known."""
    if condition.tensor.dtype != tf.bool or condition.known is None:
        return None
    otherwise, then = choices
    if then is None or otherwise is None or then.shape != otherwise.shape:
        return None
    pairs = zip(then.flat, otherwise.flat, strict=True)
    elements = [selected(condition.known.item(), x, y) for x, y in pairs]
    return None if None in elements else array_of(elements, then.shape)


def _same_items(x: ListOf | None, y: ListOf | None) -> bool:
    if x is None or y is None:
        return x is y
    if (x.element is None) != (y.element is None) or x.is_new != y.is_new:
        return False
    if (x.known is None) != (y.known is None) or not (x.known is None or same_known(x.known, y.known)):
        return False
    return x.element is None or (y.element is not None and same_shape(x.element, y.element))


def _objects(array: Known) -> Known:
    return array_of((element.item() for element in array.flat), array.shape) if array.dtype != object else array


def eagerly(op: Any, operands: Sequence[tuple[Known, Any]]) -> list[Any] | None:
    """The results of an operation, run on arrays with the dtypes of its operands; None if it cannot be."""
    with outside_of_graphs():
        tensors = [tf.constant(np.array(known.tolist()).reshape(known.shape), dtype) for known, dtype in operands]
        try:
            return [x.numpy() for x in executed(op, tensors)]
        except (tf.errors.OpError, ValueError, TypeError):  # the operands are of no use, or there is no such kernel
            return None
