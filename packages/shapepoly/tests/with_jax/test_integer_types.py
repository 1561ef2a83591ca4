"""Sizes that are integers of other types than Python's, at every place that takes some: none of them wraps."""

import operator

import jax
import numpy as np
import pytest

from jaxtf.shapepoly import (
    IntegerOperations,
    ShapeMismatch,
    SymbolicOperations,
    evaluate,
    max_dim,
    min_dim,
    solve_dimension_variables,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)

NUMBERED = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
TYPES = [*NUMBERED, *(lambda value, kind=kind: np.array(value, kind) for kind in NUMBERED), jax.numpy.int32]
OPERATIONS = [IntegerOperations, SymbolicOperations]


def is_plain(*sizes):
    return all(type(size) is int for size in sizes)


@pytest.mark.parametrize("kind", TYPES)
class TestIntegerTypes:
    @pytest.mark.parametrize("operations", OPERATIONS)
    def test_values_of_sizes(self, kind, operations):
        (b,) = symbolic_shape("b")
        for of in (
            lambda b: b,
            lambda b: b * b * b * b * b,
            lambda b: b + b + 100 * b,
            lambda b: 300 - b,
            lambda b: -b // 7,
            lambda b: (b * b * 3) % 1000,
        ):
            value = evaluate(of(b), {"b": kind(100)}, operations())
            assert is_plain(value)
            assert value == of(100)
        value = evaluate(max_dim(b * b, 500), {"b": kind(100)}, operations())
        assert is_plain(value)
        assert value == 10_000

    @pytest.mark.parametrize("operations", OPERATIONS)
    def test_each_operation(self, kind, operations):
        table = operations([(kind(100),)])
        assert (table.dimension_size(0, 0), table.constant(kind(100)), table.size(kind(100))) == (100, 100, 100)
        results = [
            table.constant(kind(100)),
            table.dimension_size(0, 0),
            table.add(kind(100), kind(100)),
            table.multiply(kind(100), kind(100)),
            table.floordiv(kind(100), kind(7)),
            table.mod(kind(100), kind(7)),
            table.maximum(kind(100), kind(7)),
            table.minimum(kind(100), kind(7)),
        ]
        assert is_plain(*results)
        assert results == [100, 100, 200, 10_000, 14, 2, 100, 7]

    @pytest.mark.parametrize("operations", OPERATIONS)
    def test_solved_from_sizes(self, kind, operations):
        solution = solve_dimension_variables([("x", symbolic_shape("3*q + 1, q*q"))])
        values = solution.run(operations([(kind(100), np.int16(1089))]))
        assert values == {"q": 33}
        assert is_plain(*values.values())
        doubled = solve_dimension_variables([("x", symbolic_shape("q, 2*q"))])
        with pytest.raises(ShapeMismatch):
            doubled.run(operations([(200, kind(144 if kind(1).dtype != np.int8 else 44))]))

    def test_specifications(self, kind):
        solution = solve_dimension_variables([("x", (kind(100), *symbolic_shape("q")))])
        assert is_plain(solution.sources[0].specification)
        assert solution.run(IntegerOperations([(100, 3)])) == {"q": 3}
        assert symbolic_dim_bounds(kind(100)) == (100, 100)
        assert is_plain(*symbolic_dim_bounds(kind(100)), max_dim(kind(100), kind(7)), min_dim(kind(100), kind(7)))

    def test_placeholders(self, kind):
        fixed, _, rest = symbolic_shape("_, b, ...", like=(kind(28), None, kind(3)))
        assert (fixed, rest) == (28, 3)
        assert is_plain(fixed, rest, *symbolic_shape(None, like=(kind(28),)))
        assert str(symbolic_shape("28, b", like=(kind(28), None))) == "(28, b)"
        with pytest.raises(ValueError, match="dimension 0 is 27"):
            symbolic_shape("27, b", like=(kind(28), None))

    def test_specifications_of_arguments(self, kind):
        spec = symbolic_args_specs((jax.ShapeDtypeStruct((kind(28), 3), "float32"),), ("_, b",))[0]
        assert is_plain(spec.shape[0])
        assert str(spec.shape) == "(28, b)"

    def test_arithmetic_of_dimensions(self, kind):
        (b,) = symbolic_shape("b")
        assert str(b * kind(100) * kind(100) + kind(100)) == "10000*b + 100"
        if not isinstance(kind(100), jax.Array):  # with those the product is an array
            assert str(kind(100) * b) == "100*b"

    def test_values_for_jax(self, kind):
        (b,) = symbolic_shape("b")
        assert (b * b * b * b * b)._evaluate({"b": kind(100)}) == 10**10


def test_what_is_not_an_integer_is_refused():
    (b,) = symbolic_shape("b")
    for value in (2.5, np.float32(2), np.array([2, 3])):
        with pytest.raises(TypeError):
            evaluate(b * b, {"b": value}, IntegerOperations())


def test_a_truth_value_is_the_integer_that_it_is_to_python():
    (b,) = symbolic_shape("b")
    value = evaluate(b, {"b": True}, IntegerOperations())
    assert value == operator.index(True)
    assert is_plain(value)
