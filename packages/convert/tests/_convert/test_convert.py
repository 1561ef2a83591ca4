"""A JAX function on TensorFlow values: eager, in tf.function, compiled."""

import inspect
import pydoc
import threading
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import (
    ArgumentTypeError,
    ConversionOptionError,
    ConversionStateError,
    DisabledSafetyCheck,
    FunctionTypeError,
    ParameterError,
    ResultTypeError,
    TensorFlowTooOld,
    _tf,
    convert,
    convert_exported,
)
from jaxtf.convert._native.native import NativeFunction
from jaxtf.serialization import PlatformError, export
from jaxtf.shapepoly import ShapeSpecError, symbolic_shape

MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}
in_each_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def identical(found, expected):
    """Same structure, dtypes, shapes and numbers, to within rounding of the compilers."""
    found = jax.tree.map(lambda leaf: leaf.numpy(), found)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, strict=True), found, jax.tree.map(np.asarray, expected)
    )


def model(params, x, *, scale):
    return {"y": jnp.tanh(x @ params["w"] + params["b"]) * scale, "rows": (x.shape[0] * 2, jnp.arange(x.shape[0]))}


PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.arange(3, dtype=np.float32)}


def images(size):
    return np.linspace(0, 1, size * 4, dtype=np.float32).reshape(size, 4)


@in_each_mode
def test_nested_arguments_and_results_keep_their_structure(mode):
    expected = jax.jit(model)(PARAMS, images(3), scale=np.float32(2))
    identical(mode(convert(model))(PARAMS, images(3), scale=np.float32(2)), expected)


@in_each_mode
@pytest.mark.parametrize("kind", [tf.constant, tf.Variable, np.asarray], ids=["tensor", "variable", "array"])
def test_tensors_variables_and_arrays_are_arguments(mode, kind):
    x = kind(images(2))
    found = mode(lambda: convert(lambda x: jnp.sin(x) * 2)(x))()
    identical(found, jnp.sin(images(2)) * 2)


@in_each_mode
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "value", [2, 3.5, True, 1j, np.float64(2.5), np.int64(7), np.arange(3), np.float16(1)], ids=repr
)
def test_values_have_the_dtype_that_jax_gives_them(mode, x64, value):
    with jax.enable_x64(x64):
        identical(mode(lambda: convert(lambda x: x * 2)(value))(), jax.jit(lambda x: x * 2)(value))


@pytest.mark.parametrize("x64", [False, True])
def test_a_python_scalar_takes_the_dtype_of_the_other_operand_as_in_jax(x64):
    half = np.ones(2, np.float16)
    with jax.enable_x64(x64):
        identical(convert(lambda x, y: x * y)(half, 3.0), jax.jit(lambda x, y: x * y)(half, 3.0))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn, jnp.int8, jnp.uint32, jnp.complex64, jnp.bool_])
def test_dtypes_cross_over_unchanged(dtype):
    x = np.array([0, 1, 1]).astype(dtype)
    found = convert(lambda x: x[::-1])(tf.constant(x))
    assert found.dtype.as_numpy_dtype == dtype
    np.testing.assert_array_equal(found.numpy(), x[::-1])


def test_a_function_without_arguments_or_results_converts():
    identical(convert(lambda: jnp.arange(3))(), jnp.arange(3))
    assert convert(lambda x: ())(np.ones(2, np.float32)) == ()


def test_unused_arguments_are_accepted():
    identical(convert(lambda x, y: x + 1)(np.float32(1), np.ones(3, np.float32)), np.float32(2))


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


class Pair(NamedTuple):
    left: Any
    right: Any


def test_the_containers_that_a_tf_module_makes_are_those_that_were_assigned_to_it():
    def total(d, xs, pair, nested):
        assert isinstance(d, dict)
        assert isinstance(xs, list)
        assert isinstance(pair, Pair)
        return d["a"] + xs[0] * pair.left + pair.right + nested["xs"][0][1]

    module = tf.Module()
    values = ({"a": 1.0}, [2.0], Pair(3.0, 4.0), {"xs": [(5.0, 6.0)]})
    module.d, module.xs, module.pair, module.nested = tf.nest.map_structure(tf.Variable, values)
    assert type(module.d) is not dict
    found = convert(total)(module.d, module.xs, module.pair, module.nested)
    assert float(found) == total(*values)


def test_a_jitted_function_converts_with_its_name():
    @jax.jit
    def my_model(x):
        return x + 1

    converted = convert(my_model)
    identical(converted(np.float32(1)), np.float32(2))
    assert converted.__name__ == "converted_my_model"


class TestPolymorphicShapes:
    def test_an_entry_for_an_argument_that_was_passed_by_name_is_refused(self):
        converted = convert(lambda p, x: p * x, polymorphic_shapes=[None, "(b, _)"])
        with pytest.raises(ShapeSpecError) as refused:
            converted(np.float32(2), x=images(3))
        assert str(refused.value) == (
            "polymorphic_shapes has 2 entries and applies to positional arguments only; the call passes 1 by position, "
            "and 'x' by name\n  remedy: pass 'x' by position"
        )
        identical(converted(np.float32(2), images(3)), 2 * images(3))

    @in_each_mode
    @pytest.mark.parametrize("size", [1, 3, 7])
    def test_one_export_serves_every_batch_size(self, mode, size):
        traces = []

        def traced(x):
            traces.append(x.shape)
            return x.reshape(-1) * x.shape[0], x.mean()

        converted = convert(traced, polymorphic_shapes=["(b, ...)"])
        run = mode(converted)
        identical(run(images(2)), (images(2).reshape(-1) * 2, images(2).mean()))
        assert len(traces) == 1
        identical(run(images(size)), (images(size).reshape(-1) * size, images(size).mean()))
        assert len(traces) == 1

    def test_a_graph_for_any_batch_size_knows_the_sizes_that_are_known(self):
        graph = tf.function(convert(lambda x: (x.T, x.sum(axis=0)), polymorphic_shapes=["(b, _)"]), autograph=False)
        concrete = graph.get_concrete_function(tf.TensorSpec([None, 4], tf.float32))
        assert [spec.shape.as_list() for spec in concrete.outputs] == [[4, None], [4]]

    @pytest.mark.parametrize(
        ("arguments", "results"),
        [
            (([8, 6], [3]), [[24], [6, 8]]),
            (([8, None], [3]), [[24], [None, 8]]),
            (([None, 6], [None]), [[None], [6, None]]),
            (([None, None], [3]), [[None], [None, None]]),
        ],
    )
    def test_sizes_that_a_graph_knows_give_those_of_the_results(self, arguments, results):
        converted = convert(lambda x, y: ((x[:, :1] * y).reshape(-1), x.T), polymorphic_shapes=["(b, 2*d)", "(c,)"])
        graph = tf.function(converted, autograph=False)
        concrete = graph.get_concrete_function(*(tf.TensorSpec(shape, tf.float32) for shape in arguments))
        assert [spec.shape.as_list() for spec in concrete.outputs] == results

    def test_other_known_sizes_make_another_export(self):
        shapes = []
        converted = convert(lambda x: shapes.append(x.shape) or x, polymorphic_shapes=["(b, _)"])
        for shape in [(2, 3), (5, 3), (2, 4), (9, 4)]:
            converted(np.zeros(shape, np.float32))
        assert [shape[1] for shape in shapes] == [3, 4]

    def test_constraints_are_known_while_tracing(self):
        converted = convert(
            lambda x: x[: x.shape[1], :16], polymorphic_shapes="(a, b)", polymorphic_constraints=("a >= b", "b >= 16")
        )
        assert converted(np.zeros((20, 17), np.float32)).shape == (17, 16)

    @in_each_mode
    @pytest.mark.parametrize("constraint", ["a == 4", "2*a == 8"])
    def test_a_size_that_constraints_fix_is_that_size(self, mode, constraint):
        converted = mode(
            convert(lambda x: x + jnp.ones(4), polymorphic_shapes="(a,)", polymorphic_constraints=(constraint,))
        )
        assert converted(np.ones(4, np.float32)).numpy().tolist() == [2, 2, 2, 2]
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="shape"):
            converted(np.ones(5, np.float32))

    @in_each_mode
    def test_an_odd_size_gives_the_documented_error(self, mode):
        converted = mode(convert(lambda x: x, polymorphic_shapes=["(b, b, 2*d)"]))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            converted(tf.ones((3, 3, 5)))
        text = str(caught.value)
        assert "Input shapes do not match the polymorphic shapes specification" in text
        assert "Division had remainder 1 when computing the value of 'd'" in text
        assert "args[0].shape = (b, b, 2*d)" in text
        assert "'b' = 3 from specification 'b' for dimension args[0].shape[0] (= 3)" in text

    @pytest.mark.parametrize(
        ("shape", "says"),
        [((0, 0, 2), "Expected value >= 1 for dimension variable 'b'"), ((3, 4, 2), "Found inconsistency")],
    )
    def test_sizes_that_are_empty_or_differ_give_the_documented_error(self, shape, says):
        with pytest.raises(tf.errors.InvalidArgumentError, match=says):
            convert(lambda x: x, polymorphic_shapes=["(b, b, 2*d)"])(tf.ones(shape))

    @in_each_mode
    @pytest.mark.parametrize("rows", [3, 6])
    def test_a_mismatch_between_arguments_is_reported_before_the_operation_that_it_breaks(self, mode, rows):
        converted = mode(convert(lambda x, y: x @ y, polymorphic_shapes=["(b, d)", "(d, _)"]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"args\[1\].shape\[0\] .* specification 'd' \(= 4\)"):
            converted(tf.ones((2, 4)), tf.ones((rows, 3)))

    def test_known_sizes_that_do_not_fit_are_refused_when_the_graph_is_made(self):
        graph = tf.function(convert(lambda x: x, polymorphic_shapes=["(b, 2*d)"]), autograph=False)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Division had remainder 1"):
            graph.get_concrete_function(tf.TensorSpec([None, 7], tf.float32))

    def test_shape_assertions_can_be_disabled(self):
        checks = [DisabledSafetyCheck.shape_assertions()]
        converted = convert(lambda x: x, polymorphic_shapes=["(2*b,)"], native_serialization_disabled_checks=checks)
        assert converted(tf.ones(3)).shape == (3,)
        assert tf.function(converted, autograph=False)(tf.ones(3)).shape == (3,)

    def test_a_wrong_rank_is_reported_with_what_was_written_and_found(self):
        with pytest.raises(ValueError, match=r"\(b, _, _\)[\s\S]*rank"):
            convert(lambda x: x, polymorphic_shapes=["(b, _, _)"])(np.ones((2, 3), np.float32))

    def test_an_unknown_size_that_is_not_named_is_refused(self):
        graph = tf.function(convert(lambda x: x, polymorphic_shapes=["(b, _)"]), autograph=False)
        with pytest.raises(ValueError, match="_"):
            graph.get_concrete_function(tf.TensorSpec([None, None], tf.float32))

    @pytest.mark.parametrize("with_shapes", [True, False])
    def test_an_unknown_size_without_polymorphic_shape_is_refused_with_one_that_names_it(self, with_shapes):
        shapes = [None, None] if with_shapes else None
        graph = tf.function(convert(lambda x, y: x, polymorphic_shapes=shapes), autograph=False)
        message = (
            r"in the specification of args\[1\]: syntax error in symbolic shape None: the shape given, "
            r"\(None, 3, None\), has .*such as '\(d0, _, d2\)'"
        )
        with pytest.raises(ShapeSpecError, match=f"(?s){message}"):
            graph.get_concrete_function(tf.TensorSpec([2]), tf.TensorSpec([None, 3, None]))

    def test_an_unknown_size_of_a_keyword_argument_is_refused(self):
        converted = convert(lambda x, y: x, polymorphic_shapes=["(b,)"])
        graph = tf.function(lambda x, y: converted(x, y=y), autograph=False)
        with pytest.raises(ShapeSpecError, match=r"kwargs\['y'\] has shape \(None,\).*\n  remedy: pass it by position"):
            graph.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))

    def test_an_unknown_rank_is_refused(self):
        with pytest.raises(ArgumentTypeError, match=r"args\[0\] has an unknown rank"):
            tf.function(convert(jnp.sin), autograph=False).get_concrete_function(tf.TensorSpec(None, tf.float32))


class TestCache:
    def test_a_signature_is_traced_once(self):
        traces = []
        converted = convert(lambda x: traces.append(x.dtype) or x)
        for value in (tf.ones(3), np.ones(3, np.float32), tf.Variable(tf.ones(3)), tf.ones(4), tf.ones(3)):
            converted(value)
        assert len(traces) == 2

    def test_two_dataclasses_with_as_many_fields_are_traced_each(self):
        converted, one = convert(lambda point: point.radius * 10 + point.angle), tf.constant(1.0)
        for _ in range(2):
            for made in (Polar, Backwards):
                assert converted(made(angle=one, radius=2 * one)) == 21
                graph = tf.function(lambda: converted(made(angle=one, radius=2 * one)))  # noqa: B023
                assert graph() == 21

    def test_a_setting_that_no_argument_shows_traces_again(self):
        converted = convert(lambda: jnp.arange(3))
        assert converted().dtype == tf.int32
        with jax.enable_x64(True):
            assert converted().dtype == tf.int64
        assert converted().dtype == tf.int32

    def test_a_changed_jax_configuration_traces_again(self):
        converted = convert(lambda x: x * 2.0)
        assert converted(np.float64(1)).dtype == tf.float32
        with jax.enable_x64(True):
            assert converted(np.float64(1)).dtype == tf.float64

    def test_threads_get_right_results(self):
        converted = convert(jnp.cumsum, polymorphic_shapes=["(b,)"])
        wrong = []

        def work(size):
            for _ in range(10):
                if not np.array_equal(converted(np.arange(size, dtype=np.float32)), np.cumsum(np.arange(size))):
                    wrong.append(size)

        threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


class TestPlatforms:
    def test_a_module_for_several_platforms_runs_on_this_one(self):
        converted = convert(
            lambda x: x @ x.T, polymorphic_shapes=["(b, 2)"], native_serialization_platforms=("tpu", "cpu", "cuda")
        )
        identical(converted(images(2)[:, :2]), images(2)[:, :2] @ images(2)[:, :2].T)

    def test_a_module_for_another_platform_gives_the_documented_error(self):
        converted = convert(jnp.sin, native_serialization_platforms=("cuda",))
        with pytest.raises(
            tf.errors.NotFoundError,
            match=r"The current platform CPU is not among the platforms required by the module: \[CUDA\]",
        ):
            converted(np.float32(1))

    @pytest.mark.parametrize("platforms", [("gpu",), "cpu", ("cpu", "sparc"), "", 5, b"cpu", [["cpu"]], {"cpu": 1}])
    @pytest.mark.parametrize("native", [True, False])
    def test_a_platform_that_does_not_exist_is_refused_at_once(self, platforms, native):
        with pytest.raises(ConversionOptionError) as caught:
            convert(jnp.sin, native_serialization_platforms=platforms, native_serialization=native)
        remedy = "\n  remedy: write it as ('cpu',)" if platforms == "cpu" else ""
        assert str(caught.value) == (
            "native_serialization_platforms must be a sequence containing a subset of "
            f"{{'cpu', 'cuda', 'rocm', 'tpu'}}. Got: {platforms!r}{remedy}"
        )


class TestBadArguments:
    @pytest.mark.parametrize("mode", [MODES["eager"], MODES["graph"]], ids=["eager", "graph"])
    def test_a_string_tensor_is_refused_by_its_path(self, mode):
        with pytest.raises(ArgumentTypeError) as caught:
            mode(convert(lambda d: d["x"]))({"x": tf.constant("hello")})
        assert (
            "args[0]['x'] has dtype string, which is not a valid JAX array type. Only arrays of numeric types are "
            "supported by JAX." in str(caught.value)
        )

    @pytest.mark.parametrize(
        "value",
        [
            "hello",
            object(),
            np.array(["a"]),
            np.array(["2020-01-01"], "datetime64[D]"),
            jax.random.key(0),
            tf.constant([tf.io.serialize_tensor([1.0]).numpy()]),
            tf.ragged.constant([[1], []]),
            tf.sparse.from_dense([[1.0, 0.0]]),
        ],
        ids=["str", "object", "str array", "dates", "key", "string tensor", "ragged", "sparse"],
    )
    def test_what_is_not_numeric_is_refused(self, value):
        with pytest.raises(ArgumentTypeError, match=r"args\[1\] (is not a numeric value|has dtype)"):
            convert(lambda x, y: x)(1.0, value)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
    def test_a_random_key_among_the_results_is_refused_by_its_path(self, native):
        converted = convert(lambda x: {"x": x, "key": jax.random.key(0)}, native_serialization=native)
        with pytest.raises(ResultTypeError) as caught:
            converted(1.0)
        assert str(caught.value) == (
            "result['key'] of '<lambda>' is a JAX random key, key<fry>[], for which TensorFlow has no dtype\n"
            "  remedy: let the function return jax.random.key_data of it"
        )

    @pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
    def test_an_exported_function_of_a_random_key_is_refused_by_its_path(self, native):
        exported = export(lambda key, n: jax.random.uniform(key) + n)(jax.random.key(0), 1.0)
        with pytest.raises(ArgumentTypeError) as caught:
            convert_exported(exported, native_serialization=native)
        assert str(caught.value) == (
            "args[0] of '<lambda>' is a JAX random key, key<fry>[], for which TensorFlow has no dtype\n"
            "  remedy: let the function take the key's data, and make the key with jax.random.wrap_key_data"
        )

    def test_use_inside_a_jax_transformation_is_refused(self):
        with pytest.raises(ConversionStateError, match="convert must be used outside all JAX transformations"):
            jax.jit(convert(jnp.sin))(1.0)

    def test_what_is_not_a_function_is_refused(self):
        with pytest.raises(FunctionTypeError, match="convert needs a function, found int"):
            convert(3)


def test_a_module_newer_than_this_tensorflow_reads_is_refused_with_both_numbers():
    exported = export(jnp.sin)(jax.ShapeDtypeStruct((), jnp.float32))
    newest = _tf.newest_calling_convention_version()
    with pytest.raises(TensorFlowTooOld) as caught:
        NativeFunction(replace(exported, calling_convention_version=11))
    assert str(caught.value) == (
        f"XlaCallModule from your TensorFlow installation ({tf.__version__}) supports up to calling convention "
        f"version {newest} but 'sin' needs version 11\n"
        f"  remedy: export with tensorflow_version='{tf.__version__}', or upgrade TensorFlow"
    )


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
@pytest.mark.parametrize("name", ["_a", "None", "größe"])
def test_sizes_have_any_name(name, native):
    shapes = [f"({name}, 2*{name})"]
    converted = convert(lambda x: x * x.shape[0], polymorphic_shapes=shapes, native_serialization=native)
    function = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([None, None])])
    np.testing.assert_array_equal(function(np.ones((3, 6), np.float32)), np.full((3, 6), 3))
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(np.ones((3, 5), np.float32))


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ({"experimental_native_lowering": True}, "native_serialization"),
        ({"experimental_native_lowering_platforms": ["cpu"]}, "native_serialization_platforms"),
        ({"native_serialization_strict_checks": False}, "native_serialization_disabled_checks"),
        ({"in_shapes": ["(b,)"]}, "polymorphic_shapes"),
    ],
)
def test_a_former_parameter_is_refused_with_the_name_of_today(former, today):
    [name] = former
    assert today in inspect.signature(convert).parameters
    message = rf"^convert\(\) got an unexpected keyword argument '{name}'\n  remedy: today it is {today}\b"
    with pytest.raises(ParameterError, match=message):
        convert(jnp.sin, **former)


def test_a_parameter_that_never_was_is_refused_as_python_does():
    with pytest.raises(TypeError, match=r"^convert\(\) got an unexpected keyword argument 'polymorphic_shape'$"):
        convert(jnp.sin, polymorphic_shape=["(b,)"])


@pytest.mark.parametrize("platforms", [(), []])
@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
def test_no_platforms_are_those_of_the_default(platforms, native):
    converted = convert(jnp.sin, native_serialization_platforms=platforms, native_serialization=native)
    np.testing.assert_allclose(converted(np.ones(3, np.float32)), np.sin(np.ones(3)), rtol=1e-6)


def test_help_keeps_the_docstring_and_the_signature():
    def scaled(x, by=2.0, *, shift):
        """Scales and shifts.

        In this order.
        """
        return x * by + shift

    text = pydoc.render_doc(convert(scaled), renderer=pydoc.plaintext)
    assert "scaled(x, by=2.0, *, shift), converted from JAX by jaxtf.convert." in text
    assert "Scales and shifts.\n" in text
    assert "In this order." in text


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("shapes", "constraints", "sizes", "fits"),
    [
        (["a, 0", "b, 0"], ["a*b <= 1000000"], (65_536, 65_536), False),
        (["a, 0", "b, 0"], ["a*b <= 1000000"], (1000, 1000), True),
        (["a, 0", "b, 0"], ["a + b <= 2000000000"], (1_500_000_000, 1_500_000_000), False),
        (["a, 0", "b, 0", "a*b, 0"], [], (65_536, 65_537, 65_536), False),
        (["a, 0", "b, 0", "a*b, 0"], [], (46_341, 46_340, 2_147_441_940), True),
        (["a + b, 0", "a - b, 0"], [], (2**31 - 3, 2**31 - 5), True),
    ],
)
def test_sizes_whose_products_and_sums_have_more_than_32_bits_are_checked(shapes, constraints, sizes, fits, native):
    options = {"polymorphic_constraints": constraints, "native_serialization": native}
    converted = convert(lambda *x: jnp.float32(len(x)), polymorphic_shapes=shapes, **options)
    specs = [tf.TensorSpec((None, 0), tf.float32)] * len(shapes)
    called = tf.function(converted, autograph=False, input_signature=specs)
    arguments = [tf.zeros((size, 0)) for size in sizes]
    if fits:
        assert called(*arguments) == len(shapes)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Input shapes do not match"):
            called(*arguments)


@pytest.mark.parametrize("platforms", [("cpu",), ("cuda", "cpu")])
@pytest.mark.parametrize("shape", ["3", "b"])
def test_a_function_that_calls_an_artifact_is_translated_with_that_for_cpu(platforms, shape):
    def of_platform(x):
        return jax.lax.platform_dependent(jnp.sin(x), cpu=lambda x: x * 2, default=lambda x: x + 1000)

    artifact = export(of_platform, platforms=platforms)(jax.ShapeDtypeStruct(symbolic_shape(shape), jnp.float32))
    x = np.arange(3, dtype=np.float32)
    for function in (artifact.call, jax.grad(lambda x: artifact.call(x).sum())):
        converted = convert(function, native_serialization=False, polymorphic_shapes=shape)
        np.testing.assert_allclose(converted(x), function(x), rtol=1e-6)


def test_a_function_that_calls_an_artifact_of_another_platform_is_refused_in_graph_mode():
    artifact = export(jnp.sin, platforms=("cuda",))(jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(PlatformError, match=r"exported for platforms .*cuda.* but it is used on .*cpu"):
        convert(artifact.call, native_serialization=False)(np.ones(3, np.float32))
