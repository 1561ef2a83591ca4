"""Exported functions and artifacts in TensorFlow."""

import copy
import dataclasses
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import (
    ArgumentTypeError,
    ConversionOptionError,
    DisabledSafetyCheck,
    UnknownCustomCall,
    convert,
    convert_exported,
)
from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    OpaqueNode,
    deserialize,
    export,
    register_namedtuple_serialization,
    save,
)
from jaxtf.shapepoly import SymbolicScope, symbolic_shape


class Result(NamedTuple):
    y: object
    total: object


register_namedtuple_serialization(Result, serialized_name="test_convert_exported.Result")


def dense(parameters, x, *, mask):
    return Result(jnp.tanh(x @ parameters["w"]) * mask, {"sum": [x.sum()]})


def exported_dense():
    b, d = symbolic_shape("b, d", scope=SymbolicScope(["b >= 2"]))
    float32 = jnp.float32
    return export(dense)(
        {"w": jax.ShapeDtypeStruct((d, 3), float32)},
        jax.ShapeDtypeStruct((b, d), float32),
        mask=jax.ShapeDtypeStruct((b, 1), float32),
    )


@pytest.fixture(scope="module", params=["record", "artifact"])
def converted(request):
    exported = exported_dense()
    return convert_exported(exported if request.param == "record" else exported.serialize(2))


def arguments(b, d):
    random = np.random.default_rng(b * d)
    w, x, mask = (random.standard_normal(shape, np.float32) for shape in ((d, 3), (b, d), (b, 1)))
    return ({"w": w}, x), {"mask": mask}


MODES = {
    "eager": lambda function: function,
    "graph": tf.function,
    "compiled": lambda function: tf.function(function, jit_compile=True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(2, 1), (5, 4)])
def test_it_gives_the_numbers_of_the_function(converted, mode, sizes):
    args, kwargs = arguments(*sizes)
    found = MODES[mode](converted)(*jax.tree.map(tf.constant, args), mask=tf.Variable(kwargs["mask"]))
    assert isinstance(found, Result)
    # A sum of products that cancel has an error of some eps of the products, which are as large as 4; tanh adds none.
    rounding = np.finfo(np.float32).eps * 4
    near = partial(np.testing.assert_allclose, rtol=2e-6, atol=rounding)
    jax.tree.map(near, found, dense(*args, **kwargs))


@pytest.mark.parametrize("mode", MODES)
def test_it_differentiates_as_often_as_there_are_vjps(converted, mode):
    args, kwargs = arguments(3, 2)

    def loss(w):
        return jnp.sum(dense({"w": w}, args[1], **kwargs).y ** 2)

    @MODES[mode]
    def second(w):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(w)
                y = tf.reduce_sum(converted({"w": w}, args[1], **kwargs).y ** 2)
            gradient = inner.gradient(y, w)
            total = tf.reduce_sum(gradient)
        return gradient, outer.gradient(total, w)

    gradient, curvature = second(tf.constant(args[0]["w"]))
    np.testing.assert_allclose(gradient, jax.grad(loss)(args[0]["w"]), rtol=2e-5)
    reference = jax.grad(lambda w: jax.grad(loss)(w).sum())(args[0]["w"])
    np.testing.assert_allclose(curvature, reference, rtol=2e-4)


def test_a_gradient_that_the_artifact_does_not_hold_says_so():
    converted = convert_exported(export(jnp.sin)(jax.ShapeDtypeStruct((), jnp.float32)).serialize())
    x = tf.constant(1.0)
    assert np.isclose(converted(x), np.sin(1.0))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x)
    with pytest.raises(LookupError, match=r"holds too few orders of VJP for this gradient. Write it with `serialize"):
        tape.gradient(y, x)


def test_gradients_can_be_forbidden():
    converted = convert_exported(export(jnp.sin)(jax.ShapeDtypeStruct((), jnp.float32)), with_gradient=False)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x)
    with pytest.raises(LookupError, match="does not support gradients"):
        tape.gradient(y, x)


DIFFER = (
    "The invocation args and kwargs must have the same pytree structure as when the function 'dense' was exported, but "
    "they differ:\n"
)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda p, x, m: ((p, x), {}),
            ArgumentMismatch,
            f"{DIFFER}  kwargs['mask']: exported with it, missing in the call",
        ),
        (
            lambda p, x, m: ((p,), {"mask": m}),
            ArgumentMismatch,
            f"{DIFFER}  args[1]: exported with it, missing in the call",
        ),
        (
            lambda p, x, m: ((x, x), {"mask": m}),
            ArgumentMismatch,
            f"{DIFFER}  args[0]: a dict when exported, an ndarray in the call",
        ),
        (
            lambda p, x, m: (({"v": x}, x, m), {}),
            ArgumentMismatch,
            f"{DIFFER}  args[0]['w']: exported with it, missing in the call\n"
            "  args[0]['v']: in the call, not when exported\n"
            "  args[2]: in the call, not when exported\n"
            "  kwargs['mask']: exported with it, missing in the call\n"
            "  remedy: pass mask by name, as when it was exported",
        ),
        (
            lambda p, x, m: ((), {"parameters": p, "x": x, "mask": m}),
            ArgumentMismatch,
            f"{DIFFER}  args[0]: exported with it, missing in the call\n"
            "  args[1]: exported with it, missing in the call\n"
            "  kwargs['parameters']: in the call, not when exported\n"
            "  kwargs['x']: in the call, not when exported\n"
            "  remedy: pass the first 2 by position, as when it was exported",
        ),
        (
            lambda p, x, m: ((p, x.tolist()), {"mask": m}),
            ArgumentTypeError,
            "Dtype mismatch for args[1] of the exported function 'dense': expected float32 and called with list\n"
            "  remedy: make it an array, with np.asarray",
        ),
        (
            lambda p, x, m: ((p, None), {"mask": m}),
            ArgumentTypeError,
            "expected float32 and called with NoneType\n  remedy: pass an array or a tensor",
        ),
        (
            lambda p, x, m: ((p, x[0]), {"mask": m}),
            ArgumentMismatch,
            "Rank mismatch for args[1] of the exported ",
        ),
        (lambda p, x, m: (({"w": x}, x), {"mask": m}), ArgumentMismatch, "Shape mismatch for args[0]['w'].shape[1]"),
        (
            lambda p, x, m: ((p, tf.cast(x, tf.float64)), {"mask": m}),
            ArgumentTypeError,
            "expected float32 and called ",
        ),
        (lambda p, x, m: ((p, "x"), {"mask": m}), ArgumentTypeError, "expected float32 and called with str"),
        (lambda p, x, m: ((p, x), {"mask": m[:1]}), tf.errors.InvalidArgumentError, "kwargs['mask'].shape[0] (= 1)"),
        (lambda p, x, m: ((p, x[:1]), {"mask": m[:1]}), tf.errors.InvalidArgumentError, "b >= 2"),
    ],
)
def test_arguments_that_do_not_fit_are_reported(converted, change, error, message):
    (parameters, x), kwargs = arguments(3, 4)
    args, kwargs = change(parameters, x, kwargs["mask"])
    with pytest.raises(error) as caught:
        converted(*args, **kwargs)
    assert message in str(caught.value)


def containers(pair, ordered, nothing, tree):
    return pair.y * ordered["b"] + pair.total + ordered["a"] + tree["x"][0]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"pair": (1.0, 2.0)}, ["args[0]: a Result when exported, a tuple in the call"]),
        ({"pair": Result(1.0, {"sum": 2.0})}, None),
        ({"ordered": {"b": 1.0, "a": 2.0}}, ["args[1]: an OrderedDict when exported, a dict in the call"]),
        ({"ordered": OrderedDict(a=2.0, b=1.0)}, ["args[1]: its keys in another order than when exported"]),
        ({"nothing": 3}, ["args[2]: None when exported, an int in the call"]),
        ({"tree": {"x": (1.0,)}}, ["args[3]['x']: a list when exported, a tuple in the call"]),
        (
            {"tree": {"x": [1.0, 2.0], "z": 1}, "nothing": ()},
            [
                "args[2]: None when exported, a tuple in the call",
                "args[3]['x'][1]: in the call, not when exported",
                "args[3]['z']: in the call, not when exported",
            ],
        ),
    ],
)
def test_the_place_of_another_structure_is_reported_for_every_container(change, lines):
    number = jax.ShapeDtypeStruct((), jnp.float32)
    specified = (Result(number, number), OrderedDict(b=number, a=number), None, {"x": [number]})
    converted = convert_exported(export(containers)(*specified))
    values = {"pair": Result(1.0, 2.0), "ordered": OrderedDict(b=3.0, a=4.0), "nothing": None, "tree": {"x": [5.0]}}
    assert converted(*values.values()) == 14
    with pytest.raises((ArgumentMismatch, ArgumentTypeError)) as refused:
        converted(*{**values, **change}.values())
    if lines is None:
        assert "called with dict\n  remedy: pass an array or a tensor" in str(refused.value)
    else:
        assert str(refused.value).splitlines()[1:] == [f"  {line}" for line in lines]


def test_a_node_that_only_jax_takes_apart_is_reported_by_its_path():
    box = jax.tree_util.Partial
    converted = convert_exported(export(lambda p: p.args[0] + 1)(box(abs, jax.ShapeDtypeStruct((), jnp.float32))))
    assert converted(box(abs, 1.0)) == 2
    with pytest.raises(ArgumentMismatch, match=r"args\[0\]\[<flat index 0>\]\[1\]: in the call, not when exported"):
        converted(box(abs, 1.0, 2.0))
    with pytest.raises(ArgumentMismatch, match=r"args\[0\]: a Partial when exported, a float in the call"):
        converted(1.0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Scaled:
    """A node with a static field."""

    x: Any
    factor: int = dataclasses.field(metadata={"static": True})


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
@pytest.mark.parametrize("is_read", [False, True], ids=["exported", "read"])
def test_static_fields_are_those_of_the_export(native, is_read):
    exported = export(lambda s: s.x * s.factor)(Scaled(jax.ShapeDtypeStruct((), jnp.float32), 3))
    exported = deserialize(exported.serialize()) if is_read else exported
    converted = convert_exported(exported, native_serialization=native)
    assert converted(Scaled(np.float32(2), 3)) == 6
    with pytest.raises(
        ArgumentMismatch,
        match=r"\n  args\[0\] must be a .*Scaled with the auxiliary data .*3.*, as exported; found .*4.*$",
    ):
        converted(Scaled(np.float32(2), 4))


class Moments(NamedTuple):
    """Not registered: read from an artifact, it is an opaque node."""

    mean: jax.Array
    square: jax.Array


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
def test_nodes_of_classes_that_are_not_registered_pass_through_tensorflow_functions(native):
    exported = export(lambda x: (Moments(x + 1, x * x), x))(jax.ShapeDtypeStruct((2,), jnp.float32))
    converted = convert_exported(deserialize(exported.serialize()), native_serialization=native)
    x = tf.constant([1.0, 2.0])
    for function in (converted, tf.function(converted), tf.function(converted, jit_compile=True)):
        made, _ = function(x)
        assert isinstance(made, OpaqueNode)
        np.testing.assert_array_equal(tf.function(lambda node: node.mean * node.square)(made), [2.0, 12.0])
    mapped, _ = next(iter(tf.data.Dataset.from_tensors(x).map(converted)))
    np.testing.assert_array_equal(mapped.square, [1.0, 4.0])


@pytest.mark.parametrize(("value", "dtype"), [(1, "float32"), (True, "bool"), (np.arange(2.0), "float32"), (2, "int8")])
def test_what_jax_would_take_is_taken(value, dtype):
    spec = jax.ShapeDtypeStruct(np.shape(value), jnp.dtype(dtype))
    assert convert_exported(export(lambda x: x)(spec))(value).dtype == dtype


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        ("int32", -(2**31), 2**31 - 1),
        ("uint8", 0, 255),
        ("int4", -8, 7),
        ("uint64", 0, 2**64 - 1),
        ("bfloat16", -(2**63), 2**64 - 1),
    ],
)
def test_an_integer_that_the_dtype_does_not_have_is_refused(dtype, least, greatest, native):
    with jax.enable_x64():
        exported = export(lambda x: x)(jax.ShapeDtypeStruct((), dtype))
    converted = convert_exported(exported, native_serialization=native)
    for value in (least, greatest):
        assert converted(value).numpy() == np.asarray(value).astype(dtype)
    for value in (least - 1, greatest + 1):
        for call in (converted, tf.function(converted)):
            with pytest.raises(ArgumentTypeError) as caught:
                call(value)
            assert str(caught.value) == (
                f"args[0] of the exported function '<lambda>' is {value}, and {dtype}, the dtype that it was exported "
                f"with, has integers from {least} to {greatest}\n"
                "  remedy: pass a number in that range, or export the function with a wider dtype"
            )


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
@pytest.mark.parametrize("calls_before", [0, 1])
def test_a_deep_copy_has_the_variables_that_it_uses(tmp_path, native, calls_before):
    spec = jax.ShapeDtypeStruct((2,), np.float32)
    weights = {"w": np.float32([1, 2])}
    weights["tied"] = weights["w"]
    exported = export(lambda weights, x: x * weights["w"] * weights["tied"])({"w": spec, "tied": spec}, spec)
    save(tmp_path / "model", exported, weights, vjp_order=1)
    converted = convert_exported(tmp_path / "model", native_serialization=native)
    for _ in range(calls_before):
        converted(tf.ones(2))
    converted.version = {"number": 1}
    copied, variables = copy.deepcopy((converted, converted.variables))
    assert len(copied.variables) == len(variables) == 1
    assert copied.variables[0] is variables[0] or not calls_before
    copied.variables[0].assign([7, 7])
    assert copied.__name__ == converted.__name__
    assert copied.version == converted.version
    assert copied.version is not converted.version
    for function, factor in ((copied, 7), (copied.__wrapped__, 7), (copy.copy(copied), 7), (converted, [1, 2])):
        np.testing.assert_array_equal(function(tf.ones(2)), np.square(factor) * np.ones(2))
    for function, factor in ((copied, 7), (converted, [1, 2])):
        with tf.GradientTape() as tape:
            value = function(tf.ones(2))
        np.testing.assert_array_equal(tape.gradient(value, function.variables)[0], 2 * np.ones(2) * factor)


@pytest.mark.parametrize("first", ["graph", "eager"])
def test_each_graph_of_tensorflow_1_has_weights_of_its_own(first, tmp_path):
    w = np.array([2.0, 3.0], np.float32)
    spec = jax.ShapeDtypeStruct((2,), np.float32)
    save(tmp_path / "program", export(lambda params, x: params["w"] * x)({"w": spec}, spec), {"w": w})
    converted, x = convert_exported(tmp_path / "program"), np.float32([4, 5])

    def in_graph():
        with tf.Graph().as_default() as graph:
            result = tf.function(converted)(tf.constant(x)) + converted(tf.constant(x))
            assert len(tf.compat.v1.global_variables()) == len(converted.variables) == 1
            with tf.compat.v1.Session(graph=graph) as session:
                session.run(tf.compat.v1.global_variables_initializer())
                return session.run(result) / 2

    calls = [in_graph, in_graph, lambda: converted(x), lambda: tf.function(converted)(x), in_graph]
    for call in calls if first == "graph" else calls[2:]:
        np.testing.assert_array_equal(call(), w * x)
    converted.variables[0].assign([1, 1])
    np.testing.assert_array_equal(converted(x), x)


def test_a_module_newer_than_tensorflow_is_rewritten():
    exported = export(jax.lax.erf, stablehlo_version=None)(jax.ShapeDtypeStruct((3,), jnp.float32))
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    np.testing.assert_allclose(convert_exported(exported)(x), jax.lax.erf(x), rtol=1e-6)


@pytest.mark.parametrize("wrong", [jnp.sin, 3, None])
def test_only_exported_functions_are_taken(wrong):
    with pytest.raises(ConversionOptionError, match=r"convert_exported needs an Exported or the bytes of an artifact"):
        convert_exported(wrong)


def test_bytes_that_are_no_artifact_are_refused():
    with pytest.raises(ArtifactError):
        convert_exported(b"no artifact")


WITHOUT_JAX = """
import sys
for name in ("jax", "jaxlib"):
    sys.modules[name] = None
import numpy as np, tensorflow as tf
from jaxtf.convert import convert_exported
converted = convert_exported(open(sys.argv[1], "rb").read())
x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = converted({"x": x}, 2.0)
np.testing.assert_allclose(y[0], tf.sin(x) * 2, rtol=1e-6)
np.testing.assert_allclose(tape.gradient(y[0], x), tf.cos(x) * 2, rtol=1e-6)
module = tf.Module()
module.call = tf.function(lambda x: converted({"x": x}, 3.0), input_signature=[tf.TensorSpec([None, 2])])
tf.saved_model.save(module, sys.argv[2])
np.testing.assert_allclose(tf.saved_model.load(sys.argv[2]).call(x)[0], tf.sin(x) * 3, rtol=1e-6)
"""


def test_an_artifact_runs_differentiates_and_is_saved_without_jax(run_without_jax, tmp_path):
    b = symbolic_shape("b, 2")
    exporter = export(lambda tree, scale: [jnp.sin(tree["x"]) * scale], tensorflow_version=tf.__version__)
    exported = exporter({"x": jax.ShapeDtypeStruct(b, jnp.float32)}, 1.0)
    (tmp_path / "artifact").write_bytes(exported.serialize(1))
    run = run_without_jax("-c", WITHOUT_JAX, tmp_path / "artifact", tmp_path / "saved")
    assert run.returncode == 0, run.stderr


def test_it_agrees_with_convert():
    args, kwargs = arguments(4, 2)
    direct = convert(dense)(*args, **kwargs)
    found = convert_exported(exported_dense())(*args, **kwargs)
    jax.tree.map(np.testing.assert_array_equal, found, direct)


def test_autograph_calls_a_converted_function_as_it_is(caplog):
    def add_one(x):
        return {"y": x + 1}

    artifact = export(add_one)(jax.ShapeDtypeStruct((2,), jnp.float32)).serialize()
    converted = convert_exported(artifact)

    def outside(x):
        return converted(x)

    def inside(x):
        return convert_exported(artifact)(x)

    def from_jax(x):
        return convert(add_one)(x)

    for fun in (outside, inside, from_jax):
        np.testing.assert_array_equal(tf.function(fun, autograph=True)(tf.ones(2))["y"], [2, 2])
    assert "AutoGraph" not in caplog.text


TF = ".".join(tf.__version__.split(".")[:2])


def calls_out(x):
    return jax.ffi.ffi_call("a_target_of_mine", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


VOUCHED = [DisabledSafetyCheck.custom_call("a_target_of_mine")]


def an_artifact_that_vouches_for_itself(check=VOUCHED[0]):
    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    return export(calls_out, tensorflow_version=TF, disabled_checks=[check])(spec).serialize()


@pytest.mark.parametrize("check", [VOUCHED[0], DisabledSafetyCheck.custom_call("ALL")], ids=["named", "all"])
def test_what_an_artifact_vouches_for_is_refused_unless_the_caller_does(check):
    artifact = an_artifact_that_vouches_for_itself(check)
    for exported in (artifact, deserialize(artifact), deserialize(artifact).with_tensorflow_version(TF)):
        with pytest.raises(UnknownCustomCall) as error:
            convert_exported(exported)
        assert str(error.value) == (
            "'calls_out' calls by name what TensorFlow does not have: a_target_of_mine\n"
            "  remedy: where the process that runs it registers these targets, pass "
            "disabled_checks=[DisabledSafetyCheck.custom_call('a_target_of_mine')]"
        )
        convert_exported(exported, disabled_checks=VOUCHED)


def test_checks_of_the_caller_are_checks():
    with pytest.raises(ConversionOptionError, match="must be a list of DisabledSafetyCheck"):
        convert_exported(an_artifact_that_vouches_for_itself(), disabled_checks=["custom_call:ALL"])


def test_the_checks_of_a_conversion_are_its_caller_s():
    spec = tf.TensorSpec((3,), tf.float32)
    converted = convert(calls_out, native_serialization_disabled_checks=VOUCHED)
    assert tf.function(converted, autograph=False).get_concrete_function(spec).outputs[0].shape == (3,)


def test_checks_of_jax_export_are_taken():
    theirs = [jax.export.DisabledSafetyCheck.custom_call("a_target_of_mine")]
    convert_exported(an_artifact_that_vouches_for_itself(), disabled_checks=theirs)
    converted = tf.function(convert(calls_out, native_serialization_disabled_checks=theirs), autograph=False)
    graph = converted.get_concrete_function(tf.TensorSpec((3,), tf.float32)).graph
    [call] = [node for node in graph.get_operations() if node.type == "XlaCallModule"]
    assert call.get_attr("disabled_checks") == [b"custom_call:a_target_of_mine"]


def test_kernels_of_a_gpu_are_let_through_beside_other_platforms():
    spec = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    options = {"tensorflow_version": TF, "expand_linear_algebra": True}
    convert_exported(export(jnp.linalg.cholesky, platforms=("cpu", "cuda"), **options)(spec).serialize())
    with pytest.raises(UnknownCustomCall, match="cusolver_potrf_ffi"):
        convert_exported(export(jnp.linalg.cholesky, platforms=("cuda",), **options)(spec).serialize())


def placed_in_host_memory(x):
    x = jax.device_put(x * 2, jax.memory.Space.Host)
    return jax.device_put(x, jax.memory.Space.Device) + 1


def test_what_is_placed_in_memory_is_refused_for_cpu_alone_and_right_in_graph_mode():
    """TensorFlow's XLA has no code for it on CPU; JAX writes it under an explicit mesh."""
    x = np.arange(4, dtype=np.float32)
    with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))):
        for refused in (
            lambda: convert(placed_in_host_memory)(x),
            lambda: convert_exported(export(placed_in_host_memory, tensorflow_version=TF)(x).serialize()),
        ):
            with pytest.raises(UnknownCustomCall, match=r"in which memory .*\n.*native_serialization=False"):
                refused()
        in_graph_mode = convert(placed_in_host_memory, native_serialization=False)
        np.testing.assert_array_equal(in_graph_mode(x), placed_in_host_memory(x))
        for_tpus = export(placed_in_host_memory, tensorflow_version=TF, platforms=("cpu", "tpu"))(x)
        convert_exported(for_tpus.serialize())


@pytest.mark.parametrize(("inner", "outer"), [(("cpu", "cuda"), ("cuda", "cpu")), (("tpu", "cuda", "cpu"), ("cpu",))])
def test_an_artifact_that_another_calls_is_translated_for_cpu_whatever_their_platforms(inner, outer):
    def fun(x):
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 1000)

    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    called = export(fun, platforms=inner)(spec)
    exported = export(lambda x: called.call(x) * 2, platforms=outer)(spec)
    x = np.arange(3, dtype=np.float32)
    for native in (True, False):
        converted = convert_exported(exported, native_serialization=native)
        np.testing.assert_array_equal(converted(x), 2 * (x + 1))
        np.testing.assert_array_equal(tf.function(converted, autograph=False)(x), 2 * (x + 1))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("sizes", ["b, 3", "2, 3"])
def test_an_argument_of_unknown_rank_has_that_of_the_export(native, sizes):
    exported = export(lambda x: x * 2)(jax.ShapeDtypeStruct(symbolic_shape(sizes), np.float32))
    converted = convert_exported(exported, native_serialization=native)
    function = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec(None, tf.float32)])
    np.testing.assert_array_equal(function(np.ones((2, 3), np.float32)), np.full((2, 3), 2))
    for shape in ((3,), (2, 4), (1, 2, 3)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not compatible with expected shape"):
            function(np.ones(shape, np.float32))
