"""A trace of a TensorFlow function for symbolic shapes: interpreted with them, and compiled at samples of them.

Knows TensorFlow, avals and pytrees; nothing of primitives, lowering or differentiation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from jax.core import ShapedArray
from jax.errors import InconclusiveDimensionOperation
from jax.tree_util import PyTreeDef

from jaxtf.calltf._captures import captures_text
from jaxtf.calltf._declared import known_sizes
from jaxtf.calltf._errors import DeclarationError, UnsupportedError
from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import dimension_variables, is_symbolic, short_text
from jaxtf.calltf._operations import RULES
from jaxtf.calltf._scope import CallScope, Required, Requirement, evaluated_text
from jaxtf.calltf._sizes import Numbers, Sample, first_sample, samples, symbolic_sizes
from jaxtf.calltf._symbolic_values import Shape, same_shape
from jaxtf.calltf._tf import hidden_from_debuggers, outside_of_graphs
from jaxtf.calltf._traced import Signature, Traced
from jaxtf.calltf._transfer import canonical_dtype, jax_dtype, tensorflow_dtype
from jaxtf.shapepoly import ScopeError

if TYPE_CHECKING:
    from jaxtf.calltf._function import Function

_MOST_REQUIREMENTS = 32
_CHOICE = re.compile(r"\b(max|min)\(")  # in the text of a size


@dataclass(frozen=True, eq=False)
class SymbolicTraced(Traced):
    """A function traced for symbolic shapes: interpreted with them, and compiled at samples.

    Attributes:
      sizes: The symbolic sizes of the arguments.
      scope: What they may be: with what the operations require.
      given_shapes: The shapes of the arguments and of the captures, as the caller has them.
      argument_shapes: These in this scope.
      result_shapes: Those of the results.
      samples: Where the function is compiled.
      numbers: What the numbers of the compiled programs may be.
      written: The trace, as the interpreter has written it for each sample, with the captures as arguments.
    """

    sizes: tuple[Any, ...] = ()
    scope: CallScope | None = None
    given_shapes: tuple[Shape, ...] = ()
    argument_shapes: tuple[Shape, ...] = ()
    result_shapes: tuple[Shape, ...] = ()
    samples: tuple[Sample, ...] = ()
    numbers: Numbers = field(default_factory=lambda: Numbers((), ()))
    written: tuple[Any, ...] = ()

    @classmethod
    def of(cls, function: Function, concrete: Any, signature: Signature, tree: PyTreeDef) -> SymbolicTraced:
        """The trace, with the shapes of its results as declared, or else as inferred.

        Raises:
          DeclarationError: A result has another size than declared.
          UnsupportedError: An operation that has no form for all sizes.
        """
        specs = tuple(tf.TensorSpec(known_sizes(shape), tensorflow_dtype(dtype)) for shape, dtype in signature)
        sizes = symbolic_sizes([shape for shape, _ in signature])
        traced = cls(function, concrete, specs, tree, (), sizes=sizes)
        open_ones = [value for value in traced.captured if not value.shape.is_fully_defined()]
        if open_ones:
            raise UnsupportedError(
                f"call_tf: {function} is called with symbolic sizes, and captures {captures_text(open_ones)}, whose "
                "sizes are not all known\n"
                "  remedy: pass the values as arguments, or make the variables of constant shapes"
            )
        shapes = (*(shape for shape, _ in signature), *(tuple(value.shape.as_list()) for value in traced.captured))
        dtypes = [*(spec.dtype for spec in specs), *(value.dtype for value in traced.captured)]
        traced = replace(traced, given_shapes=shapes)
        if function.staging.by_name:  # nothing is compiled here
            return traced._by_name(function.known_results(signature), dtypes)
        traced._require_values()
        traced, first, expressions = traced._interpreted(dtypes)
        assert traced.scope is not None
        chosen, unknown = samples(traced.scope, expressions)
        if unknown is not None:
            raise UnsupportedError(
                f"call_tf: {function} has sizes {unknown[0]} and {unknown[1]}, which were equal in every "
                "trial but are not known to be equal for all sizes\n"
                "  remedy: add a constraint that makes them equal, or use constant shapes"
            )
        written = [
            traced.written[0] if sample == first else _Written.of(traced, sample, dtypes).concrete for sample in chosen
        ]
        traced = replace(traced, samples=tuple(chosen), numbers=Numbers(chosen, expressions), written=tuple(written))
        return replace(traced, avals=tuple(traced._result_aval(i) for i in range(len(traced.result_shapes))))

    def _by_name(self, known: Sequence[ShapedArray] | None, dtypes: Sequence[Any]) -> SymbolicTraced:
        """With the results of a call by name: as known before, or as inferred, whatever the function does besides."""
        if known is not None:
            for index, aval in enumerate(known):
                self._refuse_strangers(index, aval)
            return replace(self, avals=tuple(known))
        traced = self._interpreted(dtypes)[0]
        avals = tuple(traced._result_aval(index) for index in range(len(traced.result_shapes)))
        return replace(self, scope=traced.scope, avals=avals)

    @property
    def is_open(self) -> bool:
        """As for `Traced`; sizes that were inferred are right, and of declared ones some are not found again."""
        return self.scope is None and super().is_open and self.unfound_size is None

    @functools.cached_property
    def unfound_size(self) -> Any:
        """A size of a result that is not computed again from those of the arguments; None if there is none."""
        if self.scope is not None:
            return None
        places = self._places
        sizes = (size for aval in self.avals for size in aval.shape if is_symbolic(size) and str(size) not in places)
        return next((x for x in sizes if _CHOICE.search(str(x)) or dimension_variables(x) - places.keys()), None)

    def result_sizes(self, tensors: Sequence[Any]) -> list[Any]:
        """As for `Traced`."""
        values = {text: tf.shape(tensors[i])[axis] for text, (i, axis) in self._places.items()}

        def value(size: Any) -> Any:
            if not is_symbolic(size):
                return size
            found = values.get(str(size))
            return evaluated_text(str(size), values) if found is None else found

        return [
            tf.stack([tf.convert_to_tensor(value(x), tf.int32) for x in aval.shape] or tf.zeros([0], tf.int32))
            for aval in self.avals
        ]

    @property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Where among the arguments each symbolic size is, by its text."""
        shapes = self.given_shapes[: len(self.specs)]
        return {str(x): (i, axis) for i, shape in enumerate(shapes) for axis, x in enumerate(shape) if is_symbolic(x)}

    def _interpreted(self, dtypes: Sequence[Any]) -> tuple[SymbolicTraced, Sample, list[Any]]:
        """The trace in the scope that it needs, written for one sample; that one; and the sizes that were met."""
        requirements: list[Requirement] = []
        while True:
            try:
                scope = CallScope(self.sizes, requirements)
            except (ScopeError, InconclusiveDimensionOperation):
                raise self._without_sizes(requirements) from None
            first = first_sample(scope)
            if first is None or len(requirements) > _MOST_REQUIREMENTS:
                raise self._without_sizes(requirements)
            traced = replace(self, scope=scope, argument_shapes=tuple(map(scope.own, self.given_shapes)))
            try:
                written = _Written.of(traced, first, dtypes)
            except Required as error:
                requirements.append(error.requirement)
                continue
            sizes = [size for size in scope.own(self.sizes) if is_symbolic(size)]
            traced = replace(traced, result_shapes=written.shapes, written=(written.concrete,))
            return traced, first, list(dict.fromkeys([*sizes, *written.expressions]))

    def _without_sizes(self, requirements: Sequence[Requirement]) -> UnsupportedError:
        texts = "".join(f"\n  its operation {each.operation}, which needs {each.text}" for each in requirements)
        return UnsupportedError(
            f"call_tf: {self.function} is called with symbolic sizes {', '.join(map(str, self.sizes))}, and no "
            f"values were found that their constraints allow and that its operations accept{texts}\n"
            "  remedy: use constant shapes"
        )

    def hlo(self, platform: str) -> bytes:
        """The HLO module at the first sample."""
        return self.hlos(platform)[0]

    def hlos(self, platform: str) -> list[bytes]:
        """The HLO module at each sample; its parameters are the arguments, then the captures."""
        if platform not in self._compiled:
            self._compiled[platform] = [
                replace(self, concrete=concrete, _compiled={})._hlo_of_each(
                    (concrete.structured_input_signature[0],), platform
                )[0]
                for concrete in self.written
            ]
        return self._compiled[platform]

    def _result_aval(self, index: int) -> ShapedArray:
        assert self.scope is not None
        shape = self.result_shapes[index]
        declared = self.function.declared
        if declared is None:
            dtype = canonical_dtype(jax_dtype(self.concrete.outputs[index].dtype))
            return ShapedArray(self.scope.given(shape), dtype)
        aval = declared.avals[index]
        self._refuse_strangers(index, aval)
        if not same_shape(shape, self.scope.own(aval.shape)):
            raise declared.mismatch(index, f"{aval.dtype.name}[{', '.join(map(str, shape))}]")
        return aval

    def _refuse_strangers(self, index: int, aval: ShapedArray) -> None:
        """Refuses a declared size of variables that the call does not have."""
        of_call = set[str]().union(*map(dimension_variables, self.sizes))
        for size in aval.shape:
            if is_symbolic(size) and (strangers := sorted(dimension_variables(size) - of_call)):
                raise DeclarationError(
                    f"output_shape_dtype declares result[{index}] of {self.function} to be {short_text(aval)}, and no "
                    f"argument of the call has the dimension variable {strangers[0]!r}\n"
                    "  remedy: declare sizes by those of the arguments, like x.shape[0]"
                )


@dataclass(frozen=True)
class _Written:
    """A trace as it is written for a sample.

    Attributes:
      shapes: The shapes of the results.
      expressions: The sizes that were met.
      concrete: The trace.
    """

    shapes: tuple[Shape, ...]
    expressions: tuple[Any, ...]
    concrete: Any

    @classmethod
    def of(cls, traced: SymbolicTraced, sample: Sample, dtypes: Sequence[Any]) -> _Written:
        """Interprets the trace."""
        assert traced.scope is not None
        by_name = traced.function.staging.by_name
        interpreter = Interpreter(traced.function, traced.concrete, traced.scope, sample, RULES, for_shapes=by_name)
        shapes: list[Shape] = []

        def body(*tensors: Any) -> list[Any]:
            values = interpreter.run(tensors, traced.argument_shapes)
            for index, value in enumerate(values):
                if value.unknown:
                    raise UnsupportedError(
                        f"call_tf: {traced.function} has call_tf_graph=True and is called with symbolic sizes, and "
                        f"the shape of result[{index}] is not inferred: that of its operation {value.unknown} is not "
                        "known\n"
                        "  remedy: declare the results by output_shape_dtype, or by tf.ensure_shape in the function"
                    )
            shapes[:] = [value.shape for value in values]
            return [tf.identity(value.tensor) for value in values]

        specs = [
            tf.TensorSpec(sample.shape(shape), dtype)
            for shape, dtype in zip(traced.argument_shapes, dtypes, strict=True)
        ]
        with outside_of_graphs(), hidden_from_debuggers():
            concrete = tf.function(body, autograph=False, jit_compile=True).get_concrete_function(*specs)
        return cls(tuple(shapes), tuple(interpreter.expressions), concrete)
