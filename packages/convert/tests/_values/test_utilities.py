"""The smaller public functions: shapes of results, dtypes of values, annotations for the partitioner."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import (
    ArgumentTypeError,
    ConversionOptionError,
    PolyShape,
    convert,
    convert_exported,
    convert_stablehlo,
    dtype_of_val,
    eval_polymorphic_shape,
    split_to_logical_devices,
)
from jaxtf.serialization import export
from jaxtf.shapepoly import ShapeSpecError


def spec(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_shapes_of_nested_results_are_specs_and_texts():
    def fun(x, *, y):
        return {"sum": x.sum(), "pair": (jnp.concatenate([x, x]), y)}

    specs, texts = eval_polymorphic_shape(fun, polymorphic_shapes=["b, _"])(spec(3, 4), y=spec(2))
    assert texts == {"sum": "()", "pair": ("(2*b, 4)", "(2)")}
    assert jax.tree.map(lambda s: str(s.shape), specs)["pair"][0] == "(2*b, 4)"


def test_texts_can_be_given_on():
    first, texts = eval_polymorphic_shape(lambda x: (x, x.T), polymorphic_shapes=[PolyShape("b", ...)])(spec(3, 4))
    _, second = eval_polymorphic_shape(lambda pair: pair[0] @ pair[1], polymorphic_shapes=[texts])(first)
    assert second == "(b, b)"


def test_constraints_hold():
    fun = eval_polymorphic_shape(lambda x: x[:4], polymorphic_shapes=["b"], polymorphic_constraints=["b >= 4"])
    assert fun(spec(9))[1] == "(4)"


def test_a_text_that_does_not_fit_is_refused():
    with pytest.raises(ShapeSpecError, match=r"has rank 2, but the shape it is for"):
        eval_polymorphic_shape(jnp.sin, polymorphic_shapes=["a, b"])(spec(3))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("value", [3.14, 3, True, 2j, np.float64(1), np.int8(1), np.float16(1), np.arange(2)])
def test_dtypes_are_those_that_jax_computes_in(value, x64):
    with jax.enable_x64(x64):
        assert dtype_of_val(value) == convert(lambda x: x)(value).dtype == tf.as_dtype(jnp.asarray(value).dtype)
        assert dtype_of_val(tf.constant(value)) == convert(lambda x: x)(tf.constant(value)).dtype


def test_an_array_that_jax_computed_from_python_numbers_takes_the_dtype_of_the_other_operand():
    half, made = jnp.ones(2, jnp.bfloat16), jnp.asarray(3.0) * 2
    assert (
        convert(lambda x, y: x * y)(half, made).dtype == jax.jit(lambda x, y: x * y)(half, made).dtype == jnp.bfloat16
    )
    assert convert(lambda x, y: x * y)(half, jnp.float32(3)).dtype == tf.float32


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_an_integer_that_jax_cannot_hold_is_refused(value):
    with pytest.raises(
        ArgumentTypeError, match=rf"args\[0\] is {value}, too large for int32, the dtype that JAX gives"
    ):
        convert(lambda x: x + 1)(value)
    with jax.enable_x64(True):
        assert int(convert(lambda x: x + 1)(value)) == value + 1


def test_a_variable_of_that_dtype_needs_no_cast():
    assert dtype_of_val(tf.Variable(3.14, dtype=dtype_of_val(3.14))) == tf.float32


def test_values_without_a_jax_dtype_are_refused():
    with pytest.raises(ArgumentTypeError, match=r"the value has dtype string, which is not a valid JAX array type"):
        dtype_of_val(tf.constant("text"))


@pytest.mark.parametrize("make", [convert, lambda f: convert_exported(export(f)(spec(2)))], ids=["convert", "exported"])
@pytest.mark.parametrize("value", [tf.TensorSpec([2], tf.float32), spec(2)], ids=["TensorFlow", "JAX"])
def test_a_specification_in_place_of_numbers_is_refused(value, make):
    with pytest.raises(ArgumentTypeError) as refused:
        make(lambda x: x)(value)
    assert str(refused.value) == (
        f"args[0] is a {type(value).__name__}, which has a shape and a dtype, but no numbers: {value}\n"
        "  remedy: pass a tensor or an array; to trace the function for a specification, call "
        "tf.function(converted).get_concrete_function(...) with a tf.TensorSpec"
    )


@pytest.mark.parametrize("mode", [lambda f: f, tf.function])
def test_an_annotated_value_is_the_same_value(mode):
    x = tf.reshape(tf.range(8.0), [4, 2])
    np.testing.assert_array_equal(mode(lambda x: split_to_logical_devices(x, [2, 1]))(x), x)


def test_the_annotation_is_in_the_graph():
    graph = (
        tf.function(lambda x: split_to_logical_devices(x, [2, 2])).get_concrete_function(tf.TensorSpec([4, 2])).graph
    )
    [op] = [op for op in graph.get_operations() if op.type == "XlaSharding"]
    assert op.get_attr("sharding") or op.get_attr("_XlaSharding")


@pytest.mark.parametrize("parts", [[2], [0, 1], [1.5, 1], [True, 1], [1, 1, 1]])
def test_wrong_numbers_of_parts_are_refused(parts):
    with pytest.raises(ConversionOptionError, match=r"a number of parts, at least 1, for each axis"):
        split_to_logical_devices(tf.ones([4, 2]), parts)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.ones(1, np.longdouble), "float128"),
        (np.ones(1, ">f4"), ">f4"),
        (np.void(b"abcd"), "void32"),
        (np.ones(1, ml_dtypes.float8_e8m0fnu), "float8_e8m0fnu"),
    ],
)
def test_what_numpy_has_and_tensorflow_has_not_is_refused_by_its_name(value, name):
    with pytest.raises(ArgumentTypeError, match=rf"dtype {name}, which is not a valid JAX array type"):
        dtype_of_val(value)


class Sized:
    """What NumPy makes an array of, and has no shape of its own."""

    dtype = np.dtype("float32")

    def __array__(self, dtype=None, copy=None):
        return np.full(2, 3, self.dtype)


@pytest.mark.parametrize("kind", ["convert", "graph mode", "exported", "stablehlo"])
@pytest.mark.parametrize("value", [tf.TensorArray(tf.float32, 2), np.finfo(np.float32)], ids=["TensorArray", "finfo"])
def test_what_has_a_dtype_and_no_shape_is_not_an_array(value, kind):
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    converted = {
        "convert": lambda: convert(lambda x: x * 2),
        "graph mode": lambda: convert(lambda x: x * 2, native_serialization=False),
        "exported": lambda: convert_exported(export(lambda x: x * 2)(np.zeros(2, np.float32))),
        "stablehlo": lambda: convert_stablehlo(text),
    }[kind]()
    with pytest.raises(ArgumentTypeError, match=rf"is a {type(value).__name__}, which has a dtype, but no shape"):
        converted(value)
    np.testing.assert_array_equal(converted(Sized()), [3, 3] if kind == "stablehlo" else [6, 6])
