"""Sizes that are integers of other types than Python's, at every place that takes some: none of them wraps."""

import jax
import numpy as np
import pytest

from jaxtf.serialization import ArgumentMismatch, Aval, Exported, export
from jaxtf.shapepoly import symbolic_shape

NUMBERED = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
TYPES = [*NUMBERED, *(lambda value, kind=kind: np.array(value, kind) for kind in NUMBERED)]


@pytest.fixture(scope="module")
def outer_product():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b"), "float32")
    return export(lambda x: (x[:, None] * x[None]).ravel())(spec)


@pytest.mark.parametrize("kind", TYPES)
def test_shapes_are_checked_in_pythons_integers(kind, outer_product):
    shapes = outer_product.check_shapes((kind(100),))
    assert repr(shapes) == "Shapes(variables={'b': 100}, results=((10000,),))"


@pytest.mark.parametrize("kind", TYPES)
def test_costs_take_integers_of_any_type(kind, outer_product):
    cost = outer_product.cost(b=kind(100))
    assert repr(cost.sizes) == "{'b': 100}"
    assert cost.result_bytes == 40_000


@pytest.mark.parametrize("kind", TYPES)
def test_a_record_has_pythons_integers(kind):
    made = export(lambda x: x * 2)(jax.ShapeDtypeStruct((kind(100), *symbolic_shape("b")), "float32"))
    avals = [aval.shape[0] for aval in (*made.in_avals, *made.out_avals, *made.vjp().in_avals)]
    by_hand = Exported.from_parts(
        fun_name="twice",
        in_tree=made.in_tree,
        in_avals=[Aval((kind(100), made.in_avals[0].shape[1]), np.dtype("float32"))],
        out_tree=made.out_tree,
        out_avals=[jax.ShapeDtypeStruct((kind(100), made.out_avals[0].shape[1]), "float32")],
        mlir_module_serialized=made.mlir_module_serialized,
        platforms=("cpu",),
    )
    avals += [aval.shape[0] for aval in (*by_hand.in_avals, *by_hand.out_avals)]
    assert repr(avals) == repr([100] * 6)
    assert by_hand.check_shapes((100, kind(3))).results == ((100, 3),)


def test_a_size_that_wraps_is_another_size():
    doubled = export(lambda x, y: x)(*(jax.ShapeDtypeStruct((d,), "float32") for d in symbolic_shape("q, 2*q")))
    with pytest.raises(ArgumentMismatch):
        doubled.check_shapes((np.uint8(200),), (np.uint8(144),))


@pytest.mark.parametrize("shape", [(3.0,), (np.float32(3),), (np.array([3, 4]),), np.array([3])])
def test_what_is_not_a_shape_is_refused(shape, outer_product):
    with pytest.raises(ArgumentMismatch, match="a shape expected for args"):
        outer_product.check_shapes(shape)


@pytest.mark.parametrize("size", [True, np.True_, 2.0, 0, np.int8(0)])
def test_costs_take_sizes_only(size, outer_product):
    with pytest.raises(ArgumentMismatch, match="needs a size from 1 on"):
        outer_product.cost(b=size)
