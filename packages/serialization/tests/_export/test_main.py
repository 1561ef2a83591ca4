"""The exported main function computes and checks the dimension variables."""

import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32


def types_of_main(text):
    line = next(line for line in text.splitlines() if "func.func public @main" in line)
    return re.findall(r"tensor<[^>]*>|!stablehlo.token", line)


@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "tpu")])
@pytest.mark.parametrize("shape", ["2, 3", "b, 3", "b, 2*d"])
def test_main_takes_and_returns_what_jax_exports(platforms, shape):
    def f(x, i):
        return x.sum(axis=1), x.reshape(-1), i

    specs = ShapeDtypeStruct(symbolic_shape(shape), F32), ShapeDtypeStruct((), jnp.int32)
    theirs_specs = ShapeDtypeStruct(jax.export.symbolic_shape(shape), F32), specs[1]
    ours = export(f, platforms=platforms)(*specs)
    theirs = jax.export.export(jax.jit(f), platforms=platforms)(*theirs_specs)
    assert types_of_main(ours.mlir_module()) == types_of_main(theirs.mlir_module())


def test_the_module_is_text_or_an_object_of_the_bindings():
    exported = export(lambda x: x + 1)(ShapeDtypeStruct((2,), F32))
    module = exported.mlir_module(serialized=False)
    assert module.operation.name == "builtin.module"
    assert [str(operation.name.value) for operation in module.body] == re.findall(r"func\.func \w+ @(\w+)", str(module))
    assert types_of_main(str(module)) == types_of_main(exported.mlir_module())


def test_checks_have_side_effects_so_that_they_do_not_vanish():
    text = export(lambda x: x)(ShapeDtypeStruct(symbolic_shape("b, 2*d"), F32)).mlir_module()
    checks = [line for line in text.splitlines() if "@shape_assertion" in line]
    assert len(checks) >= 3
    assert all("has_side_effect = true" in line for line in checks)


@pytest.mark.parametrize("x64", [False, True])
def test_dimension_values_have_the_width_of_jax_integers(x64):
    with jax.enable_x64(x64):
        exported = export(lambda x: x.shape[0] * jnp.arange(x.shape[0]))(ShapeDtypeStruct(symbolic_shape("2*b"), F32))
        result = exported.call(np.ones(6, F32))
    assert result.dtype == (np.int64 if x64 else np.int32)
    np.testing.assert_array_equal(result, 6 * np.arange(6))


@pytest.mark.parametrize(
    ("shape", "constraints"),
    [
        ("max(a, b), a, b", ()),
        ("a + b, a - b", ("a >= b + 1",)),
        ("a//2, a", ()),
        ("a, a % 3 + 1", ()),
        ("a*b, a", ()),
        ("10 - a, 2*b", ("a <= 10",)),
    ],
)
@pytest.mark.parametrize("sizes", [{"a": 3, "b": 2}, {"a": 7, "b": 1}, {"a": 4, "b": 3}], ids=str)
def test_dimension_variables_are_solved_at_run_time(shape, constraints, sizes):
    symbolic = symbolic_shape(shape, constraints=constraints)
    actual = eval(shape, {"max": max}, sizes)
    exported = export(lambda x: jnp.zeros_like(x) + x.shape[0])(ShapeDtypeStruct(symbolic, F32))
    np.testing.assert_array_equal(exported.call(np.ones(actual, F32)), np.full(actual, actual[0], F32))


def test_exports_nest_with_their_own_variables_of_the_same_name():
    inner = export(lambda x: x.reshape(-1))(ShapeDtypeStruct(symbolic_shape("b, 2*d"), F32))
    middle = export(lambda x: inner.call(x.T) + inner.call(x.T))(ShapeDtypeStruct(symbolic_shape("2*d, b"), F32))
    outer = export(lambda x: middle.call(jnp.concatenate([x, x])))(ShapeDtypeStruct(symbolic_shape("b, d"), F32))
    x = np.arange(6, dtype=F32).reshape(3, 2)
    np.testing.assert_array_equal(outer.call(x), 2 * np.concatenate([x, x]).T.reshape(-1))


def test_sizes_that_constraints_make_equal_keep_their_names_and_checks():
    n, m = symbolic_shape("n, m", constraints=["n >= m", "m >= n"])
    exported = export(lambda x, y: x + y)(ShapeDtypeStruct((n,), F32), ShapeDtypeStruct((m,), F32))
    assert [str(aval) for aval in exported.in_avals] == ["float32[n]", "float32[m]"]
    np.testing.assert_array_equal(exported.call(np.ones(3, F32), np.ones(3, F32)), [2, 2, 2])
    with pytest.raises(ValueError, match="do not match the symbolic shape constraint"):
        exported.call(np.ones(3, F32), np.ones(4, F32))


def test_only_sizes_that_types_do_not_say_are_checked():
    exported = export(lambda x, w: x @ w)(ShapeDtypeStruct(symbolic_shape("b, 4"), F32), ShapeDtypeStruct((4, 5), F32))
    assert exported.mlir_module().count("@shape_assertion") == 1  # b >= 1


@pytest.mark.parametrize(
    ("shapes", "constraints", "is_wide"),
    [
        (["a", "b"], ["a*b <= 1000000"], True),
        (["a", "b"], ["a + b <= 2000000000"], True),
        (["a", "b", "a*b"], [], True),
        (["a + b", "a - b"], [], True),
        (["a", "2*b"], ["a >= b", "mod(a, 2) == 0"], False),
        (["a", "b + a"], [], False),
    ],
)
def test_checks_that_may_leave_32_bits_are_made_in_64(shapes, constraints, is_wide):
    sizes = symbolic_shape(", ".join(shapes), constraints=constraints)
    text = export(lambda *x: x[0] + 1)(*(ShapeDtypeStruct((size,), F32) for size in sizes)).mlir_module()
    main = text[text.index("func.func public @main") : text.index("func.func private")]
    assert ("tensor<i64>" in main) == is_wide
    assert "tensor<i64>" not in text[text.index("func.func private") :]
