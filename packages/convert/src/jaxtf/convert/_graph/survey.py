"""A `Program` emitted to be looked at: every refusal in it, and the nodes that each line of the user's program becomes.

Where an operation is refused, tensors of the types of its results take their place, and what follows is emitted as if
it were translated. The graph is never run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import Operation, Program, TensorType, Value, for_platform

__all__ = ["Refusal", "Survey", "surveyed"]

Types = list[tf.TensorSpec]


@dataclass(frozen=True)
class Refusal:
    """An operation that is refused.

    Attributes:
      operation: Its name, such as `stablehlo.rng_bit_generator`.
      reason: Why, in a line.
      remedy: What to do.
      line: `file:line` of the user's program, or the name that JAX gave the operation; empty if neither is known.
      count: How often.
    """

    operation: str
    reason: str
    remedy: str
    line: str
    count: int = 1


@dataclass(frozen=True)
class Survey:
    """What the translation of a program to TensorFlow operations would be.

    Attributes:
      refusals: Every operation that is refused, once for each line and reason.
      nodes: How many operations the graph has, with those of the functions in it.
      size: Of the graph in bytes.
      nodes_of_lines: How many of the operations come from each line of the user's program, the most first.
      lines: The line of each name scope in the graph.
      concrete: The graph; refused operations are further inputs of it.
    """

    refusals: tuple[Refusal, ...]
    nodes: int
    size: int
    nodes_of_lines: dict[str, int]
    lines: dict[str, str]
    concrete: Any


def surveyed(exported: Exported, *, allows_xla: bool, avoids: frozenset[str] = frozenset()) -> Survey:
    """The survey of an exported function.

    Args:
      exported: The function, as `export_for_graph` gives it.
      allows_xla: As in `GraphFunction`.
      avoids: As in `GraphFunction`.

    Raises:
      GraphModeUnsupported: The whole module is refused: values that TensorFlow does not have, recursion.
    """
    index = exported.platforms.index("cpu") if "cpu" in exported.platforms else 0
    program = for_platform(parse(exported.mlir_module_serialized), index)
    program = plan(program, allows_xla, exported=exported)
    main = next(iter(program.functions.values())).body
    inputs = [_spec(argument) for argument in main.arguments]
    called = [function.value for function in exported.called_functions]

    def make(given: Sequence[tf.Tensor]) -> _Surveyor:
        return _Surveyor(program, allows_xla, given, avoids, called)

    surveyor, concrete = _emitted(inputs, [], make)
    if surveyor.stand_ins:  # their types are known now: the second time they are inputs
        surveyor, concrete = _emitted(inputs, surveyor.stand_ins, make)
    definition = concrete.graph.as_graph_def()
    return Survey(
        refusals=tuple(Refusal(*key, count) for key, count in surveyor.refusals.items()),
        nodes=len(definition.node) + sum(len(function.node_def) for function in definition.library.function),
        size=definition.ByteSize(),
        nodes_of_lines=dict(surveyor.nodes.most_common()),
        lines=surveyor.lines,
        concrete=concrete,
    )


def _spec(value: Value) -> tf.TensorSpec:
    assert isinstance(value.type, TensorType), "an exported function takes arrays"
    return tf.TensorSpec(value.type.shape, value.type.dtype)


def _emitted(
    inputs: Types, stand_ins: Types, make: Callable[[Sequence[tf.Tensor]], _Surveyor]
) -> tuple[_Surveyor, Any]:
    """The surveyor after it has emitted its program, and the graph."""
    made: list[_Surveyor] = []

    def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
        surveyor = make(tensors[len(inputs) :])
        made.append(surveyor)
        with tf.name_scope("jaxtf"):
            return surveyor.main(tensors[: len(inputs)])

    function = tf.function(run, input_signature=[*inputs, *stand_ins], autograph=False)
    concrete = function.get_concrete_function()
    return made[-1], concrete


@dataclass
class _Emission:
    """An operation that is being emitted.

    Attributes:
      graph: In which graph.
      line: Where the user wrote it.
      inner: How many nodes those within it have made in the same graph.
    """

    graph: Any
    line: str
    inner: int = 0


class _Surveyor(Emitter):
    """Emits a program, and goes on where an operation is refused.

    Args:
      program: What is emitted.
      allows_xla: As for `Emitter`, like the last two.
      given: Tensors for the results of refused operations, in order; placeholders if there are none.
      avoids: Likewise.
      called: Likewise.

    Attributes:
      refusals: What was refused: operation, reason, remedy and line, with how often.
      nodes: How many nodes were made for each line.
      lines: The line of each name scope.
      stand_ins: The types of the results of refused operations, in order.
    """

    def __init__(
        self,
        program: Program,
        allows_xla: bool,
        given: Sequence[tf.Tensor],
        avoids: frozenset[str],
        called: Sequence[Any],
    ) -> None:
        super().__init__(program, allows_xla, True, avoids, called)
        self.refusals: Counter[tuple[str, str, str, str]] = Counter()
        self.nodes: Counter[str] = Counter()
        self.stand_ins: Types = []
        self._given = iter(given)
        self.lines: dict[str, str] = {}
        # The operations that are being emitted, each within the one before it.
        self._within: list[_Emission] = []

    def _operation(self, operation: Operation, operands: Sequence[tf.Tensor], scope: Any) -> list[tf.Tensor]:
        graph, outer = tf.compat.v1.get_default_graph(), self._within[-1] if self._within else None
        line = operation.source or (outer.line if outer is not None else "") or operation.location
        self.lines[graph.get_name_scope()] = line
        start, emission = graph.version, _Emission(graph, line)
        self._within.append(emission)
        try:
            emit = super()._operation
            results = self._with_stand_ins(operation, line, lambda: emit(operation, operands, scope))
        finally:
            self._within.pop()
        made = graph.version - start
        self.nodes[line] += made - emission.inner
        if outer is not None and outer.graph is graph:
            outer.inner += made
        return results

    def _with_stand_ins(self, operation: Operation, line: str, emit: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
        """The results of an operation; if it is refused, tensors of their types."""
        try:
            return emit()
        except GraphModeUnsupported as error:
            reason, _, rest = str(error).partition("\n")
            remedy = rest.rpartition("remedy:")[2].strip()
            reason = reason.removeprefix(f"graph mode does not translate {operation.name}: ")
            self.refusals[operation.name, reason, remedy, line] += 1
        except (TypeError, ValueError, AssertionError):
            if not self.stand_ins:
                raise
            # For what takes the place of a refused result, which has no sizes but those of its type.
        return [self._stand_in(result) for result in operation.results]

    def _stand_in(self, result: Value) -> tf.Tensor:
        if not isinstance(result.type, TensorType):
            return tf.no_op()
        self.stand_ins.append(_spec(result))
        given = next(self._given, None)
        return tf.compat.v1.placeholder(result.type.dtype, result.type.shape) if given is None else given
