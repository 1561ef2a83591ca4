"""`symbolic_args_specs`: pytrees of specifications."""

import jax
import numpy as np
import pytest

from jaxtf.shapepoly import PolyShape, ShapeSpecError, SymbolicScope, symbolic_args_specs

ARGS = ({"w": np.ones((3, 4), np.float32), "b": np.ones(4, np.float32)}, np.ones((7, 3), np.int32))


def shapes(specs):
    return jax.tree.map(lambda leaf: f"{leaf.shape} {leaf.dtype}", specs)


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (None, ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(7, 3) int32")),
        ("n, ...", ({"w": "(n, 4) float32", "b": "(n,) float32"}, "(n, 3) int32")),
        ((None, "batch, _"), ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(batch, 3) int32")),
        ([None, "batch, _"], ({"w": "(3, 4) float32", "b": "(4,) float32"}, "(batch, 3) int32")),
        (({"w": "(i, o)", "b": "(o,)"}, None), ({"w": "(i, o) float32", "b": "(o,) float32"}, "(7, 3) int32")),
        (
            ({"w": "(i, o)", "b": None}, PolyShape("n", ...)),
            ({"w": "(i, o) float32", "b": "(4,) float32"}, "(n, 3) int32"),
        ),
    ],
)
def test_specifications_are_a_prefix_of_the_arguments(specs, expected):
    assert shapes(symbolic_args_specs(ARGS, specs)) == expected


def test_all_arguments_share_a_scope():
    x, y = symbolic_args_specs((np.ones(3), np.ones(4)), ("a", "b"), constraints=["a >= b"])
    assert x.shape[0] >= y.shape[0]
    scope = SymbolicScope()
    (z,) = symbolic_args_specs((np.ones(3),), ("a",), scope=scope)
    assert z.shape[0].scope is scope


def test_scalars_and_shape_dtype_structs_are_arguments():
    specs = symbolic_args_specs((3.0, jax.ShapeDtypeStruct((2, 3), "bfloat16")), ("", "b, _"))
    assert shapes(specs) == ("() float32", "(b, 3) bfloat16")


def test_an_error_names_the_argument():
    with pytest.raises(ShapeSpecError) as caught:
        symbolic_args_specs(ARGS, ({"w": "(i, o, k)", "b": None}, None))
    assert str(caught.value) == (
        "in the specification of args[0]['w']: polymorphic shape '(i, o, k)' has rank 3, but the shape it is for, "
        "(3, 4), has rank 2; write one dimension for each axis"
    )


def test_specifications_that_are_no_prefix_are_refused():
    with pytest.raises(ShapeSpecError, match=r"at key path\n    shapes_specs\n"):
        symbolic_args_specs(ARGS, ("a", "b", "c"))
