"""What `call_tf` accepts, returns and refuses, outside of staging contexts and in general."""

import doctest
import gc
import importlib
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jaxtf.calltf
from jaxtf.calltf import CaptureWarning, DeclarationError, FunctionTypeError, call_tf

X = jnp.array([1.0, 2.0])


class Pair(NamedTuple):
    left: object
    right: object


@jax.tree_util.register_dataclass
@dataclass
class Polar:
    angle: object
    radius: object


@jax.tree_util.register_dataclass
@dataclass
class Backwards:
    radius: object
    angle: object


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit, jax.grad], ids=["eager", "jit", "grad"])
def test_two_dataclasses_with_as_many_fields_are_traced_each(stage):
    call = call_tf(lambda point: point.radius * 10 + point.angle)
    for _ in range(2):
        for made in (Polar, Backwards):
            found = stage(call)(made(angle=1.0, radius=2.0))
            assert (found.radius, found.angle) == (10, 1) if stage is jax.grad else found == 21


def test_arguments_and_results_are_pytrees_of_any_kind():
    def function(pair, *, scale):
        assert isinstance(pair.left["x"], tf.Tensor)
        assert pair.right is None
        return {"sum": pair.left["x"] + scale, "pair": Pair((), [pair.left["x"]]), "nothing": None}

    for call in (call_tf(function), jax.jit(call_tf(function))):
        found = call(Pair({"x": jnp.arange(3)}, None), scale=jnp.int32(2))
        assert jax.tree.structure(found) == jax.tree.structure({"sum": 0, "pair": Pair((), [0]), "nothing": None})
        np.testing.assert_array_equal(found["sum"], [2, 3, 4])
        np.testing.assert_array_equal(found["pair"].right[0], [0, 1, 2])
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(found))


@pytest.mark.parametrize(
    "value",
    [True, 3, 2.5, 1 + 2j, np.float32(2.5), np.arange(3), np.ones(2), jnp.ones(2, jnp.bfloat16), jnp.bfloat16(2)]
    + [np.array([1, 2], dtype) for dtype in ("int8", "uint16", "uint32", "int64", "uint64", "float16", "complex128")],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}{np.shape(value)}",
)
def test_every_number_is_taken_as_jax_takes_it(value, x64):
    expected = jnp.asarray(value)
    for call in (call_tf(lambda x: x), jax.jit(call_tf(lambda x: x))):
        found = call(value)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_results_of_64_bits_are_canonicalized_as_jax_does(x64):
    def function():
        return tf.constant([2**40 + 1]), tf.constant(1 / 3, tf.float64), tf.constant(1 + 1j, tf.complex128)

    for call in (call_tf(function), jax.jit(call_tf(function))):
        for found, value in zip(call(), function(), strict=True):
            expected = value.numpy().astype(jax.dtypes.canonicalize_dtype(value.numpy().dtype))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_the_function_may_be_traced_with_64_bit_types_on_and_off_in_turn():
    call = jax.jit(call_tf(lambda: tf.constant(2.5, tf.float64)))
    found = []
    for enabled in (False, True, False):
        with jax.enable_x64(enabled):
            found.append(call().dtype.name)
    assert found == ["float32", "float64", "float32"]


@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(self, leaf, metadata):
        self.leaf, self.metadata = leaf, metadata

    def tree_flatten(self):
        return (self.leaf,), self.metadata

    @classmethod
    def tree_unflatten(cls, metadata, leaves):
        return cls(*leaves, metadata)


class Equal:
    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 0

    def __mul__(self, other):
        return self.factor * other


# Two of each, which are equal, or cannot be compared.
ALIKE = {
    "1 and True": (Node(X, 1), Node(X, True), lambda node: node.leaf * (10.0 if node.metadata is True else 1.0)),
    "keys": ({1: X}, {True: X}, lambda tree: sum(x * (10.0 if key is True else 1.0) for key, x in tree.items())),
    "objects": (Node(X, Equal(2.0)), Node(X, Equal(3.0)), lambda node: node.metadata * node.leaf),
    "arrays": (Node(X, np.ones(2)), Node(X, np.ones(3)), lambda node: node.leaf * float(node.metadata.sum())),
    "lists": (Node(X, [1.0]), Node(X, [2.0]), lambda node: node.leaf * node.metadata[0]),
}
EAGER = {
    "call": lambda f: f(X),
    "call of NumPy arrays": lambda f: f(np.asarray(X)),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "grad of jvp": lambda f: jax.grad(lambda x: jax.jvp(lambda x: f(x) ** 2, (x,), (X,))[1].sum())(X),
    "grad of grad": lambda f: jax.grad(lambda x: jax.grad(lambda x: (f(x) ** 2).sum())(x).sum())(X),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("use", EAGER)
def test_an_eager_call_has_the_containers_of_its_own_arguments(name, use):
    *trees, function = ALIKE[name]
    call = call_tf(function)
    for tree in (*trees, *trees):
        found, expected = (
            EAGER[use](lambda x, f=f, tree=tree: f(jax.tree.map(lambda _: x, tree))) for f in (call, function)
        )
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)


@pytest.mark.parametrize("name", ["arrays", "lists"])
def test_containers_that_cannot_be_compared_are_traced_for_each_call(name):
    *trees, function = ALIKE[name]
    call = call_tf(function)
    for tree in (*trees, *trees):
        found = jax.jit(lambda x, tree=tree: call(Node(x, tree.metadata)))(X)
        np.testing.assert_allclose(found, function(tree), rtol=1e-6)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.jacfwd, lambda f: jax.jit(jax.grad(lambda x: f(x)[0]))])
def test_the_function_is_traced_for_each_configuration_of_jax(transform):
    """TensorFlow code may contain functions that were converted from JAX."""

    def configured(x):
        return x * (2.0 if jax.config.jax_threefry_partitionable else 1.0)

    x, call = jnp.arange(3.0), call_tf(configured)
    for partitionable in (True, False, True):
        with jax.threefry_partitionable(partitionable):
            np.testing.assert_array_equal(transform(call)(x), transform(configured)(x))


def test_tensors_and_variables_are_arguments_too():
    found = call_tf(lambda x, y: x + y)(tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0]))
    np.testing.assert_array_equal(found, [4.0, 6.0])


def test_results_may_be_variables_numpy_arrays_and_python_numbers():
    variable = tf.Variable([1.0, 2.0])
    found = call_tf(lambda: (variable, np.arange(2, dtype=np.int32), 3))()
    variable.assign_add([10.0, 10.0])
    np.testing.assert_array_equal(found[0], [1.0, 2.0])
    np.testing.assert_array_equal(found[1], [0, 1])
    assert found[2] == 3


def test_a_call_outside_of_staging_contexts_is_eager():
    seen = []

    def function(x):
        seen.append(x.numpy().tolist())  # a symbolic tensor has no numpy()
        return x[: int(x[0])] if x[0] > 0 else x

    call = call_tf(function)
    np.testing.assert_array_equal(call(np.array([1, 5, 6], np.int32)), [1])
    np.testing.assert_array_equal(call(np.array([0, 5, 6], np.int32)), [0, 5, 6])
    assert seen == [[1, 5, 6], [0, 5, 6]]


def test_a_function_that_does_not_compile_runs_eagerly():
    call = call_tf(lambda x: tf.strings.length(tf.strings.format("Hello {}!", [x])))
    assert call(np.float32(42.0)) == len("Hello 42!")


def test_variables_are_read_and_written_eagerly():
    variable = tf.Variable(1.0)

    def function(x):
        variable.assign(11.0)
        return x + variable

    assert call_tf(function)(2.0) == 13.0
    assert variable.numpy() == 11.0


def test_an_eager_call_is_eager_while_a_tensorflow_graph_is_built():
    call = call_tf(lambda x: x.numpy() * 2)

    @tf.function(autograph=False)  # AutoGraph would translate all of JAX
    def outer():
        return tf.constant(np.asarray(call(jnp.arange(3.0))))

    np.testing.assert_array_equal(outer(), [0.0, 2.0, 4.0])


def test_the_jax_function_has_the_name_of_the_tensorflow_function():
    def cosine(x):
        """Cosine."""
        return tf.cos(x)

    assert call_tf(cosine).__name__ == "cosine"
    assert call_tf(cosine).__doc__ == "Cosine."


def test_defaults_of_the_tensorflow_function_are_not_arguments():
    def function(x, mode="double"):
        return x * {"double": 2}[mode]

    wrapped = jax.custom_jvp(call_tf(function))  # JAX fills in the defaults of a signature it sees
    wrapped.defjvp(lambda primals, tangents: (wrapped(*primals), *tangents))
    assert wrapped(3.0) == 6.0


@pytest.mark.parametrize(
    "used",
    [
        pytest.param(lambda call, x: call(x), id="eager"),
        pytest.param(lambda call, x: jax.grad(call)(x), id="grad"),
        pytest.param(lambda call, x: jax.jvp(call, (x,), (x,)), id="jvp"),
        pytest.param(lambda call, x: jax.hessian(call)(x), id="hessian"),
        pytest.param(lambda call, x: jax.vmap(call)(x[None]), id="vmap"),
        pytest.param(lambda call, x: jax.vmap(jax.grad(call))(x[None]), id="vmap_grad"),
        pytest.param(lambda call, x: jax.make_jaxpr(call)(x), id="make_jaxpr"),
        pytest.param(lambda call, x: jax.jit(call)(x), id="jit"),
        pytest.param(lambda call, x: jax.jit(jax.grad(call))(x), id="jit_grad"),
        pytest.param(lambda call, x: jax.grad(jax.jit(call))(x), id="grad_jit"),
        pytest.param(lambda call, x: jax.jit(jax.hessian(call))(x), id="jit_hessian"),
        pytest.param(lambda call, x: jax.jit(jax.vmap(call))(x[None]), id="jit_vmap"),
        pytest.param(lambda call, x: jax.jit(lambda x: jax.jvp(call, (x,), (x,)))(x), id="jit_jvp"),
        pytest.param(
            lambda call, x: jax.jit(lambda x: jax.lax.scan(lambda carry, y: (carry + call(y), None), 0.0, x))(x[None]),
            id="jit_scan",
        ),
        pytest.param(lambda call, x: jax.jit(jax.grad(jax.checkpoint(call)))(x), id="jit_checkpoint"),
    ],
)
def test_nothing_outlives_the_wrapper(used):
    """Neither the function nor what it closes over, and nobody need clear JAX's caches."""

    class Owner:
        factor = 2.0

    def function(x, owner=Owner()):  # noqa: B008
        return owner.factor * tf.reduce_sum(x * x)

    x = jnp.arange(3.0)
    jax.block_until_ready(used(call_tf(function), x))
    references = [weakref.ref(function), weakref.ref(*function.__defaults__)]
    del function
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"a": ["hello"]}, r"args\[0\]\['a'\]\[0\] is not an array: found 'hello' of type str"),
        (object, r"args\[0\] is not an array: found <class 'object'> of type type"),
        (np.array(["a"]), r"args\[0\] has dtype <U1, which JAX and TensorFlow do not share"),
        (np.array([None]), r"args\[0\] has dtype object, which JAX and TensorFlow do not share"),
        (tf.constant("a"), r"args\[0\] is not an array: found <tf.Tensor: shape=\(\), dtype=string"),
    ],
)
def test_an_argument_that_is_not_an_array_is_refused_by_its_address(argument, message):
    with pytest.raises(TypeError, match=message):
        call_tf(lambda x: x)(argument)


def test_a_keyword_argument_that_is_not_an_array_is_refused_by_its_address():
    with pytest.raises(TypeError, match=r"kwargs\['mode'\] is not an array: found 'fast' of type str"):
        call_tf(lambda x, mode: x)(1.0, mode="fast")


def test_a_random_key_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"(?s)dtype key<fry>.*pass jax.random.key_data\(key\)"):
        call_tf(lambda x: x)(jax.random.key(0))


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="callable_tf must be callable, found 3"):
        call_tf(3)


@pytest.mark.parametrize("of_jax", [jnp.sin, jax.nn.relu, jax.jit(lambda x: x + 1), jax.numpy.add])
def test_a_function_of_jax_is_refused_with_the_remedy(of_jax):
    with pytest.raises(
        FunctionTypeError, match=r"needs a TensorFlow function, found the JAX .*\n  remedy: JAX calls it"
    ):
        call_tf(of_jax)


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("fun", [lambda x: jnp.sin(x) + 1, lambda x: 2 * jax.lax.sin(x)])
def test_a_tensor_that_reaches_jax_is_explained(stage, fun):
    with pytest.raises(TypeError) as raised:
        stage(call_tf(fun))(jnp.ones(3))
    assert any("passes a tensor to a JAX function" in note for note in raised.value.__notes__)


def test_a_warning_of_captures_points_to_the_line_of_the_program():
    variable = tf.Variable(3.0)
    with pytest.warns(CaptureWarning) as warned:
        jax.jit(call_tf(lambda x: x * variable))(1.0)
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize(
    "result", [lambda: tf.ragged.constant([[1], [2, 3]]), lambda: tf.constant("text"), lambda: tf.sparse.eye(2)]
)
@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_result_that_is_not_an_array_is_refused(result, stage):
    message = r"(?s)The called TF function returns a result that is not convertible to JAX: result\[1\].*remedy"
    with pytest.raises(ValueError, match=message):
        stage(call_tf(lambda x: (x, result())))(1.0)


STRUCT = jax.ShapeDtypeStruct


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
class TestDeclaredResults:
    def test_what_was_declared_is_returned(self, stage):
        declared = {"y": STRUCT((2,), np.float32)}
        found = stage(call_tf(lambda x: {"y": x[: tf.shape(x)[0]]}, output_shape_dtype=declared))(jnp.ones(2))
        np.testing.assert_array_equal(found["y"], [1.0, 1.0])

    def test_another_structure_is_refused(self, stage):
        message = "The pytree of the TensorFlow function results does not match the pytree of the declared"
        with pytest.raises(ValueError, match=message):
            stage(call_tf(lambda x: [x], output_shape_dtype=STRUCT((), np.float32)))(1.0)

    def test_a_dataclass_of_another_class_is_refused(self, stage):
        declared = Polar(STRUCT((), np.float32), STRUCT((), np.float32))
        assert stage(call_tf(lambda x: Polar(x, 2 * x), output_shape_dtype=declared))(1.0).radius == 2
        with pytest.raises(DeclarationError, match=r"results pytree: .*Backwards.*\n.*tree: .*Polar"):
            stage(call_tf(lambda x: Backwards(x, 2 * x), output_shape_dtype=declared))(1.0)

    @pytest.mark.parametrize(
        ("declared", "found"),
        [
            (STRUCT((3,), np.float32), r"float32\[2\] vs. expected float32\[3\]"),
            (STRUCT((2,), np.int32), r"float32\[2\] vs. expected int32\[2\]"),
            (STRUCT((2, 1), np.float32), r"float32\[2\] vs. expected float32\[2, 1\]"),
        ],
    )
    def test_another_shape_or_dtype_is_refused(self, stage, declared, found):
        message = (
            "The shapes or dtypes returned by the TensorFlow function do not match the declared "
            rf"output_shape_dtype:\n  Result\[0\] is {found}"
        )
        with pytest.raises(ValueError, match=message):
            stage(call_tf(lambda x: x, output_shape_dtype=declared))(jnp.ones(2))

    def test_nothing_may_be_declared_as_none(self, stage):
        assert stage(call_tf(lambda x: None, output_shape_dtype=None))(1.0) is None


def test_a_declaration_without_shape_is_refused():
    with pytest.raises(TypeError, match=r"output_shape_dtype holds 3.0, which has no .shape and .dtype"):
        call_tf(lambda x: x, output_shape_dtype=3.0)


def test_vmap_over_something_else_calls_eagerly():
    call = call_tf(lambda x: x.numpy() + 1)
    np.testing.assert_array_equal(jax.vmap(lambda x: x + call(1.0))(jnp.arange(3.0)), [2.0, 3.0, 4.0])


def test_the_examples_in_the_readme_and_the_docstrings_run():
    readme = Path(__file__).parent.parent / "README.md"
    assert doctest.testfile(str(readme), module_relative=False) == (0, 3)
    module = importlib.import_module("jaxtf.calltf._call")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_an_error_over_an_argument_made_narrower_says_so(staged):
    @tf.function(input_signature=[{"ids": tf.TensorSpec([None], tf.int64)}])
    def taken(given):
        return tf.gather(tf.range(10.0), given["ids"])

    call = call_tf(taken)
    given = np.array([1, 2], np.int64)
    with pytest.raises(TypeError) as caught:
        (jax.jit(lambda: call({"ids": given})) if staged else lambda: call({"ids": given}))()
    expected_note = (
        "call_tf passed args[0]['ids'] as int32, not int64: JAX's 64-bit types are off\n"
        "  remedy: tf.cast it in the function that call_tf calls, or jax.config.update('jax_enable_x64', True)"
    )
    assert expected_note in caught.value.__notes__
    cast = call_tf(lambda given: taken({"ids": tf.cast(given["ids"], tf.int64)}))
    np.testing.assert_array_equal(cast({"ids": given}), [1.0, 2.0])
    with jax.enable_x64(True):
        np.testing.assert_array_equal(call({"ids": given}), [1.0, 2.0])


@pytest.mark.parametrize(
    "make", [np.float32, tf.constant, tf.Variable, tf.keras.Variable], ids=lambda make: make.__name__
)
def test_an_error_over_arguments_passed_as_they_are_has_no_note(make):
    def fails(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$") as caught:
        call_tf(fails)(make(np.float32(2)))
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(
    "use",
    [
        lambda x: call_tf(lambda y: y * x)(jnp.ones(3)).sum(),
        lambda x: call_tf(lambda y: y * tf.constant(x))(1.0).sum(),
        lambda x: call_tf(lambda y: y * np.asarray(x))(y=x).sum(),
    ],
    ids=["shared", "eager", "traced"],
)
@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_a_tracer_that_the_function_closes_over_is_to_be_an_argument(transform, use):
    with pytest.raises((TypeError, jax.errors.TracerArrayConversionError)) as caught:
        transform(use)(jnp.arange(3.0))
    assert any("make that value an argument of the function" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "staged"])
def test_an_error_of_the_users_that_mentions_a_tracer_has_no_note_about_one(stage):
    def fails(x):
        raise ValueError("no Tracer is configured")

    with pytest.raises(ValueError, match="no Tracer is configured") as caught:
        stage(call_tf(fails))(jnp.ones(2))
    assert not any("JAX traces" in note for note in getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_a_variable_of_keras_is_an_argument(staged):
    variable = tf.keras.Variable(np.arange(3, dtype=np.float32))
    call = call_tf(lambda x: x * 2)
    found = jax.jit(lambda: call(variable))() if staged else call(variable)
    np.testing.assert_array_equal(found, [0.0, 2.0, 4.0])


def test_dir_lists_the_public_names_alone():
    names = [name for name in dir(jaxtf.calltf) if not name.startswith("__")]
    assert names == sorted(jaxtf.calltf.__all__)


def test_a_declaration_may_be_of_tensorflow(x64):
    declared = {"y": tf.TensorSpec((3,), tf.float64), "n": tf.TensorSpec((), tf.int64)}
    call = call_tf(lambda x: {"y": tf.cast(x, tf.float64), "n": tf.size(x, tf.int64)}, output_shape_dtype=declared)
    for wrap in (lambda f: f, jax.jit):
        found = wrap(call)(np.ones(3, np.float32))
        assert (found["y"].dtype, found["n"].dtype) == (("float64", "int64") if x64 else ("float32", "int32"))
    with pytest.raises(DeclarationError, match=r"Result\[0\] is float32\[2\] vs. expected float32\[3\]"):
        call_tf(lambda x: x, output_shape_dtype=tf.TensorSpec((3,), tf.float32))(np.ones(2, np.float32))


@pytest.mark.parametrize(
    "declared",
    [
        jax.ShapeDtypeStruct((2, -1), np.float32),
        tf.TensorSpec((2, None), tf.float32),
        tf.TensorSpec(None, tf.float32),
    ],
    ids=str,
)
def test_a_declared_size_that_is_not_known_is_refused(declared):
    with pytest.raises(DeclarationError) as refused:
        call_tf(lambda x: x, output_shape_dtype=[declared])
    assert str(refused.value) == (
        f"call_tf: output_shape_dtype holds {declared!r}, whose sizes are not all known\n"
        "  remedy: declare each size, by a number or by an expression of the sizes of the arguments"
    )
